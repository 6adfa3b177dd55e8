// SPDX-License-Identifier: Apache-2.0
// The libraries of this project.
#pragma once
#include <algorithm>
#include <iterator>
#include <string_view>

namespace tvm::runtime {

/// Whether a file is one of them, by its name without the suffix.
inline bool IsOwnLibrary(std::string_view path) {
  constexpr std::string_view kNames[] = {"libtvm_runtime", "libtvm", "libtvm_llvm"};
  std::string_view name = path.substr(path.rfind('/') + 1);
  return std::find(std::begin(kNames), std::end(kNames), name.substr(0, name.find('.'))) !=
         std::end(kNames);
}

}  // namespace tvm::runtime
