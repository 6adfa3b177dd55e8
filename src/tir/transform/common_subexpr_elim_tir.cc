// SPDX-License-Identifier: Apache-2.0
// Computes an expression that occurs several times in a statement once.
#include <algorithm>

#include "../analyzed_mutator.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
/// vscale() or a multiple of it: what the number of lanes of a vector must be, not be the value of.
bool IsLanes(const PrimExpr& e) {
  auto is_vscale = [](const PrimExpr& x) {
    auto* call = x.as<CallObj>();
    return call && call->Is(builtin::vscale());
  };
  auto* mul = e.as<MulObj>();
  return is_vscale(e) || (mul && ((is_vscale(mul->a) && mul->b.as<IntImmObj>()) ||
                                  (is_vscale(mul->b) && mul->a.as<IntImmObj>())));
}

/// What is worth a variable: arithmetic without memory or effects, evaluated wherever the statement
/// runs. Vectors, constants, variables and casts of them are not.
bool IsWorthIt(const PrimExpr& e) {
  if (!e.dtype().is_scalar() || e.dtype().is_handle() || e.dtype().is_bool()) return false;
  if (e.as<VarObj>() || e.as<IntImmObj>() || e.as<FloatImmObj>() || e.as<StringImmObj>() ||
      e.as<BufferLoadObj>()) {
    return false;
  }
  if (auto* c = e.as<CastObj>(); c && (c->value.as<VarObj>() || c->value.as<IntImmObj>()))
    return false;
  if (IsLanes(e)) return false;
  return SideEffect(e) <= CallEffectKind::kPure;
}

/// Agrees with ExprDeepEqual. What binds variables is equal up to their names, and counts by its
/// class alone.
struct ExprHash {
  static void Add(const ObjectRef& node, size_t* hash) {
    auto mix = [&](size_t value) { *hash = (*hash ^ value) * 0x9E3779B97F4A7C15u; };
    mix(static_cast<size_t>(node->type_index()));
    if (auto* imm = node.as<IntImmObj>()) return mix(static_cast<size_t>(imm->value));
    if (node.as<VarObj>()) return mix(reinterpret_cast<size_t>(node.get()));
    if (!node.as<PrimExprObj>() || node.as<LetObj>() || node.as<ReduceObj>()) return;
    Recurse([&] { VisitChildren(node.get(), [&](const ObjectRef& child) { Add(child, hash); }); });
  }
  size_t operator()(const PrimExpr& e) const {
    size_t hash = 0;
    Add(e, &hash);
    return hash ^ (hash >> 32);
  }
};
struct ExprEqual {
  bool operator()(const PrimExpr& a, const PrimExpr& b) const { return ExprDeepEqual(a, b); }
};

/// Subexpressions of one statement with how often each occurs; not below what binds variables, nor
/// where evaluation depends on a condition.
struct Counter
    : Visitor<Counter, PrimExprObj, BufferLoadObj, CallObj, LetObj, SelectObj, StmtObj, BufferObj> {
  bool by_value = false;
  arith::Analyzer* analyzer = nullptr;
  std::vector<std::pair<PrimExpr, int>> order;
  std::unordered_map<PrimExpr, size_t, ExprHash, ExprEqual> index;

  PrimExpr Key(const PrimExpr& e) const { return by_value ? analyzer->Simplify(e) : e; }
  void Visit(const PrimExprObj* op) {
    PrimExpr e = ffi::GetRef<PrimExpr>(op);
    if (IsWorthIt(e)) {
      auto [it, is_new] = index.try_emplace(Key(e), order.size());
      if (is_new) order.emplace_back(e, 0);
      // Below a repetition everything repeats: only the largest counts.
      if (++order[it->second].second > 1) return;
    }
    VisitChildren(op, *this);
  }
  void Visit(const BufferLoadObj* op) {
    for (const PrimExpr& i : op->indices) (*this)(i);
  }
  void Visit(const CallObj* op) {
    if (op->Is(builtin::if_then_else())) return (*this)(op->args[0]);
    if (!op->op.as<OpObj>() || EffectOf(op->op) == CallEffectKind::kPure)
      return Visit(static_cast<const PrimExprObj*>(op));
    VisitChildren(op, *this);
  }
  void Visit(const LetObj* op) { (*this)(op->value); }
  void Visit(const SelectObj* op) { Visit(static_cast<const PrimExprObj*>(op)); }
  void Visit(const StmtObj*) {}
  void Visit(const BufferObj*) {}
};

