// SPDX-License-Identifier: Apache-2.0
// The LLVM backend is a library of its own, loaded on first use.
#pragma once

namespace tvm {
/// Loads libtvm_llvm from beside this library and registers what it holds; false when it is not
/// installed. A library that is there but cannot be loaded is an ImportError.
bool LoadLLVM();
}  // namespace tvm
