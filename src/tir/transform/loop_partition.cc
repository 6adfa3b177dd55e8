// SPDX-License-Identifier: Apache-2.0
// Splits loops so that conditions which hold in most iterations need not be tested there.
#include "../analyzed_mutator.h"
#include "../any_stmt.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
using arith::IntSet;

/// Conditions below a loop that depend on its variable, and the loops between them and it.
struct ConditionFinder
    : Visitor<ConditionFinder, ForObj, IfThenElseObj, CallObj, LetStmtObj, BufferObj> {
  const VarObj* var;
  arith::DomMap inner;
  std::vector<std::pair<PrimExpr, arith::DomMap>> found;
  std::unordered_map<const VarObj*, bool> opaque;  // depend on more than loops
  bool choices = false;                            // those of if_then_else count as well

  void Add(const PrimExpr& cond) {
    if (auto* both = cond.as<AndObj>()) {
      Add(both->a);
      return Add(both->b);
    }
    auto* call = cond.as<CallObj>();
    if (call && call->Is(builtin::likely())) return Add(call->args[0]);
    bool is_opaque = SideEffect(cond) > CallEffectKind::kPure;
    bool uses = false;
    UsesVar(cond, [&](const VarObj* v) {
      uses |= v == var;
      is_opaque |= opaque.count(v) > 0;
      return false;
    });
    if (uses && !is_opaque) found.emplace_back(cond, inner);
  }
  void Visit(const ForObj* op) {
    IntSet set = arith::EvalSet(Range::FromMinExtent(op->min, op->extent), inner);
    inner.Set(op->loop_var, set);
    (*this)(op->body);
    inner.erase(op->loop_var);
  }
  void Visit(const IfThenElseObj* op) {
    Add(op->condition);
    VisitChildren(op, *this);
  }
  void Visit(const CallObj* op) {
    if (op->Is(builtin::likely()) || (choices && op->Is(builtin::if_then_else()))) Add(op->args[0]);
    VisitChildren(op, *this);
  }
  void Visit(const LetStmtObj* op) {
    opaque[op->var.get()] = true;
    VisitChildren(op, *this);
  }
  void Visit(const BufferObj*) {}
};

/// Replaces conditions by true.
struct ConditionRemover : Mutator<ConditionRemover, IfThenElseObj, CallObj, AndObj, LTObj, LEObj,
                                  GTObj, GEObj, EQObj, NEObj> {
  const std::vector<PrimExpr>& proved;
  explicit ConditionRemover(const std::vector<PrimExpr>& proved) : proved(proved) {}
  bool IsProved(const PrimExprObj* e) const {
    for (const PrimExpr& p : proved) {
      if (p.get() == e) return true;
    }
    return false;
  }
  template <class N>
  ObjectRef Compare(const N* op) {
    return IsProved(op) ? ObjectRef(const_true()) : MapChildren(op, *this);
  }
  ObjectRef Rewrite(const LTObj* op) { return Compare(op); }
  ObjectRef Rewrite(const LEObj* op) { return Compare(op); }
  ObjectRef Rewrite(const GTObj* op) { return Compare(op); }
  ObjectRef Rewrite(const GEObj* op) { return Compare(op); }
  ObjectRef Rewrite(const EQObj* op) { return Compare(op); }
  ObjectRef Rewrite(const NEObj* op) { return Compare(op); }
  ObjectRef Rewrite(const AndObj* op) { return logical_and(Mutate(op->a), Mutate(op->b)); }
  ObjectRef Rewrite(const CallObj* op) {
    ObjectRef call = MapChildren(op, *this);
    if (call.get() != op && op->Is(builtin::likely())) return likely(call.as<CallObj>()->args[0]);
    if (call.get() != op && op->Is(builtin::if_then_else())) {
      auto& args = call.as<CallObj>()->args;
      return if_then_else(args[0], args[1], args[2]);
    }
    return call;
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    PrimExpr cond = Mutate(op->condition);
    if (IsTrue(cond)) return Mutate(op->then_case);
    return MapChildren(op, *this);
  }
};

struct Partitioner : AnalyzedStmtMutator<Partitioner> {
  using Base::Rewrite;
  bool partition_const_loop = false, keep_single = false, unroll_hinted = false;
  bool made_copies = false;
  arith::DomMap outer;

