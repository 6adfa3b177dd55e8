// SPDX-License-Identifier: Apache-2.0
// Names of operators, passes, options and attributes in neighbouring versions of the interface.
#pragma once
#include <string>
#include <string_view>

namespace tvm {
/// What a name of versions since 0.27 is here: tirx.x and s_tir.x are tir.x; other names stay.
std::string OwnName(std::string_view name);
}  // namespace tvm
