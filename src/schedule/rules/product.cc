// SPDX-License-Identifier: Apache-2.0
// Products and convolutions: tiles of the result in registers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "schedule/rules/look.h"
#include "schedule/rules/product_tile.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"

namespace tvm::tir {
int64_t PanelOf(const BlockLook& look, size_t row, size_t column, const Machine& machine) {
  int64_t most = CloseColumns(look, machine);
  auto results = look.Size([](const Axis& a) { return !a.reduce; });
  int64_t product =
      look.axes[row].size.value_or(cost::kEven) * look.axes[column].size.value_or(cost::kEven);
  int64_t others = results && product > 0 ? std::max<int64_t>(1, *results / product) : 1;
  int64_t threads = (machine->cores + others - 1) / others;
  if (threads == 1) return most;
  auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(product / threads)));
  return std::min(most, side);
}
BlockRV CopyOperand(const Schedule& sch, const BlockLook& look, const Access& access, size_t column,
                    int64_t reuse) {
  std::optional<int64_t> shared = 1;
  Array<Var> iters;
  Array<PrimExpr> order;
  for (const IterVar& iter : look.block->iter_vars) iters.push_back(iter->var);
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (!axis.iter.defined()) return BlockRV();
    if (!access.Moves(i)) {
      shared = shared && axis.size ? std::optional(*shared * *axis.size) : std::nullopt;
    } else if (i != column) {
      order.push_back(axis.iter);
    }
  }
  if (!access.Moves(column) || (shared && *shared < reuse)) return BlockRV();
  order.push_back(look.axes[column].iter);
  for (size_t r = 0; r < look.block->reads.size(); ++r) {
    if (!look.block->reads[r]->buffer.same_as(access.buffer)) continue;
    return sch.ReindexCacheRead(look.rv, static_cast<int64_t>(r), "global",
                                IndexMap(iters, order, {}));
  }
  return BlockRV();
}
void LayOut(const Schedule& sch, const BlockRV& copy, const IndexMap& map) {
  // The block that copies may have its iterators in another order than its buffer.
  Block block = sch.Get(copy);
  Array<Var> iters = block->iter_vars.Map([](const IterVar& iter) { return iter->var; });
  auto written =
      block->writes[0]->region.Map([](const Range& range) -> PrimExpr { return range->min; });
  arith::Analyzer analyzer;
  sch.TransformBlockLayout(copy, IndexMap(iters, map.MapIndices(written, &analyzer), {}));
  sch.TransformLayout(copy, Array<Any>{String("write"), int64_t{0}}, map);
}
void ShareTiles(const Schedule& sch, const Array<LoopRV>& outer, const LoopRV& inner,
                const Machine& machine, std::optional<double> work) {
  LoopRV shared = FuseToShare(sch, outer, machine);
  auto count = AsConstInt(sch.Get(shared)->extent);
  if (count && (*count < cost::kTasksPerCore * machine->cores ||
                Unevenness(*count, machine->cores) > cost::kIdleTiles))
    shared = sch.Fuse({shared, inner});
  ParallelIfWorth(sch, shared, machine, work);
}

