// SPDX-License-Identifier: Apache-2.0
// From compiled code to a library on disk.
#pragma once
#include <tvm/ffi/extra/module.h>

#include <string>

namespace tvm {

/// Writes a compiled module, with everything it imports, as a shared library that libtvm_runtime
/// loads. The linker is that of the host's code generator: LLVM's is built in, where it is not
/// installed the system's compiler links. The file appears whole or not at all. ValueError for a
/// module that holds no object code.
void ExportLibrary(const ffi::Module& mod, const std::string& path);

}  // namespace tvm
