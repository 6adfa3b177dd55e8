// SPDX-License-Identifier: Apache-2.0
// Tensors over memory maps.
#include "frontend/mapped_file.h"

#include <cstring>

#include "runtime/elf.h"
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
  auto file = std::make_shared<runtime::MappedFile>(path);
  return {file->bytes(), file};
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
