// SPDX-License-Identifier: Apache-2.0
// Named tensors in files: the layout Apache TVM reads and writes, every length checked on loading.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>

#include "tvm/runtime/tensor.h"

namespace tvm::runtime {
namespace {
// All little-endian: list magic, 0, names (count, each length and text), count, tensors: tensor
// magic, 0, device type and index (i32), ndim (i32), dtype (u8 code, u8 bits, u16 lanes), shape
// (i64), nbytes (i64), data.
constexpr uint64_t kListMagic = 0xF7E58D4F05049CB7, kTensorMagic = 0xDD5E40F096B4A13F;
constexpr DLDevice kCpu{kDLCPU, 0};
static_assert(std::endian::native == std::endian::little,
              "tensor data is written as it lies in memory");

using Write = std::function<void(const void*, uint64_t)>;

void Save(const Map<String, Tensor>& params, const Write& write) {
  auto put = [&](auto value) { write(&value, sizeof(value)); };
  put(kListMagic);
  put(uint64_t{0});
  put(static_cast<uint64_t>(params.size()));
  for (const auto& [name, tensor] : params) {
    put(static_cast<uint64_t>(name.size()));
    write(name.data(), name.size());
  }
  put(static_cast<uint64_t>(params.size()));
  for (const auto& [name, tensor] : params) {
    Tensor t = tensor;
    if (t.device().device_type != kDLCPU || !t.is_contiguous()) {
      t = Empty(tensor.shape(), tensor.dtype(), kCpu);
      CopyTensor(tensor, t);
    }
    DLDataType dtype = t.dtype();
    put(kTensorMagic);
    put(uint64_t{0});
    put(int32_t{kDLCPU});
    put(int32_t{0});
    put(static_cast<int32_t>(t.ndim()));
    put(dtype.code);
    put(dtype.bits);
    put(dtype.lanes);
    for (int64_t extent : t.shape()) put(extent);
    uint64_t nbytes = DataSize(t.shape(), dtype);
    put(static_cast<int64_t>(nbytes));
    write(t.data_ptr(), nbytes);
  }
}

/// Reads from memory or from a file; never beyond `left` bytes.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes), left_(bytes.size()) {}
  Reader(std::FILE* file, uint64_t size) : file_(file), left_(size) {}
  uint64_t left() const { return left_; }
  void Read(void* to, uint64_t n, const char* what) {
    if (n > left_) {
      TVM_FFI_THROW(ValueError) << "load_param_dict: " << what << " needs " << n << " bytes, only "
                                << left_ << " are left: the data is truncated or no parameter file";
    }
    if (file_ && n && std::fread(to, 1, n, file_) != n) {
      TVM_FFI_THROW(OSError) << "load_param_dict: cannot read " << what;
    }
    if (!file_) {
      std::memcpy(to, bytes_.data(), n);
      bytes_.remove_prefix(n);
    }
    left_ -= n;
  }
  template <class T>
  T Get(const char* what) {
    T value;
    Read(&value, sizeof(value), what);
    return value;
  }
  /// A number of things of at least `least` bytes each.
  uint64_t Count(const char* what, uint64_t least) {
    auto n = Get<uint64_t>(what);
    if (n > left_ / least) {
      TVM_FFI_THROW(ValueError) << "load_param_dict: " << what << " is " << n << ", more than "
                                << left_ << " bytes can hold";
    }
    return n;
  }

