// SPDX-License-Identifier: Apache-2.0
// A .pt2 archive: models/model.json is the graph, data/weights and data/constants have the tensors
// with a list of them each.
#include "archive.h"

#include <tvm/ffi/extra/json.h>

#include <cstring>

#include "../mapped_file.h"
#include "importer.h"
#include "zip_file.h"

namespace tvm::frontend::torch {
namespace {
namespace json = ffi::json;

constexpr int64_t kSchemaVersion = 8;

// ---- JSON with errors that say what is missing --------------------------------------------------
[[noreturn]] void Unexpected(const std::string& what, const char* expected) {
  TVM_FFI_THROW(ValueError) << "archive: " << what << ": expected " << expected;
  TVM_FFI_UNREACHABLE();
}
json::Object AsObject(const Any& value, const std::string& what) {
  auto object = value == nullptr ? std::nullopt : value.try_cast<json::Object>();
  if (!object) Unexpected(what, "an object");
  return *object;
}
json::Array AsList(const Any& value, const std::string& what) {
  auto list = value == nullptr ? std::nullopt : value.try_cast<json::Array>();
  if (!list) Unexpected(what, "a list");
  return *list;
}
std::string AsText(const Any& value, const std::string& what) {
  auto text = value == nullptr ? std::nullopt : value.try_cast<String>();
  if (!text) Unexpected(what, "a text");
  return *text;
}
int64_t AsInt(const Any& value, const std::string& what) {
  if (value.type_index() != kTVMFFIInt) Unexpected(what, "an integer");
  return value.cast<int64_t>();
}
Any Get(const json::Object& object, const char* key) {
  auto it = object.find(String(key));
  return it == object.end() ? Any(nullptr) : (*it).second;
}
/// The one entry of a union: {"as_int": 3}.
std::pair<std::string, Any> Choice(const Any& value, const std::string& what) {
  json::Object object = AsObject(value, what);
  if (object.size() != 1) Unexpected(what, "an object of one entry");
  return {AsText((*object.begin()).first, what), (*object.begin()).second};
}
/// The parser recurses: what is nested deeper than any program is refused before.
void CheckDepth(std::string_view text) {
  constexpr int kMaxDepth = 400;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) Unexpected("JSON", "less depth");
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}
json::Object ParseObject(std::string_view text, const std::string& what) {
  CheckDepth(text);
  String error;
  Any value = json::Parse(String(text.data(), text.size()), &error);
  if (!error.empty()) Unexpected(what + " (" + std::string(error) + ")", "JSON");
  return AsObject(value, what);
}

// ---- types and sizes ----------------------------------------------------------------------------
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
template <class Obj, class Fill>
ObjectRef Make(Fill fill) {
  auto node = ffi::make_object<Obj>();
  fill(node.get());
  return ObjectRef(node);
}
Any Ref(const String& name) {
  return Make<ValueRefObj>([&](ValueRefObj* n) { n->name = name; });
}
/// An integer, or the text of a symbolic expression.
Any SizeOf(const Any& value) {
  auto [kind, size] = Choice(value, "size");
  if (kind == "as_int") return AsInt(size, "size");
  return String(AsText(Get(AsObject(size, "size"), "expr_str"), "size"));
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

// ---- graphs -------------------------------------------------------------------------------------
class GraphReader {
 public:
  explicit GraphReader(const json::Object& graph)
      : tensors_(AsObject(Get(graph, "tensor_values"), "tensor_values")), graph_(graph) {}

  Any MetaOf(const String& name) const {
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
  Any Argument(const Any& value) const {
    auto [kind, arg] = Choice(value, "argument");
    if (kind == "as_none") return nullptr;
    if (kind == "as_int" || kind == "as_float" || kind == "as_bool" || kind == "as_string" ||
        kind == "as_operator") {
      return arg;
    }
    if (kind == "as_name") return Ref(AsText(arg, "argument"));
    if (kind == "as_tensor") return Ref(AsText(Get(AsObject(arg, kind), "name"), kind));
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool" ||
        kind == "as_optional_tensor") {
      return Argument(arg);
    }
    if (kind == "as_scalar_type") return String(TypeName(AsInt(arg, kind)));
    if (kind == "as_memory_format" || kind == "as_layout" || kind == "as_device") {
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
    if (kind == "as_ints" || kind == "as_floats" || kind == "as_bools" || kind == "as_strings" ||
        kind == "as_int_lists" || kind == "as_float_lists") {
      return arg;
    }
    TVM_FFI_THROW(NotImplementedError)
        << "archive: expected tensors, numbers and texts as arguments, got " << kind;
    TVM_FFI_UNREACHABLE();
  }

  Array<GraphNode> Nodes() const {
    Array<GraphNode> nodes;
    for (const Any& value : AsList(Get(graph_, "nodes"), "nodes")) {
      ReadNode(AsObject(value, "node"), &nodes);
    }
    return nodes;
  }
  Array<Any> Outputs() const {
    Array<Any> outputs;
    for (const Any& value : AsList(Get(graph_, "outputs"), "outputs")) {
      outputs.push_back(Argument(value));
    }
    return outputs;
  }

 private:
  /// The branch or body of control flow.
  static Any Subgraph(const json::Object& argument) {
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
  static String TargetOf(const std::string& text) {
    constexpr std::string_view prefix = "torch.ops.";
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  }
  static String SourceOf(const json::Object& node) {
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
  static GraphNode MakeNode(const String& name, const String& target, const Array<Any>& args,
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
  /// A node of several results, each of which has a name, is one and the items of it.
  void ReadNode(const json::Object& node, Array<GraphNode>* nodes) const {
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
        nodes->push_back(MakeNode(name.cast<String>(), target, args, kwargs,
                                  MetaOf(name.cast<String>()), source));
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
      nodes->push_back(MakeNode(name, "_operator.getitem", {Ref(whole), static_cast<int64_t>(i)},
                                {}, MetaOf(name), source));
    }
  }
  json::Object tensors_, graph_;
};

// ---- tensors ------------------------------------------------------------------------------------
struct Archive {
  Bytes file;
  std::map<std::string, std::string_view> members;
  std::string root;  // the folder that all members are in

  std::string_view Member(const std::string& name) const {
    auto it = members.find(root + name);
    if (it == members.end()) {
      TVM_FFI_THROW(ValueError) << "archive: expected the member '" << name << "', got none";
    }
    return it->second;
  }
};
Archive OpenArchive(const std::string& path) {
  Archive archive{MapFile(path), {}, ""};
  archive.members = ReadZip(archive.file.view);
  for (const auto& [name, bytes] : archive.members) {
    constexpr std::string_view suffix = "/archive_format";
    if (!name.ends_with(suffix)) continue;
    archive.root = name.substr(0, name.size() - suffix.size() + 1);
    if (bytes != "pt2") Unexpected("archive_format", "pt2");
    auto order = archive.members.find(archive.root + "byteorder");
    if (order != archive.members.end() && order->second != "little") {
      Unexpected("byteorder", "little");
    }
    return archive;
  }
  TVM_FFI_THROW(ValueError) << "archive: expected a file of torch.export.save, got '" << path
                            << "'";
  TVM_FFI_UNREACHABLE();
}

/// Elements by strides, in row-major order.
std::string Gathered(std::string_view bytes, const std::vector<int64_t>& sizes,
                     const std::vector<int64_t>& strides, int64_t offset, int64_t width) {
  int64_t count = 1, last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    count *= sizes[i];
    last += (sizes[i] - 1) * strides[i];
  }
  std::string result;
  if (count == 0) return result;
  if (offset < 0 || last < 0 || last >= static_cast<int64_t>(bytes.size()) / width) {
    Unexpected("tensor", "strides inside of its bytes");
  }
  std::vector<int64_t> at(sizes.size(), 0);
  result.reserve(count * width);
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = offset;
    for (size_t k = 0; k < sizes.size(); ++k) position += at[k] * strides[k];
    result.append(bytes.substr(position * width, width));
    for (size_t k = sizes.size(); k-- > 0;) {
      if (++at[k] < sizes[k]) break;
      at[k] = 0;
    }
  }
  return result;
}
ffi::Tensor ReadTensor(const Archive& archive, const std::string& folder,
                       const json::Object& entry) {
  if (Get(entry, "use_pickle").try_cast<bool>().value_or(false)) {
    TVM_FFI_THROW(ValueError) << "archive: expected raw tensors, got one that is pickled, which is "
                                 "not read because it could run anything";
  }
  std::string_view bytes = archive.Member(folder + AsText(Get(entry, "path_name"), "path_name"));
  json::Object meta = AsObject(Get(entry, "tensor_meta"), "tensor_meta");
  auto numbers = [&](const char* key) {
    std::vector<int64_t> values;
    for (const Any& value : AsList(Get(meta, key), key)) {
      values.push_back(AsInt(SizeOf(value), key));
    }
    return values;
  };
  std::vector<int64_t> sizes = numbers("sizes"), strides = numbers("strides");
  if (sizes.size() != strides.size()) Unexpected("strides", "one for each size");
  DataType dtype(String(TypeName(AsInt(Get(meta, "dtype"), "dtype"))));
  int64_t offset = AsInt(SizeOf(Get(meta, "storage_offset")), "storage_offset");
  int64_t count = 1, limit = static_cast<int64_t>(bytes.size()) / dtype.bytes();
  bool is_row_major = offset == 0, is_empty = false;
  for (int64_t size : sizes) {
    if (size < 0) Unexpected("sizes", "no negative ones");
    is_empty |= size == 0;
  }
  for (size_t i = sizes.size(); i-- > 0 && !is_empty;) {
    is_row_major &= sizes[i] == 1 || strides[i] == count;
    if (strides[i] < 0) Unexpected("strides", "no negative ones");
    // An expanded tensor may have more elements than bytes, but not without bound.
    if (sizes[i] > (int64_t{1} << 40) / count) Unexpected("sizes", "fewer elements");
    count *= sizes[i];
  }
  if (is_empty) count = 0;
  ffi::ShapeView shape(sizes.data(), sizes.size());
  if (is_row_major || is_empty) {
    if (count > limit) Unexpected("tensor", "as many bytes as its sizes need");
    return TensorOver({bytes.substr(0, count * dtype.bytes()), archive.file.owner}, shape, dtype);
  }
  return TensorOver(OwnBytes(Gathered(bytes, sizes, strides, offset, dtype.bytes())), shape, dtype);
}
/// Tensors by name, read when they are asked for.
class Tensors {
 public:
  Tensors(const Archive& archive, const char* folder, const char* list)
      : archive_(archive), folder_(folder) {
    auto it = archive.members.find(archive.root + folder + list);
    if (it == archive.members.end()) return;
    json::Object config = ParseObject(it->second, list);
    entries_ = AsObject(Get(config, "config"), list);
  }
  bool Has(const String& name) const { return entries_.count(name); }
  ffi::Tensor Read(const String& name) const {
    return ReadTensor(archive_, folder_, AsObject(entries_.at(name), name));
  }

 private:
  const Archive& archive_;
  std::string folder_;
  json::Object entries_;
};

/// The tensor of that name, among weights or constants.
ffi::Tensor ReadNamed(const Tensors& weights, const Tensors& constants, const Any& name) {
  String key = AsText(name, "name of a tensor");
  if (weights.Has(key)) return weights.Read(key);
  if (constants.Has(key)) return constants.Read(key);
  TVM_FFI_THROW(ValueError) << "archive: expected a tensor '" << key << "', got none";
  TVM_FFI_UNREACHABLE();
}

}  // namespace

Program ReadArchive(const std::string& path) {
  Archive archive = OpenArchive(path);
  json::Object model = ParseObject(archive.Member("models/model.json"), "model.json");
  json::Object version = AsObject(Get(model, "schema_version"), "schema_version");
  int64_t major = AsInt(Get(version, "major"), "schema_version");
  if (major != kSchemaVersion) {
    TVM_FFI_THROW(ValueError) << "archive: expected schema version " << kSchemaVersion << ", got "
                              << major;
  }
  json::Object module = AsObject(Get(model, "graph_module"), "graph_module");
  json::Object signature = AsObject(Get(module, "signature"), "signature");
  GraphReader graph(AsObject(Get(module, "graph"), "graph"));
  Tensors weights(archive, "data/weights/", "model_weights_config.json");
  Tensors constants(archive, "data/constants/", "model_constants_config.json");
  auto program = ffi::make_object<ProgramObj>();
  for (const Any& spec : AsList(Get(signature, "input_specs"), "input_specs")) {
    auto [kind, value] = Choice(spec, "input_spec");
    json::Object input = AsObject(value, kind);
    auto node = ffi::make_object<ProgramInputObj>();
    if (kind == "user_input") {
      Any arg = graph.Argument(Get(input, "arg"));
      auto* named = arg.as<ValueRefObj>();
      if (!named) Unexpected("user_input", "a tensor or a size");
      node->name = named->name;
      node->kind = "user";
    } else if (kind == "constant_input") {
      node->name = AsText(Get(input, "name"), kind);
      node->kind = "user";
      node->value = graph.Argument(Get(input, "value"));
    } else if (kind == "parameter" || kind == "buffer" || kind == "tensor_constant") {
      node->name = AsText(Get(AsObject(Get(input, "arg"), kind), "name"), kind);
      node->kind = kind == "parameter" ? "parameter" : "constant";
      node->value = ReadNamed(weights, constants, Get(input, (kind + "_name").c_str()));
    } else {
      TVM_FFI_THROW(ValueError) << "Unsupported input kind " << kind;
    }
    if (kind != "constant_input") node->meta = graph.MetaOf(node->name);
    program->inputs.push_back(ProgramInput(node));
  }
  program->nodes = graph.Nodes();
  program->outputs = graph.Outputs();
  for (const auto& [name, value] : AsObject(Get(model, "range_constraints"), "range_constraints")) {
    json::Object range = AsObject(value, "range");
    program->ranges.Set(AsText(name, "range"), {Get(range, "min_val"), Get(range, "max_val")});
  }
  return Program(program);
}

namespace {

IRModule FromArchive(String path, bool keep_params_as_input, bool unwrap_unit_return_tuple,
                     bool no_bind_return_tuple) {
  auto importer = ffi::make_object<ImporterObj>();
  importer->builder = relax::BlockBuilder::Create();
  ImportOptions options{keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple};
  ImportProgram(Importer(importer), ReadArchive(path), options);
  return importer->builder->GetModule();
}
TVM_REGISTER() {
  Def("relax.frontend.torch.from_archive", &FromArchive,
      "The module of a .pt2 file that torch.export.save wrote, read without PyTorch: as "
      "from_exported_program without decompositions.",
      Arg("path"), Arg("keep_params_as_input", false), Arg("unwrap_unit_return_tuple", false),
      Arg("no_bind_return_tuple", false));
}

}  // namespace
}  // namespace tvm::frontend::torch
