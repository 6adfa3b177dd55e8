// SPDX-License-Identifier: Apache-2.0
// The operator table: operators by name, attributes in columns.
#include "tvm/ir/op.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "ir/own_name.h"
#include "runtime/identity.h"

namespace tvm {
namespace {
struct OpTable {
  std::mutex mutex;  // guards what follows; the cells of a column are read without it
  std::map<std::string, Op, std::less<>> ops;
  std::map<std::string, std::unique_ptr<OpColumn>, std::less<>> columns;
};
OpTable& Table() {
  static auto* table = new OpTable();
  return *table;
}
/// The column of a name; the table is locked.
OpColumn* GetColumn(OpTable& t, const std::string& key) {
  std::unique_ptr<OpColumn>& column = t.columns[key];
  if (!column) {
    // calloc: what no operator uses takes no memory.
    auto* cells = static_cast<std::atomic<const OpCell*>*>(
        calloc(kMaxOps, sizeof(std::atomic<const OpCell*>)));
    if (!cells) throw std::bad_alloc();
    column.reset(new OpColumn{key, cells});
  }
  return column.get();
}
const void* Typed(const OpColumn& column, const Op& op, const Any& value) {
  if (!column.convert) return nullptr;
  if (const void* typed = column.convert(value)) return typed;
  TVM_FFI_THROW(TypeError) << "Op: expected " << PrettyType(column.schema()) << " for attribute '"
                           << column.key << "' of " << op->name << ", got " << value.GetTypeKey();
  TVM_FFI_UNREACHABLE();
}
/// Readers take no lock: a cell that is replaced stays where it is. The table is locked.
void Store(std::atomic<const OpCell*>* place, OpCell cell) {
  static auto* cells = new std::deque<OpCell>;
  place->store(&cells->emplace_back(std::move(cell)), std::memory_order_release);
}
/// The table is locked.
void SetCell(const OpColumn& column, const Op& op, OpCell cell) {
  std::atomic<const OpCell*>& place = column.cells[op->index];
  if (const OpCell* known = place.load(std::memory_order_relaxed)) {
    if (known->level == cell.level) {
      TVM_FFI_THROW(ValueError) << "Op: attribute '" << column.key << "' of " << op->name
                                << " is set already at level " << cell.level;
    }
    if (known->level > cell.level) return;
  }
  Store(&place, std::move(cell));
}
}  // namespace

OpColumn* TypedOpColumn(const char* key, const void* (*convert)(const Any&), TypeSchemaFn schema) {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  OpColumn* column = GetColumn(t, key);
  column->convert = convert;
  column->schema = schema;
  for (const auto& [name, op] : t.ops) {  // set before the type was known
    std::atomic<const OpCell*>& place = column->cells[op->index];
    if (const OpCell* cell = place.load(std::memory_order_relaxed)) {
      Store(&place, {cell->value, cell->level, Typed(*column, op, cell->value)});
    }
  }
  return column;
}
void SetOpCell(OpColumn* column, const Op& op, OpCell cell) {
  std::lock_guard lock(Table().mutex);
  SetCell(*column, op, std::move(cell));
}

Op Op::Get(const String& name) {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  if (auto it = t.ops.find(View(name)); it != t.ops.end()) return it->second;
  if (auto it = t.ops.find(OwnName(View(name))); it != t.ops.end()) return it->second;
  std::vector<std::string_view> names;
  for (const auto& [known, op] : t.ops) names.push_back(known);
  TVM_FFI_THROW(AttributeError) << "Op: expected the name of an operator, got '" << name << "'"
                                << DidYouMean(View(name), names);
  TVM_FFI_UNREACHABLE();
}
Op Op::Register(const String& name, const String& description) {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  auto it = t.ops.find(View(name));
  if (it == t.ops.end()) {
    auto index = static_cast<uint32_t>(t.ops.size());
    if (index >= kMaxOps - 1) {
      TVM_FFI_THROW(ValueError) << "Op: expected at most " << kMaxOps - 1
                                << " operators, got one more: '" << name << "'";
    }
    Op op = New<Op>([&](OpObj* n) { n->name = name, n->index = index; });
    it = t.ops.emplace(std::string(View(name)), std::move(op)).first;
  }
  if (description != "") const_cast<OpObj*>(it->second.get())->description = description;
  return it->second;
}
bool Op::Exists(const String& name) {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  return t.ops.count(View(name));
}
Any Op::GetAttr(const String& key) const {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  auto column = t.columns.find(View(key));
  if (column == t.columns.end()) return nullptr;
  const OpCell* cell = column->second->cells[get()->index].load(std::memory_order_relaxed);
  return cell ? cell->value : Any(nullptr);
}
void Op::SetAttr(const String& key, Any value, int64_t level) const {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  OpColumn* column = GetColumn(t, key);
  const void* typed = Typed(*column, *this, value);
  SetCell(*column, *this, {std::move(value), level, typed});
}
void Op::ResetAttr(const String& key) const {
  OpTable& t = Table();
  std::lock_guard lock(t.mutex);
  GetColumn(t, key)->cells[get()->index].store(nullptr, std::memory_order_release);
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
      [](Op op, String key, Any value, int64_t level) {
        runtime::NoteChange();
        op.SetAttr(key, value, level);
      },
      "Sets an attribute; of two values the one with the higher level stays.", Arg("self"),
      Arg("attr_name"), Arg("value"), Arg("plevel", 10));
  Def(
      "ir.Op.reset_attr",
      [](Op op, String key) {
        runtime::NoteChange();
        op.ResetAttr(key);
      },
      "Removes an attribute.", Arg("self"), Arg("attr_name"));
  Def(
      "ir.Op.add_argument",
      [](Op op, String name, String type, String description) {
        auto info = New<ArgumentInfo>([&](ArgumentInfoObj* n) {
          n->name = name;
          n->type_info = type;
          n->description = description;
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
