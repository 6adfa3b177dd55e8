// SPDX-License-Identifier: Apache-2.0
// Code generators: a row each, which is all that other parts know of them.
#pragma once
#include <tvm/ffi/extra/module.h>

#include <string>
#include <string_view>

#include "tvm/ir/module.h"
#include "tvm/ir/target.h"

namespace tvm {

/// A code generator for the targets of one kind. `target.build.<kind>` is the registered function
/// (lowered module, target) -> module of code.
struct Backend {
  std::string kind;
  bool is_host = false;      // its code runs on the processor that calls it, else on a device
  std::string library = {};  // a file beside this library, loaded on first use; empty: none
  Array<String> final_passes = {};  // after those of all hosts, or of all devices
  bool takes_vectors = true;        // else its compiler makes vectors of loops
  bool takes_predicates = false;    // loads and stores of vectors under a mask
  bool takes_llvm_intrinsics = false;
  /// The registered function (object files, output, options) that links a shared library.
  std::string link = {};
  /// The registered function (object files, output) that makes one object of several; empty: none.
  std::string join = {};

  /// Loads the library; false when it is not installed (or TVM_WITHOUT_<KIND> is set, which is how
  /// the rest is tested without it). One that is there and cannot be loaded is an ImportError that
  /// names the file and the cause.
  bool Load() const;
  /// The registered function; RuntimeError when this build has no code generator for the target.
  Function Generator(const Target& target) const;
  /// Code for lowered functions: the final passes, then the generator.
  ffi::Module Build(IRModule mod, const Target& target) const;

  /// nullptr when no backend of the kind is registered.
  static const Backend* Find(std::string_view kind);
  /// The row of a target. A kind without one is that of a device, whose generator somebody may
  /// register as a function.
  static const Backend& Of(const Target& target);
};
/// ValueError when the kind has a row.
void RegisterBackend(Backend row);

/// This machine, by the first backend for hosts, in the order of the kinds, that is installed.
Target DefaultHost();

}  // namespace tvm
