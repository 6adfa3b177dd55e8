// SPDX-License-Identifier: Apache-2.0
// Functions whose results are rounded to 16 bits, by the instructions that approximate them.
#pragma once
#include "tvm/tir/function.h"

namespace tvm::codegen::cuda {

/// What is rounded to float16 or bfloat16 need not be known to 24 bits. Of a product that is, exp,
/// sigmoid, 1 + erf and, of bfloat16, tanh are computed to a relative error of 2^-16 (tanh: 2^-11),
/// over the whole range: the rounded result is at most 0.55 (0.75) units in the last place off.
tir::PrimFunc WithRoundedMath(tir::PrimFunc func);

}  // namespace tvm::codegen::cuda
