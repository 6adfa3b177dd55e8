// SPDX-License-Identifier: Apache-2.0
// What primitives on loops share: checks of their form, new variables in bindings, predicates.
#include "loops.h"

#include <algorithm>

#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {

const char* Name(ForKind kind) {
  constexpr const char* kNames[] = {"serial", "parallel", "vectorized", "unrolled", "thread-bound"};
  return kNames[static_cast<int>(kind)];
}

/// Bindings as maps of iterators, as simple as they can be and still be seen to be one:
/// (a * 12 + b) % 8 is simpler as (a * 4 + b) % 8, but then no longer seen to belong to
/// (a * 12 + b) // 8.
Array<PrimExpr> SimplifyBindings(const Array<PrimExpr>& values, const Map<Var, Range>& domains,
                                 const PrimExpr& predicate, bool unit_loops) {
  auto detect = [&](const Array<PrimExpr>& exprs) {
    arith::Analyzer analyzer;
    return arith::DetectIterMap(exprs, domains, predicate, arith::IterMapLevel::kSurjective,
                                &analyzer, unit_loops)
        ->indices;
  };
  arith::Analyzer analyzer;  // knows nothing of loops of one iteration that shall stay
  auto simplify = [&](const Array<PrimExpr>& exprs) {
    return exprs.Map([&](const PrimExpr& e) { return analyzer.Simplify(e); });
  };
  auto indices = detect(values);
  for (const auto& [var, domain] : domains) {
    if (unit_loops || !IsOne(domain->extent)) analyzer.Bind(var, domain, true);
  }
  if (indices.empty()) return simplify(values);
  Array<PrimExpr> normal = indices.Map(
      [](const arith::IterSumExpr& sum) -> PrimExpr { return arith::NormalizeIterMapToExpr(sum); });
  Array<PrimExpr> simple = simplify(normal);
  bool is_same = std::equal(simple.begin(), simple.end(), normal.begin(), ExprDeepEqual);
  return is_same || !detect(simple).empty() ? simple : normal;
}

bool IsAtom(const PrimExpr& e) {
  return e->IsInstance<VarObj>() || e->IsInstance<FloorDivObj>() || e->IsInstance<FloorModObj>();
}

/// Variables everywhere, simplified where blocks are bound.
class Rewriter : public Mutator<Rewriter, VarObj, BlockRealizeObj, ForObj> {
 public:
  explicit Rewriter(LoopVarRewrite* what) : what_(*what), domains_(what->domains) {}

  ObjectRef Rewrite(const VarObj* var) {
    auto it = what_.values.find(ffi::GetRef<Var>(var));
    return it == what_.values.end() ? ffi::GetRef<ObjectRef>(var) : ObjectRef((*it).second);
  }
  /// Whether the value, a sum of variables with scales, stays as simple as it is: what replaces one
  /// of them does not fall into terms, and there are no two that could join.
  bool IsSimple(const PrimExpr& value) const {
    int replaced = 0;
    auto term = [&](auto&& self, const PrimExpr& e) -> bool {
      if (auto* sum = e.as<AddObj>()) return self(self, sum->a) && self(self, sum->b);
      auto* product = e.as<MulObj>();
      if (product && !product->b->IsInstance<IntImmObj>()) return false;
      auto var = (product ? product->a : e).as<Var>();
      if (!var) return e->IsInstance<IntImmObj>();
      auto it = what_.values.find(*var);
      if (it == what_.values.end()) return true;
      return ++replaced == 1 && IsAtom((*it).second);
    };
    return term(term, value);
  }
  ObjectRef Rewrite(const ForObj* loop) {
    if (depth_ == 0) {
      domains_.Set(loop->loop_var, Range::FromMinExtent(Mutate(loop->min), Mutate(loop->extent)));
    }
    return MapChildren(loop, *this);
  }
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    ++depth_;
    Block block = Mutate(op->block);
    --depth_;
    if (!block.same_as(op->block)) what_.reuse[block.get()] = op->block;
    PrimExpr predicate = Mutate(op->predicate);
    bool simplify = false;
    auto values = op->iter_values.Map([&](const PrimExpr& value) {
      PrimExpr now = Mutate(value);
      // A plain variable became the sum or quotient it is meant to be.
      simplify |= !now.same_as(value) && !value->IsInstance<VarObj>() && !IsSimple(value);
      return now;
    });
    if (depth_ == 0 &&
        (simplify || (what_.simplify_unit_loops && !values.same_as(op->iter_values)))) {
      PrimExpr known = what_.predicate.defined() ? predicate && what_.predicate : predicate;
      values = SimplifyBindings(values, domains_, known, what_.simplify_unit_loops);
    }
    if (depth_ == 0 && !predicate.same_as(op->predicate)) {
      for (const auto& [var, dom] : domains_) analyzer_.Bind(var, dom, true);
      predicate = analyzer_.Simplify(predicate);
    }
    if (block.same_as(op->block) && predicate.same_as(op->predicate) &&
        values.same_as(op->iter_values)) {
      return ffi::GetRef<ObjectRef>(op);
    }
    return BlockRealize(values, predicate, block, op->span);
  }

 private:
  LoopVarRewrite& what_;
  Map<Var, Range> domains_;
  arith::Analyzer analyzer_;
  int depth_ = 0;  // blocks around
};

bool ReadsMemory(const PrimExpr& e) {
  bool reads = false;
  PostOrderVisit(e, [&](const ObjectRef& n) { reads |= n->IsInstance<BufferLoadObj>(); });
  return reads;
}

}  // namespace

