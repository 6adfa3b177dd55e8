// SPDX-License-Identifier: Apache-2.0
// What lowered functions are translated into: calls of functions by name over registers, choices, a
// return. Bytecode and compiled functions are two ways to write that down.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tvm/relax/vm.h"

namespace tvm::relax {
using runtime::vm::ArgKind, runtime::vm::ExecBuilder, runtime::vm::Operand;

inline Operand VMRegister(int64_t index) { return Operand::Make(ArgKind::kRegister, index); }

/// The code of one function, in the order in which it runs.
class VMEmitter {
 public:
  virtual ~VMEmitter() = default;
  virtual void Call(const std::string& name, const std::vector<Operand>& args, Operand dst) = 0;
  /// The value of a register becomes None.
  virtual void Clear(Operand reg) = 0;
  /// Each function emits one branch.
  virtual void If(Operand condition, const std::function<void()>& true_branch,
                  const std::function<void()>& false_branch) = 0;
  virtual void Ret(Operand reg) = 0;
  /// Begins again with the first instruction. What follows runs only where this does not.
  virtual void Restart() = 0;
};

/// Emits the body of a function; its parameters are the first registers. The result is the number
/// of registers.
int64_t EmitFunction(const Function& func, const IRModule& mod, const ExecBuilder& builder,
                     VMEmitter* emitter);
/// The name of a function of the module in the executable.
std::string VMSymbol(const GlobalVar& var, const BaseFunc& func);
std::vector<std::string> ParamNames(const Function& func);
/// What goes in and comes out: FunctionInfo::signature.
std::string VMSignature(const Function& func);

}  // namespace tvm::relax
