// SPDX-License-Identifier: Apache-2.0
// Moves conditions and lets out of the loops they do not depend on.
#include "../analyzed_mutator.h"
#include "../contents.h"
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

/// Replaces a condition by what it is known to be.
struct Decider : Mutator<Decider, PrimExprObj, IfThenElseObj, SeqStmtObj> {
  const PrimExpr& condition;
  bool value;
  Decider(const PrimExpr& condition, bool value) : condition(condition), value(value) {}
  ObjectRef Rewrite(const PrimExprObj* op) {
    PrimExpr e = ffi::GetRef<PrimExpr>(op);
    if (e.dtype().is_bool() && ExprDeepEqual(e, condition)) return MakeConst(e.dtype(), value);
    ObjectRef result = MapChildren(op, *this);
    if (result.get() == op) return result;
    if (auto* both = result.as<AndObj>()) return logical_and(both->a, both->b);
    if (auto* either = result.as<OrObj>()) return logical_or(either->a, either->b);
    if (auto* no = result.as<NotObj>()) return logical_not(no->a);
    if (auto* select = result.as<SelectObj>()) {
      if (IsTrue(select->condition)) return select->true_value;
      if (IsFalse(select->condition)) return select->false_value;
    }
    auto* call = result.as<CallObj>();
    if (call && call->Is(builtin::if_then_else())) {
      if (IsTrue(StripLikely(call->args[0]))) return call->args[1];
      if (IsFalse(StripLikely(call->args[0]))) return call->args[2];
    }
    return result;
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    PrimExpr cond = Mutate(op->condition);
    if (IsTrue(StripLikely(cond))) return Mutate(op->then_case);
    if (IsFalse(StripLikely(cond)))
      return op->else_case.has_value() ? Mutate(op->else_case.value()) : Evaluate::Nothing();
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const SeqStmtObj* op) {
    ObjectRef seq = MapChildren(op, *this);
    return seq.get() == op ? seq : ObjectRef(SeqStmt::Flatten(seq.as<SeqStmtObj>()->seq));
  }
};

struct Hoister : AnalyzedStmtMutator<Hoister, PrimExprObj, BufferObj> {
  using Base::Rewrite;
  int64_t conditionals, lets;
  bool made_copies = false;
  std::vector<const VarObj*> thread_vars;

