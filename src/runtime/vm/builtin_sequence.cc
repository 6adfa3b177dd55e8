// SPDX-License-Identifier: Apache-2.0
// Builtins about sequences of tensors whose length only running tells, the loops that make them,
// and about optional values: arrays of tensors, and None.
#include "tvm/runtime/data_type.h"
#include "tvm/runtime/tensor.h"

namespace tvm::runtime::vm::sequence {
namespace {
using Items = Array<Any>;

int64_t ScalarOf(const Tensor& t) {
  DataType dtype(t.dtype());
  if (t.numel() != 1 || !dtype.is_int() || dtype.bits() < 32)
    TVM_FFI_THROW(TypeError) << "sequence: expected one integer, got " << Shape(t.shape()) << " of "
                             << dtype;
  Tensor host = Empty(t.shape(), t.dtype(), {kDLCPU, 0});
  CopyTensor(t, host);
  return dtype.bits() == 32 ? *static_cast<int32_t*>(host.data_ptr())
                            : *static_cast<int64_t*>(host.data_ptr());
}
template <class T>
Tensor MakeScalar(T value, DataType dtype) {
  Tensor t = Empty({}, dtype, {kDLCPU, 0});
  *static_cast<T*>(t.data_ptr()) = value;
  return t;
}
/// A tensor among values of any kind: None would pass for one.
Tensor TensorOf(const Any& value) {
  auto tensor = value == nullptr ? std::nullopt : value.try_cast<Tensor>();
  if (!tensor)
    TVM_FFI_THROW(TypeError) << "sequence: expected a tensor, got " << value.GetTypeKey();
  return *tensor;
}
/// A place in [0, size), or up to `size` where something is put in; places below 0 count from the
/// end.
int64_t PlaceOf(const Any& position, int64_t size, int64_t fallback, int64_t last) {
  if (position == nullptr) return fallback;
  int64_t at = ScalarOf(TensorOf(position));
  if (at < -size || at > last)
    TVM_FFI_THROW(IndexError) << "sequence: expected a position in a sequence of " << size
                              << ", got " << at;
  return at < 0 ? at + size : at;
}
/// Memory of a graph's tensors is used again: what a sequence keeps is a copy.
Any Kept(const Any& value) {
  if (value == nullptr || !value.try_cast<Tensor>()) return value;
  Tensor tensor = TensorOf(value), copy = Empty(tensor.shape(), tensor.dtype(), tensor.device());
  CopyTensor(tensor, copy);
  return copy;
}
void MakeSequence(ffi::PackedArgs args, Any* result) {
  Items items;
  for (int i = 0; i < args.size(); ++i) items.push_back(Kept(args[i]));
  *result = items;
}
Any At(Items items, Tensor position) {
  auto size = static_cast<int64_t>(items.size());
  return items[PlaceOf(position, size, 0, size - 1)];
}
Items Insert(Items items, Any value, Any position) {
  auto size = static_cast<int64_t>(items.size());
  items.insert(items.begin() + PlaceOf(position, size, size, size), Kept(value));
  return items;
}
Items Erase(Items items, Any position) {
  auto size = static_cast<int64_t>(items.size());
  if (size == 0) TVM_FFI_THROW(IndexError) << "sequence: expected one with elements, got none";
  items.erase(items.begin() + PlaceOf(position, size, size - 1, size - 1));
  return items;
}
Tensor Length(Items items) {
  return MakeScalar(static_cast<int64_t>(items.size()), DataType::Int(64));
}

/// The part of a contiguous tensor from `begin` along an axis.
Tensor PartOf(const Tensor& t, int64_t axis, int64_t begin, int64_t size) {
  std::vector<int64_t> shape(t.shape().begin(), t.shape().end()), strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  shape[axis] = size;
  int64_t offset = begin * strides[axis] * DataType(t.dtype()).bytes();
  return StridedView(t, ShapeView(shape.data(), shape.size()),
                     ShapeView(strides.data(), strides.size()), offset);
}
void CheckAxis(int64_t axis, int64_t rank) {
  if (axis < 0 || axis >= rank)
    TVM_FFI_THROW(ValueError) << "sequence: expected an axis below " << rank << ", got " << axis;
}
/// Axes of one element are added where the tensors are stacked.
Tensor ConcatSequence(Items items, int64_t axis, bool is_new_axis) {
  std::vector<Tensor> parts;
  for (const Any& item : items) parts.push_back(TensorOf(item));
  if (parts.empty()) TVM_FFI_THROW(ValueError) << "sequence: expected elements to join, got none";
  std::vector<int64_t> shape;
  int64_t total = 0;
  for (Tensor& part : parts) {
    std::vector<int64_t> own(part.shape().begin(), part.shape().end());
    if (is_new_axis) {
      CheckAxis(axis, static_cast<int64_t>(own.size()) + 1);
      own.insert(own.begin() + axis, 1);
      part = CreateView(part, ShapeView(own.data(), own.size()), part.dtype());
    }
    CheckAxis(axis, static_cast<int64_t>(own.size()));
    total += own[axis];
    own[axis] = 0;
    if (!shape.empty() && (own != shape || DataType(part.dtype()) != DataType(parts[0].dtype())))
      TVM_FFI_THROW(ValueError) << "sequence: expected elements of one type and shape but for axis "
                                << axis << ", got others";
    shape = own;
  }
  shape[axis] = total;
  Tensor result = Empty(ShapeView(shape.data(), shape.size()), parts[0].dtype(), parts[0].device());
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    int64_t size = part.shape()[axis];
    if (part.numel() > 0) CopyTensor(part, PartOf(result, axis, begin, size));
    begin += size;
  }
  return result;
}
/// The same along a new first axis; nothing to stack gives extents of 0.
Tensor Stack(Items items, DLDataType dtype, int64_t rank) {
  if (!items.empty()) return ConcatSequence(std::move(items), 0, true);
  std::vector<int64_t> shape(rank + 1, 0);
  return Empty(ShapeView(shape.data(), shape.size()), dtype, {kDLCPU, 0});
}
/// The sizes of parts of a dimension: those of a vector, or all of one size but the last.
std::vector<int64_t> SizesOf(const Tensor& given, int64_t dim) {
  std::vector<int64_t> sizes;
  if (given.ndim() == 0) {
    int64_t size = ScalarOf(given);
    if (size <= 0) TVM_FFI_THROW(ValueError) << "sequence: expected a positive size, got " << size;
    for (int64_t begin = 0; begin < dim; begin += size)
      sizes.push_back(std::min(size, dim - begin));
    return sizes;
  }
  int64_t left = dim;
  for (int64_t i = 0; i < given.numel(); ++i) {
    sizes.push_back(ScalarOf(PartOf(given, 0, i, 1)));
    if (sizes.back() < 0 || sizes.back() > left) break;
    left -= sizes.back();
  }
  if (left != 0 || static_cast<int64_t>(sizes.size()) != given.numel())
    TVM_FFI_THROW(ValueError) << "sequence: expected sizes that sum to " << dim << ", got others";
  return sizes;
}
Items SplitToSequence(Tensor x, Tensor size, int64_t axis, bool keeps_axis) {
  CheckAxis(axis, x.ndim());
  if (!x.is_contiguous()) x = Kept(x).cast<Tensor>();
  Items items;
  int64_t begin = 0;
  for (int64_t extent : SizesOf(size, x.shape()[axis])) {
    Tensor part = Kept(PartOf(x, axis, begin, extent)).cast<Tensor>();
    begin += extent;
    if (!keeps_axis && part.shape()[axis] == 1) {
      std::vector<int64_t> shape(part.shape().begin(), part.shape().end());
      shape.erase(shape.begin() + axis);
      part = CreateView(part, ShapeView(shape.data(), shape.size()), part.dtype());
    }
    items.push_back(part);
  }
  return items;
}
/// A map for each row of a matrix: from the keys of its columns to the numbers.
Items MapsOfRows(Tensor x, Any keys) {
  Items names;
  if (auto numbers = keys.try_cast<Tensor>(); numbers && keys != nullptr) {
    if (DataType(numbers->dtype()) != DataType::Int(64))
      TVM_FFI_THROW(TypeError) << "sequence: expected keys of int64, got "
                               << DataType(numbers->dtype());
    auto* data = static_cast<int64_t*>(numbers->data_ptr());
    for (int64_t i = 0; i < numbers->numel(); ++i) names.push_back(data[i]);
  } else {
    names = keys.cast<Items>();
  }
  auto columns = static_cast<int64_t>(names.size());
  if (DataType(x.dtype()) != DataType::Float(32) || columns == 0 || x.numel() % columns)
    TVM_FFI_THROW(ValueError) << "sequence: expected rows of " << columns << " float32, got "
                              << Shape(x.shape()) << " of " << DataType(x.dtype());
  Tensor host = Empty(x.shape(), x.dtype(), {kDLCPU, 0});
  CopyTensor(x, host);
  auto* number = static_cast<float*>(host.data_ptr());
  Items maps;
  for (int64_t row = 0; row < x.numel() / columns; ++row) {
    ffi::Map<Any, Any> map;
    for (const Any& name : names) map.Set(name, static_cast<double>(*number++));
    maps.push_back(map);
  }
  return maps;
}
Tensor HasElement(Any value) { return MakeScalar(value != nullptr, DataType::Bool()); }
Tensor CheckTurns(Tensor turns) {
  constexpr int64_t kMostTurns = int64_t{1} << 40;  // days
  if (int64_t count = ScalarOf(turns); count > kMostTurns)
    TVM_FFI_THROW(ValueError) << "loop: expected at most " << kMostTurns
                              << " turns where no condition ends it, got " << count;
  return turns;
}
Any GetElement(Any value) {
  if (value == nullptr)
    TVM_FFI_THROW(ValueError) << "optional: expected a value with an element, got an empty one";
  return value;
}
}  // namespace

