// SPDX-License-Identifier: Apache-2.0
// Products of what tiles were transformed to, which are transformed back: Winograd's convolutions.
//
//   padded[…]            what tiles are cut from, with margins
//   forward[…, y, x, c]  every tile of it, transformed
//   products[…, y, x, o] += forward[…, y, x, c] * weights[…, o, c]
//   back[…, 2 * y, 2 * x, …]   and what is made of it
//
// Rows of tiles go through all stages while they are in the second cache, or each stage runs for
// all tiles before the next one: whatever reads less from beyond that cache.
#include <algorithm>

#include "schedule/rules/look.h"
#include "schedule/rules/product_tile.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {
struct Stages {
  BlockRV padded, forward, product, back;  // padded: undefined where there are no margins
  // Of the tile of a result, along the axes of `back`.
  size_t y = 0, x = 0;
  int64_t side = 1;
  // Of the product: how many transformed tiles there are, and its sizes.
  int64_t places = 1, images = 1, rows = 1, columns = 1, inputs = 1, outputs = 1;
  // Channels that lie next to each other in what tiles are cut from, and columns of the weights.
  int64_t block = 1, panel = 1;
  double work = 0;
};
/// By what an iterator is divided where the products are read, 1 for nothing.
int64_t DividedBy(const BlockLook& look, const Buffer& products, const Var& iter) {
  int64_t by = 1;
  PostOrderVisit(look.block->body, [&](const ObjectRef& node) {
    auto* load = node.as<BufferLoadObj>();
    if (!load || !load->buffer.same_as(products)) return;
    for (const PrimExpr& index : load->indices) {
      auto* div = index.as<FloorDivObj>();
      if (div && div->a.same_as(iter)) by = AsConstInt(div->b).value_or(1);
    }
  });
  return by;
}
/// The sizes of a buffer, empty where they are not known.
std::vector<int64_t> ShapeOf(const Buffer& buffer) {
  std::vector<int64_t> sizes;
  for (const PrimExpr& extent : buffer->shape) {
    auto size = AsConstInt(extent);
    if (!size || *size < 1) return {};
    sizes.push_back(*size);
  }
  return sizes;
}
std::optional<Stages> FindStages(const Schedule& sch, const BlockRV& root) {
  Array<BlockRV> blocks = sch.GetChildBlocks(root);
  if (blocks.size() < 3 || blocks.size() > 4) return std::nullopt;
  auto last = static_cast<int64_t>(blocks.size()) - 1;
  Stages s;
  if (last == 3) s.padded = blocks[0];
  s.forward = blocks[last - 2];
  s.product = blocks[last - 1];
  s.back = blocks[last];
  for (int64_t i = 0; i < last; ++i) {
    Array<BlockRV> readers = sch.GetConsumers(blocks[i]);
    if (readers.size() != 1 || sch.IdOf(readers[0]) != sch.IdOf(blocks[i + 1])) return std::nullopt;
    bool is_product = i == last - 1;
    if (LookAt(sch, blocks[i]).has_reduction != is_product) return std::nullopt;
  }
  BlockLook look = LookAt(sch, s.product), back = LookAt(sch, s.back);
  std::vector<const Access*> factors = FactorsOf(look);
  if (back.has_reduction || !look.simple || factors.size() != 2 || !back.Column())
    return std::nullopt;
  Buffer forward = sch.Get(s.forward)->writes[0]->buffer;
  bool is_first = factors[0]->buffer.same_as(forward);
  std::vector<int64_t> tiles = ShapeOf(forward), products = ShapeOf(look.Store().buffer),
                       weights = ShapeOf(factors[is_first]->buffer);
  size_t rank = tiles.size();
  if (!factors[!is_first]->buffer.same_as(forward) || rank < 4 || products.size() != rank ||
      weights.empty() || !std::equal(tiles.begin(), tiles.end() - 1, products.begin()))
    return std::nullopt;
  std::vector<size_t> divided;
  for (size_t i = 0; i < back.axes.size(); ++i) {
    if (!back.axes[i].iter.defined() || !back.axes[i].size) return std::nullopt;
    int64_t by = DividedBy(back, look.Store().buffer, back.axes[i].iter);
    if (by > 1) divided.push_back(i);
    if (by > 1) s.side = by;
  }
  auto work = look.TotalWork();
  if (divided.size() != 2 || !work) return std::nullopt;
  s.y = divided[0];
  s.x = divided[1];
  s.images = tiles[rank - 4];
  s.rows = tiles[rank - 3];
  s.columns = tiles[rank - 2];
  s.inputs = tiles[rank - 1];
  s.outputs = products[rank - 1];
  for (size_t i = 0; i + 4 < rank; ++i) s.places *= tiles[i];
  s.panel = weights.back();
  s.work = *work;
  BlockLook first = LookAt(sch, s.forward);
  std::vector<const Access*> sources = FactorsOf(first);
  if (sources.empty() || ShapeOf(sources[0]->buffer).empty()) return std::nullopt;
  s.block = ShapeOf(sources[0]->buffer).back();
  return s;
}

