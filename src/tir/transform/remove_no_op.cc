// SPDX-License-Identifier: Apache-2.0
// Removes statements that do nothing.
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "../analyzed_mutator.h"

namespace tvm::tir {
namespace {
struct NoOpRemover
    : Mutator<NoOpRemover, ForObj, WhileObj, IfThenElseObj, LetStmtObj, SeqStmtObj, AttrStmtObj, AllocateObj,
              AllocateConstObj, DeclBufferObj, EvaluateObj, BufferStoreObj, PrimExprObj, BufferObj> {
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
    auto extent = AsConstInt(op->extent);
    if (extent && *extent <= 0) return Effects({op->min});
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
    if (no_then) return IfThenElse(logical_not(StripLikely(branch->condition)), branch->else_case.value(), {}, op->span);
    if (no_else && branch->else_case.has_value()) return IfThenElse(branch->condition, branch->then_case, {}, op->span);
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
    for (const Stmt& s : seq.as<SeqStmtObj>()->seq) has_nothing |= IsNothing(s);
    return has_nothing ? ObjectRef(SeqStmt::Flatten(seq.as<SeqStmtObj>()->seq)) : seq;
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
    if (!load || !load->buffer.same_as(op->buffer) || load->predicate.has_value() || op->predicate.has_value()) {
      return ffi::GetRef<ObjectRef>(op);
    }
    for (size_t i = 0; i < load->indices.size(); ++i) {
      if (!ExprDeepEqual(load->indices[i], op->indices[i])) return ffi::GetRef<ObjectRef>(op);
    }
    return Effects(op->indices);
  }
};
}  // namespace

PrimFunc RemoveNoOp(PrimFunc func) { return RewriteBody(std::move(func), NoOpRemover()); }
TVM_PASS(tir, RemoveNoOp,
         "Removes statements that do nothing: loops and branches without bodies, lets that are not used, values "
         "stored where they were read.\n\n"
         "    for i in range(16):            (nothing)\n"
         "      if i < 4: A[i] = A[i]   ->")
}  // namespace tvm::tir
