// SPDX-License-Identifier: Apache-2.0
// A device of the module's list is replaced by another one.
#include "lowering.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/infer.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class DeviceReplacer : public ExprMutator {
 public:
  DeviceReplacer(const IRModule& mod, VDevice from, VDevice to)
      : ExprMutator(WithoutFunctions(mod)), from_(std::move(from)), to_(std::move(to)) {}
  StructInfo VisitStructInfo(const StructInfo& info) final {
    if (auto* tensor = info.as<TensorStructInfoObj>()) {
      if (!IsOld(tensor->vdevice)) return info;
      if (tensor->shape) return TensorStructInfo(tensor->shape.value(), tensor->dtype, to_);
      return TensorStructInfo(tensor->dtype, tensor->ndim, to_);
    }
    auto* tuple = info.as<TupleStructInfoObj>();
    if (!tuple) return info;
    auto fields = Recurse([&] {
      return tuple->fields.Map([&](const StructInfo& field) { return VisitStructInfo(field); });
    });
    return fields.same_as(tuple->fields) ? info : TupleStructInfo(fields);
  }
  Expr VisitExpr_(const ConstantObj* op) final {
    StructInfo info = GetStructInfo(ffi::GetRef<Expr>(op));
    StructInfo now = VisitStructInfo(info);
    return now.same_as(info) ? ffi::GetRef<Expr>(op) : Constant(op->data, now, op->span);
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* attrs = call->attrs ? call->attrs.value().as<ToVDeviceAttrsObj>() : nullptr;
    if (!attrs || !IsOld(attrs->dst_vdevice)) return visited;
    return Call(call->op, call->args, ToVDeviceAttrs(to_), call->sinfo_args, call->span);
  }

 private:
  bool IsOld(const Optional<VDevice>& device) const {
    return device && SameDevice(device.value(), from_);
  }
  VDevice from_, to_;
};

IRModule UpdateVDevice(IRModule mod, VDevice new_vdevice, int64_t index) {
  Array<GlobalInfo> devices = mod->global_infos.Get("vdevice").value_or(Array<GlobalInfo>());
  if (index < 0 || index >= static_cast<int64_t>(devices.size())) {
    TVM_FFI_THROW(ValueError) << "UpdateVDevice: expected the index of one of the module's "
                              << devices.size() << " devices, got " << index;
  }
  auto old = As<VDevice>(devices[index]);
  devices.Set(index, new_vdevice);
  Map<String, Array<GlobalInfo>> infos = mod->global_infos;
  infos.Set("vdevice", devices);
  IRModule updated(mod->functions, mod->attrs, infos);
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<FunctionObj>()) continue;
    Expr changed = DeviceReplacer(updated, old, new_vdevice).VisitExpr(func);
    if (changed.same_as(func)) continue;
    functions.Set(var, As<Function>(changed));
    UpdateStructInfo(var, GetStructInfo(changed));
  }
  return IRModule(functions, mod->attrs, infos);
}
}  // namespace
TVM_RELAX_PASS(UpdateVDevice, 0,
               "Replaces the device of that index in the module's list, and wherever a tensor is "
               "on it.",
               Arg("new_vdevice"), Arg("index"));
}  // namespace tvm::relax
