// SPDX-License-Identifier: Apache-2.0
// Reading graphs and running them.
#include "runtime/graph/executor.h"

#include <tvm/ffi/extra/json.h>

#include <algorithm>

#include "tvm/runtime/data_type.h"

namespace tvm::runtime {
namespace {
using Json = Map<String, Any>;

[[noreturn]] void FailGraph(const std::string& what) {
  TVM_FFI_THROW(ValueError) << "graph: " << what;
  TVM_FFI_UNREACHABLE();
}
Any Field(const Json& object, const char* key) {
  auto it = object.find(key);
  if (it == object.end()) FailGraph(std::string("expected a field '") + key + "'");
  return (*it).second;
}
template <class T>
T FieldAs(const Json& object, const char* key) {
  auto value = Field(object, key).try_cast<T>();
  if (!value) FailGraph(std::string("the field '") + key + "' is not what it should be");
  return *value;
}
/// ["list_int", [0, 1]]: what the lists of attributes hold, one item for each entry.
Array<Any> Listed(const Json& attrs, const char* key, size_t entries) {
  auto pair = FieldAs<Array<Any>>(attrs, key);
  auto list = pair.size() == 2 ? pair[1].try_cast<Array<Any>>() : std::nullopt;
  if (!list || list->size() != entries)
    FailGraph(std::string("expected '") + key + "' of " + std::to_string(entries) + " values");
  return *list;
}
int64_t IntOf(const Any& value, const char* what) {
  // Numbers of old files may be texts.
  if (auto number = value.try_cast<int64_t>()) return *number;
  if (auto text = value.try_cast<String>()) return std::atoll(std::string(*text).c_str());
  FailGraph(std::string("expected a number as ") + what);
}
int64_t IndexBelow(const Any& value, size_t size, const char* what) {
  int64_t i = IntOf(value, what);
  if (i < 0 || i >= static_cast<int64_t>(size)) {
    FailGraph("expected " + std::string(what) + " below " + std::to_string(size) + ", got " +
              std::to_string(i));
  }
  return i;
}
}  // namespace

GraphExecutorObj::GraphExecutorObj(const String& json, Module library, DLDevice device)
    : library_(std::move(library)), device_(device) {
  String error;
  Any parsed = ffi::json::Parse(json, &error);
  auto root = parsed.try_cast<Json>();
  if (!root) FailGraph("expected a JSON object: " + std::string(error));
  auto nodes = FieldAs<Array<Any>>(*root, "nodes");
  auto row_ptr = FieldAs<Array<Any>>(*root, "node_row_ptr");
  if (row_ptr.size() != nodes.size() + 1) FailGraph("expected one node_row_ptr more than nodes");
  auto attrs = FieldAs<Json>(*root, "attrs");
  auto num_entries = static_cast<size_t>(IndexBelow(row_ptr.back(), 1 << 24, "node_row_ptr"));
  auto entry_of = [&](const Any& reference) {
    auto pair = reference.try_cast<Array<Any>>();
    if (!pair || pair->size() < 2) FailGraph("expected [node, output, version]");
    int64_t node = IndexBelow((*pair)[0], nodes.size(), "a node");
    int64_t entry = IntOf(row_ptr[node], "node_row_ptr") + IntOf((*pair)[1], "an output");
    return IndexBelow(entry, num_entries, "an entry");
  };

  // Memory: entries with one storage share it, in the size of the largest.
  Array<Any> shapes = Listed(attrs, "shape", num_entries);
  Array<Any> types = Listed(attrs, "dltype", num_entries);
  Array<Any> storage_ids = Listed(attrs, "storage_id", num_entries);
  std::vector<std::vector<int64_t>> extents(num_entries);
  std::vector<DLDataType> dtypes(num_entries);
  std::vector<int64_t> storage_of(num_entries);
  std::vector<uint64_t> sizes(num_entries);
  for (size_t i = 0; i < num_entries; ++i) {
    auto shape = shapes[i].try_cast<Array<Any>>();
    auto dtype = types[i].try_cast<String>();
    if (!shape || !dtype) FailGraph("expected a shape and a type of every entry");
    for (const Any& extent : *shape) extents[i].push_back(IntOf(extent, "an extent"));
    dtypes[i] = ffi::StringToDLDataType(*dtype);
    storage_of[i] = IndexBelow(storage_ids[i], num_entries, "a storage");
    uint64_t size = DataSize({extents[i].data(), extents[i].size()}, dtypes[i]);
    sizes[storage_of[i]] = std::max(sizes[storage_of[i]], size);
  }
  std::vector<std::optional<Tensor>> storages(num_entries);
  for (size_t i = 0; i < num_entries; ++i) {
    auto& storage = storages[storage_of[i]];
    auto bytes = static_cast<int64_t>(sizes[storage_of[i]]);
    if (!storage) storage = Empty({bytes}, DataType::UInt(8), device_);
    entries_.push_back(CreateView(*storage, {extents[i].data(), extents[i].size()}, dtypes[i]));
  }

  for (const Any& input : FieldAs<Array<Any>>(*root, "arg_nodes")) {
    int64_t node = IndexBelow(input, nodes.size(), "an argument");
    input_names_.emplace_back(FieldAs<String>(nodes[node].cast<Json>(), "name"));
    inputs_.push_back(IndexBelow(row_ptr[node], num_entries, "node_row_ptr"));
  }
  for (const Any& head : FieldAs<Array<Any>>(*root, "heads")) outputs_.push_back(entry_of(head));
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto node = nodes[i].try_cast<Json>();
    if (!node) FailGraph("expected nodes that are objects");
    if (FieldAs<String>(*node, "op") == "null") continue;
    auto node_attrs = FieldAs<Json>(*node, "attrs");
    std::string name = FieldAs<String>(node_attrs, "func_name");
    if (name == "__nop") continue;
    Step step{name, nullptr, {}};
    for (const Any& reference : FieldAs<Array<Any>>(*node, "inputs"))
      step.entries.push_back(entry_of(reference));
    int64_t first = IntOf(row_ptr[i], "node_row_ptr"), end = IntOf(row_ptr[i + 1], "node_row_ptr");
    for (int64_t entry = first; entry < end; ++entry)
      step.entries.push_back(IndexBelow(entry, num_entries, "an entry"));
    auto found = library_->GetFunction(name, /*query_imports=*/true);
    if (!found) FailGraph("the library has no function '" + name + "'");
    step.function = *found;
    steps_.push_back(std::move(step));
  }
}

