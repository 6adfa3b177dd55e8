// SPDX-License-Identifier: Apache-2.0
// The system's C compiler.
#pragma once
#include <string>
#include <vector>

#include "tvm/ir/target.h"

namespace tvm::codegen::c {

/// A compiler for a target, with the options it needs.
struct Compiler {
  std::vector<std::string> command;  ///< The program and its first arguments.
  bool native = false;               ///< Its code is for the CPU of this machine, and may need it.

  /// From CC, else cc, gcc or clang of the PATH; with mtriple, the compiler of that name
  /// (aarch64-linux-gnu-gcc). RuntimeError that says what to install when there is none.
  static Compiler For(const Target& target);

  enum class Output { kObject, kShared };
  /// The file that C text compiles to. RuntimeError with what the compiler says when it fails.
  std::string Compile(const std::string& source, Output output) const;
  /// Links object files into a shared library.
  void Link(const std::vector<std::string>& objects, const std::string& output) const;
};

}  // namespace tvm::codegen::c
