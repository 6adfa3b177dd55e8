// SPDX-License-Identifier: Apache-2.0
// Reading and writing .npy: a header, which is a Python dictionary, then the elements.
#include "driver/cli/npy.h"

#include <cstring>
#include <fstream>

#include "runtime/elf.h"
#include "tvm/runtime/data_type.h"

namespace tvm::cli {
namespace {
constexpr std::string_view kMagic("\x93NUMPY", 6);

[[noreturn]] void Fail(const std::string& path, const std::string& what) {
  TVM_FFI_THROW(ValueError) << path << ": " << what;
  TVM_FFI_UNREACHABLE();
}
/// The text behind 'key': in the header.
std::string_view Entry(const std::string& path, std::string_view header, const std::string& key) {
  size_t at = header.find("'" + key + "':");
  if (at == std::string_view::npos) Fail(path, "the header has no " + key);
  header.remove_prefix(at + key.size() + 3);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}
DataType TypeOf(const std::string& path, std::string_view descr) {
  // '<f4'
  if (descr.size() < 5 || descr[0] != '\'' || descr[1] == '>')
    Fail(path, "expected little-endian numbers");
  int bytes = std::atoi(std::string(descr.substr(3, 2)).c_str());
  switch (descr[2]) {
    case 'f':
      return DataType::Float(8 * bytes);
    case 'i':
      return DataType::Int(8 * bytes);
    case 'u':
      return DataType::UInt(8 * bytes);
    case 'b':
      return DataType::Bool();
    default:
      Fail(path, "expected numbers, got elements of kind '" + std::string(1, descr[2]) + "'");
  }
}
std::string DescrOf(DataType dtype) {
  char kind = dtype.is_bool()                        ? 'b'
              : dtype.is_float() && dtype.bits() > 8 ? 'f'
              : dtype.is_int()                       ? 'i'
                                                     : 'u';
  return std::string(dtype.bytes() == 1 ? "|" : "<") + kind + std::to_string(dtype.bytes());
}
}  // namespace

runtime::Tensor ReadNpy(const std::string& path) {
  runtime::MappedFile file(path);
  std::string_view bytes = file.bytes();
  if (bytes.size() < 12 || bytes.substr(0, 6) != kMagic) Fail(path, "expected a .npy file");
  bool is_long = bytes[6] >= 2;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, is_long ? 4 : 2);
  size_t begin = is_long ? 12 : 10;
  if (length > bytes.size() - begin) Fail(path, "the file is truncated");
  std::string_view header = bytes.substr(begin, length);
  DataType dtype = TypeOf(path, Entry(path, header, "descr"));
  if (Entry(path, header, "fortran_order").substr(0, 5) != "False")
    Fail(path, "expected elements in the order of C");
  std::string shape_text(Entry(path, header, "shape"));
  std::vector<int64_t> shape;
  for (const char* at = shape_text.c_str() + 1; *at && *at != ')';) {
    char* end;
    int64_t extent = std::strtoll(at, &end, 10);
    if (end == at) break;
    shape.push_back(extent);
    at = end + std::strspn(end, ", ");
  }
  runtime::ShapeView view(shape.data(), shape.size());
  uint64_t size = runtime::DataSize(view, dtype);
  if (size > bytes.size() - begin - length) Fail(path, "the file is truncated");
  runtime::Tensor tensor = runtime::Empty(view, dtype, {kDLCPU, 0});
  std::memcpy(tensor.data_ptr(), bytes.data() + begin + length, size);
  return tensor;
}
void WriteNpy(const std::string& path, const runtime::Tensor& tensor) {
  std::string shape;
  for (int64_t extent : tensor.shape()) shape += std::to_string(extent) + ", ";
  std::string header = "{'descr': '" + DescrOf(DataType(tensor.dtype())) +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  auto length = static_cast<uint16_t>(header.size());
  std::ofstream out(path, std::ios::binary);
  out << kMagic << '\1' << '\0';
  out.write(reinterpret_cast<const char*>(&length), 2) << header;
  runtime::Tensor host = runtime::Empty(tensor.shape(), tensor.dtype(), {kDLCPU, 0});
  runtime::CopyTensor(tensor, host);
  out.write(static_cast<const char*>(host.data_ptr()),
            static_cast<std::streamsize>(runtime::DataSize(host.shape(), host.dtype())));
  if (!out.flush()) TVM_FFI_THROW(OSError) << path << ": cannot be written";
}
}  // namespace tvm::cli
