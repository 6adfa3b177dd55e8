// SPDX-License-Identifier: Apache-2.0
// The LLVM this library was built with.
#include <llvm/Config/llvm-config.h>

#include "tvm/runtime/def.h"

namespace tvm {
namespace {
String Version() { return LLVM_VERSION_STRING; }
TVM_REGISTER() {
  Def("backend.llvm.version", &Version, "Version of the LLVM linked into libtvm_llvm.");
}
}  // namespace
}  // namespace tvm
