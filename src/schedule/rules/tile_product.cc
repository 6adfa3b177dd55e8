// SPDX-License-Identifier: Apache-2.0
// Products of small numbers on the matrix units of a processor: a grid of tiles of the result in
// tile registers.
//
//   [outer, columns in panels, rows in grids: parallel] [columns in grids]
//     amx_zero   [reduction] amx_dot   amx_store   what is made of the result
//
// The words of the factors lie grid by grid: rows as [row / grid] [depth / 16] [row % grid] [16],
// columns as [column / grid] [depth / 16] [16] [column % grid]. Rows that fill tiles as they lie in
// memory are read from there. Where all rows stay in the second cache threads share the panels,
// and pack the columns of their own.
#include <limits>

#include "schedule/rules/look.h"
#include "tvm/expr/op.h"

namespace tvm::tir {
namespace {
/// Rows of a tile, and words or sums in a row of it.
constexpr int64_t kTileSide = 16;

/// What multiplies the factors: the operator on words, how many numbers these hold, and what
/// intrinsics call the types.
struct TileWay {
  const char* dot;
  int64_t group;
  std::string types;
};
std::optional<TileWay> FindTileWay(DataType left, DataType right, const Machine& machine) {
  if (machine->instructions.empty()) return std::nullopt;  // the backend does not take LLVM's
  if (left.is_bfloat16() && right.is_bfloat16() && machine->Has("amx-bf16"))
    return TileWay{"dot_bfloat16", 2, "bf"};
  auto is_byte = [](DataType t) { return t.is_integer() && t.bits() == 8; };
  if (!is_byte(left) || !is_byte(right) || !machine->Has("amx-int8")) return std::nullopt;
  return TileWay{"dot_bytes", 4,
                 std::string(left.is_uint() ? "u" : "s") + (right.is_uint() ? "u" : "s")};
}
/// The axes of a product, and which of its factors has the rows and which the columns.
struct TileRoles {
  size_t row, column, depth;
  size_t left, right;
};
std::optional<TileRoles> FindTileRoles(const BlockLook& look) {
  std::vector<const Access*> factors = FactorsOf(look);
  auto column = look.Column();
  if (factors.size() != 2 || !column) return std::nullopt;
  size_t right = factors[0]->Moves(*column) ? 0 : 1, left = 1 - right;
  if (factors[left]->Moves(*column)) return std::nullopt;
  std::optional<size_t> row, depth;
  auto longer = [&](size_t i, std::optional<size_t> than) {
    auto size = [&](size_t axis) { return look.axes[axis].size.value_or(INT32_MAX); };
    return !than || size(i) > size(*than);
  };
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (!axis.iter.defined() || !factors[left]->Moves(i)) continue;
    bool both = factors[right]->Moves(i);
    if (axis.reduce && both && longer(i, depth)) depth = i;
    if (!axis.reduce && axis.spatial && !both && longer(i, row)) row = i;
  }
  if (!row || !depth) return std::nullopt;
  return TileRoles{*row, *column, *depth, left, right};
}

/// Tiles of the result that stay in registers.
struct TileGrid {
  int64_t rows = 1, columns = 1;
  double cost = std::numeric_limits<double>::infinity();
  std::string str() const { return std::to_string(rows) + "x" + std::to_string(columns); }
};
int64_t RoundedUp(int64_t size, int64_t to) { return (size + to - 1) / to * to; }
/// The grid with which the result costs least: a step takes as long as its products, the loads of
/// its tiles, or the latency of one product.
TileGrid ChooseGrid(std::optional<int64_t> rows, std::optional<int64_t> columns) {
  constexpr int64_t kRegisters = 8, kProduct = 16, kLoad = 16, kLatency = 52;
  TileGrid best;
  for (int64_t r = 1; r < kRegisters; ++r) {
    for (int64_t c = 1; r * c + r + c <= kRegisters; ++c) {
      auto count = [](std::optional<int64_t> size, int64_t tiles) {
        int64_t side = tiles * kTileSide;
        return static_cast<double>(RoundedUp(size.value_or(cost::kEven * tiles), side) / side);
      };
      int64_t step = std::max({r * c * kProduct, (r + c) * kLoad, kLatency});
      double cost = count(rows, r) * count(columns, c) * static_cast<double>(step);
      if (cost < best.cost) best = {r, c, cost};
    }
  }
  return best;
}
/// A size, as far as it is known, and what it is filled up to.
struct Filled {
  std::optional<int64_t> size;
  int64_t to;
  bool IsEven() const { return size && *size % to == 0; }
  double Waste() const {
    if (!size || *size == 0) return 1;
    return static_cast<double>(RoundedUp(*size, to)) / static_cast<double>(*size);
  }
};

/// The layout [others] [side / width] [depth / 16] and inside of it a tile in which the depth goes
/// last, or first.
IndexMap GridLayout(const Block& product, const Buffer& words, const Var& side, int64_t width,
                    const Var& depth, bool depth_last) {
  Array<Var> from;
  Array<PrimExpr> to;
  Var along_side, along_depth;
  for (const BufferRegion& read : product->reads) {
    if (!read->buffer.same_as(words)) continue;
    for (const Range& range : read->region) {
      Var i("i" + std::to_string(from.size()), range->min.dtype());
      from.push_back(i);
      if (range->min.same_as(side)) {
        along_side = i;
      } else if (range->min.same_as(depth)) {
        along_depth = i;
      } else {
        to.push_back(i);
      }
    }
  }
  auto part = [](const Var& i, int64_t size, auto divide) {
    return divide(i, MakeConst(i.dtype(), size));
  };
  auto outer = [](PrimExpr a, PrimExpr b) { return floordiv(a, b); };
  auto inner = [](PrimExpr a, PrimExpr b) { return floormod(a, b); };
  to.push_back(part(along_side, width, outer));
  to.push_back(part(along_depth, kTileSide, outer));
  if (depth_last) to.push_back(part(along_side, width, inner));
  to.push_back(part(along_depth, kTileSide, inner));
  if (!depth_last) to.push_back(part(along_side, width, inner));
  return IndexMap(from, to, {});
}

/// Whether words are numbers as they lie in memory.
bool AreInMemory(const Schedule& sch, const BlockRV& packing) {
  auto* store = sch.Get(packing)->body.as<BufferStoreObj>();
  PrimExpr word = store ? store->value : PrimExpr();
  while (word.defined() && word.as<CallObj>() && word.as<CallObj>()->Is(builtin::reinterpret()))
    word = word.as<CallObj>()->args[0];
  return word.defined() && word.as<BufferLoadObj>();
}
/// How many grids of columns a thread takes at once if all of them share the columns, each with all
/// rows; none where the rows do not stay close, or threads would wait for each other.
std::optional<int64_t> GridsOfThread(const BlockLook& look, const TileRoles& roles, int64_t width,
                                     const Machine& machine) {
  auto size = [&](size_t axis) { return look.axes[axis].size; };
  auto others = look.Size([&](const Axis& a) {
    auto i = static_cast<size_t>(&a - look.axes.data());
    return !a.reduce && i != roles.row && i != roles.column;
  });
  if (!size(roles.row) || !size(roles.column) || !size(roles.depth) || others != 1)
    return std::nullopt;
  if (*size(roles.row) * *size(roles.depth) * 4 > machine->l2_bytes) return std::nullopt;
  int64_t grids = *size(roles.column) / width;
  int64_t close = LargestDivisor(grids, std::max<int64_t>(1, grids / machine->cores));
  if (Unevenness(grids / close, machine->cores) > cost::kIdlePackers) return std::nullopt;
  return close;
}
/// The nest of loops around the intrinsics.
void InGrids(const Schedule& sch, const BlockLook& look, const TileRoles& roles,
             const TileGrid& grid, const std::string& dot, std::optional<int64_t> own,
             const BlockRV& columns, const Machine& machine) {
  const BlockRV& block = look.rv;
  BlockRV stored = sch.CacheWrite(block, 0, "amx.tile");
  Array<BlockRV> consumers = sch.GetConsumers(stored);
  int64_t height = grid.rows * kTileSide, width = grid.columns * kTileSide;
  Array<LoopRV> outer, reduction;
  LoopRV panels, row_grids, column_grids, row, column, depth;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (i == roles.row) {
      Array<LoopRV> parts = sch.Split(axis.loop, {std::nullopt, PrimExpr(height)});
      row_grids = parts[0];
      row = parts[1];
    } else if (i == roles.column) {
      int64_t panel = PanelOf(look, roles.row, roles.column, machine) / width;
      int64_t close = own ? *own : LargestDivisor(axis.size.value_or(width) / width, panel);
      Array<LoopRV> parts = sch.Split(axis.loop, {std::nullopt, PrimExpr(close), PrimExpr(width)});
      panels = parts[0];
      column_grids = parts[1];
      column = parts[2];
    } else if (i == roles.depth) {
      Array<LoopRV> parts = sch.Split(axis.loop, {std::nullopt, PrimExpr(kTileSide)});
      reduction.push_back(parts[0]);
      depth = parts[1];
    } else {
      (axis.reduce ? reduction : outer).push_back(axis.loop);
    }
  }
  outer.push_back(panels);
  if (!own) outer.push_back(row_grids);
  Array<LoopRV> order = outer;
  if (own) order.push_back(row_grids);
  order.push_back(column_grids);
  for (const LoopRV& loop : reduction) order.push_back(loop);
  for (const LoopRV& loop : {row, column, depth}) order.push_back(loop);
  sch.Reorder(order);
  if (!consumers.empty()) sch.SetScope(stored, 0, "local");
  sch.ReverseComputeAt(stored, column_grids, /*preserve_unit_loops=*/true);
  for (const BlockRV& epilogue : consumers) {
    sch.ReverseComputeAt(epilogue, column_grids, /*preserve_unit_loops=*/true);
    VectorizeInner(sch, epilogue, machine);
  }
  BlockRV init = sch.DecomposeReduction(block, reduction[0]);
  auto tensorize = [&](const BlockRV& part, const std::string& name) {
    Array<LoopRV> loops = sch.GetLoops(part);
    sch.Tensorize(loops[loops.size() - 2], name);
  };
  std::string sum = look.Store().buffer->dtype.str();
  tensorize(init, "amx_zero_" + grid.str() + "_" + sum);
  tensorize(stored,
            "amx_store_" + grid.str() + "_" + sum + (consumers.empty() ? "_global" : "_local"));
  sch.Tensorize(row, "amx_dot_" + grid.str() + "_" + dot);
  if (!own) return ShareTiles(sch, outer, column_grids, machine, look.TotalWork());
  sch.ComputeAt(columns, panels);
  VectorizeInner(sch, columns, machine);
  ParallelIfWorth(sch, FuseAll(sch, outer), machine, look.TotalWork());
}
}  // namespace

