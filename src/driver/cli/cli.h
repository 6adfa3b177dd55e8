// SPDX-License-Identifier: Apache-2.0
// The program `tvm`.
#pragma once

namespace tvm::cli {

/// Runs a command line; the result is the exit status. Errors go to stderr.
int Main(int argc, const char* const* argv);

}  // namespace tvm::cli
