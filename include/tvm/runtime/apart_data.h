// SPDX-License-Identifier: Apache-2.0
// Modules with much data: exported, it lies in the library beside what is saved of the module, so
// that it is mapped and shared between processes, not read.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tvm/runtime/tensor.h"

namespace tvm::runtime {

/// The symbol of a library that holds the tensors of its modules, one after the other.
constexpr const char* kLibraryData = "__tvm_library_data";
/// Where tensors begin: at multiples of this.
constexpr uint64_t kApartAlignment = 64;

/// Tensors that are written one after the other.
class ApartTensors {
 public:
  /// Where the tensor will lie. It must be contiguous and on the CPU.
  uint64_t Add(Tensor tensor);
  /// Their bytes; between them there is room up to the next multiple of the alignment.
  std::vector<std::string_view> Pieces() const;
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
  uint64_t size_ = 0;
};

/// What such a module class implements.
class ApartData {
 public:
  virtual ~ApartData() = default;
  /// What SaveToBytes gives, but for the tensors that are added to `tensors`.
  virtual std::string SaveApart(ApartTensors* tensors) const = 0;
  /// After loading: all tensors of the library, which `owner` keeps. ValueError where they are not
  /// what was saved.
  virtual void Attach(std::string_view data, const std::shared_ptr<void>& owner) = 0;
};

}  // namespace tvm::runtime
