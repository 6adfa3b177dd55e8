// SPDX-License-Identifier: Apache-2.0
// Removes statements that do nothing.
#include "../analyzed_mutator.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
struct NoOpRemover : Mutator<NoOpRemover, ForObj, WhileObj, IfThenElseObj, LetStmtObj, SeqStmtObj,
                             AttrStmtObj, AllocateObj, AllocateConstObj, DeclBufferObj, EvaluateObj,
                             BufferStoreObj, PrimExprObj, BufferObj> {
  bool use_dataflow_analysis = false;
  ObjectRef Rewrite(const PrimExprObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }

  /// What is left of statements that are gone: their expressions, where those have effects.
  static Stmt Effects(const Array<PrimExpr>& exprs) {
    Array<Stmt> seq;
    for (const PrimExpr& e : exprs) {
      if (SideEffect(e) > CallEffectKind::kReadState) seq.push_back(Evaluate(e));
    }
    return SeqStmt::Flatten(seq);
  }
  ObjectRef Rewrite(const ForObj* op) {
    PrimExpr count = op->extent;
    if (!count.as<IntImmObj>() && !count.as<VarObj>()) count = arith::Analyzer().Simplify(count);
    if (auto extent = AsConstInt(count); extent && *extent <= 0) return Effects({op->min});
    For loop = Below<For>(op);
    if (IsNothing(loop->body)) return Effects({op->min, op->extent});
    return loop;
  }
  ObjectRef Rewrite(const WhileObj* op) {
    if (IsFalse(op->condition)) return Evaluate::Nothing();
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    IfThenElse branch = Below<IfThenElse>(op);
    bool no_then = IsNothing(branch->then_case);
    bool no_else = !branch->else_case.has_value() || IsNothing(branch->else_case.value());
    if (no_then && no_else) return Effects({branch->condition});
    if (no_then)
      return IfThenElse(logical_not(StripLikely(branch->condition)), branch->else_case.value(), {},
                        op->span);
    if (no_else && branch->else_case.has_value())
      return IfThenElse(branch->condition, branch->then_case, {}, op->span);
    return branch;
  }
  ObjectRef Rewrite(const LetStmtObj* op) {
    LetStmt let = Below<LetStmt>(op);
    bool is_used = UsesVar(let->body, [&](const VarObj* v) { return v == op->var.get(); });
    if (is_used) return let;
    return SeqStmt::Flatten({Effects({let->value}), let->body});
  }
  ObjectRef Rewrite(const SeqStmtObj* op) {
    ObjectRef seq = MapChildren(op, *this);
    bool has_nothing = false;
    Array<Stmt> stmts = seq.as<SeqStmtObj>()->seq;
    for (size_t i = 0; use_dataflow_analysis && i < stmts.size(); ++i) {
      for (size_t j = i + 1; j < stmts.size(); ++j) {
        if (IsOverwritten(stmts, i, j)) {
          stmts.Set(i, Evaluate::Nothing());
          break;
        }
      }
    }
    for (const Stmt& s : stmts) has_nothing |= IsNothing(s);
    return has_nothing ? ObjectRef(SeqStmt::Flatten(stmts)) : seq;
  }
  // ---- stores that nobody sees ----------------------------------------------------------------
  /// A store inside of plain loops, each with the next as its only statement.
  struct Nest {
    std::vector<const ForObj*> loops;
    const BufferStoreObj* store = nullptr;
    explicit Nest(Stmt stmt) {
      while (auto* loop = stmt.as<ForObj>()) {
        if (loop->kind == ForKind::kThreadBinding || loop->step.has_value()) return;
        loops.push_back(loop);
        stmt = loop->body;
      }
      store = stmt.as<BufferStoreObj>();
      if (store && store->predicate.has_value()) store = nullptr;
    }
  };
  /// Whether the store of one statement is made again by another one before anybody reads it.
  static bool IsOverwritten(const Array<Stmt>& stmts, size_t i, size_t j) {
    Nest first(stmts[i]), second(stmts[j]);
    if (!first.store || !second.store || !first.store->buffer.same_as(second.store->buffer) ||
        first.loops.size() != second.loops.size() ||
        SideEffect(first.store->value) > CallEffectKind::kReadState)
      return false;
    ffi::Map<Var, PrimExpr> renamed;
    for (size_t k = 0; k < first.loops.size(); ++k) {
      const ForObj *a = first.loops[k], *b = second.loops[k];
      if (!ExprDeepEqual(a->min, Substitute(b->min, renamed)) ||
          !ExprDeepEqual(a->extent, Substitute(b->extent, renamed)))
        return false;
      renamed.Set(b->loop_var, a->loop_var);
    }
    for (size_t k = 0; k < first.store->indices.size(); ++k) {
      if (!ExprDeepEqual(first.store->indices[k], Substitute(second.store->indices[k], renamed)) ||
          SideEffect(first.store->indices[k]) > CallEffectKind::kPure)
        return false;
    }
    const VarObj* data = first.store->buffer->data.get();
    for (size_t k = i; k <= j; ++k) {
      if (MayRead(stmts[k], data)) return false;
    }
    return true;
  }
  static bool MayRead(const Stmt& stmt, const VarObj* data) {
    struct Reader : Visitor<Reader, BufferLoadObj, BufferStoreObj, VarObj, CallObj> {
      const VarObj* data;
      bool found = false;
      void Visit(const BufferLoadObj* op) {
        found |= op->buffer->data.get() == data;
        for (const PrimExpr& i : op->indices) (*this)(i);
      }
      void Visit(const BufferStoreObj* op) {
        (*this)(op->value);
        for (const PrimExpr& i : op->indices) (*this)(i);
      }
      void Visit(const VarObj* op) { found |= op == data; }
      void Visit(const CallObj* op) {
        // A function that is called, a jump, an error: the memory may be looked at.
        found |= EffectOf(op->op) > CallEffectKind::kReadState;
        VisitChildren(op, *this);
      }
    } read;
    read.data = data;
    read(stmt);
    return read.found;
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    AttrStmt attr = Below<AttrStmt>(op);
    return IsNothing(attr->body) ? ObjectRef(Effects({attr->value})) : ObjectRef(attr);
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    Allocate allocate = Below<Allocate>(op);
    return IsNothing(allocate->body) ? ObjectRef(Effects(op->extents)) : ObjectRef(allocate);
  }
  ObjectRef Rewrite(const AllocateConstObj* op) {
    AllocateConst allocate = Below<AllocateConst>(op);
    return IsNothing(allocate->body) ? ObjectRef(allocate->body) : ObjectRef(allocate);
  }
  ObjectRef Rewrite(const DeclBufferObj* op) {
    DeclBuffer decl = Below<DeclBuffer>(op);
    return IsNothing(decl->body) ? ObjectRef(decl->body) : ObjectRef(decl);
  }
  ObjectRef Rewrite(const EvaluateObj* op) {
    if (SideEffect(op->value) > CallEffectKind::kReadState) return ffi::GetRef<ObjectRef>(op);
    return Evaluate::Nothing();
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    auto* load = op->value.as<BufferLoadObj>();
    if (!load || !load->buffer.same_as(op->buffer) || load->predicate.has_value() ||
        op->predicate.has_value()) {
      return ffi::GetRef<ObjectRef>(op);
    }
    for (size_t i = 0; i < load->indices.size(); ++i) {
      if (!ExprDeepEqual(load->indices[i], op->indices[i])) return ffi::GetRef<ObjectRef>(op);
    }
    return Effects(op->indices);
  }
};
}  // namespace

