// SPDX-License-Identifier: Apache-2.0
// The lists of passes between a TIR program and code; src/driver/tir_pipeline.cc reads top to
// bottom.
#pragma once
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {

/// Lowers functions for a target up to the split between host and device.
transform::Pass DefaultPipeline(const Target& target);
/// What remains to be done for functions of the host, and of devices.
transform::Pass FinalizeHost();
transform::Pass FinalizeDevice();

}  // namespace tvm::tir
