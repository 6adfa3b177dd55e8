// SPDX-License-Identifier: Apache-2.0
// Postprocessors for GPUs and other devices: threads for what has none, copies shared by threads,
// and the limits of the hardware.
#include "tune/rule/thread_binding.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"

namespace tvm::tune {
namespace {
using namespace tir;

// ---- threads -----------------------------------------------------------------------------------
struct RewriteUnboundBlockObj : PostprocObj {
  int64_t max_threadblocks = 256, threads = 1024;
  static void Fields(auto&& def) {
    def("max_threadblocks", &RewriteUnboundBlockObj::max_threadblocks, Default(256));
  }
  void Initialize(const TuneContext& context) final {
    threads = MachineOf(context->target)->max_threads;
  }
  bool Apply(const Schedule& sch) final {
    std::vector<BlockRV> unbound = BlocksWhere(sch, [&](const BlockRV& block) {
      BlockView view(sch, block);
      return !view.is_root && !view.has_blocks && !Bound(view).blocks;
    });
    for (const BlockRV& block : unbound) {
      BindThreads(sch, block, max_threadblocks, threads,
                  [](int64_t most) { return PrimExpr(IntImm::Int32(most)); });
    }
    return true;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.RewriteUnboundBlock", RewriteUnboundBlockObj,
                                    PostprocObj);
};

/// A copy into shared memory, annotated with the vector width W:
///   for i in range(N)  ->  for s: for y in threadIdx.y: for x in threadIdx.x: for v in
///   vectorized(W)
struct RewriteCooperativeFetchObj : PostprocObj {
  static constexpr const char* kMark = "meta_schedule.cooperative_fetch";
  int64_t warp = 32;
  static void Fields(auto&&) {}
  void Initialize(const TuneContext& context) final { warp = MachineOf(context->target)->warp; }
  bool Apply(const Schedule& sch) final {
    std::vector<BlockRV> copies =
        BlocksWhere(sch, [&](const BlockRV& block) { return Width(sch, block).has_value(); });
    for (const BlockRV& block : copies) Share(sch, block, *Width(sch, block));
    return true;
  }

