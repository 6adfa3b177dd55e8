// SPDX-License-Identifier: Apache-2.0
// Results of expensive work kept on disk between processes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tvm::runtime {

/// A folder of entries, safe for many processes at once: an entry appears whole or not at all, a
/// damaged one counts as missing, and errors of the file system never reach the caller. When the
/// entries take more than the limit, those not used for longest go.
class DiskCache {
 public:
  /// A limit of 0 turns it off: nothing is found, nothing is written.
  DiskCache(std::string folder, uint64_t limit_bytes);
  /// TVM_CACHE_DIR (default: $XDG_CACHE_HOME/tvm, ~/.cache/tvm) and TVM_CACHE_LIMIT_MB (default
  /// 1024; 0 turns it off).
  static DiskCache& Global();

  /// `key` is everything the result depends on (program, target, version, …), of any length.
  std::optional<std::string> Find(std::string_view key);
  void Store(std::string_view key, std::string_view value);
  void Clear();

  const std::string& folder() const { return folder_; }
  /// 0 while a Bypass lives on this thread.
  uint64_t limit() const;

  /// For work whose results nobody will ask for again: caches are off on this thread.
  class Bypass {
   public:
    Bypass();
    ~Bypass();
    Bypass(const Bypass&) = delete;
    Bypass& operator=(const Bypass&) = delete;
  };

 private:
  std::string PathOf(std::string_view key) const;
  void Shrink();
  std::string folder_;
  uint64_t limit_;
};

}  // namespace tvm::runtime
