// SPDX-License-Identifier: Apache-2.0
// Reading and writing ELF without a linker or compiler at hand. Every offset is checked against the
// file.
#include "runtime/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tvm/runtime/def.h"

namespace tvm::runtime {
namespace {
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

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#elif defined(__arm__)
constexpr int kMachine = EM_ARM;
#elif defined(__i386__)
constexpr int kMachine = EM_386;
#elif defined(__riscv)
constexpr int kMachine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr int kMachine = EM_PPC64;
#else
constexpr int kMachine = EM_NONE;  // unknown: the loader decides
#endif

std::string MachineName(int machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_ARM:
      return "arm";
    case EM_386:
      return "i386";
    case EM_RISCV:
      return "riscv";
    case EM_PPC64:
      return "ppc64";
    case EM_S390:
      return "s390";
    default:
      return "ELF machine " + std::to_string(machine);
  }
}

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
bool IsElf(std::string_view file) {
  return file.size() >= EI_NIDENT && std::memcmp(file.data(), ELFMAG, SELFMAG) == 0;
}
std::string Describe(std::string_view file) {
  auto begins = [&](std::string_view s) { return file.substr(0, s.size()) == s; };
  if (file.empty()) return "an empty file";
  if (begins("!<arch>\n")) return "a static library";
  if (begins("MZ")) return "a Windows library";
  if (begins("\xcf\xfa\xed\xfe")) return "a macOS library";
  if (begins("#!")) return "a script";
  if (begins(std::string_view("\0asm", 4))) return "a WebAssembly module";
  return "another kind of file";
}
template <class... A>
[[noreturn]] void Fail(const std::string& name, const A&... text) {
  std::string message = name + ": ";
  ((message += text), ...);
  TVM_FFI_THROW(ValueError) << message;
  TVM_FFI_UNREACHABLE();
}
}  // namespace

MappedFile::MappedFile(const std::string& path, bool writable) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    int error = fd < 0 ? errno : EISDIR;
    if (fd >= 0) close(fd);
    if (error == ENOENT) TVM_FFI_THROW(FileNotFoundError) << "no such file: " << path;
    TVM_FFI_THROW(OSError) << "cannot read " << path << ": " << std::strerror(error);
  }
  size_ = static_cast<size_t>(info.st_size);
  int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = size_ ? mmap(nullptr, size_, access, MAP_PRIVATE, fd, 0) : nullptr;
  int error = errno;
  close(fd);
  if (data == MAP_FAILED) {
    TVM_FFI_THROW(OSError) << "cannot read " << path << ": " << std::strerror(error);
  }
  data_ = static_cast<const char*>(data);
}
MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<char*>(data_), size_);
}

void CheckSharedLibrary(const std::string& name, std::string_view file) {
  if (!IsElf(file)) Fail(name, "expected a shared library, got ", Describe(file));
  auto* header = At<Native::Ehdr>(file, 0);
  if (!header) Fail(name, "the file is truncated: ", std::to_string(file.size()), " bytes");
  const int kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  const int kData = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  bool foreign = header->e_ident[EI_DATA] != kData;
  if (foreign || (kMachine != EM_NONE && header->e_machine != kMachine)) {
    Fail(name, "made for ", foreign ? "the other byte order" : MachineName(header->e_machine),
         ", this process runs on ", MachineName(kMachine));
  }
  if (header->e_ident[EI_CLASS] != kClass) {
    Fail(name, "expected a ", kClass == ELFCLASS64 ? "64" : "32", "-bit library");
  }
  if (header->e_type != ET_DYN) {
    Fail(name, "expected a shared library, got ",
         header->e_type == ET_REL ? "an object file" : "another kind of ELF file");
  }
  auto* programs = header->e_phentsize == sizeof(Native::Phdr)
                       ? At<Native::Phdr>(file, header->e_phoff, header->e_phnum)
                       : nullptr;
  uint64_t end = header->e_shoff + uint64_t{header->e_shnum} * header->e_shentsize;
  for (int i = 0; programs && i < header->e_phnum; ++i) {
    end = std::max<uint64_t>(end, programs[i].p_offset + programs[i].p_filesz);
  }
  // The system's loader maps what the headers promise and faults on the missing pages.
  if (!programs || end > file.size()) {
    Fail(name, "the file is truncated: expected at least ", std::to_string(end), " bytes, got ",
         std::to_string(file.size()));
  }
}

std::vector<std::string> DynamicSymbols(std::string_view file, std::string_view prefix) {
  std::vector<std::string> names;
  VisitSymbols<Native>(file, SHT_DYNSYM, [&](std::string_view name, const Native::Sym& symbol) {
    if (symbol.st_shndx != SHN_UNDEF && name.substr(0, prefix.size()) == prefix) {
      names.emplace_back(name.substr(prefix.size()));
    }
  });
  std::sort(names.begin(), names.end());
  return names;
}

