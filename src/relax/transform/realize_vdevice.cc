// SPDX-License-Identifier: Apache-2.0
// Hints where tensors shall be become devices in struct info, and copies where that changes.
#include "lowering.h"
#include "tir/text.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/infer.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
const Op& Hint() {
  static const Op& op = *new Op(Op::Get("relax.hint_on_device"));
  return op;
}
const Op& Copy() {
  static const Op& op = *new Op(Op::Get("relax.to_vdevice"));
  return op;
}
/// The device of the module's list that a hint means.
VDevice DeviceOf(const CallObj* hint, const IRModule& mod) {
  auto* attrs = hint->attrs.value().as<HintOnDeviceAttrsObj>();
  for (const GlobalInfo& info : mod->global_infos.Get("vdevice").value_or(Array<GlobalInfo>())) {
    auto device = info.as<VDevice>();
    if (device && (*device)->target->DeviceType() == attrs->device_type &&
        (*device)->vdevice_id == attrs->index && (*device)->memory_scope == attrs->memory_scope)
      return *device;
  }
  TVM_FFI_THROW(ValueError) << "RealizeVDevice: expected hint_on_device to name a device of the "
                               "module's list \"vdevice\", got device type "
                            << attrs->device_type << ", index " << attrs->index << ", scope \""
                            << attrs->memory_scope << "\"";
  TVM_FFI_UNREACHABLE();
}
const TensorStructInfoObj* TensorOf(const Expr& expr) {
  return GetStructInfoAs<TensorStructInfoObj>(expr);
}
StructInfo OnDevice(const StructInfo& info, const VDevice& device) {
  if (auto* tensor = info.as<TensorStructInfoObj>()) {
    if (tensor->vdevice) return info;
    if (tensor->shape) return TensorStructInfo(tensor->shape.value(), tensor->dtype, device);
    return TensorStructInfo(tensor->dtype, tensor->ndim, device);
  }
  auto* tuple = info.as<TupleStructInfoObj>();
  if (!tuple) return info;
  return TupleStructInfo(Recurse([&] {
    return tuple->fields.Map([&](const StructInfo& field) { return OnDevice(field, device); });
  }));
}

/// From results back to operands: what a tensor on a device is computed from is there too, unless
/// something else is said of it.
class Wishes {
 public:
  Wishes(const Function& func, const IRModule& mod) {
    std::vector<Binding> bindings;
    VisitBindings(func, [&](const Binding& binding) { bindings.push_back(binding); });
    for (auto it = bindings.rbegin(); it != bindings.rend(); ++it) Look(*it, mod);
  }
  Optional<VDevice> For(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    if (!var) return std::nullopt;
    if (auto* tensor = TensorOf(expr); tensor && tensor->vdevice) return tensor->vdevice;
    auto it = wishes_.find(var->vid.get());
    return it == wishes_.end() ? Optional<VDevice>() : it->second;
  }

 private:
  void Look(const Binding& binding, const IRModule& mod) {
    Expr value = ValueOf(binding);
    auto* call = value.as<CallObj>();
    if (call && call->Is(Copy())) return;
    if (call && call->Is(Hint())) return Wish(call->args[0], DeviceOf(call, mod));
    auto device = For(binding->var);
    if (!device) return;
    if (!call) return Wish(value, device.value());
    for (const Expr& arg : call->args) Wish(arg, device.value());
  }
  void Wish(const Expr& expr, const VDevice& device) {
    if (auto* tuple = expr.as<TupleObj>()) {
      for (const Expr& field : tuple->fields) Wish(field, device);
    } else if (auto* item = expr.as<TupleGetItemObj>()) {
      Wish(item->tuple_value, device);
    } else if (auto* var = expr.as<VarObj>()) {
      wishes_.try_emplace(var->vid.get(), device);
    }
  }
  std::unordered_map<const Object*, VDevice> wishes_;
};

class DeviceRealizer : public ExprMutator {
 public:
  DeviceRealizer(const IRModule& mod, const Wishes& wishes)
      : ExprMutator(WithoutFunctions(mod)), mod_(mod), wishes_(wishes) {}
  Expr VisitExpr_(const FunctionObj* op) final {
    for (const Var& param : op->params) {
      auto device = wishes_.For(param);
      if (!device) continue;
      StructInfo info = OnDevice(GetStructInfo(param), device.value());
      SetVarRemap(param->vid, WithStructInfo(param, info));
    }
    return ExprMutator::VisitExpr_(op);
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    wish_ = wishes_.For(binding->var);
    ExprMutator::VisitBinding_(binding);
    wish_ = std::nullopt;
  }
  Expr VisitExpr_(const CallObj* op) final {
    Optional<VDevice> wish = wish_;
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    if (call->Is(Hint())) {
      VDevice device = DeviceOf(call, mod_);
      auto* data = TensorOf(call->args[0]);
      if (!data) {
        TVM_FFI_THROW(TypeError) << "RealizeVDevice: expected hint_on_device of a tensor, got "
                                 << tir::TextOf(GetStructInfo(call->args[0]));
      }
      if (data->vdevice && SameDevice(data->vdevice.value(), device)) return call->args[0];
      return Call(Copy(), {call->args[0]}, ToVDeviceAttrs(device), {}, call->span);
    }
    if (call->sinfo_args.empty()) return visited;
    // What a call is said to return is where its arguments are.
    if (!wish) wish = DeviceOfArguments(call);
    if (!wish) return visited;
    auto infos =
        call->sinfo_args.Map([&](const StructInfo& info) { return OnDevice(info, wish.value()); });
    return Call(call->op, call->args, call->attrs, infos, call->span);
  }

 private:
  static Optional<VDevice> DeviceOfArguments(const CallObj* call) {
    for (const Expr& arg : call->args) {
      auto* tuple = arg.as<TupleObj>();
      for (const Expr& item : tuple ? tuple->fields : Array<Expr>{arg}) {
        if (auto* tensor = TensorOf(item); tensor && tensor->vdevice) return tensor->vdevice;
      }
    }
    return std::nullopt;
  }
  IRModule mod_;
  const Wishes& wishes_;
  Optional<VDevice> wish_;
};
Function RealizeVDevice(Function func, IRModule mod) {
  Wishes wishes(func, mod);
  return As<Function>(DeviceRealizer(mod, wishes).VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(RealizeVDevice, 0,
                        "y = R.hint_on_device(x, dev)  ->  x, and what it is computed from, is on "
                        "that device, or y = R.to_vdevice(x, dev) where it is on another one.");
}  // namespace tvm::relax
