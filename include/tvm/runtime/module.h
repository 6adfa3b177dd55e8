// SPDX-License-Identifier: Apache-2.0
// Modules: finding their functions, loading them, and packing them for export.
#pragma once
#include <tvm/ffi/extra/module.h>

#include <map>
#include <string>
#include <vector>

#include "tvm/runtime/apart_data.h"
#include "tvm/runtime/def.h"

namespace tvm::runtime {
using ffi::Module;

/// A module that can list its functions answers GetFunction of this name with () -> Array<String>.
constexpr const char* kFunctionNames = "__tvm_function_names";
/// A module whose exported form needs something of the machine it is loaded on answers GetFunction
/// of this name with () -> Map<String, String>: "target" (shown in errors) and "cpu_features"
/// (LLVM's names, comma separated). Export stores it in the library under a data symbol of the same
/// name.
constexpr const char* kLibraryInfo = "__tvm_library_info";
/// Of what export stores in libraries; a library with a higher one is refused.
constexpr int kLibraryFormat = 1;

/// Sorted; empty for a module that cannot list them.
Array<String> FunctionNames(const Module& mod);
/// AttributeError with the names there are and the nearest one when there is no such function.
Function GetFunction(const Module& mod, const String& name, bool query_imports = false);
/// `main`, else the only function; AttributeError when there are several.
Function EntryFunction(const Module& mod);

/// Loads a shared library. The file is checked before the system's loader sees it:
/// FileNotFoundError, and ValueError for a truncated or foreign file, another architecture, missing
/// CPU features, a newer format. A file that was exported again under its old name is loaded anew.
Module LoadModule(const std::string& path);
/// The same from the contents of such a file.
Module LoadModuleFromBytes(std::string_view bytes);

/// The modules reachable from `mod` through imports that write code, each once, `mod` first.
Array<Module> CompiledModules(const Module& mod);
/// The other reachable modules and the import tree, in the form tvm-ffi expects behind
/// `__tvm_ffi__library_bin`; empty when there is nothing but compiled code. ValueError when a
/// module can be neither compiled nor saved. Modules with much data add it to `apart`, if given.
std::string PackImports(const Module& mod, ApartTensors* apart = nullptr);
/// What export adds to the compiled code: data symbols.
struct ExportSymbols {
  explicit ExportSymbols(const Module& mod);
  std::map<std::string, std::string> texts;
  ApartTensors tensors;
  /// Their bytes, in pieces that each begin at a multiple of kApartAlignment.
  std::map<std::string, std::vector<std::string_view>> Pieces() const;
};

}  // namespace tvm::runtime
