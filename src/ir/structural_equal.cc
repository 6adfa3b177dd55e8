// SPDX-License-Identifier: Apache-2.0
// Comparing nodes field by field.
#include "ir/structural_equal.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>

namespace tvm {
namespace {

struct Step {
  enum Kind : uint8_t { kRef, kAny, kBytes, kOther } kind;
  bool defines;
  int64_t offset;
  const TVMFFIFieldInfo* field;
};
/// How the nodes of a class are compared.
struct Plan {
  TVMFFISEqHashKind kind = kTVMFFISEqHashKindUnsupported;
  CompareHook hook = nullptr;
  std::vector<Step> steps;
};
std::atomic<const Plan*> plans[kMaxTypes];
CompareHook hooks[kMaxTypes];  // written while the library is initialised

bool HasForeignHook(int32_t type_index) {
  constexpr std::string_view name = "__s_equal__";
  TVMFFIByteArray key{name.data(), name.size()};
  const TVMFFITypeAttrColumn* column = TVMFFIGetTypeAttrColumn(&key);
  if (!column || type_index < column->begin_index) return false;
  int64_t at = type_index - column->begin_index;
  return at < static_cast<int64_t>(column->size) && column->data[at].type_index != kTVMFFINone;
}
void AddSteps(const TVMFFITypeInfo* type, Plan* plan) {
  for (int i = 0; i < type->num_fields; ++i) {
    const TVMFFIFieldInfo* field = &type->fields[i];
    if (field->flags & kTVMFFIFieldFlagBitMaskSEqHashIgnore) continue;
    int32_t t = field->field_static_type_index;
    Step::Kind kind = Step::kOther;
    if (t == kTVMFFIInt || t == kTVMFFIBool || t == kTVMFFIDataType) {
      kind = Step::kBytes;
    } else if (t >= kTVMFFIStaticObjectBegin && field->size == sizeof(void*)) {
      kind = Step::kRef;
    } else if (t == kTVMFFIAny && field->size == sizeof(TVMFFIAny)) {
      kind = Step::kAny;
    }
    bool defines = field->flags & (kTVMFFIFieldFlagBitMaskSEqHashDefPattern |
                                   kTVMFFIFieldFlagBitMaskSEqHashDefSimple);
    plan->steps.push_back({kind, defines, field->offset, field});
  }
}
const Plan& MakePlan(int32_t type_index) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (const Plan* made = plans[type_index].load(std::memory_order_acquire)) return *made;
  auto* plan = new Plan();  // lives as long as the process
  const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(type_index);
  plan->hook = hooks[type_index];
  bool is_known = type->metadata && (plan->hook || !HasForeignHook(type_index));
  if (is_known) plan->kind = type->metadata->structural_eq_hash_kind;
  for (int d = 1; d < type->type_depth; ++d) AddSteps(type->type_ancestors[d], plan);
  AddSteps(type, plan);
  plans[type_index].store(plan, std::memory_order_release);
  return *plan;
}
const Plan* PlanOf(int32_t type_index) {
  if (type_index >= kMaxTypes) return nullptr;
  const Plan* plan = plans[type_index].load(std::memory_order_acquire);
  return plan ? plan : &MakePlan(type_index);
}
void Prefetch(const Any& value) {
  if (value.type_index() >= ffi::TypeIndex::kTVMFFIDynObjectBegin)
    __builtin_prefetch(ObjectIn(value).get());
}
bool IsText(int32_t t) { return t == kTVMFFISmallStr || t == kTVMFFIStr; }

}  // namespace

void SetCompareHook(int32_t type_index, CompareHook hook) { hooks[type_index] = hook; }

bool Comparison::Values(const Any& a, const Any& b, bool defines) {
  int32_t t = a.type_index();
  if (IsText(t) && IsText(b.type_index())) return a.cast<String>() == b.cast<String>();
  if (t != b.type_index()) return false;
  if (t >= kTVMFFIStaticObjectBegin) return Objects(ObjectIn(a), ObjectIn(b), defines);
  const auto& x = reinterpret_cast<const TVMFFIAny&>(a);
  const auto& y = reinterpret_cast<const TVMFFIAny&>(b);
  switch (t) {
    case kTVMFFINone:
      return true;
    case kTVMFFIInt:
    case kTVMFFIBool:
      return x.v_int64 == y.v_int64;
    case kTVMFFIFloat:  // zeros of different signs differ
      return x.v_int64 == y.v_int64 || (std::isnan(x.v_float64) && std::isnan(y.v_float64));
    case kTVMFFIDataType:
      return std::memcmp(&x.v_dtype, &y.v_dtype, sizeof(DLDataType)) == 0;
    default:
      return GiveUp();
  }
}

