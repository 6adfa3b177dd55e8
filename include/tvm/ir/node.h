// SPDX-License-Identifier: Apache-2.0
// One field list per node: registration with tvm-ffi, construction, child visiting, copy-on-write
// mapping. The only header that names tvm-ffi's reflection flags.
#pragma once
#include <atomic>
#include <unordered_map>
#include <vector>

#include "tvm/ir/stack.h"
#include "tvm/runtime/data_type.h"
#include "tvm/runtime/def.h"

namespace tvm {

// ---- field traits ------------------------------------------------------------------------------
struct Trait {
  int64_t flags;
  Any value;
};
/// The field defines the variables in it for the rest of the node.
inline Trait Binds() { return {kTVMFFIFieldFlagBitMaskSEqHashDefPattern, nullptr}; }
/// The field has no meaning for equality, hash, printing and visiting (spans).
inline Trait Ignored() {
  return {kTVMFFIFieldFlagBitMaskSEqHashIgnore | kTVMFFIFieldFlagBitMaskReprOff, nullptr};
}
/// The field is printed but does not count for equality (names of variables).
inline Trait NameOnly() { return {kTVMFFIFieldFlagBitMaskSEqHashIgnore, nullptr}; }
/// The field refers to something beyond the program (the tensor an element is read from): visitors
/// and mutators do not go there.
constexpr int64_t kNotVisited = int64_t{1} << 62;
inline Trait NotVisited() { return {kNotVisited, nullptr}; }
/// The field follows from the rest of the program (what inference found about an expression): it is
/// saved, but neither compared nor visited, and no constructor parameter.
inline Trait Derived() {
  return {kTVMFFIFieldFlagBitMaskSEqHashIgnore | kTVMFFIFieldFlagBitMaskReprOff |
              kTVMFFIFieldFlagBitMaskInitOff | kNotVisited,
          nullptr};
}
/// `Init` fills the field; it is no constructor parameter.
inline Trait Computed() { return {kTVMFFIFieldFlagBitMaskInitOff, nullptr}; }
inline Trait Default(Any value) { return {kTVMFFIFieldFlagBitMaskHasDefault, std::move(value)}; }

// ---- per type tables (no code per class beyond these function pointers)
// ---------------------------
enum class ChildKind : uint8_t { kNone, kRef, kAny };
struct TypeOps {
  int32_t size, align, static_index;
  ChildKind child;
  TVMFFIFieldGetter get;
  TVMFFIFieldSetter set;
  std::string (*schema)();
};
struct Field {
  const char* name;
  int64_t offset, flags;
  const TypeOps* ops;
  Any value;
  bool HasDefault() const { return flags & kTVMFFIFieldFlagBitMaskHasDefault; }
  bool inherited;  // a field of a base class, listed again because the constructor takes it here
};
struct Child {
  int64_t offset;
  ChildKind kind;
  const TVMFFIFieldInfo* info;
};
struct NodeInfo {
  int32_t type_index = 0;
  const char *key = nullptr, *doc = "";
  ObjectPtr<Object> (*create)() = nullptr;
  ObjectPtr<Object> (*copy)(const Object*) = nullptr;
  void (*init)(Object*) = nullptr;
  TVMFFIObjectCreator creator = nullptr;
  void (*destroy)(void*, int) = nullptr;
  TVMFFISEqHashKind equality = kTVMFFISEqHashKindUnsupported;
  bool shared = false;  // referred to from many places as one thing: mutators map it once
  std::string_view param_order;
  std::vector<Field> own;
  // From here on filled on first use: the parent may register later than the child.
  std::vector<Child> children, not_visited;
  std::vector<const Field*> params;
};

constexpr int kMaxTypes = 1 << 14;
extern std::atomic<const NodeInfo*> node_infos[kMaxTypes];
const NodeInfo& ResolveNodeInfo(int32_t type_index);
inline const NodeInfo& InfoOf(int32_t type_index) {
  const NodeInfo* info =
      type_index < kMaxTypes ? node_infos[type_index].load(std::memory_order_acquire) : nullptr;
  return info ? *info : ResolveNodeInfo(type_index);
}
void RegisterNodeInfo(NodeInfo* info);
void AddField(NodeInfo*, const char* name, int64_t offset, const TypeOps*, bool inherited,
              std::initializer_list<Trait>);
/// Custom equality or hashing: see `__s_equal__` and `__s_hash__` of tvm-ffi.
void SetTypeAttr(int32_t type_index, const char* name, Function fn);
void BoundedDelete(void* object, int flags);  // destroys chains of any length in bounded stack

template <class T>
int GetField(void* p, TVMFFIAny* r) noexcept {
  // tvm-ffi's own recursion (equality, hash, JSON, repr, copy) passes here once per level.
  if constexpr (sizeof(T) == sizeof(void*) && !std::is_arithmetic_v<T>) {
    try {
      CheckStack();
    } catch (...) {
      return ReportException();
    }
  }
  *r = ffi::detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any(*static_cast<T*>(p)));
  return 0;
}
template <class T>
int SetField(void* p, const TVMFFIAny* v) noexcept {
  try {
    auto view = ffi::AnyView::CopyFromTVMFFIAny(*v);
    if constexpr (std::is_same_v<T, Any>) {
      *static_cast<T*>(p) = view;
    } else {
      auto value = view.try_cast<T>();
      if (!value.has_value() || IsMissing<T>(*value))
        ThrowWrongType(view, &ffi::detail::TypeSchema<T>::v);
      *static_cast<T*>(p) = *std::move(value);
    }
    return 0;
  } catch (...) {
    return ReportException();
  }
}
template <class T>
struct IsNodeRef : std::is_base_of<ObjectRef, T> {};
template <class T>
struct IsNodeRef<Optional<T>>
    : std::bool_constant<std::is_base_of_v<ObjectRef, T> && sizeof(Optional<T>) == 8> {};
