// SPDX-License-Identifier: Apache-2.0
// Warnings of the tuner: Python's logger when there is one, else standard error.
#pragma once
#include <string>

namespace tvm::tune {
void Warn(const std::string& message);
}  // namespace tvm::tune
