// SPDX-License-Identifier: Apache-2.0
// Writing ELF without a linker or compiler at hand: objects that hold data, and the data of linked
// libraries.
#include "driver/elf_write.h"

#include <algorithm>
#include <map>
#include <ostream>

#include "runtime/elf_tables.h"
#include "tvm/runtime/def.h"

namespace tvm::elf {
using namespace runtime;
namespace {
constexpr uint64_t kDataAlign = 64;
uint64_t RoundUp(uint64_t n, uint64_t align) { return (n + align - 1) / align * align; }

/// Writes pieces at given places of a file.
class PlacedWriter {
 public:
  explicit PlacedWriter(std::ostream& out) : out_(out) {}
  void At(uint64_t place, std::string_view bytes) {
    static constexpr char kZeros[kDataAlign] = {};
    for (; at_ < place; at_ += std::min(place - at_, kDataAlign)) {
      out_.write(kZeros, static_cast<std::streamsize>(std::min(place - at_, kDataAlign)));
    }
    out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    at_ += bytes.size();
  }
  template <class T>
  void At(uint64_t place, const T* values, size_t n) {
    At(place, {reinterpret_cast<const char*>(values), n * sizeof(T)});
  }

 private:
  std::ostream& out_;
  uint64_t at_ = 0;
};

/// Calls visit(place, piece) for the pieces of a symbol, whose size is the result.
template <class F>
uint64_t PlacePieces(const std::vector<std::string_view>& pieces, F&& visit) {
  uint64_t end = 0;
  for (std::string_view piece : pieces) {
    uint64_t begin = RoundUp(end, kDataAlign);
    visit(begin, piece);
    end = begin + piece.size();
  }
  return end;
}

/// Sections: null, data, room, .symtab, .strtab, .shstrtab, .note.GNU-stack. The data may be
/// written to, as any tensor; pages that nobody writes to are shared with other processes.
template <class E>
void WriteDataObjectLike(std::ostream& out, const typename E::Ehdr& like,
                         const DataSymbols& symbols, const DataSymbols& reserved) {
  enum { kData = 1, kRoom, kSymbols, kStrings, kSectionNames, kStack, kSections };
  constexpr char kNames[] =
      "\0.data\0.ldata\0.bss\0.lbss\0.symtab\0.strtab\0.shstrtab\0.note.GNU-stack";
  std::string strings(1, '\0');
  std::vector<typename E::Sym> table(1);
  std::memset(table.data(), 0, sizeof(table[0]));
  std::vector<std::pair<uint64_t, std::string_view>> pieces;
  auto define = [&](int section, const DataSymbols& all, auto&& visit) {
    uint64_t size = 0;
    for (const auto& [name, parts] : all) {
      typename E::Sym symbol{};
      symbol.st_name = static_cast<uint32_t>(strings.size());
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
      symbol.st_shndx = section;
      uint64_t begin = RoundUp(size, kDataAlign);
      symbol.st_value = begin;
      symbol.st_size = PlacePieces(
          parts, [&](uint64_t at, std::string_view piece) { visit(begin + at, piece); });
      size = begin + symbol.st_size;
      table.push_back(symbol);
      strings += name + '\0';
    }
    return size;
  };
  uint64_t size = define(
      kData, symbols, [&](uint64_t at, std::string_view piece) { pieces.emplace_back(at, piece); });
  uint64_t room = define(kRoom, reserved, [](uint64_t, std::string_view) {});
  typename E::Ehdr header = like;
  header.e_type = ET_REL;
  header.e_entry = header.e_phoff = 0;
  header.e_phnum = header.e_phentsize = 0;
  header.e_shentsize = sizeof(typename E::Shdr);
  header.e_shnum = kSections;
  header.e_shstrndx = kSectionNames;

  typename E::Shdr sections[kSections];
  std::memset(sections, 0, sizeof(sections));
  std::string_view names(kNames, sizeof(kNames));
  uint64_t end = sizeof(header);
  auto place = [&](int i, const char* name, unsigned type, uint64_t bytes, uint64_t align) {
    auto& s = sections[i];
    s.sh_name = static_cast<unsigned>(names.find(name));
    s.sh_type = type;
    s.sh_offset = RoundUp(end, align);
    s.sh_size = bytes;
    s.sh_addralign = align;
    if (type != SHT_NOBITS) end = s.sh_offset + bytes;
  };
  // Code reaches 2 GB to either side: what is large goes where it is not between code and its data.
  constexpr uint64_t kLargeData = uint64_t{1} << 26, kX86Large = 0x10000000;
  auto place_data = [&](int i, const char* name, const char* large, unsigned type, uint64_t bytes) {
    bool is_large = bytes >= kLargeData && like.e_machine == EM_X86_64;
    place(i, is_large ? large : name, type, bytes, kDataAlign);
    sections[i].sh_flags = SHF_ALLOC | SHF_WRITE | (is_large ? kX86Large : 0);
  };
  place_data(kData, ".data", ".ldata", SHT_PROGBITS, size);
  place_data(kRoom, ".bss", ".lbss", SHT_NOBITS, room);
  place(kSymbols, ".symtab", SHT_SYMTAB, table.size() * sizeof(table[0]), 8);
  sections[kSymbols].sh_link = kStrings;
  sections[kSymbols].sh_info = 1;  // the first global one
  sections[kSymbols].sh_entsize = sizeof(typename E::Sym);
  place(kStrings, ".strtab", SHT_STRTAB, strings.size(), 1);
  place(kSectionNames, ".shstrtab", SHT_STRTAB, names.size(), 1);
  place(kStack, ".note.GNU-stack", SHT_PROGBITS, 0, 1);
  header.e_shoff = RoundUp(end, 8);

  PlacedWriter writer(out);
  writer.At(0, &header, 1);
  for (const auto& [at, piece] : pieces) writer.At(sections[kData].sh_offset + at, piece);
  writer.At(sections[kSymbols].sh_offset, table.data(), table.size());
  writer.At(sections[kStrings].sh_offset, strings);
  writer.At(sections[kSectionNames].sh_offset, names);
  writer.At(header.e_shoff, sections, kSections);
}

/// The segment with the reserved symbols is the last one in the file, and what it does not have
/// there is zero: it gets all of its memory as bytes of the file, and what follows moves back.
template <class E>
void FillReservedIn(std::ostream& out, std::string file, const DataSymbols& reserved) {
  auto check = [](bool holds) {
    if (!holds) TVM_FFI_THROW(InternalError) << "export_library: the linker placed data elsewhere";
  };
  std::map<uint64_t, const std::vector<std::string_view>*> places;  // by address
  VisitSymbols<E>(file, SHT_DYNSYM, [&](std::string_view name, const typename E::Sym& symbol) {
    auto it = reserved.find(std::string(name));
    if (it != reserved.end() && symbol.st_shndx != SHN_UNDEF) places[symbol.st_value] = &it->second;
  });
  check(places.size() == reserved.size());
  auto* header = const_cast<typename E::Ehdr*>(At<typename E::Ehdr>(file, 0));
  auto* programs =
      const_cast<typename E::Phdr*>(At<typename E::Phdr>(file, header->e_phoff, header->e_phnum));
  check(programs);
  auto* last = std::max_element(programs, programs + header->e_phnum, [](auto& a, auto& b) {
    return std::pair(a.p_type == PT_LOAD, a.p_vaddr) < std::pair(b.p_type == PT_LOAD, b.p_vaddr);
  });
  typename E::Phdr segment = *last;
  uint64_t end = segment.p_offset + segment.p_filesz;
  uint64_t added = RoundUp(segment.p_memsz - segment.p_filesz, kDataAlign);
  check(places.begin()->first >= segment.p_vaddr + segment.p_filesz);
  for (int i = 0; i < header->e_phnum; ++i)
    check(programs[i].p_type != PT_LOAD || programs[i].p_offset + programs[i].p_filesz <= end);
  last->p_filesz = segment.p_memsz;
  auto [sections, count] = Sections<E>(file);
  check(sections && header->e_shoff >= end);
  for (int i = 0; i < count; ++i) {
    auto& section = const_cast<typename E::Shdr&>(sections[i]);
    if (section.sh_type == SHT_NOBITS && section.sh_addr >= segment.p_vaddr) {
      section.sh_type = SHT_PROGBITS;
      section.sh_offset = segment.p_offset + (section.sh_addr - segment.p_vaddr);
    } else if (section.sh_offset >= end) {
      section.sh_offset += added;
    }
  }
  header->e_shoff += added;

  std::string_view all(file);
  PlacedWriter writer(out);
  writer.At(0, all.substr(0, end));
  for (const auto& [address, pieces] : places) {
    uint64_t begin = segment.p_offset + (address - segment.p_vaddr);
    PlacePieces(*pieces,
                [&](uint64_t at, std::string_view piece) { writer.At(begin + at, piece); });
  }
  writer.At(end + added, all.substr(end));
}
}  // namespace

void WriteDataObject(std::ostream& out, std::string_view like, const DataSymbols& symbols,
                     const DataSymbols& reserved) {
  auto* wide = At<Elf64_Ehdr>(like, 0);
  if (!IsElf(like) || !wide || like[EI_DATA] != ELFDATA2LSB) {
    TVM_FFI_THROW(ValueError) << "export_library: expected little-endian ELF objects, got "
                              << (IsElf(like) ? "other ELF objects" : Describe(like));
  }
  if (like[EI_CLASS] == ELFCLASS64)
    return WriteDataObjectLike<Elf64>(out, *wide, symbols, reserved);
  WriteDataObjectLike<Elf32>(out, *At<Elf32_Ehdr>(like, 0), symbols, reserved);
}
void FillReserved(std::ostream& out, const std::string& library, const DataSymbols& reserved) {
  if (library[EI_CLASS] == ELFCLASS64) return FillReservedIn<Elf64>(out, library, reserved);
  FillReservedIn<Elf32>(out, library, reserved);
}

}  // namespace tvm::elf
