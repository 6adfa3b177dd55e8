// SPDX-License-Identifier: Apache-2.0
// Choices for blocks without reuse of data: elementwise programs, copies, transposes, and
// reductions whose inputs are read once.
//
// Elementwise, all loops as one:            or in tiles, in either order:
//   for p in parallel(jobs):                  for i0 in parallel(…): for j0:
//     for s: for u in unroll(U):                for i1 in unroll(I): for j1 in vectorized(J): B[…]
//       for v in vectorized(V): B[…]          what gathers in tiles of tiles as well
// Reductions, row by row:                   or a few columns at a time:
//   for p in parallel(…): for s:              for p in parallel(…): for j0:
//     for k: B[…] += …                          for k: for j1 in vectorized(J): B[…] += …
// some rows at a time:
//   for p in parallel(…): for k: for s in unroll(S): B[…] += …
// or many columns, a few lines at a time:
//   for p in parallel(…): for k0: for j0: for k1 in unroll(K): for j1 in vectorized(J): B[…] += …
#include <numeric>

#include "tune/rule/blocks.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tune {
namespace {
using namespace tir;

/// Sizes for the parts of a loop of `extent` whose products divide it, so that no bounds need
/// testing.
class Divisors {
 public:
  explicit Divisors(int64_t extent) : rest_(extent) {}
  /// Those of `wanted` that still divide; {1} when none does. The largest is taken out.
  Array<int64_t> Take(const std::vector<int64_t>& wanted) {
    Array<int64_t> result;
    int64_t most = 1;
    for (int64_t w : wanted) {
      if (w < 1 || rest_ % w != 0) continue;
      result.push_back(w);
      most = std::lcm(most, w);
    }
    if (result.empty()) result.push_back(1);
    if (rest_ % most == 0) rest_ /= most;
    return result;
  }

 private:
  int64_t rest_;
};

constexpr int64_t kWholeVectors = 4;  // that a part without a rest is a multiple of

struct SpatialTilingObj : ScheduleRuleObj {
  int64_t max_vectorize_extent = 64, max_unroll = 8, max_jobs_per_core = 16;
  Optional<Target> target;
  static void Fields(auto&& def) {
    def("max_vectorize_extent", &SpatialTilingObj::max_vectorize_extent, Default(64));
    def("max_unroll", &SpatialTilingObj::max_unroll, Default(8));
    def("max_jobs_per_core", &SpatialTilingObj::max_jobs_per_core, Default(16));
  }
  void Initialize(const TuneContext& context) final { target = context->target; }

  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    BlockView view(sch, block);
    if (view.is_root || view.has_blocks || view.axes.empty() || !view.HasConstantExtents() ||
        IsScheduled(view) || !view.IsAlone(sch) || !target.has_value())
      return {sch};
    if (view.HasMixedLoop()) return {sch};
    using Variant = void (SpatialTilingObj::*)(const Schedule&, const BlockRV&, const BlockView&);
    std::vector<Variant> variants;
    if (view.has_reduction) {
      constexpr double kLong = 64, kShared = 1024;  // reductions worth a stream, several streams
      double lines = view.Iterations(LoopUse::kReduce);
      bool columns = ReadsColumns(view);
      variants = {&SpatialTilingObj::Rows};
      variants.push_back(columns ? &SpatialTilingObj::Columns : &SpatialTilingObj::RowsTogether);
      if (columns && lines >= kLong) variants.push_back(&SpatialTilingObj::Streamed);
      if (columns && lines >= kShared && Machine::Of(target.value())->cores > 1)
        variants.push_back(&SpatialTilingObj::Shared);
    } else if (view.is_spatial) {
      variants = {&SpatialTilingObj::Fused};
      if (*view.axes.back().size % Lanes(view) != 0 && !Gathers(view))
        variants.push_back(&SpatialTilingObj::Ragged);
      if (view.axes.size() > 1) {
        variants.insert(variants.end(),
                        {&SpatialTilingObj::Tiled, &SpatialTilingObj::TiledSwapped});
        if (Gathers(view)) {
          variants.push_back(&SpatialTilingObj::Blocked);
          if (view.block->reads.size() == 1) variants.push_back(&SpatialTilingObj::Staged);
        }
      }
    } else {
      return {sch};
    }
    Array<Schedule> result;
    for (Variant variant : variants) {
      Schedule copy = sch.Copy();
      if (Try([&] { (this->*variant)(copy, block, view); })) result.push_back(copy);
    }
    // Or RandomComputeLocation takes it to where it is used.
    if (view.is_spatial && sch.GetConsumers(block).size() == 1) result.push_back(sch);
    return result.empty() ? Array<Schedule>{sch} : result;
  }

