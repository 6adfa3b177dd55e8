// SPDX-License-Identifier: Apache-2.0
// Executables as text for people, and as a Python program that builds them again.
#include <algorithm>
#include <sstream>

#include "tvm/runtime/vm.h"

namespace tvm::runtime::vm {
namespace {
std::string ShapeText(ShapeView shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}
std::string Names(const ExecutableObj* exec, bool packed) {
  std::string text;
  int count = 0;
  for (const FunctionInfo& f : exec->functions) {
    if ((f.kind == FunctionKind::kPacked) != packed) continue;
    text += (count++ ? ", " : "") + f.name;
  }
  return "(#" + std::to_string(count) + "): [" + text + "]\n";
}
/// An argument in one of the two notations, `%3`, `i(3)`, `c[3]`, `f[name]` or `ib.r(3)`, ….
std::string ArgText(const ExecutableObj* exec, Operand arg, bool python) {
  std::string value = std::to_string(arg.value());
  switch (static_cast<ArgKind>(arg.kind())) {
    case ArgKind::kRegister:
      if (arg.value() == kVoidRegister) return python ? "ib.void_arg()" : "%void";
      if (arg.value() == kVMRegister) return python ? "ib.vm_state()" : "%vm";
      return python ? "ib.r(" + value + ")" : "%" + value;
    case ArgKind::kImmediate:
      return python ? "ib.imm(" + value + ")" : "i(" + value + ")";
    case ArgKind::kConstant:
      return python ? "ib.c(" + value + ")" : "c[" + value + "]";
    case ArgKind::kFunction:
      break;
  }
  const std::string& name = exec->functions[arg.value()].name;
  return python ? "ib.f(\"" + name + "\")" : "f[" + name + "]";
}
std::string ArgsText(const ExecutableObj* exec, const int64_t* call, bool python) {
  std::string text;
  for (int64_t i = 0; i < call[3]; ++i) {
    text += (i ? ", " : "") + ArgText(exec, {call[4 + i]}, python);
  }
  return text;
}
std::string Padded(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}
}  // namespace

std::string ExecutableObj::Stats() const {
  std::string shapes;
  for (size_t i = 0; i < constants.size(); ++i) {
    auto tensor = As<Tensor>(constants[i]);
    bool text = constants[i].as<String>().has_value();  // of one of two types
    shapes += (i ? ", " : "") + (tensor ? ShapeText(tensor->shape())
                                 : text ? "str"
                                        : AnyView(constants[i]).GetTypeKey());
  }
  return "Relax VM executable statistics:\n  Constant shapes (#" +
         std::to_string(constants.size()) + "): [" + shapes + "]\n  Globals " +
         Names(this, false) + "  Packed functions " + Names(this, true);
}

std::string ExecutableObj::AsText() const {
  std::ostringstream out;
  for (const FunctionInfo& f : functions) {
    if (f.kind == FunctionKind::kPacked) continue;
    if (f.kind == FunctionKind::kVMTIR) {
      out << "@" << f.name << " num_inputs=" << f.params.size() << " vmtir\n\n";
      continue;
    }
    out << "@" << f.name << ":\n";
    for (int64_t pc = f.begin; pc < f.end; ++pc) {
      const int64_t* w = instruction(pc);
      switch (static_cast<Opcode>(w[0])) {
        case Opcode::kCall:
          out << "  call  " << Padded(functions[w[2]].name, 16) << "  in: "
              << Padded(ArgsText(this, w, false), 12) << "  dst: " << ArgText(this, {w[1]}, false);
          break;
        case Opcode::kRet:
          out << "  ret   %" << w[1];
          break;
        case Opcode::kGoto:
          out << "  goto  " << w[1];
          break;
        case Opcode::kIf:
          out << "  if    %" << w[1] << "  false: " << w[2];
          break;
      }
      out << "\n";
    }
    out << "\n";
  }
  return out.str();
}

std::string ExecutableObj::AsPython() const {
  std::ostringstream out;
  out << "ib = relax.ExecBuilder()\n";
  for (const FunctionInfo& f : functions) {
    if (f.kind != FunctionKind::kVM) continue;
    out << "with ib.function(\"" << f.name << "\", num_inputs=" << f.params.size();
    out << ", param_names=[";
    for (size_t i = 0; i < f.params.size(); ++i) {
      out << (i ? ", " : "") << '"' << f.params[i] << '"';
    }
    out << "]):\n";
    for (int64_t pc = f.begin; pc < f.end; ++pc) {
      const int64_t* w = instruction(pc);
      switch (static_cast<Opcode>(w[0])) {
        case Opcode::kCall:
          out << "    ib.emit_call(\"" << functions[w[2]].name << "\", args=["
              << ArgsText(this, w, true) << "]";
          if (w[1] != kVoidRegister) out << ", dst=" << ArgText(this, {w[1]}, true);
          out << ")\n";
          break;
        case Opcode::kRet:
          out << "    ib.emit_ret(ib.r(" << w[1] << "))\n";
          break;
        case Opcode::kGoto:
          out << "    ib.emit_goto(" << w[1] << ")\n";
          break;
        case Opcode::kIf:
          out << "    ib.emit_if(ib.r(" << w[1] << "), " << w[2] << ")\n";
          break;
      }
    }
  }
  return out.str();
}
}  // namespace tvm::runtime::vm
