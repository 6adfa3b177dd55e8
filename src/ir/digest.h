// SPDX-License-Identifier: Apache-2.0
// A digest of all that is in a program.
#pragma once
#include <optional>

#include "runtime/content_hash.h"
#include "tvm/ir/node.h"

namespace tvm {

/// Of what structural equality compares and of what it does not: names, spans, marks; of tensors,
/// their numbers. Programs that are made in the same way have the same one, in another process,
/// too. None where something in the value is no data: a function, a module, a tensor of a device.
std::optional<runtime::Digest> DigestOf(const Any& value);

}  // namespace tvm
