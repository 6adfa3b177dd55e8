// SPDX-License-Identifier: Apache-2.0
// Functions as PrimFuncs that call what bytecode would call, without an interpreter between.
#include <unordered_map>

#include "relax/vm/emitter.h"
#include "topi/loops.h"
#include "tvm/expr/op.h"
#include "tvm/tir/function.h"
#include "tvm/tir/stmt.h"
#include "tvm/tir/unoptimized.h"

namespace tvm::relax {
namespace {
using tir::Evaluate, tir::Stmt;
namespace bi = tir::builtin;

/// How functions of the module are called.
enum class CalleeKind { kKernel, kGraph };
using Callees = std::unordered_map<std::string, CalleeKind>;

class TIREmitter : public VMEmitter {
 public:
  TIREmitter(ExecBuilder builder, const Callees& callees, int64_t result)
      : builder_(std::move(builder)), callees_(callees), result_(VMRegister(result)) {}

  /// __vmtir__name(machine, registers, constants, functions)
  tir::PrimFunc Finish(const std::string& name) {
    Map<String, Any> attrs{{tvm::attr::kGlobalSymbol, String(runtime::vm::kVMTIRPrefix + name)},
                           {"tir.is_host_func", true},
                           {tir::attr::kUnoptimized, true}};
    bool restarts = certain_ != kAll;
    Stmt body = Whole();
    if (restarts) {
      Stmt turn = tir::SeqStmt::Flatten({again_.Set(Index(0)), body});
      body = topi::WithBuffer(
          again_.buffer,
          tir::SeqStmt::Flatten(
              {again_.Set(Index(1)), tir::While(not_equal(again_.Get(), Index(0)), turn)}));
    }
    return tir::PrimFunc({machine_, registers_, constants_, functions_}, body, TupleType::Void(),
                         {}, DictAttrs(attrs));
  }

  void Call(const std::string& name, const std::vector<Operand>& args, Operand dst) final {
    auto callee = callees_.find(name);
    if (callee != callees_.end() && callee->second == CalleeKind::kGraph) {
      std::vector<Operand> all{{runtime::vm::kVMRegister},
                               Operand::Make(ArgKind::kFunction, builder_->DeclareFunction(name))};
      all.insert(all.end(), args.begin(), args.end());
      return SetItem(bi::anylist_setitem_call_packed(), "vm.builtin.invoke_closure", all, dst);
    }
    bool is_kernel = callee != callees_.end();
    if (!is_kernel) builder_->DeclareFunction(name);  // missing ones are found out at once
    SetItem(is_kernel ? bi::anylist_setitem_call_cpacked() : bi::anylist_setitem_call_packed(),
            name, args, dst);
  }
  void Clear(Operand reg) final {
    body_.push_back(
        Evaluate(tir::Call(kStatus, bi::anylist_resetitem(), {registers_, Index(reg.value())})));
  }
  void If(Operand condition, const std::function<void()>& true_branch,
          const std::function<void()>& false_branch) final {
    PrimExpr is_true = tir::Call(DataType::Bool(), bi::tvm_call_packed(),
                                 {tir::StringImm("vm.builtin.read_if_cond"), Value(condition)});
    bool restarts = false;
    Stmt chosen = Nested(true_branch, &restarts), other = Nested(false_branch, &restarts);
    body_.push_back(tir::IfThenElse(is_true, chosen, other));
    if (restarts) certain_ = std::min(certain_, body_.size());
  }
  void Ret(Operand reg) final {
    if (reg.word != result_.word) Call("vm.builtin.copy", {reg}, result_);
  }
  void Restart() final {
    Call("vm.builtin.check_signals", {}, {runtime::vm::kVoidRegister});
    body_.push_back(again_.Set(Index(1)));
    certain_ = std::min(certain_, body_.size());
  }

