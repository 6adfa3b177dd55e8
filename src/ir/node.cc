// SPDX-License-Identifier: Apache-2.0
// Node tables: filling tvm-ffi's C tables, constructors, child lists, bounded destruction.
#include "tvm/ir/node.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ir/structural_equal.h"
#include "tvm/ir/structural.h"

namespace tvm {
namespace {
std::map<int32_t, NodeInfo*>& Registered() {
  static auto* infos = new std::map<int32_t, NodeInfo*>();
  return *infos;
}
TVMFFIByteArray Bytes(std::string_view s) { return {s.data(), s.size()}; }

/// Sets one field; an error names node and field.
void Assign(const NodeInfo& info, Object* node, const Field& f, const TVMFFIAny* value) {
  if (f.ops->set(reinterpret_cast<char*>(node) + f.offset, value) == 0) return;
  ffi::Error e = ffi::detail::MoveFromSafeCallRaised();
  throw ffi::Error(e.kind(), std::string(info.key) + ": field '" + f.name + "': " + e.message(),
                   e.backtrace());
}

/// Constructor of every node: positional arguments in the order of `params`, defaults for the rest.
int InitNode(void* self, const TVMFFIAny* args, int32_t n, TVMFFIAny* ret) {
  try {
    const NodeInfo& info = InfoOf(static_cast<NodeInfo*>(self)->type_index);
    if (n > static_cast<int>(info.params.size()))
      TVM_FFI_THROW(TypeError) << info.key << ": expected at most " << info.params.size()
                               << " arguments, got " << n;
    ObjectPtr<Object> node = info.create();
    for (int i = 0; i < static_cast<int>(info.params.size()); ++i) {
      const Field& f = *info.params[i];
      if (i < n) {
        Assign(info, node.get(), f, &args[i]);
      } else if (f.flags & kTVMFFIFieldFlagBitMaskHasDefault) {
        TVMFFIAny value = ffi::AnyView(f.value).CopyToTVMFFIAny();
        Assign(info, node.get(), f, &value);
      } else {
        TVM_FFI_THROW(TypeError) << info.key << ": missing argument '" << f.name << "'";
      }
    }
    if (info.init) info.init(node.get());
    *ret = ffi::detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any(ObjectRef(std::move(node))));
    return 0;
  } catch (...) {
    return ReportException();
  }
}
int CopyNodePacked(void* self, const TVMFFIAny* args, int32_t, TVMFFIAny* ret) {
  auto* node = static_cast<const Object*>(static_cast<void*>(args[0].v_obj));
  *ret = ffi::detail::AnyUnsafe::MoveAnyToTVMFFIAny(
      Any(ObjectRef(static_cast<NodeInfo*>(self)->copy(node))));
  return 0;
}

/// Where `name` stands in a list "a,b,c"; behind all others when it is not there.
size_t PositionIn(std::string_view list, std::string_view name) {
  for (size_t begin = 0; begin < list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    if (list.substr(begin, end - begin) == name) return begin;
    begin = end + 1;
  }
  return list.size();
}

ObjectPtr<Object> ShallowCopy(const NodeInfo& info, const Object* node) {
  if (info.copy) return info.copy(node);
  TVMFFIByteArray key = Bytes("__ffi_shallow_copy__");  // a class defined in Python
  const TVMFFITypeAttrColumn* column = TVMFFIGetTypeAttrColumn(&key);
  auto fn = ffi::AnyView::CopyFromTVMFFIAny(column->data[info.type_index - column->begin_index])
                .cast<ffi::Function>();
  return ffi::detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(
      fn(ffi::GetRef<ObjectRef>(node)).cast<ObjectRef>());
}
}  // namespace

std::atomic<const NodeInfo*> node_infos[kMaxTypes];

void SetTypeAttr(int32_t type_index, const char* name, Function fn) {
  TVMFFIAny any = AnyView(fn).CopyToTVMFFIAny();
  TVMFFIByteArray key = Bytes(name);
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterAttr(type_index, &key, &any));
}

void AddField(NodeInfo* info, const char* name, int64_t offset, const TypeOps* ops, bool inherited,
              std::initializer_list<Trait> traits) {
  Field f{name, offset, 0, ops, nullptr, inherited};
  for (const Trait& t : traits) {
    f.flags |= t.flags;
    if (t.flags & kTVMFFIFieldFlagBitMaskHasDefault) f.value = t.value;
  }
  info->own.push_back(std::move(f));
}

