// SPDX-License-Identifier: Apache-2.0
// The members of a ZIP file that are stored without compression, as PyTorch writes its archives.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tvm::frontend::torch {

struct ZipMember {
  std::string_view bytes;  // as they are stored
  uint32_t checksum;
  uint16_t method;  // of compression, 0 for none
};
/// The members by name; their bytes are parts of `file`. ValueError for what is no such file: every
/// length in it is checked.
std::map<std::string, ZipMember> ReadZip(std::string_view file);
/// What a member holds. ValueError where it is compressed, or other than its checksum says.
std::string_view Content(const std::string& name, const ZipMember& member);

}  // namespace tvm::frontend::torch
