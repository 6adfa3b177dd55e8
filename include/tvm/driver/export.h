// SPDX-License-Identifier: Apache-2.0
// From compiled code to files: libraries, objects, archives, C.
#pragma once
#include <tvm/ffi/extra/module.h>

#include <map>
#include <string>
#include <vector>

namespace tvm {

struct ExportOptions {
  std::vector<std::string> addons;  ///< Files that are linked or packed as well.
  std::string workspace;            ///< A folder for intermediate files, which stay; "": none.
  bool as_source = false;           ///< Modules that can are written as C, not as objects.
  std::vector<std::string> link_options;
  /// A file for the large constants, in the format safetensors; "": they are part of the library.
  /// It has to lie in the folder of the library, from where it is mapped when that is loaded.
  std::string params;
  std::map<std::string, std::string> texts;  ///< Further data of the library, by symbol.
  /// What links instead of the built-in linker: (output, files, whether the output is an object).
  ffi::Optional<ffi::Function> link;
  /// Whether `link` leaves objects to the built-in linker.
  bool links_objects_as_built_in = false;
};

/// FileNotFoundError where the folder that a library shall be written to does not exist.
void CheckFolderOf(const std::string& path);

/// ValueError, with the suffixes that ExportLibrary knows, for a path with another one: the
/// function itself takes that for a shared library.
void CheckSuffixOf(const std::string& path);

/// Writes a compiled module with everything it imports; the suffix says as what: .o or .obj, .a
/// (both with a C header beside), .c (with a header), .tar, else a shared library that
/// libtvm_runtime loads. The file appears whole or not at all. Code that
/// was built as a system library registers itself in the program it is linked into, as .o or .a. No
/// system compiler is needed where libtvm_llvm is installed. FileNotFoundError where the folder
/// does not exist, ValueError for a module that cannot be written so.
void ExportLibrary(const ffi::Module& mod, const std::string& path,
                   const ExportOptions& options = {});

}  // namespace tvm