struct Replacer : Mutator<Replacer, PrimExprObj, BufferObj, StmtObj> {
  const Counter& counter;
  PrimExpr key, by;
  explicit Replacer(const Counter& counter) : counter(counter) {}
  ObjectRef Rewrite(const PrimExprObj* op) {
    PrimExpr e = ffi::GetRef<PrimExpr>(op);
    if (e.dtype() == key.dtype() && IsWorthIt(e) && ExprDeepEqual(counter.Key(e), key)) return by;
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const StmtObj* op) { return ffi::GetRef<ObjectRef>(op); }
};

struct Eliminator
    : AnalyzedStmtMutator<Eliminator, BufferStoreObj, EvaluateObj, PrimExprObj, BufferObj> {
  using Base::Rewrite;
  bool by_value = false;
  int made = 0;

  ObjectRef Rewrite(const PrimExprObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const BufferStoreObj* op) { return Share(ffi::GetRef<Stmt>(op)); }
  ObjectRef Rewrite(const EvaluateObj* op) { return Share(ffi::GetRef<Stmt>(op)); }

  Stmt Share(Stmt stmt) {
    std::vector<std::pair<Var, PrimExpr>> lets;
    // The largest repetition first; what is inside of it is then found in the let's value.
    for (;;) {
      Counter count;
      count.by_value = by_value;
      count.analyzer = &analyzer;
      VisitChildren(stmt.get(), count);
      // Not the value itself: by value, a part of it may be the same as the whole (x // 1 and x).
      for (const auto& [var, value] : lets) VisitChildren(value.get(), count);
      PrimExpr best;
      for (const auto& [e, n] : count.order) {
        if (n > 1) {
          best = e;
          break;
        }
      }
      if (!best.defined()) break;
      Replacer replace(count);
      replace.key = count.Key(best);
      // By value the simplified form is bound, or put in its place where it is not worth a name: an
      // occurrence may use names whose values have another one in them (v - v + 3 and 3).
      PrimExpr value = by_value ? replace.key : best;
      bool is_named = IsWorthIt(value);
      Var var;
      if (is_named) var = Var("cse_v" + std::to_string(++made), best.dtype());
      replace.by = is_named ? PrimExpr(var) : value;
      stmt = Any(MapChildren(stmt.get(), replace)).cast<Stmt>();
      for (auto& let : lets) let.second = replace.Mutate(let.second);
      if (is_named) lets.emplace_back(var, value);
    }
    // From the inside out: a let whose variable no value of those left uses.
    while (!lets.empty()) {
      auto is_used = [&](const auto& let) {
        return std::any_of(lets.begin(), lets.end(), [&](const auto& other) {
          return UsesVar(other.second, [&](const VarObj* v) { return v == let.first.get(); });
        });
      };
      auto next = std::find_if_not(lets.begin(), lets.end(), is_used);
      stmt = LetStmt(next->first, next->second, stmt);
      lets.erase(next);
    }
    return stmt;
  }
};
}  // namespace

PrimFunc CommonSubexprElimTIR(PrimFunc func, bool enable_cse_tir, bool identify_equiv_terms) {
  if (!enable_cse_tir) return func;
  Eliminator eliminate;
  eliminate.by_value = identify_equiv_terms;
  eliminate.LearnParams(func);
  return RewriteBody(std::move(func), eliminate);
}
TVM_PASS(tir, CommonSubexprElimTIR,
         R"(Binds what occurs several times in a statement to a variable.

before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i, j in T.grid(16, 4):
        B[i * 4 + j] = A[i * 4 + j]
after:
    for i, j in T.grid(16, 4):
        cse_v1: T.int32 = i * 4 + j
        B[cse_v1] = A[cse_v1]

With identify_equiv_terms also expressions that simplify to the same.)",
         Arg("enable_cse_tir", true), Arg("identify_equiv_terms", false))
}  // namespace tvm::tir
