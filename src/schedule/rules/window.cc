// SPDX-License-Identifier: Apache-2.0
// Windows that slide over what they read, such as depthwise convolutions and pooling: tiles of the
// result in registers, in which neighbours share what they read.
#include <algorithm>

#include "schedule/rules/look.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {
/// A window moves by `step` of its `length` elements along an axis of the reduction, when the
/// results make a step along `row`.
struct Window {
  size_t row, column, along;
  int64_t step, length;
};
/// The axis of the reduction along which an access overlaps with itself, moved along a row.
std::optional<Window> Slides(const BlockLook& look, const Access& access, size_t row,
                             size_t column) {
  auto by = access.linear ? AsConstInt(access.steps[row]) : std::nullopt;
  for (size_t i = 0; by && *by > 0 && i < look.axes.size(); ++i) {
    auto step = AsConstInt(access.steps[i]);
    if (!look.axes[i].reduce || !look.axes[i].size || !step || *step < 1 || *by % *step != 0)
      continue;
    if (*by / *step < *look.axes[i].size)
      return Window{row, column, i, *by / *step, *look.axes[i].size};
  }
  return std::nullopt;
}
std::optional<Window> FindWindow(const BlockLook& look) {
  auto column = look.Column();
  if (!column || !look.axes[*column].size) return std::nullopt;
  auto is_result = [&](size_t i) {
    return look.axes[i].spatial && !look.axes[i].reduce && look.axes[i].size != 1;
  };
  for (size_t row = look.axes.size(); row-- > 0;) {
    if (row == *column || !is_result(row) || !look.axes[row].size) continue;
    std::optional<Window> found;
    bool fits = true;
    for (const Access& access : look.accesses) {
      if (!look.IsOperand(access)) continue;
      fits &= access.IsNear(*column);
      if (!fits || !access.Moves(row)) continue;
      auto window = Slides(look, access, row, *column);
      fits &= window && (!found || found->along == window->along) &&
              window->length <= cost::kLongestWindow;
      // What results elsewhere read again makes it a product.
      for (size_t i = 0; i < look.axes.size(); ++i) fits &= !is_result(i) || access.Moves(i);
      found = window;
    }
    if (fits && found) return found;
  }
  return std::nullopt;
}

/// `rows` times `vectors` of `lanes` columns.
struct WindowTile {
  int64_t rows = 1, vectors = 1, lanes = 1;
  double cost = 0;  // operations and loads per element
};
WindowTile ChooseTile(const BlockLook& look, const Window& window, int64_t columns,
                      const Machine& machine) {
  WindowTile best;
  auto try_tile = [&](WindowTile tile) {
    // The results, what all of them read along the window, and what they share.
    int64_t places = window.step * (tile.rows - 1) + window.length, apart = 1;
    for (const Access& access : look.accesses) {
      if (look.IsOperand(access)) apart = std::max(apart, *AsConstInt(access.steps[window.column]));
    }
    if (tile.rows * tile.vectors > 1 &&
        (tile.rows + apart * places) * tile.vectors + window.length > machine->vector_registers)
      return;
    auto rows = static_cast<double>(tile.rows);
    double pieces = LoadsOf(tile.lanes, machine), loads = 0;
    for (const Access& access : look.accesses) {
      if (!look.IsOperand(access)) continue;
      int64_t step = *AsConstInt(access.steps[window.column]);
      double share = access.Moves(window.row)
                         ? static_cast<double>(places) / (rows * static_cast<double>(window.length))
                         : 1 / rows;
      // (Elements apart are taken out of the vectors that they lie in.)
      loads += share * (step > 1 ? static_cast<double>(2 * step - 1) : step == 1 ? pieces : 1);
    }
    double chains =
        std::max(1.0, cost::kWindowChains / static_cast<double>(tile.rows * tile.vectors));
    tile.cost = (1 + loads) * chains / static_cast<double>(tile.lanes);
    if (best.cost == 0 || tile.cost < best.cost) best = tile;
  };
  for (int64_t lanes = machine->Lanes(look.widest_bits); lanes >= 1; --lanes) {
    for (int64_t rows = 1; rows <= machine->vector_registers && columns % lanes == 0; ++rows) {
      if (*look.axes[window.row].size % rows != 0) continue;
      for (int64_t vectors : {1, 2, 3, 4}) {
        if (columns / lanes % vectors == 0) try_tile({rows, vectors, lanes});
      }
    }
  }
  return best;
}
/// How many of the outer loops, from the outside, see parts of the operands that are their own: as
/// many threads may fill these parts as use them. 0 where threads would be idle, or the parts are
/// too large for the cache.
size_t LoopsOfOwnParts(const BlockLook& look, const std::vector<size_t>& outer,
                       const Machine& machine) {
  int64_t parts = 1;
  size_t loops = 0;
  for (; loops < outer.size(); ++loops) {
    size_t axis = outer[loops];
    bool own = look.axes[axis].size.has_value();
    for (const Access& access : look.accesses) {
      own &= !look.IsOperand(access) || !access.Moves(axis) || !Slides(look, access, axis, axis);
    }
    if (!own || axis == *look.Column()) break;
    parts *= *look.axes[axis].size;
  }
  double bytes = look.widest_bits / 8.0;
  for (size_t i = loops; i < outer.size(); ++i) {
    bytes *= static_cast<double>(look.axes[outer[i]].size.value_or(machine->l2_bytes));
  }
  bool is_even = Unevenness(parts, machine->cores) <= cost::kIdle;
  return is_even && bytes <= static_cast<double>(machine->l2_bytes) / 2 ? loops : 0;
}
/// Blocks that copy what one block alone reads, with a margin around it.
Array<BlockRV> PaddingOf(const Schedule& sch, const BlockRV& block) {
  Array<BlockRV> found;
  for (const BlockRV& producer : sch.GetProducers(block)) {
    if (sch.GetConsumers(producer).size() == 1 && !LookAt(sch, producer).has_reduction)
      found.push_back(producer);
  }
  return found;
}
/// [outer, parallel] [reduction] [the window's own axis, rows, vectors: unrolled] [lanes]
void InTiles(const Schedule& sch, const BlockLook& look, const Window& window,
             const WindowTile& tile, const Machine& machine) {
  const BlockRV& block = look.rv;
  Array<BlockRV> padding = PaddingOf(sch, block);
  BlockRV epilogue = KeepTile(sch, block);
  Array<LoopRV> outer, reduction, inner;
  std::vector<size_t> outer_axes;
  auto column = sch.Split(look.axes[window.column].loop,
                          {std::nullopt, PrimExpr(tile.vectors), PrimExpr(tile.lanes)});
  auto row = sch.Split(look.axes[window.row].loop, {std::nullopt, PrimExpr(tile.rows)});
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const LoopRV& loop = look.axes[i].loop;
    if (look.axes[i].reduce) {
      if (i != window.along) reduction.push_back(loop);
    } else if (i != window.column) {
      outer_axes.push_back(i);
      outer.push_back(i == window.row ? row[0] : loop);
    }
  }
  outer_axes.push_back(window.column);
  outer.push_back(column[0]);
  reduction.push_back(look.axes[window.along].loop);
  Array<LoopRV> order = outer;
  for (const LoopRV& loop : reduction) order.push_back(loop);
  for (const LoopRV& loop : {row[1], column[1], column[2]}) order.push_back(loop);
  sch.Reorder(order);
  sch.ReverseComputeAt(epilogue, outer.back(), /*preserve_unit_loops=*/true);
  sch.Split(sch.GetLoops(epilogue).back(), {PrimExpr(tile.vectors), PrimExpr(tile.lanes)});
  BlockRV init = sch.DecomposeReduction(block, reduction[0]);
  UnrollTile(sch, {init, epilogue}, outer.size());
  UnrollTile(sch, {block}, outer.size() + reduction.size() - 1);
  size_t own = padding.empty() ? 0 : LoopsOfOwnParts(look, outer_axes, machine);
  if (own == 0) {
    ParallelIfWorth(sch, FuseToShare(sch, outer, machine), machine, look.TotalWork());
    return;
  }
  LoopRV shared = FuseAll(sch, {outer.begin(), outer.begin() + static_cast<std::ptrdiff_t>(own)});
  ParallelIfWorth(sch, shared, machine, look.TotalWork());
  for (const BlockRV& copy : padding) {
    sch.ComputeAt(copy, shared, /*preserve_unit_loops=*/true);
    Vectorized(sch, sch.GetLoops(copy).back(), machine->Lanes(look.widest_bits), Rest::kOwnLoop);
  }
}
}  // namespace

