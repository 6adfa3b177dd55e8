// SPDX-License-Identifier: Apache-2.0
// Executables of graphs that were compiled before, by another process or this one.
#pragma once
#include <optional>
#include <string>

#include "tvm/driver/relax_build.h"

namespace tvm::relax {

/// All that the executable of a graph depends on: program, target, options, this compiler. None
/// where something else takes part, such as passes, instruments or lowerings of the caller's, and
/// where nothing shall be kept.
std::optional<std::string> ExecutableKey(const IRModule& mod, const Target& target,
                                         const BuildOptions& options);
/// The executable that was kept under a key, its weights as pages of the file. Its kernels are
/// compiled again for those who ask for their source, or export them.
Optional<ffi::Module> FindExecutable(const std::string& key);
/// Keeps an executable that calls `kernels`, compiled for `target`. One that cannot be written, or
/// not be loaded here, is not kept.
void KeepExecutable(const std::string& key, const ffi::Module& executable, const IRModule& kernels,
                    const Target& target);

}  // namespace tvm::relax
