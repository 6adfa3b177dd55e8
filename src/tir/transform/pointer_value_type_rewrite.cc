// SPDX-License-Identifier: Apache-2.0
// Gives pointers the element type that they are accessed with.
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// The element types of the buffers that view each pointer.
struct ViewFinder : Visitor<ViewFinder, BufferLoadObj, BufferStoreObj> {
  std::unordered_map<const VarObj*, std::vector<DataType>> types;
  void See(const Buffer& buffer) {
    auto& seen = types[buffer->data.get()];
    if (std::find(seen.begin(), seen.end(), buffer->dtype) == seen.end())
      seen.push_back(buffer->dtype);
  }
  void Visit(const BufferLoadObj* op) { See(op->buffer), VisitChildren(op, *this); }
  void Visit(const BufferStoreObj* op) { See(op->buffer), VisitChildren(op, *this); }
};
}  // namespace

PrimFunc PointerValueTypeRewrite(PrimFunc func) {
  ViewFinder find;
  find(func->body);
  Map<Var, PrimExpr> renamed;
  for (const auto& [var, types] : find.types) {
    auto* pointer = var->type_annotation.as<PointerTypeObj>();
    auto* element = pointer ? pointer->element_type.as<PrimTypeObj>() : nullptr;
    if (!element || types.size() != 1 || types[0] == element->dtype) continue;
    renamed.Set(ffi::GetRef<Var>(var),
                Var(var->name_hint, PointerType(PrimType(types[0]), pointer->storage_scope)));
  }
  if (renamed.empty()) return func;
  return Substitute(func, renamed);
}
TVM_PASS(tir, PointerValueTypeRewrite,
         R"(Gives a pointer that is only accessed with one element type that type.

before(A_data: T.handle("float32")):
    A = T.decl_buffer((4,), "float32x4", data=A_data)
    A[0] = T.Broadcast(T.float32(1), 4)
after(A_data: T.handle("float32x4")):
    A = T.decl_buffer((4,), "float32x4", data=A_data)
    A[0] = T.Broadcast(T.float32(1), 4))")
}  // namespace tvm::tir
