// SPDX-License-Identifier: Apache-2.0
// The registry of tensor intrinsics.
#pragma once
#include "tvm/tir/function.h"

namespace tvm::tir {

/// The intrinsic registered under a name; ValueError, or none, when there is none.
Optional<TensorIntrin> GetTensorIntrin(String name, bool allow_missing = false);
/// The text of that error.
std::string MissingTensorIntrin(const String& name);

}  // namespace tvm::tir
