// SPDX-License-Identifier: Apache-2.0
// Which symbolic variables struct info uses and defines.
#include "relax/analysis/symbolic_vars.h"

#include <unordered_set>

#include "tvm/relax/analysis.h"
#include "tvm/relax/distributed.h"
#include "tvm/relax/expr_functor.h"

namespace tvm::relax {

void VisitSymbolicExprs(const StructInfo& info, const SymbolicExprVisitor& visit) {
  if (StackIsLow()) return Recurse([&] { VisitSymbolicExprs(info, visit); });
  auto dims = [&](const Array<PrimExpr>& values) {
    for (const PrimExpr& value : values) visit(value, SymbolicExpr::kDim);
  };
  if (auto* tensor = info.as<TensorStructInfoObj>()) {
    if (!tensor->shape) return;
    if (auto* shape = tensor->shape.value().as<ShapeExprObj>()) dims(shape->values);
  } else if (auto* shape = info.as<ShapeStructInfoObj>()) {
    if (shape->values) dims(shape->values.value());
  } else if (auto* prim = info.as<PrimStructInfoObj>()) {
    if (prim->value) visit(prim->value.value(), SymbolicExpr::kScalar);
  } else if (auto* tuple = info.as<TupleStructInfoObj>()) {
    for (const StructInfo& field : tuple->fields) VisitSymbolicExprs(field, visit);
  } else if (auto* spread = info.as<distributed::DTensorStructInfoObj>()) {
    VisitSymbolicExprs(spread->tensor_sinfo, visit);
  } else if (auto* func = info.as<FuncStructInfoObj>()) {
    // Variables that the parameters define are the function's own.
    std::unordered_set<const Object*> own;
    for (const StructInfo& param : func->params.value_or({})) {
      for (const tir::Var& var : DefinableTIRVarsInStructInfo(param)) own.insert(var.get());
    }
    auto outer = [&](const PrimExpr& e, SymbolicExpr) {
      VisitVars(e, [&](const tir::VarObj* var) {
        if (!own.count(var)) visit(ffi::GetRef<tir::Var>(var), SymbolicExpr::kInFunction);
      });
    };
    for (const StructInfo& param : func->params.value_or({})) VisitSymbolicExprs(param, outer);
    VisitSymbolicExprs(func->ret, outer);
  }
}

namespace {
/// Variables, each once, in the order in which they come.
struct Ordered {
  Array<tir::Var> vars;
  std::unordered_set<const Object*> seen;
  void operator()(const tir::VarObj* var) {
    if (seen.insert(var).second) vars.push_back(ffi::GetRef<tir::Var>(var));
  }
};
}  // namespace

Array<tir::Var> TIRVarsInStructInfo(const StructInfo& info) {
  Ordered found;
  VisitSymbolicExprs(info, [&](const PrimExpr& e, SymbolicExpr) { VisitVars(e, found); });
  return found.vars;
}
Array<tir::Var> DefinableTIRVarsInStructInfo(const StructInfo& info) {
  Ordered found;
  VisitSymbolicExprs(info, [&](const PrimExpr& e, SymbolicExpr place) {
    auto* var = e.as<tir::VarObj>();
    if (var && place != SymbolicExpr::kInFunction) found(var);
  });
  return found.vars;
}
Array<PrimExpr> CollectNonNegativeExpressions(const StructInfo& info) {
  Array<PrimExpr> result;
  VisitSymbolicExprs(info, [&](const PrimExpr& e, SymbolicExpr place) {
    if (place == SymbolicExpr::kDim) result.push_back(e);
  });
  return result;
}

namespace {
/// What a program defines and uses of symbolic variables.
struct SymbolicVarCollector : ExprVisitor {
  Ordered defined, used;
  void VisitVarDef(const Var& var) final {
    if (!var->struct_info_) return;
    VisitStructInfo(var->struct_info_.value());
  }
  void VisitStructInfo(const StructInfo& info) final {
    VisitSymbolicExprs(info, [&](const PrimExpr& e, SymbolicExpr) { VisitVars(e, used); });
  }
  void VisitExpr_(const ShapeExprObj* op) final {
    for (const PrimExpr& e : op->values) VisitVars(e, used);
  }
  void VisitExpr_(const PrimValueObj* op) final { VisitVars(op->value, used); }
  void VisitExpr_(const FunctionObj* op) final {
    for (const Var& param : op->params) {
      if (param->struct_info_) Define(param->struct_info_.value());
    }
    ExprVisitor::VisitExpr_(op);
  }
  void VisitBinding_(const MatchCastObj* binding) final {
    Define(binding->struct_info);
    ExprVisitor::VisitBinding_(binding);
  }
  void Define(const StructInfo& info) {
    for (const tir::Var& var : DefinableTIRVarsInStructInfo(info)) defined(var.get());
  }
  explicit SymbolicVarCollector(const Expr& expr) { VisitExpr(expr); }
};
}  // namespace

Array<tir::Var> DefinedSymbolicVars(const Expr& expr) {
  return SymbolicVarCollector(expr).defined.vars;
}
Array<tir::Var> FreeSymbolicVars(const Expr& expr) {
  SymbolicVarCollector found(expr);
  Array<tir::Var> result;
  for (const tir::Var& var : found.used.vars) {
    if (!found.defined.seen.count(var.get())) result.push_back(var);
  }
  return result;
}

namespace {
TVM_REGISTER() {
  Def("relax.analysis.defined_symbolic_vars", &DefinedSymbolicVars,
      "Symbolic variables that parameters and casts define.", Arg("func"));
  Def("relax.analysis.free_symbolic_vars", &FreeSymbolicVars,
      "Symbolic variables that are used and not defined.", Arg("func"));
  Def("relax.analysis.tir_vars_in_struct_info", &TIRVarsInStructInfo,
      "All symbolic variables, in the order of their first use.", Arg("sinfo"));
  Def("relax.analysis.definable_tir_vars_in_struct_info", &DefinableTIRVarsInStructInfo,
      "The symbolic variables that stand alone as a dimension or a scalar.", Arg("sinfo"));
  Def("relax.analysis.collect_non_negative_expressions", &CollectNonNegativeExpressions,
      "The dimensions: they are not negative.", Arg("sinfo"));
}
}  // namespace
}  // namespace tvm::relax
