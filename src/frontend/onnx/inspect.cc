// SPDX-License-Identifier: Apache-2.0
// What a model contains, as text.
#include "frontend/onnx/inspect.h"

#include <sstream>

namespace tvm::frontend::onnx {
namespace {
std::string TypeText(const TypeProto& type) {
  if (type.kind == TypeProto::kSequence || type.kind == TypeProto::kOptional ||
      type.kind == TypeProto::kMap) {
    std::string of = type.element ? TypeText(*type.element) : "?";
    if (type.kind == TypeProto::kMap)
      return std::string("map(") + (type.key_type == kString ? "string" : "integer") + " to " + of +
             ")";
    return (type.kind == TypeProto::kSequence ? "sequence(" : "optional(") + of + ")";
  }
  auto dtype = DataTypeOf(type.data_type);
  std::string text = dtype ? dtype->str() : type.data_type == kString ? "string" : "?";
  if (!type.shape) return text + " of unknown rank";
  text += " (";
  for (size_t i = 0; i < type.shape->size(); ++i) {
    const Dimension& dim = (*type.shape)[i];
    text += (i ? ", " : "") + (dim.value           ? std::to_string(*dim.value)
                               : dim.param.empty() ? "?"
                                                   : std::string(dim.param));
  }
  return text + ")";
}
/// The names of dimensions, in the order of the inputs.
void AddDimensions(const TypeProto& type, std::vector<Name>* names) {
  if (type.element) AddDimensions(*type.element, names);
  for (const Dimension& dim : type.shape.value_or(std::vector<Dimension>())) {
    bool is_new = std::find(names->begin(), names->end(), dim.param) == names->end();
    if (!dim.value && !dim.param.empty() && is_new) names->push_back(dim.param);
  }
}
void AddUses(const std::vector<NodeProto>& nodes, const Opsets& opsets,
             const std::function<bool(const NodeProto&)>& counts, OperatorUses* operators) {
  constexpr int64_t kNamed = 3;
  for (const NodeProto& node : nodes) {
    if (counts(node)) {
      Uses& uses = (*operators)[{node.domain, node.op_type}];
      if (++uses.count <= kNamed) uses.nodes += (uses.nodes.empty() ? "" : ", ") + Called(node);
      if (uses.count == kNamed + 1) uses.nodes += ", …";
      if (auto it = opsets.find(node.domain); it != opsets.end()) uses.opset = it->second;
    }
    for (const Attribute& attr : node.attributes) {
      if (attr.graph) AddUses(attr.graph->nodes, opsets, counts, operators);
    }
  }
}
}  // namespace

OperatorUses CountOperators(const Model& model,
                            const std::function<bool(const NodeProto&)>& counts) {
  OperatorUses operators;
  AddUses(model.graph.nodes, model.opsets, counts, &operators);
  for (const FunctionProto& f : model.functions) AddUses(f.nodes, f.opsets, counts, &operators);
  return operators;
}

std::string InspectModel(const Model& model) {
  std::ostringstream out;
  out << "IR version " << model.ir_version;
  for (const auto& [domain, version] : model.opsets)
    out << ", " << (domain.empty() ? "ai.onnx" : domain) << " " << version;
  if (!model.producer.empty()) out << ", written by " << model.producer;
  std::set<Name> weights;
  uint64_t bytes = 0, external = 0;
  for (const TensorProto& t : model.graph.initializers) {
    weights.insert(t.name);
    auto dtype = DataTypeOf(t.data_type);
    uint64_t size = dtype ? runtime::DataSize({t.dims.data(), t.dims.size()}, *dtype) : 0;
    bytes += size;
    if (t.is_external) external += size;
  }
  std::vector<Name> dimensions;
  for (const ValueInfo& v : model.graph.inputs) {
    if (weights.count(v.name)) continue;
    out << "\ninput  " << v.name << ": " << TypeText(v.type);
    AddDimensions(v.type, &dimensions);
  }
  for (const ValueInfo& v : model.graph.outputs)
    out << "\noutput " << v.name << ": " << TypeText(v.type);
  for (size_t i = 0; i < dimensions.size(); ++i)
    out << (i ? ", " : "\ndimensions that running tells: ") << dimensions[i];
  out << "\n" << weights.size() << " weights, " << bytes << " bytes";
  if (external > 0) out << ", " << external << " of them in other files";
  std::set<std::pair<Name, Name>> functions;
  for (const FunctionProto& f : model.functions) functions.insert({f.domain, f.name});
  for (const auto& [key, uses] : CountOperators(model)) {
    out << "\n"
        << uses.count << " x " << (key.first.empty() ? "" : std::string(key.first) + ".")
        << key.second;
    if (functions.count(key)) {
      out << " (function)";
    } else if (!FindConverter(key.first, key.second)) {
      out << " (not supported: nodes " << uses.nodes << ")";
    }
  }
  return out.str();
}

}  // namespace tvm::frontend::onnx
