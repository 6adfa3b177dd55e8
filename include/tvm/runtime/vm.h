// SPDX-License-Identifier: Apache-2.0
// The virtual machine: executables (bytecode, constants, names of functions) and what runs them.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tvm/runtime/memory.h"
#include "tvm/runtime/module.h"

namespace tvm::runtime::vm {

/// tvm-ffi's Tensor and Function may be null, so that None passes for one; not here.
template <class T>
std::optional<T> As(const AnyView& value) {
  return value == nullptr ? std::nullopt : value.template as<T>();
}
template <class T>
T Cast(const AnyView& value, const char* what) {
  auto result = As<T>(value);
  if (!result) {
    TVM_FFI_THROW(TypeError) << what << ": expected " << ffi::TypeTraits<T>::TypeStr() << ", got "
                             << value.GetTypeKey();
  }
  return *std::move(result);
}

// ---- bytecode ---------------------------------------------------------------------------------
/// An instruction is a run of 64-bit words:
///   kCall  destination register, function, number of arguments, arguments…
///   kRet   register
///   kGoto  offset
///   kIf    register of the condition, offset where it is false (the next instruction otherwise)
/// Offsets count instructions from the jump itself.
enum class Opcode : int64_t { kCall = 1, kRet = 2, kGoto = 3, kIf = 4 };

enum class ArgKind : int { kRegister = 0, kImmediate = 1, kConstant = 2, kFunction = 3 };

/// Registers that stand for something else: no value, and the virtual machine itself.
constexpr int64_t kVoidRegister = int64_t{1} << 54, kVMRegister = kVoidRegister + 1;

/// An argument of a call: the kind in the top byte, the value (signed) in the other seven.
struct Operand {
  int64_t word;
  static constexpr int kBits = 56;
  /// ValueError for a value of more than 56 bits.
  static Operand Make(ArgKind kind, int64_t value);
  int kind() const { return static_cast<int>(static_cast<uint64_t>(word) >> kBits); }
  int64_t value() const {
    return static_cast<int64_t>(static_cast<uint64_t>(word) << (64 - kBits)) >> (64 - kBits);
  }
};

enum class FunctionKind : int {
  kPacked = 0,  ///< Of an imported module or the registry.
  kVM = 1,      ///< Bytecode.
  kVMTIR = 2,   ///< A compiled function over the list of registers, named `__vmtir__…`.
};
constexpr const char* kVMTIRPrefix = "__vmtir__";

struct FunctionInfo {
  std::string name;
  FunctionKind kind = FunctionKind::kPacked;
  int64_t begin = 0, end = 0;  ///< Its instructions.
  int64_t num_registers = 0;   ///< The first ones are the parameters.
  std::vector<std::string> params;
  /// What goes in and comes out, as JSON: {"inputs": […], "outputs": […]}, each with a name and a
  /// kind; "" when it is not known.
  std::string signature;
};

/// What a program is compiled to. Immutable once it is verified.
class ExecutableObj : public ffi::ModuleObj, public ApartData {
 public:
  std::vector<FunctionInfo> functions;
  std::vector<Any> constants;
  std::vector<int64_t> code;
  std::vector<int64_t> offsets;  ///< Where each instruction begins in `code`.
  /// A constant of a library that was loaded, before it is attached.
  struct Missing {
    size_t constant;
    DLDataType dtype;
    std::vector<int64_t> shape;
    uint64_t place;
  };
  std::vector<Missing> missing;

  /// ValueError for an index, register or jump that leads nowhere.
  void Verify() const;
  /// Index of a function, or -1.
  int64_t Find(std::string_view name) const;
  const int64_t* instruction(int64_t i) const { return code.data() + offsets[i]; }

  std::string Stats() const;
  std::string AsText() const;
  std::string AsPython() const;
  /// Large constants go to `apart`, if given.
  std::string Save(ApartTensors* apart = nullptr) const;
  /// Checks every length, then verifies. ValueError for anything but a whole executable.
  static ObjectPtr<ExecutableObj> Load(std::string_view bytes);

