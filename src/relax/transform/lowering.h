// SPDX-License-Identifier: Apache-2.0
// What the passes between call_tir and the virtual machine share.
#pragma once
#include <string>
#include <vector>

#include "tvm/relax/block_builder.h"

namespace tvm::relax {

/// The operators these passes are about, looked up once.
struct LoweredOps {
  Op call_tir = Op::Get("relax.call_tir");
  Op call_tir_with_grad = Op::Get("relax.call_tir_with_grad");
  Op call_tir_inplace = Op::Get("relax.call_tir_inplace");
  Op call_dps_packed = Op::Get("relax.call_dps_packed");
  Op call_pure_packed = Op::Get("relax.call_pure_packed");
  Op call_inplace_packed = Op::Get("relax.call_inplace_packed");
  Op call_tir_dyn = Op::Get("relax.vm.call_tir_dyn");
  Op call_with_vm = Op::Get("relax.call_builtin_with_ctx");
  Op invoke_closure = Op::Get("relax.invoke_closure");
  Op invoke_pure_closure = Op::Get("relax.invoke_pure_closure");
  Op make_closure = Op::Get("relax.make_closure");
  Op null_value = Op::Get("relax.null_value");
  Op reshape = Op::Get("relax.reshape");
  Op view = Op::Get("relax.memory.view");
  Op ensure_zero_offset = Op::Get("relax.memory.ensure_zero_offset");
  Op new_tensor = Op::Get("relax.builtin.alloc_tensor");
  Op alloc_storage = Op::Get("relax.memory.alloc_storage");
  Op alloc_tensor = Op::Get("relax.memory.alloc_tensor");
  Op kill_storage = Op::Get("relax.memory.kill_storage");
  Op kill_tensor = Op::Get("relax.memory.kill_tensor");
  Op vm_alloc_storage = Op::Get("relax.vm.alloc_storage");
  Op vm_alloc_tensor = Op::Get("relax.vm.alloc_tensor");
  Op kill_object = Op::Get("relax.vm.kill_object");
  static const LoweredOps& Get() {
    static const auto* ops = new LoweredOps();
    return *ops;
  }
};

/// A call of a function that is found by name at run time.
inline Call CallPacked(const char* name, Array<Expr> args, StructInfo result) {
  return Call(ExternFunc(name), std::move(args), {}, {std::move(result)});
}
/// The module without its functions: enough for inference where all functions are known, and a
/// builder for one function of many begins with it at once.
inline IRModule WithoutFunctions(const IRModule& mod) {
  return IRModule(Map<GlobalVar, BaseFunc>(), mod->attrs, mod->global_infos);
}
/// Lowers the operators that are `wanted` and leaves all others; one of the name of a function
/// (builder, call) in `custom` by that.
IRModule LegalizeOnly(const IRModule& mod, const std::vector<Op>& wanted,
                      const Map<String, ffi::Function>& custom = {});
/// The fields of a tuple; those of a variable are taken out of it in the open block.
Array<Expr> ItemsOf(const BlockBuilder& builder, const Expr& tuple);
/// How many bytes the elements of a tensor take.
PrimExpr BytesOf(const Array<PrimExpr>& dims, DataType dtype);
/// The size of a storage for one tensor: its bytes, or the extents of a texture.
ShapeExpr StorageSize(const Array<PrimExpr>& dims, DataType dtype, const String& scope);
/// Attributes of a function that computes on shapes: it runs on the host whatever the target is.
DictAttrs HostFunctionAttrs();

}  // namespace tvm::relax
