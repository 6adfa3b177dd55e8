// SPDX-License-Identifier: Apache-2.0
// Replaces typed pointers with offset and access mask by plain addresses.
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct AccessPtrLowerer : Mutator<AccessPtrLowerer, CallObj> {
  /// (a value of the element type, data, offset, extent, access mask)
  ObjectRef Rewrite(const CallObj* op) {
    Call call = Below<Call>(op);
    if (!call->Is(builtin::tvm_access_ptr())) return call;
    DataType t = call->args[0].dtype();
    auto* data = call->args[1].as<VarObj>();
    if (!data || !data->type_annotation.as<PointerTypeObj>()) {
      TVM_FFI_THROW(TypeError)
          << "LowerDeviceStorageAccessInfo: expected a pointer variable in tvm_access_ptr, got "
          << call->args[1].dtype();
    }
    PrimExpr offset = call->args[2];
    if (!t.is_scalar()) offset = offset * MakeConst(offset.dtype(), t.lanes());
    Buffer view(ffi::GetRef<Var>(data), t.element(), {offset + 1}, {}, PrimExpr(), data->name_hint);
    return Call(DataType::Handle(), builtin::address_of(), {BufferLoad(view, {offset})}, op->span);
  }
};
}  // namespace

PrimFunc LowerDeviceStorageAccessInfo(PrimFunc func) {
  return RewriteBody(std::move(func), AccessPtrLowerer());
}
TVM_PASS(tir, LowerDeviceStorageAccessInfo,
         R"(Replaces tvm_access_ptr by the address it stands for.

before(A: T.Buffer((16,), "float32")):
    T.call_extern("void", "f", T.tvm_access_ptr(T.type_annotation("float32"), A.data, 8, 4, 1))
after:
    A_1 = T.Buffer((9,), "float32", data=A.data)
    T.call_extern("", "f", T.address_of(A_1[8])))")
}  // namespace tvm::tir
