// SPDX-License-Identifier: Apache-2.0
// Reading ELF: what a file is made for, and its symbols.
#include "runtime/elf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/elf_tables.h"
#include "tvm/runtime/def.h"

namespace tvm::runtime {
namespace {
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
