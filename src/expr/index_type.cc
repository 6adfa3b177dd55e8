// SPDX-License-Identifier: Apache-2.0
// Bringing indices to one integer type.
#include "tvm/expr/index_type.h"

#include <unordered_set>

#include "ir/once.h"

namespace tvm::tir {
namespace {

template <class... Obj>
bool IsOneOf(const PrimExpr& e) {
  static const std::unordered_set<int32_t> types = {Obj::RuntimeTypeIndex()...};
  return types.count(e->type_index());
}
bool IsArithmetic(const PrimExpr& e) {
  return IsOneOf<AddObj, SubObj, MulObj, DivObj, ModObj, FloorDivObj, FloorModObj, MinObj, MaxObj,
                 SelectObj>(e);
}
bool IsComparison(const PrimExpr& e) {
  return IsOneOf<EQObj, NEObj, LTObj, LEObj, GTObj, GEObj>(e);
}

/// The node with its integer operands in `t`, or all in int64 where one needs that.
PrimExpr Rebuild(const PrimExpr& e, DataType t) {
  DataType common = t;
  std::vector<PrimExpr> operands;
  VisitChildren(e.get(), [&](const ObjectRef& child) {
    PrimExpr operand = Any(child).cast<PrimExpr>();
    if (operand.dtype().is_integer()) operand = ToIndexType(operand, t);
    if (operand.dtype().is_index() && operand.dtype().bits() > common.bits()) {
      common = operand.dtype();
    }
    operands.push_back(operand);
  });
  size_t next = 0;
  ObjectRef result = MapChildren(e.get(), [&](const ObjectRef&) -> ObjectRef {
    PrimExpr operand = operands[next++];
    return operand.dtype().is_integer() ? cast(common, operand) : operand;
  });
  return Any(result).cast<PrimExpr>();
}

/// A variable that got another type: Cast(its old type, the new variable).
bool IsRetyped(const PrimExpr& e, DataType t) {
  const auto* c = e.as<CastObj>();
  return c && e.dtype().is_index() && c->value.dtype() == t && c->value.as<VarObj>();
}
bool HasRetyped(const PrimExpr& e, DataType t, Once* once) {
  if (IsRetyped(e, t)) return true;
  bool found = false;
  if (IsArithmetic(e) && (*once)(e.get())) {
    VisitChildren(e.get(), [&](const ObjectRef& child) {
      found = found || HasRetyped(Any(child).cast<PrimExpr>(), t, once);
    });
  }
  return found;
}

}  // namespace

PrimExpr ToIndexType(const PrimExpr& e, DataType t) {
  if (e.dtype() == t) return e;
  if (auto value = AsConstInt(e)) {
    bool fits = t.bits() == 64 || *value == static_cast<int32_t>(*value);
    return IntImm(fits ? t : DataType::Int(64), *value);
  }
  if (const auto* c = e.as<CastObj>(); c && c->value.dtype() == t) return c->value;
  if (e.dtype().is_index() && IsArithmetic(e)) return Rebuild(e, t);
  // A wider value that is no index arithmetic may need its width.
  return e.dtype().is_integer() && e.dtype().bits() > t.bits() ? e : cast(t, e);
}

PrimExpr CompareInIndexType(const PrimExpr& e, DataType t) {
  if (!IsComparison(e)) return e;
  bool retyped = false;
  Once once;
  VisitChildren(e.get(), [&](const ObjectRef& child) {
    retyped = retyped || HasRetyped(Any(child).cast<PrimExpr>(), t, &once);
  });
  return retyped ? Rebuild(e, t) : e;
}

}  // namespace tvm::tir
