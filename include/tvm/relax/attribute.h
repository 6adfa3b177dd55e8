// SPDX-License-Identifier: Apache-2.0
// Attributes of calls by their names, whatever class they are of.
#pragma once
#include <string_view>

#include "tvm/ir/attrs.h"

namespace tvm::relax {

/// The attribute of that name; false when there is none.
bool FindAttribute(const Attrs& attrs, std::string_view name, Any* value);
/// All attributes by their names.
Map<String, Any> AllAttributes(const Attrs& attrs);

}  // namespace tvm::relax
