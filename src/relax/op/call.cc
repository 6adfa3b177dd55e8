// SPDX-License-Identifier: Apache-2.0
// Operators that call functions: of the module, packed ones, closures.
#include <algorithm>

#include "infer.h"
#include "tvm/relax/distributed.h"

namespace tvm::relax {
namespace {

// ---- results given by the caller --------------------------------------------------------------
/// Raises unless memory for the result can be allocated: tensors of given dimensions.
void CheckAllocatable(Infer& in, const StructInfo& info) {
  if (auto* tuple = info.as<TupleStructInfoObj>()) {
    for (const StructInfo& field : tuple->fields) CheckAllocatable(in, field);
    return;
  }
  auto* tensor = info.as<TensorStructInfoObj>();
  if (auto* spread = info.as<distributed::DTensorStructInfoObj>())
    tensor = spread->tensor_sinfo.get();
  bool fits = tensor && tensor->shape.has_value() && (*tensor->shape).as<ShapeExprObj>();
  if (!fits) {
    RAISE_TYPE(in) << "expected out_sinfo of tensors with dimensions, got " << TextOf(info);
  }
}
StructInfo InferOutInfo(Infer& in) {
  if (in.call->sinfo_args.size() != 1) {
    RAISE(in) << "expected one out_sinfo, got " << in.call->sinfo_args.size();
  }
  CheckAllocatable(in, in.call->sinfo_args[0]);
  return in.call->sinfo_args[0];
}
StructInfo InferCallTIR(Infer& in) {
  if (!in.call->args[0].as<GlobalVarObj>()) {
    RAISE_TYPE(in) << "expected a function of the module as '" << in.info->Param(0) << "', got "
                   << in.call->args[0]->GetTypeKey();
  }
  return InferOutInfo(in);
}
StructInfo InferInfoArgs(Infer& in) {
  const Array<StructInfo>& all = in.call->sinfo_args;
  if (all.empty()) return ObjectStructInfo::Get();
  if (all.size() == 1) return all[0];
  return TupleStructInfo(all);
}

// ---- in place ---------------------------------------------------------------------------------
/// One index for each result: that of the argument it overwrites, or -1 for a new one.
void CheckInplace(Infer& in, const Ints& indices, size_t results, size_t arguments) {
  if (indices.size() != results) {
    RAISE(in) << "expected " << results << " inplace_indices, one for each result, got "
              << indices.size();
  }
  std::vector<int64_t> used;
  for (const IntImm& index : indices) {
    int64_t i = index->value;
    if (i < -1 || i >= static_cast<int64_t>(arguments)) {
      RAISE(in) << "expected inplace_indices in [-1, " << arguments << "), got " << i;
    }
    if (i >= 0 && std::find(used.begin(), used.end(), i) != used.end())
      RAISE(in) << "expected each argument at most once in inplace_indices, got " << i << " twice";
    if (i >= 0) used.push_back(i);
  }
  if (used.empty()) RAISE(in) << "expected a result that overwrites an argument, got none";
}
StructInfo InferCallTIRInplace(Infer& in) {
  StructInfo out = InferCallTIR(in);
  const Ints& indices = in.attrs<CallTIRInplaceAttrsObj>()->inplace_indices;
  auto* tuple = out.as<TupleStructInfoObj>();
  auto* args = in.Of(1).as<TupleStructInfoObj>();
  CheckInplace(in, indices, tuple ? tuple->fields.size() : 1, args->fields.size());
  for (size_t r = 0; r < indices.size(); ++r) {
    if (indices[r]->value < 0) continue;
    StructInfo result = tuple ? tuple->fields[r] : out, given = args->fields[indices[r]->value];
    auto *to = result.as<TensorStructInfoObj>(), *from = given.as<TensorStructInfoObj>();
    bool fits = from && from->dtype == to->dtype && DimsOf(from) &&
                DimsOf(from)->size() == DimsOf(to)->size();
    for (size_t i = 0; fits && i < DimsOf(to)->size(); ++i)
      fits = in.Equal((*DimsOf(from))[i], (*DimsOf(to))[i]);
    if (!fits) {
      RAISE(in) << "expected a result of the shape and type of the argument it overwrites, "
                << TextOf(given) << ", got " << TextOf(result);
    }
  }
  return out;
}
StructInfo InferCallInplacePacked(Infer& in) {
  StructInfo out = InferInfoArgs(in);
  auto* tuple = out.as<TupleStructInfoObj>();
  CheckInplace(in, in.attrs<CallInplacePackedAttrsObj>()->inplace_indices,
               tuple ? tuple->fields.size() : 1, in.size() - 1);
  return out;
}

// ---- print and assert -------------------------------------------------------------------------
/// The format is the first argument of the call.
Expr FinishPrint(Call call) {
  Array<Expr> args{call->args.back()};
  for (size_t i = 0; i + 1 < call->args.size(); ++i) args.push_back(call->args[i]);
  return Call(call->op, args);
}
/// (condition, values, format) -> (condition, format, value, …).
Expr FinishAssert(Call call) {
  Array<Expr> args{call->args[0], call->args.back()};
  if (call->args.size() > 2) {
    if (auto* values = call->args[1].as<TupleObj>()) {
      for (const Expr& value : values->fields) args.push_back(value);
    } else {
      args.push_back(call->args[1]);
    }
  }
  return Call(call->op, args);
}
StructInfo InferAssert(Infer& in) {
  const TensorStructInfoObj* tensor = in.AsTensor(0);
  auto* prim = in.Of(0).as<PrimStructInfoObj>();
  bool is_bool = tensor ? (tensor->dtype.is_void() || tensor->dtype.is_bool()) && tensor->ndim <= 0
                        : prim && prim->dtype.is_bool();
  if (!is_bool) RAISE_TYPE(in) << "expected a bool scalar as condition, got " << TextOf(in.Of(0));
  return TupleStructInfo::Void();
}

TVM_REGISTER() {
  auto def = [](const char* name, const char* schema, InferFn infer, const char* doc) {
    return Operator(name, schema, infer, doc).Pattern(kOpaque).Precision(kNever);
  };
  def("relax.call_tir", "gvar: Func, args: Args, out_sinfo: OutInfo, tir_vars: Shape = None",
      &InferCallTIR, "Calls a PrimFunc that writes its results into new tensors.");
  def("relax.call_tir_with_grad",
      "gvar: Func, args: Args, out_sinfo: OutInfo, te_grad_name, te_grad_kwargs=None, "
      "tir_vars: Shape = None",
      &InferCallTIR, "call_tir with the name of the function that makes its gradient.")
      .Attrs<CallTIRWithGradAttrsObj>();
  def("relax.call_tir_inplace",
      "gvar: Func, args: Args, inplace_indices, out_sinfo: OutInfo, tir_vars: Shape = None",
      &InferCallTIRInplace, "call_tir whose results overwrite arguments.")
      .Attrs<CallTIRInplaceAttrsObj>();
  def("relax.call_dps_packed", "func: Func, args: Args, out_sinfo: OutInfo", &InferOutInfo,
      "Calls a packed function that writes its results into new tensors.");
  def("relax.call_py_func", "func_name: Str, args: Args, out_sinfo: OutInfo", &InferOutInfo,
      "Calls a Python function of the module.");
  def("relax.dist.call_tir_local_view",
      "gvar: Func, args: Args, out_sinfo: OutInfo, tir_vars: Shape = None", &InferCallTIR,
      "call_tir on the part of each tensor that the device has.");
  def("relax.call_pure_packed", "func: Func, *args: Expr, sinfo_args: InfoArgs = None",
      &InferInfoArgs, "Calls a packed function without side effects.");
  def("relax.call_inplace_packed",
      "func: Func, *args: Expr, inplace_indices=None, sinfo_args: InfoArgs = None",
      &InferCallInplacePacked, "Calls a packed function whose results overwrite arguments.")
      .Attrs<CallInplacePackedAttrsObj>();
  def("relax.call_builtin_with_ctx", "func: Func, args: Args, sinfo_args: InfoArgs = None",
      &InferInfoArgs, "Calls a function of the virtual machine with its state.")
      .Impure();
  def("relax.make_closure", "func: Expr, args: Args", &InferObject,
      "The function with its first arguments bound.");
  def("relax.invoke_closure", "closure: Expr, args: Args, sinfo_args: InfoArgs", &InferInfoArgs,
      "Calls a closure.")
      .Impure();
  def("relax.invoke_pure_closure", "closure: Expr, args: Args, sinfo_args: InfoArgs",
      &InferInfoArgs, "Calls a closure without side effects.");
  def("relax.null_value", "", &InferObject, "A value that stands for none.");
  def("relax.print", "*values: Expr, format: Str = ''", &InferVoid, "Prints the values.")
      .Finish(&FinishPrint)
      .Set("FCallPacked", String("relax.run.print"))
      .Impure();
  def("relax.assert_op", "condition: Value, format_args: Expr = None, format: Str = ''",
      &InferAssert, "Raises an AssertionError unless the condition holds.")
      .Finish(&FinishAssert)
      .Variadic()
      .Set("FCallPacked", String("relax.run.assert_op"))
      .Impure();
  def("relax.vm.call_tir_dyn", "func: Func, args: Args", &InferVoid,
      "Calls a PrimFunc whose shape arguments are computed.")
      .Impure();
}

}  // namespace
}  // namespace tvm::relax
