// SPDX-License-Identifier: Apache-2.0
// ZIP: a directory at the end of the file, found by its signature, names each member's place. Files
// beyond 4 GiB have a second, 64-bit directory end and sizes in the entries' extra fields.
#include "zip_file.h"

#include <array>
#include <cstring>

#include "runtime/utf8.h"
#include "tvm/runtime/def.h"

namespace tvm::frontend::torch {
namespace {

[[noreturn]] void Damaged(const char* what) {
  TVM_FFI_THROW(ValueError) << "archive: expected a ZIP file, got one with " << what;
  TVM_FFI_UNREACHABLE();
}
/// A part of the file; nothing outside of it is read.
std::string_view Part(std::string_view file, uint64_t begin, uint64_t size, const char* what) {
  if (begin > file.size() || size > file.size() - begin) Damaged(what);
  return file.substr(begin, size);
}
template <class T>
T Number(std::string_view bytes, size_t at) {
  T value;  // little-endian, as all hosts we build for
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

constexpr uint32_t kEntry = 0x02014b50, kLocal = 0x04034b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr size_t kEntrySize = 46, kLocalSize = 30, kEndSize = 22, kEnd64Size = 56,
                 kLocatorSize = 20, kMaxComment = 65535;

size_t FindEnd(std::string_view file) {
  if (file.size() < kEndSize) Damaged("less than 22 bytes");
  size_t last = file.size() - kEndSize;
  for (size_t back = 0; back <= std::min(last, kMaxComment); ++back) {
    if (Number<uint32_t>(file, last - back) == kEnd) return last - back;
  }
  Damaged("no directory");
}

struct Directory {
  uint64_t offset, size, count;
};
Directory FindDirectory(std::string_view file) {
  size_t end = FindEnd(file);
  Directory directory{Number<uint32_t>(file, end + 16), Number<uint32_t>(file, end + 12),
                      Number<uint16_t>(file, end + 10)};
  bool is_large =
      directory.offset == 0xffffffff || directory.size == 0xffffffff || directory.count == 0xffff;
  if (!is_large || end < kLocatorSize) return directory;
  std::string_view locator = file.substr(end - kLocatorSize, kLocatorSize);
  if (Number<uint32_t>(locator, 0) != kLocator64) return directory;
  std::string_view large =
      Part(file, Number<uint64_t>(locator, 8), kEnd64Size, "a directory end outside of it");
  if (Number<uint32_t>(large, 0) != kEnd64) Damaged("no 64-bit directory end");
  return {Number<uint64_t>(large, 48), Number<uint64_t>(large, 40), Number<uint64_t>(large, 32)};
}

/// Takes the 64-bit values that stand in the extra field for those that are all ones.
void ReadLarge(std::string_view extra, uint64_t* size, uint64_t* stored, uint64_t* offset) {
  while (extra.size() >= 4) {
    uint16_t id = Number<uint16_t>(extra, 0), length = Number<uint16_t>(extra, 2);
    std::string_view field = Part(extra, 4, length, "an extra field that is cut off");
    if (id == 1) {
      for (uint64_t* value : {size, stored, offset}) {
        if (*value != 0xffffffff) continue;
        if (field.size() < 8) Damaged("a 64-bit size that is cut off");
        *value = Number<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
      return;
    }
    extra.remove_prefix(4 + length);
  }
}

/// For each byte, and how many bytes follow it within eight: its part of the checksum.
constexpr auto kChecksums = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xedb88320 : 0);
    tables[0][byte] = value;
  }
  for (size_t i = 1; i < 8; ++i) {
    for (size_t byte = 0; byte < 256; ++byte) {
      uint32_t before = tables[i - 1][byte];
      tables[i][byte] = before >> 8 ^ tables[0][before & 255];
    }
  }
  return tables;
}();
/// ZIP's CRC-32, eight bytes at a time.
uint32_t Checksum(std::string_view bytes) {
  uint32_t value = 0xffffffff;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t eight = Number<uint64_t>(bytes, 0) ^ value;
    value = 0;
    for (size_t i = 0; i < 8; ++i) value ^= kChecksums[7 - i][eight >> 8 * i & 255];
  }
  for (char c : bytes) value = value >> 8 ^ kChecksums[0][(value ^ c) & 255];
  return ~value;
}

}  // namespace

std::string_view Content(const std::string& name, const ZipMember& member) {
  auto shown = [&] { return runtime::EncodeUtf8(runtime::DecodeUtf8(name)); };
  if (member.method != 0) {
    TVM_FFI_THROW(ValueError) << "archive: expected members without compression, as "
                                 "torch.export.save writes them, got '"
                              << shown() << "' with method " << member.method;
  }
  if (uint32_t found = Checksum(member.bytes); found != member.checksum) {
    TVM_FFI_THROW(ValueError) << "archive: expected '" << shown() << "' to have the checksum "
                              << member.checksum << ", got " << found << ": the file is damaged";
  }
  return member.bytes;
}

std::map<std::string, ZipMember> ReadZip(std::string_view file) {
  Directory directory = FindDirectory(file);
  std::string_view entries =
      Part(file, directory.offset, directory.size, "a directory outside of it");
  std::map<std::string, ZipMember> members;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (entries.size() < kEntrySize || Number<uint32_t>(entries, 0) != kEntry) {
      Damaged("a directory that is cut off");
    }
    uint16_t method = Number<uint16_t>(entries, 10), name_size = Number<uint16_t>(entries, 28),
             extra_size = Number<uint16_t>(entries, 30), comment = Number<uint16_t>(entries, 32);
    uint32_t checksum = Number<uint32_t>(entries, 16);
    uint64_t stored = Number<uint32_t>(entries, 20), size = Number<uint32_t>(entries, 24),
             offset = Number<uint32_t>(entries, 42);
    std::string name(Part(entries, kEntrySize, name_size, "a name that is cut off"));
    std::string_view extra =
        Part(entries, kEntrySize + name_size, extra_size, "an extra field that is cut off");
    ReadLarge(extra, &size, &stored, &offset);
    Part(entries, 0, kEntrySize + name_size + extra_size + comment, "an entry that is cut off");
    entries.remove_prefix(kEntrySize + name_size + extra_size + comment);
    if (method == 0 && stored != size) Damaged("a member of two sizes");
    std::string_view local = Part(file, offset, kLocalSize, "a member outside of it");
    if (Number<uint32_t>(local, 0) != kLocal) Damaged("a member without a header");
    uint64_t skipped = kLocalSize + Number<uint16_t>(local, 26) + Number<uint16_t>(local, 28);
    std::string_view bytes = Part(file, offset + skipped, stored, "a member that is cut off");
    members[name] = {bytes, checksum, method};
  }
  return members;
}

}  // namespace tvm::frontend::torch
