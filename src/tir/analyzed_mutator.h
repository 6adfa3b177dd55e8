// SPDX-License-Identifier: Apache-2.0
// Mutators that know what holds where they are: ranges of loops, conditions, values of lets.
#pragma once
#include <deque>
#include <optional>
#include <unordered_set>

#include "arith/forget.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {

/// The condition inside likely(...).
inline PrimExpr StripLikely(const PrimExpr& cond) {
  auto* call = cond.as<CallObj>();
  return call && call->Is(builtin::likely()) ? call->args[0] : cond;
}

/// Tells `analyzer` what `var = value` says, without making results refer to `value` where that
/// would compute it again. `data` are the variables whose values come from memory: their arithmetic
/// wraps.
inline void LearnLet(arith::Analyzer* analyzer, const Var& var, const PrimExpr& value,
                     std::unordered_set<const VarObj*>* data) {
  if (!var.dtype().is_index()) return;
  bool is_pure = SideEffect(value) <= CallEffectKind::kPure;
  if (!is_pure || UsesVar(value, [&](const VarObj* v) { return data->count(v) > 0; })) {
    data->insert(var.get());
    return analyzer->MarkData(var);
  }
  if (value.as<IntImmObj>() || value.as<VarObj>()) return analyzer->Bind(var, value, true);
  analyzer->Update(var, analyzer->const_int_bound(value), true);
  analyzer->Update(var, analyzer->modular_set(value), true);
}

/// `var` ranges over [min, min + extent) while the object lives. (Analyzer::Bind keeps what a
/// symbolic range says about its bounds, such as that n is positive, for good; after the loop that
/// is no fact.)
class RangeScope {
 public:
  RangeScope(arith::Analyzer* analyzer, const Var& var, const PrimExpr& min,
             const PrimExpr& extent) {
    if (min.as<IntImmObj>() && extent.as<IntImmObj>()) {
      analyzer->Bind(var, Range::FromMinExtent(min, extent), true);
      return;
    }
    PrimExpr zero = MakeZero(var.dtype());
    analyzer->Bind(var, Range::FromMinExtent(zero, MakeConst(var.dtype(), 2)),
                   true);  // forgets what was known
    arith::ConstIntBound low = analyzer->const_int_bound(min),
                         high = analyzer->const_int_bound(min + extent);
    constexpr int64_t kInf = arith::ConstIntBoundObj::kPosInf;
    analyzer->Update(
        var,
        arith::ConstIntBound(low->min_value, high->max_value == kInf ? kInf : high->max_value - 1),
        true);
    inside_.emplace(analyzer, less_equal(min, var) && less(var, min + extent));
  }

 private:
  std::optional<arith::ConstraintScope> inside_;
};

/// The same for the iterators of a block.
class RangeScopes {
 public:
  RangeScopes(arith::Analyzer* analyzer, const Array<IterVar>& iter_vars) {
    for (const IterVar& iv : iter_vars) {
      if (!iv->dom.has_value()) continue;
      scopes_.emplace_back(analyzer, iv->var, iv->dom.value()->min, iv->dom.value()->extent);
    }
  }
  ~RangeScopes() {
    while (!scopes_.empty()) scopes_.pop_back();  // the last one entered is left first
  }

 private:
  std::deque<RangeScope> scopes_;
};

/// Whether all indices are certainly inside the buffer, so that reading is safe where the program
/// does not ask for it.
inline bool IsInBounds(arith::Analyzer* analyzer, const Buffer& buffer,
                       const Array<PrimExpr>& indices) {
  for (size_t i = 0; i < indices.size(); ++i) {
    const PrimExpr& index = indices[i];
    if (!index.dtype().is_scalar() || SideEffect(index) > CallEffectKind::kPure) return false;
    arith::ConstIntBound bound = analyzer->const_int_bound(index);
    auto extent = AsConstInt(buffer->shape[i]);
    if (bound->min_value < 0) return false;
    if (extent ? bound->max_value >= *extent : !analyzer->CanProve(less(index, buffer->shape[i])))
      return false;
  }
  return true;
}

/// What a function says about its parameters: sizes are not negative.
inline void LearnParams(arith::Analyzer* analyzer, const PrimFunc& func) {
  for (const auto& [param, buffer] : func->buffer_map) {
    for (const PrimExpr& e : buffer->shape) {
      if (e.as<VarObj>() && e.dtype().is_index()) analyzer->MarkGlobalNonNeg(e);
    }
  }
}

/// What a part of a program may write.
struct WriteFinder : Visitor<WriteFinder, BufferStoreObj, CallObj, BlockObj, LetStmtObj> {
  std::unordered_set<const VarObj*> written;  // pointers to it
  std::unordered_set<const VarObj*>* views;   // pointers to memory that has another pointer, too
  bool writes_any = false;                    // memory that nobody knows
  explicit WriteFinder(std::unordered_set<const VarObj*>* views) : views(views) {}

