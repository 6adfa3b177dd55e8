// SPDX-License-Identifier: Apache-2.0
// Weights as one parameter.
#include "relax/transform/signature.h"
#include "relax/transform/weights.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {

std::optional<size_t> NumInputs(const Function& func, const char* pass) {
  auto count = func->GetAttr<int64_t>("num_input");
  if (!count) return std::nullopt;
  if (count.value() < 0 || count.value() > static_cast<int64_t>(func->params.size())) {
    TVM_FFI_THROW(ValueError) << pass << ": expected num_input in [0, " << func->params.size()
                              << "], got " << count.value();
  }
  return static_cast<size_t>(count.value());
}

namespace {
/// Whether only the first block, a dataflow block, uses the weights.
bool OnlyFirstUses(const Function& func, size_t inputs) {
  const Array<BindingBlock>& blocks = func->body->blocks;
  if (blocks.empty() || !blocks[0].as<DataflowBlockObj>()) return false;
  SeqExpr behind(Array<BindingBlock>(blocks.begin() + 1, blocks.end()), func->body->body);
  for (const Var& var : UsedVars(behind)) {
    for (size_t i = inputs; i < func->params.size(); ++i) {
      if (func->params[i]->vid.same_as(var->vid)) return false;
    }
  }
  return true;
}
/// The items are taken at the beginning.
Function WithBundle(const Function& func, size_t inputs, const String& name) {
  Array<Var> params(func->params.begin(), func->params.begin() + inputs);
  Array<StructInfo> infos;
  for (size_t i = inputs; i < func->params.size(); ++i)
    infos.push_back(GetStructInfo(func->params[i]));
  Var bundle(name, TupleStructInfo(infos));
  params.push_back(bundle);
  BlockBuilder builder = BlockBuilder::Create();
  builder->BeginScope(params);
  builder->BeginSequence();
  bool is_dataflow = OnlyFirstUses(func, inputs);
  if (is_dataflow) builder->BeginDataflowBlock();
  VarReplacer replacer;
  for (size_t i = inputs; i < func->params.size(); ++i) {
    const Var param = func->params[i];
    auto index = static_cast<int64_t>(i - inputs);
    Var item = is_dataflow ? DataflowVar(param->name_hint(), param->struct_info_)
                           : Var(param->name_hint(), param->struct_info_);
    builder->EmitNormalized(VarBinding(item, builder->Normalize(TupleGetItem(bundle, index))));
    replacer.Replace(param, item);
  }
  if (is_dataflow) builder->CloseBlock();
  auto body = As<SeqExpr>(replacer.VisitExpr(func->body));
  for (const BindingBlock& block : body->blocks) builder->AppendBlock(block);
  SeqExpr seq = MakeSeq(func->body, builder->EndSequence(), body->body);
  builder->EndScope();
  return Function(params, seq, func->ret_struct_info, func->is_pure, func->attrs, func->span);
}

IRModule BundleModelParams(IRModule mod, Optional<String> param_tuple_name) {
  String name = param_tuple_name.value_or("model_params");
  std::unordered_map<std::string, NewSignature> changes;
  for (const auto& [var, base] : mod->functions) {
    auto func = base.as<Function>();
    auto inputs = func ? NumInputs(*func, "BundleModelParams") : std::nullopt;
    if (!inputs) continue;
    changes[std::string(var->name_hint)] = {
        WithBundle(*func, *inputs, name), [inputs](const Call& call) {
          Array<Expr> args(call->args.begin(), call->args.begin() + *inputs);
          args.push_back(Tuple(Array<Expr>(call->args.begin() + *inputs, call->args.end())));
          return args;
        }};
  }
  return ChangeSignatures(mod, changes);
}
}  // namespace
TVM_RELAX_PASS(BundleModelParams, 1,
               "main(x, w1, w2) with num_input 1  ->  main(x, model_params), where w1 is "
               "model_params[0]",
               Arg("param_tuple_name", nullptr));
}  // namespace tvm::relax
