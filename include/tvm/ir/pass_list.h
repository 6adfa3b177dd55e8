// SPDX-License-Identifier: Apache-2.0
// Pipelines, written as lists that read top to bottom.
#pragma once
#include "tvm/ir/transform.h"

namespace tvm::transform {

/// A list of passes, by name, in which some depend on the options of the context.
struct PassList {
  PassContext ctx = PassContext::Current();
  Array<Pass> passes;

  PassList& operator()(const char* name, const Array<Any>& options = {}) {
    passes.push_back(GetPass(name, options));
    return *this;
  }
  bool Is(const char* option) const { return ctx->GetConfig<bool>(option); }
  PassList& If(bool condition, const char* name, const Array<Any>& options = {}) {
    return condition ? (*this)(name, options) : *this;
  }
  PassList& All(const Array<Pass>& more) {
    for (const Pass& pass : more) passes.push_back(pass);
    return *this;
  }
  /// Passes that the user added after a phase: an option with [phase, pass] pairs.
  PassList& Added(const char* option, int64_t phase) {
    for (const Array<Any>& entry : ctx->GetConfig<Array<Array<Any>>>(option)) {
      if (entry.size() != 2) {
        TVM_FFI_THROW(ValueError) << option << ": expected [phase, pass] pairs, got a list of "
                                  << entry.size();
      }
      if (entry[0].cast<int64_t>() == phase) passes.push_back(entry[1].cast<Pass>());
    }
    return *this;
  }
  Pass Named(const char* name) const { return Sequential(passes, name); }
};

}  // namespace tvm::transform
