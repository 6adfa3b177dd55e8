// SPDX-License-Identifier: Apache-2.0
// Named tensors of the process: weights in a folder of `tensor-cache.json` and raw files, and lists
// of them for the functions of a program.
#include <tvm/ffi/extra/json.h>

#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "runtime/vm/program.h"
#include "tvm/runtime/data_type.h"

namespace tvm::runtime::vm {
namespace {
struct TensorCache {
  std::mutex mutex;
  std::map<std::string, Tensor> table;
  static TensorCache& Global() {
    static auto* cache = new TensorCache();
    return *cache;
  }
  std::optional<Tensor> Find(const std::string& name) {
    std::lock_guard lock(mutex);
    auto it = table.find(name);
    return it == table.end() ? std::nullopt : std::optional(it->second);
  }
};

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) TVM_FFI_THROW(FileNotFoundError) << "tensor_cache: cannot read " << path;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}
using JsonMap = Map<Any, Any>;
template <class T>
T Field(const JsonMap& record, const char* key) {
  auto it = record.find(String(key));
  auto value = it == record.end() ? std::nullopt : (*it).second.try_cast<T>();
  if (!value) {
    TVM_FFI_THROW(ValueError) << "tensor_cache: expected the field '" << key << "' as "
                              << ffi::TypeTraits<T>::TypeStr();
  }
  return *value;
}
/// One tensor out of the bytes of its file. float32 may be stored as the upper half of its bits.
Tensor ReadRecord(const JsonMap& record, std::string_view bytes, DLDevice device) {
  auto name = Field<String>(record, "name");
  auto shape = Field<Shape>(record, "shape");
  auto dtype = Field<DataType>(record, "dtype");
  auto offset = Field<int64_t>(record, "byteOffset"), nbytes = Field<int64_t>(record, "nbytes");
  bool half =
      View(Field<String>(record, "format")) == "f32-to-bf16" && dtype == DataType::Float(32);
  uint64_t whole = DataSize(shape, dtype), stored = half ? whole / 2 : whole;
  if (offset < 0 || static_cast<uint64_t>(nbytes) != stored ||
      static_cast<uint64_t>(offset) > bytes.size() || stored > bytes.size() - offset) {
    TVM_FFI_THROW(ValueError) << "tensor_cache: '" << name << "': expected " << stored
                              << " bytes at byte " << offset << " of a file of " << bytes.size();
  }
  Tensor host = Empty(shape, dtype, {kDLCPU, 0});
  const char* from = bytes.data() + offset;
  if (half) {
    auto* to = static_cast<uint32_t*>(host.data_ptr());
    for (uint64_t i = 0; i < whole / 4; ++i) {
      uint16_t upper;
      std::memcpy(&upper, from + 2 * i, 2);
      to[i] = uint32_t{upper} << 16;
    }
  } else {
    std::memcpy(host.data_ptr(), from, stored);
  }
  return ToDevice(host, device).cast<Tensor>();
}
/// All or nothing.
void LoadTensorCache(String folder, int device_type, int device_id) {
  std::string base = std::string(View(folder)) + "/";
  DLDevice device{static_cast<DLDeviceType>(device_type), device_id};
  String error;
  Any index = ffi::json::Parse(String(ReadWhole(base + "tensor-cache.json")), &error);
  auto root = index.try_cast<JsonMap>();
  if (!root) {
    TVM_FFI_THROW(ValueError) << "tensor_cache: expected " << base
                              << "tensor-cache.json to be a JSON object: " << error;
  }
  std::map<std::string, Tensor> loaded;
  for (const Any& file : Field<Array<Any>>(*root, "records")) {
    auto shard = file.cast<JsonMap>();
    std::string path(View(Field<String>(shard, "dataPath")));
    if (path.empty() || path[0] == '/' || path.find("..") != std::string::npos) {
      TVM_FFI_THROW(ValueError) << "tensor_cache: expected a file inside the folder, got '" << path
                                << "'";
    }
    std::string bytes = ReadWhole(base + path);
    for (const Any& record : Field<Array<Any>>(shard, "records")) {
      auto fields = record.cast<JsonMap>();
      loaded[std::string(View(Field<String>(fields, "name")))] = ReadRecord(fields, bytes, device);
    }
  }
  TensorCache& cache = TensorCache::Global();
  std::lock_guard lock(cache.mutex);
  for (auto& [name, tensor] : loaded) cache.table.insert_or_assign(name, std::move(tensor));
}

