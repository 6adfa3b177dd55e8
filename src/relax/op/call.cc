// SPDX-License-Identifier: Apache-2.0
// Operators that call packed functions and closures, print and assert.
#include "call.h"

namespace tvm::relax {
namespace {

StructInfo InferInfoArgs(Infer& in) {
  const Array<StructInfo>& all = in.call->sinfo_args;
  if (all.empty()) return ObjectStructInfo::Get();
  if (all.size() == 1) return all[0];
  return TupleStructInfo(all);
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
  if (!is_bool)
    TVM_RAISE_TYPE(in) << "expected a bool scalar as condition, got " << TextOf(in.Of(0));
  return TupleStructInfo::Void();
}

TVM_REGISTER() {
  auto def = [](const char* name, const char* schema, InferFn infer, const char* doc) {
    return Operator(name, schema, infer, doc).Pattern(kOpaque).Precision(kNever);
  };
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
