// SPDX-License-Identifier: Apache-2.0
// Results of expensive work kept on disk between processes.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tvm::runtime {
class MappedFile;

/// A folder of entries, safe for many processes at once: an entry appears whole or not at all, a
/// damaged one counts as missing, and errors of the file system never reach the caller. When the
/// entries take more than the limit, those not used for longest go.
class DiskCache {
 public:
  /// A limit of 0 turns it off: nothing is found, nothing is written.
  DiskCache(std::string folder, uint64_t limit_bytes);
  /// TVM_CACHE_DIR (default: $XDG_CACHE_HOME/tvm, ~/.cache/tvm) and TVM_CACHE_LIMIT_MB (default
  /// 4096; 0 turns it off).
  static DiskCache& Global();

  /// `key` is everything the result depends on (program, target, version, …), of any length.
  std::optional<std::string> Find(std::string_view key);
  void Store(std::string_view key, std::string_view value);

  /// A value that is used as the file it is.
  struct File {
    std::string path;
    std::shared_ptr<MappedFile> mapped;  ///< The value, and behind it what makes it an entry.
  };
  std::optional<File> FindFile(std::string_view key);
  /// Part of such a value: only its length is checked when it is found.
  struct Range {
    uint64_t begin = 0, size = 0;
  };
  /// Keeps the file that `write` makes at the path it gets, of `least` bytes or more, which is not
  /// called where they are too many. What it throws is thrown.
  void StoreFile(std::string_view key, uint64_t least,
                 const std::function<Range(const std::string& path)>& write);
  void Clear();

  const std::string& folder() const { return folder_; }
  /// 0 while a Bypass lives on this thread.
  uint64_t limit() const;
  /// For this process, from now on.
  void SetLimit(uint64_t bytes);
  struct Usage {
    uint64_t files = 0, bytes = 0;
  };
  Usage Used() const;

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
  std::string PartialPathOf(std::string_view key) const;
  std::optional<File> Open(std::string_view key, std::string_view* value) const;
  void ShrinkAfter(std::string_view key, uint64_t size);
  std::string folder_;
  std::atomic<uint64_t> limit_;
};

}  // namespace tvm::runtime
