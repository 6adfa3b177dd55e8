// SPDX-License-Identifier: Apache-2.0
// Which compiler this is, and whether it still is that one.
#pragma once
#include <string>

namespace tvm::runtime {

/// The build ids of those of our libraries that are loaded: others when their code is. Empty where
/// one has none.
std::string BuildIds();
/// Somebody changes what the compiler does: attributes of operators, languages, code generators.
void NoteChange();
/// Whether the compiler does something else than its libraries say: a change was noted, another
/// library registered something, or a registered function was replaced.
bool IsChanged();

}  // namespace tvm::runtime
