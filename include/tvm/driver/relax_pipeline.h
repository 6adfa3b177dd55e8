// SPDX-License-Identifier: Apache-2.0
// The list of passes between a graph and code of the virtual machine; src/driver/relax_pipeline.cc
// reads top to bottom.
#pragma once
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"

namespace tvm::relax {

/// Optimises and lowers the graphs of a module for a target, up to code generation.
transform::Pass DefaultPipeline(const Target& target);

}  // namespace tvm::relax