 private:
  int64_t Lanes(const BlockView& f) const {
    int bits = 32;
    if (!f.block->writes.empty()) bits = std::max(8, f.block->writes[0]->buffer->dtype.bits());
    return Machine::Of(target.value())->vector_bits / bits;
  }
  /// Whether some element read moves with the last loop, but not to its neighbour in memory.
  static bool Gathers(const BlockView& f) {
    return !f.StayInRow(f.block->reads, f.axes.size() - 1);
  }
  /// Whether what a reduction reads for neighbouring results lies side by side.
  static bool ReadsColumns(const BlockView& f) {
    for (size_t i = f.axes.size(); i-- > 0;) {
      if (f.axes[i].use == LoopUse::kSpatial) return f.StayInRow(f.block->reads, i);
    }
    return false;
  }
  std::vector<int64_t> Widths(const BlockView& f) const {
    std::vector<int64_t> widths;
    // Every lane of a gather is an instruction.
    int64_t most = Gathers(f) ? Lanes(f) : std::min(Lanes(f) * 4, max_vectorize_extent);
    for (int64_t w = std::max<int64_t>(Lanes(f) / 2, 2); w <= most; w *= 2) widths.push_back(w);
    return widths;
  }
  std::vector<int64_t> Unrolls() const {
    std::vector<int64_t> result;
    for (int64_t u = 1; u <= max_unroll; u *= 2) result.push_back(u);
    return result;
  }
  std::vector<int64_t> Jobs() const {
    std::vector<int64_t> result = {1};
    int64_t cores = Machine::Of(target.value())->cores;
    if (cores > 1) {
      for (int64_t j = cores; j <= cores * max_jobs_per_core; j *= 2) result.push_back(j);
    }
    return result;
  }
  /// Stores that bypass the caches help where the result is larger than these.
  void Streaming(const Schedule& sch, const BlockView& f, const LoopRV& loop) const {
    double bytes = f.Iterations(LoopUse::kSpatial) * f.block->writes[0]->buffer->dtype.bits() / 8;
    if (bytes < (1 << 20)) return;
    sch.Annotate(loop, "nontemporal_store", Choose(sch, {0, 1}));
  }
  static Array<LoopRV> WithUse(const Schedule& sch, const BlockRV& block, const BlockView& f,
                               LoopUse use) {
    Array<LoopRV> all = sch.GetLoops(block), result;
    for (size_t i = 0; i < all.size(); ++i)
      if (f.axes[i].use == use || (use == LoopUse::kSpatial && f.axes[i].use == LoopUse::kUnused))
        result.push_back(all[i]);
    return result;
  }

