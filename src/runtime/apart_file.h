// SPDX-License-Identifier: Apache-2.0
// The tensors of a library's modules in a file of their own beside it, in the format safetensors.
#pragma once
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "tvm/runtime/apart_data.h"

namespace tvm::runtime {

/// The symbol of a library that names its file of tensors: a name without folders, "\n", the id of
/// the contents.
constexpr const char* kLibraryParams = "__tvm_library_params";

/// Returns the id of the contents, which the file has in its metadata.
std::string WriteApartFile(std::ostream& out, const ApartTensors& tensors);

struct ApartFile {
  std::string_view data;        ///< All tensors, where ApartTensors has placed them.
  std::shared_ptr<void> owner;  ///< Keeps them. They may be written to; the file stays as it is.
};
/// Maps the file; nothing is read but its header. ValueError where it has another id, or is no such
/// file.
ApartFile MapApartFile(const std::string& path, std::string_view id);

}  // namespace tvm::runtime
