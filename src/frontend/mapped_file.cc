// SPDX-License-Identifier: Apache-2.0
// Tensors over memory maps.
#include "frontend/mapped_file.h"

#include "runtime/elf.h"

namespace tvm::frontend {
namespace {
struct View {
  std::shared_ptr<const void> owner;
  void AllocData(DLTensor* t, const char* address) { t->data = const_cast<char*>(address); }
  void FreeData(DLTensor*) {}
};
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
  return runtime::Tensor::FromNDAlloc(View{bytes.owner}, shape, dtype, {kDLCPU, 0},
                                      bytes.view.data());
}

}  // namespace tvm::frontend
