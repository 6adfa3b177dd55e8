// SPDX-License-Identifier: Apache-2.0
// Whether a statement is the computation that an intrinsic describes.
#include "schedule/analysis/intrin_match.h"

#include "tvm/expr/op.h"

namespace tvm::tir {
namespace {
using arith::Analyzer;

struct BlockRemover : Mutator<BlockRemover, BlockRealizeObj, ForObj> {
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    Map<Var, PrimExpr> values;
    for (size_t i = 0; i < op->iter_values.size(); ++i)
      values.Set(op->block->iter_vars[i]->var, op->iter_values[i]);
    Stmt body = op->block->body;
    if (op->block->init.has_value()) {
      std::vector<PrimExpr> start;
      for (size_t i = 0; i < op->iter_values.size(); ++i) {
        const IterVar& iter = op->block->iter_vars[i];
        if (iter->iter_type == IterVarType::kCommReduce)
          start.push_back(equal(op->iter_values[i], iter->dom.value()->min));
      }
      Stmt init = op->block->init.value();
      body = SeqStmt::Flatten({start.empty() ? init : IfThenElse(AllOf(start), init), body});
    }
    body = Mutate(Substitute(body, values));
    return IsTrue(op->predicate) ? body : IfThenElse(op->predicate, body);
  }
  ObjectRef Rewrite(const ForObj* op) {
    if (!IsOne(op->extent)) return Below<Stmt>(op);
    return Mutate(Substitute(op->body, Map<Var, PrimExpr>{{op->loop_var, op->min}}));
  }
};

struct Comparer {
  std::vector<BufferMatch>* matches;
  Analyzer analyzer;
  Map<Var, PrimExpr> vars;                   // of the description -> of the program
  std::unordered_set<const VarObj*> inside;  // loop variables of the program
  std::string why;