 private:
  std::string_view bytes_;
  std::FILE* file_ = nullptr;
  uint64_t left_;
};

Tensor LoadTensor(Reader* in, const std::string& name) {
  auto fail = [&](const std::string& text) {
    TVM_FFI_THROW(ValueError) << "load_param_dict: tensor '" << name << "': " << text;
  };
  if (in->Get<uint64_t>("a tensor's header") != kTensorMagic)
    fail("expected the header of a tensor");
  in->Get<uint64_t>("a tensor's header");
  in->Get<int64_t>("a tensor's device");  // loaded to the CPU, wherever it was
  auto ndim = in->Get<int32_t>("a tensor's rank");
  if (ndim < 0 || ndim > 64) fail("expected a rank from 0 to 64, got " + std::to_string(ndim));
  DLDataType dtype{in->Get<uint8_t>("a dtype"), in->Get<uint8_t>("a dtype"),
                   in->Get<uint16_t>("a dtype")};
  if (dtype.code == kDLOpaqueHandle || dtype.bits == 0 || dtype.lanes == 0) fail("unknown dtype");
  std::vector<int64_t> extents(ndim);
  for (int64_t& extent : extents) extent = in->Get<int64_t>("a shape");
  ShapeView shape(extents.data(), extents.size());
  auto nbytes = in->Get<uint64_t>("a tensor's size");
  if (uint64_t expected = DataSize(shape, dtype); nbytes != expected) {
    fail("expected " + std::to_string(expected) + " bytes, got " + std::to_string(nbytes));
  }
  // Before allocating: a few bytes must not ask for terabytes.
  if (nbytes > in->left()) fail("its data is truncated");
  Tensor tensor = [&] {
    try {
      return Empty(shape, dtype, kCpu);
    } catch (const ffi::Error& error) {
      if (error.kind() == "TypeError") fail("unknown dtype");
      throw;
    }
  }();
  in->Read(tensor.data_ptr(), nbytes, "a tensor's data");
  return tensor;
}

Map<String, Tensor> Load(Reader in) {
  if (in.left() < 16 || in.Get<uint64_t>("the header") != kListMagic) {
    TVM_FFI_THROW(ValueError) << "load_param_dict: expected saved parameters, got something else";
  }
  in.Get<uint64_t>("the header");
  std::vector<std::string> names(in.Count("the number of names", 8));
  for (std::string& name : names) {
    name.resize(in.Count("the length of a name", 1));
    in.Read(name.data(), name.size(), "a name");
  }
  if (uint64_t count = in.Count("the number of tensors", 1); count != names.size()) {
    TVM_FFI_THROW(ValueError) << "load_param_dict: expected " << names.size() << " tensors, got "
                              << count;
  }
  Map<String, Tensor> params;
  for (const std::string& name : names) {
    if (params.count(name))
      TVM_FFI_THROW(ValueError) << "load_param_dict: the name '" << name << "' occurs twice";
    params.Set(name, LoadTensor(&in, name));
  }
  if (in.left() != 0) {
    TVM_FFI_THROW(ValueError) << "load_param_dict: " << in.left()
                              << " bytes follow the last tensor";
  }
  return params;
}

struct File {
  std::FILE* handle;
  File(const std::string& path, const char* mode) : handle(std::fopen(path.c_str(), mode)) {
    if (handle) return;
    int error = errno;
    if (error == ENOENT) TVM_FFI_THROW(FileNotFoundError) << "no such file or folder: " << path;
    TVM_FFI_THROW(OSError) << "cannot open " << path << ": " << std::strerror(error);
  }
  ~File() {
    if (handle) std::fclose(handle);
  }
};
}  // namespace

std::string SaveParams(const Map<String, Tensor>& params) {
  std::string out;
  Save(params,
       [&](const void* data, uint64_t n) { out.append(static_cast<const char*>(data), n); });
  return out;
}
Map<String, Tensor> LoadParams(std::string_view bytes) { return Load(Reader(bytes)); }

void SaveParamsToFile(const Map<String, Tensor>& params, const std::string& path) {
  std::string partial = path + ".partial." + std::to_string(getpid());
  try {
    File file(partial, "wb");
    Save(params, [&](const void* data, uint64_t n) {
      if (n && std::fwrite(data, 1, n, file.handle) != n) {
        TVM_FFI_THROW(OSError) << "cannot write " << path << ": " << std::strerror(errno);
      }
    });
    if (std::fclose(std::exchange(file.handle, nullptr)) != 0 ||
        std::rename(partial.c_str(), path.c_str()) != 0) {
      TVM_FFI_THROW(OSError) << "cannot write " << path << ": " << std::strerror(errno);
    }
  } catch (...) {
    std::remove(partial.c_str());
    throw;
  }
}
Map<String, Tensor> LoadParamsFromFile(const std::string& path) {
  File file(path, "rb");
  struct stat info{};
  if (fstat(fileno(file.handle), &info) != 0 || !S_ISREG(info.st_mode)) {
    TVM_FFI_THROW(OSError) << "cannot read " << path << ": not a regular file";
  }
  return Load(Reader(file.handle, static_cast<uint64_t>(info.st_size)));
}

namespace {
TVM_REGISTER() {
  Def(
      "runtime.SaveParams",
      [](Map<String, Tensor> params) { return ffi::Bytes(SaveParams(params)); },
      "Named tensors as bytes.", Arg("params"));
  Def(
      "runtime.LoadParams",
      [](ffi::Bytes bytes) { return LoadParams({bytes.data(), bytes.size()}); },
      "Named tensors from bytes of SaveParams.", Arg("bytes"));
  Def(
      "runtime.SaveParamsToFile",
      [](Map<String, Tensor> params, String path) { SaveParamsToFile(params, std::string(path)); },
      "Named tensors into a file, which appears whole or not at all.", Arg("params"), Arg("path"));
  Def(
      "runtime.LoadParamsFromFile",
      [](String path) { return LoadParamsFromFile(std::string(path)); },
      "Named tensors from a file of SaveParamsToFile.", Arg("path"));
}
}  // namespace
}  // namespace tvm::runtime
