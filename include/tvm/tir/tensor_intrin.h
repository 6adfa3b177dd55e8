// SPDX-License-Identifier: Apache-2.0
// The registry of tensor intrinsics.
#pragma once
#include <functional>
#include <string_view>

#include "tvm/tir/function.h"

namespace tvm::tir {

/// The intrinsic registered under a name; ValueError, or none, when there is none.
Optional<TensorIntrin> GetTensorIntrin(String name, bool allow_missing = false);
/// Intrinsics that are made when they are asked for: those whose names begin with `prefix`. `make`
/// gets the rest of the name, and may return none.
void RegisterIntrinFamily(std::string prefix,
                          std::function<Optional<TensorIntrin>(std::string_view)> make);
/// The text of that error.
std::string MissingTensorIntrin(const String& name);

}  // namespace tvm::tir
