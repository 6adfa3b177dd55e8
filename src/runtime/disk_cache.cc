// SPDX-License-Identifier: Apache-2.0
// The on-disk cache: one file per entry, named by a hash of its key; the key itself is stored and
// compared.
#include "tvm/runtime/disk_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tvm/runtime/def.h"

namespace tvm::runtime {
namespace fs = std::filesystem;
namespace {
constexpr uint64_t kMagic = 0x5456406361636801;  // "TVMcache" and the version of the layout
constexpr const char* kSuffix = ".entry";

/// FNV-1a: only spreads the names and detects damage; keys are compared in full.
uint64_t Hash(std::string_view text, uint64_t hash = 0xcbf29ce484222325) {
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}
struct Header {
  uint64_t magic, key_size, value_size, checksum;
};
uint64_t LimitFromEnvironment() {
  const char* text = std::getenv("TVM_CACHE_LIMIT_MB");
  if (!text || !*text) return uint64_t{1024} << 20;
  char* end;
  double mb = std::strtod(text, &end);
  if (*end || !(mb >= 0) || mb > 1e9) {
    TVM_FFI_THROW(ValueError) << "TVM_CACHE_LIMIT_MB: expected a number of megabytes, got '" << text
                              << "'";
  }
  return static_cast<uint64_t>(mb * (1 << 20));
}
std::string FolderFromEnvironment() {
  auto env = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string own = env("TVM_CACHE_DIR"); !own.empty()) return own;
  if (std::string cache = env("XDG_CACHE_HOME"); !cache.empty()) return cache + "/tvm";
  if (std::string home = env("HOME"); !home.empty()) return home + "/.cache/tvm";
  return "";
}
}  // namespace

DiskCache::DiskCache(std::string folder, uint64_t limit_bytes)
    : folder_(std::move(folder)), limit_(folder_.empty() ? 0 : limit_bytes) {}

DiskCache& DiskCache::Global() {
  static auto* cache = new DiskCache(FolderFromEnvironment(), LimitFromEnvironment());
  return *cache;
}

namespace {
thread_local int bypasses = 0;
}
DiskCache::Bypass::Bypass() { ++bypasses; }
DiskCache::Bypass::~Bypass() { --bypasses; }
uint64_t DiskCache::limit() const { return bypasses > 0 ? 0 : limit_; }

namespace {
constexpr size_t kDigits = 24;  // of the name of an entry, before the suffix

/// Whether a file is an entry, or part of one: others may lie in the folder, and are not ours.
bool IsEntry(const fs::path& path) {
  std::string name = path.filename().string();
  return name.size() > kDigits && name.compare(kDigits, std::strlen(kSuffix), kSuffix) == 0 &&
         name.find_first_not_of("0123456789abcdef") == kDigits &&
         name.find_first_not_of("0123456789.", kDigits + std::strlen(kSuffix)) == std::string::npos;
}
}  // namespace

std::string DiskCache::PathOf(std::string_view key) const {
  char name[40];
  std::snprintf(name, sizeof(name), "%016llx%08zx", static_cast<unsigned long long>(Hash(key)),
                key.size());
  return folder_ + "/" + name + kSuffix;
}

std::optional<std::string> DiskCache::Find(std::string_view key) {
  if (limit() == 0) return std::nullopt;
  std::string path = PathOf(key);
  std::ifstream file(path, std::ios::binary);
  Header header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header))) return std::nullopt;
  std::error_code error;
  uint64_t size = fs::file_size(path, error);
  if (error || header.magic != kMagic || header.key_size != key.size() ||
      header.value_size > size || sizeof(header) + header.key_size + header.value_size != size) {
    return std::nullopt;
  }
  std::string stored(header.key_size, '\0'), value(header.value_size, '\0');
  if (!file.read(stored.data(), static_cast<std::streamsize>(stored.size())) ||
      !file.read(value.data(), static_cast<std::streamsize>(value.size())) || stored != key ||
      header.checksum != Hash(value, Hash(stored))) {
    return std::nullopt;
  }
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);  // it was used
  return value;
}

void DiskCache::Store(std::string_view key, std::string_view value) {
  if (limit() == 0 || sizeof(Header) + key.size() + value.size() > limit_) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  static std::atomic<unsigned> counter{0};
  std::string path = PathOf(key);
  std::string partial = path + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
  Header header{kMagic, key.size(), value.size(), Hash(value, Hash(key))};
  {
    std::ofstream file(partial, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    file.write(key.data(), static_cast<std::streamsize>(key.size()));
    file.write(value.data(), static_cast<std::streamsize>(value.size()));
    file.close();
    if (file) fs::rename(partial, path, error);
    if (!file || error) return static_cast<void>(fs::remove(partial, error));
  }
  Shrink();
}

void DiskCache::Shrink() {
  struct Entry {
    fs::file_time_type used;
    uint64_t size;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;  // another process may remove it meanwhile
    Entry entry{it->last_write_time(gone), it->file_size(gone), it->path()};
    if (gone || !IsEntry(it->path())) continue;
    total += entry.size;
    entries.push_back(std::move(entry));
  }
  if (total <= limit_) return;
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.used < b.used; });
  // To nine tenths: otherwise every later entry would walk the folder and remove one.
  for (const Entry& entry : entries) {
    if (total <= limit_ / 10 * 9) break;
    fs::remove(entry.path, error);
    total -= entry.size;
  }
}

void DiskCache::Clear() {
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (IsEntry(it->path())) fs::remove(it->path(), gone);
  }
}

namespace {
TVM_REGISTER() {
  Def(
      "runtime.cache_dir",
      []() -> Optional<String> {
        DiskCache& cache = DiskCache::Global();
        return cache.limit() ? Optional<String>(String(cache.folder())) : std::nullopt;
      },
      "The folder of the cache of compiled functions; None where it is turned off.");
  Def(
      "runtime._find_cached",
      [](String key) -> Optional<ffi::Bytes> {
        auto found = DiskCache::Global().Find({key.data(), key.size()});
        return found ? Optional<ffi::Bytes>(ffi::Bytes(*found)) : std::nullopt;
      },
      "What the cache of compiled functions has for a key, or None.", Arg("key"));
  Def(
      "runtime._store_cached",
      [](String key, ffi::Bytes value) {
        DiskCache::Global().Store({key.data(), key.size()}, {value.data(), value.size()});
      },
      "Keeps bytes in the cache of compiled functions.", Arg("key"), Arg("value"));
  Def(
      "runtime.clear_cache", [] { DiskCache::Global().Clear(); },
      "Empties the cache of compiled functions.");
}
}  // namespace
}  // namespace tvm::runtime