  const char* kind() const final { return "relax.VMExecutable"; }
  int GetPropertyMask() const final { return Module::kBinarySerializable | Module::kRunnable; }
  Optional<Function> GetFunction(const String& name) final;
  ffi::Bytes SaveToBytes() const final { return ffi::Bytes(Save()); }
  std::string SaveApart(ApartTensors* apart) const final { return Save(apart); }
  void Attach(std::string_view data, const std::shared_ptr<void>& owner) final;
};

// ---- running ----------------------------------------------------------------------------------
/// A function of a virtual machine as a value, with what it captured.
struct ClosureObj : Object {
  String func_name;
  Function impl;  ///< (virtual machine, arguments…)
  ClosureObj(String func_name, Function impl)
      : func_name(std::move(func_name)), impl(std::move(impl)) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.vm.Closure", ClosureObj, Object);
};
class Closure : public ObjectRef {
 public:
  Closure(String func_name, Function impl);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Closure, ObjectRef, ClosureObj);
};

class Program;  // an executable with its functions found

/// Runs the functions of an executable; see VirtualMachine below. After Init, all methods may be
/// called from several threads at once, except that inputs set by SetInput belong to a function,
/// not to a thread.
class VirtualMachineObj : public ffi::ModuleObj {
 public:
  VirtualMachineObj(Module executable, bool profiles);
  ~VirtualMachineObj();
  /// Finds the functions and moves constants to the first device. The CPU is added as the last
  /// device where it is not.
  void Init(std::vector<DLDevice> devices, std::vector<AllocatorKind> kinds);

  void Invoke(int64_t function, ffi::PackedArgs args, Any* result) {
    InvokeOf(executable_, function, args, result);
  }
  /// The same for a function of `owner`, which must be this machine's executable.
  void InvokeOf(const Module& owner, int64_t function, ffi::PackedArgs args, Any* result);
  /// Of a Closure or a Function.
  void InvokeClosure(const AnyView& closure, ffi::PackedArgs args, Any* result);
  /// -1: the last device, which is the CPU.
  Allocator* allocator(int64_t device_index) const;
  /// What the program keeps from call to call under a name, or null. A value that was set is never
  /// written to: whoever has read it may go on using it.
  Optional<Tensor> GetState(const String& name) const;
  void SetState(const String& name, Tensor value);

  const char* kind() const final { return "relax.VirtualMachine"; }
  int GetPropertyMask() const final { return Module::kRunnable; }
  Optional<Function> GetFunction(const String& name) final;

 private:
  friend struct VMFunctions;  // what GetFunction offers
  struct State;
  const ExecutableObj* executable() const;
  /// Index of a function that is no packed one; ValueError when there is none.
  int64_t Require(const String& name) const;

  Module executable_;
  const bool profiles_;
  std::unique_ptr<const Program> program_;
  std::vector<DLDevice> devices_;
  std::vector<Allocator*> allocators_;
  std::unique_ptr<State> state_;
  std::atomic<bool> has_instrument_{false}, has_inputs_{false};  // spare most calls the lock
};

/// A machine for an executable, as it was compiled or loaded:
///
///   VirtualMachine vm(LoadModule("model.so"));
///   Any result = vm["main"](x);
class VirtualMachine {
 public:
  /// The CPU is added where it is not among the devices. ValueError when `executable` is none.
  explicit VirtualMachine(const Module& executable, std::vector<DLDevice> devices = {{kDLCPU, 0}},
                          AllocatorKind kind = AllocatorKind::kPooled);
  /// AttributeError with the nearest name when there is no such function.
  Function operator[](const String& name) const { return GetFunction(module_, name); }
  const FunctionInfo& info(const String& name) const;
  const Module& module() const { return module_; }

 private:
  Module executable_, module_;
};

}  // namespace tvm::runtime::vm
