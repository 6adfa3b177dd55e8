// SPDX-License-Identifier: Apache-2.0
// Warnings: Python's logging where there is Python, else standard error.
#pragma once
#include <string>

namespace tvm {
/// Warns by the logger of a part of the package: "meta_schedule", "relax".
void Warn(const char* part, const std::string& message);
}  // namespace tvm
