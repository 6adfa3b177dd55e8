// SPDX-License-Identifier: Apache-2.0
// Functions that write into given tensors: the tensors are allocated, the functions called.
#include "lowering.h"
#include "relax/transform/calls_op.h"
#include "tir/text.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/infer.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
bool HasDestination(const OpObj* op) {
  const LoweredOps& ops = LoweredOps::Get();
  return op == ops.call_tir.get() || op == ops.call_tir_inplace.get() ||
         op == ops.call_tir_with_grad.get() || op == ops.call_dps_packed.get();
}
class DestinationRewriter : public ExprMutator {
 public:
  explicit DestinationRewriter(const IRModule& mod) : ExprMutator(WithoutFunctions(mod)) {
    auto devices = mod->global_infos.find("vdevice");
    if (devices != mod->global_infos.end()) devices_ = (*devices).second;
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* callee = call->op.as<OpObj>();
    return callee && HasDestination(callee) ? Lower(call) : visited;
  }

 private:
  Expr Lower(const CallObj* call) {
    const LoweredOps& ops = LoweredOps::Get();
    Array<Expr> args = ItemsOf(builder_, call->args[1]);
    const Array<Expr> inputs = args;
    Ints inplace;
    if (call->Is(ops.call_tir_inplace))
      inplace = call->attrs.value().as<CallTIRInplaceAttrsObj>()->inplace_indices;
    auto destination = [&](const StructInfo& info, size_t i) -> Expr {
      int64_t overwritten = i < inplace.size() ? inplace[i]->value : -1;
      return overwritten < 0 ? Allocate(info, &args) : inputs[overwritten];
    };
    const StructInfo& out = call->sinfo_args[0];
    Expr result{nullptr};
    if (auto* tuple = out.as<TupleStructInfoObj>()) {
      Array<Expr> fields;
      for (size_t i = 0; i < tuple->fields.size(); ++i)
        fields.push_back(destination(tuple->fields[i], i));
      result = Tuple(fields);
    } else {
      result = destination(out, 0);
    }
    Call lowered{nullptr};
    if (call->args.size() > 2) {
      args.push_back(call->args[2]);
      lowered = Call(ops.call_tir_dyn, {call->args[0], Tuple(args)}, {}, {}, call->span);
    } else {
      Array<StructInfo> infos;
      if (call->Is(ops.call_dps_packed)) infos.push_back(TupleStructInfo::Void());
      lowered = Call(call->args[0], args, {}, infos, call->span);
    }
    builder_->Emit(lowered, "_");
    return result;
  }
  /// New tensors of the kind, which become arguments too.
  Expr Allocate(const StructInfo& info, Array<Expr>* args) {
    if (auto* tuple = info.as<TupleStructInfoObj>()) {
      return Tuple(Recurse([&] {
        return tuple->fields.Map([&](const StructInfo& field) { return Allocate(field, args); });
      }));
    }
    auto* tensor = info.as<TensorStructInfoObj>();
    if (!tensor || !tensor->shape || !tensor->shape.value().as<ShapeExprObj>()) {
      TVM_FFI_THROW(ValueError) << "CallTIRRewrite: expected out_sinfo of tensors with dimensions, "
                                   "got "
                                << tir::TextOf(info);
    }
    String scope = tensor->vdevice ? tensor->vdevice.value()->memory_scope : String("global");
    Var made = builder_->Emit(Call(LoweredOps::Get().new_tensor,
                                   {tensor->shape.value(), DataTypeImm(tensor->dtype),
                                    PrimValue::Int64(IndexOf(tensor->vdevice)), StringImm(scope)}),
                              "alloc");
    args->push_back(made);
    return made;
  }
  /// The virtual machine is given its devices in the order of the module's list.
  int64_t IndexOf(const Optional<VDevice>& device) const {
    if (!device) return 0;
    for (size_t i = 0; i < devices_.size(); ++i) {
      auto known = devices_[i].as<VDevice>();
      if (known && SameDevice(*known, device.value())) return static_cast<int64_t>(i);
    }
    TVM_FFI_THROW(ValueError) << "CallTIRRewrite: expected a device of the module's list "
                                 "\"vdevice\", got "
                              << tir::TextOf(device.value());
    TVM_FFI_UNREACHABLE();
  }
  Array<GlobalInfo> devices_;
};
Function CallTIRRewrite(Function func, IRModule mod) {
  if (!CallsOp(func, &HasDestination)) return func;
  return As<Function>(DestinationRewriter(mod).VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    CallTIRRewrite, 0,
    "y = R.call_tir(f, (x,), R.Tensor((4,)))  ->  alloc = R.builtin.alloc_tensor((4,)); "
    "f(x, alloc); y = alloc. Results that overwrite an argument are that argument.");
}  // namespace tvm::relax
