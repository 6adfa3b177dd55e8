// SPDX-License-Identifier: Apache-2.0
// Tiles of several levels for blocks that read elements again and again: matrix products,
// convolutions.
//
// The structure names the loops from the outside: "SSRSRS" splits every spatial loop into four and
// every reduction loop into two parts and nests them in that order,
//   for i0, j0: for i1, j1: for k0: for i2, j2: for k1: for i3, j3: C[…] += A[…] * B[…]
// With reuse_write the result is collected in a buffer of its own and written out below the level
// given; with reuse_read inputs are copied there.
#include <tuple>

#include "tune/postproc/tensorize.h"
#include "tune/rule/blocks.h"
#include "tvm/expr/op.h"

namespace tvm::tune {
namespace {
using namespace tir;

/// {"req": "no" | "may" | "must", "levels": [1, 2], "scope": "global"}, or a tuple of the three.
struct Reuse {
  std::string req = "no";
  Array<int64_t> levels;
  String scope;
  static Reuse From(const Any& config, const char* what) {
    Reuse r;
    if (config == nullptr) return r;
    Array<Any> parts;
    if (auto named = config.as<Map<String, Any>>()) {
      for (const char* name : {"req", "levels", "scope"})
        if (named->count(name)) parts.push_back((*named)[name]);
    } else if (auto list = config.as<Array<Any>>()) {
      parts = *list;
    }
    if (parts.size() != 3) {
      TVM_FFI_THROW(ValueError) << what << ": expected a ReuseType, or req, levels and scope";
    }
    r.req = std::string(parts[0].cast<String>());
    r.levels = parts[1].cast<Array<int64_t>>();
    r.scope = parts[2].cast<String>();
    if (r.req != "no" && r.req != "may" && r.req != "must") {
      TVM_FFI_THROW(ValueError) << what << ": expected req 'no', 'may' or 'must', got '" << r.req
                                << "'";
    }
    return r;
  }
};

/// A schedule in the making.
struct Tiling {
  Schedule sch;
  BlockRV block;
  std::vector<Array<LoopRV>> levels;  // by place in the structure
  bool has_write_cache = false;
  BlockRV write_cache;
};

struct MultiLevelTilingObj : ScheduleRuleObj {
  String structure;
  Optional<Array<String>> tile_binds;
  Optional<int64_t> max_innermost_factor;
  Optional<Array<int64_t>> vector_load_lens;
  Any reuse_read, reuse_write;  // Reuse
  Optional<Function> filter_fn;
  Optional<Target> target;
  static constexpr uint32_t _type_child_slots = 4;
  static void TilingFields(auto&& def) {
    def("structure", &MultiLevelTilingObj::structure);
    def("tile_binds", &MultiLevelTilingObj::tile_binds, Default(nullptr));
    def("max_innermost_factor", &MultiLevelTilingObj::max_innermost_factor, Default(nullptr));
    def("vector_load_lens", &MultiLevelTilingObj::vector_load_lens, Default(nullptr));
    def("reuse_read", &MultiLevelTilingObj::reuse_read, Default(nullptr));
    def("reuse_write", &MultiLevelTilingObj::reuse_write, Default(nullptr));
  }
  static void Fields(auto&& def) {
    TilingFields(def);
    def("filter_fn", &MultiLevelTilingObj::filter_fn, Default(nullptr));
  }
  void Init() {
    for (char c : View(structure)) {
      if (c != 'S' && c != 'R') {
        TVM_FFI_THROW(ValueError) << "MultiLevelTiling: expected a structure of 'S' and 'R', got '"
                                  << structure << "'";
      }
    }
    Reuse::From(reuse_read, "MultiLevelTiling.reuse_read");
    Reuse::From(reuse_write, "MultiLevelTiling.reuse_write");
  }
  void Initialize(const TuneContext& context) override { target = context->target; }

  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) override {
    if (!Fits(sch, block)) return {sch};
    return Tile(sch, block);
  }