  ObjectRef Rewrite(const ForObj* op) {
    bool is_const = op->min.as<IntImmObj>() && op->extent.as<IntImmObj>();
    bool hinted = op->annotations.count("pragma_loop_partition_hint");
    bool may = op->kind == ForKind::kSerial && op->HasTrivialStep() &&
               (!is_const || partition_const_loop || hinted) &&
               !op->annotations.count("irregular_loop_mark") && !HasJumps(op->body);
    if (may) {
      if (Stmt result = TryPartition(op, partition_const_loop || hinted); result.defined())
        return result;
    }
    if (!hinted) return Inside(op);
    For loop = ffi::GetRef<For>(op);
    auto* n = Edit(&loop);
    n->annotations.erase("pragma_loop_partition_hint");
    if (may && unroll_hinted) n->kind = ForKind::kUnrolled;
    return Inside(loop.get());
  }
  ObjectRef Inside(const ForObj* op) {
    outer.Set(op->loop_var, IntSet::FromMinExtent(op->min, op->extent));
    ObjectRef loop = Base::Rewrite(op);
    outer.erase(op->loop_var);
    return loop;
  }
  Stmt TryPartition(const ForObj* op, bool choices) {
    ConditionFinder find;
    find.choices = choices;
    find.var = op->loop_var.get();
    find(op->body);
    PrimExpr begin = op->min, end = op->min + op->extent;
    PrimExpr low, high;
    std::vector<PrimExpr> proved;
    for (const auto& [cond, inner] : find.found) {
      IntSet set = arith::DeduceBound(op->loop_var, cond, outer, inner);
      if (set.IsNothing() || set.IsEverything()) continue;
      if (!set.HasLowerBound() && !set.HasUpperBound()) continue;
      if (set.HasLowerBound()) {
        PrimExpr bound = cast(begin.dtype(), set.min());
        low = low.defined() ? max(low, bound) : bound;
      }
      if (set.HasUpperBound()) {
        PrimExpr bound = cast(begin.dtype(), set.max()) + 1;
        high = high.defined() ? min(high, bound) : bound;
      }
      proved.push_back(cond);
    }
    if (proved.empty()) return Stmt();
    // [begin, low) [low, high) [high, end), each possibly empty.
    PrimExpr first = low.defined() ? analyzer.Simplify(min(max(low, begin), end)) : begin;
    PrimExpr last = high.defined() ? analyzer.Simplify(max(min(high, end), first)) : end;
    PrimExpr middle = analyzer.Simplify(last - first);
    if (analyzer.CanProve(less_equal(middle, MakeZero(middle.dtype())))) return Stmt();
    Array<Stmt> seq;
    auto add = [&](const PrimExpr& from, const PrimExpr& to, bool is_middle) {
      PrimExpr extent = analyzer.Simplify(to - from);
      if (analyzer.CanProve(less_equal(extent, MakeZero(extent.dtype())))) return;
      For loop = ffi::GetRef<For>(op);
      auto* n = Edit(&loop);
      n->min = from;
      n->extent = extent;
      n->annotations.erase("pragma_loop_partition_hint");
      if (is_middle) {
        ConditionRemover remove(proved);
        n->body = remove.Mutate(op->body);
        loop = Any(Inside(loop.get())).cast<For>();
      }
      seq.push_back(FromZero(loop));
    };
    add(begin, first, false);
    add(first, last, true);
    add(last, end, false);
    made_copies |= seq.size() > 1;
    return SeqStmt::Flatten(seq);
  }
  /// The loop counting from 0; a single iteration is its body.
  Stmt FromZero(For loop) {
    if (IsOne(loop->extent) && !keep_single && loop->annotations.empty())
      return Substitute(loop->body, {{loop->loop_var, loop->min}});
    if (IsZero(loop->min)) return loop;
    auto* n = Edit(&loop);
    n->body = Substitute(n->body, {{n->loop_var, n->loop_var + n->min}});
    n->min = MakeZero(n->min.dtype());
    return loop;
  }
};
}  // namespace

PrimFunc LoopPartition(PrimFunc func, bool partition_const_loop,
                       bool no_unroll_loop_with_extent_one,
                       bool unroll_loop_with_partition_hint_no_interval) {
  Partitioner partition;
  partition.partition_const_loop = partition_const_loop;
  partition.keep_single = no_unroll_loop_with_extent_one;
  partition.unroll_hinted = unroll_loop_with_partition_hint_no_interval;
  partition.LearnParams(func);
  func = RewriteBody(std::move(func), partition);
  return partition.made_copies ? ConvertSSA(std::move(func)) : func;
}
TVM_PASS(
    tir, LoopPartition,
    R"(Splits loops so that conditions are tested only where they may fail. Loops of constant extent, and those with conditions of if_then_else, are split with partition_const_loop or the annotation pragma_loop_partition_hint. The parts count from 0; a single iteration is no loop, unless no_unroll_loop_with_extent_one. With unroll_loop_with_partition_hint_no_interval a loop that has the annotation and cannot be split is unrolled.

config: {"tir.LoopPartition": {"partition_const_loop": True}}
before(A: T.Buffer((14,), "float32")):
    for i in T.serial(4, annotations={"pragma_loop_partition_hint": 1}):
        for j in range(4):
            if T.likely(i * 4 + j < 14):
                A[i * 4 + j] = 1.0
after:
    for i, j in T.grid(3, 4):
        A[i * 4 + j] = T.float32(1)
    for j in range(4):
        if T.likely(12 + j < 14):
            A[12 + j] = T.float32(1))",
    Arg("partition_const_loop", false), Arg("no_unroll_loop_with_extent_one", false),
    Arg("unroll_loop_with_partition_hint_no_interval", false))
}  // namespace tvm::tir
