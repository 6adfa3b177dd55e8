// SPDX-License-Identifier: Apache-2.0
// Moves conditions and lets out of the loops they do not depend on.
#include "../analyzed_mutator.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
/// Which conditions and lets are moved. The values are part of the interface.
enum HoistedConditionals : int64_t {
  kIfElseStmt = 1,
  kIfElseExpr = 2,
  kBooleanExpression = 4,
  kUsingBlockVar = 8
};
enum HoistedLetBindings : int64_t { kRequiredByConditional = 1, kLetStmt = 2, kLetExpr = 4 };

bool Uses(const ObjectRef& e, const Var& var) {
  return UsesVar(e, [&](const VarObj* v) { return v == var.get(); });
}
/// A value that is the same wherever it is evaluated in the loop, and may be evaluated when the
/// loop does not run.
bool IsInvariant(const PrimExpr& e, const Var& var) {
  return !Uses(e, var) && SideEffect(e) <= CallEffectKind::kPure;
}

struct Hoister : AnalyzedStmtMutator<Hoister, PrimExprObj, BufferObj> {
  using Base::Rewrite;
  int64_t conditionals, lets;
  bool made_copies = false;

  ObjectRef Rewrite(const PrimExprObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }

  ObjectRef Rewrite(const ForObj* op) {
    For loop = Any(Base::Rewrite(op)).cast<For>();
    if (op->kind == ForKind::kThreadBinding) return loop;
    if (conditionals & kIfElseStmt) {
      if (Stmt result = HoistBranch(loop); result.defined()) return result;
      if (Stmt result = HoistFirst(loop); result.defined()) return result;
    }
    if (auto* let = loop->body.as<LetStmtObj>();
        let && (lets & kLetStmt) && IsInvariant(let->value, loop->loop_var)) {
      LetStmt around(let->var, let->value, loop, let->span);
      Stmt body = let->body;
      Edit(&loop)->body = body;
      Edit(&around)->body = Mutate(loop);
      return around;
    }
    return loop;
  }
  /// for i: if c: body  ->  if c: for i: body
  Stmt HoistBranch(const For& loop) {
    auto* branch = loop->body.as<IfThenElseObj>();
    if (!branch || !IsInvariant(branch->condition, loop->loop_var)) return Stmt();
    auto with = [&](const Stmt& body) -> Stmt {
      For copy = loop;
      Edit(&copy)->body = body;
      return copy;
    };
    Optional<Stmt> else_case;
    if (branch->else_case.has_value())
      else_case = with(branch->else_case.value()), made_copies = true;
    return IfThenElse(branch->condition, with(branch->then_case), else_case, branch->span);
  }
  /// for k: {if k == 0 and c: first; rest}  ->  if c: first; for k: rest
  Stmt HoistFirst(const For& loop) {
    auto* seq = loop->body.as<SeqStmtObj>();
    auto* branch = seq ? seq->seq[0].as<IfThenElseObj>() : nullptr;
    bool in_order = loop->kind == ForKind::kSerial || loop->kind == ForKind::kUnrolled;
    if (!branch || branch->else_case.has_value() || !in_order) return Stmt();
    // What is moved may change what the loop's bounds read.
    if (SideEffect(loop->min) > CallEffectKind::kPure ||
        SideEffect(loop->extent) > CallEffectKind::kPure)
      return Stmt();
    const Var& k = loop->loop_var;
    PrimExpr others = const_true();
    bool found = false;
    for (const PrimExpr& term : Terms(StripLikely(branch->condition))) {
      if (auto* eq = term.as<EQObj>();
          eq && eq->a.same_as(k) && analyzer.CanProveEqual(eq->b, loop->min)) {
        found = true;
      } else if (IsInvariant(term, k)) {
        others = others && term;
      } else {
        return Stmt();
      }
    }
    if (!found) return Stmt();
    if (!analyzer.CanProve(loop->extent > MakeZero(loop->extent.dtype()))) {
      others = loop->extent > MakeZero(loop->extent.dtype()) && others;
    }
    Stmt first = Substitute(branch->then_case,
                            [&](const Var& v) { return v.same_as(k) ? loop->min : PrimExpr(); });
    if (!IsTrue(others)) first = IfThenElse(others, first);
    For rest = loop;
    Edit(&rest)->body = SeqStmt::Flatten(Array<Stmt>(seq->seq.begin() + 1, seq->seq.end()));
    return SeqStmt::Flatten({first, rest});
  }
  /// The parts of a conjunction; a sum of numbers that are not negative is 0 where each of them is.
  std::vector<PrimExpr> Terms(const PrimExpr& cond) {
    std::vector<PrimExpr> result;
    auto append = [&](const PrimExpr& e) {
      for (const PrimExpr& t : Terms(e)) result.push_back(t);
    };
    if (auto* both = cond.as<AndObj>()) {
      append(both->a), append(both->b);
      return result;
    }
    auto* eq = cond.as<EQObj>();
    if (eq && IsZero(eq->b)) {
      auto not_negative = [&](const PrimExpr& e) { return analyzer.CanProveGreaterEqual(e, 0); };
      if (auto* sum = eq->a.as<AddObj>(); sum && not_negative(sum->a) && not_negative(sum->b)) {
        append(equal(sum->a, eq->b)), append(equal(sum->b, eq->b));
        return result;
      }
      if (auto* product = eq->a.as<MulObj>(); product && AsConstInt(product->b).value_or(0) > 0) {
        append(equal(product->a, eq->b));
        return result;
      }
    }
    return {cond};
  }
};

PrimFunc Hoist(PrimFunc func, int64_t conditionals, int64_t lets) {
  Hoister hoist;
  hoist.conditionals = conditionals, hoist.lets = lets;
  hoist.LearnParams(func);
  func = RewriteBody(std::move(func), hoist);
  // Both sides of a condition may have a copy of the loop around it.
  return hoist.made_copies ? ConvertSSA(std::move(func)) : func;
}
}  // namespace

PrimFunc HoistExpression(PrimFunc func, int64_t hoisted_conditionals,
                         int64_t hoisted_let_bindings) {
  return Hoist(std::move(func), hoisted_conditionals, hoisted_let_bindings);
}
TVM_PASS(tir, HoistExpression,
         "Moves conditions and lets that do not change in a loop out of it.\n\n"
         "    for i in range(n):            if m > 4:\n"
         "      if m > 4: A[i] = x     ->     for i in range(n): A[i] = x\n\n"
         "hoisted_conditionals and hoisted_let_bindings are sums of the flags of the same names.",
         Arg("hoisted_conditionals", 15), Arg("hoisted_let_bindings", 7))

PrimFunc HoistIfThenElse(PrimFunc func, Optional<String> variant) {
  if (variant.has_value() && variant.value() != "basic") {
    TVM_FFI_THROW(ValueError) << "HoistIfThenElse: expected the variant 'basic' or none, got '"
                              << variant.value() << "'";
  }
  return Hoist(std::move(func), kIfElseStmt, 0);
}
TVM_PASS(tir, HoistIfThenElse,
         "Moves conditions that do not change in a loop out of it, and what the first iteration "
         "begins with in front "
         "of it.\n\n"
         "    for i in range(n):            if m > 4:\n"
         "      if m > 4: A[i] = x     ->     for i in range(n): A[i] = x\n\n"
         "    for k in range(8):            C[0] = 0.0\n"
         "      if k == 0: C[0] = 0.0  ->   for k in range(8): C[0] = C[0] + A[k]\n"
         "      C[0] = C[0] + A[k]",
         Arg("variant", nullptr))
}  // namespace tvm::tir