Any GetCached(String name) {
  auto found = TensorCache::Global().Find(std::string(View(name)));
  return found ? Any(*found) : Any(nullptr);
}
void UpdateCached(String name, Tensor tensor, bool override) {
  TensorCache& cache = TensorCache::Global();
  std::lock_guard lock(cache.mutex);
  auto [it, fresh] = cache.table.try_emplace(std::string(View(name)), tensor);
  if (!fresh && !override) {
    TVM_FFI_THROW(ValueError) << "tensor_cache: there is a tensor '" << name << "' already";
  }
  it->second = tensor;
}

Tensor RequireCached(const std::string& name) {
  auto found = TensorCache::Global().Find(name);
  if (!found) TVM_FFI_THROW(ValueError) << "tensor_cache: there is no tensor '" << name << "'";
  return *found;
}
/// prefix_0, prefix_1, …: `count` of them, or as many as there are for -1.
Array<Any> ParamArray(String prefix, int64_t count) {
  Array<Any> params;
  for (int64_t i = 0; count < 0 || i < count; ++i) {
    std::string name = std::string(View(prefix)) + "_" + std::to_string(i);
    if (count < 0 && !TensorCache::Global().Find(name)) break;
    params.push_back(RequireCached(name));
  }
  return params;
}
Array<Any> ParamArrayByName(Array<String> names) {
  Array<Any> params;
  for (const String& name : names) params.push_back(RequireCached(std::string(View(name))));
  return params;
}
void ParamArrayByNameUnpacked(ffi::PackedArgs args, Any* result) {
  Array<String> names;
  for (int i = 0; i < args.size(); ++i) names.push_back(args[i].cast<String>());
  *result = ParamArrayByName(names);
}

/// What set_input takes as last argument: its get_params returns the list.
class ParamModuleObj final : public ffi::ModuleObj {
 public:
  explicit ParamModuleObj(Array<Any> params) : params_(std::move(params)) {}
  const char* kind() const final { return "param_module"; }
  int GetPropertyMask() const final { return Module::kRunnable; }
  Optional<Function> GetFunction(const String& name) final {
    if (View(name) != "get_params") return std::nullopt;
    return Function::FromTyped([params = params_] { return params; });
  }

 private:
  Array<Any> params_;
};

TVM_REGISTER() {
  Def("vm.builtin.tensor_cache.load", &LoadTensorCache, "Adds the tensors of a folder.",
      Arg("cache_path"), Arg("device_type"), Arg("device_id"));
  Def("vm.builtin.tensor_cache.get", &GetCached, "A tensor, or None.", Arg("name"));
  Def("vm.builtin.tensor_cache.update", &UpdateCached, "Adds a tensor.", Arg("name"), Arg("tensor"),
      Arg("override"));
  Def(
      "vm.builtin.tensor_cache.remove",
      [](String name) {
        TensorCache& cache = TensorCache::Global();
        std::lock_guard lock(cache.mutex);
        cache.table.erase(std::string(View(name)));
      },
      "Forgets a tensor.", Arg("name"));
  Def(
      "vm.builtin.tensor_cache.clear",
      [] {
        TensorCache& cache = TensorCache::Global();
        std::lock_guard lock(cache.mutex);
        cache.table.clear();
      },
      "Forgets all tensors.");
  Def("vm.builtin.param_array_from_cache", &ParamArray, "The tensors prefix_0, prefix_1, ….",
      Arg("prefix"), Arg("num_params"));
  Def("vm.builtin.param_array_from_cache_by_name", &ParamArrayByName, "Tensors by name.",
      Arg("names"));
  Function::SetGlobal("vm.builtin.param_array_from_cache_by_name_unpacked",
                      Function::FromPacked(&ParamArrayByNameUnpacked));
  Def(
      "vm.builtin.param_module_from_cache",
      [](String prefix, int64_t count) {
        return Module(ffi::make_object<ParamModuleObj>(ParamArray(prefix, count)));
      },
      "A module whose get_params returns the tensors.", Arg("prefix"), Arg("num_params"));
  Def(
      "vm.builtin.param_module_from_cache_by_name",
      [](Array<String> names) {
        return Module(ffi::make_object<ParamModuleObj>(ParamArrayByName(names)));
      },
      "The same by name.", Arg("names"));
}
}  // namespace
}  // namespace tvm::runtime::vm
