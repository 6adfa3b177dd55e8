// SPDX-License-Identifier: Apache-2.0
// Gradients of a part of the graph: Gradient of the domain ai.onnx.preview.training.
#include "frontend/onnx/op/loop.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/transform.h"

namespace tvm::frontend::onnx {
namespace {
/// The nodes that `wanted` is computed by, in their order, from what is given.
std::vector<NodeProto> NodesBehind(const std::vector<NodeProto>& nodes, Name wanted,
                                   const std::set<Name>& given) {
  std::set<Name> needed{wanted};
  std::vector<NodeProto> found;
  auto is_needed = [&](Name name) { return needed.count(name) && !given.count(name); };
  for (size_t i = nodes.size(); i-- > 0;) {
    const NodeProto& node = nodes[i];
    if (std::none_of(node.outputs.begin(), node.outputs.end(), is_needed)) continue;
    needed.insert(node.inputs.begin(), node.inputs.end());
    for (const Attribute& attr : node.attributes) {
      if (attr.graph) FreeNames(*attr.graph, &needed);
    }
    found.push_back(node);
  }
  std::reverse(found.begin(), found.end());
  return found;
}
/// The sum of y as a function of the values of these names.
relax::Function SumOf(Node& n, Name y, const std::vector<std::string>& names) {
  Scope inside;
  inside.outer = n.scope;
  std::set<Name> given(names.begin(), names.end());
  Array<relax::Var> params;
  for (size_t i = 0; i < names.size(); ++i) {
    params.push_back(relax::Var(String(names[i]), n.In(i)->struct_info_));
    inside.values[names[i]] = Value(Expr(params.back()));
  }
  relax::BlockBuilder builder = n.importer.builder();
  builder->BeginSequence();
  builder->BeginDataflowBlock();
  n.importer.RunNodes(NodesBehind(*n.scope->nodes, y, given), n.context, &inside, {y});
  const Value* found = inside.Find(y);
  if (!found) n.Fail("the name of a value as y", "'" + std::string(y) + "'");
  Value target = *found;
  relax::Var sum = builder->EmitOutput(n("sum", n.importer.TensorOf(&target)));
  builder->CloseBlock();
  return relax::Function(params,
                         relax::MakeSeq(relax::SeqExpr({}, sum), builder->EndSequence(), sum));
}
/// The function with the values and sizes that it takes of the graph around it as parameters, too,
/// which are added to the arguments.
relax::Function Closed(const relax::Function& func, Array<Expr>* args) {
  Array<relax::Var> params = func->params;
  auto with_params = [&] { return relax::Function(params, func->body); };
  for (const relax::Var& var : relax::FreeVars(func)) {
    params.push_back(var);
    args->push_back(var);
  }
  Array<tir::Var> sizes = relax::FreeSymbolicVars(with_params());
  if (!sizes.empty()) {
    args->push_back(relax::ShapeExpr(Dims(sizes.begin(), sizes.end())));
    params.push_back(relax::Var("sizes", args->back()->struct_info_));
  }
  return with_params();
}
/// A call of a function beside main: gradient(xs, zs) = (sum(y), (dy/dx, …)).
Outputs ConvertGradient(Node& n) {
  std::vector<std::string> names = n.Strs("xs"), fixed = n.Strs("zs");
  auto count = static_cast<int64_t>(names.size());
  std::string y = n.Str("y");
  names.insert(names.end(), fixed.begin(), fixed.end());
  if (names.size() != n.NumInputs())
    n.Fail("as many inputs as names in xs and zs", std::to_string(n.NumInputs()));
  Array<Expr> args;
  for (size_t i = 0; i < names.size(); ++i) args.push_back(n.In(i));
  relax::Function sum = Closed(SumOf(n, y, names), &args);
  Array<relax::Var> by(sum->params.begin(), sum->params.begin() + count);
  relax::BlockBuilder builder = n.importer.builder();
  const GlobalVar var = builder->AddFunction(sum, "differentiated");
  IRModule mod = transform::GetPass("relax.Gradient", {var->name_hint, by})(builder->GetModule());
  for (const auto& [name, func] : mod->functions) builder->UpdateFunction(name, func);
  GlobalVar gradient = mod->GetGlobalVar(std::string(var->name_hint) + "_adjoint");
  Expr gradients = n.Item(n.Emit(relax::Call(gradient, args)), 1);
  std::vector<Value> outputs;
  for (int64_t i = 0; i < count; ++i) outputs.emplace_back(n.Item(gradients, i));
  return outputs;
}
}  // namespace

TVM_REGISTER() { AddConverters({{"Gradient", &ConvertGradient, "ai.onnx.preview.training"}}); }

}  // namespace tvm::frontend::onnx
