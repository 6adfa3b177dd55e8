// SPDX-License-Identifier: Apache-2.0
// Tensors of a model: raw bytes, lists of numbers, files beside the model.
#include <charconv>
#include <filesystem>

#include "frontend/onnx/model.h"
#include "runtime/host_tensor.h"

namespace tvm::frontend::onnx {
namespace {
// By the numbers of TensorProto.DataType.
constexpr DataType kTypes[] = {
    DataType::Void(),        DataType::Float(32),   DataType::UInt(8),       DataType::Int(8),
    DataType::UInt(16),      DataType::Int(16),     DataType::Int(32),       DataType::Int(64),
    DataType::Void(),        DataType::Bool(),      DataType::Float(16),     DataType::Float(64),
    DataType::UInt(32),      DataType::UInt(64),    DataType::Void(),        DataType::Void(),
    DataType::BFloat16(),    {kDLFloat8_e4m3fn, 8}, {kDLFloat8_e4m3fnuz, 8}, {kDLFloat8_e5m2, 8},
    {kDLFloat8_e5m2fnuz, 8}, DataType::UInt(4),     DataType::Int(4),        {kDLFloat4_e2m1fn, 4},
    {kDLFloat8_e8m0fnu, 8},  DataType::UInt(2),     DataType::Int(2),        {kDLFloat6_e2m3fn, 6},
    {kDLFloat6_e3m2fn, 6}};

[[noreturn]] void FailTensor(const TensorProto& proto, const std::string& expected,
                             const std::string& got) {
  TVM_FFI_THROW(ValueError) << "onnx: tensor '" << proto.name << "': expected " << expected
                            << ", got " << got;
  TVM_FFI_UNREACHABLE();
}
uint64_t Number(const TensorProto& proto, Name key, Name text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    FailTensor(proto, "a number as " + std::string(key), "'" + std::string(text) + "'");
  return value;
}
/// The bytes of a tensor in a file of its own, which must lie in the model's folder once links are
/// resolved: a model must not be able to read other files.
Bytes ReadExternal(const Model& model, const TensorProto& proto, uint64_t needed) {
  namespace fs = std::filesystem;
  Name location;
  uint64_t offset = 0, length = needed;
  for (const auto& [key, value] : proto.external) {
    if (key == "location") location = value;
    if (key == "offset") offset = Number(proto, key, value);
    if (key == "length") length = Number(proto, key, value);
  }
  if (model.folder.empty())
    FailTensor(
        proto,
        "a model read from a file, since its data is in '" + std::string(location) + "' beside it",
        "bytes");
  std::error_code error;
  fs::path folder = fs::canonical(model.folder, error);
  fs::path file = fs::canonical(folder / fs::path(location), error);
  // A pipe would make us wait for a writer.
  if (error || !fs::is_regular_file(file, error))
    FailTensor(proto, "external data", "no file '" + std::string(location) + "'");
  auto [in_folder, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  if (in_folder != folder.end() || fs::path(location).is_absolute())
    FailTensor(proto, "external data in the model's folder", "'" + std::string(location) + "'");
  Bytes bytes = MapFile(file.string());
  if (offset > bytes.view.size() || length > bytes.view.size() - offset)
    FailTensor(proto,
               std::to_string(length) + " bytes at " + std::to_string(offset) + " of '" +
                   std::string(location) + "'",
               "a file of " + std::to_string(bytes.view.size()));
  return {bytes.view.substr(offset, length), bytes.owner};
}
/// Numbers from a list of integers; small types are bits in int32_data.
std::string PackIntegers(const TensorProto& proto, DataType dtype, uint64_t nbytes) {
  std::string data;
  data.reserve(nbytes);
  // Types of less than a byte: one entry is a byte of several elements.
  int width = dtype.bytes();
  for (int64_t value : proto.integers) data.append(reinterpret_cast<const char*>(&value), width);
  return data;
}
}  // namespace

std::optional<DataType> DataTypeOf(int64_t data_type) {
  if (data_type < 0 || data_type >= static_cast<int64_t>(std::size(kTypes)) ||
      kTypes[data_type].is_void()) {
    return std::nullopt;
  }
  return kTypes[data_type];
}
runtime::Tensor MakeTensor(const Model& model, const TensorProto& proto) {
  auto dtype = DataTypeOf(proto.data_type);
  if (!dtype)
    FailTensor(proto, "elements that are numbers", "data type " + std::to_string(proto.data_type));
  runtime::ShapeView shape(proto.dims.data(), proto.dims.size());
  uint64_t nbytes = runtime::DataSize(shape, *dtype);
  Bytes data;
  if (proto.is_external) {
    data = ReadExternal(model, proto, nbytes);
  } else if (proto.raw) {
    data = {*proto.raw, model.bytes.owner};
  } else if (!proto.floats.empty()) {
    data = OwnBytes(proto.floats);
  } else {
    data = OwnBytes(PackIntegers(proto, *dtype, nbytes));
  }
  if (data.view.size() != nbytes)
    FailTensor(proto, std::to_string(nbytes) + " bytes of data", std::to_string(data.view.size()));
  // Passes look into small ones; a copy of the others would be all that an import costs.
  constexpr uint64_t kFewBytes = 4096;
  runtime::Tensor tensor = TensorOver(data, shape, *dtype);
  return nbytes <= kFewBytes ? runtime::HostTensor(tensor) : tensor;
}
runtime::Tensor MakeDense(const Model& model, const SparseTensorProto& proto) {
  runtime::Tensor values = MakeTensor(model, proto.values);
  runtime::Tensor indices = runtime::HostTensor(MakeTensor(model, proto.indices));
  if (DataType(indices.dtype()) != DataType::Int(64) || DataType(values.dtype()).bits() % 8)
    FailTensor(proto.values, "int64 indices and elements of whole bytes", "others");
  runtime::ShapeView shape(proto.dims.data(), proto.dims.size());
  int64_t count = values.numel(), per_value = indices.ndim() == 2 ? indices.size(1) : 1;
  int64_t width = DataType(values.dtype()).bytes();
  if (indices.numel() != count * per_value ||
      (per_value != 1 && per_value != static_cast<int64_t>(shape.size())))
    FailTensor(proto.values, "an index for every value", "another number of them");
  runtime::Tensor dense = runtime::Empty(shape, values.dtype(), {kDLCPU, 0});
  std::memset(dense.data_ptr(), 0, runtime::DataSize(shape, values.dtype()));
  auto* index = static_cast<const int64_t*>(indices.data_ptr());
  for (int64_t i = 0; i < count; ++i) {
    int64_t flat = 0;
    for (int64_t d = 0; d < per_value; ++d) {
      int64_t at = index[i * per_value + d];
      int64_t extent = indices.ndim() == 2 ? shape[d] : dense.numel();
      if (at < 0 || at >= extent)
        FailTensor(proto.values, "indices below " + std::to_string(extent), std::to_string(at));
      flat = flat * extent + at;
    }
    std::memcpy(static_cast<char*>(dense.data_ptr()) + flat * width,
                static_cast<const char*>(values.data_ptr()) + i * width, width);
  }
  return dense;
}

}  // namespace tvm::frontend::onnx