bool ScheduleTileProduct(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  if (!look.simple || !machine->takes_vectors) return false;
  auto roles = FindTileRoles(look);
  if (!roles) return false;
  std::vector<const Access*> factors = FactorsOf(look);
  auto way = FindTileWay(factors[roles->left]->buffer->dtype, factors[roles->right]->buffer->dtype,
                         machine);
  if (!way) return false;
  const Axis &row = look.axes[roles->row], &column = look.axes[roles->column],
             &depth = look.axes[roles->depth];
  TileGrid grid = ChooseGrid(row.size, column.size);
  Filled rows{row.size, grid.rows * kTileSide}, columns{column.size, grid.columns * kTileSide},
      words{depth.size, kTileSide * way->group};
  if (rows.Waste() * columns.Waste() * words.Waste() > cost::kTileWaste) return false;
  Array<int64_t> padding = look.block->iter_vars.Map([&](const IterVar& iter) -> int64_t {
    if (iter->var.same_as(row.iter)) return rows.IsEven() ? 1 : rows.to;
    if (iter->var.same_as(column.iter)) return columns.IsEven() ? 1 : columns.to;
    return iter->var.same_as(depth.iter) && !words.IsEven() ? kTileSide : 1;
  });
  Array<BlockRV> packings = sch.PackProducts(block, way->dot, -1, padding);
  InlineResult(sch, block);
  look = LookAt(sch, block);
  factors = FactorsOf(look);
  Array<BlockRV> copies, transposed;
  auto lay_out = [&](size_t factor, const Axis& side, int64_t width) {
    bool is_left = factor == roles->left;
    BlockRV copy = packings[static_cast<int64_t>(factor)];
    if (!is_left && !factors[factor]->StepsBy(roles->column, 1)) {
      transposed.push_back(copy);
      copy = CopyOperand(sch, look, *factors[factor], roles->column, 0);
    }
    if (copy.defined()) {
      LayOut(sch, copy,
             GridLayout(sch.Get(block), sch.Get(copy)->writes[0]->buffer, side.iter, width,
                        look.axes[roles->depth].iter, is_left));
    }
    return copy;
  };
  BlockRV words_of_rows = packings[static_cast<int64_t>(roles->left)];
  bool is_direct = rows.IsEven() && AreInMemory(sch, words_of_rows);
  if (is_direct) {
    sch.ComputeInline(words_of_rows);
  } else {
    copies.push_back(lay_out(roles->left, look.axes[roles->row], rows.to));
  }
  BlockRV words_of_columns = lay_out(roles->right, look.axes[roles->column], columns.to);
  if (!words_of_columns.defined()) return false;
  auto own = transposed.empty() ? GridsOfThread(look, *roles, columns.to, machine) : std::nullopt;
  if (!own) copies.push_back(words_of_columns);
  std::string dot =
      way->types + (roles->left == 0 ? "" : "_reversed") + (is_direct ? "_direct" : "");
  InGrids(sch, look, *roles, grid, dot, own, words_of_columns, machine);
  for (const BlockRV& copy : copies) ScheduleSpatial(sch, copy, machine, Share::kColumns);
  for (const BlockRV& packing : transposed) SchedulePacking(sch, packing, machine);
  return true;
}
}  // namespace tvm::tir
