// SPDX-License-Identifier: Apache-2.0
// An executable made ready to run: functions found, operands resolved.
#pragma once
#include <string>
#include <vector>

#include "tvm/runtime/vm.h"

namespace tvm::runtime::vm {

/// A measured call of a profile.
struct CallRecord {
  std::string name, arguments;
  DLDevice device;
  double microseconds;
};
/// What watches the calls of a run; both may be null.
struct Observer {
  const Function* instrument = nullptr;
  std::vector<CallRecord>* records = nullptr;
  DLDevice device{kDLCPU, 0};  ///< Waited for before a call's time is taken.
};

/// Values that compiled functions index: in front of them is their number, which the code compares
/// with what it needs.
class AnyList {
 public:
  void push_back(Any value) {
    items_.push_back(std::move(value));
    items_[0] = static_cast<int64_t>(items_.size() - 1);
  }
  const Any& operator[](int64_t i) const { return items_[i + 1]; }
  void* data() const { return const_cast<Any*>(items_.data() + 1); }

 private:
  std::vector<Any> items_{Any(int64_t{0})};
};

class Program {
 public:
  /// Functions are looked up in the modules that `exec` imports, then in the registry; constants
  /// are moved to `device`. ValueError names what is not found.
  Program(const ExecutableObj* exec, VirtualMachineObj* vm, DLDevice device);
  void Run(int64_t function, const AnyView* args, int32_t num_args, Any* result,
           const Observer* observer) const;
  /// A function as a value: what is not bytecode as it is, what is as a closure.
  const Any& value(int64_t function) const { return values_[function]; }

 private:
  struct Arg {
    int64_t reg;  // -1: `value`, which is borrowed or plain
    TVMFFIAny value;
  };
  /// Those of executables, and kClear: the register becomes None.
  enum class Step : int64_t { kCall = 1, kRet = 2, kGoto = 3, kIf = 4, kClear = 5 };
  struct Instruction {
    Step op;
    int64_t dst;     // of a call, -1: none; the register that is returned or tested
    int64_t target;  // of a jump; the called function
    int64_t args, num_args;
  };
  struct Body {
    int64_t max_args = 0;
    std::vector<Instruction> code;
  };
  Arg Resolve(Operand operand) const;
  Body Decode(const FunctionInfo& f);
  void RunBytecode(int64_t function, const AnyView* args, Any* result, const Observer*) const;
  void RunCompiled(int64_t function, const AnyView* args, Any* result) const;
  void Call(int64_t function, const AnyView* args, int32_t num_args, Any* result,
            const Observer* observer) const;
  void CallObserved(int64_t function, const AnyView* args, int32_t num_args, Any* result,
                    const Observer& observer) const;

  const ExecutableObj* exec_;
  VirtualMachineObj* vm_;
  AnyList constants_, values_;
  std::vector<Function> functions_;  // null for bytecode
  std::vector<Body> bodies_;
  std::vector<Arg> args_;
};

/// The machine that a builtin gets as its first argument; TypeError where that is none.
VirtualMachineObj* MachineOf(const AnyView& context, const char* what);
/// Gives back the CUDA graphs of a machine, and their memory.
void DropGraphs(const VirtualMachineObj* vm);
/// Whether a value counts as true in an If: a boolean, an integer, or a tensor with one of them.
bool ReadCondition(const AnyView& value);
/// A tensor, or the tensors in a tuple, on `device`; copied where it is elsewhere.
Any ToDevice(const Any& value, DLDevice device, std::string_view scope = "");
/// Where functions of this thread were when an exception passed them.
struct CallSite {
  const FunctionInfo* function;
  int64_t instruction;
  const FunctionInfo* callee;  // null: no call
  std::string hint;            // what may be wrong with the function's arguments; "": nothing
};
std::vector<CallSite>& CallSites();
[[noreturn]] void ThrowWithCallStack(size_t first);

/// Runs `body` and adds to an error which functions were running.
template <class F>
void WithCallStack(F&& body) {
  size_t first = CallSites().size();
  try {
    body();
  } catch (...) {
    ThrowWithCallStack(first);
  }
}

}  // namespace tvm::runtime::vm
