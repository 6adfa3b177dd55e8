// SPDX-License-Identifier: Apache-2.0
// Hyperbolic functions.
#include "value.h"

namespace tvm::math {

/// m / (m + 2) with m = e^(2|x|) - 1. Near 0 the errors of m + 2 and of the quotient y would add up
/// to more than 2 units: there the same value is m/2 - m/2 y, where y is a small correction.
Value Tanh(Expansion& let, const Value& x) {
  Value a = let("a", AtMost(Abs(x), FormatOf(x).bits == 64 ? 20.0 : 10.0));
  Value m = let("m", ExpM1(let, let("b", a + a)));
  Value y = let("y", m / (m + 2.0));
  Value half = let("half", m * 0.5);
  return CopySign(Choose(a < 0.375, Fma(-half, y, half), y), x);
}

}  // namespace tvm::math
