// SPDX-License-Identifier: Apache-2.0
// From a graph to an executable of the virtual machine.
#pragma once
#include "tvm/driver/build.h"
#include "tvm/runtime/tensor.h"

namespace tvm::relax {

struct BuildOptions {
  /// Values of parameters of `main`, by name: they become part of the executable.
  Map<String, runtime::Tensor> params;
  /// The passes of either language; those of the target by default.
  Optional<transform::Pass> relax_pipeline, tir_pipeline;
  /// Functions of the graph become machine code as well, not bytecode.
  bool compiled = false;
  /// Exported as .o or .a, the code registers itself in the program it is linked into.
  bool system_lib = false;
};
/// Compiles the graphs of a module, the kernels they call and those it has beside them. Run it with
/// runtime/vm.h, or write it with driver/export.h.
ffi::Module Build(IRModule mod, Target target = Target(), const BuildOptions& options = {});

}  // namespace tvm::relax