 private:
  /// The threads of a kernel: copies may lie outside of the loops over them.
  struct Threads : Visitor<Threads, ForObj> {
    int64_t warp, x = 1, y = 1;
    void Visit(const ForObj* op) {
      if (op->kind == ForKind::kThreadBinding) {
        std::string_view tag = View(op->thread_binding.value()->thread_tag);
        if (tag == "threadIdx.x") x = ConstantExtent(op);
        if (tag == "threadIdx.y") y = ConstantExtent(op);
        if (op->annotations.count(kWarpExecution)) x = warp;
      }
      VisitChildren(op, *this);
    }
  };
  static std::optional<int64_t> Width(const Schedule& sch, const BlockRV& block) {
    Any width = AnnotationOf(sch, block, kMark);
    if (width == nullptr) return std::nullopt;
    if (auto n = width.as<int64_t>()) return *n;
    if (auto n = width.as<IntImm>()) return (*n)->value;
    return std::nullopt;
  }
  void Share(const Schedule& sch, const BlockRV& block, int64_t width) const {
    sch.Unannotate(block, kMark);
    BlockView view(sch, block);
    auto kernel = std::find_if(view.axes.begin(), view.axes.end(), [](const Axis& axis) {
      return axis.node->kind == ForKind::kThreadBinding;
    });
    Threads threads;
    threads.warp = warp;
    if (kernel != view.axes.end()) threads.Visit(kernel->node);
    auto [x, y] = std::pair(threads.x, threads.y);
    LoopRV last = sch.GetLoops(block).back();
    int64_t extent = view.axes.back().size.value_or(-1);
    if (extent % (x * y * width) != 0) width = 1;
    auto part = [](int64_t n) { return Optional<PrimExpr>(IntImm::Int32(n)); };
    Schedule::Factors factors = {std::nullopt};
    if (y > 1) factors.push_back(part(y));
    factors.push_back(part(x));
    if (width > 1) factors.push_back(part(width));
    Array<LoopRV> parts = sch.Split(last, factors);
    if (width > 1) sch.Vectorize(parts.back());
    sch.Bind(parts[y > 1 ? 2 : 1], "threadIdx.x");
    if (y > 1) sch.Bind(parts[1], "threadIdx.y");
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.RewriteCooperativeFetch",
                                    RewriteCooperativeFetchObj, PostprocObj);
};

// ---- limits ------------------------------------------------------------------------------------
/// The module as far as allocations and thread extents are what they will be; none when it cannot
/// be lowered.
Optional<IRModule> Lowered(const Schedule& sch, const std::vector<const char*>& passes) {
  try {
    IRModule mod = sch.mod();
    for (const char* pass : passes) mod = transform::GetPass(pass)(mod);
    return mod;
  } catch (const ffi::Error& error) {
    if (error.kind() == "KeyboardInterrupt" || error.kind() == "InternalError") throw;
    return std::nullopt;
  }
}
const std::vector<const char*> kToAllocations = {"tir.LowerCrossThreadReduction",
                                                 "tir.LowerInitBlock",
                                                 "tir.PlanAndUpdateBufferAllocationLocation",
                                                 "tir.ConvertBlocksToOpaque",
                                                 "tir.UnifyThreadBinding",
                                                 "tir.CompactBufferAllocation",
                                                 "tir.LowerMatchBuffer",
                                                 "tir.Simplify"};

struct VerifyGPUCodeObj : PostprocObj {
  Map<String, PrimExpr> limits;
  static void Fields(auto&&) {}
  void Initialize(const TuneContext& context) final {
    auto set = [&](const char* limit, int64_t value) { limits.Set(limit, IntImm::Int32(value)); };
    Machine machine = MachineOf(context->target);
    set("max_shared_memory_per_block", machine->shared_bytes);
    set("max_threads_per_block", machine->max_threads);
    set("max_local_memory_per_block", machine->registers * 4);
    set("max_vthread", 8);
    set("max_vector_bytes", 16);
  }
  bool Apply(const Schedule& sch) final {
    static const Function fits = Function::GetGlobalRequired("tir.analysis.verify_gpu_code");
    auto mod = Lowered(sch, kToAllocations);
    if (!mod.has_value()) return false;
    for (const auto& [var, func] : mod.value()->functions)
      if (func.as<PrimFuncObj>() && !fits(func, limits).cast<bool>()) return false;
    return true;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.VerifyGPUCode", VerifyGPUCodeObj, PostprocObj);
};

/// Bytes in the vector memory of Hexagon that are alive at the same time.
struct VtcmUse : Visitor<VtcmUse, BlockObj> {
  int64_t now = 0, most = 0;
  void Visit(const BlockObj* op) {
    int64_t before = now;
    for (const Buffer& b : op->alloc_buffers) {
      if (b.scope() != "global.vtcm") continue;
      int64_t bytes = b->dtype.bytes();
      for (const PrimExpr& e : b->shape) bytes *= AsConstInt(e).value_or(1);
      now += bytes;
    }
    most = std::max(most, now);
    VisitChildren(op, *this);
    now = before;
  }
};
struct VerifyVTCMLimitObj : PostprocObj {
  int64_t capacity = 0;  // 0: no limit
  static void Fields(auto&&) {}
  void Initialize(const TuneContext& context) final {
    if (context->target.has_value())
      capacity = context->target.value()->GetAttr<int64_t>("vtcm-capacity", 0);
  }
  bool Apply(const Schedule& sch) final {
    if (capacity <= 0) return true;
    auto mod = Lowered(sch, kToAllocations);
    if (!mod.has_value()) return false;
    VtcmUse use;
    for (const auto& [var, func] : mod.value()->functions) use(func);
    return use.most <= capacity;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.VerifyVTCMLimit", VerifyVTCMLimitObj,
                                    PostprocObj);
};

/// Copies made while something else runs move whole stretches: one whose elements are apart in
/// either memory cannot.
struct StridedCopies : Visitor<StridedCopies, AttrStmtObj, ForObj, BufferStoreObj> {
  std::vector<const ForObj*> loops;
  bool async = false, found = false;
  void Visit(const AttrStmtObj* op) {
    bool before = async;
    async |= op->attr_key == "async_scope";
    VisitChildren(op, *this);
    async = before;
  }
  void Visit(const ForObj* op) {
    if (async) loops.push_back(op);
    VisitChildren(op, *this);
    if (async) loops.pop_back();
  }
  void Visit(const BufferStoreObj* op) {
    auto* load = op->value.as<BufferLoadObj>();
    const ForObj* inner = nullptr;
    for (const ForObj* loop : loops)
      if (!IsOne(loop->extent)) inner = loop;
    if (!async || !load || !inner) return;
    found |= !StepsByOne(op->buffer, op->indices, inner) ||
             !StepsByOne(load->buffer, load->indices, inner);
  }
  static bool StepsByOne(const Buffer& buffer, const Array<PrimExpr>& indices, const ForObj* loop) {
    PrimExpr flat = MakeZero(loop->loop_var.dtype());
    for (size_t i = 0; i < indices.size(); ++i) flat = flat * buffer->shape[i] + indices[i];
    PrimExpr next = Substitute(flat, {{loop->loop_var, loop->loop_var + 1}});
    return arith::Analyzer().CanProveEqual(next - flat, MakeConst(flat.dtype(), 1));
  }
};
struct DisallowAsyncStridedMemCopyObj : PostprocObj {
  static void Fields(auto&&) {}
  bool Apply(const Schedule& sch) final {
    std::vector<const char*> passes = kToAllocations;
    passes.push_back("tir.InjectSoftwarePipeline");
    auto mod = Lowered(sch, passes);
    if (!mod.has_value()) return false;
    StridedCopies copies;
    for (const auto& [var, func] : mod.value()->functions) copies(func);
    return !copies.found;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.DisallowAsyncStridedMemCopy",
                                    DisallowAsyncStridedMemCopyObj, PostprocObj);
};

TVM_REGISTER() {
  RegisterNode<RewriteUnboundBlockObj>("Binds blocks without threads to threads.");
  RegisterNode<RewriteCooperativeFetchObj>(
      "Lets all threads of a block share the copies annotated for it.");
  RegisterNode<VerifyGPUCodeObj>("Refuses kernels beyond the limits of the target.");
  RegisterNode<VerifyVTCMLimitObj>("Refuses programs beyond the vector memory of the target.");
  RegisterNode<DisallowAsyncStridedMemCopyObj>(
      "Refuses asynchronous copies of elements that are not next to each other.");
}
}  // namespace
}  // namespace tvm::tune
