// SPDX-License-Identifier: Apache-2.0
// The lowering pipelines.
#pragma once
#include "tvm/ir/transform.h"

namespace tvm::tir {

/// From functions with blocks to plain functions and their packed entries. The list depends on the
/// options of the current PassContext.
::tvm::transform::Pass DefaultPipeline();
/// What is left for functions on the host, and for those on a device, before code generation.
::tvm::transform::Pass FinalizeHost();
::tvm::transform::Pass FinalizeDevice();

}  // namespace tvm::tir