namespace {
/// The layout [others] [tiles of columns] [reduction] [tile] of an operand's copy, whose last
/// dimension is the columns.
IndexMap TilesOf(const Block& user, const Buffer& copy, int64_t width) {
  Array<Var> from;
  Array<PrimExpr> to, reduced;
  for (const BufferRegion& read : user->reads) {
    if (!read->buffer.same_as(copy)) continue;
    for (const Range& range : read->region) {
      Var i("i" + std::to_string(from.size()), range->min.dtype());
      bool reduces =
          std::any_of(user->iter_vars.begin(), user->iter_vars.end(), [&](const IterVar& iter) {
            return iter->iter_type == IterVarType::kCommReduce && range->min.same_as(iter->var);
          });
      from.push_back(i);
      (reduces ? reduced : to).push_back(i);
    }
  }
  to.pop_back();
  PrimExpr tile = MakeConst(from.back()->dtype, width);
  to.push_back(floordiv(from.back(), tile));
  for (const PrimExpr& i : reduced) to.push_back(i);
  to.push_back(floormod(from.back(), tile));
  return IndexMap(from, to, {});
}
/// Whether steps along an axis go from page to page, more of them than the CPU knows the addresses
/// of, in something that is read along its axes and not over and over.
bool Scatters(const BlockLook& look, const Access& access, size_t axis) {
  int64_t step = access.linear ? AsConstInt(access.steps[axis]).value_or(0) : 0;
  auto read = look.Size(
      [&](const Axis& a) { return access.Moves(static_cast<size_t>(&a - look.axes.data())); });
  int64_t bytes = access.Bytes(), elements = 1;
  for (const PrimExpr& extent : access.buffer->shape) elements *= AsConstInt(extent).value_or(0);
  if (!look.axes[axis].size || read != elements / access.word) return false;
  return step * bytes >= cost::kPage / 4 &&
         step * bytes * *look.axes[axis].size > cost::kPage * cost::kKnownPages;
}
/// The tiles of an operand that was transposed, and is a copy anyway, lie one behind the other; so
/// do those of one whose lines collide or are scattered, in a copy made here.
void PackColumns(const Schedule& sch, const BlockLook& look, size_t column, int64_t width,
                 Array<BlockRV>* copies, const Machine& machine) {
  for (const Access& access : look.accesses) {
    if (access.is_store || !access.StepsBy(column, 1)) continue;
    BlockRV packed;
    for (const BlockRV& copy : *copies) {
      if (sch.Get(copy)->writes[0]->buffer.same_as(access.buffer)) packed = copy;
    }
    bool is_new = !packed.defined(), collides = false, scatters = false;
    for (size_t i = 0; i < look.axes.size(); ++i) {
      // (A few of them still fit into one place.)
      bool many = look.axes[i].size.value_or(cost::kEven) > machine->l1_ways;
      collides |= look.axes[i].reduce && many && access.Collides(i, machine);
      scatters |= look.axes[i].reduce && Scatters(look, access, i);
    }
    if (is_new && !collides && !scatters) continue;
    int64_t rows = collides ? cost::kRowsToPack : cost::kRowsToGather;
    Attempt(sch, [&] {
      if (is_new) packed = CopyOperand(sch, look, access, column, rows);
      if (!packed.defined() || sch.GetConsumers(packed).size() != 1) return false;
      LayOut(sch, packed, TilesOf(sch.Get(look.rv), sch.Get(packed)->writes[0]->buffer, width));
      if (is_new) copies->push_back(packed);
      return true;
    });
    return;
  }
}
/// Few rows, for which it does not pay to copy a matrix that comes from memory: whole pages of it
/// are used before the next ones, by adding to results for a part of the reduction at a time.
///
///   [panel of columns, parallel] [part of the reduction] [tiles] [reduction] [tile: unrolled]
bool FewRows(const Schedule& sch, const BlockLook& look, TileAxes axes, const Machine& machine) {
  Array<LoopRV> outer, reduction;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (!axis.size) return false;
    if (!axis.reduce && i != axes.row && i != axes.column) outer.push_back(axis.loop);
    if (!axis.reduce) continue;
    bool scatters = std::any_of(look.accesses.begin(), look.accesses.end(), [&](const Access& a) {
      return look.IsOperand(a) && a.StepsBy(axes.column, 1) && Scatters(look, a, i);
    });
    if (!scatters || !reduction.empty()) return false;
    int64_t part = LargestDivisor(*axis.size, cost::kPartOfReduction);
    if (part < cost::kPartOfReduction / 4 || FitsSecondCache(look, axes, machine)) return false;
    reduction = sch.Split(axis.loop, {std::nullopt, PrimExpr(part)});
  }
  int64_t rows = *look.axes[axes.row].size, columns = *look.axes[axes.column].size;
  if (rows >= cost::kRowsToPack || reduction.empty()) return false;
  Tile ideal = IdealTile(look, axes, machine);
  Tile tile =
      ChooseTile(AreaOf(look, axes, ideal, machine), machine->Lanes(look.widest_bits), machine);
  int64_t width = tile.vectors * tile.lanes;
  if (tile.score < cost::kGoodTile * ideal.score || columns % width != 0) return false;
  int64_t page = std::min(cost::kPage * 8 / look.widest_bits, columns / machine->cores);
  int64_t panel = LargestDivisor(columns / width, std::max<int64_t>(1, page / width));
  Array<LoopRV> row = sch.Split(look.axes[axes.row].loop, {std::nullopt, PrimExpr(tile.rows)});
  Array<LoopRV> column =
      sch.Split(look.axes[axes.column].loop,
                {std::nullopt, PrimExpr(panel), PrimExpr(tile.vectors), PrimExpr(tile.lanes)});
  outer.push_back(column[0]);
  Array<LoopRV> order = outer;
  for (const LoopRV& loop :
       {reduction[0], column[1], row[0], reduction[1], row[1], column[2], column[3]})
    order.push_back(loop);
  sch.Reorder(order);
  BlockRV init = sch.DecomposeReduction(look.rv, reduction[0]);
  UnrollTile(sch, {init}, outer.size() + 2);
  UnrollTile(sch, {look.rv}, outer.size() + 4);
  ParallelIfWorth(sch, FuseToShare(sch, outer, machine), machine, look.TotalWork());
  return true;
}
/// How many tiles of rows stay in the third cache while all columns go by: all of them where that
/// is not known, or the columns stay closer.
int64_t RowTilesOfPanel(const BlockLook& look, TileAxes axes, int64_t tiles,
                        const Machine& machine) {
  auto depth = look.Size([](const Axis& a) { return a.reduce; }), rows = look.axes[axes.row].size;
  if (!depth || !rows || machine->l3_bytes == 0 || FitsSecondCache(look, axes, machine))
    return tiles;
  int64_t bytes = *rows / tiles * *depth * std::max(1, look.widest_bits / 8);
  int64_t most = std::max<int64_t>(1, machine->l3_bytes / cost::kShareOfThirdCache / bytes);
  int64_t panel = LargestDivisor(tiles, most);
  return 2 * panel > most ? panel : tiles;
}
/// [panels of rows, outer spatial: parallel] [reduction] [rows, vectors: unrolled] [lanes]: the
/// tile lives in a local buffer until the reduction is done; the block that uses it comes along.
void InTiles(const Schedule& sch, const BlockLook& look, TileAxes axes, const Machine& machine,
             Array<BlockRV>* copies) {
  const BlockRV& block = look.rv;
  int lanes = machine->Lanes(look.widest_bits);
  Tile ideal = IdealTile(look, axes, machine);
  Area area = AreaOf(look, axes, ideal, machine);
  bool is_result = sch.GetConsumers(block).empty();
  if (is_result) {
    // Sizes that tiles do not divide: most of the result in good tiles, the rest in what it takes.
    auto again = [&](const BlockRV& part) { ScheduleReduction(sch, part, machine); };
    Area even = area;
    even.rows = cost::kEven;
    Tile whole = ChooseTile(even, lanes, machine);
    if (whole.score < cost::kGoodTile * ideal.score) {
      if (Parted(sch, look, axes.column, lanes, again)) return;
      if (Parted(sch, look, axes.column, ideal.vectors * ideal.lanes, again)) return;
    }
    Tile as_it_is = ChooseTile(area, lanes, machine);
    bool is_good = as_it_is.score >= cost::kGoodTile * whole.score ||
                   (as_it_is.lanes == lanes && HasManyChains(as_it_is));
    if (!is_good && Parted(sch, look, axes.row, whole.rows, again)) return;
  }
  Tile tile = ChooseTile(area, lanes, machine);
  int64_t lines_inside = area.columns == tile.lanes ? tile.vectors : 1;
  int64_t vectors = tile.vectors / lines_inside;
  PackColumns(sch, look, axes.column, vectors * tile.lanes, copies, machine);

  BlockRV epilogue = KeepTile(sch, block);
  Array<LoopRV> outer, among_rows, reduction;
  std::ptrdiff_t batches = 0;  // of the outer loops, up to the last one that has rows of its own
  LoopRV column_panels, row_panels, row_tiles, column_tiles, row, line, vector, lane;
  bool is_small = FitsSecondCache(look, axes, machine);
  auto split = [&](const Axis& axis, int64_t factor, LoopRV* inside) {
    Array<LoopRV> parts = sch.Split(axis.loop, {std::nullopt, PrimExpr(factor)});
    *inside = parts[1];
    return parts[0];
  };
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (axis.reduce) {
      reduction.push_back(axis.loop);
    } else if (i == axes.row) {
      int64_t tiles = area.rows / tile.rows;
      int64_t panel = axis.size ? RowTilesOfPanel(look, axes, tiles, machine) : tiles;
      row_tiles = split(axis, tile.rows, &row);
      if (panel < tiles) {
        Array<LoopRV> parts = sch.Split(row_tiles, {std::nullopt, PrimExpr(panel)});
        row_panels = parts[0];
        row_tiles = parts[1];
      }
    } else if (i == axes.column) {
      int64_t width = vectors * tile.lanes;
      int64_t close = LargestDivisor(area.columns / width,
                                     PanelOf(look, axes.row, axes.column, machine) / width);
      Array<LoopRV> parts = sch.Split(
          axis.loop, {std::nullopt, PrimExpr(close), PrimExpr(vectors), PrimExpr(tile.lanes)});
      column_panels = parts[0];
      column_tiles = parts[1];
      vector = parts[2];
      lane = parts[3];
    } else {
      LoopRV loop = i == axes.line ? split(axis, lines_inside, &line) : axis.loop;
      bool moves = RowsMove(look, axes, i);
      (is_small && !moves ? among_rows : outer).push_back(loop);
      if (moves) batches = static_cast<std::ptrdiff_t>(outer.size());
    }
  }
  outer.push_back(column_panels);
  if (row_panels.defined()) outer.insert(outer.begin() + batches, row_panels);
  outer.push_back(row_tiles);
  for (const LoopRV& loop : among_rows) outer.push_back(loop);
  Array<LoopRV> order = outer;
  order.push_back(column_tiles);
  for (const LoopRV& loop : reduction) order.push_back(loop);
  for (const LoopRV& loop : {row, line, vector, lane}) {
    if (loop.defined()) order.push_back(loop);
  }
  sch.Reorder(order);
  sch.ReverseComputeAt(epilogue, column_tiles, /*preserve_unit_loops=*/true);
  // The tile of the epilogue: columns in vectors as well.
  sch.Split(sch.GetLoops(epilogue).back(), {PrimExpr(vectors), PrimExpr(tile.lanes)});
  BlockRV init = sch.DecomposeReduction(block, reduction[0]);
  UnrollTile(sch, {init, epilogue}, outer.size() + 1);
  UnrollTile(sch, {block}, outer.size() + 1 + reduction.size());
  ShareTiles(sch, outer, column_tiles, machine, look.TotalWork());
}
/// Of how many rows tiles are whole, where filling up the last one pays: those of the best tile, or
/// where the number of rows is not known, and may be one, as few as make a good one.
int64_t RowsToFill(const BlockLook& look, TileAxes axes, bool is_result, const Machine& machine) {
  int lanes = machine->Lanes(look.widest_bits);
  Area area = AreaOf(look, axes, IdealTile(look, axes, machine), machine);
  if (area.columns % lanes != 0) return 1;  // they are parted first
  auto size = look.axes[axes.row].size;
  if (!size) {
    if (area.rows > 1 || is_result) return 1;
    std::vector<double> scores;
    for (area.rows = 1; area.rows <= cost::kMostRows; ++area.rows)
      scores.push_back(ChooseTile(area, lanes, machine).score);
    double good = cost::kGoodTile * *std::max_element(scores.begin(), scores.end());
    return std::find_if(scores.begin(), scores.end(), [&](double s) { return s >= good; }) -
           scores.begin() + 1;
  }
  if (HasManyChains(ChooseTile(area, lanes, machine))) return 1;
  auto cost_of = [&](int64_t rows) {
    area.rows = (*size + rows - 1) / rows * rows;
    return static_cast<double>(area.rows) / ChooseTile(area, lanes, machine).score;
  };
  int64_t best = 1;
  double least = cost_of(1) / cost::kWorthFilling;
  for (int64_t rows = 2; rows <= std::min(*size, cost::kMostRows); ++rows) {
    if (double cost = cost_of(rows); cost < least) {
      best = rows;
      least = cost;
    }
  }
  return best;
}
/// Fills up the rows of a product by its last one, so that tiles divide them. Returns the block
/// that reads the rows, undefined where it does not pay; inlined, it is an index that stays inside.
BlockRV FillRows(const Schedule& sch, const BlockLook& look, TileAxes axes,
                 const Machine& machine) {
  Array<BlockRV> consumers = sch.GetConsumers(look.rv);
  int64_t rows = RowsToFill(look, axes, consumers.empty(), machine);
  const Var& iter = look.axes[axes.row].iter;
  if (rows == 1 || !iter.defined()) return BlockRV();
  Array<BlockRV> before = sch.GetProducers(look.rv);
  sch.Apply<void>("PadEdge", look.rv, look.block->iter_vars.Map([&](const IterVar& i) {
    return i->var.same_as(iter) ? rows : int64_t{1};
  }));
  if (!consumers.empty()) sch.ComputeInline(sch.GetConsumers(look.rv)[0]);
  for (const BlockRV& reader : sch.GetProducers(look.rv)) {
    bool is_new = std::none_of(before.begin(), before.end(),
                               [&](const BlockRV& b) { return sch.IdOf(b) == sch.IdOf(reader); });
    if (is_new) return reader;
  }
  return BlockRV();
}
/// Transposes an operand that is contiguous along the reduction, so that it is along the columns of
/// the result. Returns the block that copies.
BlockRV TransposeOperand(const Schedule& sch, const BlockLook& look) {
  std::optional<size_t> column = look.Column();
  for (const Access& access : look.accesses) {
    if (!column || !look.IsOperand(access)) continue;
    if (access.StepsBy(*column, 0) || access.StepsBy(*column, 1)) continue;
    return CopyOperand(sch, look, access, *column, cost::kRowsToTranspose);
  }
  return BlockRV();
}
}  // namespace

