// SPDX-License-Identifier: Apache-2.0
// Definitions of operators, calls made from what people write, and inference by the definition.
#include "tvm/relax/operator.h"

#include <map>

#include "convert.h"
#include "schema.h"
#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

const OperatorInfo* infos[kMaxOps];  // by OpObj::index; written while the library is initialised
std::map<std::string_view, OperatorInfo*>& Operators() {
  static auto* table = new std::map<std::string_view, OperatorInfo*>();
  return *table;
}

/// Raises unless the argument is what its kind says.
void CheckKind(const Infer& in, size_t i, ParamKind kind) {
  if (kind == ParamKind::kFunc || kind == ParamKind::kExpr) return;
  const StructInfoObj* info = in.Of(i).get();
  const char* expected = nullptr;
  switch (kind) {
    case ParamKind::kTensor:
      if (!info->IsInstance<TensorStructInfoObj>()) expected = "a tensor";
      break;
    case ParamKind::kValue:
      if (!info->IsInstance<TensorStructInfoObj>() && !info->IsInstance<PrimStructInfoObj>())
        expected = "a tensor or a scalar";
      break;
    case ParamKind::kPrim:
      if (!info->IsInstance<PrimStructInfoObj>()) expected = "a scalar";
      break;
    case ParamKind::kShape:
      if (!info->IsInstance<ShapeStructInfoObj>()) expected = "a shape";
      break;
    case ParamKind::kTensors:
    case ParamKind::kPrims:
    case ParamKind::kArgs:
      if (!info->IsInstance<TupleStructInfoObj>()) expected = "a tuple";
      break;
    default:
      break;
  }
  if (expected) {
    TVM_RAISE_TYPE(in) << "argument '" << in.info->Param(i) << "': expected " << expected
                       << ", got " << TextOf(in.Of(i));
  }
}
void CheckArguments(const Infer& in) {
  const OperatorInfo& info = *in.info;
  size_t most = info.call_args.size(), got = in.call->args.size();
  if (got < static_cast<size_t>(info.min_args) || (got > most && !info.variadic)) {
    TVM_RAISE(in) << "expected " << info.min_args
                  << (info.variadic                                ? " or more"
                      : most != static_cast<size_t>(info.min_args) ? " to " + std::to_string(most)
                                                                   : "")
                  << " arguments, got " << got;
  }
  for (size_t i = 0; i < got; ++i) {
    ParamKind kind = info.params[info.call_args[std::min(i, most - 1)]].kind;
    // An argument that defaults to the empty tuple may be that.
    if (info.args[info.call_args[std::min(i, most - 1)]].value.type_index() == kTVMFFIArray &&
        IsVoidStructInfo(in.call->args[i]->struct_info_.value_or(ObjectStructInfo::Get()))) {
      continue;
    }
    CheckKind(in, i, kind);
  }
}
StructInfo InferOperator(const Call& call, const BlockBuilder& builder) {
  Infer in(call.get(), infos[call->op.as<OpObj>()->index], &builder);
  CheckArguments(in);
  if (in.info->infer) return in.info->infer(in);
  Any result = CallBack(in.info->packed_infer.value(), call, builder);
  if (auto* info = result.as<StructInfoObj>()) return ffi::GetRef<StructInfo>(info);
  TVM_RAISE_TYPE(in) << "expected struct info from its inference function, got "
                     << result.GetTypeKey();
  TVM_FFI_UNREACHABLE();
}

/// The dtype of the first tensor among the values: numbers beside it take it over.
DataType NeighbourType(const std::vector<AnyView>& values) {
  for (const AnyView& value : values) {
    auto* expr = value.as<RelaxExprObj>();
    auto* tensor = expr ? expr->struct_info_.as<TensorStructInfoObj>() : nullptr;
    if (tensor) return tensor->dtype;
  }
  return DataType::Void();
}

Expr MakeCall(const OperatorInfo& info, std::vector<AnyView> params) {
  if (params.size() > info.args.size()) {
    TVM_FFI_THROW(TypeError) << info.name << ": expected at most " << info.args.size()
                             << " arguments, got " << params.size();
  }
  for (size_t i = params.size(); i < info.args.size(); ++i) {
    if (!info.args[i].has_default) {
      TVM_FFI_THROW(TypeError) << info.name << ": missing argument '" << info.args[i].name << "'";
    }
    params.push_back(info.args[i].value);
  }
  Array<Expr> args;
  args.reserve(info.call_args.size());
  Array<StructInfo> sinfo_args;
  DataType neighbour = NeighbourType(params);
  for (size_t i = 0; i < params.size(); ++i) {
    const OperatorParam& param = info.params[i];
    if (params[i] == nullptr && param.same_as >= 0) params[i] = params[param.same_as];
    if (param.kind == ParamKind::kAttr || (params[i] == nullptr && param.is_optional)) continue;
    int at = static_cast<int>(i);
    if (!IsArgument(param.kind)) {
      sinfo_args = ConvertInfo(info, at, params[i]);
    } else if (param.is_variadic) {
      for (const Any& item : params[i].cast<Array<Any>>())
        args.push_back(ConvertArgument(info, at, item, neighbour));
    } else {
      bool is_void = params[i] == nullptr || params[i].same_as(info.args[i].value);
      is_void = is_void && info.args[i].value.type_index() == kTVMFFIArray;
      args.push_back(is_void ? Tuple(Array<Expr>())
                             : ConvertArgument(info, at, params[i], neighbour));
    }
  }
  Call call(info.op, args, MakeAttrs(info, params), sinfo_args);
  return info.finish ? info.finish(std::move(call)) : std::move(call);
}
int CallPacked(void* self, const TVMFFIAny* args, int32_t n, TVMFFIAny* ret) {
  auto* info = static_cast<const OperatorInfo*>(static_cast<const FnInfo*>(self));
  try {
    std::vector<AnyView> params;
    params.reserve(info->args.size());
    for (int i = 0; i < n; ++i) params.push_back(AnyView::CopyFromTVMFFIAny(args[i]));
    *ret = ffi::detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any(MakeCall(*info, std::move(params))));
    return 0;
  } catch (...) {
    return ReportException();
  }
}

