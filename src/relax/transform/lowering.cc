// SPDX-License-Identifier: Apache-2.0
// What the passes between call_tir and the virtual machine share.
#include "lowering.h"

#include <algorithm>

#include "tvm/arith/analyzer.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/infer.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/stmt.h"

namespace tvm::relax {

IRModule LegalizeOnly(const IRModule& mod, const std::vector<Op>& wanted,
                      const Map<String, ffi::Function>& custom) {
  auto is_wanted = [&](const Expr& op) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const Op& o) { return o.same_as(op); });
  };
  bool found = false;
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<FunctionObj>()) continue;
    VisitBindings(func, [&](const Binding& binding) {
      auto* call = ValueOf(binding).as<CallObj>();
      found = found || (call && is_wanted(call->op));
    });
  }
  if (!found) return mod;
  Array<String> others;
  for (const OperatorInfo* info : ListOperators()) {
    if (!is_wanted(info->op)) others.push_back(info->op->name);
  }
  return transform::GetPass("relax.LegalizeOps", {custom, others})(mod);
}
Array<Expr> ItemsOf(const BlockBuilder& builder, const Expr& expr) {
  if (auto* tuple = expr.as<TupleObj>()) return tuple->fields;
  auto* info = GetStructInfoAs<TupleStructInfoObj>(expr);
  if (!info) return {expr};
  Array<Expr> items;
  for (size_t i = 0; i < info->fields.size(); ++i)
    items.push_back(builder->Emit(TupleGetItem(expr, static_cast<int64_t>(i))));
  return items;
}
PrimExpr BytesOf(const Array<PrimExpr>& dims, DataType dtype) {
  PrimExpr elements = Dim(1);
  for (const PrimExpr& dim : dims) elements = elements * dim;
  int64_t bits = dtype.bits() * dtype.lanes();
  PrimExpr bytes =
      bits % 8 == 0 ? elements * Dim(bits / 8) : floordiv(elements * Dim(bits) + Dim(7), Dim(8));
  return IsConst(bytes) ? bytes : arith::Analyzer().Simplify(bytes);
}
ShapeExpr StorageSize(const Array<PrimExpr>& dims, DataType dtype, const String& scope) {
  bool is_texture = View(scope).starts_with("global.texture");
  return ShapeExpr(is_texture ? dims : Array<PrimExpr>{BytesOf(dims, dtype)});
}
DictAttrs HostFunctionAttrs() {
  return DictAttrs(Map<String, Any>{{tir::attr::kIsHostFunc, true}});
}

}  // namespace tvm::relax
