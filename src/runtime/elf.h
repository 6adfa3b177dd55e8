// SPDX-License-Identifier: Apache-2.0
// ELF files: checked before loading and searched for symbols.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tvm::runtime {

/// A file, mapped read-only, or `writable`: then what is written stays in this process.
/// FileNotFoundError or OSError when it cannot be read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path, bool writable = false);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

/// ValueError, beginning with `name`, unless the bytes are a whole shared library for this process.
void CheckSharedLibrary(const std::string& name, std::string_view file);
/// The defined dynamic symbols that begin with `prefix`, without it, sorted.
std::vector<std::string> DynamicSymbols(std::string_view file, std::string_view prefix);
/// The bytes of a defined dynamic symbol, empty when there is none.
std::string_view SymbolData(std::string_view file, std::string_view name);

/// The bytes of data symbols, in pieces that each begin at a multiple of 64.
using DataSymbols = std::map<std::string, std::vector<std::string_view>>;
/// Names of the global symbols an object defines (for the index of an archive).
std::vector<std::string> GlobalSymbols(std::string_view object);

}  // namespace tvm::runtime