 private:
  static constexpr DataType kStatus = DataType::Int(32);
  static PrimExpr Index(int64_t index) { return MakeConst(DataType::Int(32), index); }
  static PrimExpr Item(const tir::Var& list, int64_t index) {
    return tir::Call(DataType::Handle(), bi::anylist_getitem(), {list, Index(index)});
  }
  PrimExpr Value(Operand operand) const {
    int64_t value = operand.value();
    switch (static_cast<ArgKind>(operand.kind())) {
      case ArgKind::kImmediate:
        return IntImm::Int64(value);
      case ArgKind::kConstant:
        return Item(constants_, value);
      case ArgKind::kFunction:
        return Item(functions_, value);
      case ArgKind::kRegister:
        break;
    }
    if (value == runtime::vm::kVMRegister) return machine_;
    if (value == runtime::vm::kVoidRegister) return MakeConst(DataType::Handle(), 0);
    return Item(registers_, value);
  }
  /// What nobody uses is kept where the result will be, so that it is released.
  void SetItem(const Op& op, const std::string& name, const std::vector<Operand>& args,
               Operand dst) {
    if (dst.word == runtime::vm::kVoidRegister) dst = result_;
    Array<PrimExpr> all{registers_, Index(dst.value()), tir::StringImm(name)};
    for (Operand arg : args) all.push_back(Value(arg));
    body_.push_back(Evaluate(tir::Call(kStatus, op, all)));
  }
  Stmt Nested(const std::function<void()>& emit, bool* restarts) {
    Array<Stmt> outer = std::exchange(body_, {});
    size_t certain = std::exchange(certain_, kAll);
    emit();
    *restarts |= certain_ != kAll;
    Stmt nested = Whole();
    body_ = outer;
    certain_ = certain;
    return nested;
  }
  /// The statements; behind those that are certain the function may have to begin again.
  Stmt Whole() const {
    if (certain_ >= body_.size()) return tir::SeqStmt::Flatten(body_);
    auto middle = body_.begin() + static_cast<int64_t>(certain_);
    Stmt rest = tir::SeqStmt::Flatten(Array<Stmt>(middle, body_.end()));
    Array<Stmt> all(body_.begin(), middle);
    all.push_back(tir::IfThenElse(equal(again_.Get(), Index(0)), rest));
    return tir::SeqStmt::Flatten(all);
  }

  ExecBuilder builder_;
  const Callees& callees_;
  Operand result_;
  tir::Var machine_{"ctx_ptr", DataType::Handle()}, registers_{"r", DataType::Handle()},
      constants_{"c", DataType::Handle()}, functions_{"f", DataType::Handle()};
  topi::Scalar again_{"again", DataType::Int(32)};
  static constexpr size_t kAll = SIZE_MAX;
  size_t certain_ = kAll;  // how many of the statements run in any case
  Array<Stmt> body_;
};
}  // namespace

IRModule VMTIRCodeGen(const ExecBuilder& builder, const IRModule& mod) {
  Callees callees;
  for (const auto& [var, func] : mod->functions) {
    bool is_graph = func.as<FunctionObj>();
    if (is_graph || func.as<tir::PrimFuncObj>())
      callees[VMSymbol(var, func)] = is_graph ? CalleeKind::kGraph : CalleeKind::kKernel;
  }
  Map<GlobalVar, BaseFunc> others;
  for (const auto& [var, base] : mod->Sorted()) {
    auto* func = base.as<FunctionObj>();
    if (!func) {
      if (!base.as<ExternFuncObj>()) others.Set(var, base);  // those are found by name
      continue;
    }
    auto graph = ffi::GetRef<Function>(func);
    std::string name = VMSymbol(var, base);
    TIREmitter emitter(builder, callees, static_cast<int64_t>(func->params.size()));
    int64_t num_registers = EmitFunction(graph, mod, builder, &emitter);
    builder->DefineCompiled(name, ParamNames(graph), num_registers);
    builder->SetSignature(name, VMSignature(graph));
    others.Set(GlobalVar(runtime::vm::kVMTIRPrefix + name), emitter.Finish(name));
  }
  return IRModule(others, mod->attrs, mod->global_infos);
}

TVM_REGISTER() {
  Def("relax.VMTIRCodeGen", &VMTIRCodeGen,
      "Makes a PrimFunc of each lowered function of the graph language, which the builder gets to "
      "know; returns the module with them.",
      Arg("exec_builder"), Arg("mod"));
}
}  // namespace tvm::relax
