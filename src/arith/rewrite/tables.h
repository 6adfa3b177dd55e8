// SPDX-License-Identifier: Apache-2.0
// The tables of rules, one function each.
#pragma once
#include "arith/rewrite/rule.h"

namespace tvm::arith {
Rules AddRules();
Rules SubRules();
Rules MulRules();
Rules FloorDivRules();
Rules FloorModRules();
Rules TruncRules();
Rules MinRules();
Rules MaxRules();
Rules EqualRules();
Rules LessRules();
Rules LessEqualRules();
Rules NotRules();
Rules AndRules();
Rules OrRules();
Rules SelectRules();
}  // namespace tvm::arith