template <class T>
inline constexpr TypeOps kTypeOps = {sizeof(T),
                                     alignof(T),
                                     ffi::TypeToFieldStaticTypeIndex<T>::value,
                                     IsNodeRef<T>::value      ? ChildKind::kRef
                                     : std::is_same_v<T, Any> ? ChildKind::kAny
                                                              : ChildKind::kNone,
                                     &GetField<T>,
                                     &SetField<T>,
                                     &ffi::detail::TypeSchema<T>::v};

// ---- memory -----------------------------------------------------------------------------------
/// Passes make and drop nodes of a few sizes all the time. Each thread keeps some of the blocks it
/// frees; every block comes from malloc by itself, so any thread may free it.
struct FreeBlocks {
  static constexpr size_t kStep = 16, kClasses = 17, kMost = 512;
  struct Block {
    Block* next;
  };
  Block* head[kClasses] = {};
  uint16_t count[kClasses] = {};
  FreeBlocks() = default;
  ~FreeBlocks();
};
extern thread_local constinit FreeBlocks* free_blocks __attribute__((tls_model("initial-exec")));
void* AllocateBlock(size_t size);
void FreeBlock(void* block);  // when the thread keeps none of this size

template <class Obj>
constexpr size_t kSizeClass = (sizeof(Obj) + FreeBlocks::kStep - 1) / FreeBlocks::kStep;
template <class Obj>
void* AllocateNode() {
  static_assert(alignof(Obj) <= alignof(std::max_align_t));
  constexpr size_t c = kSizeClass<Obj>;
  if constexpr (c < FreeBlocks::kClasses) {
    FreeBlocks* kept = free_blocks;
    if (kept && kept->head[c]) {
      --kept->count[c];
      return std::exchange(kept->head[c], kept->head[c]->next);
    }
  }
  return AllocateBlock(c * FreeBlocks::kStep);
}
template <class Obj>
void FreeNode(void* memory) {
  constexpr size_t c = kSizeClass<Obj>;
  if constexpr (c < FreeBlocks::kClasses) {
    FreeBlocks* kept = free_blocks;
    if (kept && kept->count[c] < FreeBlocks::kMost) {
      ++kept->count[c];
      kept->head[c] = ::new (memory) FreeBlocks::Block{kept->head[c]};
      return;
    }
  }
  FreeBlock(memory);
}
template <class Obj, class... A>
ObjectPtr<Obj> NewObject(A&&... args) {
  struct Guard {
    void* memory;
    ~Guard() {
      if (memory) FreeNode<Obj>(memory);
    }
  } guard{AllocateNode<Obj>()};
  auto* node = ::new (guard.memory) Obj(std::forward<A>(args)...);
  guard.memory = nullptr;
  TVMFFIObject* header = ffi::detail::ObjectUnsafe::GetHeader(node);
  header->combined_ref_count = ffi::detail::kCombinedRefCountBothOne;
  header->type_index = Obj::RuntimeTypeIndex();
  header->__padding = 0;
  header->deleter = &BoundedDelete;
  return ffi::detail::ObjectUnsafe::ObjectPtrFromOwned<Obj>(node);
}
/// What tvm-ffi asks of a deleter: the value goes with the last strong reference, the memory with
/// the last weak one.
template <class Obj>
void DestroyNode(void* object, int flags) {
  auto* node =
      ffi::detail::ObjectUnsafe::RawObjectPtrFromUnowned<Obj>(static_cast<TVMFFIObject*>(object));
  if (flags & kTVMFFIObjectDeleterFlagBitMaskStrong) node->Obj::~Obj();
  if (flags & kTVMFFIObjectDeleterFlagBitMaskWeak) FreeNode<Obj>(node);
}
template <class Obj>
int CreateObject(TVMFFIObjectHandle* out) {
  try {
    CheckStack();  // JSON loading creates a node before its children
    *out = ffi::detail::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(NewObject<Obj>());
    return 0;
  } catch (...) {
    return ReportException();
  }
}