bool Comparison::Objects(const ObjectRef& a, const ObjectRef& b, bool defines) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  int32_t t = a->type_index();
  if (t != b->type_index()) return false;
  if (t >= ffi::TypeIndex::kTVMFFIDynObjectBegin) return Nodes(a.get(), b.get(), defines);
  if (t == kTVMFFIArray) {
    auto *x = static_cast<const ffi::ArrayObj*>(a.get()),
         *y = static_cast<const ffi::ArrayObj*>(b.get());
    if (x->size() != y->size()) return false;
    constexpr size_t kMany = 1024;  // bindings mostly, each with a variable and its id
    if (x->size() > kMany) {
      to_right_.Reserve(2 * x->size());
      to_left_.Reserve(2 * x->size());
    }
    constexpr size_t kAhead = 8;  // long lists of nodes wait for memory otherwise
    for (size_t i = 0; i < x->size(); ++i) {
      if (i + kAhead < x->size()) {
        Prefetch((*x)[i + kAhead]);
        Prefetch((*y)[i + kAhead]);
      }
      if (!Values((*x)[i], (*y)[i], defines)) return false;
    }
    return true;
  }
  if (t == kTVMFFIMap) {
    return Maps(static_cast<const ffi::MapObj*>(a.get()), static_cast<const ffi::MapObj*>(b.get()),
                defines);
  }
  if (t == kTVMFFIStr) return Any(a).cast<String>() == Any(b).cast<String>();
  if (t == kTVMFFITensor || t == kTVMFFIShape) {  // there is no variable in them
    static const auto* equal =
        new ffi::Function(ffi::Function::GetGlobalRequired("ffi.StructuralEqual"));
    return a.same_as(b) || (*equal)(a, b, false, skip_tensor_content_).cast<bool>();
  }
  return GiveUp();
}

bool Comparison::Maps(const ffi::MapObj* a, const ffi::MapObj* b, bool defines) {
  if (a->size() != b->size()) return false;
  for (const auto& [key, value] : *a) {
    Any other = key;
    if (key.type_index() >= ffi::TypeIndex::kTVMFFIDynObjectBegin) {
      const Object** mapped = to_right_.Find(ObjectIn(key).get());
      if (mapped) other = ffi::GetRef<ObjectRef>(*mapped);
    }
    auto found = b->find(other);
    // Keys that are neither mapped nor the same may still be equal.
    if (found == b->end()) return IsText(key.type_index()) ? false : GiveUp();
    if (!Values(value, (*found).second, defines)) return false;
  }
  return true;
}

bool Comparison::Nodes(const Object* a, const Object* b, bool defines) {
  const Plan* plan = PlanOf(a->type_index());
  auto bits = reinterpret_cast<uintptr_t>(a) + 31 * reinterpret_cast<uintptr_t>(b);
  auto& known = equal_[(bits >> 5) % equal_.size()];
  bool is_known = known.first == a && known.second == b;
  switch (plan ? plan->kind : kTVMFFISEqHashKindUnsupported) {
    case kTVMFFISEqHashKindUniqueInstance:
      return a == b;
    case kTVMFFISEqHashKindConstTreeNode:
      return a == b || Fields(a, b, defines);
    case kTVMFFISEqHashKindTreeNode: {
      if (is_known) return true;
      if (const Object** other = equal_to_.Find(a); other && *other == b) return true;
      constexpr int64_t kFewNodes = 16;  // are compared again as fast as they are looked up
      int64_t before = equal_to_.visits();
      if (!Fields(a, b, defines)) return false;
      if (equal_to_.visits() - before > kFewNodes) equal_to_.Keep(a, b);
      break;
    }
    case kTVMFFISEqHashKindFreeVar:
    case kTVMFFISEqHashKindDAGNode: {
      if (is_known) return true;
      if (const Object** mapped = to_right_.Find(a)) {
        if (*mapped != b) return false;
        break;
      }
      if (to_left_.Find(b)) return false;
      bool is_var = plan->kind == kTVMFFISEqHashKindFreeVar;
      if (is_var && !defines && !map_free_vars_) {
        if (a == b) free_.Insert(a, true);
        return a == b;
      }
      if (!Fields(a, b, defines)) return false;
      to_right_.Insert(a, b);
      to_left_.Insert(b, a);
      if (free_.size() && (free_.Find(a) || free_.Find(b))) {  // nothing with them stays equal
        equal_.fill({});
        equal_to_ = {};
      }
      break;
    }
    default:
      return GiveUp();
  }
  known = {a, b};
  return true;
}

