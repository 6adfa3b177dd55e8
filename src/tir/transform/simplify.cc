// SPDX-License-Identifier: Apache-2.0
// Simplifies every expression with what loops and conditions around it say.
#include <deque>

#include "assumptions.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
struct Simplifier
    : AnalyzedStmtMutator<Simplifier, PrimExprObj, BufferObj, BufferStoreObj, IterVarObj> {
  using Base::Rewrite;
  bool knows_conditions = false, knows_values = false;  // from stores and T.assume
  std::vector<Assumption> assumptions;

  ObjectRef Rewrite(const PrimExprObj* op) {
    if (op->type_index() == IntImmObj::RuntimeTypeIndex() ||
        op->type_index() == StringImmObj::RuntimeTypeIndex()) {
      return ffi::GetRef<ObjectRef>(op);
    }
    PrimExpr e = ffi::GetRef<PrimExpr>(op);
    return analyzer.Simplify(knows_values ? WithKnownElements(e) : e);
  }
  /// Elements whose value the facts or assumptions say, by that value.
  PrimExpr WithKnownElements(const PrimExpr& e) {
    struct Constants : Mutator<Constants, BufferLoadObj, BufferObj> {
      arith::Analyzer* analyzer;
      ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
      ObjectRef Rewrite(const BufferLoadObj* op) {
        BufferLoad load = Below<BufferLoad>(op);
        if (!load->dtype.is_index()) return load;
        arith::ConstIntBound bound = analyzer->const_int_bound(load);
        bool known = bound->min_value == bound->max_value;
        return known ? ObjectRef(MakeConst(load->dtype, bound->min_value)) : load;
      }
    } constants;
    constants.analyzer = &analyzer;
    return constants.Mutate(KnownElements(assumptions, &analyzer).Mutate(e));
  }
  /// What holds after a statement: the value it stores, the condition it assumes.
  static PrimExpr FactAfter(const Stmt& stmt) {
    if (auto* store = stmt.as<BufferStoreObj>()) {
      bool plain = store->value.dtype().is_index() && !store->predicate.has_value() &&
                   SideEffect(store->value) <= CallEffectKind::kPure;
      for (const PrimExpr& i : store->indices) plain &= SideEffect(i) <= CallEffectKind::kPure;
      return plain ? equal(BufferLoad(store->buffer, store->indices), store->value) : PrimExpr();
    }
    auto* evaluate = stmt.as<EvaluateObj>();
    auto* call = evaluate ? evaluate->value.as<CallObj>() : nullptr;
    return call && call->Is(builtin::assume()) ? call->args[0] : PrimExpr();
  }
  ObjectRef Rewrite(const SeqStmtObj* op) {
    if (!knows_conditions && !knows_values) return Base::Rewrite(op);
    std::deque<arith::ConstraintScope> known;
    ObjectRef result = MapChildren(op, [&](const ObjectRef& stmt) {
      ObjectRef part = (*this)(stmt);
      ForgetWritten(stmt);
      if (auto* s = part.as<StmtObj>()) {
        if (PrimExpr fact = FactAfter(ffi::GetRef<Stmt>(s)); fact.defined()) {
          knows_memory = true;
          known.emplace_back(&analyzer, fact);
        }
      }
      return part;
    });
    while (!known.empty()) known.pop_back();  // the last one entered is left first
    return result;
  }
  /// Shapes stay as they were declared.
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }

  /// An axis of one value stays a variable where it is defined.
  ObjectRef Rewrite(const IterVarObj* op) {
    if (!op->dom.has_value()) return ffi::GetRef<ObjectRef>(op);
    Range dom = Mutate(op->dom.value());
    if (dom.same_as(op->dom.value())) return ffi::GetRef<ObjectRef>(op);
    return IterVar(dom, op->var, op->iter_type, op->thread_tag, op->span);
  }

  ObjectRef Rewrite(const LetStmtObj* op) {
    PrimExpr value = Mutate(op->value);
    Stmt let = Any(RewriteLet(op, value)).cast<Stmt>();
    // The analyzer put constants and variables in the place of the variable.
    if (!value.dtype().is_index() || !(value.as<IntImmObj>() || value.as<VarObj>())) return let;
    Stmt body = Any(let).cast<LetStmt>()->body;
    return UsesVar(body, [&](const VarObj* v) { return v == op->var.get(); }) ? let : body;
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    PrimExpr cond = Mutate(op->condition);
    PrimExpr plain = StripLikely(cond);
    if (knows_conditions && !knows_values) {
      // Only to decide it: the condition stays as it was written where that does not help.
      PrimExpr decided = analyzer.Simplify(WithKnownElements(plain));
      if (AsConstInt(decided)) plain = decided;
    }
    if (IsTrue(plain)) return Mutate(op->then_case);
    if (IsFalse(plain))
      return op->else_case.has_value() ? Mutate(op->else_case.value()) : Evaluate::Nothing();
    return RewriteIf(op, cond);
  }
  ObjectRef Rewrite(const AssertStmtObj* op) {
    PrimExpr cond = Mutate(op->condition);
    return IsTrue(cond) ? ObjectRef(Mutate(op->body)) : RewriteAssert(op, cond);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    BufferStore store = Below<BufferStore>(op);
    // Writing back what was read does nothing.
    if (auto* load = store->value.as<BufferLoadObj>();
        load && load->buffer.same_as(store->buffer) && !load->predicate.has_value() &&
        !store->predicate.has_value()) {
      bool same = true;
      for (size_t i = 0; same && i < load->indices.size(); ++i) {
        same = ExprDeepEqual(load->indices[i], store->indices[i]);
      }
      if (same && SideEffect(store->value) <= CallEffectKind::kReadState)
        return Evaluate::Nothing();
    }
    return store;
  }
};
}  // namespace

PrimFunc Simplify(PrimFunc func, bool transitively_prove_inequalities,
                  bool propagate_knowns_to_prove_conditional,
                  bool propagate_knowns_to_simplify_expressions, bool convert_boolean_to_and_of_ors,
                  bool apply_constraints_to_boolean_branches) {
  Simplifier simplify;
  simplify.knows_conditions = propagate_knowns_to_prove_conditional;
  simplify.knows_values = propagate_knowns_to_simplify_expressions;
  if (simplify.knows_conditions || simplify.knows_values)
    simplify.assumptions = AssumptionFinder(func->body).found;
  int64_t extensions = arith::kNone;
  if (transitively_prove_inequalities) extensions |= arith::kTransitivelyProveInequalities;
  if (convert_boolean_to_and_of_ors) extensions |= arith::kConvertBooleanToAndOfOrs;
  if (apply_constraints_to_boolean_branches)
    extensions |= arith::kApplyConstraintsToBooleanBranches;
  simplify.analyzer.set_enabled_extensions(extensions);
  simplify.LearnParams(func);
  return RewriteBody(std::move(func), simplify);
}
TVM_PASS(tir, Simplify,
         R"(Simplifies expressions and removes branches that cannot be taken.

before(A: T.Buffer((16,), "float32")):
    for i in range(16):
        if i < 20:
            A[i * 4 // 4] = 1.0
after:
    for i in range(16):
        A[i] = T.float32(1))",
         Arg("transitively_prove_inequalities", false),
         Arg("propagate_knowns_to_prove_conditional", false),
         Arg("propagate_knowns_to_simplify_expressions", false),
         Arg("convert_boolean_to_and_of_ors", false),
         Arg("apply_constraints_to_boolean_branches", false))
}  // namespace tvm::tir
