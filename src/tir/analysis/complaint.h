// SPDX-License-Identifier: Apache-2.0
// What is wrong with a function, and where in its text.
#pragma once
#include "tvm/tir/function.h"

namespace tvm::tir {

/// The text is empty when nothing is wrong.
struct Complaint {
  std::string text;
  Optional<Span> span;
};
/// Uses of variables or buffers outside their definition, variables defined twice, block iterators
/// used outside, blocks that are not realized.
Complaint FindBrokenRule(const PrimFunc& func);
/// Memory that the function allocates and reads although nothing in it can write it.
Complaint FindUnwritten(const PrimFunc& func);
/// The first access that lies outside of its buffer whenever the function runs: by a constant, or
/// a sum of loop variables, in a place that is always reached. An empty string: none.
std::string FindCertainlyOutside(const PrimFunc& func);

}  // namespace tvm::tir
