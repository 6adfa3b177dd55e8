// SPDX-License-Identifier: Apache-2.0
// The members of a ZIP file that are stored without compression, as PyTorch writes its archives.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace tvm::frontend::torch {

/// The bytes of each member by name; they are parts of `file`. ValueError for what is no such file:
/// every length in it is checked.
std::map<std::string, std::string_view> ReadZip(std::string_view file);

}  // namespace tvm::frontend::torch
