// SPDX-License-Identifier: Apache-2.0
// Models as sources: files that are compiled before they run.
#pragma once
#include <tvm/ffi/extra/module.h>

#include <string>

#include "driver/cli/options.h"
#include "tvm/ir/module.h"
#include "tvm/ir/target.h"

namespace tvm::cli {

/// What happens, on stderr.
void Progress(const std::string& text);
bool HasSuffix(const std::string& path, const char* suffix);
/// Whether a file is to be compiled: a model, or a module that was saved as JSON.
bool IsSource(const std::string& path);
IRModule ReadProgram(const std::string& path);
/// The code of the program for the target, which may be of --target.
ffi::Module Compiled(const IRModule& mod, const Options& options);

}  // namespace tvm::cli
