// SPDX-License-Identifier: Apache-2.0
// Indices of buffers are checked before they are used: those that come from data, or all.
#pragma once
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tir/analyzed_mutator.h"
#include "tir/any_stmt.h"

namespace tvm::tir {

/// A check that is to run before a statement: raises when `fails` holds.
struct IndexCheck {
  PrimExpr fails;
  Stmt raise;
};

struct IndexChecker : AnalyzedMutator<IndexChecker, BufferLoadObj, BufferStoreObj, EvaluateObj,
                                      WhileObj, BufferObj> {
  using Above = AnalyzedMutator<IndexChecker, BufferLoadObj, BufferStoreObj, EvaluateObj, WhileObj,
                                BufferObj>;
  explicit IndexChecker(const PrimFunc& func, bool every = false)
      : every(every),
        in_kernel(HasThreadLoops(func->body) || HasAttr(func->body, attr::kThreadExtent)) {
    LearnParams(func);
  }
  const bool every;                // index, and not those alone that come from data
  const bool in_kernel;            // which cannot stop: what would use the index is left out
  std::vector<IndexCheck> checks;  // of the statement that is being looked at
  PrimExpr when = const_true();    // what holds where the expression is evaluated

  // ---- expressions ------------------------------------------------------------------------------
  bool IsFromData(const PrimExpr& index) const {
    bool found = false;
    PreOrderVisit(index, [&](const ObjectRef& node) {
      auto* var = node.as<VarObj>();
      found = found || node.as<BufferLoadObj>() || (var && data_vars.count(var));
      return !found;
    });
    return found;
  }
  void Check(const Buffer& buffer, const Array<PrimExpr>& indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      PrimExpr first = indices[d], last = first;
      if (!every && (!first.dtype().is_scalar() || !IsFromData(first))) continue;
      if (auto* ramp = indices[d].as<RampObj>()) {
        auto stride = AsConstInt(ramp->stride);
        if (ramp->dtype.is_scalable() || !stride || *stride < 0) continue;
        first = ramp->base;
        last = first + ramp->stride * MakeConst(ramp->stride.dtype(), ramp->dtype.lanes() - 1);
      } else if (!first.dtype().is_scalar()) {
        continue;
      }
      PrimExpr extent = cast(last.dtype(), buffer->shape[d]), zero = MakeZero(first.dtype());
      bool low = analyzer.CanProve(first >= zero), high = analyzer.CanProve(last < extent);
      if (low && high) continue;
      PrimExpr inside = low ? last < extent : high ? zero <= first : zero <= first && last < extent;
      PrimExpr told = first.same_as(last) ? last : Select(first < zero, first, last);
      std::string text = "expected index " + std::to_string(d) + " of buffer " +
                         std::string(buffer->name) + " from 0 to below %lld, got %lld";
      PrimExpr raise = Call(DataType::Int(32), builtin::tvm_raise_error(),
                            {StringImm("IndexError"), StringImm(text),
                             cast(DataType::Int(64), extent), cast(DataType::Int(64), told)});
      checks.push_back({when && logical_not(likely(inside)), Evaluate(raise)});
    }
  }
  template <class F>
  void Where(const PrimExpr& cond, F&& visit) {
    arith::ConstraintScope scope(&analyzer, StripLikely(cond));
    PrimExpr outer = std::exchange(when, when && cond);
    visit();
    when = outer;
  }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    for (const PrimExpr& i : op->indices) Mutate(i);  // an index that is read is checked first
    Check(op->buffer, op->indices);
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const SelectObj* op) {
    if (every) return MapChildren(op, *this);  // both values are computed
    Mutate(op->condition);
    if (!op->condition.dtype().is_scalar()) return ffi::GetRef<ObjectRef>(op);
    Where(op->condition, [&] { Mutate(op->true_value); });
    Where(logical_not(op->condition), [&] { Mutate(op->false_value); });
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const CallObj* op) {
    if (op->Is(builtin::address_of())) return ffi::GetRef<ObjectRef>(op);
    if (!op->Is(builtin::if_then_else())) return MapChildren(op, *this);
    Mutate(op->args[0]);
    Where(op->args[0], [&] { Mutate(op->args[1]); });
    Where(logical_not(op->args[0]), [&] { Mutate(op->args[2]); });
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const LetObj* op) {
    Mutate(op->value);
    size_t begin = checks.size();
    Mutate(op->body);
    // The checks run before the statement, where the variable is not known.
    Map<Var, PrimExpr> value{{op->var, op->value}};
    for (size_t i = begin; i < checks.size(); ++i) {
      checks[i].fails = Substitute(checks[i].fails, value);
      checks[i].raise = Substitute(checks[i].raise, value);
    }
    return ffi::GetRef<ObjectRef>(op);
  }

  // ---- statements -------------------------------------------------------------------------------
  using Above::Rewrite;
  template <class F>
  std::vector<IndexCheck> ChecksOf(F&& visit) {
    std::vector<IndexCheck> outer = std::exchange(checks, {});
    visit();
    return std::exchange(checks, std::move(outer));
  }
  /// `stmt` behind the checks that `visit` finds.
  template <class F>
  Stmt Guarded(const Stmt& stmt, F&& visit) {
    std::vector<IndexCheck> found = ChecksOf(visit);
    if (in_kernel) {
      Stmt rest = stmt;
      for (auto check = found.rbegin(); check != found.rend(); ++check)
        rest = IfThenElse(check->fails, check->raise, rest);
      return rest;
    }
    Array<Stmt> seq;
    for (const IndexCheck& check : found) {
      Stmt statement = IfThenElse(check.fails, check.raise);
      made_.insert(statement.get());
      kept_.push_back(statement);
      seq.push_back(statement);
    }
    if (seq.empty()) return stmt;
    seq.push_back(stmt);
    return SeqStmt::Flatten(seq);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    return Guarded(ffi::GetRef<Stmt>(op), [&] {
      Mutate(op->value);
      for (const PrimExpr& i : op->indices) Mutate(i);
      Check(op->buffer, op->indices);
    });
  }
  ObjectRef Rewrite(const EvaluateObj* op) {
    return Guarded(ffi::GetRef<Stmt>(op), [&] { Mutate(op->value); });
  }
  ObjectRef Rewrite(const LetStmtObj* op) {
    Stmt let = Any(RewriteLet(op, op->value)).cast<Stmt>();
    return Guarded(let, [&] { Mutate(op->value); });
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    Stmt branches = Any(RewriteIf(op, op->condition)).cast<Stmt>();
    return Guarded(branches, [&] { Mutate(op->condition); });
  }
  /// A condition is evaluated again and again: before the loop, and behind each iteration.
  ObjectRef Rewrite(const WhileObj* op) {
    Stmt body = Mutate(op->body);
    Stmt nothing = Evaluate::Nothing();
    Stmt again = Guarded(nothing, [&] { Mutate(op->condition); });
    if (again.same_as(nothing) && body.same_as(op->body)) return ffi::GetRef<ObjectRef>(op);
    if (again.same_as(nothing)) return While(op->condition, body, op->span);
    PrimExpr condition = op->condition;
    if (in_kernel) {
      std::vector<IndexCheck> found = ChecksOf([&] { Mutate(op->condition); });
      for (auto check = found.rbegin(); check != found.rend(); ++check)
        condition = if_then_else(check->fails, const_false(), condition);
    }
    return SeqStmt::Flatten({again, While(condition, SeqStmt::Flatten({body, again}), op->span)});
  }
  /// Checks at the beginning of a body that are the same in all iterations run before the loop.
  ObjectRef Rewrite(const ForObj* op) {
    For loop = Any(Above::Rewrite(op)).cast<For>();
    auto* seq = loop->body.as<SeqStmtObj>();
    if (!seq) return loop;
    Array<Stmt> before, rest;
    for (const Stmt& stmt : seq->seq) {
      bool leaves = rest.empty() && made_.count(stmt.get()) && IsInvariant(stmt, loop);
      (leaves ? before : rest).push_back(stmt);
    }
    if (before.empty()) return loop;
    auto extent = AsConstInt(loop->extent);
    Array<Stmt> moved = before.Map([&](const Stmt& stmt) -> Stmt {
      if (extent && *extent > 0) return stmt;
      auto* check = stmt.as<IfThenElseObj>();
      PrimExpr some = MakeZero(loop->extent.dtype()) < loop->extent;
      Stmt under = IfThenElse(some && check->condition, check->then_case);
      made_.insert(under.get());
      kept_.push_back(under);
      return under;
    });
    Edit(&loop)->body = SeqStmt::Flatten(rest);
    moved.push_back(loop);
    return SeqStmt::Flatten(moved);
  }

 private:
  /// Whether a check neither uses the loop's variable nor reads what the loop writes.
  static bool IsInvariant(const Stmt& check, const For& loop) {
    std::unordered_set<const Object*> read;
    bool uses = false;
    PreOrderVisit(check, [&](const ObjectRef& node) {
      if (auto* load = node.as<BufferLoadObj>()) read.insert(load->buffer->data.get());
      uses = uses || node.same_as(loop->loop_var);
      return true;
    });
    auto writes = [&](const BufferStoreObj* store) {
      return read.count(store->buffer->data.get()) > 0;
    };
    return !uses && !AnyStmt<BufferStoreObj>(loop->body, writes);
  }
  std::unordered_set<const Object*> made_;
  std::vector<Stmt> kept_;  // the checks stay alive as long as they are known by address
};

}  // namespace tvm::tir