PrimFunc RemoveNoOp(PrimFunc func, bool use_dataflow_analysis, int64_t max_simplification_steps) {
  if (max_simplification_steps < 0) {
    TVM_FFI_THROW(ValueError) << "RemoveNoOp: expected max_simplification_steps of at least 0, got "
                              << max_simplification_steps;
  }
  NoOpRemover remove;
  remove.use_dataflow_analysis = use_dataflow_analysis;
  return RewriteBody(std::move(func), remove);
}
TVM_PASS(
    tir, RemoveNoOp,
    R"(Removes statements that do nothing: loops and branches without bodies, lets that are not used, values stored where they were read.

before(A: T.Buffer((16,), "float32")):
    for i in range(16):
        if i < 4:
            A[i] = A[i]
    A[0] = 1.0
after:
    A[0] = 1.0

With use_dataflow_analysis also stores that are made again before anybody reads them. (max_simplification_steps is accepted for older scripts: the comparison needs no simplification.)

config: {"tir.RemoveNoOp": {"use_dataflow_analysis": True}}
before(A: T.Buffer((16,), "float32")):
    for i in range(16):
        A[i] = 0.0
    for i in range(16):
        A[i] = 1.0
after:
    for i in range(16):
        A[i] = 1.0)",
    Arg("use_dataflow_analysis", false), Arg("max_simplification_steps", 0))
}  // namespace tvm::tir
