// SPDX-License-Identifier: Apache-2.0
// Small functions on tensors that tests of the virtual machine call.
#include "runtime/vm/program.h"
#include "tvm/runtime/data_type.h"

namespace tvm::runtime::vm {
namespace {
/// Calls `f` with a null pointer to the C++ type of a dtype.
template <class F>
void DispatchDtype(DLDataType dtype, F f) {
  DataType t(dtype);
  if (t == DataType::Float(32)) return f(static_cast<float*>(nullptr));
  if (t == DataType::Float(64)) return f(static_cast<double*>(nullptr));
  if (t == DataType::Int(32)) return f(static_cast<int32_t*>(nullptr));
  if (t == DataType::Int(64)) return f(static_cast<int64_t*>(nullptr));
  TVM_FFI_THROW(TypeError) << "test.vm: expected float32, float64, int32 or int64, got " << t;
}
/// One result element per element of `a`; `b` has as many or is `a`.
template <class F>
Tensor Elementwise(const Tensor& a, const Tensor& b, Optional<DataType> out_dtype, F f) {
  if (a.numel() != b.numel() || DataType(a.dtype()) != DataType(b.dtype()) ||
      !a.is_contiguous() || !b.is_contiguous()) {
    TVM_FFI_THROW(ValueError) << "test.vm: expected contiguous tensors of one shape and dtype";
  }
  Tensor out = Empty(a.shape(), out_dtype ? *out_dtype : DataType(a.dtype()), {kDLCPU, 0});
  DispatchDtype(a.dtype(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    auto *x = static_cast<const T*>(a.data_ptr()), *y = static_cast<const T*>(b.data_ptr());
    using R = decltype(f(*x, *y));
    auto* z = static_cast<R*>(out.data_ptr());
    for (int64_t i = 0, n = a.numel(); i < n; ++i) z[i] = f(x[i], y[i]);
  });
  return out;
}
/// Each row of `from` twice in a row of `to`.
void Tile(Tensor from, Tensor to) {
  for (int64_t half = 0, width = from.shape()[from.ndim() - 1]; half < 2; ++half) {
    std::vector<int64_t> strides(to.strides().begin(), to.strides().end());
    int64_t offset = half * width * DataType(to.dtype()).bytes();
    CopyTensor(from, StridedView(to, from.shape(), {strides.data(), strides.size()}, offset));
  }
}

TVM_REGISTER() {
  Def(
      "test.vm.move", [](Any value) { return value; }, "The argument.", Arg("value"));
  Def(
      "test.vm.add",
      [](Tensor a, Tensor b) {
        return Elementwise(a, b, std::nullopt, [](auto x, auto y) -> decltype(x) { return x + y; });
      },
      "a + b", Arg("a"), Arg("b"));
  Def(
      "test.vm.mul",
      [](Tensor a, Tensor b) {
        return Elementwise(a, b, std::nullopt, [](auto x, auto y) -> decltype(x) { return x * y; });
      },
      "a * b", Arg("a"), Arg("b"));
  Def(
      "test.vm.equal_zero",
      [](Tensor a) {
        return Elementwise(a, a, DataType::Bool(), [](auto x, auto) { return x == 0; });
      },
      "a == 0", Arg("a"));
  Def(
      "test.vm.subtract_one",
      [](Tensor a) {
        return Elementwise(a, a, std::nullopt, [](auto x, auto) -> decltype(x) { return x - 1; });
      },
      "a - 1", Arg("a"));
  Def("test.vm.identity", &CopyTensor, "Copies a into b.", Arg("a"), Arg("b"));
  Def("test.vm.tile", &Tile, "Copies a twice along the last axis of b.", Arg("a"), Arg("b"));
  Def(
      "test.vm.add_scalar", [](int64_t a, int64_t b) { return a + b; }, "a + b", Arg("a"),
      Arg("b"));
  Def(
      "test.vm.get_device_id", [](DLDevice device) { return device.device_id; },
      "The index of a device.", Arg("device"));
}
}  // namespace
}  // namespace tvm::runtime::vm