int64_t GraphExecutorObj::InputIndex(const String& name) const {
  auto it = std::find(input_names_.begin(), input_names_.end(), View(name));
  return it == input_names_.end() ? -1 : it - input_names_.begin();
}
const Tensor& GraphExecutorObj::Input(int64_t index) const {
  if (index < 0 || index >= static_cast<int64_t>(inputs_.size())) {
    TVM_FFI_THROW(IndexError) << "graph executor: expected an input below " << inputs_.size()
                              << ", got " << index;
  }
  return entries_[inputs_[index]];
}
const Tensor& GraphExecutorObj::Output(int64_t index) const {
  if (index < 0 || index >= static_cast<int64_t>(outputs_.size())) {
    TVM_FFI_THROW(IndexError) << "graph executor: expected an output below " << outputs_.size()
                              << ", got " << index;
  }
  return entries_[outputs_[index]];
}
void GraphExecutorObj::SetInput(int64_t index, const Tensor& value, bool copies) {
  if (copies) return CopyTensor(value, Input(index));
  const Tensor& old = Input(index);
  DLDevice device = value.device();
  bool fits = std::equal(old.shape().begin(), old.shape().end(), value.shape().begin(),
                         value.shape().end()) &&
              DataType(old.dtype()) == DataType(value.dtype()) && value.is_contiguous() &&
              device.device_type == device_.device_type && device.device_id == device_.device_id;
  if (!fits) {
    TVM_FFI_THROW(ValueError) << "set_input_zero_copy: expected a contiguous tensor of the shape, "
                                 "type and device of the input '"
                              << input_names_[index] << "'";
  }
  entries_[inputs_[index]] = value;
}
void GraphExecutorObj::LoadParams(const Map<String, Tensor>& params) {
  for (const auto& [name, value] : params) {
    // What the graph does not need may be there.
    if (int64_t i = InputIndex(name); i >= 0) CopyTensor(value, Input(i));
  }
}
void GraphExecutorObj::Run() const {
  std::vector<AnyView> args;
  for (const Step& step : steps_) {
    args.clear();
    for (int64_t entry : step.entries) args.emplace_back(entries_[entry]);
    Any ignored;
    step.function.CallPacked(args.data(), static_cast<int32_t>(args.size()), &ignored);
  }
}

