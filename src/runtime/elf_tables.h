// SPDX-License-Identifier: Apache-2.0
// The tables of ELF files, of 32 and of 64 bits. Every offset is checked against the file.
#pragma once
#include <elf.h>

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tvm::runtime {

struct Elf64 {
  using Ehdr = Elf64_Ehdr;
  using Phdr = Elf64_Phdr;
  using Shdr = Elf64_Shdr;
  using Sym = Elf64_Sym;
};
struct Elf32 {
  using Ehdr = Elf32_Ehdr;
  using Phdr = Elf32_Phdr;
  using Shdr = Elf32_Shdr;
  using Sym = Elf32_Sym;
};
using Native = std::conditional_t<sizeof(void*) == 8, Elf64, Elf32>;

/// `count` entries of T at `offset`, or null when they do not lie inside the file.
template <class T>
const T* At(std::string_view file, uint64_t offset, uint64_t count = 1) {
  bool fits = offset <= file.size() && count <= (file.size() - offset) / sizeof(T) &&
              offset % alignof(T) == 0;
  return fits ? reinterpret_cast<const T*>(file.data() + offset) : nullptr;
}
template <class E>
std::pair<const typename E::Shdr*, int> Sections(std::string_view file) {
  auto* header = At<typename E::Ehdr>(file, 0);
  if (!header || header->e_shentsize != sizeof(typename E::Shdr)) return {nullptr, 0};
  auto* table = At<typename E::Shdr>(file, header->e_shoff, header->e_shnum);
  return {table, table ? header->e_shnum : 0};
}
/// Calls visit(name, symbol) for every symbol of the tables of one type (SHT_DYNSYM, SHT_SYMTAB).
template <class E, class F>
void VisitSymbols(std::string_view file, unsigned table_type, F&& visit) {
  auto [sections, count] = Sections<E>(file);
  for (int i = 0; i < count; ++i) {
    const auto& s = sections[i];
    if (s.sh_type != table_type || s.sh_link >= static_cast<unsigned>(count)) continue;
    uint64_t n = s.sh_size / sizeof(typename E::Sym);
    auto* symbols = At<typename E::Sym>(file, s.sh_offset, n);
    const auto& strings = sections[s.sh_link];
    auto* text = At<char>(file, strings.sh_offset, strings.sh_size);
    for (uint64_t j = 0; symbols && text && j < n; ++j) {
      if (symbols[j].st_name >= strings.sh_size) continue;
      const char* name = text + symbols[j].st_name;
      visit(std::string_view(name, strnlen(name, strings.sh_size - symbols[j].st_name)),
            symbols[j]);
    }
  }
}
inline bool IsElf(std::string_view file) {
  return file.size() >= EI_NIDENT && std::memcmp(file.data(), ELFMAG, SELFMAG) == 0;
}
/// What else a file may be.
inline std::string Describe(std::string_view file) {
  auto begins = [&](std::string_view s) { return file.substr(0, s.size()) == s; };
  if (file.empty()) return "an empty file";
  if (begins("!<arch>\n")) return "a static library";
  if (begins("MZ")) return "a Windows library";
  if (begins("\xcf\xfa\xed\xfe")) return "a macOS library";
  if (begins("#!")) return "a script";
  if (begins(std::string_view("\0asm", 4))) return "a WebAssembly module";
  return "another kind of file";
}

}  // namespace tvm::runtime
