// SPDX-License-Identifier: Apache-2.0
// Archives of PyTorch programs as programs of the graph language.
//
//   IRModule mod = frontend::ImportTorchArchive("model.pt2");
//   ffi::Module executable = relax::Build(mod, Target("llvm"));
#pragma once
#include <string>

#include "tvm/ir/module.h"

namespace tvm::frontend {

struct TorchOptions {
  bool keep_params = false;    // parameters follow the inputs; their values are in "params"
  bool unwrap_result = false;  // one result is returned as it is, not as a tuple
  bool bind_result = true;     // the tuple of results is bound to a variable
};
/// The program in a file that torch.export.save wrote, read without PyTorch. Weights are views of
/// the file, which stays mapped. Archives that hold pickled objects are refused.
IRModule ImportTorchArchive(const std::string& path, const TorchOptions& options = {});
/// Inputs, outputs, weights and operators of such a program, and what is not supported, as text.
std::string InspectTorchArchive(const std::string& path);

}  // namespace tvm::frontend