/// Registers `Obj` and its `Fields`. A base class's member listed again becomes a constructor
/// parameter at that place. `static constexpr std::string_view kParamOrder = "b,a"` gives the
/// constructor another order than equality and visiting use. `void Init()`, if any, fills computed
/// fields and checks invariants: it runs after construction, after MapChildren changed a child, and
/// after loading.
template <class Obj, bool kAbstract = false>
void RegisterNode(const char* doc = "") {
  static NodeInfo info;
  info.type_index = Obj::_GetOrAllocRuntimeTypeIndex();
  info.key = Obj::_type_key;
  info.doc = doc;
  info.equality = Obj::_type_s_eq_hash_kind;
  info.shared = Obj::_is_shared;
  if constexpr (requires { Obj::kParamOrder; }) info.param_order = Obj::kParamOrder;
  if constexpr (!kAbstract) {
    info.create = []() -> ObjectPtr<Object> { return NewObject<Obj>(); };
    info.creator = &CreateObject<Obj>;
    info.copy = [](const Object* n) -> ObjectPtr<Object> {
      return NewObject<Obj>(*static_cast<const Obj*>(n));
    };
    if constexpr (requires(Obj o) { o.Init(); })
      info.init = [](Object* n) { static_cast<Obj*>(n)->Init(); };
  }
  // Also for base classes: one that C++ code can create has to go as well.
  if constexpr (std::is_default_constructible_v<Obj>) info.destroy = &DestroyNode<Obj>;
  if constexpr (requires { Obj::Fields([](auto&&...) {}); }) {
    Obj::Fields([&]<class C, class T>(const char* name, T C::* member, auto... traits) {
      AddField(&info, name, ffi::reflection::GetFieldByteOffsetToObject<C, T>(member), &kTypeOps<T>,
               !std::is_same_v<C, Obj>, {traits...});
    });
  }
  RegisterNodeInfo(&info);
}
/// A base class: fields, but no constructor.
template <class Obj>
void RegisterBase(const char* doc = "") {
  RegisterNode<Obj, true>(doc);
}

/// Base of all nodes; its Python class completes the classes derived from it on first use.
struct NodeObj : Object {
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  static constexpr uint32_t _type_child_slots = 512;
  static constexpr bool _is_shared = false;
  TVM_FFI_DECLARE_OBJECT_INFO("ir.Node", NodeObj, Object);
};

/// `auto loop = New<For>([&](ForObj* n) { n->extent = e; });` runs Init.
template <class Ref, class F>
Ref New(F&& fill) {
  using Obj = typename Ref::ContainerType;
  auto p = NewObject<Obj>();
  fill(p.get());
  if constexpr (requires { p->Init(); }) p->Init();
  return Ref(std::move(p));
}

