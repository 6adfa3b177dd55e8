// SPDX-License-Identifier: Apache-2.0
// Memory maps of files and tensors over them.
#include "frontend/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tvm/runtime/data_type.h"

namespace tvm::frontend {
namespace {
struct View {
  std::shared_ptr<const void> owner;
  void AllocData(DLTensor* t, const char* address) { t->data = const_cast<char*>(address); }
  void FreeData(DLTensor*) {}
};
constexpr DLDevice kHost{kDLCPU, 0};
}  // namespace

Bytes MapFile(const std::string& path) {
  // O_NONBLOCK: a named pipe must not make us wait for a writer.
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    if (errno == ENOENT) TVM_FFI_THROW(FileNotFoundError) << "no such file: " << path;
    TVM_FFI_THROW(OSError) << path << ": " << std::strerror(errno);
  }
  struct stat info{};
  bool is_file = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  size_t size = is_file ? static_cast<size_t>(info.st_size) : 0;
  void* data = size ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
  int error = errno;
  close(file);
  if (!is_file) TVM_FFI_THROW(OSError) << path << ": expected a regular file";
  if (!size) return {};
  if (data == MAP_FAILED) TVM_FFI_THROW(OSError) << path << ": " << std::strerror(error);
  std::shared_ptr<const void> owner(data, [size](void* p) { munmap(p, size); });
  return {{static_cast<const char*>(data), size}, std::move(owner)};
}
Bytes OwnBytes(std::string bytes) {
  auto owned = std::make_shared<std::string>(std::move(bytes));
  return {*owned, owned};
}
runtime::Tensor TensorOver(const Bytes& bytes, runtime::ShapeView shape, DLDataType dtype) {
  auto address = reinterpret_cast<uintptr_t>(bytes.view.data());
  if (address % DataType(dtype).bytes() == 0) {
    return runtime::Tensor::FromNDAlloc(View{bytes.owner}, shape, dtype, kHost, bytes.view.data());
  }
  runtime::Tensor copy = runtime::Empty(shape, dtype, kHost);
  std::memcpy(copy.data_ptr(), bytes.view.data(), bytes.view.size());
  return copy;
}

}  // namespace tvm::frontend