namespace {
Array<int64_t>& NodeTypes() {
  static auto* types = new Array<int64_t>();
  return *types;
}
}  // namespace

void RegisterNodeInfo(NodeInfo* info) {
  if (const TVMFFITypeMetadata* owner = TVMFFIGetTypeInfo(info->type_index)->metadata) {
    Dl_info lib{};
    dladdr(reinterpret_cast<void*>(owner->creator), &lib);
    TVM_FFI_THROW(ImportError) << "the type " << info->key << " is already registered by "
                               << (lib.dli_fname ? lib.dli_fname
                                                 : "another library in this process");
  }
  NodeTypes().push_back(info->type_index);
  TVMFFITypeMetadata meta{};
  meta.total_size = 0;
  meta.structural_eq_hash_kind = info->equality;
  meta.creator = info->creator;
  meta.doc = Bytes(info->doc);
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterMetadata(info->type_index, &meta));
  for (const Field& f : info->own) {
    if (f.inherited) continue;
    TVMFFIFieldInfo field{};
    field.name = Bytes(f.name);
    field.flags = f.flags;
    field.size = f.ops->size;
    field.alignment = f.ops->align;
    field.offset = f.offset;
    field.getter = f.ops->get;
    field.setter = reinterpret_cast<void*>(f.ops->set);
    field.default_value_or_factory = ffi::AnyView(f.value).CopyToTVMFFIAny();
    field.field_static_type_index = f.ops->static_index;
    TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeRegisterField(info->type_index, &field));
  }
  if (info->create) {
    SetTypeAttr(info->type_index, "__ffi_init__", Function::FromExternC(info, &InitNode, nullptr));
    SetTypeAttr(info->type_index, "__ffi_shallow_copy__",
                Function::FromExternC(info, &CopyNodePacked, nullptr));
  }
  Registered()[info->type_index] = info;
}

const NodeInfo& ResolveNodeInfo(int32_t type_index) {
  static std::recursive_mutex mutex;
  std::lock_guard lock(mutex);
  const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(type_index);
  auto it = Registered().find(type_index);
  auto* info =
      it != Registered().end() ? it->second : new NodeInfo();  // lives as long as the process
  info->type_index = type_index;
  info->children.clear();
  info->not_visited.clear();
  info->params.clear();
  for (const Field& f : info->own) {
    if (!(f.flags & kTVMFFIFieldFlagBitMaskInitOff)) info->params.push_back(&f);
  }
  if (type->type_depth > 1) {
    const NodeInfo& parent = InfoOf(type->type_ancestors[type->type_depth - 1]->type_index);
    info->children = parent.children;
    info->not_visited = parent.not_visited;
    for (const Field* f : parent.params) {
      bool listed = std::any_of(info->params.begin(), info->params.end(),
                                [&](const Field* p) { return p->offset == f->offset; });
      if (!listed) info->params.push_back(f);
    }
  }
  if (!info->param_order.empty()) {
    std::stable_sort(info->params.begin(), info->params.end(), [&](const Field* a, const Field* b) {
      return PositionIn(info->param_order, a->name) < PositionIn(info->param_order, b->name);
    });
  }
  std::stable_partition(info->params.begin(), info->params.end(), [](const Field* f) {
    return !(f->flags & kTVMFFIFieldFlagBitMaskHasDefault);
  });
  std::vector<const Field*> own;
  for (const Field& f : info->own) {
    if (!f.inherited) own.push_back(&f);
  }
  for (int i = 0; i < type->num_fields; ++i) {
    const TVMFFIFieldInfo* f = &type->fields[i];
    ChildKind kind = !own.empty()                               ? own[i]->ops->child
                     : f->field_static_type_index == kTVMFFIAny ? ChildKind::kAny
                     : f->field_static_type_index >= kTVMFFIStaticObjectBegin && f->size == 8
                         ? ChildKind::kRef
                         : ChildKind::kNone;
    bool ignored = (f->flags & kTVMFFIFieldFlagBitMaskSEqHashIgnore) &&
                   (f->flags & kTVMFFIFieldFlagBitMaskReprOff);
    if (kind == ChildKind::kNone) continue;
    if (f->flags & kNotVisited) {
      info->not_visited.push_back({f->offset, kind, f});
    } else if (!ignored) {
      info->children.push_back({f->offset, kind, f});
    }
  }
  if (type_index < kMaxTypes) node_infos[type_index].store(info, std::memory_order_release);
  return *info;
}

