// SPDX-License-Identifier: Apache-2.0
// Digests of programs, by the fields of their nodes.
#include "ir/digest.h"

#include <algorithm>
#include <vector>

#include "tvm/ir/stack.h"
#include "tvm/runtime/tensor.h"

namespace tvm {
namespace {
using ffi::TypeIndex;
using runtime::Digest;

class Digester {
 public:
  std::optional<Digest> Run(const Any& value) {
    Digest digest;
    Put(&digest, value);
    return is_data_ ? std::optional(digest) : std::nullopt;
  }

 private:
  void Put(Digest* out, const Any& value) {
    int32_t type = value.type_index();
    if (auto text = value.as<String>()) {  // also one inside of the value
      out->Put(TypeIndex::kTVMFFIStr);
      return out->Put(View(*text));
    }
    if (type >= TypeIndex::kTVMFFIStaticObjectBegin) return out->Put(OfObject(ObjectIn(value)));
    TVMFFIAny raw = AnyView(value).CopyToTVMFFIAny();
    if (type == TypeIndex::kTVMFFIOpaquePtr) is_data_ = false;
    out->Put(static_cast<uint64_t>(type));
    out->Put(static_cast<uint64_t>(raw.v_int64));
  }
  /// Of an object with all below it: what was seen is not gone through again.
  Digest OfObject(const ObjectRef& object) {
    auto known = known_.find(object.get());
    if (known != known_.end()) return known->second;
    CheckStack();
    int32_t type = object->type_index();
    const Class& known_class = ClassOf(type);
    Digest digest = known_class.digest;
    if (known_class.has_identity) {
      // Which variable it is counts. Its fields may lead back to it.
      digest.Put(numbered_++);
      known_.emplace(object.get(), digest);
    }
    if (auto* array = object.as<ffi::ArrayObj>()) {
      digest.Put(array->size());
      for (const Any& item : *array) Put(&digest, item);
    } else if (auto* map = object.as<ffi::MapObj>()) {
      digest.Put(map->size());
      for (const auto& [key, item] : *map) Put(&digest, key), Put(&digest, item);
    } else if (auto* shape = object.as<ffi::ShapeObj>()) {
      digest.Put(shape->size);
      for (size_t i = 0; i < shape->size; ++i) digest.Put(shape->data[i]);
    } else if (type == TypeIndex::kTVMFFITensor) {
      PutTensor(&digest, Any(object).cast<runtime::Tensor>());
    } else if (known_class.is_node) {
      for (const TVMFFIFieldInfo* field : known_class.fields)
        Put(&digest, ffi::reflection::FieldGetter(field)(object.get()));
    } else {
      is_data_ = false;
    }
    known_[object.get()] = digest;
    return digest;
  }
  struct Class {
    Digest digest;  // of its name: numbers of types are given anew by each process
    bool is_node = false, has_identity = false;
    std::vector<const TVMFFIFieldInfo*> fields;
  };
  const Class& ClassOf(int32_t type) {
    auto [it, is_new] = classes_.try_emplace(type);
    Class& result = it->second;
    if (!is_new) return result;
    const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(type);
    result.digest.Put(std::string_view(info->type_key.data, info->type_key.size));
    result.is_node = type >= TypeIndex::kTVMFFIDynObjectBegin && info->metadata;
    if (!result.is_node) return result;
    auto kind = info->metadata->structural_eq_hash_kind;
    result.has_identity =
        kind != kTVMFFISEqHashKindTreeNode && kind != kTVMFFISEqHashKindConstTreeNode;
    const NodeInfo& node = InfoOf(type);
    ffi::reflection::ForEachFieldInfo(info, [&](const TVMFFIFieldInfo* field) {
      // What follows from the rest may not be filled in yet, unless the class takes it from the
      // caller.
      bool is_parameter = std::any_of(node.params.begin(), node.params.end(),
                                      [&](const Field* p) { return p->offset == field->offset; });
      bool is_derived = (field->flags & kNotVisited) &&
                        (field->flags & kTVMFFIFieldFlagBitMaskInitOff) && !is_parameter;
      if (!is_derived) result.fields.push_back(field);
    });
    return result;
  }
  void PutTensor(Digest* out, const runtime::Tensor& tensor) {
    DLDataType dtype = tensor.dtype();
    bool is_plain = tensor.device().device_type == kDLCPU && tensor.is_contiguous() &&
                    dtype.code != kDLOpaqueHandle;
    if (!is_plain) return static_cast<void>(is_data_ = false);
    out->Put(uint64_t{dtype.code} << 32 | uint64_t{dtype.bits} << 16 | dtype.lanes);
    out->Put(tensor.shape().size());
    for (int64_t extent : tensor.shape()) out->Put(static_cast<uint64_t>(extent));
    out->Put(std::string_view(static_cast<const char*>(tensor.data_ptr()) + tensor.byte_offset(),
                              runtime::DataSize(tensor.shape(), dtype)));
  }

  bool is_data_ = true;
  uint64_t numbered_ = 0;
  std::unordered_map<const Object*, Digest> known_;
  std::unordered_map<int32_t, Class> classes_;
};
}  // namespace

std::optional<Digest> DigestOf(const Any& value) {
  return OnDeepStack([&] { return Digester().Run(value); });
}

TVM_REGISTER() {
  Def(
      "ir.digest",
      [](Any value) -> Optional<String> {
        auto digest = DigestOf(value);
        return digest ? Optional<String>(String(digest->Hex())) : std::nullopt;
      },
      "A digest of all that is in a program, names, spans and numbers of tensors as well; None "
      "where something is no data, such as a function.",
      Arg("value"));
}
}  // namespace tvm
