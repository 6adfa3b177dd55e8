// SPDX-License-Identifier: Apache-2.0
// Builtins about shapes and the kinds of values: matching, making, checking.
#include <limits>

#include "runtime/vm/program.h"
#include "tvm/runtime/data_type.h"

namespace tvm::runtime::vm {
namespace {
enum MatchCode : int64_t { kAssertEqualToImm, kStoreToHeap, kNoOp, kAssertEqualToLoad };
enum MakeCode : int64_t { kUseImm, kLoad };

/// The values of symbolic variables; there is none where a function has no variable.
class ShapeHeap {
 public:
  explicit ShapeHeap(const AnyView& heap) {
    if (heap == nullptr) return;
    auto tensor = heap.cast<ffi::TensorView>();
    DataType dtype(tensor.dtype());
    if (dtype != DataType::Int(64) || tensor.ndim() != 1 || tensor.device().device_type != kDLCPU) {
      TVM_FFI_THROW(TypeError) << "VM: expected the shape heap to be a vector of int64 on the CPU";
    }
    values_ =
        reinterpret_cast<int64_t*>(static_cast<char*>(tensor.data_ptr()) + tensor.byte_offset());
    size_ = tensor.shape()[0];
  }
  int64_t& operator[](int64_t i) const {
    if (i < 0 || i >= size_) {
      TVM_FFI_THROW(IndexError) << "VM: expected a slot of the shape heap below " << size_
                                << ", got " << i;
    }
    return values_[i];
  }

