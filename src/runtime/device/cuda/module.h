// SPDX-License-Identifier: Apache-2.0
// Modules of CUDA kernels.
#pragma once
#include <string>
#include <vector>

#include "tvm/runtime/module.h"

namespace tvm::runtime::cuda {

/// A kernel and how it is launched: after its arguments come the values that `launch` names, in the
/// words of `tir.kernel_launch_params`.
struct KernelInfo {
  std::string name;
  std::vector<DLDataType> params;  ///< A handle of 16 lanes: a tensor map, passed by value.
  std::vector<std::string> launch;
  size_t binary = 0;  ///< The first binary of the module that has it.
};
/// Code of kernels in a form the driver loads.
struct Binary {
  std::string format;  ///< "cubin", "ptx" or "fatbin".
  std::string arch;    ///< Such as sm_90a.
  std::string code;
};
/// A module of kind "cuda"; binaries for several architectures, once each, stand behind each other.
/// `source` is the text that the binaries were made of.
Module MakeModule(std::vector<Binary> binaries, std::vector<KernelInfo> kernels,
                  std::string source);

}  // namespace tvm::runtime::cuda
