// SPDX-License-Identifier: Apache-2.0
// Texts as characters.
#pragma once
#include <string>
#include <string_view>

namespace tvm::runtime {

/// Bytes that are no UTF-8 become U+FFFD, one each.
inline std::u32string DecodeUtf8(std::string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i]);
    int more = byte < 0x80   ? 0
               : byte < 0xC2 ? -1
               : byte < 0xE0 ? 1
               : byte < 0xF0 ? 2
               : byte < 0xF5 ? 3
                             : -1;
    char32_t c = more <= 0 ? byte : byte & (0x3F >> more);
    for (int k = 1; k <= more; ++k) {
      auto tail = i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0;
      if ((tail & 0xC0) != 0x80) {
        more = -1;
        break;
      }
      c = c << 6 | (tail & 0x3F);
    }
    bool overlong = (more == 2 && c < 0x800) || (more == 3 && (c < 0x10000 || c > 0x10FFFF));
    if (more < 0 || overlong || (c >= 0xD800 && c < 0xE000)) {
      out += U'\uFFFD';
      ++i;
    } else {
      out += c;
      i += more + 1;
    }
  }
  return out;
}
inline std::string EncodeUtf8(std::u32string_view text) {
  std::string out;
  for (char32_t c : text) {
    if (c < 0x80) {
      out += static_cast<char>(c);
      continue;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    out += static_cast<char>((0xFF00 >> (more + 1) & 0xFF) | (c >> 6 * more));
    for (int k = more - 1; k >= 0; --k) out += static_cast<char>(0x80 | (c >> 6 * k & 0x3F));
  }
  return out;
}

}  // namespace tvm::runtime
