// SPDX-License-Identifier: Apache-2.0
// Records when functions and loops begin and end.
#include <atomic>

#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
std::atomic<int64_t> next_id{0};

/// What is around and inside a loop.
struct LoopInfo {
  int depth, height = 0;
  bool has_siblings = false, in_parallel = false;
};
struct LoopFinder : Visitor<LoopFinder, ForObj, SeqStmtObj, AttrStmtObj> {
  std::unordered_map<const ForObj*, LoopInfo> loops;
  std::vector<const ForObj*> around;
  int parallel = 0;

  void Visit(const ForObj* op) {
    loops[op] = {static_cast<int>(around.size()), 0, false, parallel > 0};
    around.push_back(op);
    bool shared = op->kind == ForKind::kParallel || op->kind == ForKind::kThreadBinding;
    parallel += shared;
    (*this)(op->body);
    parallel -= shared;
    around.pop_back();
    for (size_t i = 0; i < around.size(); ++i) {
      int& height = loops[around[i]].height;
      height = std::max(height, static_cast<int>(around.size() - i) + loops[op].height);
    }
  }
  void Visit(const AttrStmtObj* op) {
    bool is_device = View(op->attr_key) == attr::kThreadExtent;  // its threads have no marks
    parallel += is_device;
    (*this)(op->body);
    parallel -= is_device;
  }
  void Visit(const SeqStmtObj* op) {
    int count = 0;
    for (const Stmt& s : op->seq) count += s.as<ForObj>() != nullptr;
    VisitChildren(op, *this);
    for (const Stmt& s : op->seq) {
      if (auto* loop = s.as<ForObj>()) loops[loop].has_siblings = count > 1;
    }
  }
};
/// start(id); body; end(id)
Stmt Profiled(int64_t id, const Stmt& body) {
  auto call = [&](const Op& op) {
    return Evaluate(Call(DataType::Handle(), op, {MakeConst(DataType::Int(32), id)}));
  };
  return SeqStmt::Flatten(
      {call(builtin::start_profile_intrinsic()), body, call(builtin::end_profile_intrinsic())});
}
struct Instrumenter : Mutator<Instrumenter, ForObj> {
  LoopFinder found;
  int64_t max_depth, min_height;
  bool only_siblings;
  ObjectRef Rewrite(const ForObj* op) {
    const LoopInfo& info = found.loops.at(op);
    bool record = !info.in_parallel && info.height >= min_height &&
                  (max_depth == 0 || info.depth < max_depth) &&
                  (!only_siblings || info.has_siblings);
    if (!record) return MapChildren(op, *this);
    int64_t id = next_id++;  // below those of the loops inside
    return Profiled(id, Below<For>(op));
  }
};
}  // namespace

IRModule InstrumentProfileIntrinsics(IRModule mod) {
  auto ctx = ::tvm::transform::PassContext::Current();
  if (ctx->GetConfig<bool>("tir.reset_start_id")) next_id = 0;
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  for (const auto& [var, base] : mod->Sorted()) {
    auto* f = base.as<PrimFuncObj>();
    if (!f) continue;
    PrimFunc func = ffi::GetRef<PrimFunc>(f);
    Instrumenter instrument;
    instrument.found(func->body);
    instrument.max_depth = ctx->GetConfig<int64_t>("tir.lwp_max_depth");
    instrument.min_height = ctx->GetConfig<int64_t>("tir.lwp_min_height");
    instrument.only_siblings = ctx->GetConfig<bool>("tir.instr_siblings");
    bool whole = !ctx->GetConfig<bool>("tir.lwp_disable_func_prof");
    int64_t id = whole ? next_id++ : 0;
    Stmt body = instrument.Mutate(func->body);
    if (whole) body = Profiled(id, body);
    functions.Set(var, WithBody(func, body));
  }
  return IRModule(functions, mod->attrs, mod->global_infos);
}
TVM_PASS(
    tir, InstrumentProfileIntrinsics,
    R"(Puts start_profile_intrinsic and end_profile_intrinsic, with a number, around each function and around loops that have siblings. tir.lwp_max_depth (0: none) and tir.lwp_min_height bound which loops, tir.instr_siblings=False takes loops without siblings, too; loops inside of parallel ones and of kernels are left alone. tvm.runtime.profiling.marked_times() has what was recorded. tir.lwp_disable_func_prof leaves functions out, tir.reset_start_id numbers from 0.

config: {"tir.reset_start_id": True, "tir.lwp_min_height": 0}
before(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = 1.0
    for i in range(8):
        A[i] = A[i] + 1.0
after:
    T.start_profile_intrinsic(0)
    T.start_profile_intrinsic(1)
    for i in range(8):
        A[i] = 1.0
    T.end_profile_intrinsic(1)
    T.start_profile_intrinsic(2)
    for i in range(8):
        A[i] = A[i] + 1.0
    T.end_profile_intrinsic(2)
    T.end_profile_intrinsic(0))")
}  // namespace tvm::tir
