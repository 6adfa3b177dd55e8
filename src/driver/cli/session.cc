// SPDX-License-Identifier: Apache-2.0
// Opening models and making inputs for them.
#include "driver/cli/session.h"

#include <tvm/ffi/extra/json.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "driver/cli/npy.h"
#include "driver/cli/program.h"
#include "tvm/runtime/data_type.h"
#include "tvm/runtime/thread_pool.h"

namespace tvm::cli {
namespace {
using runtime::Tensor;

std::string FileOf(const Options& options) {
  if (options.rest().size() != 1)
    TVM_FFI_THROW(ValueError) << "expected one file, got " << options.rest().size();
  return options.rest()[0];
}
ffi::Module ExecutableOf(const Options& options) {
  std::string path = FileOf(options);
  return IsSource(path) ? Compiled(ReadProgram(path), options) : runtime::LoadModule(path);
}
DLDevice DeviceOf(const std::string& text) {
  size_t colon = text.find(':');
  std::string name = text.substr(0, colon);
  for (DLDeviceType type : {kDLCPU, kDLCUDA, kDLROCM, kDLOpenCL, kDLMetal, kDLVulkan}) {
    if (runtime::DeviceName(type) != name) continue;
    if (colon == std::string::npos) return {type, 0};
    return {type, static_cast<int32_t>(NumberOf("--device", text.substr(colon + 1), 0))};
  }
  TVM_FFI_THROW(ValueError) << "--device: expected cpu or cuda, maybe with :index, got '" << text
                            << "'";
  TVM_FFI_UNREACHABLE();
}
ffi::Module MachineOf(const ffi::Module& executable, DLDevice device, bool profiles) {
  const char* load = profiles ? "vm_profiler_load_executable" : "vm_load_executable";
  auto machine = runtime::GetFunction(executable, load)().cast<ffi::Module>();
  int pooled = static_cast<int>(runtime::AllocatorKind::kPooled);
  runtime::GetFunction(machine, "vm_initialization")(static_cast<int>(device.device_type),
                                                     device.device_id, pooled);
  return machine;
}

/// Floats between 0 and 1; zeros of other types, which are inside of every table.
Tensor Noise(const std::vector<int64_t>& shape, DataType dtype) {
  Tensor tensor = runtime::Empty({shape.data(), shape.size()}, dtype, {kDLCPU, 0});
  std::mt19937 random(0);
  std::uniform_real_distribution<double> unit(0, 1);
  auto fill = [&](auto* data, auto make) {
    for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = make();
  };
  void* data = tensor.data_ptr();
  bool is_number = dtype.is_scalar() && (dtype.is_float() || dtype.is_integer() || dtype.is_bool());
  if (is_number && dtype.is_float() && dtype.bits() == 32) {
    fill(static_cast<float*>(data), [&] { return static_cast<float>(unit(random)); });
  } else if (is_number && dtype.is_float() && dtype.bits() == 64) {
    fill(static_cast<double*>(data), [&] { return unit(random); });
  } else {
    std::memset(data, 0, runtime::DataSize(tensor.shape(), dtype));
  }
  return tensor;
}
/// The extents of "4,16".
std::vector<int64_t> ExtentsOf(const std::string& text) {
  std::vector<int64_t> extents;
  for (size_t begin = 0; begin < text.size();) {
    size_t comma = std::min(text.find(',', begin), text.size());
    extents.push_back(NumberOf("--shape", text.substr(begin, comma - begin), 0));
    begin = comma + 1;
  }
  return extents;
}
Array<Any> InputsOf(const Json& signature) { return signature["inputs"].cast<Array<Any>>(); }

/// The extents of names: those of --dim, and what shapes of --shape say about theirs.
std::map<std::string, int64_t> DimsOf(const Options& options, const Json& signature,
                                      std::map<std::string, std::vector<int64_t>>* shapes) {
  std::map<std::string, int64_t> dims;
  for (const auto& [name, text] : options.Pairs("--dim")) dims[name] = NumberOf("--dim", text, 0);
  for (const auto& [name, text] : options.Pairs("--shape")) (*shapes)[name] = ExtentsOf(text);
  for (const Any& any : InputsOf(signature)) {
    auto entry = any.cast<Json>();
    std::string name(entry["name"].cast<String>());
    auto given = shapes->find(name);
    if (given == shapes->end() || !entry.count("shape")) continue;
    auto declared = entry["shape"].cast<Array<Any>>();
    if (declared.size() != given->second.size())
      TVM_FFI_THROW(ValueError) << "--shape: the input '" << name << "' has " << declared.size()
                                << " dimensions, got " << given->second.size();
    for (size_t i = 0; i < declared.size(); ++i) {
      auto symbol = declared[i].as<String>();
      if (!symbol) continue;
      auto [dim, is_new] = dims.emplace(std::string(*symbol), given->second[i]);
      if (!is_new && dim->second != given->second[i])
        TVM_FFI_THROW(ValueError) << "--shape: dimension " << i << " of the input '" << name
                                  << "' is '" << *symbol << "', which is " << dim->second
                                  << " elsewhere, got " << given->second[i];
    }
  }
  return dims;
}
}  // namespace

std::vector<OptionRow> SessionOptions() {
  return {{"--function", "a name", "the function to run; main by default"},
          {"--target", "a target", "of a model that is no library yet; this machine by default"},
          {"--device", "a device", "cpu by default, or cuda:0"},
          {"--threads", "a number", "threads that work on one call"},
          {"--input", "name=file.npy", "an input; noise where none is given"},
          {"--shape", "name=4,16", "of an input that is noise"},
          {"--dim", "name=extent", "an extent that may be any; 1 by default"},
          {"--json", "", "prints JSON"}};
}

Session::Session(const Options& options, bool profiles)
    : options(options),
      path(FileOf(options)),
      function(options.Get("--function", "main")),
      device(DeviceOf(options.Get("--device", "cpu"))),
      executable(ExecutableOf(options)),
      machine(MachineOf(executable, device, profiles)) {
  if (options.Has("--threads"))
    runtime::SetNumThreads(static_cast<int>(options.Count("--threads", 1)));
}
Json Session::Signature() const {
  auto text = runtime::GetFunction(machine, "get_function_signature")(function).cast<String>();
  if (text.empty())
    TVM_FFI_THROW(ValueError) << path << ": does not say what '" << function << "' takes";
  return ffi::json::Parse(text).cast<Json>();
}
std::vector<Any> Session::Inputs() const {
  auto files = options.Pairs("--input");
  Json signature = Signature();
  std::map<std::string, std::vector<int64_t>> shapes;
  std::map<std::string, int64_t> dims = DimsOf(options, signature, &shapes);
  std::set<std::string> known;  // dims that the function has
  std::vector<Any> values;
  for (const Any& any : InputsOf(signature)) {
    auto entry = any.cast<Json>();
    std::string name(entry["name"].cast<String>());
    bool has_shape = entry.count("shape") > 0;
    std::vector<int64_t> shape;
    for (const Any& dim : has_shape ? entry["shape"].cast<Array<Any>>() : Array<Any>()) {
      auto symbol = dim.as<String>();
      auto given = symbol ? dims.find(std::string(*symbol)) : dims.end();
      if (given != dims.end()) known.insert(given->first);
      shape.push_back(given != dims.end() ? given->second : dim.as<int64_t>().value_or(1));
    }
    if (auto given = shapes.find(name); given != shapes.end()) {
      shape = given->second;
      has_shape = true;
      shapes.erase(given);
    }
    if (auto file = files.find(name); file != files.end()) {
      values.push_back(ReadNpy(file->second));
      files.erase(file);
      continue;
    }
    if (entry["kind"].cast<String>() != "tensor" || !has_shape || !entry.count("dtype"))
      TVM_FFI_THROW(ValueError) << "the input '" << name << "' needs --input " << name
                                << "=file.npy" << (has_shape ? "" : ", or --shape");
    values.push_back(Noise(shape, DataType(entry["dtype"].cast<String>())));
  }
  if (!files.empty())
    TVM_FFI_THROW(ValueError) << "--input: there is no input '" << files.begin()->first << "'";
  if (!shapes.empty())
    TVM_FFI_THROW(ValueError) << "--shape: there is no input '" << shapes.begin()->first << "'";
  for (const auto& [name, extent] : dims) {
    if (!known.count(name))
      TVM_FFI_THROW(ValueError) << "--dim: no input of '" << function << "' has an extent '" << name
                                << "'";
  }
  for (Any& value : values) {
    if (device.device_type == kDLCPU) break;
    auto host = value.cast<Tensor>();
    Tensor moved = runtime::Empty(host.shape(), host.dtype(), device);
    runtime::CopyTensor(host, moved);
    value = moved;
  }
  return values;
}
namespace {
void FlattenResult(const Any& value, std::vector<Tensor>* tensors) {
  if (auto tuple = value.as<Array<Any>>()) {
    for (const Any& item : *tuple) FlattenResult(item, tensors);
  } else if (auto tensor = runtime::vm::As<Tensor>(value)) {
    tensors->push_back(*tensor);
  }
}
}  // namespace
std::vector<Tensor> Session::Run(const std::vector<Any>& inputs) const {
  std::vector<AnyView> views(inputs.begin(), inputs.end());
  Any result;
  runtime::GetFunction(machine, function)
      .CallPacked(views.data(), static_cast<int32_t>(views.size()), &result);
  std::vector<Tensor> tensors;
  FlattenResult(result, &tensors);
  return tensors;
}
}  // namespace tvm::cli
