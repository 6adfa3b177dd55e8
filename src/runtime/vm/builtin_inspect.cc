// SPDX-License-Identifier: Apache-2.0
// Builtins that look at a tensor, and views of one.
#include "runtime/vm/program.h"
#include "tvm/runtime/data_type.h"

namespace tvm::runtime::vm {
namespace {
int64_t ItemOf(const char* what, ShapeView values, int64_t axis) {
  if (axis < 0 || axis >= static_cast<int64_t>(values.size())) {
    TVM_FFI_THROW(IndexError) << what << ": expected an axis in [0, " << values.size() << "), got "
                              << axis;
  }
  return values[axis];
}
/// Bytes between the begin of the memory and the first element. Views of this runtime keep their
/// address in `data`.
int64_t ByteOffset(const Tensor& t) { return static_cast<int64_t>(t.byte_offset()); }

TVM_REGISTER() {
  auto look = [](const char* name, auto fn, const char* doc) { Def(name, fn, doc, Arg("tensor")); };
  look(
      "vm.builtin.tensor_dtype_code", [](Tensor t) -> int64_t { return t.dtype().code; },
      "The kind of the elements.");
  look(
      "vm.builtin.tensor_dtype_bits", [](Tensor t) -> int64_t { return t.dtype().bits; },
      "The bits of the elements.");
  look(
      "vm.builtin.tensor_dtype_lanes", [](Tensor t) -> int64_t { return t.dtype().lanes; },
      "The lanes of the elements.");
  look(
      "vm.builtin.tensor_ndim", [](Tensor t) -> int64_t { return t.ndim(); },
      "The number of dimensions.");
  look(
      "vm.builtin.tensor_byte_offset", [](Tensor t) { return ByteOffset(t); },
      "Where the tensor begins in its memory, in bytes.");
  look(
      "vm.builtin.tensor_elem_offset",
      [](Tensor t) {
        DataType dtype(t.dtype());
        return ByteOffset(t) / (dtype.bytes() * dtype.lanes());
      },
      "Where the tensor begins in its memory, in elements.");
  Def(
      "vm.builtin.tensor_shape_i",
      [](Tensor t, int64_t axis) { return ItemOf("tensor_shape_i", t.shape(), axis); },
      "A dimension.", Arg("tensor"), Arg("axis"));
  Def(
      "vm.builtin.tensor_stride_i",
      [](Tensor t, int64_t axis) { return ItemOf("tensor_stride_i", t.strides(), axis); },
      "A stride.", Arg("tensor"), Arg("axis"));
  Def(
      "vm.builtin.view",
      [](Tensor t, Shape shape, DataType dtype, int64_t byte_offset) {
        return CreateView(t, shape, dtype, byte_offset);
      },
      "The same memory as another tensor.", Arg("data"), Arg("shape"), Arg("dtype"),
      Arg("relative_byte_offset"));
}
}  // namespace
}  // namespace tvm::runtime::vm
