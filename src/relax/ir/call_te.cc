// SPDX-License-Identifier: Apache-2.0
// Calls of tensor expressions: placeholders for arguments, the PrimFunc, the call.
#include "tvm/relax/call_te.h"

#include <unordered_set>

#include "relax/analysis/symbolic_vars.h"
#include "tir/text.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/op.h"

namespace tvm::relax {

namespace {
/// Calls `visit` on the variables in the computations of tensors and of those they are made from.
template <class F>
void VisitComputations(const Array<te::Tensor>& outputs, F&& visit) {
  struct Finder : Visitor<Finder, tir::VarObj> {
    F& visit;
    explicit Finder(F& visit) : visit(visit) {}
    void Visit(const tir::VarObj* var) { visit(var); }
  } finder(visit);
  std::vector<te::Operation> open;
  std::unordered_set<const Object*> seen;
  for (const te::Tensor& output : outputs) open.push_back(output->op);
  while (!open.empty()) {
    te::Operation op = open.back();
    open.pop_back();
    if (!seen.insert(op.get()).second) continue;
    VisitChildren(op.get(), finder);
    for (const te::Tensor& input : te::InputTensors(op)) open.push_back(input->op);
  }
}
}  // namespace

TEArguments TEArguments::Create() {
  return New<TEArguments>([](TEArgumentsObj*) {});
}
PrimExpr TEArgumentsObj::Inside(const PrimExpr& e) {
  VisitVars(e, [&](const tir::VarObj* var) {
    auto outer = ffi::GetRef<tir::Var>(var);
    if (inside_.count(outer) || outside_.count(outer)) return;
    tir::Var inner(var->name_hint, var->dtype);
    inside_.Set(outer, inner);
    outside_.Set(inner, outer);
  });
  return tir::Substitute(e, inside_);
}
PrimExpr TEArgumentsObj::Outside(const PrimExpr& e) const { return tir::Substitute(e, outside_); }

te::Tensor TEArgumentsObj::Tensor(const Expr& expr) {
  StructInfo info = GetStructInfo(expr);
  auto* tensor = info.as<TensorStructInfoObj>();
  Optional<Array<PrimExpr>> dims = tensor ? tensor->Dims() : std::nullopt;
  if (!dims || tensor->IsUnknownDtype()) {
    TVM_FFI_THROW(OpValueError) << "call_te: expected a tensor of known shape and dtype, got "
                                << tir::TextOf(info);
  }
  if (tensor->vdevice && !vdevice_) vdevice_ = tensor->vdevice;
  String name;
  if (auto* var = expr.as<VarObj>()) {
    name = var->name_hint();
  } else {
    name = std::string(1, static_cast<char>('A' + unnamed_ % 26));
    if (unnamed_ >= 26) name = name + std::to_string(unnamed_ / 26);
    ++unnamed_;
  }
  auto result = te::placeholder(dims.value().Map([&](const PrimExpr& e) { return Inside(e); }),
                                tensor->dtype, name);
  args_.push_back(expr);
  params_.push_back(result);
  return result;
}
Array<PrimExpr> TEArgumentsObj::Shape(const Expr& expr) {
  StructInfo info = GetStructInfo(expr);
  auto* shape = info.as<ShapeStructInfoObj>();
  if (!shape || !shape->values) {
    TVM_FFI_THROW(OpValueError) << "call_te: expected a shape whose dimensions are known, got "
                                << tir::TextOf(info);
  }
  return shape->values.value().Map([&](const PrimExpr& e) { return Inside(e); });
}
PrimExpr TEArgumentsObj::Scalar(const Expr& expr) {
  StructInfo info = GetStructInfo(expr);
  auto* prim = info.as<PrimStructInfoObj>();
  if (!prim) TVM_FFI_THROW(OpTypeError) << "call_te: expected a scalar, got " << tir::TextOf(info);
  if (prim->value) return Inside(prim->value.value());
  auto* var = expr.as<VarObj>();
  tir::Var param(var ? var->name_hint() : String("scalar"), prim->dtype);
  args_.push_back(expr);
  params_.push_back(param);
  return param;
}

CallTIRInputs TEArgumentsObj::Finish(const Array<te::Tensor>& outputs,
                                     const Map<String, Any>& attrs) const {
  auto params = params_;
  CallTIRInputs result;
  std::unordered_set<const Object*> defined;
  std::vector<tir::Var> used;
  std::unordered_set<const Object*> seen;
  auto use = [&](const tir::VarObj* var) {
    auto ref = ffi::GetRef<tir::Var>(var);
    if (outside_.count(ref) && seen.insert(var).second) used.push_back(ref);
  };
  auto look_at = [&](const te::Tensor& tensor) {
    for (const PrimExpr& dim : tensor->shape) {
      if (dim.as<tir::VarObj>()) defined.insert(dim.get());
      VisitVars(dim, use);
    }
  };
  for (const auto& param : params_) {
    if (auto tensor = param.as<te::Tensor>()) look_at(*tensor);
  }
  for (const te::Tensor& output : outputs) {
    look_at(output);
    params.push_back(output);
    auto dims = output->shape.Map([&](const PrimExpr& e) { return Outside(e); });
    result.outputs.push_back(TensorStructInfo(dims, output->dtype, vdevice_));
  }
  // Expressions inside of the computation may use variables that no shape shows.
  VisitComputations(outputs, use);
  Array<PrimExpr> tir_vars;
  for (const tir::Var& var : used) {
    if (defined.count(var.get())) continue;
    params.push_back(var);
    tir_vars.push_back(Outside(var));
  }
  if (!tir_vars.empty()) result.tir_vars = ShapeExpr(tir_vars);
  result.func = te::CreatePrimFunc(params, DataType::Int(64));
  result.func = WithoutAttr(WithAttr(result.func, "tir.noalias", true), attr::kGlobalSymbol);
  for (const auto& [key, value] : attrs) result.func = WithAttr(result.func, key, value);
  result.args = args_;
  return result;
}

Call TEArgumentsObj::CallTIR(const BlockBuilder& builder, const String& name,
                             const Array<te::Tensor>& outputs) const {
  static const Op& call_tir = *new Op(Op::Get("relax.call_tir"));
  CallTIRInputs inputs = Finish(outputs);
  // Outside more is known of dimensions: max(min(n, 1), 0) of a dimension n is min(n, 1).
  for (size_t i = 0; i < inputs.outputs.size(); ++i) {
    auto* info = inputs.outputs[i].as<TensorStructInfoObj>();
    Array<PrimExpr> known = info->Dims().value();
    Array<PrimExpr> dims = known.Map([&](const PrimExpr& e) {
      return e.as<IntImmObj>() ? e : builder->analyzer()->Simplify(e);
    });
    if (!dims.same_as(known))
      inputs.outputs.Set(i, TensorStructInfo(dims, info->dtype, info->vdevice));
  }
  GlobalVar var = builder->AddFunction(inputs.func, name);
  Array<Expr> args{var, Tuple(inputs.args)};
  if (inputs.tir_vars) args.push_back(inputs.tir_vars.value());
  StructInfo out = inputs.outputs[0];
  if (inputs.outputs.size() > 1)
    out = TupleStructInfo(Array<StructInfo>(inputs.outputs.begin(), inputs.outputs.end()));
  return Call(call_tir, args, {}, {out});
}

namespace {
TVM_REGISTER() {
  RegisterNode<TEArgumentsObj>("Arguments of an operator as those of a tensor expression.");
  Def("relax.TEArguments._create", &TEArguments::Create, "");
  Def(
      "relax.TEArguments.tensor", [](TEArguments a, Expr e) { return a->Tensor(e); },
      "A placeholder for a tensor.", Arg("self"), Arg("expr"));
  Def(
      "relax.TEArguments.shape", [](TEArguments a, Expr e) { return a->Shape(e); },
      "The dimensions of a shape.", Arg("self"), Arg("expr"));
  Def(
      "relax.TEArguments.scalar", [](TEArguments a, Expr e) { return a->Scalar(e); },
      "The value of a scalar.", Arg("self"), Arg("expr"));
  Def(
      "relax.TEArguments.inside", [](TEArguments a, PrimExpr e) { return a->Inside(e); },
      "An expression as the PrimFunc sees it.", Arg("self"), Arg("expr"));
  Def(
      "relax.TEArguments.finish",
      [](TEArguments a, Array<te::Tensor> outputs, Map<String, Any> attrs) {
        CallTIRInputs inputs = a->Finish(outputs, attrs);
        return Array<Any>{inputs.func, Tuple(inputs.args), inputs.outputs, inputs.tir_vars};
      },
      "[the PrimFunc, its arguments, what it returns, symbolic variables it takes or None]",
      Arg("self"), Arg("outputs"), Arg("attrs", Map<String, Any>()));
}
}  // namespace
}  // namespace tvm::relax