TVM_REGISTER() {
  Function::SetGlobal("vm.builtin.sequence.make", Function::FromPacked(&MakeSequence));
  Def("vm.builtin.sequence.at", &At, "An element.", Arg("sequence"), Arg("position"));
  Def("vm.builtin.sequence.insert", &Insert, "With one element more, at the end by default.",
      Arg("sequence"), Arg("value"), Arg("position"));
  Def("vm.builtin.sequence.erase", &Erase, "With one element less, the last by default.",
      Arg("sequence"), Arg("position"));
  Def("vm.builtin.sequence.length", &Length, "The number of elements.", Arg("sequence"));
  Def("vm.builtin.sequence.concat", &ConcatSequence, "The elements as one tensor.", Arg("sequence"),
      Arg("axis"), Arg("is_new_axis"));
  Def("vm.builtin.sequence.stack", &Stack, "The elements along a new first axis.", Arg("sequence"),
      Arg("dtype"), Arg("rank"));
  Def("vm.builtin.sequence.split", &SplitToSequence,
      "Parts of a tensor, of the sizes in a vector, or of one size but the last.", Arg("x"),
      Arg("size"), Arg("axis"), Arg("keeps_axis"));
  Def("vm.builtin.sequence.maps_of_rows", &MapsOfRows,
      "A map for each row: from the keys of its columns, a vector or an array, to the numbers.",
      Arg("x"), Arg("keys"));
  Def("vm.builtin.check_turns", &CheckTurns,
      "A number of turns; ValueError for more than can be waited for.", Arg("turns"));
  Def("vm.builtin.optional.has", &HasElement, "Whether there is a value.", Arg("value"));
  Def("vm.builtin.optional.get", &GetElement, "The value; ValueError when there is none.",
      Arg("value"));
}
}  // namespace tvm::runtime::vm::sequence
