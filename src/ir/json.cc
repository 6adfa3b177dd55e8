// SPDX-License-Identifier: Apache-2.0
// How operators, kinds of targets and tensors are written to JSON: by name, and as base64.
#include <tvm/ffi/extra/base64.h>

#include <cstring>

#include "tvm/ir/op.h"
#include "tvm/ir/target.h"
#include "tvm/runtime/tensor.h"

namespace tvm {
namespace {
using Json = Map<Any, Any>;

Any TensorToJson(ffi::Tensor tensor) {
  ffi::Tensor host = runtime::Empty(tensor.shape(), tensor.dtype(), DLDevice{kDLCPU, 0});
  runtime::CopyTensor(tensor, host);
  Array<Any> shape;
  for (int64_t extent : tensor.shape()) shape.push_back(extent);
  TVMFFIByteArray bytes{static_cast<const char*>(host.data_ptr()),
                        runtime::DataSize(host.shape(), host.dtype())};
  Json result;
  result.Set(String("shape"), shape);
  result.Set(String("dtype"), ffi::DLDataTypeToString(tensor.dtype()));
  result.Set(String("data"), ffi::Base64Encode(bytes));
  return result;
}

Any TensorFromJson(Json json) {
  std::vector<int64_t> shape;
  for (const Any& extent : json.at(String("shape")).cast<Array<Any>>())
    shape.push_back(extent.cast<int64_t>());
  DLDataType dtype = ffi::StringToDLDataType(json.at(String("dtype")).cast<String>());
  ffi::Tensor tensor =
      runtime::Empty(ffi::ShapeView(shape.data(), shape.size()), dtype, DLDevice{kDLCPU, 0});
  String text = json.at(String("data")).cast<String>();
  ffi::Bytes bytes = ffi::Base64Decode(TVMFFIByteArray{text.data(), text.size()});
  if (uint64_t size = runtime::DataSize(tensor.shape(), dtype); bytes.size() != size) {
    TVM_FFI_THROW(ValueError) << "load_json: expected a tensor of " << size << " bytes, got "
                              << bytes.size();
  }
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

/// Whether another library of the process has said already how the type is written.
bool HasAttr(int32_t type_index, const char* name) {
  TVMFFIByteArray key{name, std::strlen(name)};
  const TVMFFITypeAttrColumn* column = TVMFFIGetTypeAttrColumn(&key);
  if (column == nullptr) return false;
  int64_t i = type_index - column->begin_index;
  return i >= 0 && i < column->size && column->data[i].type_index != kTVMFFINone;
}

TVM_REGISTER() {
  int32_t op = OpObj::RuntimeTypeIndex();
  SetTypeAttr(op, "__data_to_json__", Function::FromTyped([](Op op) -> Any { return op->name; }));
  SetTypeAttr(op, "__data_from_json__",
              Function::FromTyped([](String name) -> Any { return Op::Get(name); }));
  int32_t kind = TargetKindObj::RuntimeTypeIndex();
  SetTypeAttr(kind, "__data_to_json__",
              Function::FromTyped([](TargetKind kind) -> Any { return kind->name; }));
  SetTypeAttr(kind, "__data_from_json__",
              Function::FromTyped([](String name) -> Any { return TargetKind::Get(name); }));
  if (!HasAttr(kTVMFFITensor, "__data_to_json__")) {
    SetTypeAttr(kTVMFFITensor, "__data_to_json__", Function::FromTyped(&TensorToJson));
    SetTypeAttr(kTVMFFITensor, "__data_from_json__", Function::FromTyped(&TensorFromJson));
  }
}
}  // namespace
}  // namespace tvm
