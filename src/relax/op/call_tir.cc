// SPDX-License-Identifier: Apache-2.0
// Calls of functions that write their results into tensors they are given.
#include <algorithm>

#include "call.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/distributed.h"

namespace tvm::relax {

void CheckInplace(Infer& in, const Ints& indices, size_t results, size_t arguments) {
  if (indices.size() != results) {
    TVM_RAISE(in) << "expected " << results << " inplace_indices, one for each result, got "
                  << indices.size();
  }
  std::vector<int64_t> used;
  for (const IntImm& index : indices) {
    int64_t i = index->value;
    if (i < -1 || i >= static_cast<int64_t>(arguments)) {
      TVM_RAISE(in) << "expected inplace_indices in [-1, " << arguments << "), got " << i;
    }
    if (i >= 0 && std::find(used.begin(), used.end(), i) != used.end())
      TVM_RAISE(in) << "expected each argument at most once in inplace_indices, got " << i
                    << " twice";
    if (i >= 0) used.push_back(i);
  }
  if (used.empty()) TVM_RAISE(in) << "expected a result that overwrites an argument, got none";
}
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
    TVM_RAISE_TYPE(in) << "expected out_sinfo of tensors with dimensions, got " << TextOf(info);
  }
}
StructInfo InferOutInfo(Infer& in) {
  if (in.call->sinfo_args.size() != 1) {
    TVM_RAISE(in) << "expected one out_sinfo, got " << in.call->sinfo_args.size();
  }
  CheckAllocatable(in, in.call->sinfo_args[0]);
  return in.call->sinfo_args[0];
}
StructInfo InferCallTIR(Infer& in) {
  if (!in.call->args[0].as<GlobalVarObj>()) {
    TVM_RAISE_TYPE(in) << "expected a function of the module as '" << in.info->Param(0) << "', got "
                       << in.call->args[0]->GetTypeKey();
  }
  return InferOutInfo(in);
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
      TVM_RAISE(in) << "expected a result of the shape and type of the argument it overwrites, "
                    << TextOf(given) << ", got " << TextOf(result);
    }
  }
  return out;
}
// ---- normal form and validity -------------------------------------------------------------------
/// The arguments are written out: a variable that is a tuple becomes the tuple it is bound to, or
/// one of its items.
Expr NormalizeArguments(const BlockBuilder& builder, const Call& call) {
  if (call->args.size() < 2 || call->args[1].as<TupleObj>()) return call;
  auto* info = GetStructInfoAs<TupleStructInfoObj>(call->args[1]);
  if (!info) return call;
  Expr tuple{nullptr};
  if (auto* var = call->args[1].as<VarObj>()) {
    auto value = builder->LookupBinding(ffi::GetRef<Var>(var));
    if (value.has_value() && (*value).as<TupleObj>()) tuple = *value;
  }
  if (!tuple.defined()) {
    Array<Expr> items;
    for (size_t i = 0; i < info->fields.size(); ++i)
      items.push_back(TupleGetItem(call->args[1], static_cast<int64_t>(i)));
    tuple = Tuple(items);
  }
  Array<Expr> args = call->args;
  args.Set(1, tuple);
  return Call(call->op, args, call->attrs, call->sinfo_args, call->span);
}
/// The results that out_sinfo names are those that the function writes, given the arguments.
void ValidateCallTIR(const Call& call) {
  auto* callee = GetStructInfoAs<FuncStructInfoObj>(call->args[0]);
  auto* args = call->args[1].as<TupleObj>();
  if (!callee || callee->IsOpaque() || !args) return;
  const Array<StructInfo> params = *callee->params;
  Array<StructInfo> outputs{call->sinfo_args[0]};
  if (auto* tuple = call->sinfo_args[0].as<TupleStructInfoObj>()) outputs = tuple->fields;
  if (call->attrs.has_value()) {
    if (auto* attrs = (*call->attrs).as<CallTIRInplaceAttrsObj>()) {
      Array<StructInfo> fresh;  // those that overwrite an argument are no parameters
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (attrs->inplace_indices[i]->value < 0) fresh.push_back(outputs[i]);
      }
      outputs = fresh;
    }
  }
  Dims vars;
  if (call->args.size() > 2) {
    if (auto* shape = GetStructInfoAs<ShapeStructInfoObj>(call->args[2])) {
      if (!shape->values.has_value()) return;
      vars = *shape->values;
    }
  }
  size_t given = args->fields.size();
  const std::string name(View(call->op.as<OpObj>()->name).substr(6));
  if (given + outputs.size() + vars.size() != params.size()) {
    TVM_FFI_THROW(OpTypeError) << name << ": expected " << params.size()
                               << " arguments, results and tir_vars for " << TextOf(call->args[0])
                               << ", got " << given << ", " << outputs.size() << " and "
                               << vars.size();
  }
  // A function of the arguments and the variables whose results are the output buffers.
  Array<StructInfo> inputs(params.begin(), params.begin() + given), written;
  Array<Expr> values = args->fields;
  for (size_t i = 0; i < outputs.size(); ++i) written.push_back(params[given + i]);
  for (size_t i = 0; i < vars.size(); ++i) {
    inputs.push_back(params[given + outputs.size() + i]);
    values.push_back(PrimValue(vars[i]));
  }
  StructInfo derived = DeriveCallRetStructInfo(FuncStructInfo(inputs, TupleStructInfo(written)),
                                               Call(call->args[0], values), BlockBuilder(nullptr));
  if (StructInfoBaseCheck(derived, TupleStructInfo(outputs)) == BaseCheckResult::kFailL0) {
    TVM_FFI_THROW(OpTypeError) << name << ": expected out_sinfo as " << TextOf(call->args[0])
                               << " writes it, " << TextOf(derived) << ", got "
                               << TextOf(TupleStructInfo(outputs));
  }
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
  for (const char* name :
       {"relax.call_tir", "relax.call_tir_with_grad", "relax.call_tir_inplace"}) {
    FNormalize.Set(Op::Get(name), &NormalizeArguments);
    FValidate.Set(Op::Get(name), &ValidateCallTIR);
  }
}

}  // namespace
}  // namespace tvm::relax
