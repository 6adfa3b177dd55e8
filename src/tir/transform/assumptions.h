// SPDX-License-Identifier: Apache-2.0
// What T.assume says about the elements of buffers.
#pragma once
#include <optional>

#include "../analyzed_mutator.h"

namespace tvm::tir {

/// `T.assume(P(i) or A[i] == v)` in loops over i: where P does not hold, elements of A are v.
struct Assumption {
  Buffer buffer;
  Array<Var> indices;
  PrimExpr condition;  // on the indices, under which the value is known
  PrimExpr value;
};

/// Collects the assumptions of a function about buffers that nobody writes afterwards.
struct AssumptionFinder : Visitor<AssumptionFinder, EvaluateObj, BufferStoreObj, PrimExprObj> {
  std::vector<Assumption> found;

  explicit AssumptionFinder(const Stmt& body) { (*this)(body); }
  void Visit(const PrimExprObj*) {}
  void Visit(const BufferStoreObj* op) {
    // A later store: what was said no longer holds.
    std::erase_if(found, [&](const Assumption& a) { return a.buffer.same_as(op->buffer); });
  }
  void Visit(const EvaluateObj* op) {
    auto* call = op->value.as<CallObj>();
    if (!call || !call->Is(builtin::assume())) return;
    PrimExpr otherwise = const_false();  // the other parts of the disjunction
    const EQObj* equality = nullptr;
    Split(call->args[0], &otherwise, &equality);
    if (!equality) return;
    auto* load = equality->a.as<BufferLoadObj>();
    Array<Var> indices;
    for (const PrimExpr& i : load->indices) {
      auto* v = i.as<VarObj>();
      if (!v) return;
      for (const Var& seen : indices) {
        if (seen.get() == v) return;
      }
      indices.push_back(ffi::GetRef<Var>(v));
    }
    bool only_indices = !UsesVar(otherwise, [&](const VarObj* v) {
      return std::none_of(indices.begin(), indices.end(),
                          [&](const Var& i) { return i.get() == v; });
    });
    if (only_indices && SideEffect(otherwise) <= CallEffectKind::kPure)
      found.push_back({load->buffer, indices, logical_not(otherwise), equality->b});
  }
  /// A[i] == v, or v == A[i], with the rest of the disjunction.
  static void Split(const PrimExpr& e, PrimExpr* otherwise, const EQObj** equality) {
    if (auto* either = e.as<OrObj>()) {
      Split(either->a, otherwise, equality);
      Split(either->b, otherwise, equality);
      return;
    }
    auto* eq = e.as<EQObj>();
    if (eq && eq->a.as<BufferLoadObj>() && !*equality &&
        SideEffect(eq->b) <= CallEffectKind::kReadState && !eq->b.as<BufferLoadObj>()) {
      *equality = eq;
    } else {
      *otherwise = *otherwise || e;
    }
  }
};

/// Replaces elements by what is known of them where the analyzer stands.
struct KnownElements : Mutator<KnownElements, BufferLoadObj, BufferObj> {
  const std::vector<Assumption>& assumptions;
  arith::Analyzer* analyzer;
  bool is_safe = true;  // all elements that are read exist
  KnownElements(const std::vector<Assumption>& a, arith::Analyzer* analyzer)
      : assumptions(a), analyzer(analyzer) {}

  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    BufferLoad load = Below<BufferLoad>(op);
    is_safe &= IsInBounds(analyzer, load->buffer, load->indices);
    for (const Assumption& a : assumptions) {
      if (!a.buffer.same_as(op->buffer)) continue;
      Map<Var, PrimExpr> here;
      for (size_t i = 0; i < a.indices.size(); ++i) here.Set(a.indices[i], load->indices[i]);
      if (analyzer->CanProve(analyzer->Simplify(Substitute(a.condition, here))))
        return Substitute(a.value, here);
    }
    return load;
  }
};
inline bool IsAnyValue(const PrimExpr& e) {
  auto* call = e.as<CallObj>();
  return call && call->Is(builtin::undef());
}
/// Whether, where `condition` does not hold, `value` is `other` all the same and may be evaluated.
inline bool GivesSameWithout(const std::vector<Assumption>& assumptions, arith::Analyzer* analyzer,
                             const PrimExpr& condition, const PrimExpr& value,
                             const PrimExpr& other) {
  arith::ConstraintScope scope(analyzer, logical_not(StripLikely(condition)));
  KnownElements known(assumptions, analyzer);
  PrimExpr replaced = analyzer->Simplify(known.Mutate(value));
  if (!known.is_safe || SideEffect(value) > CallEffectKind::kReadState) return false;
  PrimExpr wanted = analyzer->Simplify(KnownElements(assumptions, analyzer).Mutate(other));
  return IsAnyValue(wanted) || ExprDeepEqual(replaced, wanted);
}

}  // namespace tvm::tir
