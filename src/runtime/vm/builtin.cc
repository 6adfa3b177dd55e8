// SPDX-License-Identifier: Apache-2.0
// Builtins about memory, tensors, tuples, closures and functions written in Python.
#include <algorithm>
#include <map>
#include <mutex>

#include "runtime/copy_of.h"
#include "runtime/vm/program.h"
#include "tvm/runtime/data_type.h"

namespace tvm::runtime::vm {

bool ReadCondition(const AnyView& value) {
  if (value.type_index() == ffi::TypeIndex::kTVMFFIInt ||
      value.type_index() == ffi::TypeIndex::kTVMFFIBool) {
    return value.cast<int64_t>() != 0;
  }
  auto tensor = As<Tensor>(value);
  DataType dtype = tensor ? DataType(tensor->dtype()) : DataType();
  if (!tensor || tensor->numel() != 1 || !dtype.is_scalar() || dtype.bits() < 8 ||
      !(dtype.is_bool() || dtype.is_integer())) {
    TVM_FFI_THROW(TypeError) << "If: expected a boolean as condition, got "
                             << (tensor ? "a tensor of " + dtype.str() + " with " +
                                              std::to_string(tensor->numel()) + " elements"
                                        : value.GetTypeKey());
  }
  Tensor host = ToDevice(*tensor, {kDLCPU, 0}).cast<Tensor>();
  auto* data = static_cast<const char*>(host.data_ptr()) + host.byte_offset();
  return std::any_of(data, data + dtype.bytes(), [](char byte) { return byte != 0; });
}

VirtualMachineObj* MachineOf(const AnyView& context, const char* what) {
  if (context.type_index() != ffi::TypeIndex::kTVMFFIOpaquePtr) {
    TVM_FFI_THROW(TypeError) << what << ": expected the virtual machine as first argument, got "
                             << context.GetTypeKey();
  }
  return static_cast<VirtualMachineObj*>(context.cast<void*>());
}
namespace {

Tensor AllocShapeHeap(Any context, int64_t size) {
  MachineOf(context, "alloc_shape_heap");
  // From what the calls before have left.
  static Allocator* host = Allocator::Get({kDLCPU, 0}, AllocatorKind::kPooled);
  Shape shape{size};
  DataType int64 = DataType::Int(64);
  return Storage(host, DataSize(shape, int64)).AllocTensor(0, shape, int64);
}
void CheckCountBetween(const char* name, ffi::PackedArgs args, int low, int high) {
  if (args.size() < low || args.size() > high) {
    TVM_FFI_THROW(TypeError) << "vm.builtin." << name << ": expected " << low << " to " << high
                             << " arguments, got " << args.size();
  }
}
/// machine, shape, device index, dtype[, scope]. One extent is a number of bytes; several are the
/// shape of a texture.
void AllocStorage(ffi::PackedArgs args, Any* result) {
  CheckCountBetween("alloc_storage", args, 4, 5);
  Allocator* allocator = MachineOf(args[0], "alloc_storage")->allocator(args[2].cast<int64_t>());
  auto shape = args[1].cast<Shape>();
  DataType unit = shape.size() == 1 ? DataType::UInt(8) : args[3].cast<DataType>();
  String scope = args.size() == 5 && args[4] != nullptr ? args[4].cast<String>() : String("");
  *result = Storage(allocator, DataSize(shape, unit), View(scope) == "global" ? "" : View(scope));
}

Tensor Contiguous(const Tensor& data) { return data.is_contiguous() ? data : CopyOf(data); }
Tensor Reshape(Tensor data, Shape shape) {
  if (DataSize(shape, data.dtype()) != DataSize(data.shape(), data.dtype())) {
    TVM_FFI_THROW(ValueError) << "reshape: expected a shape of " << data.numel()
                              << " elements, got " << shape;
  }
  return CreateView(Contiguous(data), shape, data.dtype());
}
/// Some kernels for devices read `data` and forget `byte_offset`.
Tensor EnsureZeroOffset(Tensor data) {
  if (data.byte_offset() == 0) return data;
  Tensor copy = Empty(data.shape(), data.dtype(), data.device());
  CopyTensor(data, copy);
  return copy;
}
/// data, device type, device index[, scope]
void ToDeviceBuiltin(ffi::PackedArgs args, Any* result) {
  CheckCountBetween("to_device", args, 3, 4);
  DLDevice device{static_cast<DLDeviceType>(args[1].cast<int>()), args[2].cast<int>()};
  String scope = args.size() == 4 && args[3] != nullptr ? args[3].cast<String>() : String("");
  *result = ToDevice(Cast<Tensor>(args[0], "to_device"), device,
                     View(scope) == "global" ? "" : View(scope));
}

void MakeTuple(ffi::PackedArgs args, Any* result) {
  Array<Any> items;
  items.reserve(args.size());
  for (int i = 0; i < args.size(); ++i) items.push_back(args[i]);
  *result = items;
}
void CheckTupleIndex(const char* what, const Array<Any>& tuple, int64_t index) {
  if (index < 0 || index >= static_cast<int64_t>(tuple.size())) {
    TVM_FFI_THROW(IndexError) << what << ": expected an index below " << tuple.size() << ", got "
                              << index;
  }
}
Any TupleGetItem(Array<Any> tuple, int64_t index) {
  CheckTupleIndex("tuple_getitem", tuple, index);
  return tuple[index];
}
/// In place: the tuple stays in its register, and what the item held may be freed.
void TupleResetItem(Array<Any> tuple, int64_t index) {
  CheckTupleIndex("tuple_reset_item", tuple, index);
  const_cast<ffi::ArrayObj*>(tuple.GetArrayObj())->SetItem(index, Any(nullptr));
}

/// A function with values that are appended to the arguments of each call.
void MakeClosure(ffi::PackedArgs args, Any* result) {
  if (args.size() == 0) TVM_FFI_THROW(TypeError) << "make_closure: expected a function";
  Any function(args[0]);
  std::vector<Any> captured(args.data() + 1, args.data() + args.size());
  auto* closure = AnyView(function).as<ClosureObj>();
  if (!closure && !As<Function>(function)) {
    TVM_FFI_THROW(TypeError) << "make_closure: expected a function, got "
                             << AnyView(function).GetTypeKey();
  }
  String name = closure ? closure->func_name : String("");
  auto impl = [function, captured](ffi::PackedArgs call, Any* value) {
    VirtualMachineObj* vm = MachineOf(call[0], "closure");
    std::vector<AnyView> all(call.data() + 1, call.data() + call.size());
    all.insert(all.end(), captured.begin(), captured.end());
    vm->InvokeClosure(function, {all.data(), static_cast<int32_t>(all.size())}, value);
  };
  *result = Closure(name, Function::FromPacked(impl));
}
void InvokeClosureBuiltin(ffi::PackedArgs args, Any* result) {
  if (args.size() < 2) {
    TVM_FFI_THROW(TypeError) << "vm.builtin.invoke_closure: expected the virtual machine and a "
                                "closure";
  }
  MachineOf(args[0], "invoke_closure")->InvokeClosure(args[1], args.Slice(2), result);
}
/// function, arguments…, a shape whose integers are appended
void CallTIRDyn(ffi::PackedArgs args, Any* result) {
  if (args.size() < 2) {
    TVM_FFI_THROW(TypeError) << "vm.builtin.call_tir_dyn: expected a function and a shape";
  }
  std::vector<AnyView> all(args.data() + 1, args.data() + args.size() - 1);
  auto shape = args[args.size() - 1].cast<Shape>();
  all.insert(all.end(), shape.begin(), shape.end());
  Cast<Function>(args[0], "call_tir_dyn")
      .CallPacked(all.data(), static_cast<int32_t>(all.size()), result);
}

/// Functions written in Python that a program calls by name.
struct PyFunctions {
  std::mutex mutex;
  std::map<std::string, Function> table;
  static PyFunctions& Global() {
    static auto* functions = new PyFunctions();
    return *functions;
  }
};
Function GetPyFunc(String name) {
  PyFunctions& all = PyFunctions::Global();
  std::lock_guard lock(all.mutex);
  auto it = all.table.find(std::string(View(name)));
  if (it == all.table.end()) {
    TVM_FFI_THROW(ValueError) << "Python function '" << name << "' not found";
  }
  return it->second;
}
Any CallPyFunc(String name, Array<Any> args) {
  std::vector<Any> values(args.begin(), args.end());
  std::vector<AnyView> views(values.begin(), values.end());
  Any result;
  GetPyFunc(name).CallPacked(views.data(), static_cast<int32_t>(views.size()), &result);
  return result;
}
/// effect, name of a global function, line, arguments…; returns the effect
void InvokeDebugFunc(ffi::PackedArgs args, Any* result) {
  if (args.size() < 3) {
    TVM_FFI_THROW(TypeError) << "vm.builtin.invoke_debug_func: expected at least 3 arguments, got "
                             << args.size();
  }
  auto name = args[1].cast<String>();
  auto function = Function::GetGlobal(name);
  if (!function) {
    TVM_FFI_THROW(ValueError) << "invoke_debug_func: there is no global function '" << name << "'";
  }
  Any ignored;
  function->CallPacked(args.data() + 2, args.size() - 2, &ignored);
  *result = args[0];
}

TVM_REGISTER() {
  ClosureObj::RuntimeTypeIndex();
  Def("vm.builtin.alloc_shape_heap", &AllocShapeHeap, "Room for the values of variables.",
      Arg("ctx"), Arg("size"));
  Def("vm.builtin.reshape", &Reshape, "A view of another shape.", Arg("data"), Arg("shape"));
  Def("vm.builtin.ensure_zero_offset", &EnsureZeroOffset, "", Arg("data"));
  Def("vm.builtin.tuple_getitem", &TupleGetItem, "", Arg("tuple"), Arg("index"));
  Def("vm.builtin.tuple_reset_item", &TupleResetItem, "", Arg("tuple"), Arg("index"));
  Def("vm.builtin.copy", [](Any value) { return value; }, "The value itself.", Arg("value"));
  Def("vm.builtin.check_signals", &CheckSignals, "Raises what handlers of signals raise.");
  Def("vm.builtin.null_value", []() -> Any { return nullptr; }, "None.");
  Def(
      "vm.builtin.read_if_cond", [](Any value) { return ReadCondition(value); },
      "A condition as a boolean.", Arg("cond"));
  Def(
      "vm.builtin.register_py_func",
      [](String name, Function function) {
        PyFunctions& all = PyFunctions::Global();
        std::lock_guard lock(all.mutex);
        all.table.insert_or_assign(std::string(View(name)), function);
      },
      "Makes a Python function callable by name.", Arg("name"), Arg("function"));
  Def("vm.builtin.get_py_func", &GetPyFunc, "", Arg("name"));
  Def(
      "vm.builtin.clear_py_func_registry",
      [] {
        PyFunctions& all = PyFunctions::Global();
        std::map<std::string, Function> dropped;  // destroyed without the lock: Python may run
        std::lock_guard lock(all.mutex);
        all.table.swap(dropped);
      },
      "Forgets all Python functions.");
  Def("vm.builtin.call_py_func", &CallPyFunc, "Calls a Python function by name.", Arg("name"),
      Arg("args"));
  auto packed = [](const char* name, auto fn) {
    Function::SetGlobal(name, Function::FromPacked(fn));
  };
  packed("vm.builtin.alloc_storage", &AllocStorage);
  packed("vm.builtin.to_device", &ToDeviceBuiltin);
  packed("vm.builtin.make_tuple", &MakeTuple);
  packed("vm.builtin.make_closure", &MakeClosure);
  packed("vm.builtin.invoke_closure", &InvokeClosureBuiltin);
  packed("vm.builtin.call_tir_dyn", &CallTIRDyn);
  packed("vm.builtin.invoke_debug_func", &InvokeDebugFunc);
}
}  // namespace
}  // namespace tvm::runtime::vm
