// SPDX-License-Identifier: Apache-2.0
// safetensors: 8 bytes with the length of a header, the header as JSON, the tensors without gaps.
#include "runtime/apart_file.h"

#include <tvm/ffi/extra/json.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <ostream>

#include "runtime/content_hash.h"
#include "runtime/elf.h"
#include "tvm/runtime/def.h"

namespace tvm::runtime {
namespace {
constexpr const char *kMetadata = "__metadata__", *kIdKey = "tvm_id";
static_assert(std::endian::native == std::endian::little, "tensors are written as they lie");

/// The name of the format for a type; types that it does not have are written as bytes.
const char* SafetensorsName(DLDataType dtype) {
  static const std::map<std::string, const char*> names = {{"bool", "BOOL"},
                                                           {"int8", "I8"},
                                                           {"uint8", "U8"},
                                                           {"int16", "I16"},
                                                           {"uint16", "U16"},
                                                           {"int32", "I32"},
                                                           {"uint32", "U32"},
                                                           {"int64", "I64"},
                                                           {"uint64", "U64"},
                                                           {"float16", "F16"},
                                                           {"bfloat16", "BF16"},
                                                           {"float32", "F32"},
                                                           {"float64", "F64"},
                                                           {"float8_e5m2", "F8_E5M2"},
                                                           {"float8_e4m3fn", "F8_E4M3"}};
  auto it = names.find(ffi::DLDataTypeToString(dtype));
  return it == names.end() ? nullptr : it->second;
}
std::string Entry(const std::string& name, const char* dtype, ShapeView shape, uint64_t begin,
                  uint64_t end) {
  std::string extents;
  for (size_t i = 0; i < shape.size(); ++i) extents += (i ? "," : "") + std::to_string(shape[i]);
  return ",\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + extents +
         "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}
}  // namespace

std::string WriteApartFile(std::ostream& out, const ApartTensors& tensors) {
  std::vector<std::string_view> pieces = tensors.Pieces();
  std::string entries;
  uint64_t end = 0;
  Digest digest;
  // The format has no gaps: what is between tensors are tensors, too.
  auto pad = [&](size_t index) {
    uint64_t begin = (end + kApartAlignment - 1) / kApartAlignment * kApartAlignment;
    auto gap = static_cast<int64_t>(begin - end);
    if (gap > 0)
      entries += Entry("padding_" + std::to_string(index), "U8", ShapeView(&gap, 1), end, begin);
    end = begin;
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    pad(i);
    const Tensor& tensor = tensors.tensors()[i];
    const char* dtype = SafetensorsName(tensor.dtype());
    auto size = static_cast<int64_t>(pieces[i].size());
    entries += Entry("constant_" + std::to_string(i), dtype ? dtype : "U8",
                     dtype ? tensor.shape() : ShapeView(&size, 1), end, end + pieces[i].size());
    end += pieces[i].size();
    digest.Put(pieces[i]);
  }
  digest.Put(entries);
  std::string id = digest.Hex();
  std::string header =
      std::string("{\"") + kMetadata + "\":{\"" + kIdKey + "\":\"" + id + "\"}" + entries + "}";
  uint64_t length = header.size() + 8;
  header.append((kApartAlignment - length % kApartAlignment) % kApartAlignment, ' ');
  length = header.size();
  out.write(reinterpret_cast<const char*>(&length), sizeof(length));
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (size_t i = 0; i < pieces.size(); ++i) {
    static constexpr char kZeros[kApartAlignment] = {};
    out.write(pieces[i].data(), static_cast<std::streamsize>(pieces[i].size()));
    if (i + 1 < pieces.size())
      out.write(kZeros, static_cast<std::streamsize>(-pieces[i].size() % kApartAlignment));
  }
  return id;
}

ApartFile MapApartFile(const std::string& path, std::string_view id) {
  auto file = std::make_shared<MappedFile>(path, /*writable=*/true);
  std::string_view bytes = file->bytes();
  auto fail = [&](const std::string& what) {
    TVM_FFI_THROW(ValueError) << path << ": expected the parameters of the library beside it, got "
                              << what;
  };
  uint64_t length = 0;
  if (bytes.size() >= sizeof(length)) std::memcpy(&length, bytes.data(), sizeof(length));
  if (bytes.size() < sizeof(length) || length > bytes.size() - sizeof(length))
    fail("no safetensors file");
  std::string found;
  try {
    auto header = ffi::json::Parse(String(bytes.data() + 8, length)).cast<Map<String, Any>>();
    found = header[kMetadata].cast<Map<String, Any>>()[kIdKey].cast<String>();
  } catch (const ffi::Error&) {
    fail("a file with another header");
  }
  if (found != id) fail("those of another one: id " + found + " instead of " + std::string(id));
  bytes.remove_prefix(sizeof(length) + length);
  return {bytes, file};
}
}  // namespace tvm::runtime