std::pair<int64_t, int64_t> EvenSides(std::optional<int64_t> rows, std::optional<int64_t> columns,
                                      int64_t lanes, const Machine& machine) {
  Tile ideal = ChooseTile({cost::kEven, cost::kEven}, lanes, machine);
  int64_t width = ideal.vectors * ideal.lanes;
  std::pair<int64_t, int64_t> best{ideal.rows, width};
  double least = std::numeric_limits<double>::infinity();
  // Where a number is known, it may grow by less than a tile.
  int64_t last_row = rows ? *rows + ideal.rows - 1 : ideal.rows;
  int64_t last_column = columns ? *columns + width - 1 : width;
  for (int64_t row = rows.value_or(ideal.rows); row <= last_row; ++row) {
    int64_t column = (columns.value_or(width) + lanes - 1) / lanes * lanes;
    for (; column <= last_column; column += lanes) {
      double score = ChooseTile({row, column}, lanes, machine).score;
      double cost = static_cast<double>(row * column) / score;
      if (columns && column != *columns) cost *= cost::kConditions;
      if (cost < least) {
        least = cost;
        best = {row, column};
      }
    }
  }
  return best;
}
bool ScheduleProduct(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  return ScheduleProductOf(sch, block, {}, machine);
}
bool ScheduleProductOf(const Schedule& sch, const BlockRV& block, Array<BlockRV> copies,
                       const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  if (!look.simple || !machine->takes_vectors) return false;
  // Columns of unknown number: whole tiles, and the rest otherwise.
  if (auto axes = FindTileAxes(look); axes && !look.axes[axes->column].size) {
    Tile ideal = IdealTile(look, *axes, machine);
    int64_t width = ideal.vectors * ideal.lanes;
    if (SizeOf(look.axes[axes->column], width) != width) {
      auto again = [&](const BlockRV& part) { ScheduleReduction(sch, part, machine); };
      return sch.GetConsumers(block).empty() && Parted(sch, look, axes->column, width, again);
    }
  }
  BlockRV transposed;
  bool is_transposed = Attempt(sch, [&] {
    transposed = TransposeOperand(sch, look);
    return transposed.defined();
  });
  if (is_transposed) {
    copies.push_back(transposed);
    look = LookAt(sch, block);
  }
  auto axes = FindTileAxes(look);
  if (!axes) return false;
  Array<BlockRV> consumers = sch.GetConsumers(block);
  if (consumers.size() > 1) return false;
  if (consumers.size() == 1 && LookAt(sch, consumers[0]).has_reduction) return false;
  if (copies.empty() && Attempt(sch, [&] { return FewRows(sch, look, *axes, machine); }))
    return true;
  bool is_filled = Attempt(sch, [&] {
    BlockRV rows = FillRows(sch, look, *axes, machine);
    if (!rows.defined()) return false;
    BlockLook filled = LookAt(sch, block);
    auto filled_axes = FindTileAxes(filled);
    if (!filled_axes) return false;
    Array<BlockRV> made = copies;
    InTiles(sch, filled, *filled_axes, machine, &made);
    sch.ComputeInline(rows);
    copies = made;
    return true;
  });
  auto in_tiles = [&] {
    Array<BlockRV> made = copies;
    InTiles(sch, LookAt(sch, block), *axes, machine, &made);
    copies = made;
    return true;
  };
  // What reads more than the element in its place does not come along with a tile.
  if (!is_filled && (consumers.empty() || !Attempt(sch, in_tiles))) {
    if (!consumers.empty()) sch.CacheWrite(block, 0, "global");
    in_tiles();
  }
  for (const BlockRV& copy : copies) ScheduleSpatial(sch, copy, machine, Share::kColumns);
  return true;
}
}  // namespace tvm::tir
