// SPDX-License-Identifier: Apache-2.0
// Questions about struct info and about programs of the graph language.
#pragma once
#include <functional>

#include "tvm/arith/analyzer.h"
#include "tvm/relax/expr.h"

namespace tvm::tir {
struct PrimFunc;
}
namespace tvm::relax {
struct BlockBuilder;

// ---- struct info ------------------------------------------------------------------------------
/// Whether everything of the derived kind is of the base kind. The values are part of the
/// interface.
enum class BaseCheckResult : int {
  kFailL0 = 0,  ///< Nothing is.
  kFailL1 = 1,  ///< Some values are: a cast may succeed.
  kFailL2 = 2,  ///< It may be, but is not provable.
  kPass = 3,
};
/// Facts for proofs about dimensions; an empty one is made when there is something to prove.
BaseCheckResult StructInfoBaseCheck(const StructInfo& base, const StructInfo& derived,
                                    arith::Analyzer* analyzer = nullptr);
inline bool IsBaseOf(const StructInfo& base, const StructInfo& derived,
                     arith::Analyzer* analyzer = nullptr) {
  return StructInfoBaseCheck(base, derived, analyzer) == BaseCheckResult::kPass;
}
/// The least struct info that is a base of both.
StructInfo StructInfoLCA(const StructInfo& lhs, const StructInfo& rhs,
                         arith::Analyzer* analyzer = nullptr);
Type GetStaticType(const StructInfo& info);

/// What a variable becomes, or an undefined expression when it is not known here.
using ShapeVarMap = std::function<PrimExpr(const tir::Var&)>;
using VarMap = std::function<Optional<Expr>(const Var&)>;
/// With variables replaced; a shape, or the value of a scalar, with a variable that is not known
/// becomes unknown. What is inside of functions stays.
StructInfo EraseToWellDefined(const StructInfo& info, const ShapeVarMap& shape_var,
                              const VarMap& var = nullptr);
/// With symbolic variables replaced, those inside of functions too; variables without a replacement
/// stay.
StructInfo SubstituteStructInfo(const StructInfo& info, const Map<tir::Var, PrimExpr>& map);

/// What the call of a function with this struct info returns. OpValueError or OpTypeError when the
/// arguments do not fit its parameters.
StructInfo DeriveCallRetStructInfo(const FuncStructInfo& func, const Call& call,
                                   const BlockBuilder& builder);

// ---- symbolic variables -----------------------------------------------------------------------
/// All symbolic variables in the struct info, in the order of their first use.
Array<tir::Var> TIRVarsInStructInfo(const StructInfo& info);
/// Those that a value of that kind defines: they stand alone as a dimension or a scalar.
Array<tir::Var> DefinableTIRVarsInStructInfo(const StructInfo& info);
/// Expressions that are not negative in any value of that kind: dimensions.
Array<PrimExpr> CollectNonNegativeExpressions(const StructInfo& info);
/// Variables that the parameters or a cast inside of the function define.
Array<tir::Var> DefinedSymbolicVars(const Expr& expr);
/// Variables that are used but not defined.
Array<tir::Var> FreeSymbolicVars(const Expr& expr);

// ---- variables and bindings -------------------------------------------------------------------
/// Each once, in the order in which they come.
Array<Var> BoundVars(const Expr& expr);
Array<Var> UsedVars(const Expr& expr);
Array<Var> AllVars(const Expr& expr);
Array<Var> FreeVars(const Expr& expr);
Array<GlobalVar> AllGlobalVars(const Expr& expr);
/// The value of each variable that is bound.
Map<Var, Expr> GetVar2Val(const Expr& expr);
/// Calls `visit` on every binding, nested ones too, in order.
void VisitBindings(const Expr& expr, const std::function<void(const Binding&)>& visit);
Expr ValueOf(const Binding& binding);

// ---- calls ------------------------------------------------------------------------------------
/// Whether the call itself has a side effect.
bool IsImpureCall(const CallObj* call);
/// The first call with a side effect; calls of `own_name` do not count, nor do the bodies of local
/// functions.
Optional<Expr> FindImpureCall(const Expr& expr, const Optional<Expr>& own_name = {});
/// Groups of functions that call each other, or themselves.
Array<Array<GlobalVar>> DetectRecursion(const IRModule& mod);
/// Without bindings that nobody uses and that have no side effect.
Function RemoveAllUnused(const Function& func);

/// Whether the function copies its first buffer to its last one element by element in row-major
/// order.
bool HasReshapePattern(const tir::PrimFunc& func);

// ---- well-formedness --------------------------------------------------------------------------
/// What is wrong with the program: "" when nothing is, else a complaint that shows the place. A
/// program as it was written need not have its operators in their own normal form.
std::string FindIllFormed(const Variant<IRModule, Function>& program, bool check_struct_info = true,
                          bool check_normal_form = true);

}  // namespace tvm::relax
