// SPDX-License-Identifier: Apache-2.0
// Moves loops over one thread index, of which a kernel has several, to the place around all of
// them.
#include "../any_stmt.h"
#include "../text.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// Loops over a thread index in one kernel, and the statements that are around all of them.
struct Group {
  std::vector<const ForObj*> loops;
  std::vector<const StmtObj*> around;
};
struct Collector : Visitor<Collector, ForObj, BlockObj> {
  std::vector<const StmtObj*> around;  // loops and blocks, outermost first
  std::vector<std::vector<std::pair<String, Group>>> kernels;
  int depth = 0;

  void Visit(const BlockObj* op) {
    around.push_back(op);
    VisitChildren(op, *this);
    around.pop_back();
  }
  void Visit(const ForObj* op) {
    const IterVarObj* iv = LaunchedThread(op);
    if (iv) Add(op, iv->thread_tag);
    around.push_back(op);
    depth += iv != nullptr;
    (*this)(op->body);
    depth -= iv != nullptr;
    around.pop_back();
  }
  void Add(const ForObj* op, const String& tag) {
    if (depth == 0) kernels.emplace_back();
    auto& groups = kernels.back();
    auto it = std::find_if(groups.begin(), groups.end(), [&](auto& g) { return g.first == tag; });
    if (it == groups.end()) {
      groups.emplace_back(tag, Group{{op}, around});
      return;
    }
    Group& group = it->second;
    group.loops.push_back(op);
    size_t common = 0;
    while (common < std::min(group.around.size(), around.size()) &&
           group.around[common] == around[common])
      ++common;
    group.around.resize(common);
  }
};
struct Lifter : Mutator<Lifter, VarObj, ForObj, BlockObj> {
  std::unordered_map<const StmtObj*, std::vector<Stmt>> lifted;  // by the statement around them
  std::unordered_map<const ForObj*, bool> removed;
  std::unordered_map<const VarObj*, PrimExpr> values;

  explicit Lifter(const Collector& found) {
    for (const auto& kernel : found.kernels) {
      for (const auto& [tag, group] : kernel) {
        // What is around all of them has to be inside the kernel: its outermost loop never moves.
        if (group.loops.size() < 2 || group.around.empty()) continue;
        const ForObj* first = group.loops[0];
        IterVar iv = first->thread_binding.value();
        Var var(first->loop_var->name_hint, first->loop_var->type_annotation);
        IterVar index(iv->dom, iv->var.same_as(first->loop_var) ? var : iv->var.CopyWithSuffix(""),
                      iv->iter_type, iv->thread_tag);
        ffi::Map<String, Any> annotations;
        for (const ForObj* loop : group.loops) {
          for (const auto& [key, value] : loop->annotations) annotations.Set(key, value);
          if (!IsZero(loop->min) || !ExprDeepEqual(loop->extent, first->extent)) {
            TVM_FFI_THROW(ValueError)
                << "LiftThreadBinding: expected all loops over " << tag
                << " in a kernel to run from 0 to " << TextOf(first->extent) << ", got one from "
                << TextOf(loop->min) << " to " << TextOf(loop->min + loop->extent);
          }
          removed[loop] = true;
          values[loop->loop_var.get()] = var;
          values[loop->thread_binding.value()->var.get()] = var;
        }
        lifted[group.around.back()].push_back(For(var, first->min, first->extent,
                                                  ForKind::kThreadBinding, Evaluate::Nothing(),
                                                  index, annotations));
      }
    }
  }
  ObjectRef Rewrite(const VarObj* op) {
    auto it = values.find(op);
    return it == values.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second);
  }
  Stmt Around(const StmtObj* op, const Stmt& body) {
    auto it = lifted.find(op);
    return it == lifted.end() ? body : MergeNest(it->second, body);
  }
  ObjectRef Rewrite(const ForObj* op) {
    if (removed.count(op)) return Around(op, Mutate(op->body));
    For loop = Below<For>(op);
    Stmt body = Around(op, loop->body);
    if (!body.same_as(loop->body)) Edit(&loop)->body = body;
    return loop;
  }
  ObjectRef Rewrite(const BlockObj* op) {
    Block block = Below<Block>(op);
    Stmt body = Around(op, block->body);
    if (!body.same_as(block->body)) Edit(&block)->body = body;
    return block;
  }
};
}  // namespace

PrimFunc LiftThreadBinding(PrimFunc func) {
  if (!HasThreadLoops(func->body)) return func;
  Collector collect;
  collect(func->body);
  Lifter lift(collect);
  return lift.lifted.empty() ? func : RewriteBody(std::move(func), lift);
}
TVM_PASS(tir, LiftThreadBinding,
         R"(Replaces several loops over one thread index in a kernel by one around all of them.

before(A: T.Buffer((2, 32), "float32"), B: T.Buffer((2, 32), "float32")):
    for b in T.thread_binding(2, "blockIdx.x"):
        for k in range(4):
            for i in T.thread_binding(32, "threadIdx.x"):
                A[b, i] = 1.0
            for j in T.thread_binding(32, "threadIdx.x"):
                B[b, j] = A[b, j]
after:
    for b in T.thread_binding(2, "blockIdx.x"):
        for k in range(4):
            for i in T.thread_binding(32, "threadIdx.x"):
                A[b, i] = 1.0
                B[b, i] = A[b, i])")
}  // namespace tvm::tir