namespace {
bool MapValue(const Any& value, MapFn map, void* context, Any* result);
/// The array with its elements mapped, undefined when all of them are the same. `fits`: every new
/// element is of the class of the old one.
Array<Any> MapArray(const ffi::ArrayObj* array, MapFn map, void* context, bool* fits) {
  Array<Any> copy{ffi::UnsafeInit{}};
  auto set = [&](size_t i, Any now) {
    *fits = *fits && now.type_index() == (*array)[i].type_index();
    if (!copy.defined()) copy = Array<Any>(array->begin(), array->end());
    copy.Set(i, std::move(now));
  };
  for (size_t i = 0; i < array->size(); ++i) {
    const Any& old = (*array)[i];
    if (old.type_index() >= ffi::TypeIndex::kTVMFFIDynObjectBegin) [[likely]] {
      ObjectRef now;
      if (map(context, ObjectIn(old), &now)) set(i, std::move(now));
    } else if (IsContainer(old.type_index())) {
      Any now;
      if (!MapValue(old, map, context, &now)) continue;
      set(i, std::move(now));
      *fits = false;  // what is inside was not looked at
    }
  }
  return copy;
}
bool MapMap(const ffi::MapObj* map_obj, MapFn map, void* context, Any* result) {
  Map<Any, Any> mapped;
  bool changed = false;
  auto one = [&](const Any& old) {
    Any now;
    if (!MapValue(old, map, context, &now)) return old;
    changed = true;
    return now;
  };
  for (const auto& [k, v] : *map_obj) {
    Any key = one(k);
    mapped.Set(std::move(key), one(v));
  }
  if (changed) *result = std::move(mapped);
  return changed;
}
/// Whether something in the value changes, and what it becomes.
bool MapValue(const Any& value, MapFn map, void* context, Any* result) {
  int32_t t = value.type_index();
  if (t == ffi::TypeIndex::kTVMFFIArray) {
    bool fits = true;
    Array<Any> mapped = MapArray(value.as<ffi::ArrayObj>(), map, context, &fits);
    if (!mapped.defined()) return false;
    *result = std::move(mapped);
    return true;
  }
  if (t == ffi::TypeIndex::kTVMFFIMap) return MapMap(value.as<ffi::MapObj>(), map, context, result);
  if (t < ffi::TypeIndex::kTVMFFIDynObjectBegin) return false;
  ObjectRef now;
  if (!map(context, ObjectIn(value), &now)) return false;
  *result = std::move(now);
  return true;
}
}  // namespace

bool MapChildrenImpl(const Object* node, MapFn map, void* context, ObjectRef* result) {
  const NodeInfo& info = InfoOf(node->type_index());
  ObjectPtr<Object> copy;
  for (const Child& c : info.children) {
    const char* p = reinterpret_cast<const char*>(node) + c.offset;
    auto target = [&] {
      if (!copy) copy = ShallowCopy(info, node);
      return reinterpret_cast<char*>(copy.get()) + c.offset;
    };
    auto replace = [&](ObjectRef now) {  // by what fits: the old one did
      *reinterpret_cast<ObjectRef*>(target()) = std::move(now);
    };
    Any mapped;
    if (c.kind == ChildKind::kAny) {
      if (!MapValue(*reinterpret_cast<const Any*>(p), map, context, &mapped)) continue;
    } else {
      const auto& ref = *reinterpret_cast<const ObjectRef*>(p);
      if (!ref.defined()) continue;
      int32_t t = ref->type_index();
      if (t >= ffi::TypeIndex::kTVMFFIDynObjectBegin) [[likely]] {
        ObjectRef now;
        if (!map(context, ref, &now)) continue;
        if (now.defined() && now->type_index() == t) {
          replace(std::move(now));
          continue;
        }
        mapped = std::move(now);
      } else if (t == ffi::TypeIndex::kTVMFFIArray) {
        bool fits = true;
        Array<Any> now =
            MapArray(static_cast<const ffi::ArrayObj*>(ref.get()), map, context, &fits);
        if (!now.defined()) continue;
        if (fits) {
          replace(std::move(now));
          continue;
        }
        mapped = std::move(now);
      } else if (t == ffi::TypeIndex::kTVMFFIMap) {
        if (!MapMap(static_cast<const ffi::MapObj*>(ref.get()), map, context, &mapped)) continue;
      } else {
        continue;
      }
    }
    TVM_FFI_CHECK_SAFE_CALL(ffi::reflection::CallFieldSetter(
        c.info, target(), reinterpret_cast<const TVMFFIAny*>(&mapped)));
  }
  if (!copy) return false;
  if (info.init) info.init(copy.get());
  *result = ObjectRef(std::move(copy));
  return true;
}

