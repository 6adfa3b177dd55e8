// SPDX-License-Identifier: Apache-2.0
// Options of the LLVM backend: known before its library is loaded.
#include "tvm/ir/transform.h"

namespace tvm {
TVM_REGISTER() {
  transform::DefConfig<bool>("llvm.debug_info", false,
                             "Writes the lines of the program into compiled code.");
  transform::DefConfig<bool>("llvm.quick_entry", false,
                             "Leaves the checks of arguments on entry to a kernel as they are: "
                             "optimising them takes longer than a small kernel does.");
}
}  // namespace tvm
