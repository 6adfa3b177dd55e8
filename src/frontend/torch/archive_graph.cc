// SPDX-License-Identifier: Apache-2.0
// Nodes and their arguments, which archives tag by kind: {"as_tensor": {"name": "x"}}.
#include "archive_graph.h"

#include <cmath>
#include <limits>

#include "complex.h"
#include "relax/legalize/lowering.h"

namespace tvm::frontend::torch {

const char* TypeName(int64_t code) {
  switch (code) {
    case 1:
      return "uint8";
    case 2:
      return "int8";
    case 3:
      return "int16";
    case 4:
      return "int32";
    case 5:
      return "int64";
    case 6:
      return "float16";
    case 7:
      return "float32";
    case 8:
      return "float64";
    case 10:
      return "complex64";
    case 11:
      return "complex128";
    case 12:
      return "bool";
    case 13:
      return "bfloat16";
    case 28:
      return "uint16";
    case 29:
      return "float8_e4m3fn";
    case 30:
      return "float8_e5m2";
    case 31:
      return "float8_e4m3fnuz";
    case 32:
      return "float8_e5m2fnuz";
    case 33:
      return "float8_e8m0fnu";
    case 34:
      return "uint32";
    case 35:
      return "uint64";
    default:
      break;
  }
  TVM_FFI_THROW(ValueError) << "archive: expected the code of a dtype, got " << code;
  TVM_FFI_UNREACHABLE();
}
Any SizeOf(const Any& value) {
  auto [kind, size] = Choice(value, "size");
  if (kind == "as_int") return AsInt(size, "size");
  return String(AsText(Get(AsObject(size, "size"), "expr_str"), "size"));
}

namespace {
template <class Obj, class Fill>
ObjectRef Make(Fill fill) {
  auto node = ffi::make_object<Obj>();
  fill(node.get());
  return ObjectRef(node);
}
Any Ref(const String& name) {
  return Make<ValueRefObj>([&](ValueRefObj* n) { n->name = name; });
}
Any TensorMetaOf(const Any& value) {
  json::Object meta = AsObject(value, "tensor");
  return Make<TensorMetaObj>([&](TensorMetaObj* n) {
    for (const Any& size : AsList(Get(meta, "sizes"), "sizes")) n->sizes.push_back(SizeOf(size));
    n->dtype = TypeName(AsInt(Get(meta, "dtype"), "dtype"));
  });
}
Any ScalarMetaOf(const Any& value, const char* type) {
  auto [kind, symbol] = Choice(value, "symbol");
  if (kind != "as_expr") return nullptr;
  String text = AsText(Get(AsObject(symbol, "symbol"), "expr_str"), "symbol");
  return Make<ScalarMetaObj>([&](ScalarMetaObj* n) {
    n->expr = text;
    n->kind = type;
  });
}
/// The branch or body of control flow.
Any Subgraph(const json::Object& argument) {
  json::Object graph = AsObject(Get(argument, "graph"), "graph");
  GraphReader reader(graph);
  return Make<ProgramObj>([&](ProgramObj* n) {
    for (const Any& input : AsList(Get(graph, "inputs"), "inputs")) {
      Any ref = reader.Argument(input);
      auto* named = ref.as<ValueRefObj>();
      if (!named) Unexpected("inputs of a subgraph", "tensors and sizes");
      n->inputs.push_back(Make<ProgramInputObj>([&](ProgramInputObj* i) {
                            i->name = named->name;
                            i->kind = "user";
                            i->meta = reader.MetaOf(named->name);
                          })
                              .as<ProgramInput>()
                              .value());
    }
    n->nodes = reader.Nodes();
    n->outputs = reader.Outputs();
  });
}
String TargetOf(const std::string& text) {
  constexpr std::string_view prefix = "torch.ops.";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}
String SourceOf(const json::Object& node) {
  if (Get(node, "metadata") == nullptr) return "";
  Any trace = Get(AsObject(Get(node, "metadata"), "metadata"), "stack_trace");
  if (trace == nullptr) return "";
  std::string text = AsText(trace, "stack_trace");
  size_t last = text.rfind("File ");
  if (last == text.npos) return "";
  text = text.substr(last);
  for (size_t line = text.find('\n'); line != text.npos; line = text.find('\n')) {
    size_t rest = text.find_first_not_of(" \n", line);
    text = text.substr(0, line) + (rest == text.npos ? "" : ": " + text.substr(rest));
  }
  return text;
}
GraphNode MakeNode(const String& name, const String& target, const Array<Any>& args,
                   const Map<String, Any>& kwargs, const Any& meta, const String& source) {
  return Make<GraphNodeObj>([&](GraphNodeObj* n) {
           n->name = name;
           n->target = target;
           n->args = args;
           n->kwargs = kwargs;
           n->meta = meta;
           n->source = source;
         })
      .as<GraphNode>()
      .value();
}
/// A number; those that JSON cannot write are texts.
Any Float(const Any& value) {
  auto text = value.try_cast<String>();
  if (!text) return value;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (*text == "Infinity") return kInfinity;
  if (*text == "-Infinity") return -kInfinity;
  if (*text == "NaN") return std::nan("");
  TVM_FFI_THROW(ValueError) << "archive: expected a number, got '" << *text << "'";
  TVM_FFI_UNREACHABLE();
}
}  // namespace

GraphReader::GraphReader(const json::Object& graph)
    : tensors_(AsObject(Get(graph, "tensor_values"), "tensor_values")), graph_(graph) {}
Any GraphReader::MetaOf(const String& name) const {
  auto it = tensors_.find(name);
  if (it != tensors_.end()) return TensorMetaOf((*it).second);
  static constexpr std::pair<const char*, const char*> kScalars[] = {
      {"sym_int_values", "int"}, {"sym_float_values", "float"}, {"sym_bool_values", "bool"}};
  for (auto [key, type] : kScalars) {
    if (Get(graph_, key) == nullptr) continue;
    json::Object values = AsObject(Get(graph_, key), key);
    auto found = values.find(name);
    if (found != values.end()) return ScalarMetaOf((*found).second, type);
  }
  return nullptr;
}
Any GraphReader::Argument(const Any& value) const {
  auto [kind, arg] = Choice(value, "argument");
  if (kind == "as_none") return nullptr;
  if (kind == "as_float") return Float(arg);
  if (kind == "as_complex") {
    json::Object parts = AsObject(arg, kind);
    auto part = [&](const char* name) {
      return relax::MakeConstant({Float(Get(parts, name)).cast<double>()}, {}, DataType::Float(32));
    };
    return Complex(part("real"), part("imag"));
  }
  if (kind == "as_floats")
    return AsList(arg, kind).Map([](const Any& item) { return Float(item); });
  if (kind == "as_int" || kind == "as_bool" || kind == "as_string" || kind == "as_operator") {
    return arg;
  }
  if (kind == "as_name") return Ref(AsText(arg, "argument"));
  if (kind == "as_tensor") return Ref(AsText(Get(AsObject(arg, kind), "name"), kind));
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool" ||
      kind == "as_optional_tensor") {
    return Argument(arg);
  }
  if (kind == "as_scalar_type") return String(TypeName(AsInt(arg, kind)));
  if (kind == "as_memory_format") {
    static const char* const kFormats[] = {"unknown", "contiguous_format", "channels_last",
                                           "channels_last_3d", "preserve_format"};
    int64_t format = AsInt(arg, kind);
    bool is_known = format >= 0 && format < static_cast<int64_t>(std::size(kFormats));
    return String(std::string("torch.") + kFormats[is_known ? format : 0]);
  }
  if (kind == "as_layout" || kind == "as_device") {
    return String(kind);  // says nothing about the elements
  }
  if (kind == "as_graph") return Subgraph(AsObject(arg, kind));
  Array<Any> items;
  if (kind == "as_tensors") {
    for (const Any& item : AsList(arg, kind)) {
      items.push_back(Ref(AsText(Get(AsObject(item, kind), "name"), kind)));
    }
    return items;
  }
  if (kind == "as_optional_tensors" || kind == "as_sym_ints" || kind == "as_sym_floats" ||
      kind == "as_sym_bools") {
    for (const Any& item : AsList(arg, kind)) items.push_back(Argument(item));
    return items;
  }
  if (kind == "as_ints" || kind == "as_bools" || kind == "as_strings" || kind == "as_int_lists" ||
      kind == "as_float_lists") {
    return arg;
  }
  TVM_FFI_THROW(NotImplementedError)
      << "archive: expected tensors, numbers and texts as arguments, got " << kind;
  TVM_FFI_UNREACHABLE();
}
Array<GraphNode> GraphReader::Nodes() const {
  Array<GraphNode> nodes;
  for (const Any& value : AsList(Get(graph_, "nodes"), "nodes")) {
    ReadNode(AsObject(value, "node"), &nodes);
  }
  return nodes;
}
Array<Any> GraphReader::Outputs() const {
  Array<Any> outputs;
  for (const Any& value : AsList(Get(graph_, "outputs"), "outputs")) {
    outputs.push_back(Argument(value));
  }
  return outputs;
}
/// A node of several results, each of which has a name, is one and the items of it.
void GraphReader::ReadNode(const json::Object& node, Array<GraphNode>* nodes) const {
  Array<Any> args;
  Map<String, Any> kwargs;
  for (const Any& value : AsList(Get(node, "inputs"), "inputs of a node")) {
    json::Object input = AsObject(value, "input of a node");
    Any arg = Argument(Get(input, "arg"));
    if (Get(input, "kind").try_cast<int64_t>() == 2) {
      kwargs.Set(AsText(Get(input, "name"), "name of an input"), arg);
    } else {
      args.push_back(arg);
    }
  }
  String target = TargetOf(AsText(Get(node, "target"), "target of a node"));
  String source = SourceOf(node);
  json::Array outputs = AsList(Get(node, "outputs"), "outputs of a node");
  auto name_of = [&](const Any& output) -> Any {
    Any ref = Argument(output);
    auto* named = ref.as<ValueRefObj>();
    return named ? Any(named->name) : Any(nullptr);
  };
  if (outputs.size() == 1) {
    Any name = name_of(outputs[0]);
    if (name != nullptr) {
      nodes->push_back(
          MakeNode(name.cast<String>(), target, args, kwargs, MetaOf(name.cast<String>()), source));
      return;
    }
  }
  // A list of tensors is one output with several names.
  Array<Any> names;
  for (const Any& output : outputs) {
    auto [kind, items] = Choice(output, "output of a node");
    if (kind == "as_tensors") {
      for (const Any& item : AsList(items, kind)) {
        names.push_back(AsText(Get(AsObject(item, kind), "name"), kind));
      }
    } else {
      names.push_back(name_of(output));
    }
  }
  String whole = "node." + std::to_string(nodes->size());
  nodes->push_back(MakeNode(whole, target, args, kwargs, nullptr, source));
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == nullptr) continue;
    String name = names[i].cast<String>();
    nodes->push_back(MakeNode(name, "_operator.getitem", {Ref(whole), static_cast<int64_t>(i)}, {},
                              MetaOf(name), source));
  }
}

}  // namespace tvm::frontend::torch