ObjectRef CopyNode(const Object* node) {
  return ObjectRef(ShallowCopy(InfoOf(node->type_index()), node));
}

// ---- memory -----------------------------------------------------------------------------------
thread_local constinit FreeBlocks* free_blocks = nullptr;
namespace {
/// Makes the lists of a thread on its first use of them, and ends them with the thread.
struct OwnedBlocks {
  std::unique_ptr<FreeBlocks> blocks = std::make_unique<FreeBlocks>();
  OwnedBlocks() { free_blocks = blocks.get(); }
  ~OwnedBlocks() { free_blocks = nullptr; }
};
}  // namespace
FreeBlocks::~FreeBlocks() {
  for (Block* block : head) {
    while (block) std::free(std::exchange(block, block->next));
  }
}
void* AllocateBlock(size_t size) {
#ifndef __SANITIZE_ADDRESS__  // which wants to see every use of what was freed
  static thread_local OwnedBlocks owned;
  (void)&owned;
#endif
  void* block = std::malloc(size);
  if (!block) throw std::bad_alloc();
  return block;
}
void FreeBlock(void* block) { std::free(block); }

void BoundedDelete(void* object, int flags) {
  struct Pending {
    void* object;
    int flags;
  };
  static constinit thread_local int depth = 0;
  static constinit thread_local std::vector<Pending>* pending = nullptr;
  auto destroy = InfoOf(static_cast<TVMFFIObject*>(object)->type_index).destroy;
  if (depth >= 256) {  // the object is dead already; only its members still have to go
    if (!pending) pending = new std::vector<Pending>();
    return pending->push_back({object, flags});
  }
  ++depth;
  destroy(object, flags);
  while (depth == 1 && pending && !pending->empty()) {
    Pending p = pending->back();
    pending->pop_back();
    InfoOf(static_cast<TVMFFIObject*>(p.object)->type_index).destroy(p.object, p.flags);
  }
  --depth;
}

HandlerTable::HandlerTable(std::initializer_list<std::pair<int32_t, Fn>> handlers)
    : handlers_(handlers),
      cache_(static_cast<std::atomic<Fn>*>(calloc(kMaxTypes, sizeof(std::atomic<Fn>)))) {}

void HandlerTable::None() {}
HandlerTable::Fn HandlerTable::Resolve(int32_t type_index) const {
  const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(type_index);
  Fn found = &None;
  int best = -1;
  for (const auto& [index, fn] : handlers_) {
    int depth = index == type_index ? type->type_depth : -1;
    for (int d = 0; d < type->type_depth && depth < 0; ++d) {
      if (type->type_ancestors[d]->type_index == index) depth = d;
    }
    if (depth > best) {
      best = depth;
      found = fn;
    }
  }
  if (type_index < kMaxTypes) cache_[type_index].store(found, std::memory_order_relaxed);
  return found;
}

// ---- entry points that tvm-ffi implements --------------------------------
namespace {
template <class... A>
Any CallDeep(const ffi::Function& fn, A&&... args) {
  auto call = [&] { return fn(args...); };
  if (stack_state.deep) return call();
  // These functions have no effects: try where we are, which costs nothing, and once more where
  // there is room.
  try {
    return call();
  } catch (const ffi::Error& e) {
    if (e.kind() != "RecursionError") throw;
  }
  return OnDeepStack(call);
}
#define TVM_FFI_FUNCTION(name)                                                   \
  ([]() -> const ffi::Function& {                                                \
    static auto* fn = new ffi::Function(ffi::Function::GetGlobalRequired(name)); \
    return *fn;                                                                  \
  }())
/// Loaded data did not pass a constructor: run every Init, children first.
void InitLoaded(const ObjectRef& node, std::unordered_map<const Object*, bool>* done) {
  if (!done->emplace(node.get(), true).second) return;
  CheckStack();
  auto visit = [&](const ObjectRef& c) { InitLoaded(c, done); };
  VisitChildren(node.get(), visit);
  for (const Child& c : InfoOf(node->type_index()).not_visited) {
    VisitValue(Any(*reinterpret_cast<const ObjectRef*>(reinterpret_cast<const char*>(node.get()) +
                                                       c.offset)),
               visit);
  }
  if (auto init = InfoOf(node->type_index()).init) init(const_cast<Object*>(node.get()));
}
}  // namespace