bool IsWindow(const BlockLook& look) { return FindWindow(look).has_value(); }

bool ScheduleWindow(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  if (!look.simple || !machine->takes_vectors) return false;
  auto window = FindWindow(look);
  if (!window) return false;
  Array<BlockRV> consumers = sch.GetConsumers(block);
  if (consumers.size() > 1) return false;
  if (consumers.size() == 1 && LookAt(sch, consumers[0]).has_reduction) return false;
  int64_t columns = *look.axes[window->column].size, lanes = machine->Lanes(look.widest_bits);
  WindowTile tile = ChooseTile(look, *window, columns, machine);
  WindowTile ideal = ChooseTile(look, *window, lanes, machine);
  if (!PaddingOf(sch, block).empty()) {
    if (tile.lanes < cost::kSmallestWindow) return false;
  } else if (ideal.rows * ideal.vectors < cost::kSmallestWindow) {
    return false;
  } else if (tile.cost > cost::kWorse * ideal.cost) {
    // (Parts of their own would keep what pads them from being filled where it is read.)
    auto again = [&](const BlockRV& part) { ScheduleReduction(sch, part, machine); };
    if (consumers.empty() && Parted(sch, look, window->column, lanes, again)) return true;
  }
  InTiles(sch, look, *window, tile, machine);
  return true;
}

void InlinePadding(const Schedule& sch, const BlockRV& root) {
  Array<BlockRV> blocks = sch.GetChildBlocks(root);
  if (blocks.size() < 2) return;
  for (const BlockRV& block : blocks) {
    Attempt(sch, [&] {
      Array<BlockRV> consumers = sch.GetConsumers(block);
      if (consumers.size() != 1 || !IsWindow(LookAt(sch, consumers[0]))) return false;
      BlockLook look = LookAt(sch, block);
      auto* store = look.block->body.as<BufferStoreObj>();
      auto* choice = store ? store->value.as<CallObj>() : nullptr;
      auto column = look.Column();
      if (!choice || !choice->Is(builtin::if_then_else()) || !column || look.has_reduction)
        return false;
      const Var& iter = look.axes[*column].iter;
      if (!iter.defined() || !choice->args[1].as<BufferLoadObj>()) return false;
      if (UsesVar(choice->args[0], [&](const VarObj* v) { return v == iter.get(); })) return false;
      sch.ComputeInline(block);
      return true;
    });
  }
}
}  // namespace tvm::tir