std::string_view SymbolData(std::string_view file, std::string_view name) {
  std::string_view data;
  auto* header = At<Native::Ehdr>(file, 0);
  auto* programs = header ? At<Native::Phdr>(file, header->e_phoff, header->e_phnum) : nullptr;
  VisitSymbols<Native>(file, SHT_DYNSYM, [&](std::string_view found, const Native::Sym& symbol) {
    if (found != name || symbol.st_shndx == SHN_UNDEF) return;
    for (int i = 0; programs && i < header->e_phnum; ++i) {
      const auto& p = programs[i];
      if (p.p_type != PT_LOAD || symbol.st_value < p.p_vaddr) continue;
      uint64_t inside = symbol.st_value - p.p_vaddr;
      if (inside >= p.p_filesz || symbol.st_size > p.p_filesz - inside) continue;
      if (auto* text = At<char>(file, p.p_offset + inside, symbol.st_size)) {
        data = {text, symbol.st_size};
      }
    }
  });
  return data;
}

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

/// Sections: null, data, .symtab, .strtab, .shstrtab, .note.GNU-stack. The data may be written to,
/// as any tensor; pages that nobody writes to are shared with other processes.
template <class E>
void WriteDataObjectLike(std::ostream& out, const typename E::Ehdr& like,
                         const DataSymbols& symbols) {
  constexpr char kNames[] = "\0.data\0.ldata\0.symtab\0.strtab\0.shstrtab\0.note.GNU-stack";
  std::string strings(1, '\0');
  std::vector<typename E::Sym> table(1);
  std::memset(table.data(), 0, sizeof(table[0]));
  std::vector<std::pair<uint64_t, std::string_view>> pieces;
  uint64_t size = 0;
  for (const auto& [name, parts] : symbols) {
    typename E::Sym symbol{};
    symbol.st_name = static_cast<uint32_t>(strings.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    symbol.st_shndx = 1;
    symbol.st_value = size = RoundUp(size, kDataAlign);
    for (std::string_view part : parts) {
      size = RoundUp(size, kDataAlign);
      pieces.emplace_back(size, part);
      size += part.size();
    }
    symbol.st_size = size - symbol.st_value;
    table.push_back(symbol);
    strings += name + '\0';
  }
  typename E::Ehdr header = like;
  header.e_type = ET_REL;
  header.e_entry = header.e_phoff = 0;
  header.e_phnum = header.e_phentsize = 0;
  header.e_shentsize = sizeof(typename E::Shdr);
  header.e_shnum = 6;
  header.e_shstrndx = 4;

  typename E::Shdr sections[6];
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
    end = s.sh_offset + bytes;
  };
  // Code reaches 2 GB to either side: what is large goes where it is not between code and its data.
  constexpr uint64_t kLargeData = uint64_t{1} << 26, kX86Large = 0x10000000;
  bool is_large = size >= kLargeData && like.e_machine == EM_X86_64;
  place(1, is_large ? ".ldata" : ".data", SHT_PROGBITS, size, kDataAlign);
  sections[1].sh_flags = SHF_ALLOC | SHF_WRITE | (is_large ? kX86Large : 0);
  place(2, ".symtab", SHT_SYMTAB, table.size() * sizeof(table[0]), 8);
  sections[2].sh_link = 3;
  sections[2].sh_info = 1;  // the first global one
  sections[2].sh_entsize = sizeof(typename E::Sym);
  place(3, ".strtab", SHT_STRTAB, strings.size(), 1);
  place(4, ".shstrtab", SHT_STRTAB, names.size(), 1);
  place(5, ".note.GNU-stack", SHT_PROGBITS, 0, 1);
  header.e_shoff = RoundUp(end, 8);

  PlacedWriter writer(out);
  writer.At(0, &header, 1);
  for (const auto& [at, part] : pieces) writer.At(sections[1].sh_offset + at, part);
  writer.At(sections[2].sh_offset, table.data(), table.size());
  writer.At(sections[3].sh_offset, strings);
  writer.At(sections[4].sh_offset, names);
  writer.At(header.e_shoff, sections, 6);
}
}  // namespace

void WriteDataObject(std::ostream& out, std::string_view like, const DataSymbols& symbols) {
  auto* wide = At<Elf64_Ehdr>(like, 0);
  if (!IsElf(like) || !wide || like[EI_DATA] != ELFDATA2LSB) {
    TVM_FFI_THROW(ValueError) << "export_library: expected little-endian ELF objects, got "
                              << (IsElf(like) ? "other ELF objects" : Describe(like));
  }
  if (like[EI_CLASS] == ELFCLASS64) return WriteDataObjectLike<Elf64>(out, *wide, symbols);
  WriteDataObjectLike<Elf32>(out, *At<Elf32_Ehdr>(like, 0), symbols);
}

std::vector<std::string> GlobalSymbols(std::string_view object) {
  std::vector<std::string> names;
  auto add = [&](std::string_view name, const auto& symbol) {
    int bind = ELF64_ST_BIND(symbol.st_info);
    if (symbol.st_shndx != SHN_UNDEF && (bind == STB_GLOBAL || bind == STB_WEAK)) {
      names.emplace_back(name);
    }
  };
  if (IsElf(object) && object[EI_CLASS] == ELFCLASS64) VisitSymbols<Elf64>(object, SHT_SYMTAB, add);
  if (IsElf(object) && object[EI_CLASS] == ELFCLASS32) VisitSymbols<Elf32>(object, SHT_SYMTAB, add);
  return names;
}

}  // namespace tvm::runtime