  bool Fail(const std::string& text) {
    if (why.empty()) why = text;
    return false;
  }
  bool Differ(const ObjectRef& a, const ObjectRef& b) {
    return Fail(Text("expected ", b, ", got ", a));
  }
  bool Same(const Stmt& a, const Stmt& b) {
    if (a->type_index() != b->type_index()) return Differ(a, b);
    if (auto *x = a.as<ForObj>(), *y = b.as<ForObj>(); x) {
      if (!analyzer.CanProveEqual(x->extent, y->extent) || !IsZero(x->min) || !IsZero(y->min)) {
        return Fail(
            Text("expected a loop of extent ", y->extent, ", got one of extent ", x->extent));
      }
      vars.Set(y->loop_var, x->loop_var);
      inside.insert(x->loop_var.get());
      analyzer.Bind(x->loop_var, Range::FromMinExtent(x->min, x->extent));
      return Same(x->body, y->body);
    }
    if (auto *x = a.as<SeqStmtObj>(), *y = b.as<SeqStmtObj>(); x) {
      if (x->seq.size() != y->seq.size()) return Differ(a, b);
      for (size_t i = 0; i < x->seq.size(); ++i) {
        if (!Same(x->seq[i], y->seq[i])) return false;
      }
      return true;
    }
    if (auto *x = a.as<BufferStoreObj>(), *y = b.as<BufferStoreObj>(); x)
      return Access(x->buffer, x->indices, y->buffer, y->indices) && Same(x->value, y->value);
    if (auto *x = a.as<IfThenElseObj>(), *y = b.as<IfThenElseObj>(); x) {
      return Same(x->condition, y->condition) && Same(x->then_case, y->then_case) &&
             x->else_case.has_value() == y->else_case.has_value() &&
             (!x->else_case.has_value() || Same(x->else_case.value(), y->else_case.value()));
    }
    if (auto *x = a.as<EvaluateObj>(), *y = b.as<EvaluateObj>(); x) return Same(x->value, y->value);
    return Differ(a, b);
  }
  bool Same(const PrimExpr& a, const PrimExpr& b) {
    if (auto* y = b.as<VarObj>()) {
      auto it = vars.find(ffi::GetRef<Var>(y));
      bool same = it != vars.end() && analyzer.CanProveEqual(a, (*it).second);
      return same || Differ(a, b);
    }
    if (a->type_index() != b->type_index() || a.dtype() != b.dtype()) return Differ(a, b);
    if (auto *x = a.as<BufferLoadObj>(), *y = b.as<BufferLoadObj>(); x)
      return Access(x->buffer, x->indices, y->buffer, y->indices);
    if (auto *x = a.as<CallObj>(), *y = b.as<CallObj>(); x && !x->op.same_as(y->op))
      return Differ(a, b);
    // The order of what is added or multiplied does not matter.
    bool commutes = a.as<AddObj>() || a.as<MulObj>() || a.as<MinObj>() || a.as<MaxObj>();
    std::vector<PrimExpr> below, described;
    auto collect = [](std::vector<PrimExpr>* to) {
      return [to](const ObjectRef& c) {
        if (auto e = c.as<PrimExpr>()) to->push_back(*e);
      };
    };
    VisitChildren(a.get(), collect(&below));
    VisitChildren(b.get(), collect(&described));
    if (below.size() != described.size()) return Differ(a, b);
    if (below.empty()) return ExprDeepEqual(a, b) || Differ(a, b);
    auto all = [&](bool swapped) {
      for (size_t i = 0; i < below.size(); ++i) {
        if (!Same(below[swapped ? below.size() - 1 - i : i], described[i])) return false;
      }
      return true;
    };
    std::vector<BufferMatch> before = *matches;
    if (all(false)) return true;
    if (!commutes) return false;
    *matches = before;
    std::string first = why;
    why.clear();
    if (all(true)) return true;
    *matches = before;
    why = first;
    return false;
  }
  /// Both access the same element: the difference of the indices is where the buffer begins.
  bool Access(const Buffer& a, const Array<PrimExpr>& at, const Buffer& b,
              const Array<PrimExpr>& described) {
    if (a->dtype != b->dtype)
      return Fail(Text("expected buffer ", a->name, " of type ", b->dtype, ", got ", a->dtype));
    if (a.scope() != b.scope()) {
      return Fail(
          Text("expected buffer ", a->name, " in scope '", b.scope(), "', got '", a.scope(), "'"));
    }
    if (at.size() < described.size()) {
      return Fail(Text("expected buffer ", a->name, " to have at least ", described.size(),
                       " dimensions, got ", at.size()));
    }
    size_t more = at.size() - described.size();
    Array<PrimExpr> begin;
    for (size_t i = 0; i < at.size(); ++i) {
      PrimExpr start = at[i], want = i < more ? PrimExpr(0) : described[i - more];
      // A few elements at once: as many from some element on.
      auto *word = start.as<RampObj>(), *described_word = want.as<RampObj>();
      if (word && described_word && ExprDeepEqual(word->stride, described_word->stride) &&
          word->dtype.lanes() == described_word->dtype.lanes()) {
        start = word->base;
        want = described_word->base;
      }
      if (i >= more) start = start - cast(start.dtype(), Substitute(want, vars));
      begin.push_back(analyzer.Simplify(start));
      if (UsesAny(begin[i], inside)) {
        return Fail(Text("expected index ", i < more ? PrimExpr(0) : described[i - more],
                         " of buffer ", a->name, " (from its beginning), got ", at[i]));
      }
    }
    for (const BufferMatch& m : *matches) {
      if (!m.described.same_as(b)) continue;
      bool same = m.buffer.same_as(a);
      for (size_t i = 0; same && i < begin.size(); ++i)
        same = analyzer.CanProveEqual(begin[i], m.begin[i]);
      return same || Fail(Text("expected buffer ", b->name,
                               " of the description to be one part of "
                               "one buffer, got parts of ",
                               m.buffer->name, " and ", a->name));
    }
    matches->push_back({b, a, begin});
    return true;
  }
};
}  // namespace

Array<Range> BufferMatch::Region() const {
  Array<Range> region;
  size_t more = begin.size() - described->shape.size();
  for (size_t i = 0; i < begin.size(); ++i) {
    PrimExpr one = MakeConst(begin[i].dtype(), 1);
    PrimExpr extent = i < more ? one : cast(begin[i].dtype(), described->shape[i - more]);
    region.push_back(Range::FromMinExtent(begin[i], extent));
  }
  return region;
}

Stmt WithoutBlocks(const Stmt& stmt) { return BlockRemover().Mutate(stmt); }

std::string WhyNotIntrin(const Stmt& stmt, const Stmt& desc, std::vector<BufferMatch>* buffers) {
  Comparer compare{buffers, {}, {}, {}, {}};
  buffers->clear();
  return compare.Same(WithoutBlocks(stmt), WithoutBlocks(desc)) ? "" : compare.why;
}

}  // namespace tvm::tir