Optional<Function> GraphExecutorObj::GetFunction(const String& name) {
  auto self = ffi::GetRef<Module>(this);
  std::string_view key = View(name);
  auto index_of = [this](const Any& given) {
    if (auto index = given.try_cast<int64_t>()) return *index;
    auto text = given.cast<String>();
    int64_t index = InputIndex(text);
    if (index >= 0) return index;
    std::vector<std::string_view> names(input_names_.begin(), input_names_.end());
    TVM_FFI_THROW(ValueError) << "set_input: there is no input '" << text << "'"
                              << DidYouMean(View(text), names);
    TVM_FFI_UNREACHABLE();
  };
  if (key == "set_input" || key == "set_input_zero_copy") {
    return Function::FromTyped(
        [self, this, index_of, copies = key == "set_input"](Any input, Tensor value) {
          SetInput(index_of(input), value, copies);
        });
  }
  if (key == "run") return Function::FromTyped([self, this] { Run(); });
  if (key == "get_input")
    return Function::FromTyped([self, this, index_of](Any i) { return Input(index_of(i)); });
  if (key == "get_output") {
    return Function::FromPacked([self, this](ffi::PackedArgs args, Any* result) {
      if (args.size() < 1) TVM_FFI_THROW(TypeError) << "get_output: expected an index";
      const Tensor& output = Output(args[0].cast<int64_t>());
      if (args.size() == 1) {
        *result = output;
      } else {
        CopyTensor(output, args[1].cast<Tensor>());
      }
    });
  }
  auto number = [self](size_t n) {
    return Function::FromTyped([self, n] { return static_cast<int64_t>(n); });
  };
  if (key == "get_num_inputs") return number(inputs_.size());
  if (key == "get_num_outputs") return number(outputs_.size());
  if (key == "get_input_index")
    return Function::FromTyped([self, this](String input) { return InputIndex(input); });
  if (key == "get_input_info") {
    return Function::FromTyped([self, this] {
      Map<String, Shape> shapes;
      Map<String, String> types;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        shapes.Set(input_names_[i], Shape(Input(i).shape()));
        types.Set(input_names_[i], ffi::DLDataTypeToString(Input(i).dtype()));
      }
      return Map<String, Any>{{"shape", shapes}, {"dtype", types}};
    });
  }
  if (key == "load_params") {
    return Function::FromTyped([self, this](ffi::Bytes bytes) {
      LoadParams(runtime::LoadParams({bytes.data(), bytes.size()}));
    });
  }
  if (key == "share_params") {
    return Function::FromTyped([self, this](Module other, ffi::Bytes bytes) {
      auto* from = dynamic_cast<const GraphExecutorObj*>(other.get());
      if (!from) TVM_FFI_THROW(TypeError) << "share_params: expected a graph executor";
      for (const auto& [param, value] : runtime::LoadParams({bytes.data(), bytes.size()})) {
        int64_t mine = InputIndex(param), theirs = from->InputIndex(param);
        if (mine >= 0 && theirs >= 0) SetInput(mine, from->Input(theirs), /*copies=*/false);
      }
    });
  }
  return std::nullopt;
}

namespace {
/// A graph with its parameters, whose code is in the modules it imports.
class GraphFactoryObj : public ffi::ModuleObj {
 public:
  GraphFactoryObj(String json, String name, Map<String, Tensor> params)
      : json_(std::move(json)), name_(std::move(name)), params_(std::move(params)) {}
  const char* kind() const final { return "GraphExecutorFactory"; }
  int GetPropertyMask() const final { return Module::kBinarySerializable | Module::kRunnable; }
  Optional<Function> GetFunction(const String& name) final {
    auto self = ffi::GetRef<Module>(this);
    if (name == "get_graph_json" || name == "get_executor_config")
      return Function::FromTyped([self, this] { return json_; });
    if (name == "get_params") return Function::FromTyped([self, this] { return params_; });
    if (name == name_) {
      return Function::FromTyped([self, this](DLDevice device) {
        auto executor = ffi::make_object<GraphExecutorObj>(json_, self, device);
        executor->LoadParams(params_);
        return Module(executor);
      });
    }
    return std::nullopt;
  }
  ffi::Bytes SaveToBytes() const final {
    std::string head(ffi::json::Stringify(Array<Any>{json_, name_}));
    return ffi::Bytes(head + '\0' + SaveParams(params_));
  }
  static Module Load(std::string_view bytes) {
    size_t end = bytes.find('\0');
    auto head =
        end == std::string_view::npos
            ? std::nullopt
            : ffi::json::Parse(String(std::string(bytes.substr(0, end)))).try_cast<Array<String>>();
    if (!head || head->size() != 2) FailGraph("expected a saved graph, got something else");
    return Module(ffi::make_object<GraphFactoryObj>((*head)[0], (*head)[1],
                                                    LoadParams(bytes.substr(end + 1))));
  }

 private:
  String json_, name_;
  Map<String, Tensor> params_;
};

TVM_REGISTER() {
  Def(
      "tvm.graph_executor.create",
      [](String json, Module library, DLDevice device) {
        return Module(ffi::make_object<GraphExecutorObj>(json, library, device));
      },
      "Runs a graph, given as JSON, with the functions of a library.", Arg("graph_json_str"),
      Arg("libmod"), Arg("device"));
  Def(
      "tvm.graph_executor_factory.create",
      [](String json, Module library, String name, Map<String, Tensor> params) {
        Module factory(ffi::make_object<GraphFactoryObj>(json, name, params));
        factory->ImportModule(library);
        return factory;
      },
      "A graph with its parameters and code; its function `name` makes an executor for a device.",
      Arg("graph_json_str"), Arg("libmod"), Arg("name"), Arg("params"));
  Def(
      "ffi.Module.load_from_bytes.GraphExecutorFactory",
      [](ffi::Bytes bytes) { return GraphFactoryObj::Load({bytes.data(), bytes.size()}); },
      "A graph from its bytes.", Arg("bytes"));
}
}  // namespace
}  // namespace tvm::runtime