bool Comparison::Fields(const Object* a, const Object* b, bool defines) {
  if (StackIsLow()) [[unlikely]]
    return Recurse([&] { return Fields(a, b, defines); });
  const Plan* plan = PlanOf(a->type_index());
  if (plan->hook) return plan->hook(this, a, b, defines);
  for (const Step& step : plan->steps) {
    const char* x = reinterpret_cast<const char*>(a) + step.offset;
    const char* y = reinterpret_cast<const char*>(b) + step.offset;
    bool region = defines || step.defines;
    bool same = false;
    switch (step.kind) {
      case Step::kBytes:
        same = std::memcmp(x, y, step.field->size) == 0;
        break;
      case Step::kRef:
        same = Objects(*reinterpret_cast<const ObjectRef*>(x),
                       *reinterpret_cast<const ObjectRef*>(y), region);
        break;
      case Step::kAny:
        same = Values(*reinterpret_cast<const Any*>(x), *reinterpret_cast<const Any*>(y), region);
        break;
      case Step::kOther: {
        ffi::reflection::FieldGetter get(step.field);
        same = Values(get(a), get(b), region);
      }
    }
    if (!same) return false;
  }
  return true;
}

std::optional<bool> CompareFields(const Any& a, const Any& b, bool map_free_vars,
                                  bool skip_tensor_content) {
  Comparison all(map_free_vars, skip_tensor_content);
  bool equal = all.Values(a, b, false);
  if (all.gave_up()) return std::nullopt;
  return equal;
}

// ---- outline ----------------------------------------------------------------------------------
namespace {
class Outline {
 public:
  uint64_t hash = 0;
  void Add(uint64_t value) { hash = (std::rotl(hash, 5) ^ value) * 0x9E3779B97F4A7C15u; }
  void Add(std::string_view text) { Add(std::hash<std::string_view>()(text)); }
  void Value(const Any& value) {
    int32_t t = value.type_index();
    if (IsText(t)) return Add(View(value.cast<String>()));
    if (t >= kTVMFFIStaticObjectBegin) return Node(ObjectIn(value).get());
    const auto& raw = reinterpret_cast<const TVMFFIAny&>(value);
    Add(t);
    if (t == kTVMFFIInt || t == kTVMFFIBool) Add(raw.v_int64);
    if (t == kTVMFFIFloat && !std::isnan(raw.v_float64)) Add(raw.v_int64);
  }
  void Node(const Object* node) {
    if (StackIsLow()) [[unlikely]]
      return Recurse([&] { Node(node); });
    if (!node) return Add(0);
    int32_t t = node->type_index();
    Add(t);
    if (t == kTVMFFIArray) {
      auto* array = static_cast<const ffi::ArrayObj*>(node);
      Add(array->size());
      for (const Any& item : *array) Value(item);
    } else if (t == kTVMFFIMap) {
      uint64_t sum = 0;  // in any order
      for (const auto& [key, value] : *static_cast<const ffi::MapObj*>(node)) {
        Outline item;
        item.Value(key);
        item.Value(value);
        sum += item.hash;
      }
      Add(sum);
    } else if (t >= ffi::TypeIndex::kTVMFFIDynObjectBegin) {
      Fields(node);
    }
  }

 private:
  void Fields(const Object* node) {
    const Plan* plan = PlanOf(node->type_index());
    if (!plan || plan->kind == kTVMFFISEqHashKindFreeVar) return;
    if (plan->kind == kTVMFFISEqHashKindUniqueInstance)
      return Add(reinterpret_cast<uintptr_t>(node));
    if (plan->steps.empty()) return;
    // What stands in several places is looked at once: f(y, y) of y = f(x, x) of x = ...
    bool is_shared = !node->unique();
    if (const uint64_t* known = is_shared ? shared_.Find(node) : nullptr) return Add(*known);
    uint64_t before = std::exchange(hash, 0);
    Steps(node, *plan);
    uint64_t own = std::exchange(hash, before);
    Add(own);
    if (is_shared) shared_.Insert(node, own);
  }
  void Steps(const Object* node, const Plan& plan) {
    for (const Step& step : plan.steps) {
      const char* at = reinterpret_cast<const char*>(node) + step.offset;
      switch (step.kind) {
        case Step::kBytes:
          Add(std::string_view(at, step.field->size));
          break;
        case Step::kRef:
          Node(reinterpret_cast<const ObjectRef*>(at)->get());
          break;
        case Step::kAny:
          Value(*reinterpret_cast<const Any*>(at));
          break;
        case Step::kOther:
          Value(ffi::reflection::FieldGetter(step.field)(node));
      }
    }
  }
  PointerMap<uint64_t> shared_;
};
}  // namespace

uint64_t OutlineHash(const Any& value) {
  Outline outline;
  outline.Value(value);
  return outline.hash;
}

}  // namespace tvm
