// SPDX-License-Identifier: Apache-2.0
// Moves constant tensors from functions to the module.
#include "tvm/ir/structural.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
bool SameTensor(const ffi::Tensor& a, const ffi::Tensor& b) {
  if (a.same_as(b)) return true;
  if (a.dtype() != b.dtype() || a.ndim() != b.ndim() || a.numel() != b.numel()) return false;
  for (int i = 0; i < a.ndim(); ++i) {
    if (a.size(i) != b.size(i)) return false;
  }
  bool on_cpu = a.device().device_type == kDLCPU && b.device().device_type == kDLCPU;
  if (!on_cpu || !a.IsContiguous() || !b.IsContiguous()) return false;
  return std::memcmp(a.data_ptr(), b.data_ptr(), ffi::GetDataSize(a.numel(), a.dtype())) == 0;
}
struct ConstantExtractor : Mutator<ConstantExtractor, AllocateConstObj> {
  Array<ffi::Tensor> constants;
  ObjectRef Rewrite(const AllocateConstObj* op) {
    AllocateConst allocate = Below<AllocateConst>(op);
    if (!op->data.has_value()) return allocate;
    int64_t index = 0;
    while (index < static_cast<int64_t>(constants.size()) &&
           !SameTensor(constants[index], op->data.value()))
      ++index;
    if (index == static_cast<int64_t>(constants.size())) constants.push_back(op->data.value());
    auto* n = Edit(&allocate);
    n->data = std::nullopt;
    n->irmod_storage_idx = index;
    return allocate;
  }
};
}  // namespace

IRModule ExtractPrimFuncConstants(IRModule mod) {
  ConstantExtractor extract;
  extract.constants =
      mod->attrs.Get<Array<ffi::Tensor>>("constants").value_or(Array<ffi::Tensor>());
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  for (const auto& [var, func] : mod->Sorted()) {
    if (auto* f = func.as<PrimFuncObj>())
      functions.Set(var, RewriteBody(ffi::GetRef<PrimFunc>(f), extract));
  }
  if (extract.constants.empty()) return mod;
  return IRModule(functions, WithAttr(mod->attrs, "constants", extract.constants),
                  mod->global_infos);
}
TVM_PASS(tir, ExtractPrimFuncConstants,
         "Moves constant tensors to the module's attribute constants; equal ones are kept once.\n\n"
         "    T.allocate_const(data)  ->  T.allocate_const(irmod_storage_idx=0), module attribute "
         "constants = [data]")
}  // namespace tvm::tir
