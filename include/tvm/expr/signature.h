// SPDX-License-Identifier: Apache-2.0
// How operators whose type does not follow from their arguments are called by name.
#pragma once
#include <span>
#include <string_view>
#include <vector>

namespace tvm::tir {

/// `tvm.tir.<name>(params)`, `T.<name>(params)`: a call of the operator with these arguments.
/// type: that of the result; "=value" takes it from the argument `value`, "=dtype" is the parameter
/// dtype, which is no argument of the call. A parameter may have a default, or be "*args".
struct Signature {
  std::string_view name, type, params;
  std::vector<std::string_view> Parameters() const;
};

std::span<const Signature> Signatures();
/// The row of an operator, named without "tir.", or null.
const Signature* FindSignature(std::string_view name);

}  // namespace tvm::tir
