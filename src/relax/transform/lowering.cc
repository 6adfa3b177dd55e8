// SPDX-License-Identifier: Apache-2.0
// What the passes between call_tir and the virtual machine share.
#include "lowering.h"

#include "tvm/arith/analyzer.h"
#include "tvm/relax/infer.h"
#include "tvm/tir/stmt.h"

namespace tvm::relax {

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