  void Visit(const BufferStoreObj* op) {
    written.insert(op->buffer->data.get());
    writes_any |= views->count(op->buffer->data.get()) > 0;
    VisitChildren(op, *this);
  }
  void Visit(const CallObj* op) {
    writes_any |= EffectOf(op->op) == CallEffectKind::kUpdateState;
    VisitChildren(op, *this);
  }
  void Visit(const BlockObj* op) {
    for (const MatchBufferRegion& m : op->match_buffers) views->insert(m->buffer->data.get());
    VisitChildren(op, *this);
  }
  void Visit(const LetStmtObj* op) {
    if (op->var.dtype().is_handle()) views->insert(op->var.get());
    VisitChildren(op, *this);
  }
  /// Whether the value of `e` may be another one afterwards.
  bool Changes(const PrimExpr& e) const {
    struct Reads : Visitor<Reads, BufferLoadObj, CallObj> {
      const WriteFinder* writes;
      bool found = false;
      void Visit(const BufferLoadObj* op) {
        const VarObj* data = op->buffer->data.get();
        found |= writes->writes_any || writes->written.count(data) || writes->views->count(data);
        VisitChildren(op, *this);
      }
      void Visit(const CallObj* op) {
        found |= EffectOf(op->op) == CallEffectKind::kReadState;
        VisitChildren(op, *this);
      }
    } reads;
    reads.writes = this;
    if (writes_any || !written.empty()) reads(e);
    return reads.found;
  }
};

/// Enters loops, conditions, lets, thread extents and blocks into `analyzer` while their bodies are
/// rewritten. A derived class that handles one of these nodes itself calls `Base::Rewrite(op)`.
/// A condition that reads memory holds until that may be written.
template <class Self, class... Nodes>
struct AnalyzedStmtMutator : Mutator<Self, ForObj, WhileObj, SeqStmtObj, LetStmtObj, IfThenElseObj,
                                     AssertStmtObj, AttrStmtObj, BlockRealizeObj, Nodes...> {
  using Base = AnalyzedStmtMutator;
  arith::Analyzer analyzer;
  std::unordered_set<const VarObj*> data_vars;  // lets of values from memory
  std::unordered_set<const VarObj*> views;      // see WriteFinder
  bool knows_memory = false;                    // some condition was about memory

  void LearnParams(const PrimFunc& func) { tir::LearnParams(&analyzer, func); }
  template <class T>
  T Under(const PrimExpr& cond, const T& node) {
    knows_memory |= SideEffect(cond) > CallEffectKind::kPure;
    arith::ConstraintScope scope(&analyzer, StripLikely(cond));
    return this->Mutate(node);
  }
  /// Forgets what is known of memory that `part` may write.
  void ForgetWritten(const ObjectRef& part) {
    if (!knows_memory) return;
    WriteFinder writes(&views);
    writes(part);
    arith::Forget(&analyzer, [&](const PrimExpr& e) { return writes.Changes(e); });
  }
  /// `var` ranges over [min, min + extent) in the body of a loop, while the object lives.
  struct LoopScope {
    RangeScope range;
    LoopScope(AnalyzedStmtMutator* self, const Var& var, const PrimExpr& min,
              const PrimExpr& extent, const Stmt& body)
        : range(&self->analyzer, var, min, extent) {
      self->knows_memory |=
          SideEffect(min) > CallEffectKind::kPure || SideEffect(extent) > CallEffectKind::kPure;
      self->ForgetWritten(body);  // an iteration sees what those before it wrote
    }
  };
  ObjectRef Rewrite(const SeqStmtObj* op) {
    return MapChildren(op, [&](const ObjectRef& stmt) {
      ObjectRef result = (*this)(stmt);
      ForgetWritten(stmt);
      return result;
    });
  }
  ObjectRef Rewrite(const WhileObj* op) {
    ForgetWritten(op->body);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const ForObj* op) {
    PrimExpr min = this->Mutate(op->min), extent = this->Mutate(op->extent);
    Optional<PrimExpr> step = op->step;
    if (step.has_value()) step = this->Mutate(step.value());
    Stmt body;
    {
      LoopScope scope(this, op->loop_var, min, extent, op->body);
      body = this->Mutate(op->body);
    }
    if (min.same_as(op->min) && extent.same_as(op->extent) && body.same_as(op->body) &&
        (!step.has_value() || step.value().same_as(op->step.value()))) {
      return ffi::GetRef<ObjectRef>(op);
    }
    For loop = ffi::GetRef<For>(op);
    auto* n = Edit(&loop);
    n->min = min;
    n->extent = extent;
    n->body = body;
    n->step = step;
    return loop;
  }
  ObjectRef Rewrite(const LetStmtObj* op) { return RewriteLet(op, this->Mutate(op->value)); }
  ObjectRef RewriteLet(const LetStmtObj* op, const PrimExpr& value) {
    if (op->var.dtype().is_handle()) views.insert(op->var.get());
    LearnLet(&analyzer, op->var, value, &data_vars);
    ForgetWritten(value);
    Stmt body = this->Mutate(op->body);
    if (value.same_as(op->value) && body.same_as(op->body)) return ffi::GetRef<ObjectRef>(op);
    return LetStmt(op->var, value, body, op->span);
  }
  ObjectRef Rewrite(const IfThenElseObj* op) { return RewriteIf(op, this->Mutate(op->condition)); }
  ObjectRef RewriteIf(const IfThenElseObj* op, const PrimExpr& cond) {
    Stmt then_case = Under(cond, op->then_case);
    Optional<Stmt> else_case = op->else_case;
    if (else_case.has_value()) else_case = Under(logical_not(StripLikely(cond)), else_case.value());
    bool same_else = !else_case.has_value() || else_case.value().same_as(op->else_case.value());
    if (cond.same_as(op->condition) && then_case.same_as(op->then_case) && same_else) {
      return ffi::GetRef<ObjectRef>(op);
    }
    return IfThenElse(cond, then_case, else_case, op->span);
  }
  ObjectRef Rewrite(const AssertStmtObj* op) {
    return RewriteAssert(op, this->Mutate(op->condition));
  }
  ObjectRef RewriteAssert(const AssertStmtObj* op, const PrimExpr& cond) {
    Stmt body = Under(cond, op->body);
    if (cond.same_as(op->condition) && body.same_as(op->body)) return ffi::GetRef<ObjectRef>(op);
    return AssertStmt(cond, op->message, body, op->span);
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    auto iv = op->node.template as<IterVar>();
    bool is_thread = op->attr_key == attr::kThreadExtent || op->attr_key == attr::kVirtualThread;
    if (!iv || !is_thread) return MapChildren(op, *this);
    RangeScope scope(&analyzer, (*iv)->var, MakeZero(op->value.dtype()), op->value);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    Array<PrimExpr> values =
        op->iter_values.Map([&](const PrimExpr& e) { return this->Mutate(e); });
    PrimExpr predicate = this->Mutate(op->predicate);
    Block block;
    {
      RangeScopes scopes(&analyzer, op->block->iter_vars);
      if (op->block->init.has_value()) ForgetWritten(op->block->init.value());
      for (const MatchBufferRegion& m : op->block->match_buffers)
        views.insert(m->buffer->data.get());
      block = Under(predicate, op->block);
    }
    if (values.same_as(op->iter_values) && predicate.same_as(op->predicate) &&
        block.same_as(op->block)) {
      return ffi::GetRef<ObjectRef>(op);
    }
    return BlockRealize(values, predicate, block, op->span);
  }
};