/// A reference class without constructors of its own.
#define TVM_NODE_REF(Name, Base, Obj)                            \
  struct Name : Base {                                           \
    TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Name, Base, Obj); \
  }

/// A copy of the node, of its own class; children are shared.
ObjectRef CopyNode(const Object* node);
/// Copy-on-write: `auto* n = Edit(&ref); n->body = b;` changes a copy unless `ref` is the only
/// owner.
template <class Ref>
auto* Edit(Ref* ref) {
  using Obj = typename Ref::ContainerType;
  if (!ref->unique()) *ref = Any(CopyNode(ref->get())).template cast<Ref>();
  return const_cast<Obj*>(static_cast<const Obj*>(ref->get()));
}

// ---- children
// ------------------------------------------------------------------------------------
inline bool IsContainer(int32_t t) {
  return t == ffi::TypeIndex::kTVMFFIArray || t == ffi::TypeIndex::kTVMFFIMap;
}

/// The object in `value`, without counting a reference to it.
inline const ObjectRef& ObjectIn(const Any& value) {
  return *reinterpret_cast<const ObjectRef*>(reinterpret_cast<const char*>(&value) +
                                             offsetof(TVMFFIAny, v_obj));
}
template <class F>
void VisitValue(const Any& value, F& visit);
template <class F>
void VisitObject(const ObjectRef& ref, F& visit) {
  int32_t t = ref->type_index();
  if (t >= ffi::TypeIndex::kTVMFFIDynObjectBegin) [[likely]] {
    visit(ref);
  } else if (t == ffi::TypeIndex::kTVMFFIArray) {
    for (const Any& e : *static_cast<const ffi::ArrayObj*>(ref.get())) VisitValue(e, visit);
  } else if (t == ffi::TypeIndex::kTVMFFIMap) {
    for (const auto& [k, v] : *static_cast<const ffi::MapObj*>(ref.get())) {
      VisitValue(k, visit);
      VisitValue(v, visit);
    }
  }
}
template <class F>
void VisitValue(const Any& value, F& visit) {
  if (value.type_index() >= ffi::TypeIndex::kTVMFFIStaticObjectBegin)
    VisitObject(ObjectIn(value), visit);
}
/// Calls `visit(const ObjectRef&)` on every child node, in field order, through arrays, maps and
/// optionals.
template <class F>
void VisitChildren(const Object* node, F&& visit) {
  for (const Child& c : InfoOf(node->type_index()).children) {
    const char* p = reinterpret_cast<const char*>(node) + c.offset;
    if (c.kind == ChildKind::kAny) {
      VisitValue(*reinterpret_cast<const Any*>(p), visit);
      continue;
    }
    const auto& ref = *reinterpret_cast<const ObjectRef*>(p);
    if (ref.defined()) VisitObject(ref, visit);
  }
}

/// Whether the child changes, and what it becomes. What stays needs no reference counted.
using MapFn = bool (*)(void*, const ObjectRef&, ObjectRef*);
bool MapChildrenImpl(const Object* node, MapFn map, void* context, ObjectRef* result);
template <class F>
bool MapChild(void* map, const ObjectRef& child, ObjectRef* result) {
  auto& f = *static_cast<F*>(map);
  if constexpr (requires { f.Step(child, result); }) {
    return f.Step(child, result);
  } else {
    *result = f(child);
    return !result->same_as(child);
  }
}
/// The node with every child mapped; the same object when no child changed. A child that no longer
/// fits its field raises TypeError.
template <class F>
ObjectRef MapChildren(const Object* node, F&& map) {
  ObjectRef result;
  if (MapChildrenImpl(node, &MapChild<std::decay_t<F>>, &map, &result)) return result;
  return ffi::GetRef<ObjectRef>(node);
}
/// The same object as a `Ref`; TypeError when it is none.
template <class Ref>
Ref As(ObjectRef node) {
  using Obj = typename Ref::ContainerType;
  if (node.defined() && node->IsInstance<Obj>()) [[likely]]
    return Ref(ffi::detail::ObjectUnsafe::ObjectPtrFromObjectRef<Obj>(std::move(node)));
  return Any(std::move(node)).template cast<Ref>();
}