  void Fused(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    auto n = static_cast<int64_t>(f.Iterations(LoopUse::kSpatial));
    bool is_odd = n % (Lanes(f) * kWholeVectors) != 0 && !Gathers(f);
    LoopRV fused = is_odd ? Evened(sch, block, f, &n) : sch.Fuse(sch.GetLoops(block));
    Divisors divisors(n);
    Array<int64_t> widths = divisors.Take(Widths(f)), jobs = divisors.Take(Jobs());
    Array<int64_t> unrolls = divisors.Take(Unrolls());
    Array<LoopRV> parts = sch.Split(
        fused, {Choose(sch, jobs), std::nullopt, Choose(sch, unrolls), Choose(sch, widths)});
    sch.Unroll(parts[2]);
    sch.Vectorize(parts[3]);
    Streaming(sch, f, parts[1]);
    // Threads share all iterations where no number of jobs divides them.
    bool shared = jobs.size() == 1 && Machine::Of(target.value())->cores > 1;
    sch.Parallel(shared ? sch.Fuse({parts[0], parts[1]}) : parts[0]);
  }
  /// Most iterations of a block, as many as have many divisors. The rest is in vectors as far as it
  /// goes.
  LoopRV Evened(const Schedule& sch, const BlockRV& block, const BlockView& f, int64_t* n) const {
    constexpr int64_t kSmallRest = 64;  // of so many parts
    int64_t lanes = Lanes(f), unit = lanes;
    while (unit * 2 * kSmallRest <= *n) unit *= 2;
    int64_t even = *n / unit * unit, vectors = (*n - even) / lanes * lanes;
    if (even == 0) return sch.Fuse(sch.GetLoops(block));
    // One iterator: parts of a loop over several would no longer be seen to be independent.
    Array<Var> iters;
    PrimExpr place;
    for (const IterVar& iter : f.block->iter_vars) {
      const Range& dom = iter->dom.value();
      iters.push_back(iter->var);
      place = place.defined() ? place * dom->extent + iter->var : PrimExpr(iter->var);
    }
    sch.TransformBlockLayout(block, IndexMap(iters, {place}, {}));
    std::vector<Optional<PrimExpr>> sizes = {PrimExpr(even)};
    if (vectors > 0) sizes.push_back(PrimExpr(vectors));
    if (even + vectors < *n) sizes.push_back(std::nullopt);
    Array<LoopRV> parts = sch.LoopPartition(sch.GetLoops(block)[0], sizes);
    if (vectors > 0) sch.Vectorize(sch.Split(parts[1], {std::nullopt, PrimExpr(lanes)})[1]);
    if (even + vectors < *n) sch.Vectorize(parts.back());
    *n = even;
    return parts[0];
  }
  /// No vector divides the columns: most of them in whole vectors, and the rest in one of its own.
  void Ragged(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    Array<LoopRV> loops = sch.GetLoops(block);
    int64_t columns = *f.axes.back().size, whole = Lanes(f) * kWholeVectors;
    while (whole > Lanes(f) && whole > columns) whole /= 2;
    int64_t even = columns / whole * whole;
    if (even == 0) TVM_FFI_THROW(ValueError) << "no vectors";
    // The parts lie in a block that is no longer known to be independent of the loops around it.
    Array<LoopRV> rows(loops.begin(), loops.end() - 1);
    if (!rows.empty()) sch.Parallel(rows.size() > 1 ? sch.Fuse(rows) : rows[0]);
    Array<LoopRV> parts = sch.LoopPartition(loops.back(), {PrimExpr(even), std::nullopt});
    Array<LoopRV> vectors =
        sch.Split(parts[0], {std::nullopt, Choose(sch, Divisors(even).Take(Widths(f)))});
    sch.Vectorize(vectors[1]);
    sch.Vectorize(parts[1]);
    if (rows.empty()) sch.Parallel(vectors[0]);
  }
  void Tiled(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    Tile(sch, block, f, false);
  }
  void TiledSwapped(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    Tile(sch, block, f, true);
  }
  void Tile(const Schedule& sch, const BlockRV& block, const BlockView& f, bool swapped) {
    Array<LoopRV> loops = sch.GetLoops(block);
    size_t n = loops.size();
    int64_t rows = *f.axes[n - 2].size, columns = *f.axes[n - 1].size;
    Var height = Choose(sch, Divisors(rows).Take(UpTo(16)));
    Var width = Choose(sch, Divisors(columns).Take(Widths(f)));
    Array<LoopRV> i = sch.Split(loops[n - 2], {std::nullopt, height});
    Array<LoopRV> j = sch.Split(loops[n - 1], {std::nullopt, width});
    Array<LoopRV> order(loops.begin(), loops.end() - 2);
    LoopRV outer = swapped ? j[0] : i[0], inner = swapped ? i[0] : j[0];
    for (const LoopRV& loop : {outer, inner, i[1], j[1]}) order.push_back(loop);
    sch.Reorder(order);
    Array<LoopRV> together(order.begin(), order.end() - 3);
    sch.Parallel(together.size() > 1 ? sch.Fuse(together) : together[0]);
    sch.Unroll(i[1]);
    sch.Vectorize(j[1]);
    Streaming(sch, f, inner);
  }
  /// Tiles of tiles, for what is read across its rows: lines of the caches that were fetched for a
  /// tile serve its neighbours before they are gone.
  void Blocked(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    TileTwice(sch, block, f);
  }
  /// Each tile is read along its rows into a buffer first, and gathered from there: rows that are a
  /// power of two apart would throw each other out of the cache.
  void Staged(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    LoopRV tile = TileTwice(sch, block, f);
    BlockRV copy = sch.CacheRead(block, 0, "local");
    sch.ComputeAt(copy, tile, /*preserve_unit_loops=*/true);
    Array<LoopRV> loops = sch.GetLoops(copy);
    sch.Vectorize(loops.back());
    sch.Unroll(loops[loops.size() - 2]);
  }
  /// The loop over the inner tiles of an outer one.
  LoopRV TileTwice(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    Array<LoopRV> loops = sch.GetLoops(block), order(loops.begin(), loops.end() - 2);
    size_t n = loops.size();
    Divisors rows(*f.axes[n - 2].size), columns(*f.axes[n - 1].size);
    Var height = Choose(sch, rows.Take({2, 4, 5, 7, 8, 16}));
    Var width = Choose(sch, columns.Take(Widths(f)));
    Var down = Choose(sch, rows.Take(UpTo(32))), across = Choose(sch, columns.Take(UpTo(32)));
    Array<LoopRV> i = sch.Split(loops[n - 2], {std::nullopt, down, height});
    Array<LoopRV> j = sch.Split(loops[n - 1], {std::nullopt, across, width});
    for (size_t level = 0; level < 3; ++level) {
      order.push_back(i[level]);
      order.push_back(j[level]);
    }
    sch.Reorder(order);
    sch.Parallel(sch.Fuse(Array<LoopRV>(order.begin(), order.end() - 4)));
    sch.Unroll(i[2]);
    sch.Vectorize(j[2]);
    Streaming(sch, f, j[1]);
    return j[1];
  }
  static std::vector<int64_t> UpTo(int64_t most) {
    std::vector<int64_t> all(most);
    std::iota(all.begin(), all.end(), 1);
    return all;
  }
  /// The reduction innermost: its order is free, so the code generator vectorises it.
  void Rows(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    Array<LoopRV> spatial = WithUse(sch, block, f, LoopUse::kSpatial);
    Array<LoopRV> reduce = WithUse(sch, block, f, LoopUse::kReduce);
    Array<LoopRV> order = spatial;
    for (const LoopRV& r : reduce) order.push_back(r);
    sch.Reorder(order);
    if (!spatial.empty()) {
      LoopRV rows = spatial.size() > 1 ? sch.Fuse(spatial) : spatial[0];
      Divisors divisors(static_cast<int64_t>(f.Iterations(LoopUse::kSpatial)));
      Array<LoopRV> parts = sch.Split(rows, {Choose(sch, divisors.Take(Jobs())), std::nullopt});
      sch.Parallel(parts[0]);
      rows = parts[1];
    }
    if (reduce.empty()) return;
    LoopRV all = reduce.size() > 1 ? sch.Fuse(reduce) : reduce[0];
    Divisors divisors(static_cast<int64_t>(f.Iterations(LoopUse::kReduce)));
    Array<LoopRV> parts = sch.Split(all, {std::nullopt, Choose(sch, divisors.Take(UpTo(32)))});
    sch.Unroll(parts[1]);
    sch.DecomposeReduction(block, parts[0]);
  }
  /// Some rows side by side: chains of operations that do not wait for each other.
  void RowsTogether(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    Array<LoopRV> spatial = WithUse(sch, block, f, LoopUse::kSpatial);
    Array<LoopRV> reduce = WithUse(sch, block, f, LoopUse::kReduce);
    if (spatial.empty() || reduce.empty()) {
      TVM_FFI_THROW(ValueError) << "no rows";
    }
    Array<LoopRV> order = spatial;
    for (const LoopRV& r : reduce) order.push_back(r);
    sch.Reorder(order);
    LoopRV rows = spatial.size() > 1 ? sch.Fuse(spatial) : spatial[0];
    LoopRV all = reduce.size() > 1 ? sch.Fuse(reduce) : reduce[0];
    Divisors divisors(static_cast<int64_t>(f.Iterations(LoopUse::kSpatial)));
    Array<LoopRV> parts = sch.Split(rows, {std::nullopt, Choose(sch, divisors.Take({2, 3, 4, 8}))});
    sch.Reorder({all, parts[1]});
    sch.Parallel(parts[0]);
    BlockRV init = sch.DecomposeReduction(block, all);
    for (const BlockRV& b : {init, block}) sch.Unroll(sch.GetLoops(b).back());
  }
  /// Neighbouring results side by side in one vector, all of the reduction for them.
  void Columns(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    Array<LoopRV> spatial = WithUse(sch, block, f, LoopUse::kSpatial);
    Array<LoopRV> reduce = WithUse(sch, block, f, LoopUse::kReduce);
    if (spatial.empty() || reduce.empty()) {
      TVM_FFI_THROW(ValueError) << "no columns";
    }
    Divisors divisors(LastExtent(f, LoopUse::kSpatial));
    Array<LoopRV> j =
        sch.Split(spatial.back(), {std::nullopt, Choose(sch, divisors.Take({1, 2, 4})),
                                   Choose(sch, divisors.Take(Widths(f)))});
    Array<LoopRV> outer(spatial.begin(), spatial.end() - 1);
    outer.push_back(j[0]);
    Array<LoopRV> order = outer;
    for (const LoopRV& r : reduce) order.push_back(r);
    order.push_back(j[1]);
    order.push_back(j[2]);
    sch.Reorder(order);
    LoopRV fused = outer.size() > 1 ? sch.Fuse(outer) : outer[0];
    sch.Parallel(fused);
    BlockRV init = sch.DecomposeReduction(block, reduce[0]);
    for (const BlockRV& b : {init, block}) {
      Array<LoopRV> loops = sch.GetLoops(b);
      sch.Vectorize(loops.back());
      sch.Unroll(loops[loops.size() - 2]);
    }
  }
  /// A stretch of results stays in the cache while all that is summed streams by, some lines at a
  /// time.
  void Streamed(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    Array<LoopRV> reduce = WithUse(sch, block, f, LoopUse::kReduce);
    if (reduce.empty()) TVM_FFI_THROW(ValueError) << "no lines";
    Stream(sch, block, WithUse(sch, block, f, LoopUse::kSpatial), sch.Fuse(reduce), f);
  }
  /// Threads share the lines: each streams its own by, and their results are summed.
  void Shared(const Schedule& sch, const BlockRV& block, const BlockView& f) {
    Array<LoopRV> reduce = WithUse(sch, block, f, LoopUse::kReduce);
    if (reduce.empty()) TVM_FFI_THROW(ValueError) << "no lines";
    Array<LoopRV> spatial = WithUse(sch, block, f, LoopUse::kSpatial);
    Array<int64_t> jobs =
        Divisors(static_cast<int64_t>(f.Iterations(LoopUse::kReduce))).Take(Jobs());
    Array<LoopRV> lines = sch.Split(sch.Fuse(reduce), {Choose(sch, jobs), std::nullopt});
    BlockRV partial = sch.RFactor(lines[0], 0);
    Array<LoopRV> loops = sch.GetLoops(partial), own;
    own.push_back(loops[spatial.size()]);
    for (size_t i = 0; i < spatial.size(); ++i) own.push_back(loops[static_cast<int64_t>(i)]);
    Stream(sch, partial, own, loops.back(), f);
    Array<LoopRV> sum = sch.GetLoops(block);
    Array<LoopRV> j = sch.Split(sum[static_cast<int64_t>(spatial.size()) - 1],
                                {std::nullopt, PrimExpr(Lanes(f))});
    sch.Reorder({sum.back(), j[1]});
    sch.Vectorize(sch.GetLoops(sch.DecomposeReduction(block, sum.back())).back());
    sch.Vectorize(j[1]);
  }
  void Stream(const Schedule& sch, const BlockRV& block, const Array<LoopRV>& spatial,
              const LoopRV& reduce, const BlockView& f) {
    if (spatial.empty()) TVM_FFI_THROW(ValueError) << "no columns";
    Divisors columns(LastExtent(f, LoopUse::kSpatial));
    Divisors lines(ConstantExtent(sch.Get(reduce).get()));
    Var width = Choose(sch, columns.Take(Widths(f)));
    Var many = Choose(sch, columns.Take({4, 8, 16, 32, 64}));
    Array<LoopRV> j = sch.Split(spatial.back(), {std::nullopt, many, width});
    Array<LoopRV> k = sch.Split(reduce, {std::nullopt, Choose(sch, lines.Take({1, 2, 4, 8}))});
    Array<LoopRV> outer(spatial.begin(), spatial.end() - 1);
    outer.push_back(j[0]);
    Array<LoopRV> order = outer;
    for (const LoopRV& loop : {k[0], j[1], k[1], j[2]}) order.push_back(loop);
    sch.Reorder(order);
    sch.Parallel(outer.size() > 1 ? sch.Fuse(outer) : outer[0]);
    sch.Vectorize(sch.GetLoops(sch.DecomposeReduction(block, k[0])).back());
    sch.Vectorize(j[2]);
    sch.Unroll(k[1]);
  }
  static int64_t LastExtent(const BlockView& f, LoopUse use) {
    int64_t extent = 1;
    for (size_t i = 0; i < f.axes.size(); ++i)
      if (f.axes[i].use == use) extent = *f.axes[i].size;
    return extent;
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.SpatialTiling", SpatialTilingObj,
                                    ScheduleRuleObj);
};
TVM_REGISTER() {
  RegisterNode<SpatialTilingObj>(
      "Choices for blocks that read each element once: how much a thread does, vector width, "
      "unrolling, stores that bypass the caches, loop order.");
}
}  // namespace
}  // namespace tvm::tune
