// SPDX-License-Identifier: Apache-2.0
// Errors that kernels find: the first one of a device is kept until the next synchronisation.
#pragma once
#include "runtime/device/cuda/driver.h"

namespace tvm::runtime::cuda {

/// The name of the variable in kernels that points to where they say what failed.
inline constexpr const char* kFailureVariable = "tvm_failure";

/// Tells a module that was loaded on a device where to say what failed, if it may fail.
void ConnectFailures(int device_id, CUmodule module);
/// Raises what a kernel of the device found since the last call. To be called when kernels are
/// done; costs a load where nothing failed.
void RaiseFailure(int device_id);

}  // namespace tvm::runtime::cuda