// ---- passes
// --------------------------------------------------------------------------------------
/// Type index -> handler; a class without its own handler uses that of its nearest ancestor.
class HandlerTable {
 public:
  using Fn = void (*)();
  explicit HandlerTable(std::initializer_list<std::pair<int32_t, Fn>> handlers);
  Fn Find(int32_t type_index) const {
    Fn fn = type_index < kMaxTypes ? cache_[type_index].load(std::memory_order_relaxed) : nullptr;
    if (!fn) [[unlikely]]
      fn = Resolve(type_index);
    return fn == &None ? nullptr : fn;
  }

 private:
  static void None();  // not inline: one address in all libraries
  Fn Resolve(int32_t type_index) const;
  std::vector<std::pair<int32_t, Fn>> handlers_;
  std::atomic<Fn>* cache_;
};

/// Visits a program. `struct Count : Visitor<Count, ForObj> { void Visit(const ForObj*); }` handles
/// loops only and goes on below a node with VisitChildren(node, *this).
template <class Self, class... Nodes>
class Visitor {
 public:
  void operator()(const ObjectRef& node) {
    if (StackIsLow()) [[unlikely]]
      return Recurse([&] { (*this)(node); });
    if (auto fn =
            reinterpret_cast<void (*)(Self*, const Object*)>(Table().Find(node->type_index()))) {
      fn(static_cast<Self*>(this), node.get());
    } else {
      VisitChildren(node.get(), *this);
    }
  }

 private:
  static const HandlerTable& Table() {
    static const HandlerTable table(
        {{Nodes::RuntimeTypeIndex(),
          reinterpret_cast<HandlerTable::Fn>(+[](Self* self, const Object* n) {
            self->Visit(static_cast<const Nodes*>(n));
          })}...});
    return table;
  }
};

/// Rewrites a program, sharing what did not change. Handlers: `ObjectRef Rewrite(const ForObj*)`.
template <class Self, class... Nodes>
class Mutator {
 public:
  ObjectRef operator()(const ObjectRef& node) {
    ObjectRef result;
    return Step(node, &result) ? result : node;
  }
  /// Whether the node changes, and what it becomes.
  bool Step(const ObjectRef& node, ObjectRef* result) {
    if (StackIsLow()) [[unlikely]]
      return Recurse([&] { return Step(node, result); });
    if (!InfoOf(node->type_index()).shared) return Dispatch(node, result);
    if (auto it = shared_.find(node.get()); it != shared_.end()) {
      *result = it->second.second;
    } else {
      if (!Dispatch(node, result)) *result = node;
      shared_[node.get()] = {node, *result};  // the key must stay alive as long as its entry
    }
    return !result->same_as(node);
  }
  template <class Ref>
  Ref Mutate(const Ref& node) {
    ObjectRef result;
    return node.defined() && Step(node, &result) ? As<Ref>(std::move(result)) : node;
  }
  /// The node with its children rewritten: `For loop = Below<For>(op);`.
  template <class Ref>
  Ref Below(const typename Ref::ContainerType* node) {
    return As<Ref>(MapChildren(node, *this));
  }

 protected:
  /// Makes the mutator replace `from` (a buffer, an iterator) by `to` wherever it is used.
  void Remap(const ObjectRef& from, const ObjectRef& to) { shared_[from.get()] = {from, to}; }

 private:
  bool Dispatch(const ObjectRef& node, ObjectRef* result) {
    if (auto fn = reinterpret_cast<ObjectRef (*)(Self*, const Object*)>(
            Table().Find(node->type_index()))) {
      *result = fn(static_cast<Self*>(this), node.get());
      return !result->same_as(node);
    }
    return MapChildrenImpl(node.get(), &MapChild<Mutator>, this, result);
  }
  std::unordered_map<const Object*, std::pair<ObjectRef, ObjectRef>> shared_;
  static const HandlerTable& Table() {
    static const HandlerTable table(
        {{Nodes::RuntimeTypeIndex(),
          reinterpret_cast<HandlerTable::Fn>(+[](Self* self, const Object* n) -> ObjectRef {
            return self->Rewrite(static_cast<const Nodes*>(n));
          })}...});
    return table;
  }
};

}  // namespace tvm