void RequirePlain(const ForObj* loop, bool is_made_serial) {
  auto about = ffi::GetRef<ObjectRef>(loop);
  std::string name = "loop " + std::string(loop->loop_var->name_hint);
  bool may_be = loop->kind == ForKind::kSerial ||
                (is_made_serial && loop->kind != ForKind::kThreadBinding);
  if (!may_be) {
    Refuse(Text("expected a serial loop, got ", name, ", which is ", Name(loop->kind)), {about});
  }
  if (!loop->annotations.empty()) {
    Refuse(Text("expected a loop without annotations, got ", name, " with '",
                (*loop->annotations.begin()).first, "'"),
           {about});
  }
  if (!loop->HasTrivialStep()) {
    Refuse(Text("expected a loop with steps of 1, got ", name), {about});
  }
}

Map<Var, Range> DomainsOf(const State& state, const std::vector<LoopId>& loops) {
  Map<Var, Range> domains;
  for (LoopId id : loops) {
    const ForObj* loop = state.loop(id);
    domains.Set(loop->loop_var, Range::FromMinExtent(loop->min, loop->extent));
  }
  return domains;
}

void RequireDistinct(const State& state, const std::vector<LoopId>& loops) {
  if (loops.empty()) Refuse("expected at least one loop, got none");
  for (size_t i = 0; i < loops.size(); ++i) {
    if (std::find(loops.begin() + i + 1, loops.end(), loops[i]) != loops.end()) {
      Refuse(Text("expected each loop once, got ", state.loop(loops[i])->loop_var->name_hint,
                  " twice"),
             {state.stmt(loops[i])});
    }
  }
}

std::vector<LoopId> RequireOneNest(const State& state, const std::vector<LoopId>& loops) {
  RequireDistinct(state, loops);
  // The innermost one has all the others above it.
  LoopId inner = loops[0];
  for (LoopId loop : loops) {
    if (state.IsAncestor(inner, loop)) inner = loop;
  }
  std::vector<LoopId> nest;
  size_t left = loops.size();
  for (NodeId id = inner; left > 0; id = state.parent(id)) {
    if (id == kNoNode || state.IsBlock(id)) {
      std::vector<ObjectRef> about;
      for (LoopId loop : loops) about.push_back(state.stmt(loop));
      Refuse("expected loops of one nest, each around the next, got loops that are not", about);
    }
    if (!nest.empty() && !state.loop({id})->body.same_as(state.stmt(nest.back()))) {
      Refuse(Text("expected loop ", state.loop(nest.back())->loop_var->name_hint,
                  " to be the only statement in loop ", state.loop({id})->loop_var->name_hint),
             {state.stmt(id), state.stmt(nest.back())});
    }
    nest.push_back({id});
    left -= std::find(loops.begin(), loops.end(), id) != loops.end();
  }
  std::reverse(nest.begin(), nest.end());
  return nest;
}

Stmt LoopVarRewrite::operator()(const Stmt& stmt) { return Rewriter(this).Mutate(stmt); }

Stmt AddPredicate(const Stmt& stmt, const PrimExpr& predicate) {
  return Recurse([&]() -> Stmt {
    if (auto seq = stmt.as<SeqStmt>()) {
      Array<Stmt> all = (*seq)->seq.Map([&](const Stmt& s) { return AddPredicate(s, predicate); });
      Edit(&*seq)->seq = all;
      return *seq;
    }
    auto loop = stmt.as<For>();
    if (loop && !ReadsMemory((*loop)->min) && !ReadsMemory((*loop)->extent)) {
      Stmt body = AddPredicate((*loop)->body, predicate);
      Edit(&*loop)->body = body;
      return *loop;
    }
    if (auto realize = stmt.as<BlockRealize>()) {
      PrimExpr old = (*realize)->predicate;
      // Where the old one reads memory it must not be evaluated outside of the domain.
      Edit(&*realize)->predicate = IsTrue(old)        ? predicate
                                   : ReadsMemory(old) ? predicate && old
                                                      : old && predicate;
      return *realize;
    }
    return IfThenElse(predicate, stmt);
  });
}

PrimExpr InTypeOf(const ForObj* loop, const PrimExpr& factor) {
  DataType dtype = loop->loop_var.dtype();
  auto value = AsConstInt(factor);
  if (value && dtype.bits() < 64 && (*value >> (dtype.bits() - 1)) != 0) {
    Refuse(Text("expected factors that fit ", dtype, ", got ", *value),
           {ffi::GetRef<ObjectRef>(loop)});
  }
  return cast(dtype, factor);
}

std::vector<For> IterLoops(const Placed& p) {
  Block block = p.realize->block;
  std::vector<For> loops;
  bool trivial = IsTrue(p.realize->predicate) && !block->iter_vars.empty();
  for (const Stmt& s : p.path) {
    if (auto loop = s.as<For>()) {
      loops.push_back(*loop);
    } else {
      trivial &= loops.empty() && s.as<SeqStmtObj>();
    }
  }
  trivial &= loops.size() == block->iter_vars.size();
  for (size_t i = 0; trivial && i < block->iter_vars.size(); ++i) {
    const Range& dom = block->iter_vars[i]->dom.value();
    bool found = false;
    for (const For& loop : loops) {
      found |= loop->loop_var.same_as(p.realize->iter_values[i]) && IsZero(loop->min) &&
               IsZero(dom->min) && arith::Analyzer().CanProveEqual(loop->extent, dom->extent);
    }
    trivial = found;
  }
  if (!trivial) {
    Refuse(Text("expected the iterators of block ", block->name_hint,
                " to be the loops around it, which contain nothing else"),
           {block});
  }
  return loops;
}

}  // namespace tvm::tir
