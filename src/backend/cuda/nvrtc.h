// SPDX-License-Identifier: Apache-2.0
// NVIDIA's compiler as a library, loaded on first use.
#pragma once
#include <string>
#include <vector>

namespace tvm::codegen::cuda {

/// What a text compiles to.
struct Compiled {
  std::string code;
  std::string log;  ///< Warnings, and with `--ptxas-options=-v` registers and spills.
};
/// Compiles CUDA to "cubin" or "ptx" for an architecture such as sm_90a. RuntimeError with the
/// compiler's log and the lines it complains about, or that says what to install; ValueError for an
/// architecture that it does not know.
Compiled CompileWithNvrtc(const std::string& source, const std::string& format,
                          const std::string& arch, const std::vector<std::string>& options = {});
/// Such as 13.0; loads the library.
std::string NvrtcVersion();

}  // namespace tvm::codegen::cuda
