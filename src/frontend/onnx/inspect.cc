// SPDX-License-Identifier: Apache-2.0
// What a model contains, as text.
#include <sstream>

#include "frontend/onnx/importer.h"

namespace tvm::frontend::onnx {
namespace {
std::string TypeText(const TypeProto& type) {
  if (type.kind == TypeProto::kSequence || type.kind == TypeProto::kOptional) {
    std::string of = type.element ? TypeText(*type.element) : "?";
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
/// How often each operator occurs, in subgraphs and functions as well.
void CountOperators(const std::vector<NodeProto>& nodes,
                    std::map<std::pair<Name, Name>, int64_t>* counts) {
  for (const NodeProto& node : nodes) {
    ++(*counts)[{node.domain, node.op_type}];
    for (const Attribute& attr : node.attributes) {
      if (attr.graph) CountOperators(attr.graph->nodes, counts);
    }
  }
}
}  // namespace

std::string InspectModel(const Model& model) {
  std::ostringstream out;
  out << "IR version " << model.ir_version;
  for (const auto& [domain, version] : model.opsets)
    out << ", " << (domain.empty() ? "ai.onnx" : domain) << " " << version;
  if (!model.producer.empty()) out << ", written by " << model.producer;
  std::set<Name> weights;
  uint64_t bytes = 0;
  for (const TensorProto& t : model.graph.initializers) {
    weights.insert(t.name);
    auto dtype = DataTypeOf(t.data_type);
    if (dtype) bytes += runtime::DataSize({t.dims.data(), t.dims.size()}, *dtype);
  }
  for (const ValueInfo& v : model.graph.inputs) {
    if (!weights.count(v.name)) out << "\ninput  " << v.name << ": " << TypeText(v.type);
  }
  for (const ValueInfo& v : model.graph.outputs)
    out << "\noutput " << v.name << ": " << TypeText(v.type);
  out << "\n" << weights.size() << " weights, " << bytes << " bytes";
  std::map<std::pair<Name, Name>, int64_t> counts;
  CountOperators(model.graph.nodes, &counts);
  std::set<std::pair<Name, Name>> functions;
  for (const FunctionProto& f : model.functions) {
    CountOperators(f.nodes, &counts);
    functions.insert({f.domain, f.name});
  }
  for (const auto& [key, count] : counts) {
    out << "\n"
        << count << " x " << (key.first.empty() ? "" : std::string(key.first) + ".") << key.second;
    if (functions.count(key)) {
      out << " (function)";
    } else if (!FindConverter(key.first, key.second)) {
      out << " (not supported)";
    }
  }
  return out.str();
}

}  // namespace tvm::frontend::onnx