 protected:
  bool Fits(const Schedule& sch, const BlockRV& block) {
    BlockView view(sch, block);
    if (view.is_root || view.has_blocks || view.axes.empty() || !view.HasConstantExtents() ||
        IsScheduled(view) || !view.IsAlone(sch))
      return false;
    if (view.HasMixedLoop()) return false;
    if (filter_fn.has_value()) return filter_fn.value()(sch, block).cast<bool>();
    return view.HasReuse();
  }
  Array<Schedule> Tile(const Schedule& sch, const BlockRV& block) {
    Array<Schedule> result;
    Reuse write = Reuse::From(reuse_write, "reuse_write");
    auto add = [&](int64_t level) {
      Tiling t{sch.Copy(), block, {}, false, {}};
      if (Try([&] { Build(&t, level, write); })) result.push_back(t.sch);
    };
    if (write.req != "must") add(-1);
    if (write.req != "no") {
      for (int64_t level : write.levels) add(level);
    }
    return result.empty() ? Array<Schedule>{sch} : result;
  }
  void Build(Tiling* t, int64_t write_level, const Reuse& write) {
    if (write_level >= 0) AddWriteCache(t, write);
    TileLoops(t);
    if (write_level >= 0) {
      const Array<LoopRV>& at = t->levels.at(static_cast<size_t>(write_level) - 1);
      t->sch.ReverseComputeAt(t->write_cache, at.back(), true);
    }
    AddReadReuse(t);
    t->sch.Annotate(t->block, "meta_schedule.tiling_structure", structure);
    if (!tile_binds.has_value() || !target.has_value()) return;
    const Machine& machine = Machine::Of(target.value());
    t->sch.Annotate(t->block, "meta_schedule.thread_extent_low_inclusive", machine->warp);
    t->sch.Annotate(t->block, "meta_schedule.thread_extent_high_inclusive", machine->max_threads);
  }
  /// The consumer that writes the result out, if there is a suitable one; else a copy.
  void AddWriteCache(Tiling* t, const Reuse& write) {
    Array<BlockRV> consumers = t->sch.GetConsumers(t->block);
    if (consumers.size() == 1) {
      BlockView consumer(t->sch, consumers[0]);
      bool same = consumer.is_spatial && consumer.IsAlone(t->sch) && !IsScheduled(consumer);
      if (same && t->sch.GetProducers(consumers[0]).size() >= 1) {
        t->write_cache = consumers[0];
        t->has_write_cache = true;
        return;
      }
    }
    t->write_cache = t->sch.CacheWrite(t->block, 0, write.scope);
    t->has_write_cache = true;
  }
  void TileLoops(Tiling* t) {
    const Schedule& sch = t->sch;
    BlockView view(sch, t->block);
    Array<LoopRV> loops = sch.GetLoops(t->block);
    std::string_view s = View(structure);
    std::vector<size_t> spatial, reduce;
    for (size_t i = 0; i < s.size(); ++i) (s[i] == 'S' ? spatial : reduce).push_back(i);
    t->levels.assign(s.size(), {});
    for (size_t i = 0; i < loops.size(); ++i) {
      bool is_reduce = view.axes[i].use == LoopUse::kReduce;
      const auto& places = is_reduce ? reduce : spatial;
      if (places.empty()) continue;
      if (places.size() == 1) {
        t->levels[places[0]].push_back(loops[i]);
        continue;
      }
      Array<LoopRV> split = SplitLoop(sch, view, i, loops[i], places.size());
      for (size_t p = 0; p < places.size(); ++p) t->levels[places[p]].push_back(split[p]);
    }
    Array<LoopRV> order;
    for (const auto& level : t->levels)
      for (const LoopRV& loop : level) order.push_back(loop);
    sch.Reorder(order);
    if (!tile_binds.has_value()) return;
    size_t count = std::min(tile_binds.value().size(), spatial.size());
    for (size_t i = 0; i < count; ++i) {
      LoopRV fused = sch.Fuse(t->levels[spatial[i]]);
      sch.Bind(fused, tile_binds.value()[i]);
      t->levels[spatial[i]] = {fused};
    }
  }
  /// A loop of the block in `n` parts of sampled lengths.
  virtual Array<LoopRV> SplitLoop(const Schedule& sch, const BlockView&, size_t, const LoopRV& loop,
                                  size_t n) {
    return SplitEvenly(sch, loop, n);
  }
  Array<LoopRV> SplitEvenly(const Schedule& sch, const LoopRV& loop, size_t n) {
    auto parts =
        sch.SamplePerfectTile(loop, static_cast<int64_t>(n), max_innermost_factor.value_or(64));
    Schedule::Factors factors;
    for (const Var& p : parts) factors.push_back(PrimExpr(p));
    return sch.Split(loop, factors);
  }
  /// Threads share a copy between memories, each of them vectors of a sampled length:
  /// RewriteCooperativeFetch does it.
  void Cooperate(const Schedule& sch, const BlockRV& copy) {
    if (!vector_load_lens.has_value()) return;
    Array<LoopRV> loops = sch.GetLoops(copy);
    size_t dims = sch.Get(copy)->writes[0]->buffer->shape.size();
    sch.Fuse(Array<LoopRV>(loops.end() - std::min(dims, loops.size()), loops.end()));
    auto lens = vector_load_lens.value();
    Array<double> even(lens.size(), 1.0 / static_cast<double>(lens.size()));
    sch.Annotate(copy, "meta_schedule.cooperative_fetch", sch.SampleCategorical(lens, even));
  }
  void AddReadReuse(Tiling* t) {
    Reuse read = Reuse::From(reuse_read, "reuse_read");
    if (read.req == "no") return;
    const Schedule& sch = t->sch;
    size_t reads = sch.Get(t->block)->reads.size();
    for (int64_t level : read.levels) {
      const LoopRV& at = t->levels.at(static_cast<size_t>(level) - 1).back();
      for (size_t i = 0; i < reads; ++i) {
        BlockRV copy = sch.CacheRead(t->block, static_cast<int64_t>(i), read.scope, {t->block});
        sch.ComputeAt(copy, at, true);
        Cooperate(sch, copy);
      }
    }
  }
  /// Splits the last loops by the extents of the intrinsic's loops and makes a block of the inner
  /// ones.
  static Optional<BlockRV> TileForIntrin(const Schedule& sch, const BlockRV& block,
                                         const String& intrin) {
    static const Function extents_of = Function::GetGlobalRequired("meta_schedule._intrin_extents");
    auto extents = extents_of(intrin).cast<Array<int64_t>>();
    Array<LoopRV> loops = sch.GetLoops(block), inner, outer;
    if (loops.size() < extents.size()) return std::nullopt;
    size_t first = loops.size() - extents.size();
    for (size_t i = 0; i < extents.size(); ++i) {
      int64_t extent = ConstantExtent(sch.Get(loops[first + i]).get());
      if (extent % extents[i] != 0) return std::nullopt;
      auto parts = sch.Split(loops[first + i], {std::nullopt, PrimExpr(IntImm::Int32(extents[i]))});
      outer.push_back(parts[0]);
      inner.push_back(parts[1]);
    }
    Array<LoopRV> order = outer;
    for (const LoopRV& l : inner) order.push_back(l);
    sch.Reorder(order);
    return sch.Blockize(inner[0]);
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO("meta_schedule.MultiLevelTiling", MultiLevelTilingObj,
                              ScheduleRuleObj);
};

/// The innermost tiles are those of a tensor intrinsic.
struct MultiLevelTilingWithIntrinObj : MultiLevelTilingObj {
  String intrin_name;
  static void Fields(auto&& def) {
    def("intrin_name", &MultiLevelTilingWithIntrinObj::intrin_name);
    TilingFields(def);
  }
  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    if (!Fits(sch, block)) return {sch};
    Schedule copy = sch.Copy();
    Optional<BlockRV> tile;
    if (!Try([&] { tile = TileForIntrin(copy, block, intrin_name); }) || !tile.has_value())
      return {sch};
    // What has loops of the right extents may still compute something else.
    Schedule attempt = copy.Copy();
    if (!Try([&] { attempt.Tensorize(tile.value(), intrin_name); })) return {sch};
    copy.Annotate(tile.value(), kAutoTensorize, intrin_name);
    return MultiLevelTilingObj::Tile(copy, tile.value());
  }

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.MultiLevelTilingWithIntrin",
                                    MultiLevelTilingWithIntrinObj, MultiLevelTilingObj);
};