/// The innermost loops of a block, as many as its result has dimensions.
Array<LoopRV> OwnLoops(const Schedule& sch, const BlockRV& block) {
  Array<LoopRV> loops = sch.GetLoops(block);
  auto rank = static_cast<std::ptrdiff_t>(sch.Get(block)->iter_vars.size());
  return {loops.end() - rank, loops.end()};
}
/// The loops over tiles in the last stage, and inside of them a tile, unrolled, in vectors.
struct BackLoops {
  Array<LoopRV> images, channels;
  LoopRV rows;
};
BackLoops ScheduleBack(const Schedule& sch, const Stages& s, int64_t rows_together) {
  BlockLook look = LookAt(sch, s.back);
  Buffer products = sch.Get(s.product)->writes[0]->buffer;
  BackLoops loops;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (i == s.y || i == s.x || i == *look.Column()) continue;
    bool is_channel = false;
    PostOrderVisit(look.block->body, [&](const ObjectRef& node) {
      auto* load = node.as<BufferLoadObj>();
      if (!load || !load->buffer.same_as(products)) return;
      is_channel |= UsesVar(load->indices.back(),
                            [&](const VarObj* v) { return v == look.axes[i].iter.get(); });
    });
    (is_channel ? loops.channels : loops.images).push_back(look.axes[i].loop);
  }
  Array<LoopRV> y =
      sch.Split(look.axes[s.y].loop, {std::nullopt, PrimExpr(rows_together), PrimExpr(s.side)});
  Array<LoopRV> x = sch.Split(look.axes[s.x].loop, {std::nullopt, PrimExpr(s.side)});
  loops.rows = y[0];
  Array<LoopRV> order = loops.images;
  order.push_back(y[0]);
  for (const LoopRV& loop : loops.channels) order.push_back(loop);
  for (const LoopRV& loop : {y[1], x[0], y[2], x[1], look.axes[*look.Column()].loop})
    order.push_back(loop);
  sch.Reorder(order);
  sch.Unroll(y[2]);
  sch.Unroll(x[1]);
  sch.Vectorize(order.back());
  return loops;
}
/// The places of a tile unrolled, its channels in vectors; returns the loops around them: images,
/// blocks of channels, rows, columns.
Array<LoopRV> ScheduleForward(const Schedule& sch, const Stages& s) {
  Array<LoopRV> loops = OwnLoops(sch, s.forward);
  auto rank = static_cast<int64_t>(loops.size());
  Array<LoopRV> channels = sch.Split(loops[rank - 1], {std::nullopt, PrimExpr(s.block)});
  Array<LoopRV> around{loops[rank - 4], channels[0], loops[rank - 3], loops[rank - 2]};
  Array<LoopRV> order = around;
  for (int64_t i = 0; i + 4 < rank; ++i) order.push_back(loops[i]);
  order.push_back(channels[1]);
  sch.Reorder(order);
  for (int64_t i = 0; i + 4 < rank; ++i) sch.Unroll(loops[i]);
  sch.Vectorize(channels[1]);
  return around;
}
void FillMargins(const Schedule& sch, const Stages& s, const LoopRV& loop, const Machine& machine) {
  if (!s.padded.defined()) return;
  sch.ComputeAt(s.padded, loop, /*preserve_unit_loops=*/true);
  VectorizeInner(sch, s.padded, machine);
}