 private:
  int64_t* values_ = nullptr;
  int64_t size_ = 0;
};

String Context(const AnyView& value) {
  auto text = value.try_cast<String>();
  return text ? *text : String("");
}
/// A line of a context, "" where it has none. The first one says what is checked; those behind it
/// say for each axis which value decides its extent.
std::string ContextLine(const AnyView& context, int64_t line) {
  String whole = Context(context);
  std::string_view text = View(whole);
  for (; line > 0; --line) {
    size_t end = text.find('\n');
    if (end == std::string_view::npos) return "";
    text.remove_prefix(end + 1);
  }
  return std::string(text.substr(0, text.find('\n')));
}
/// The first line, with a space behind it where there is one.
std::string Lead(const AnyView& context) {
  std::string text = ContextLine(context, 0);
  if (!text.empty() && text.back() != ' ') text += ' ';
  return text;
}
void CheckArgs(const char* name, ffi::PackedArgs args, int64_t expected) {
  if (args.size() != expected) {
    TVM_FFI_THROW(TypeError) << "vm.builtin." << name << ": expected " << expected
                             << " arguments, got " << args.size();
  }
}

/// A dimension, or a scalar when the axis is -1.
void Match(const ShapeHeap& heap, int64_t value, int64_t code, int64_t operand,
           const AnyView& context, int64_t axis) {
  switch (code) {
    case kNoOp:
      return;
    case kStoreToHeap:
      heap[operand] = value;
      return;
    case kAssertEqualToImm:
    case kAssertEqualToLoad: {
      int64_t expected = code == kAssertEqualToImm ? operand : heap[operand];
      if (value == expected) return;
      std::string what = axis < 0 ? "value" : "shape[" + std::to_string(axis) + "]";
      std::string origin = ContextLine(context, std::max<int64_t>(axis, 0) + 1);
      if (code == kAssertEqualToLoad)
        origin = origin.empty() ? " as seen before," : " which is " + origin + ",";
      TVM_FFI_THROW(RuntimeError) << Lead(context) << "match_cast error, " << what << ": expected "
                                  << expected << "," << origin << " got " << value;
    }
  }
  TVM_FFI_THROW(ValueError) << "vm.builtin.match_shape: unknown code " << code;
}
int64_t Make(const ShapeHeap& heap, int64_t code, int64_t operand) {
  if (code == kUseImm) return operand;
  if (code == kLoad) return heap[operand];
  TVM_FFI_THROW(ValueError) << "vm.builtin.make_shape: unknown code " << code;
  TVM_FFI_UNREACHABLE();
}

/// value, heap, n, n pairs of code and operand, context
void MatchShape(ffi::PackedArgs args, Any*) {
  if (args.size() < 4) CheckArgs("match_shape", args, 4);
  auto n = args[2].cast<int64_t>();
  CheckArgs("match_shape", args, 4 + 2 * n);
  const AnyView& context = args.data()[args.size() - 1];
  ShapeView shape;
  if (auto* object = args[0].as<ffi::ShapeObj>()) {
    shape = ShapeView(object->data, object->size);
  } else if (auto* tensor = args[0].as<ffi::TensorObj>()) {
    shape = ShapeView(tensor->shape, tensor->ndim);
  } else {
    TVM_FFI_THROW(TypeError) << Lead(context) << "expect a Tensor or a Shape but get "
                             << args[0].GetTypeKey();
  }
  if (static_cast<int64_t>(shape.size()) != n) {
    TVM_FFI_THROW(RuntimeError) << Lead(context) << "match_cast error, expected ndim " << n
                                << ", got " << shape.size();
  }
  ShapeHeap heap(args[1]);
  for (int64_t i = 0; i < n; ++i) {
    auto at = static_cast<int>(3 + 2 * i);
    Match(heap, shape[i], args[at].cast<int64_t>(), args[at + 1].cast<int64_t>(), context, i);
  }
}
/// value, heap, code, operand, context
void MatchPrimValue(ffi::PackedArgs args, Any*) {
  CheckArgs("match_prim_value", args, 5);
  auto value = args[0].try_cast<int64_t>();
  if (!value) {
    TVM_FFI_THROW(TypeError) << Lead(args[4]) << "expect an integer but get "
                             << args[0].GetTypeKey();
  }
  Match(ShapeHeap(args[1]), *value, args[2].cast<int64_t>(), args[3].cast<int64_t>(), args[4], -1);
}
void CheckRange(const Any& heap, int64_t index, int64_t low, int64_t high, const String& context) {
  int64_t value = ShapeHeap(heap)[index];
  if (value >= low && value <= high) return;
  std::string range = "of at least " + std::to_string(low);
  if (high != std::numeric_limits<int64_t>::max()) {
    range = "from " + std::to_string(low) + " to " + std::to_string(high);
  }
  TVM_FFI_THROW(ValueError) << View(context) << "expected a size " << range
                            << " as the program declares, got " << value;
}
/// heap, n, n pairs of code and operand
void MakeShape(ffi::PackedArgs args, Any* result) {
  if (args.size() < 2) CheckArgs("make_shape", args, 2);
  auto n = args[1].cast<int64_t>();
  CheckArgs("make_shape", args, 2 + 2 * n);
  ShapeHeap heap(args[0]);
  std::vector<int64_t> extents(n);
  for (int64_t i = 0; i < n; ++i) {
    auto at = static_cast<int>(2 + 2 * i);
    extents[i] = Make(heap, args[at].cast<int64_t>(), args[at + 1].cast<int64_t>());
  }
  *result = Shape(extents.begin(), extents.end());
}

[[noreturn]] void ThrowKind(const AnyView& context, const char* expected, const AnyView& got) {
  TVM_FFI_THROW(TypeError) << Lead(context) << "expect a " << expected << " but get "
                           << (got == nullptr ? std::string("None") : got.GetTypeKey());
  TVM_FFI_UNREACHABLE();
}
void CheckNdim(const AnyView& context, const char* kind, int64_t expected, int64_t got) {
  if (expected >= 0 && expected != got) {
    TVM_FFI_THROW(ValueError) << Lead(context) << "expect a " << kind << " with ndim " << expected
                              << " but get ndim " << got;
  }
}
/// value, ndim, [dtype,] context
void CheckTensorInfo(ffi::PackedArgs args, Any*) {
  if (args.size() != 3) CheckArgs("check_tensor_info", args, 4);
  const AnyView& context = args.data()[args.size() - 1];
  auto* tensor = args[0].as<ffi::TensorObj>();
  if (!tensor) ThrowKind(context, "Tensor", args[0]);
  CheckNdim(context, "Tensor", args[1].cast<int64_t>(), tensor->ndim);
  if (args.size() == 3) return;
  auto dtype = args[2].cast<DataType>();
  if (!dtype.is_void() && dtype != DataType(tensor->dtype)) {
    TVM_FFI_THROW(ValueError) << Lead(context) << "expect a Tensor with dtype " << dtype
                              << " but get dtype " << DataType(tensor->dtype);
  }
}
void CheckShapeInfo(Any value, int64_t ndim, Any context) {
  auto* shape = AnyView(value).as<ffi::ShapeObj>();
  if (!shape) ThrowKind(context, "Shape", value);
  CheckNdim(context, "Shape", ndim, static_cast<int64_t>(shape->size));
}
void CheckTupleInfo(Any value, int64_t size, Any context) {
  auto* tuple = AnyView(value).as<ffi::ArrayObj>();
  if (!tuple) ThrowKind(context, "Tuple", value);
  if (static_cast<int64_t>(tuple->size()) != size) {
    TVM_FFI_THROW(ValueError) << Lead(context) << "expect a Tuple with " << size
                              << " elements but get " << tuple->size() << " elements";
  }
}
void CheckPrimValueInfo(Any value, DataType dtype, Any context) {
  bool good = dtype.is_void() || (dtype.is_bool()      ? value.try_cast<bool>().has_value()
                                  : dtype.is_integer() ? value.try_cast<int64_t>().has_value()
                                  : dtype.is_float()   ? value.try_cast<double>().has_value()
                                  : dtype.is_handle()  ? true
                                                       : false);
  if (!good) ThrowKind(context, ("value with dtype " + dtype.str()).c_str(), value);
}
void CheckFuncInfo(Any value, Any context) {
  if (!As<Function>(value) && !AnyView(value).as<ClosureObj>()) {
    ThrowKind(context, "Function", value);
  }
}

Shape ShapeOfTensor(Tensor t) { return t.shape(); }
/// The integers of a vector on the CPU.
Shape TensorToShape(Tensor t) {
  DataType dtype(t.dtype());
  if (t.ndim() != 1 || !dtype.is_integer() || !dtype.is_scalar()) {
    TVM_FFI_THROW(ValueError) << "tensor_to_shape: expected a vector of integers, got " << t.ndim()
                              << " axes of " << dtype;
  }
  Tensor host = ToDevice(t, {kDLCPU, 0}).cast<Tensor>();
  auto* data = static_cast<const char*>(host.data_ptr()) + host.byte_offset();
  std::vector<int64_t> extents;
  for (int64_t i = 0; i < host.shape()[0]; ++i) {
    const char* item = data + i * host.strides()[0] * dtype.bytes();
    switch (dtype.bits()) {
      case 64:
        extents.push_back(*reinterpret_cast<const int64_t*>(item));
        break;
      case 32:
        extents.push_back(*reinterpret_cast<const int32_t*>(item));
        break;
      default:
        TVM_FFI_THROW(ValueError) << "tensor_to_shape: expected int32 or int64, got " << dtype;
    }
  }
  return Shape(extents.begin(), extents.end());
}
Tensor ShapeToTensor(Shape shape) {
  Tensor t = Empty({static_cast<int64_t>(shape.size())}, DataType::Int(64), {kDLCPU, 0});
  std::copy(shape.begin(), shape.end(), static_cast<int64_t*>(t.data_ptr()));
  return t;
}

TVM_REGISTER() {
  auto packed = [](const char* name, auto fn) {
    Function::SetGlobal(name, Function::FromPacked(fn));
  };
  packed("vm.builtin.match_shape", &MatchShape);
  packed("vm.builtin.match_prim_value", &MatchPrimValue);
  packed("vm.builtin.make_shape", &MakeShape);
  packed("vm.builtin.check_tensor_info", &CheckTensorInfo);
  Def(
      "vm.builtin.make_prim_value",
      [](Any heap, int64_t code, int64_t operand) { return Make(ShapeHeap(heap), code, operand); },
      "An integer or the value of a variable.", Arg("heap"), Arg("code"), Arg("operand"));
  Def("vm.builtin.check_shape_info", &CheckShapeInfo, "", Arg("value"), Arg("ndim"),
      Arg("context"));
  Def("vm.builtin.check_tuple_info", &CheckTupleInfo, "", Arg("value"), Arg("size"),
      Arg("context"));
  Def("vm.builtin.check_prim_value_info", &CheckPrimValueInfo, "", Arg("value"), Arg("dtype"),
      Arg("context"));
  Def("vm.builtin.check_func_info", &CheckFuncInfo, "", Arg("value"), Arg("context"));
  Def("vm.builtin.check_range", &CheckRange, "", Arg("heap"), Arg("index"), Arg("low"), Arg("high"),
      Arg("context"));
  Def("vm.builtin.shape_of", &ShapeOfTensor, "The shape of a tensor.", Arg("tensor"));
  Def("vm.builtin.tensor_to_shape", &TensorToShape, "The elements as a shape.", Arg("tensor"));
  Def("relax.run.shape_to_tensor", &ShapeToTensor, "The extents as a tensor of int64.",
      Arg("shape"));
}
}  // namespace
}  // namespace tvm::runtime::vm
