// SPDX-License-Identifier: Apache-2.0
// Removes branches by computing more than is needed.
#include "assumptions.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
/// The only store of a statement.
const BufferStoreObj* StoreOf(const Stmt& stmt) { return stmt.as<BufferStoreObj>(); }

struct BranchRemover : AnalyzedStmtMutator<BranchRemover, PrimExprObj, BufferObj> {
  using Base::Rewrite;
  std::vector<Assumption> assumptions;
  std::unordered_map<const BufferObj*, int> stores;  // how often each buffer is written

  ObjectRef Rewrite(const PrimExprObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    Stmt result = Any(Base::Rewrite(op)).cast<Stmt>();
    auto* branch = result.as<IfThenElseObj>();
    auto* store = branch ? StoreOf(branch->then_case) : nullptr;
    if (!store || store->predicate.has_value() ||
        SideEffect(branch->condition) > CallEffectKind::kPure ||
        !IsInBounds(&analyzer, store->buffer, store->indices))
      return result;
    PrimExpr instead;  // what the element is where the condition does not hold
    if (branch->else_case.has_value()) {
      auto* other = StoreOf(branch->else_case.value());
      if (!other || !other->buffer.same_as(store->buffer) || other->predicate.has_value())
        return result;
      for (size_t i = 0; i < store->indices.size(); ++i) {
        if (!analyzer.CanProveEqual(store->indices[i], other->indices[i])) return result;
      }
      instead = other->value;
    } else {
      instead = BufferLoad(store->buffer, store->indices);
    }
    bool same = GivesSameWithout(assumptions, &analyzer, branch->condition, store->value, instead);
    return same ? branch->then_case : result;
  }
};
}  // namespace

PrimFunc ReduceBranchingThroughOvercompute(PrimFunc func, bool use_dataflow_analysis) {
  BranchRemover remove;
  remove.assumptions = AssumptionFinder(func->body).found;
  if (use_dataflow_analysis) {
    // Memory of this function holds anything before its first store.
    PostOrderVisit(func->body, [&](const ObjectRef& node) {
      if (auto* store = node.as<BufferStoreObj>()) ++remove.stores[store->buffer.get()];
    });
    auto allocated = [&](const Buffer& b) {
      if (remove.stores[b.get()] != 1) return;
      Array<Var> indices = b->shape.Map([](const PrimExpr& e) { return Var("i", e.dtype()); });
      remove.assumptions.push_back(
          {b, indices, const_true(), Call(b->dtype, builtin::undef(), {})});
    };
    PostOrderVisit(func->body, [&](const ObjectRef& node) {
      auto* block = node.as<BlockObj>();
      if (!block) return;
      for (const Buffer& b : block->alloc_buffers) allocated(b);
    });
  }
  remove.LearnParams(func);
  return RewriteBody(std::move(func), remove);
}
TVM_PASS(
    tir, ReduceBranchingThroughOvercompute,
    R"(Removes branches around stores whose effect is the same where their condition does not hold: the value stored there may be anything (T.undef), or is what T.assume says the element is. With use_dataflow_analysis also where the store is the only one to memory of the function, which holds anything before it.

before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        if i < 14:
            B[i] = A[i] + 1.0
        else:
            B[i] = T.call_intrin("float32", "tir.undef")
after:
    for i in range(16):
        B[i] = A[i] + 1.0)",
    Arg("use_dataflow_analysis", false))
}  // namespace tvm::tir
