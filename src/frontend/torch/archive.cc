// SPDX-License-Identifier: Apache-2.0
// A .pt2 archive: models/model.json is the graph, data/weights and data/constants have the tensors
// with a list of them each.
#include "archive.h"

#include "../mapped_file.h"
#include "archive_graph.h"
#include "importer.h"
#include "runtime/host_tensor.h"
#include "tvm/frontend/torch.h"
#include "zip_file.h"

namespace tvm::frontend::torch {
namespace {
constexpr int64_t kSchemaVersion = 8;

struct Archive {
  Bytes file;
  std::map<std::string, ZipMember> members;
  std::string root;  // the folder that all members are in

  std::optional<std::string_view> Find(const std::string& name) const {
    auto it = members.find(root + name);
    if (it == members.end()) return std::nullopt;
    return Content(name, it->second);
  }
  std::string_view Member(const std::string& name) const {
    auto found = Find(name);
    if (!found)
      TVM_FFI_THROW(ValueError) << "archive: expected the member '" << name << "', got none";
    return *found;
  }
};
/// What a file without a program is, and what to do about it.
std::string OtherFile(const Archive& archive) {
  auto has = [&](std::string_view part) {
    return std::any_of(archive.members.begin(), archive.members.end(), [&](const auto& member) {
      return member.first.find(part) != std::string::npos;
    });
  };
  if (has("/constants.pkl"))
    return "TorchScript, as torch.jit.save writes it: export the model it was made of "
           "(torch.export.export, then torch.export.save)";
  if (has("/data.pkl"))
    return "pickled objects, as torch.save writes them: load them into their model and export that "
           "(torch.export.export, then torch.export.save)";
  return "another ZIP file";
}
Archive OpenArchive(const std::string& path) {
  Archive archive{MapFile(path), {}, ""};
  try {
    archive.members = ReadZip(archive.file.view);
  } catch (const ffi::Error& error) {
    throw ffi::Error(error.kind(), error.message() + "\n  in " + path, error.backtrace());
  }
  for (const auto& [name, member] : archive.members) {
    constexpr std::string_view suffix = "/archive_format";
    if (!name.ends_with(suffix)) continue;
    archive.root = name.substr(0, name.size() - suffix.size() + 1);
    if (Content(name, member) != "pt2") Unexpected("archive_format", "pt2");
    if (archive.Find("byteorder").value_or("little") != "little") Unexpected("byteorder", "little");
    return archive;
  }
  TVM_FFI_THROW(ValueError) << "archive: expected a file of torch.export.save, got "
                            << OtherFile(archive) << "\n  in " << path;
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
    return runtime::HostTensor(
        TensorOver({bytes.substr(0, count * dtype.bytes()), archive.file.owner}, shape, dtype));
  }
  return TensorOver(OwnBytes(Gathered(bytes, sizes, strides, offset, dtype.bytes())), shape, dtype);
}
/// Tensors by name, read when they are asked for.
class Tensors {
 public:
  Tensors(const Archive& archive, const char* folder, const char* list)
      : archive_(archive), folder_(folder) {
    auto text = archive.Find(std::string(folder) + list);
    if (!text) return;
    json::Object config = ParseObject(*text, list);
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

/// Results, and new values of what the program changes.
void ReadOutputs(const GraphReader& graph, const json::Object& signature,
                 const std::unordered_map<std::string, String>& inputs, ProgramObj* program) {
  Array<Any> values = graph.Outputs(), results;
  json::Array specs = AsList(Get(signature, "output_specs"), "output_specs");
  if (specs.size() != values.size()) Unexpected("output_specs", "one for each result");
  for (size_t i = 0; i < values.size(); ++i) {
    auto [kind, value] = Choice(specs[i], "output_spec");
    size_t end = kind.find("_mutation");
    if (end == kind.npos) {
      results.push_back(values[i]);
      continue;
    }
    std::string key = kind.substr(0, end) + "_name";
    String name = AsText(Get(AsObject(value, kind), key.c_str()), key);
    auto it = inputs.find(name);
    program->mutations.Set(it == inputs.end() ? name : it->second, values[i]);
  }
  program->outputs = results;
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
  std::unordered_map<std::string, String> inputs;  // by the names of tensors
  for (const Any& spec : AsList(Get(signature, "input_specs"), "input_specs")) {
    auto [kind, value] = Choice(spec, "input_spec");
    json::Object input = AsObject(value, kind);
    Any target = Get(input, (kind + "_name").c_str());
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
      node->value = ReadNamed(weights, constants, target);
      inputs[std::string(AsText(target, kind))] = node->name;
    } else {
      TVM_FFI_THROW(ValueError) << "Unsupported input kind " << kind;
    }
    if (kind != "constant_input") node->meta = graph.MetaOf(node->name);
    program->inputs.push_back(ProgramInput(node));
  }
  program->nodes = graph.Nodes();
  ReadOutputs(graph, signature, inputs, program.get());
  for (const auto& [name, value] : AsObject(Get(model, "range_constraints"), "range_constraints")) {
    json::Object range = AsObject(value, "range");
    program->ranges.Set(AsText(name, "range"), {Get(range, "min_val"), Get(range, "max_val")});
  }
  return Program(program);
}

namespace {

IRModule FromArchive(String path, bool keep_params_as_input, bool unwrap_unit_return_tuple,
                     bool no_bind_return_tuple) {
  return ImportTorchArchive(
      path, {keep_params_as_input, unwrap_unit_return_tuple, !no_bind_return_tuple});
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

namespace tvm::frontend {

IRModule ImportTorchArchive(const std::string& path, const TorchOptions& options) {
  auto importer = ffi::make_object<torch::ImporterObj>();
  importer->builder = relax::BlockBuilder::Create();
  torch::ImportOptions how{options.keep_params, options.unwrap_result, !options.bind_result};
  torch::ImportProgram(torch::Importer(importer), torch::ReadArchive(path), how);
  return importer->builder->GetModule();
}

}  // namespace tvm::frontend
