// SPDX-License-Identifier: Apache-2.0
// ONNX models as programs of the graph language.
//
//   frontend::OnnxModule imported = frontend::ImportOnnx("model.onnx");
//   ffi::Module mod = Build(imported.mod, Target("llvm"));
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tvm/ir/module.h"

namespace tvm::frontend {

struct OnnxOptions {
  Map<String, Array<Any>> shapes;  // of inputs, by name: numbers, expressions, names of dimensions
  Map<String, DataType> dtypes;    // of inputs, by name
  std::optional<int64_t> opset;    // instead of the model's own
  bool keep_params = false;  // weights are parameters; their values are the attribute "params"
  bool sanitize_names = true;
  /// Bytes that the import may take beyond the file, about: a small file can describe a large
  /// model.
  int64_t memory_limit = int64_t{4} << 30;
};
struct OnnxModule {
  IRModule mod;
  std::vector<std::string> warnings;
};
/// Reads the file through a memory map: weights are views of it where their alignment allows.
OnnxModule ImportOnnx(const std::string& path, const OnnxOptions& options = {});
/// Inputs, outputs, weights and operators of a model, and what is not supported, as text.
std::string InspectOnnx(const std::string& path);
OnnxModule ImportOnnxBytes(std::string bytes, const OnnxOptions& options = {});

}  // namespace tvm::frontend
