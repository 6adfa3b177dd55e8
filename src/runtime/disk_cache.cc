// SPDX-License-Identifier: Apache-2.0
// The on-disk cache: one file per entry, named by a digest of its key: the value, the key, which is
// compared, and a footer. The value comes first so that an entry can be a library.
#include "tvm/runtime/disk_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "runtime/content_hash.h"
#include "runtime/elf.h"
#include "tvm/runtime/def.h"

namespace tvm::runtime {
namespace fs = std::filesystem;
namespace {
constexpr uint64_t kMagic = 0x5456406361636802;  // "TVMcache" and the version of the layout
constexpr const char* kSuffix = ".entry";

struct Footer {
  uint64_t value_size, key_size;
  DiskCache::Range unchecked;  // of the value
  uint64_t magic;
  Digest digest;  // of all but what is unchecked, and itself
};
Digest DigestOfEntry(std::string_view value, std::string_view key, const Footer& footer) {
  Digest digest;
  digest.Put(value.substr(0, footer.unchecked.begin));
  digest.Put(value.substr(footer.unchecked.begin + footer.unchecked.size));
  digest.Put(key);
  digest.Put({reinterpret_cast<const char*>(&footer), offsetof(Footer, digest)});
  return digest;
}
Footer FooterOf(std::string_view value, std::string_view key, DiskCache::Range unchecked) {
  Footer footer{value.size(), key.size(), unchecked, kMagic, {}};
  footer.digest = DigestOfEntry(value, key, footer);
  return footer;
}
/// The value of an entry that is whole, and that of this key.
std::optional<std::string_view> ValueOf(std::string_view entry, std::string_view key) {
  Footer footer;
  if (entry.size() < sizeof(footer)) return std::nullopt;
  entry.remove_suffix(sizeof(footer));
  std::memcpy(&footer, entry.data() + entry.size(), sizeof(footer));
  if (footer.magic != kMagic || footer.key_size != key.size() || key.size() > entry.size() ||
      footer.value_size != entry.size() - key.size() ||
      footer.unchecked.begin > footer.value_size ||
      footer.unchecked.size > footer.value_size - footer.unchecked.begin) {
    return std::nullopt;
  }
  std::string_view value = entry.substr(0, footer.value_size);
  if (entry.substr(value.size()) != key || footer.digest != DigestOfEntry(value, key, footer))
    return std::nullopt;
  return value;
}
uint64_t BytesOf(const char* what, double megabytes) {
  if (!(megabytes >= 0) || megabytes > 1e9)
    TVM_FFI_THROW(ValueError) << what << ": expected a number of megabytes, got " << megabytes;
  return static_cast<uint64_t>(megabytes * (1 << 20));
}
uint64_t LimitFromEnvironment() {
  const char *name = "TVM_CACHE_LIMIT_MB", *text = std::getenv(name);
  if (!text || !*text) return uint64_t{4096} << 20;
  char* end;
  double megabytes = std::strtod(text, &end);
  if (*end) {
    TVM_FFI_THROW(ValueError) << name << ": expected a number of megabytes, got '" << text << "'";
  }
  return BytesOf(name, megabytes);
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
uint64_t DiskCache::limit() const { return bypasses > 0 ? 0 : limit_.load(); }
void DiskCache::SetLimit(uint64_t bytes) { limit_ = folder_.empty() ? 0 : bytes; }

namespace {
constexpr size_t kDigits = 24;  // of the name of an entry, before the suffix

/// Whether a file is an entry, or part of one: others may lie in the folder, and are not ours.
bool IsEntry(const fs::path& path) {
  std::string name = path.filename().string();
  if (name[0] == '.') name.erase(0, 1);  // what export has not finished
  return name.size() > kDigits && name.compare(kDigits, std::strlen(kSuffix), kSuffix) == 0 &&
         name.find_first_not_of("0123456789abcdef") == kDigits &&
         name.find_first_not_of("0123456789.", kDigits + std::strlen(kSuffix)) == std::string::npos;
}
}  // namespace

std::string DiskCache::PathOf(std::string_view key) const {
  return folder_ + "/" + DigestOf(key).Hex().substr(0, kDigits) + kSuffix;
}
std::string DiskCache::PartialPathOf(std::string_view key) const {
  static std::atomic<unsigned> counter{0};
  return PathOf(key) + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
}

std::optional<DiskCache::File> DiskCache::Open(std::string_view key,
                                               std::string_view* value) const {
  if (limit() == 0) return std::nullopt;
  File file{PathOf(key), nullptr};
  std::error_code error;
  if (!fs::exists(file.path, error)) return std::nullopt;
  try {
    file.mapped = std::make_shared<MappedFile>(file.path);
  } catch (const ffi::Error&) {  // another process removed it
    return std::nullopt;
  }
  auto found = ValueOf(file.mapped->bytes(), key);
  if (!found) return std::nullopt;
  fs::last_write_time(file.path, fs::file_time_type::clock::now(), error);  // it was used
  *value = *found;
  return file;
}
std::optional<std::string> DiskCache::Find(std::string_view key) {
  std::string_view value;
  auto file = Open(key, &value);
  return file ? std::optional(std::string(value)) : std::nullopt;
}
std::optional<DiskCache::File> DiskCache::FindFile(std::string_view key) {
  std::string_view value;
  return Open(key, &value);
}

namespace {
/// Removes a file that was not finished.
struct Partial {
  std::string path;
  ~Partial() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};
void Append(std::ostream& out, std::string_view bytes) {
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
/// Writes what is behind the value; whether all of it was.
bool Finish(std::ofstream& out, std::string_view key, const Footer& footer) {
  Append(out, key);
  Append(out, {reinterpret_cast<const char*>(&footer), sizeof(footer)});
  out.close();
  return out.good();
}
}  // namespace

void DiskCache::Store(std::string_view key, std::string_view value) {
  if (limit() == 0 || sizeof(Footer) + key.size() + value.size() > limit()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  Partial partial{PartialPathOf(key)};
  std::ofstream out(partial.path, std::ios::binary);
  Append(out, value);
  if (!Finish(out, key, FooterOf(value, key, {}))) return;
  fs::rename(partial.path, PathOf(key), error);
  ShrinkAfter(key, value.size());
}
void DiskCache::StoreFile(std::string_view key, uint64_t least,
                          const std::function<Range(const std::string& path)>& write) {
  if (limit() == 0 || least > limit()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!fs::is_directory(folder_, error)) return;  // a home that cannot be written, say
  Partial partial{PartialPathOf(key)};
  Range unchecked = write(partial.path);
  Footer footer = FooterOf(MappedFile(partial.path).bytes(), key, unchecked);
  std::ofstream out(partial.path, std::ios::binary | std::ios::app);
  if (!Finish(out, key, footer)) return;
  fs::rename(partial.path, PathOf(key), error);
  ShrinkAfter(key, footer.value_size);
}

namespace {
struct Entry {
  fs::path path;
  fs::file_time_type used;
  uint64_t size;
};
std::vector<Entry> EntriesOf(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;  // another process may remove it meanwhile
    Entry entry{it->path(), it->last_write_time(gone), it->file_size(gone)};
    if (!gone && IsEntry(entry.path)) entries.push_back(std::move(entry));
  }
  return entries;
}
}  // namespace

DiskCache::Usage DiskCache::Used() const {
  Usage usage;
  for (const Entry& entry : EntriesOf(folder_)) ++usage.files, usage.bytes += entry.size;
  return usage;
}
void DiskCache::ShrinkAfter(std::string_view key, uint64_t size) {
  // Looking at all files takes a while when there are many: of small ones, one in sixteen does.
  if (size < limit_ / 256 && DigestOf(key).b % 16 != 0) return;
  std::vector<Entry> entries = EntriesOf(folder_);
  uint64_t total = 0, limit = limit_;
  for (const Entry& entry : entries) total += entry.size;
  if (total <= limit) return;
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.used < b.used; });
  // To nine tenths: otherwise every later entry would walk the folder and remove one.
  for (const Entry& entry : entries) {
    if (total <= limit / 10 * 9) break;
    std::error_code gone;
    fs::remove(entry.path, gone);
    total -= entry.size;
  }
}
void DiskCache::Clear() {
  for (const Entry& entry : EntriesOf(folder_)) {
    std::error_code gone;
    fs::remove(entry.path, gone);
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
  Def(
      "runtime.set_cache_limit",
      [](double megabytes) {
        DiskCache::Global().SetLimit(BytesOf("runtime.set_cache_limit", megabytes));
      },
      "The size of the cache of compiled functions in megabytes, for this process; 0 turns it off.",
      Arg("megabytes"));
  Def(
      "runtime.cache_info",
      []() -> Map<String, Any> {
        DiskCache& cache = DiskCache::Global();
        DiskCache::Usage used = cache.Used();
        return {{"folder", String(cache.folder())},
                {"files", static_cast<int64_t>(used.files)},
                {"megabytes", static_cast<double>(used.bytes) / (1 << 20)},
                {"limit", static_cast<double>(cache.limit()) / (1 << 20)}};
      },
      "Where the cache of compiled functions is, how many files it has, what they take and what "
      "they may take.");
}
}  // namespace
}  // namespace tvm::runtime
