// SPDX-License-Identifier: Apache-2.0
// Telling contents apart, at the speed of memory.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tvm::runtime {

/// 128 bits of a content: equal ones have equal digests, others do not by accident. Nobody is kept
/// from forging one.
struct Digest {
  uint64_t a = 0x9e3779b97f4a7c15, b = 0xc2b2ae3d27d4eb4f;
  /// Goes on with a word.
  void Put(uint64_t word);
  void Put(const Digest& other) { Put(other.a), Put(other.b); }
  /// … with a length and bytes. Those of many megabytes are read by all threads.
  void Put(std::string_view bytes);
  std::string Hex() const;
  bool operator==(const Digest&) const = default;
};
inline Digest DigestOf(std::string_view bytes) {
  Digest digest;
  digest.Put(bytes);
  return digest;
}

}  // namespace tvm::runtime
