// SPDX-License-Identifier: Apache-2.0
// The program `tvm`: everything is in the library.
#include "driver/cli/cli.h"

int main(int argc, char** argv) { return tvm::cli::Main(argc, argv); }
