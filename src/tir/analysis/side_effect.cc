// SPDX-License-Identifier: Apache-2.0
// What evaluating an expression does, and whether a function is pure.
#include "ir/once.h"
#include "tvm/expr/builtin.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {
struct EffectVisitor : Visitor<EffectVisitor, PrimExprObj, BufferLoadObj, CallObj, BufferObj> {
  Once once;
  CallEffectKind worst = CallEffectKind::kPure;
  void AtLeast(CallEffectKind kind) { worst = std::max(worst, kind); }
  void Visit(const PrimExprObj* op) {
    if (once(op)) VisitChildren(op, *this);
  }
  void Visit(const BufferLoadObj* op) {
    AtLeast(CallEffectKind::kReadState);
    Visit(static_cast<const PrimExprObj*>(op));
  }
  void Visit(const CallObj* op) {
    CallEffectKind kind = EffectOf(op->op);
    // Arguments of other calls and annotations do nothing by themselves; a jump is an effect.
    if (kind == CallEffectKind::kReadState || kind == CallEffectKind::kUpdateState) AtLeast(kind);
    if (kind == CallEffectKind::kEmbedInfo || kind == CallEffectKind::kControlJump)
      AtLeast(CallEffectKind::kUpdateState);
    Visit(static_cast<const PrimExprObj*>(op));
  }
  void Visit(const BufferObj*) {}
};
}  // namespace

CallEffectKind SideEffect(const PrimExpr& e) {
  EffectVisitor visit;
  visit(e);
  return visit.worst;
}

bool HasIfThenElse(const Stmt& stmt) {
  bool found = false;
  PreOrderVisit(stmt, [&](const ObjectRef& node) {
    auto* call = node.as<CallObj>();
    auto* realize = node.as<BlockRealizeObj>();
    found |= node.as<IfThenElseObj>() || node.as<SelectObj>() ||
             (call && call->Is(builtin::if_then_else())) ||
             (realize && !realize->predicate.as<IntImmObj>());
    return !found;
  });
  return found;
}

namespace {
/// Looks for what a pure function may not do: write memory it did not make, or call what has
/// effects.
struct PurityVisitor : Visitor<PurityVisitor, AllocateObj, BlockObj, BufferStoreObj, CallObj> {
  std::unordered_map<const VarObj*, bool> own;
  std::string complaint;
  void Visit(const AllocateObj* op) {
    own[op->buffer_var.get()] = true;
    VisitChildren(op, *this);
  }
  void Visit(const BlockObj* op) {
    for (const Buffer& b : op->alloc_buffers) own[b->data.get()] = true;
    VisitChildren(op, *this);
  }
  void Visit(const BufferStoreObj* op) {
    VisitChildren(op, *this);
    if (!own.count(op->buffer->data.get()))
      complaint =
          "it writes to buffer " + std::string(op->buffer->name) + ", which it did not allocate";
  }
  void Visit(const CallObj* op) {
    VisitChildren(op, *this);
    CallEffectKind kind = EffectOf(op->op);
    bool is_return = op->Is(builtin::ret());
    if (kind == CallEffectKind::kUpdateState ||
        (kind == CallEffectKind::kControlJump && !is_return)) {
      auto* callee = op->op.as<OpObj>();
      auto* global = op->op.as<GlobalVarObj>();
      complaint = "it calls " +
                  std::string(callee   ? callee->name
                              : global ? global->name_hint
                                       : String("a function")) +
                  ", which has effects";
    }
  }
};
}  // namespace

bool IsPureFunction(const PrimFunc& func, bool assert_on_error) {
  PurityVisitor visit;
  visit(func->body);
  if (assert_on_error && !visit.complaint.empty()) {
    TVM_FFI_THROW(AssertionError)
        << "assert_pure_function: expected a function without side effects, but "
        << visit.complaint;
  }
  return visit.complaint.empty();
}

namespace {
TVM_REGISTER() {
  Def(
      "tir.analysis.has_if_then_else",
      [](Stmt stmt) { return OnDeepStack([&] { return HasIfThenElse(stmt); }); },
      "Whether the statement contains a condition.", Arg("stmt"));
  Def(
      "tir.analysis.is_pure_function",
      [](PrimFunc func) { return OnDeepStack([&] { return IsPureFunction(func); }); },
      "Whether calling the function changes no memory but its own.", Arg("func"));
  Def(
      "tir.analysis.assert_pure_function",
      [](PrimFunc func) { return OnDeepStack([&] { return IsPureFunction(func, true); }); },
      "Raises AssertionError, with the reason, unless the function is pure.", Arg("func"));
  Def(
      "tir.analysis.expr_deep_equal",
      [](PrimExpr lhs, PrimExpr rhs) {
        return OnDeepStack([&] { return ExprDeepEqual(lhs, rhs); });
      },
      "Whether two expressions are alike, variables being themselves.", Arg("lhs"), Arg("rhs"));
}
}  // namespace
}  // namespace tvm::tir