OperatorInfo* Define(const String& name, const std::string& schema, const char* doc) {
  auto* info = new OperatorInfo();  // lives as long as the process
  info->op = Op::Register(name, doc);
  std::string_view path = info->ShortName();
  // The one group whose module has another name.
  bool is_dist = path.substr(0, 5) == "dist.";
  info->name = strdup(("relax.op." + std::string(is_dist ? "distributed." : "") +
                       std::string(path.substr(is_dist ? 5 : 0)))
                          .c_str());
  info->doc = doc;
  ParseSchema(schema, info);
  auto* op = const_cast<OpObj*>(info->op.get());
  op->num_inputs = info->variadic ? -1 : static_cast<int64_t>(info->call_args.size());
  for (int i : info->call_args) {
    op->arguments.push_back(New<ArgumentInfo>([&](ArgumentInfoObj* n) {
      n->name = info->args[i].name;
      n->type_info = KindName(info->params[i].kind);
    }));
  }
  if (!Operators().emplace(View(info->op->name), info).second) {
    TVM_FFI_THROW(ValueError) << "Operator: expected a new name, got '" << name << "'";
  }
  infos[info->op->index] = info;
  FInferStructInfo.Set(info->op, &InferOperator);
  FPurity.Set(info->op, true, 0);  // what the definition says counts more
  RegisterFunction(info, &CallPacked);
  return info;
}

}  // namespace

std::string_view OperatorInfo::ShortName() const {
  std::string_view full = View(op->name);
  return full.substr(0, 6) == "relax." ? full.substr(6) : full;
}
const OperatorInfo* FindOperator(const OpObj* op) { return infos[op->index]; }
std::vector<const OperatorInfo*> ListOperators() {
  std::vector<const OperatorInfo*> all;
  for (const auto& [name, info] : Operators()) all.push_back(info);
  return all;
}

Expr CallOperator(const OperatorInfo& info, const std::vector<AnyView>& params) {
  return MakeCall(info, params);
}
Expr CallOperator(const char* name, const std::vector<AnyView>& params) {
  return CallOperator(*FindOperator(Op::Get(name).get()), params);
}

Operator::Operator(const char* name, const char* schema, InferFn infer, const char* doc)
    : info_(Define(name, schema, doc)) {
  info_->infer = infer;
}
Operator& Operator::Set(const char* key, Any value) {
  info_->op.SetAttr(key, std::move(value));
  return *this;
}
Operator& Operator::Variadic() {
  info_->variadic = true;
  const_cast<OpObj*>(info_->op.get())->num_inputs = -1;
  return *this;
}
Operator& Operator::Finish(Expr (*finish)(Call call)) {
  info_->finish = finish;
  return *this;
}
Operator& Operator::SetAttrs(int32_t type_index, const char* type_key) {
  info_->attrs_type = type_index;
  const_cast<OpObj*>(info_->op.get())->attrs_type_key = type_key;
  return *this;
}

namespace {
/// An operator of a user: attributes are a dictionary.
Op DefineFromPython(String name, String schema, ffi::Function infer, String doc, bool pure) {
  OperatorInfo* info = Define(name, schema, strdup(doc.c_str()));
  info->packed_infer = std::move(infer);
  FPurity.Set(info->op, pure);
  return info->op;
}

TVM_REGISTER() {
  Def("relax.op.define", &DefineFromPython,
      "Defines an operator. Its function is tvm.relax.op.<name>, with the signature of the schema: "
      "\"x: Tensor, alpha=1.0\" takes a tensor and has an attribute. infer(call, builder) gives "
      "the "
      "struct info of a call; further attributes (FLegalize, FPrimalGradient, …) follow with "
      "set_attr.",
      Arg("name"), Arg("schema"), Arg("infer"), Arg("doc", String()), Arg("pure", true));
}
}  // namespace
}  // namespace tvm::relax
