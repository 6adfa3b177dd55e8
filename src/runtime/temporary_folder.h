// SPDX-License-Identifier: Apache-2.0
// A folder for files that nobody needs later.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tvm/runtime/def.h"

namespace tvm::runtime {

/// A new folder, removed with all it holds.
struct TemporaryFolder {
  std::filesystem::path path;
  TemporaryFolder() {
    namespace fs = std::filesystem;
    std::string name = (fs::temp_directory_path() / "tvm-XXXXXX").string();
    if (!mkdtemp(name.data())) {
      TVM_FFI_THROW(OSError) << "cannot make a folder in " << fs::temp_directory_path();
    }
    path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
};

}  // namespace tvm::runtime
