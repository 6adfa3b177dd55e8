// SPDX-License-Identifier: Apache-2.0
// Making an executable ready to run.
#include "runtime/vm/program.h"

#include <algorithm>

namespace tvm::runtime::vm {
namespace {
std::optional<Function> LookUp(const ExecutableObj* exec, const std::string& name) {
  for (const Any& import : exec->imports()) {
    if (auto fn = import.cast<Module>()->GetFunction(name, true)) return *fn;
  }
  return Function::GetGlobal(name);
}
}  // namespace

Program::Program(const ExecutableObj* exec, VirtualMachineObj* vm, DLDevice device)
    : exec_(exec), vm_(vm) {
  if (!exec->missing.empty()) {
    TVM_FFI_THROW(ValueError)
        << "VM: the constants of the executable are elsewhere in its library; "
           "load it with tvm.runtime.load_module";
  }
  for (const Any& constant : exec->constants) constants_.push_back(ToDevice(constant, device));
  for (size_t i = 0; i < exec->functions.size(); ++i) {
    const FunctionInfo& f = exec->functions[i];
    std::string symbol = f.kind == FunctionKind::kVMTIR ? kVMTIRPrefix + f.name : f.name;
    Function found = nullptr;
    if (f.kind != FunctionKind::kVM) {
      auto looked_up = LookUp(exec, symbol);
      if (!looked_up) {
        TVM_FFI_THROW(ValueError) << "VM: cannot find the function '" << symbol
                                  << "', neither in the modules that the executable imports nor "
                                  << "in the registry";
      }
      found = *looked_up;
    }
    functions_.push_back(found);
    if (f.kind == FunctionKind::kPacked) {
      values_.push_back(found);
      continue;
    }
    // It owns the executable but no virtual machine: that one is its first argument.
    auto impl = [owner = ffi::GetRef<Module>(exec), i](ffi::PackedArgs args, Any* result) {
      auto* machine = static_cast<VirtualMachineObj*>(args[0].cast<void*>());
      machine->InvokeOf(owner, static_cast<int64_t>(i), args.Slice(1), result);
    };
    values_.push_back(Closure(f.name, Function::FromPacked(impl)));
  }
  for (const FunctionInfo& f : exec->functions) bodies_.push_back(Decode(f));
}

Program::Arg Program::Resolve(Operand operand) const {
  auto fixed = [](AnyView value) { return Arg{-1, value.CopyToTVMFFIAny()}; };
  int64_t value = operand.value();
  switch (static_cast<ArgKind>(operand.kind())) {
    case ArgKind::kRegister:
      if (value == kVMRegister) return fixed(static_cast<void*>(vm_));
      if (value == kVoidRegister) return fixed(nullptr);
      return {value, {}};
    case ArgKind::kImmediate:
      return fixed(value);
    case ArgKind::kConstant:
      return fixed(constants_[value]);
    case ArgKind::kFunction:
      return fixed(values_[value]);
  }
  TVM_FFI_UNREACHABLE();  // verified
}

Program::Body Program::Decode(const FunctionInfo& f) {
  Body body;
  if (f.kind != FunctionKind::kVM) return body;
  for (int64_t pc = f.begin; pc < f.end; ++pc) {
    const int64_t* w = exec_->instruction(pc);
    Instruction in{static_cast<Step>(w[0]), w[1], 0, static_cast<int64_t>(args_.size()), 0};
    switch (in.op) {
      case Step::kCall:
        if (in.dst == kVoidRegister) in.dst = -1;
        if (in.dst >= 0 && exec_->functions[w[2]].name == "vm.builtin.null_value") {
          in.op = Step::kClear;
          break;
        }
        in.target = w[2];
        in.num_args = w[3];
        for (int64_t i = 0; i < w[3]; ++i) args_.push_back(Resolve({w[4 + i]}));
        body.max_args = std::max(body.max_args, in.num_args);
        break;
      case Step::kRet:
      case Step::kClear:
        break;
      case Step::kGoto:
        in.target = pc - f.begin + w[1];
        break;
      case Step::kIf:
        in.target = pc - f.begin + w[2];
        break;
    }
    body.code.push_back(in);
  }
  return body;
}

Any ToDevice(const Any& value, DLDevice device, std::string_view scope) {
  if (auto tensor = As<Tensor>(value)) {
    DLDevice from = tensor->device();
    if (from.device_type == device.device_type && from.device_id == device.device_id) return value;
    Tensor copy = Empty(tensor->shape(), tensor->dtype(), device, scope);
    CopyTensor(*tensor, copy);
    return copy;
  }
  if (auto tuple = value.as<Array<Any>>()) {
    Array<Any> moved;
    for (const Any& item : *tuple) moved.push_back(ToDevice(item, device, scope));
    return moved;
  }
  return value;
}
}  // namespace tvm::runtime::vm
