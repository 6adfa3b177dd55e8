// SPDX-License-Identifier: Apache-2.0
// Exporting from C++: what Python's export_library does for a shared library without options.
#include "tvm/driver/export.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime/temporary_folder.h"
#include "tvm/ir/backend.h"
#include "tvm/runtime/module.h"

namespace tvm {
namespace {
namespace fs = std::filesystem;

Array<String> WriteObjects(const ffi::Module& mod, const fs::path& folder) {
  Array<String> objects;
  for (const ffi::Module& part : runtime::CompiledModules(mod)) {
    Array<String> formats = part->GetWriteFormats();
    if (std::find(formats.begin(), formats.end(), "o") == formats.end()) {
      TVM_FFI_THROW(ValueError) << "export: expected a module that writes object code, got kind "
                                << part->kind();
    }
    std::string file = folder / ("lib" + std::to_string(objects.size()) + ".o");
    part->WriteToFile(file, "o");
    objects.push_back(file);
  }
  if (objects.empty()) {
    TVM_FFI_THROW(ValueError) << "export: a module of kind " << mod->kind() << " holds no code";
  }
  return objects;
}
}  // namespace

void ExportLibrary(const ffi::Module& mod, const std::string& path) {
  fs::path output(path);
  if (output.has_parent_path() && !fs::is_directory(output.parent_path())) {
    TVM_FFI_THROW(FileNotFoundError) << "export: the folder of " << output << " does not exist";
  }
  runtime::TemporaryFolder folder;
  Array<String> objects = WriteObjects(mod, folder.path);
  if (auto symbols = runtime::ExportSymbols(mod); !symbols.empty()) {
    ffi::Bytes data = runtime::WriteDataObject(objects[0], symbols);
    std::string file = folder.path / "data.o";
    std::ofstream(file, std::ios::binary)
        .write(data.data(), static_cast<std::streamsize>(data.size()));
    objects.push_back(file);
  }
  // Beside its place, so that renaming is atomic and a process that uses the old file keeps it.
  fs::path partial = output;
  partial.replace_filename("." + output.stem().string() + "." + std::to_string(getpid()) + ".so");
  const std::string& link = Backend::Of(DefaultHost()).link;
  Function::GetGlobalRequired(link)(objects, String(partial.string()), Array<String>());
  fs::rename(partial, output);
}

TVM_REGISTER() {
  Def(
      "driver.ExportLibrary",
      [](ffi::Module mod, String path) { ExportLibrary(mod, std::string(path)); },
      "Writes a compiled module as a shared library.", Arg("mod"), Arg("path"));
}
}  // namespace tvm
