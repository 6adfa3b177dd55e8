// SPDX-License-Identifier: Apache-2.0
// What is known of the LLVM backend before its library is loaded: its row and its options.
#include "tvm/ir/backend.h"
#include "tvm/ir/transform.h"

namespace tvm {
TVM_REGISTER() {
  RegisterBackend({.kind = "llvm",
                   .is_host = true,
                   .library = "libtvm_llvm.so",
                   .takes_predicates = true,
                   .takes_llvm_intrinsics = true,
                   .link = "codegen.link_shared",
                   .join = "codegen.link_relocatable"});
  transform::DefConfig<bool>("llvm.debug_info", false,
                             "Writes the lines of the program into compiled code.");
  transform::DefConfig<bool>("llvm.quick_entry", false,
                             "Leaves the checks of arguments on entry to a kernel as they are: "
                             "optimising them takes longer than a small kernel does.");
}
}  // namespace tvm
