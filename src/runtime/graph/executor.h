// SPDX-License-Identifier: Apache-2.0
// Graphs in JSON of kernels that run one after the other, with memory planned ahead.
#pragma once
#include <string>
#include <vector>

#include "tvm/runtime/module.h"
#include "tvm/runtime/tensor.h"

namespace tvm::runtime {

/// Runs a graph on one device. Not for several threads at once: inputs and outputs are its own.
class GraphExecutorObj : public ffi::ModuleObj {
 public:
  /// ValueError for a graph that is malformed, or calls a function that `library` does not have.
  GraphExecutorObj(const String& json, Module library, DLDevice device);

  int64_t InputIndex(const String& name) const;
  void SetInput(int64_t index, const Tensor& value, bool copies);
  void LoadParams(const Map<String, Tensor>& params);
  void Run() const;

  const char* kind() const final { return "GraphExecutor"; }
  int GetPropertyMask() const final { return Module::kRunnable; }
  Optional<Function> GetFunction(const String& name) final;

 private:
  struct Step {
    std::string name;
    Function function;
    std::vector<int64_t> entries;  // arguments, results behind inputs
  };
  const Tensor& Output(int64_t index) const;
  const Tensor& Input(int64_t index) const;

  Module library_;
  DLDevice device_;
  std::vector<std::string> input_names_;
  std::vector<int64_t> inputs_, outputs_;  // entries
  std::vector<Tensor> entries_;
  std::vector<Step> steps_;
};

}  // namespace tvm::runtime
