// SPDX-License-Identifier: Apache-2.0
// A model that commands run: its file, its machine, its inputs.
#pragma once
#include <string>
#include <vector>

#include "driver/cli/options.h"
#include "tvm/runtime/vm.h"

namespace tvm::cli {

using Json = Map<String, Any>;

struct Session {
  /// Opens the file of the command, on the device of --device. With `profiles` it can profile.
  explicit Session(const Options& options, bool profiles = false);
  /// Of --input name=file.npy, else of noise; --shape x=4,16 and --dim n=4 give extents that may
  /// be any, else 1.
  std::vector<Any> Inputs() const;
  /// What goes in and comes out of the function.
  Json Signature() const;
  std::vector<runtime::Tensor> Run(const std::vector<Any>& inputs) const;

  const Options& options;
  std::string path, function;
  DLDevice device;
  ffi::Module executable, machine;
};
/// The options all such commands take.
std::vector<OptionRow> SessionOptions();

}  // namespace tvm::cli
