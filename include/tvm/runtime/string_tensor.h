// SPDX-License-Identifier: Apache-2.0
// Tensors of strings, which DLPack does not know.
#pragma once
#include "tvm/runtime/tensor.h"

namespace tvm::runtime {

struct StringTensorObj : Object {
  Shape shape;
  Array<String> data;  // row-major
  StringTensorObj(Shape shape, Array<String> data)
      : shape(std::move(shape)), data(std::move(data)) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("runtime.StringTensor", StringTensorObj, Object);
};
class StringTensor : public ObjectRef {
 public:
  /// ValueError when the number of strings is not that of the shape.
  StringTensor(Shape shape, Array<String> data);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(StringTensor, ObjectRef, StringTensorObj);
};

}  // namespace tvm::runtime