  ObjectRef Rewrite(const PrimExprObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    auto iv = op->node.as<IterVar>();
    if (iv && op->attr_key == attr::kThreadExtent) thread_vars.push_back((*iv)->var.get());
    return Base::Rewrite(op);
  }
  ObjectRef Rewrite(const ForObj* op) {
    if (op->kind == ForKind::kThreadBinding) {
      thread_vars.push_back(op->loop_var.get());
      return Base::Rewrite(op);
    }
    For loop = Any(Base::Rewrite(op)).cast<For>();
    Stmt result = Hoisted(loop);
    return result.defined() ? result : loop;
  }
  /// Moves out what can be moved; undefined if nothing.
  Stmt Hoisted(For loop) {
    if (conditionals & kIfElseStmt) {
      if (Stmt result = HoistBranch(loop); result.defined()) return result;
      if (Stmt result = HoistFirst(loop); result.defined()) return result;
    }
    if (auto* let = loop->body.as<LetStmtObj>(); let && IsInvariant(let->value, loop->loop_var)) {
      For rest = loop;
      Edit(&rest)->body = let->body;
      Stmt hoisted = Hoisted(rest);
      auto* branch = hoisted.defined() ? hoisted.as<IfThenElseObj>() : nullptr;
      bool is_required =
          (lets & kRequiredByConditional) && branch && Uses(branch->condition, let->var);
      if ((lets & kLetStmt) || is_required)
        return LetStmt(let->var, let->value, hoisted.defined() ? hoisted : rest, let->span);
    }
    if (conditionals & (kIfElseExpr | kBooleanExpression)) {
      PrimExpr condition = FindCondition(loop);
      if (condition.defined()) return HoistCondition(loop, condition);
    }
    if (lets & kLetExpr) {
      if (Stmt result = HoistLet(loop); result.defined()) return result;
    }
    return Stmt();
  }
  /// Conditions on a thread's index are the same in a loop, but not all want them moved.
  bool MayMove(const PrimExpr& condition, const Var& var) const {
    if (!IsInvariant(condition, var)) return false;
    return (conditionals & kUsingBlockVar) || !UsesVar(condition, [&](const VarObj* v) {
             return std::find(thread_vars.begin(), thread_vars.end(), v) != thread_vars.end();
           });
  }
  /// A condition inside the loop, in an expression, that is the same in all iterations.
  PrimExpr FindCondition(const For& loop) {
    PrimExpr found;
    auto consider = [&](const PrimExpr& e) {
      PrimExpr cond = StripLikely(e);
      if (!found.defined() && cond.dtype().is_bool() && cond.dtype().is_scalar() &&
          !cond.as<IntImmObj>() && MayMove(cond, loop->loop_var) && !UsesInner(loop, cond))
        found = cond;
    };
    PostOrderVisit(loop->body, [&](const ObjectRef& node) {
      if (conditionals & kIfElseExpr) {
        auto* call = node.as<CallObj>();
        if (call && call->Is(builtin::if_then_else())) consider(call->args[0]);
        if (auto* select = node.as<SelectObj>()) consider(select->condition);
      }
      if (conditionals & kBooleanExpression) {
        if (auto* both = node.as<AndObj>()) {
          consider(both->a);
          consider(both->b);
        }
        if (auto* either = node.as<OrObj>()) {
          consider(either->a);
          consider(either->b);
        }
      }
    });
    return found;
  }
  /// for i: f(c)  ->  if c: for i: f(true) else: for i: f(false)
  Stmt HoistCondition(const For& loop, const PrimExpr& condition) {
    auto with = [&](bool value) -> Stmt {
      For copy = loop;
      Stmt body = Decider(condition, value).Mutate(loop->body);
      if (IsNothing(body)) return body;
      Edit(&copy)->body = body;
      Stmt more = Hoisted(copy);
      return more.defined() ? more : copy;
    };
    Stmt then_case = with(true), else_case = with(false);
    made_copies = true;
    if (IsNothing(else_case)) return IfThenElse(condition, then_case);
    return IfThenElse(condition, then_case, else_case);
  }
  /// for i: f(let v = x in e)  ->  v = x; for i: f(e)
  Stmt HoistLet(const For& loop) {
    Let found;
    PostOrderVisit(loop->body, [&](const ObjectRef& node) {
      auto* let = node.as<LetObj>();
      if (let && !found.defined() && IsInvariant(let->value, loop->loop_var) &&
          !UsesInner(loop, let->value))
        found = ffi::GetRef<Let>(let);
    });
    if (!found.defined()) return Stmt();
    struct Remover : Mutator<Remover, LetObj> {
      const LetObj* let;
      ObjectRef Rewrite(const LetObj* op) {
        return op == let ? (*this)(op->body) : MapChildren(op, *this);
      }
    } remove;
    remove.let = found.get();
    For rest = loop;
    Edit(&rest)->body = remove.Mutate(loop->body);
    Stmt more = Hoisted(rest);
    made_copies = true;  // another let may have had the same variable
    return LetStmt(found->var, found->value, more.defined() ? more : rest);
  }
  static bool UsesInner(const For& loop, const PrimExpr& e) {
    bool result = false;
    auto check = [&](const Var& v) { result |= Uses(e, v); };
    PostOrderVisit(loop->body, [&](const ObjectRef& node) {
      if (auto* f = node.as<ForObj>()) check(f->loop_var);
      if (auto* l = node.as<LetStmtObj>()) check(l->var);
      if (auto* l = node.as<LetObj>()) check(l->var);
      if (auto* b = node.as<BlockObj>())
        for (const IterVar& iv : b->iter_vars) check(iv->var);
    });
    return result;
  }
  /// for i: if c: body  ->  if c: for i: body
  Stmt HoistBranch(const For& loop) {
    auto* branch = loop->body.as<IfThenElseObj>();
    if (!branch || !MayMove(branch->condition, loop->loop_var)) return Stmt();
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
      append(both->a);
      append(both->b);
      return result;
    }
    auto* eq = cond.as<EQObj>();
    if (eq && IsZero(eq->b)) {
      auto not_negative = [&](const PrimExpr& e) { return analyzer.CanProveGreaterEqual(e, 0); };
      if (auto* sum = eq->a.as<AddObj>(); sum && not_negative(sum->a) && not_negative(sum->b)) {
        append(equal(sum->a, eq->b));
        append(equal(sum->b, eq->b));
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
  const Contents& contents = ContentsOf(func->body);
  if (!contents.Has<IfThenElseObj, LetStmtObj, LetObj, SelectObj, AndObj, OrObj>() &&
      !contents.Calls(builtin::if_then_else())) {
    return func;
  }
  Hoister hoist;
  hoist.conditionals = conditionals;
  hoist.lets = lets;
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
TVM_PASS(
    tir, HoistExpression,
    R"(Moves conditions and lets that do not change in a loop out of it. hoisted_conditionals and hoisted_let_bindings are sums of the flags HoistedConditionals and HoistedLetBindings.

before(A: T.Buffer((16,), "float32"), m: T.int32):
    for i in range(16):
        A[i] = T.if_then_else(m > 4, T.float32(1), T.float32(2))
after:
    if m > 4:
        for i in range(16):
            A[i] = 1.0
    else:
        for i in range(16):
            A[i] = 2.0)",
    Arg("hoisted_conditionals", 15), Arg("hoisted_let_bindings", 7))

PrimFunc HoistIfThenElse(PrimFunc func, Optional<String> variant,
                         bool support_block_scope_hoisting) {
  if (variant.has_value() && variant.value() != "basic") {
    TVM_FFI_THROW(ValueError) << "HoistIfThenElse: expected the variant 'basic' or none, got '"
                              << variant.value() << "'";
  }
  int conditionals = kIfElseStmt;
  if (support_block_scope_hoisting) conditionals |= kUsingBlockVar;
  return Hoist(std::move(func), conditionals, 0);
}
TVM_PASS(
    tir, HoistIfThenElse,
    R"(Moves conditions that do not change in a loop out of it, and what the first iteration begins with in front of it. Conditions on thread indices are moved with support_block_scope_hoisting only.

before(A: T.Buffer((16,), "float32"), m: T.int32):
    for i in range(16):
        if m > 4:
            A[i] = 1.0
after:
    if m > 4:
        for i in range(16):
            A[i] = 1.0

before(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    for k in range(8):
        if k == 0:
            C[0] = 0.0
        C[0] = C[0] + A[k]
after:
    C[0] = 0.0
    for k in range(8):
        C[0] = C[0] + A[k])",
    Arg("variant", nullptr), Arg("support_block_scope_hoisting", false))

PrimFunc HoistIfThenElseBasic(PrimFunc func) { return Hoist(std::move(func), kIfElseStmt, 0); }
TVM_PASS(tir, HoistIfThenElseBasic, R"(HoistIfThenElse(variant="basic").

before(A: T.Buffer((16,), "float32"), m: T.int32):
    for i in range(16):
        if m > 4:
            A[i] = 1.0
after:
    if m > 4:
        for i in range(16):
            A[i] = 1.0)")
}  // namespace tvm::tir
