// SPDX-License-Identifier: Apache-2.0
// Structural equality, hashing and JSON for programs of any depth.
#pragma once
#include "tvm/ir/node.h"

namespace tvm {

/// Equality up to the names of bound variables; with `map_free_vars` also of free ones.
bool StructuralEqual(const Any& a, const Any& b, bool map_free_vars = false);
/// A hash that agrees with StructuralEqual.
int64_t StructuralHash(const Any& a, bool map_free_vars = false);
/// The node and all it refers to, as JSON text.
String SaveJson(const Any& a);
/// Reads what SaveJson wrote and checks every node in it.
Any LoadJson(const String& text);

/// For containers keyed by structure.
struct StructuralHasher {
  size_t operator()(const ObjectRef& r) const { return StructuralHash(r); }
};
struct StructuralEquals {
  bool operator()(const ObjectRef& a, const ObjectRef& b) const { return StructuralEqual(a, b); }
};

}  // namespace tvm