/// The innermost tiles are those of a matrix unit with registers of its own: fragments of the
/// operands are loaded, multiplied into an accumulator, and that is stored, each by an intrinsic.
struct MultiLevelTilingTensorCoreObj : MultiLevelTilingObj {
  Array<Map<String, String>> intrin_groups;
  bool use_software_pipeline = false;
  static void Fields(auto&& def) {
    def("intrin_groups", &MultiLevelTilingTensorCoreObj::intrin_groups);
    TilingFields(def);
    def("use_software_pipeline", &MultiLevelTilingTensorCoreObj::use_software_pipeline,
        Default(false));
  }
  void Init() {
    MultiLevelTilingObj::Init();
    for (const auto& group : intrin_groups) {
      for (const char* part : {"init", "load_a", "load_b", "compute", "store"}) {
        if (group.count(part)) continue;
        TVM_FFI_THROW(ValueError) << "MultiLevelTilingTensorCore.intrin_groups: expected the names "
                                  << "of init, load_a, load_b, compute and store, got none for '"
                                  << part << "'";
      }
    }
    if (View(structure).find("SR") == std::string_view::npos) {
      TVM_FFI_THROW(ValueError) << "MultiLevelTilingTensorCore: expected a structure with a "
                                << "reduction below spatial loops, got '" << structure << "'";
    }
  }
  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    if (!Fits(sch, block)) return {sch};
    Reuse write = Reuse::From(reuse_write, "reuse_write");
    Array<int64_t> levels;
    if (write.req != "must") levels.push_back(-1);
    if (write.req != "no") levels.insert(levels.end(), write.levels.begin(), write.levels.end());
    Array<Schedule> result;
    for (const auto& group : intrin_groups) {
      for (int64_t level : levels) {
        Tiling t{sch.Copy(), block, {}, false, {}};
        if (Try([&] { BuildUnit(&t, group, level, write); }) && TensorizeAnnotated(t.sch.Copy()))
          result.push_back(t.sch);
      }
    }
    return result.empty() ? Array<Schedule>{sch} : result;
  }

 private:
  void BuildUnit(Tiling* t, const Map<String, String>& group, int64_t write_level,
                 const Reuse& write) {
    const Schedule& sch = t->sch;
    auto tile = TileForIntrin(sch, t->block, group["compute"]);
    if (!tile.has_value()) TVM_FFI_THROW(ValueError) << "the intrinsic does not divide the loops";
    t->block = tile.value();
    sch.Annotate(t->block, kAutoTensorize, group["compute"]);
    sch.Annotate(t->block, kAutoTensorizeInit, group["init"]);
    bool through_memory = write_level >= 0;
    BlockRV out;
    if (through_memory) out = sch.CacheWrite(t->block, 0, write.scope);
    BlockRV store = sch.CacheWrite(t->block, 0, "wmma.accumulator");
    TileLoops(t);
    OneWarpEach(*t);
    // Below the level that is given, or where all of the reduction is inside.
    size_t place =
        through_memory ? static_cast<size_t>(write_level) - 1 : View(structure).find("SR");
    // The accumulator is a thread's own, what the threads write out together is not.
    size_t threads = 0;
    for (size_t bound = tile_binds.has_value() ? tile_binds.value().size() : 0; bound > 0;
         ++threads)
      if (View(structure)[threads] == 'S') --bound;
    sch.ReverseComputeAt(store, t->levels.at(std::max(place + 1, threads) - 1).back(), true);
    Fragment(sch, store, group["store"]);
    if (through_memory) {
      sch.ReverseComputeAt(out, t->levels.at(place).back(), true);
      Cooperate(sch, out);
    }
    AddReadReuse(t);
    const LoopRV& step = t->levels.at(View(structure).rfind('R')).back();
    for (auto [operand, part, scope] :
         {std::tuple(0, "load_a", "wmma.matrix_a"), std::tuple(1, "load_b", "wmma.matrix_b")}) {
      BlockRV load = sch.CacheRead(t->block, operand, scope, {t->block});
      sch.ComputeAt(load, step, true);
      Fragment(sch, load, group[part]);
    }
    if (use_software_pipeline) {
      for (int64_t level : Reuse::From(reuse_read, "reuse_read").levels)
        Overlap(sch, t->levels.at(static_cast<size_t>(level) - 1).back());
      Overlap(sch, step);
    }
    sch.Annotate(t->block, "meta_schedule.tiling_structure", structure);
  }
  /// The lanes of a warp use the unit together: one index of the other threads is one warp.
  static void OneWarpEach(const Tiling& t) {
    for (const auto& level : t.levels) {
      if (level.size() != 1) continue;
      For loop = t.sch.Get(level[0]);
      if (loop->kind == ForKind::kThreadBinding &&
          loop->thread_binding.value()->thread_tag == "threadIdx.y")
        t.sch.Annotate(level[0], kWarpExecution, int64_t{1});
    }
  }
  /// Operands are copied for the next iteration while this one computes.
  static void Overlap(const Schedule& sch, const LoopRV& loop) {
    sch.Annotate(loop, "software_pipeline_stage", Array<int64_t>{0, 0, 1});
    sch.Annotate(loop, "software_pipeline_order", Array<int64_t>{0, 1, 2});
  }
  /// The copy of what a fragment holds is the intrinsic's.
  static void Fragment(const Schedule& sch, const BlockRV& copy, const String& intrin) {
    auto tile = TileForIntrin(sch, copy, intrin);
    if (!tile.has_value()) TVM_FFI_THROW(ValueError) << "no fragment";
    sch.Annotate(tile.value(), kAutoTensorize, intrin);
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.MultiLevelTilingTensorCore",
                                    MultiLevelTilingTensorCoreObj, MultiLevelTilingObj);
};

