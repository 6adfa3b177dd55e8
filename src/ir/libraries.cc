// SPDX-License-Identifier: Apache-2.0
// Loading libtvm_llvm.
#include "tvm/ir/libraries.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>
#include <mutex>

#include "tvm/runtime/def.h"

namespace tvm {
namespace {
/// The folder this library was loaded from.
std::string LibraryFolder() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&LoadLLVM), &info);
  std::string path = info.dli_fname ? info.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1);
}
}  // namespace

bool LoadLLVM() {
  static std::mutex mutex;
  static bool loaded = false;
  std::lock_guard lock(mutex);
  if (loaded) return true;
  // As if it were not installed: how the rest is tested without it.
  if (const char* without = std::getenv("TVM_WITHOUT_LLVM"); without && *without) return false;
  std::string path = LibraryFolder() + "libtvm_llvm.so";
  struct stat unused;
  if (stat(path.c_str(), &unused) != 0) return false;
  if (!dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    TVM_FFI_THROW(ImportError) << "expected to load the LLVM backend " << path << ", got "
                               << dlerror();
  }
  Initialize();
  return loaded = true;
}

TVM_REGISTER() {
  Def("ir.LoadLLVM", &LoadLLVM, "Loads the LLVM backend; False when it is not installed.");
}
}  // namespace tvm