bool StructuralEqual(const Any& a, const Any& b, bool map_free_vars) {
  if (auto known = CompareFields(a, b, map_free_vars, false)) return *known;
  return CallDeep(TVM_FFI_FUNCTION("ffi.StructuralEqual"), a, b, map_free_vars, false).cast<bool>();
}
int64_t StructuralHash(const Any& a, bool map_free_vars) {
  return CallDeep(TVM_FFI_FUNCTION("ffi.StructuralHash"), a, map_free_vars, false).cast<int64_t>();
}
String SaveJson(const Any& a) {
  return CallDeep(TVM_FFI_FUNCTION("ffi.ToJSONGraphString"), a, nullptr).cast<String>();
}
Any LoadJson(const String& text) {
  Any value = CallDeep(TVM_FFI_FUNCTION("ffi.FromJSONGraphString"), text);
  std::unordered_map<const Object*, bool> done;
  OnDeepStack([&] {
    auto visit = [&](const ObjectRef& r) { InitLoaded(r, &done); };
    VisitValue(value, visit);
  });
  return value;
}

namespace {
/// Access paths of the first difference, or None.
Any FirstMismatch(Any a, Any b, bool map_free_vars, bool skip_tensor_content) {
  if (CompareFields(a, b, map_free_vars, skip_tensor_content).value_or(false)) return nullptr;
  return CallDeep(TVM_FFI_FUNCTION("ffi.GetFirstStructuralMismatch"), a, b, map_free_vars,
                  skip_tensor_content);
}
String Repr(Any a) {
  try {
    return CallDeep(TVM_FFI_FUNCTION("ffi.ReprPrint"), a).cast<String>();
  } catch (const ffi::Error& e) {  // tvm-ffi's printer has its own stack, limited to 2^20 levels
    if (e.message().find("maximum stack depth") != std::string::npos) ThrowRecursionError();
    throw;
  }
}

Any DescribeNode(String key) {
  int32_t index;
  TVMFFIByteArray bytes{key.data(), key.size()};
  if (TVMFFITypeKeyToIndex(&bytes, &index) != 0) {
    ffi::detail::MoveFromSafeCallRaised();
    return nullptr;
  }
  const NodeInfo& info = InfoOf(index);
  std::vector<Arg> args;
  std::vector<TypeSchemaFn> schemas;
  for (const Field* f : info.params) {
    args.push_back(f->flags & kTVMFFIFieldFlagBitMaskHasDefault ? Arg(f->name, f->value)
                                                                : Arg(f->name));
    schemas.push_back(f->ops->schema);
  }
  return Describe(info.doc, args, schemas);
}

TVM_REGISTER() {
  RegisterBase<NodeObj>("Base of all nodes.");
  Def("ir.structural_equal", &StructuralEqual, "Equality up to the names of bound variables.",
      Arg("lhs"), Arg("rhs"), Arg("map_free_vars", false));
  Def("ir.get_first_structural_mismatch", &FirstMismatch,
      "The access paths to the first difference on both sides, or None.", Arg("lhs"), Arg("rhs"),
      Arg("map_free_vars", false), Arg("skip_tensor_content", false));
  Def("ir.structural_hash", &StructuralHash, "Hash that agrees with structural_equal.", Arg("node"),
      Arg("map_free_vars", false));
  Def("ir.save_json", &SaveJson, "The node and all it refers to, as JSON text.", Arg("node"));
  Def("ir.load_json", &LoadJson, "Reads what save_json wrote and checks every node in it.",
      Arg("json_str"));
  Def(
      "ir.VisitChildren",
      [](ObjectRef node, Function visit) {
        VisitChildren(node.get(), [&](const ObjectRef& child) { visit(child); });
      },
      "Calls visit on every child node.", Arg("node"), Arg("visit"));
  Def(
      "ir.MapChildren",
      [](ObjectRef node, Function map) {
        return MapChildren(node.get(),
                           [&](const ObjectRef& child) { return map(child).cast<ObjectRef>(); });
      },
      "The node with every child replaced by what map gives.", Arg("node"), Arg("map"));
  Def("ir.DescribeNode", &DescribeNode, "", Arg("key"));
  Def("ir.NodeTypes", [] { return NodeTypes(); }, "The types of all nodes, by number.");
  Def("ir.Repr", &Repr, "Raw form: class and fields.", Arg("node"));
}
}  // namespace
}  // namespace tvm
