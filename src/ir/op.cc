// SPDX-License-Identifier: Apache-2.0
// The operator table.
#include "tvm/ir/op.h"

#include <map>
#include <mutex>

namespace tvm {
namespace {
struct Attr {
  Any value;
  int64_t level;
};
struct OpTable {
  std::mutex mutex;
  std::map<std::string, Op, std::less<>> ops;
  std::map<const Object*, std::map<std::string, Attr, std::less<>>> attrs;
};
OpTable& Table() {
  static auto* table = new OpTable();
  return *table;
}
}  // namespace

Op Op::Get(const String& name) {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  if (auto it = t.ops.find(View(name)); it != t.ops.end()) return it->second;
  std::vector<std::string_view> names;
  for (const auto& [known, op] : t.ops) names.push_back(known);
  TVM_FFI_THROW(AttributeError) << "Op: expected the name of an operator, got '" << name << "'"
                                << DidYouMean(View(name), names);
  TVM_FFI_UNREACHABLE();
}
Op Op::Register(const String& name, const String& description) {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  Op& op = t.ops[name];
  if (!op.defined()) op = New<Op>([&](OpObj* n) { n->name = name; });
  if (description != "") const_cast<OpObj*>(op.get())->description = description;
  return op;
}
bool Op::Exists(const String& name) {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  return t.ops.count(View(name));
}
Any Op::GetAttr(const String& key) const {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  auto op = t.attrs.find(get());
  if (op == t.attrs.end()) return nullptr;
  auto it = op->second.find(View(key));
  return it == op->second.end() ? Any(nullptr) : it->second.value;
}
void Op::SetAttr(const String& key, Any value, int64_t level) const {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  auto [it, added] = t.attrs[get()].try_emplace(key, Attr{value, level});
  if (added) return;
  if (it->second.level == level) {
    TVM_FFI_THROW(ValueError) << "Op: attribute '" << key << "' of " << get()->name
                              << " is set already at level " << level;
  }
  if (it->second.level < level) it->second = {value, level};
}
void Op::ResetAttr(const String& key) const {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  t.attrs[get()].erase(key);
}

namespace {
OpObj* Mutable(const Op& op) { return const_cast<OpObj*>(op.get()); }

TVM_REGISTER() {
  RegisterNode<ArgumentInfoObj>("What an operator's argument is.");
  RegisterNode<OpObj>("A named operator, one object per name.");
  Def(
      "ir.GetOp", [](String name) { return Op::Get(name); }, "The operator of a name.",
      Arg("op_name"));
  Def(
      "ir.ListOpNames",
      [] {
        Array<String> names;
        std::lock_guard lock(Table().mutex);
        for (const auto& [name, op] : Table().ops) names.push_back(name);
        return names;
      },
      "The names of all operators, sorted.");
  Def(
      "ir.RegisterOp",
      [](String name, String description) { return Op::Register(name, description); },
      "Makes an operator.", Arg("op_name"), Arg("description", String()));
  Def(
      "ir.Op.get_attr", [](Op op, String key) { return op.GetAttr(key); },
      "An attribute of the operator, or None.", Arg("self"), Arg("attr_name"));
  Def(
      "ir.Op.has_attr", [](Op op, String key) { return op.GetAttr(key) != nullptr; },
      "Whether the operator has an attribute.", Arg("self"), Arg("attr_name"));
  Def(
      "ir.Op.set_attr",
      [](Op op, String key, Any value, int64_t level) { op.SetAttr(key, value, level); },
      "Sets an attribute; of two values the one with the higher level stays.", Arg("self"),
      Arg("attr_name"), Arg("value"), Arg("plevel", 10));
  Def(
      "ir.Op.reset_attr", [](Op op, String key) { op.ResetAttr(key); }, "Removes an attribute.",
      Arg("self"), Arg("attr_name"));
  Def(
      "ir.Op.add_argument",
      [](Op op, String name, String type, String description) {
        auto info = New<ArgumentInfo>([&](ArgumentInfoObj* n) {
          n->name = name, n->type_info = type, n->description = description;
        });
        Mutable(op)->arguments.push_back(info);
      },
      "Documents an argument.", Arg("self"), Arg("name"), Arg("type"), Arg("description"));
  Def(
      "ir.Op.set_support_level", [](Op op, int64_t level) { Mutable(op)->support_level = level; },
      "", Arg("self"), Arg("level"));
  Def(
      "ir.Op.set_num_inputs", [](Op op, int64_t n) { Mutable(op)->num_inputs = n; }, "",
      Arg("self"), Arg("n"));
  Def(
      "ir.Op.set_attrs_type_key", [](Op op, String key) { Mutable(op)->attrs_type_key = key; }, "",
      Arg("self"), Arg("key"));
}
}  // namespace
}  // namespace tvm