/// The same for the conditions inside expressions.
template <class Self, class... Nodes>
struct AnalyzedMutator : AnalyzedStmtMutator<Self, SelectObj, CallObj, LetObj, Nodes...> {
  using Base = AnalyzedMutator;
  using Stmts = AnalyzedStmtMutator<Self, SelectObj, CallObj, LetObj, Nodes...>;
  using Stmts::Rewrite;

  ObjectRef Rewrite(const SelectObj* op) {
    PrimExpr cond = this->Mutate(op->condition);
    if (!cond.dtype().is_scalar()) return MapChildren(op, *this);
    PrimExpr t = this->Under(cond, op->true_value),
             f = this->Under(logical_not(cond), op->false_value);
    if (cond.same_as(op->condition) && t.same_as(op->true_value) && f.same_as(op->false_value)) {
      return ffi::GetRef<ObjectRef>(op);
    }
    return Select(cond, t, f, op->span);
  }
  ObjectRef Rewrite(const CallObj* op) {
    if (!op->Is(builtin::if_then_else())) return MapChildren(op, *this);
    PrimExpr cond = this->Mutate(op->args[0]);
    PrimExpr t = this->Under(cond, op->args[1]);
    PrimExpr f = this->Under(logical_not(StripLikely(cond)), op->args[2]);
    if (cond.same_as(op->args[0]) && t.same_as(op->args[1]) && f.same_as(op->args[2])) {
      return ffi::GetRef<ObjectRef>(op);
    }
    return if_then_else(cond, t, f, op->span);
  }
  ObjectRef Rewrite(const LetObj* op) {
    PrimExpr value = this->Mutate(op->value);
    LearnLet(&this->analyzer, op->var, value, &this->data_vars);
    PrimExpr body = this->Mutate(op->body);
    if (value.same_as(op->value) && body.same_as(op->body)) return ffi::GetRef<ObjectRef>(op);
    return Let(op->var, value, body, op->span);
  }
};

}  // namespace tvm::tir
