// SPDX-License-Identifier: Apache-2.0
// Pointers into memory that a pass has moved.
#pragma once
#include "tvm/expr/op.h"

namespace tvm::tir {

/// What a bare `pointer` becomes where its elements moved by `offset`; undefined where nobody says
/// of what type they are. Some calls have offsets in elements beside it, so it has that type.
inline PrimExpr ElementPointer(const Var& pointer, const Var& moved, const PrimExpr& offset) {
  auto* type = pointer->type_annotation.as<PointerTypeObj>();
  auto* element = type ? type->element_type.as<PrimTypeObj>() : nullptr;
  if (!element || element->dtype.is_void()) return PrimExpr();
  PrimExpr kind = Call(element->dtype, builtin::type_annotation(), {});
  return Call(DataType::Handle(), builtin::tvm_access_ptr(),
              {kind, moved, offset, PrimExpr(0), PrimExpr(3)});
}

}  // namespace tvm::tir
