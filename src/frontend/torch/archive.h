// SPDX-License-Identifier: Apache-2.0
// Archives of exported programs (torch.export.save), read without PyTorch.
#pragma once
#include <string>

#include "program.h"

namespace tvm::frontend::torch {

/// The program in a .pt2 file. Weights are views of the file, which stays mapped as long as one of
/// them lives. Archives that hold pickled objects are refused.
Program ReadArchive(const std::string& path);

}  // namespace tvm::frontend::torch
