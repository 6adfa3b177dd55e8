// SPDX-License-Identifier: Apache-2.0
// Functions as bytecode.
#include "relax/vm/emitter.h"

namespace tvm::relax {
namespace {
class BytecodeEmitter : public VMEmitter {
 public:
  /// For the function that the builder just began.
  explicit BytecodeEmitter(ExecBuilder builder)
      : builder_(std::move(builder)), begin_(builder_->NumInstructions()) {}
  void Call(const std::string& name, const std::vector<Operand>& args, Operand dst) final {
    builder_->EmitCall(name, args, dst);
  }
  void Clear(Operand reg) final { builder_->EmitCall("vm.builtin.null_value", {}, reg); }
  void If(Operand condition, const std::function<void()>& true_branch,
          const std::function<void()>& false_branch) final {
    int64_t choice = builder_->NumInstructions();
    builder_->EmitIf(condition, 0);
    true_branch();
    int64_t leave = builder_->NumInstructions();
    builder_->EmitGoto(0);
    builder_->JumpHere(choice);
    false_branch();
    builder_->JumpHere(leave);
  }
  void Ret(Operand reg) final { builder_->EmitRet(reg); }
  void Restart() final { builder_->EmitGoto(begin_ - builder_->NumInstructions()); }

 private:
  ExecBuilder builder_;
  int64_t begin_;
};
}  // namespace

IRModule VMCodeGen(const ExecBuilder& builder, const IRModule& mod) {
  Map<GlobalVar, BaseFunc> others;
  for (const auto& [var, base] : mod->Sorted()) {
    auto* func = base.as<FunctionObj>();
    if (!func) {
      if (!base.as<ExternFuncObj>()) others.Set(var, base);  // those are found by name
      continue;
    }
    auto graph = ffi::GetRef<Function>(func);
    std::string name = VMSymbol(var, base);
    builder->BeginFunction(name, ParamNames(graph));
    BytecodeEmitter emitter(builder);
    EmitFunction(graph, mod, builder, &emitter);
    builder->EndFunction();
    builder->SetSignature(name, VMSignature(graph));
  }
  return IRModule(others, mod->attrs, mod->global_infos);
}

TVM_REGISTER() {
  Def("relax.VMCodeGen", &VMCodeGen,
      "Adds the lowered functions of the graph language to the builder as bytecode; returns the "
      "module without them.",
      Arg("exec_builder"), Arg("mod"));
}
}  // namespace tvm::relax
