// SPDX-License-Identifier: Apache-2.0
// Structural equality from the field lists of nodes: what tvm-ffi's comparison finds, without a
// call, a boxed value and an allocation per field. What it does not know is left to tvm-ffi.
#pragma once
#include <array>
#include <optional>

#include "ir/once.h"
#include "tvm/ir/node.h"

namespace tvm {

/// Whether both are equal; nothing where tvm-ffi has to say.
std::optional<bool> CompareFields(const Any& a, const Any& b, bool map_free_vars,
                                  bool skip_tensor_content);
/// A hash of what a node is made of, but for which variable stands where and what tensors contain:
/// the same for equal nodes, and quick to tell most others apart.
uint64_t OutlineHash(const Any& value);

/// One comparison: which variables are mapped to each other.
class Comparison {
 public:
  Comparison(bool map_free_vars, bool skip_tensor_content)
      : map_free_vars_(map_free_vars), skip_tensor_content_(skip_tensor_content) {}
  bool Values(const Any& a, const Any& b, bool defines);
  bool Objects(const ObjectRef& a, const ObjectRef& b, bool defines);
  /// A part of a node, for hooks.
  template <class T>
  bool Part(const T& a, const T& b, bool defines) {
    if constexpr (IsNodeRef<T>::value) {  // an optional node is the node, or null
      return Objects(reinterpret_cast<const ObjectRef&>(a), reinterpret_cast<const ObjectRef&>(b),
                     defines);
    } else {
      return Values(Any(a), Any(b), defines);
    }
  }
  bool gave_up() const { return gave_up_; }

 private:
  bool Nodes(const Object* a, const Object* b, bool defines);
  bool Fields(const Object* a, const Object* b, bool defines);
  bool Maps(const ffi::MapObj* a, const ffi::MapObj* b, bool defines);
  bool GiveUp() {
    gave_up_ = true;
    return false;
  }
  bool map_free_vars_, skip_tensor_content_, gave_up_ = false;
  PointerMap<const Object*> to_right_,
      to_left_;            // variables, and nodes that are compared as graphs
  PointerMap<bool> free_;  // variables that were the same before any definition of them
  /// Pairs found equal: mappings are only added, so they stay equal.
  std::array<std::pair<const Object*, const Object*>, 256> equal_{};
  SharedMemo<const Object*> equal_to_;  // what the array has no room for
};

using CompareHook = bool (*)(Comparison*, const Object* a, const Object* b, bool defines);
void SetCompareHook(int32_t type_index, CompareHook hook);

/// Equality that is more than the fields in their order: `F{}(a, b, equal)` compares two `Obj`
/// part by part with `equal(x, y, region, field)`.
template <class Obj, class F>
void SetStructuralEqual(F) {
  using Ref = ffi::ObjectRef;
  SetTypeAttr(Obj::RuntimeTypeIndex(), "__s_equal__",
              Function::FromTyped([](Ref a, Ref b, Function equal) {
                return F{}(static_cast<const Obj*>(a.get()), static_cast<const Obj*>(b.get()),
                           [&](const auto& x, const auto& y, int region, const char* field) {
                             return equal(x, y, region, field).template cast<bool>();
                           });
              }));
  SetCompareHook(
      Obj::RuntimeTypeIndex(), [](Comparison* all, const Object* a, const Object* b, bool defines) {
        return F{}(static_cast<const Obj*>(a), static_cast<const Obj*>(b),
                   [&](const auto& x, const auto& y, int region, const char*) {
                     return all->Part(x, y, defines || region != kTVMFFIDefRegionKindNone);
                   });
      });
}

}  // namespace tvm
