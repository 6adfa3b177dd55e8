// SPDX-License-Identifier: Apache-2.0
// Attributes of calls by their names.
#include "tvm/relax/attribute.h"

namespace tvm::relax {

namespace {
Any ValueOfField(const Attrs& attrs, const Field* field) {
  char* slot = const_cast<char*>(reinterpret_cast<const char*>(attrs.get())) + field->offset;
  TVMFFIAny raw;
  if (field->ops->get(slot, &raw) != 0) throw ffi::detail::MoveFromSafeCallRaised();
  return ffi::detail::AnyUnsafe::MoveTVMFFIAnyToAny(&raw);
}
}  // namespace

bool FindAttribute(const Attrs& attrs, std::string_view name, Any* value) {
  if (auto* dict = attrs.as<DictAttrsObj>()) {
    auto it = dict->dict.find(String(std::string(name)));
    if (it == dict->dict.end()) return false;
    *value = (*it).second;
    return true;
  }
  for (const Field* field : InfoOf(attrs->type_index()).params) {
    if (name != field->name) continue;
    *value = ValueOfField(attrs, field);
    return true;
  }
  return false;
}
Map<String, Any> AllAttributes(const Attrs& attrs) {
  if (auto* dict = attrs.as<DictAttrsObj>()) return dict->dict;
  Map<String, Any> all;
  for (const Field* field : InfoOf(attrs->type_index()).params)
    all.Set(field->name, ValueOfField(attrs, field));
  return all;
}

}  // namespace tvm::relax
