// SPDX-License-Identifier: Apache-2.0
// ELF files that hold data, written for a linker and behind it.
#pragma once
#include <iosfwd>
#include <string>
#include <string_view>

#include "runtime/elf.h"

namespace tvm::elf {

/// Writes a relocatable object for the machine of the object `like` with one data symbol per entry.
/// Those of `reserved` only get room: a linker need not read and write their bytes.
void WriteDataObject(std::ostream& out, std::string_view like, const runtime::DataSymbols& symbols,
                     const runtime::DataSymbols& reserved = {});
/// Writes the bytes of a linked library with those of the reserved symbols.
void FillReserved(std::ostream& out, const std::string& library,
                  const runtime::DataSymbols& reserved);

}  // namespace tvm::elf
