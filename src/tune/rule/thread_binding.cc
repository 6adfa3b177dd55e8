// SPDX-License-Identifier: Apache-2.0
// Rules for GPUs: threads for blocks that have none, reductions shared by threads.
#include "tune/rule/thread_binding.h"

#include "tvm/expr/op.h"

namespace tvm::tune {
using namespace tir;

Bound::Bound(const BlockView& view) {
  for (const Axis& axis : view.axes) {
    if (axis.node->kind != ForKind::kThreadBinding) continue;
    std::string_view tag = View(axis.node->thread_binding.value()->thread_tag);
    blocks |= tag.substr(0, 9) == "blockIdx.";
    threads |= tag.substr(0, 10) == "threadIdx.";
  }
}
void BindThreads(const Schedule& sch, const BlockRV& block, int64_t max_threadblocks,
                 int64_t max_threads_per_block,
                 const std::function<PrimExpr(int64_t most)>& threads) {
  BlockView view(sch, block);
  Bound bound(view);
  if (bound.blocks || view.is_root) return;
  const State& state = sch.state();
  Array<LoopRV> loops = sch.GetLoops(block), leading;
  double extent = 1;
  for (size_t i = 0; i < loops.size(); ++i) {
    const ForObj* loop = view.axes[i].node;
    bool nested = i == 0 || view.axes[i - 1].node->body.get() == static_cast<const Object*>(loop);
    bool free = view.axes[i].use == LoopUse::kSpatial || view.axes[i].use == LoopUse::kUnused;
    if (loop->kind != ForKind::kSerial || !free || !nested) break;
    // Other blocks below the loop must not reduce along it either.
    bool shared = true;
    for (BlockId child : state.ChildBlocks(state.Find(loop))) {
      BlockView other(sch, sch.NewBlockRV(child));
      for (const Axis& axis : other.axes)
        shared &= axis.node != loop || axis.use != LoopUse::kReduce;
    }
    if (!shared) break;
    leading.push_back(loops[i]);
    extent *= static_cast<double>(std::max<int64_t>(1, ConstantExtent(loop)));
  }
  if (leading.empty()) {
    LoopRV unit = loops.empty() ? sch.AddUnitLoop(block) : sch.AddUnitLoop(loops[0]);
    leading.push_back(unit);
  }
  LoopRV fused = leading.size() > 1 ? sch.Fuse(leading) : leading[0];
  if (bound.threads) {
    sch.Bind(fused, "blockIdx.x");
    return;
  }
  PrimExpr width = threads(std::min<int64_t>(max_threads_per_block, static_cast<int64_t>(extent)));
  double most = static_cast<double>(max_threadblocks * max_threads_per_block);
  if (max_threadblocks > 0 && extent > most) {
    Array<LoopRV> parts =
        sch.Split(fused, {std::nullopt, PrimExpr(IntImm::Int32(max_threadblocks)), width});
    sch.Reorder({parts[1], parts[2], parts[0]});
    sch.Bind(parts[1], "blockIdx.x");
    sch.Bind(parts[2], "threadIdx.x");
  } else {
    Array<LoopRV> parts = sch.Split(fused, {std::nullopt, width});
    sch.Bind(parts[0], "blockIdx.x");
    sch.Bind(parts[1], "threadIdx.x");
  }
}

namespace {
Array<int64_t> UpTo(const Array<int64_t>& values, int64_t most) {
  Array<int64_t> result;
  for (int64_t v : values)
    if (v <= most) result.push_back(v);
  return result;
}

struct AutoBindObj : ScheduleRuleObj {
  int64_t max_threadblocks = 256, max_threads_per_block = -1;
  Optional<Array<int64_t>> thread_extents;
  int64_t threads = 1024;
  static void Fields(auto&& def) {
    def("max_threadblocks", &AutoBindObj::max_threadblocks, Default(256));
    def("thread_extents", &AutoBindObj::thread_extents, Default(nullptr));
    def("max_threads_per_block", &AutoBindObj::max_threads_per_block, Default(-1));
  }
  void Initialize(const TuneContext& context) final {
    threads =
        max_threads_per_block > 0 ? max_threads_per_block : MachineOf(context->target)->max_threads;
  }
  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    BlockView view(sch, block);
    if (view.is_root || view.has_blocks) return {sch};
    Schedule copy = sch.Copy();
    bool done = Try([&] {
      BindThreads(copy, block, max_threadblocks, threads, [&](int64_t most) -> PrimExpr {
        Array<int64_t> fitting =
            UpTo(thread_extents.value_or(Array<int64_t>{32, 64, 128, 256, 512, 1024}), most);
        return fitting.empty() ? PrimExpr(IntImm::Int32(most)) : PrimExpr(Choose(copy, fitting));
      });
    });
    return {done ? copy : sch};
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.AutoBind", AutoBindObj, ScheduleRuleObj);
};

/// for i: for k in range(K)  ->  for i: for k0: for k1 in threadIdx.x(T)
struct CrossThreadReductionObj : ScheduleRuleObj {
  Array<int64_t> thread_extents;
  int64_t max_threads = 1024, warp = 32;
  static void Fields(auto&& def) {
    def("thread_extents", &CrossThreadReductionObj::thread_extents);
  }
  void Init() {
    for (int64_t t : thread_extents) {
      if (t < 1) {
        TVM_FFI_THROW(ValueError)
            << "CrossThreadReduction.thread_extents: expected positive numbers, got " << t;
      }
    }
  }
  void Initialize(const TuneContext& context) final {
    max_threads = MachineOf(context->target)->max_threads;
    warp = MachineOf(context->target)->warp;
  }
  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    BlockView view(sch, block);
    if (view.is_root || view.has_blocks || !view.has_reduction || !view.HasConstantExtents() ||
        IsScheduled(view) || !view.IsAlone(sch))
      return {sch};
    // Where results are many and sums short, a thread for each result is better anyway.
    double sums = view.Iterations(LoopUse::kReduce), results = view.Iterations(LoopUse::kSpatial);
    Array<int64_t> fitting =
        UpTo(thread_extents, std::min<int64_t>(max_threads, static_cast<int64_t>(sums)));
    if (fitting.empty() || sums < static_cast<double>(warp) || (view.HasReuse() && results > sums))
      return {sch};
    Schedule copy = sch.Copy();
    bool done = Try([&] {
      Array<LoopRV> loops = copy.GetLoops(block), order, reduce;
      for (size_t i = 0; i < loops.size(); ++i)
        (view.axes[i].use == LoopUse::kReduce ? reduce : order).push_back(loops[i]);
      for (const LoopRV& loop : reduce) order.push_back(loop);
      copy.Reorder(order);
      LoopRV fused = reduce.size() > 1 ? copy.Fuse(reduce) : reduce[0];
      Array<LoopRV> parts = copy.Split(fused, {std::nullopt, PrimExpr(Choose(copy, fitting))});
      copy.Bind(parts[1], "threadIdx.x");
    });
    return done ? Array<Schedule>{sch, copy} : Array<Schedule>{sch};
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.CrossThreadReduction", CrossThreadReductionObj,
                                    ScheduleRuleObj);
};

TVM_REGISTER() {
  RegisterNode<AutoBindObj>("Binds the loops of blocks without threads to threads of a GPU.");
  RegisterNode<CrossThreadReductionObj>("Lets the threads of a block share a reduction.");
}
}  // namespace
}  // namespace tvm::tune