/// The innermost tile along the last axis of the result is one vector of a given length.
struct MultiLevelTilingWideVectorObj : MultiLevelTilingObj {
  int64_t vector_length_in_bits = 0;
  static void Fields(auto&& def) {
    def("structure", &MultiLevelTilingObj::structure);
    def("vector_length_in_bits", &MultiLevelTilingWideVectorObj::vector_length_in_bits);
    def("max_innermost_factor", &MultiLevelTilingObj::max_innermost_factor, Default(nullptr));
    def("reuse_read", &MultiLevelTilingObj::reuse_read, Default(nullptr));
    def("reuse_write", &MultiLevelTilingObj::reuse_write, Default(nullptr));
  }
  void Init() {
    MultiLevelTilingObj::Init();
    if (vector_length_in_bits < 8) {
      TVM_FFI_THROW(ValueError) << "MultiLevelTilingWideVector: expected vector_length_in_bits of "
                                << "at least 8, got " << vector_length_in_bits;
    }
  }

 protected:
  Array<LoopRV> SplitLoop(const Schedule& sch, const BlockView& view, size_t index,
                          const LoopRV& loop, size_t n) final {
    const BufferRegion& result = view.block->writes[0];
    int64_t lanes = vector_length_in_bits / std::max(8, result->buffer->dtype.bits());
    bool is_last = false;
    for (size_t i = 0; i < view.block->iter_vars.size() && !result->region.empty(); ++i) {
      is_last |= result->region.back()->min.same_as(view.block->iter_vars[i]->var) &&
                 view.realize->iter_values[i].same_as(view.axes[index].node->loop_var);
    }
    if (!is_last || view.axes[index].size.value_or(-1) % lanes != 0)
      return SplitEvenly(sch, loop, n);
    Array<LoopRV> vectors = sch.Split(loop, {std::nullopt, PrimExpr(IntImm::Int32(lanes))});
    Array<LoopRV> parts = n > 2 ? SplitEvenly(sch, vectors[0], n - 1) : Array<LoopRV>{vectors[0]};
    parts.push_back(vectors[1]);
    return parts;
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.MultiLevelTilingWideVector",
                                    MultiLevelTilingWideVectorObj, MultiLevelTilingObj);
};

TVM_REGISTER() {
  RegisterNode<MultiLevelTilingWideVectorObj>(
      "Tiles of several levels, the innermost one a vector of a given length.");
  RegisterNode<MultiLevelTilingObj>(
      "Tiles of several levels for blocks that read elements again and again.");
  RegisterNode<MultiLevelTilingTensorCoreObj>(
      "Tiles of several levels, the innermost one a matrix unit with registers of its own.");
  RegisterNode<MultiLevelTilingWithIntrinObj>(
      "Tiles of several levels, the innermost one a tensor intrinsic.");
}
}  // namespace
}  // namespace tvm::tune