// ---- rows of tiles through all stages -----------------------------------------------------------
struct Group {
  int64_t rows = 0;  // of tiles
  int64_t rows_of_tile = 1, columns_of_tile = 1;
  Tile tile;  // of the product: rows_of_tile times columns_of_tile
};
/// The tile of a product of `rows` of tiles: part of a row of them, or several whole ones.
Group TileFor(const Stages& s, int64_t rows, const Machine& machine) {
  Group best;
  for (int64_t together = 1; together <= rows; ++together) {
    if (rows % together != 0) continue;
    Area area{s.columns * together, s.panel};
    area.column_bytes = s.inputs * 4;
    Tile tile = ChooseTile(area, machine->Lanes(32), machine);
    bool is_part = tile.rows <= s.columns && s.columns % tile.rows == 0;
    bool is_whole = tile.rows % s.columns == 0 && rows % (tile.rows / s.columns) == 0;
    if ((!is_part && !is_whole) || tile.score <= best.tile.score) continue;
    best = {rows, is_part ? 1 : tile.rows / s.columns, is_part ? tile.rows : s.columns, tile};
  }
  return best;
}
/// How many rows of tiles go through all stages together; none where all tiles should go through
/// each stage.
std::optional<Group> ChooseGroup(const Stages& s, const Machine& machine) {
  double row = 4.0 * static_cast<double>(s.places * s.columns * (s.inputs + s.outputs));
  double all = row * static_cast<double>(s.images * s.rows);
  double weights = 4.0 * static_cast<double>(s.places * s.inputs * s.outputs);
  double close = static_cast<double>(machine->l2_bytes) / 2;
  double best_score = TileFor(s, s.rows, machine).tile.score;
  for (int64_t rows = s.rows; rows >= 1; --rows) {
    int64_t groups = s.images * s.rows / rows;
    if (s.rows % rows != 0 || row * static_cast<double>(rows) > close) continue;
    if (machine->cores > 1 && Unevenness(groups, machine->cores) > cost::kIdle) continue;
    Group group = TileFor(s, rows, machine);
    if (group.tile.score < cost::kGoodTile * best_score) continue;
    // Weights that the second cache holds are read once by each core, else once for each group.
    int64_t reads = weights <= close ? std::min<int64_t>(groups, machine->cores) : groups;
    bool is_better = weights * static_cast<double>(reads) <= 2 * all + weights;
    return is_better ? std::optional(group) : std::nullopt;
  }
  return std::nullopt;
}
void InGroups(const Schedule& sch, const Stages& s, const Group& group, const Machine& machine) {
  BackLoops back = ScheduleBack(sch, s, group.rows);
  Array<LoopRV> outer = back.images;
  outer.push_back(back.rows);
  LoopRV shared = FuseAll(sch, outer);
  ParallelIfWorth(sch, shared, machine, s.work);
  // The products of a tile are summed up in registers.
  BlockRV store = sch.CacheWrite(s.product, 0, "global");
  sch.SetScope(s.product, 0, "local");
  sch.ComputeAt(store, shared, /*preserve_unit_loops=*/true);
  Array<LoopRV> loops = OwnLoops(sch, store);
  auto rank = static_cast<int64_t>(loops.size());
  Schedule::Factors vectors{std::nullopt, PrimExpr(group.tile.vectors), PrimExpr(group.tile.lanes)};
  auto split = [&](const LoopRV& loop, int64_t factor) {
    return sch.Split(loop, {std::nullopt, PrimExpr(factor)});
  };
  Array<LoopRV> y = split(loops[rank - 3], group.rows_of_tile),
                x = split(loops[rank - 2], group.columns_of_tile),
                c = sch.Split(loops[rank - 1], vectors);
  Array<LoopRV> order(loops.begin(), loops.end() - 3);
  for (const LoopRV& loop : {c[0], y[0], x[0], y[1], x[1], c[1], c[2]}) order.push_back(loop);
  sch.Reorder(order);
  sch.ComputeAt(s.product, x[0], /*preserve_unit_loops=*/true);
  Array<LoopRV> sum = OwnLoops(sch, s.product);
  c = sch.Split(sum[rank - 1], {PrimExpr(group.tile.vectors), PrimExpr(group.tile.lanes)});
  sch.Reorder({sum[rank], sum[rank - 3], sum[rank - 2], c[0], c[1]});
  BlockRV init = sch.DecomposeReduction(s.product, sum[rank]);
  size_t inside = sch.GetLoops(store).size() - 4;
  UnrollTile(sch, {init, store}, inside);
  UnrollTile(sch, {s.product}, sch.GetLoops(s.product).size() - 4);
  sch.ComputeAt(s.forward, shared, /*preserve_unit_loops=*/true);
  FillMargins(sch, s, ScheduleForward(sch, s)[1], machine);
}

// ---- all tiles through each stage ---------------------------------------------------------------
void StageByStage(const Schedule& sch, const Stages& s, const Machine& machine) {
  BackLoops back = ScheduleBack(sch, s, 1);
  Array<LoopRV> outer = back.images;
  outer.push_back(back.rows);
  for (const LoopRV& loop : back.channels) outer.push_back(loop);
  ParallelIfWorth(sch, FuseToShare(sch, outer, machine), machine, s.work);
  Array<LoopRV> tiles = ScheduleForward(sch, s);
  int64_t blocks = s.images * s.inputs / s.block;
  bool is_even = Unevenness(blocks, machine->cores) <= cost::kIdle;
  LoopRV shared = FuseAll(sch, is_even ? Array<LoopRV>{tiles[0], tiles[1]}
                                       : Array<LoopRV>{tiles[0], tiles[1], tiles[2]});
  ParallelIfWorth(sch, shared, machine, s.work);
  FillMargins(sch, s, shared, machine);
  sch.CacheWrite(s.product, 0, "global");  // tiles come from registers as they are
  ScheduleReduction(sch, s.product, machine);
}
}  // namespace

bool ScheduleWinograd(const Schedule& sch, BlockRV root, const Machine& machine) {
  if (!machine->takes_vectors) return false;
  InlineCheap(sch, root);
  auto stages = FindStages(sch, root);
  if (!stages) return false;
  auto group = ChooseGroup(*stages, machine);
  if (group && Attempt(sch, [&] {
        InGroups(sch, *stages, *group, machine);
        return true;
      }))
    return true;
  StageByStage(sch, *stages, machine);
  return true;
}
}  // namespace tvm::tir
