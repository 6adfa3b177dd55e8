// SPDX-License-Identifier: Apache-2.0
// Files that hold files: static libraries and tar.
#include "driver/archive.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/elf.h"
#include "tvm/runtime/def.h"

namespace tvm {
namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) TVM_FFI_THROW(FileNotFoundError) << "cannot read " << path.string();
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::move(bytes).str();
}
void WriteFile(const fs::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) TVM_FFI_THROW(OSError) << "cannot write " << path.string();
}

// ---- static libraries ---------------------------------------------------------------------------
namespace {
constexpr std::string_view kMagic = "!<arch>\n", kEndOfHeader = "`\n";
constexpr size_t kHeaderSize = 60;

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}
/// Time, owner and mode are fixed.
std::string Member(const std::string& name, const std::string& data) {
  std::string text = Padded(name + "/", 16) + Padded("0", 12) + Padded("0", 6) + Padded("0", 6) +
                     Padded("644", 8) + Padded(std::to_string(data.size()), 10);
  text += kEndOfHeader;
  return text + data + (data.size() % 2 ? "\n" : "");
}
void PutBigEndian(std::string* out, uint64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}
}  // namespace

void WriteStaticLibrary(const Paths& objects, const fs::path& output) {
  std::vector<std::string> members;
  std::vector<std::pair<size_t, std::string>> symbols;  // member, name
  std::string names;
  for (size_t i = 0; i < objects.size(); ++i) {
    std::string data = ReadFile(objects[i]);
    for (std::string& symbol : runtime::GlobalSymbols(data)) {
      names += symbol + '\0';
      symbols.emplace_back(i, std::move(symbol));
    }
    members.push_back(Member(objects[i].filename().string(), data));
  }
  size_t index_size = 4 + 4 * symbols.size() + names.size();
  size_t at = kMagic.size() + kHeaderSize + index_size + index_size % 2;
  std::vector<uint64_t> offsets;
  for (const std::string& member : members) {
    offsets.push_back(at);
    at += member.size();
  }
  std::string index;
  PutBigEndian(&index, symbols.size());
  for (const auto& [member, name] : symbols) PutBigEndian(&index, offsets[member]);
  std::string all = std::string(kMagic) + Member("", index + names);
  for (const std::string& member : members) all += member;
  WriteFile(output, all);
}
Paths ExtractStaticLibrary(const fs::path& library, const fs::path& folder) {
  std::string data = ReadFile(library);
  if (data.compare(0, kMagic.size(), kMagic) != 0) {
    TVM_FFI_THROW(ValueError) << library.string() << ": expected a static library";
  }
  Paths objects;
  for (size_t at = kMagic.size(); at + kHeaderSize <= data.size();) {
    std::string name = data.substr(at, 16), digits = data.substr(at + 48, 10);
    name.erase(name.find_last_not_of(' ') + 1);
    digits.erase(digits.find_last_not_of(' ') + 1);
    bool is_number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
    size_t begin = at + kHeaderSize, size = is_number ? std::stoull(digits) : 0;
    if (!is_number || data.compare(begin - 2, 2, kEndOfHeader) != 0 || size > data.size() - begin) {
      TVM_FFI_THROW(ValueError) << library.string()
                                << ": the static library is truncated or damaged at byte " << at;
    }
    // The index of symbols and the table of long names are no objects.
    if (name != "/" && name != "//" && name != "/SYM64/") {
      objects.push_back(folder /
                        (library.stem().string() + "_" + std::to_string(objects.size()) + ".o"));
      WriteFile(objects.back(), std::string_view(data).substr(begin, size));
    }
    at = begin + size + size % 2;
  }
  return objects;
}

// ---- tar ----------------------------------------------------------------------------------------
void WriteTar(const Paths& files, const fs::path& output) {
  constexpr size_t kBlock = 512;
  std::string all;
  std::set<std::string> seen;
  for (const fs::path& path : files) {
    std::string name = path.filename().string(), data = ReadFile(path);
    if (!seen.insert(name).second) {
      TVM_FFI_THROW(ValueError) << "export: expected files of different names, got " << name
                                << " twice";
    }
    if (name.size() >= 100) {
      TVM_FFI_THROW(ValueError) << "export: expected names of less than 100 bytes, got " << name;
    }
    char header[kBlock] = {};
    std::memcpy(header, name.data(), name.size());
    auto octal = [&](size_t offset, size_t width, uint64_t value) {
      for (size_t i = width - 1; i-- > 0; value >>= 3)
        header[offset + i] = static_cast<char>('0' + (value & 7));
      header[offset + width - 1] = '\0';
    };
    octal(100, 8, 0644);
    octal(108, 8, 0);
    octal(116, 8, 0);
    octal(124, 12, data.size());
    octal(136, 12, 0);
    std::memset(header + 148, ' ', 8);  // the sum is made with blanks in its place
    header[156] = '0';
    std::memcpy(header + 257,
                "ustar\0"
                "00",
                8);
    unsigned sum = 0;
    for (char c : header) sum += static_cast<unsigned char>(c);
    octal(148, 7, sum);
    all.append(header, kBlock);
    all += data;
    all.resize((all.size() + kBlock - 1) / kBlock * kBlock);
  }
  all.resize(all.size() + 2 * kBlock);
  WriteFile(output, all);
}

}  // namespace tvm
