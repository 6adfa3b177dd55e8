// SPDX-License-Identifier: Apache-2.0
// Operators that the virtual machine has a function for become calls of it.
#include "lowering.h"
#include "relax/transform/calls_op.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/infer.h"
#include "tvm/relax/op.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// The same arguments for a function of the machine.
struct PackedRow {
  const char *op, *function;
};
constexpr PackedRow kPackedRows[] = {
    {"relax.reshape", "vm.builtin.reshape"},
    {"relax.shape_of", "vm.builtin.shape_of"},
    {"relax.tensor_to_shape", "vm.builtin.tensor_to_shape"},
    {"relax.memory.ensure_zero_offset", "vm.builtin.ensure_zero_offset"},
    {"relax.call_py_func", "vm.builtin.call_py_func"},
    {"relax.inspect.tensor_dtype_code", "vm.builtin.tensor_dtype_code"},
    {"relax.inspect.tensor_dtype_bits", "vm.builtin.tensor_dtype_bits"},
    {"relax.inspect.tensor_dtype_lanes", "vm.builtin.tensor_dtype_lanes"},
    {"relax.inspect.tensor_ndim", "vm.builtin.tensor_ndim"},
    {"relax.inspect.tensor_shape_i", "vm.builtin.tensor_shape_i"},
    {"relax.inspect.tensor_stride_i", "vm.builtin.tensor_stride_i"},
    {"relax.inspect.tensor_byte_offset", "vm.builtin.tensor_byte_offset"},
    {"relax.inspect.tensor_elem_offset", "vm.builtin.tensor_elem_offset"},
};

template <size_t row>
Expr LowerPacked(const BlockBuilder&, const Call& call) {
  return CallPacked(kPackedRows[row].function, call->args, GetStructInfo(call));
}

Expr LowerStorage(const BlockBuilder&, const Call& call) {
  const Array<Expr>& args = call->args;  // size, device, scope, dtype
  return Call(LoweredOps::Get().vm_alloc_storage, {args[0], args[1], args[3], args[2]});
}
Expr LowerTensor(const BlockBuilder&, const Call& call) {
  return Call(LoweredOps::Get().vm_alloc_tensor, call->args);
}
Expr LowerKill(const BlockBuilder&, const Call& call) {
  return Call(LoweredOps::Get().kill_object, call->args);
}
/// What was only said about a value has served its purpose.
Expr LowerToArgument(const BlockBuilder&, const Call& call) { return call->args[0]; }

/// The first argument, then the items of the second.
Array<Expr> Spread(const BlockBuilder& builder, const Call& call) {
  Array<Expr> args = {call->args[0]};
  for (const Expr& item : ItemsOf(builder, call->args[1])) args.push_back(item);
  return args;
}
Expr LowerMakeClosure(const BlockBuilder& builder, const Call& call) {
  return CallPacked("vm.builtin.make_closure", Spread(builder, call), ObjectStructInfo::Get());
}
Expr LowerInvokeClosure(const BlockBuilder& builder, const Call& call) {
  return Call(LoweredOps::Get().call_with_vm,
              {ExternFunc("vm.builtin.invoke_closure"), Tuple(Spread(builder, call))}, {},
              call->sinfo_args);
}
Expr LowerCallTIRDyn(const BlockBuilder& builder, const Call& call) {
  return CallPacked("vm.builtin.call_tir_dyn", Spread(builder, call), TupleStructInfo::Void());
}
Expr LowerToVDevice(const BlockBuilder&, const Call& call) {
  const VDevice& to = call->attrs.value().as<ToVDeviceAttrsObj>()->dst_vdevice;
  return CallPacked("vm.builtin.to_device",
                    {call->args[0], PrimValue::Int64(to->target->DeviceType()),
                     PrimValue::Int64(to->vdevice_id), StringImm(to->memory_scope)},
                    GetStructInfo(call));
}
/// What a view leaves out is as in the tensor.
Expr LowerView(const BlockBuilder& builder, const Call& call) {
  Expr data = call->args[0];
  auto* info = GetStructInfoAs<TensorStructInfoObj>(data);
  auto given = [&](size_t i) { return !IsVoidStructInfo(GetStructInfo(call->args[i])); };
  Expr shape =
      given(1)
          ? call->args[1]
          : builder->Emit(CallPacked("vm.builtin.shape_of", {data}, ShapeStructInfo(info->ndim)));
  if (!given(2) && info->dtype.is_void()) {
    TVM_FFI_THROW(OpValueError) << "memory.view: expected a dtype for a tensor whose dtype is not "
                                   "known, got none";
  }
  Expr dtype = given(2) ? call->args[2] : Expr(DataTypeImm(info->dtype));
  Expr offset = given(3) ? call->args[3] : Expr(PrimValue::Int64(0));
  return CallPacked("vm.builtin.view", {data, shape, dtype, offset}, GetStructInfo(call));
}

TVM_REGISTER() {
  struct Entry {
    const char* op;
    Expr (*lower)(const BlockBuilder&, const Call&);
  };
  for (const Entry& entry : {Entry{"relax.memory.alloc_storage", &LowerStorage},
                             {"relax.memory.alloc_tensor", &LowerTensor},
                             {"relax.memory.kill_storage", &LowerKill},
                             {"relax.memory.kill_tensor", &LowerKill},
                             {"relax.memory.view", &LowerView},
                             {"relax.make_closure", &LowerMakeClosure},
                             {"relax.invoke_closure", &LowerInvokeClosure},
                             {"relax.vm.call_tir_dyn", &LowerCallTIRDyn},
                             {"relax.to_vdevice", &LowerToVDevice},
                             {"relax.hint_on_device", &LowerToArgument},
                             {"relax.builtin.stop_lift_params", &LowerToArgument}})
    FLowerBuiltin.Set(Op::Register(entry.op), entry.lower);
  [&]<size_t... i>(std::index_sequence<i...>) {
    (FLowerBuiltin.Set(Op::Register(kPackedRows[i].op), &LowerPacked<i>), ...);
  }(std::make_index_sequence<std::size(kPackedRows)>());
}

class BuiltinLowerer : public ExprMutator {
 public:
  using ExprMutator::ExprMutator;
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto call = ffi::GetRef<Call>(visited.as<CallObj>());
    auto* callee = call->op.as<OpObj>();
    if (!callee) return visited;
    // Lowering looks at what is known of the call.
    if (!call->struct_info_) call = As<Call>(builder_->Normalize(call));
    if (const RewriteCallFn* lower = FLowerBuiltin.Find(callee)) return (*lower)(builder_, call);
    const String* packed = FCallPacked.Find(callee);
    return packed ? CallPacked(packed->c_str(), call->args, GetStructInfo(call)) : visited;
  }
};
Function LowerRuntimeBuiltin(Function func, IRModule mod) {
  if (!CallsOp(func,
               [](const OpObj* op) { return FLowerBuiltin.Find(op) || FCallPacked.Find(op); }))
    return func;
  return As<Function>(BuiltinLowerer(WithoutFunctions(mod)).VisitExpr(func));
}
Function VMBuiltinLower(Function func, IRModule mod) { return LowerRuntimeBuiltin(func, mod); }
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    LowerRuntimeBuiltin, 0,
    "R.reshape(x, s)  ->  R.call_packed(\"vm.builtin.reshape\", x, s); likewise "
    "shapes, closures, devices, allocation and its end.");
TVM_RELAX_FUNCTION_PASS(VMBuiltinLower, 0, "Another name of LowerRuntimeBuiltin.");
}  // namespace tvm::relax
