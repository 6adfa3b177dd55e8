// SPDX-License-Identifier: Apache-2.0
// Translates a lowered function: every binding becomes a register or an operand that is known.
#include <array>
#include <map>
#include <unordered_map>

#include "relax/vm/emitter.h"
#include "tvm/ir/stack.h"
#include "tvm/relax/infer.h"

namespace tvm::relax {
std::string VMSymbol(const GlobalVar& var, const BaseFunc& func) {
  return func->GetAttr<String>(tvm::attr::kGlobalSymbol).value_or(var->name_hint);
}
std::vector<std::string> ParamNames(const Function& func) {
  std::vector<std::string> names;
  for (const Var& param : func->params) names.emplace_back(param->name_hint());
  return names;
}

namespace {
constexpr Operand kVoid{runtime::vm::kVoidRegister}, kMachine{runtime::vm::kVMRegister};

bool IsRegister(Operand operand) {
  return operand.kind() == static_cast<int>(ArgKind::kRegister) &&
         operand.value() < runtime::vm::kVoidRegister;
}
bool ReturnsNothing(const RelaxExprObj* expr) {
  return expr->struct_info_.has_value() && IsVoidStructInfo(expr->struct_info_.value());
}

class FunctionEmitter {
 public:
  FunctionEmitter(const IRModule& mod, const ExecBuilder& builder, VMEmitter* emitter)
      : mod_(mod), builder_(builder), emitter_(emitter) {}
  int64_t Run(const Function& func) {
    func_ = func.get();
    for (const Var& param : func->params) values_[param->vid.get()] = NewRegister();
    // What a compiled function returns lies in the register behind its parameters.
    Operand result = NewRegister();
    Operand value = LastValue(func->body);
    emitter_->Ret(IsRegister(value) ? value : Copy(value, result));
    return num_registers_;
  }

 private:
  Operand NewRegister() { return VMRegister(num_registers_++); }
  Operand Constant(const Any& value) { return builder_->ConvertConstant(value); }
  Operand Emit(const std::string& name, const std::vector<Operand>& args) {
    Operand dst = NewRegister();
    emitter_->Call(name, args, dst);
    return dst;
  }
  Operand Copy(Operand value, Operand dst) {
    emitter_->Call("vm.builtin.copy", {value}, dst);
    return dst;
  }
  Operand InRegister(Operand value) {
    return IsRegister(value) ? value : Copy(value, NewRegister());
  }
  [[noreturn]] static void Fail(const std::string& what, const ObjectRef& where) {
    TVM_FFI_THROW(ValueError) << "VMCodeGen: " << what << ", got " << TextOf(where);
    TVM_FFI_UNREACHABLE();
  }

  std::vector<Operand> Values(const Array<Expr>& exprs, std::vector<Operand> first = {}) {
    for (const Expr& expr : exprs) first.push_back(Value(expr));
    return first;
  }
  Operand Value(const Expr& expr) {
    return Recurse([&] { return ValueOf(expr); });
  }
  Operand ValueOf(const Expr& expr) {
    if (auto* call = expr.as<CallObj>()) return OfCall(call);
    if (auto* var = expr.as<VarObj>()) return OfVar(var);
    if (auto* seq = expr.as<SeqExprObj>()) return OfSequence(seq);
    if (auto* choice = expr.as<IfObj>()) return OfIf(choice);
    if (auto* tuple = expr.as<TupleObj>())
      return Emit("vm.builtin.make_tuple", Values(tuple->fields));
    if (auto* item = expr.as<TupleGetItemObj>()) {
      return Emit("vm.builtin.tuple_getitem",
                  {Value(item->tuple_value), Operand::Make(ArgKind::kImmediate, item->index)});
    }
    if (auto* constant = expr.as<ConstantObj>()) return Constant(constant->data);
    if (auto* text = expr.as<StringImmObj>()) return Constant(text->value);
    if (auto* dtype = expr.as<DataTypeImmObj>()) return Constant(dtype->value);
    if (auto* prim = expr.as<PrimValueObj>()) return OfPrim(prim);
    if (auto* shape = expr.as<ShapeExprObj>()) return OfShape(shape);
    if (expr.as<GlobalVarObj>() || expr.as<ExternFuncObj>()) {
      return Operand::Make(ArgKind::kFunction, builder_->DeclareFunction(Symbol(expr)));
    }
    if (expr.as<FunctionObj>()) Fail("expected local functions to be lifted (LambdaLift)", expr);
    Fail("expected an expression of the virtual machine", expr);
  }

  Operand OfVar(const VarObj* var) {
    auto it = values_.find(var->vid.get());
    if (it == values_.end())
      Fail("expected a variable that is defined before", ffi::GetRef<Var>(var));
    // What returns nothing has no register; as a value it is the empty tuple.
    bool is_empty = it->second.word == kVoid.word && ReturnsNothing(var);
    return is_empty ? Emit("vm.builtin.make_tuple", {}) : it->second;
  }
  Operand OfSequence(const SeqExprObj* seq) {
    for (const BindingBlock& block : seq->blocks) {
      for (const Binding& binding : block->bindings) {
        auto* plain = binding.as<VarBindingObj>();
        if (!plain) Fail("expected casts to be lowered (VMShapeLower)", binding);
        Bind(plain);
      }
    }
    return Value(seq->body);
  }
  Operand OfIf(const IfObj* choice, bool is_last = false) {
    Operand condition = InRegister(Value(choice->cond)), result = NewRegister();
    emitter_->If(
        condition, [&] { Branch(choice->true_branch, result, is_last); },
        [&] { Branch(choice->false_branch, result, is_last); });
    return result;
  }
  void Branch(const Expr& branch, Operand result, bool is_last) {
    int64_t first = num_registers_;
    ++branch_depth_;
    Operand value = is_last ? LastValue(branch) : Value(branch);
    --branch_depth_;
    Copy(value, result);
    // Nobody sees the branch's own variable any more: what it holds must not outlive the result.
    if (IsRegister(value) && value.value() >= first) emitter_->Clear(value);
  }

  // ---- calls of itself as the last thing --------------------------------------------------------
  // Such a call begins again with other arguments: a loop takes no stack, however long it is.
  /// The value that the function returns.
  Operand LastValue(const Expr& expr) {
    return Recurse([&]() -> Operand {
      if (auto* choice = expr.as<IfObj>()) return OfIf(choice, true);
      auto* seq = expr.as<SeqExprObj>();
      return seq ? OfLastSequence(seq) : Value(expr);
    });
  }
  Operand OfLastSequence(const SeqExprObj* seq) {
    std::vector<const VarBindingObj*> bindings;
    for (const BindingBlock& block : seq->blocks) {
      for (const Binding& binding : block->bindings)
        bindings.push_back(binding.as<VarBindingObj>());
    }
    size_t last = bindings.size();
    while (last > 0 && (IsKill(bindings[last - 1]) || IsCheck(bindings[last - 1]))) --last;
    const VarBindingObj* made = last > 0 ? bindings[last - 1] : nullptr;
    auto* result = seq->body.as<VarObj>();
    if (!made || !result || made->var->vid.get() != result->vid.get()) return OfSequence(seq);
    auto* call = made->value.as<CallObj>();
    bool is_self =
        call && call->op.as<GlobalVarObj>() && mod_->Lookup(As<GlobalVar>(call->op)).get() == func_;
    if (!is_self && !made->value.as<IfObj>()) return OfSequence(seq);
    for (size_t i = 0; i + 1 < last; ++i) Bind(bindings[i]);
    size_t ending = ending_.size();
    std::copy_if(bindings.begin() + static_cast<int64_t>(last), bindings.end(),
                 std::back_inserter(ending_), &IsKill);
    Operand value = is_self ? BeginAgain(call) : LastValue(made->value);
    ending_.resize(ending);
    values_[made->var->vid.get()] = value;
    for (size_t i = last; i < bindings.size(); ++i) Bind(bindings[i]);
    return Value(seq->body);
  }
  Operand BeginAgain(const CallObj* call) {
    std::vector<Operand> args = Values(call->args);
    auto count = static_cast<int64_t>(args.size());
    auto is_param = [&](Operand operand) { return IsRegister(operand) && operand.value() < count; };
    auto is_moved = [&](int64_t i) { return args[i].word != VMRegister(i).word; };
    std::vector<Operand> aside;  // parameters that become others: those are overwritten
    for (int64_t i = 0; i < count; ++i) {
      if (!is_param(args[i]) || !is_moved(i)) continue;
      args[i] = Copy(args[i], NewRegister());
      aside.push_back(args[i]);
    }
    for (int64_t i = 0; i < count; ++i) {
      if (is_moved(i)) Copy(args[i], VMRegister(i));
    }
    for (Operand reg : aside) emitter_->Clear(reg);
    for (const VarBindingObj* kill : ending_) {
      Operand value = Value(kill->value.as<CallObj>()->args[0]);
      if (IsRegister(value) && !is_param(value)) emitter_->Clear(value);
    }
    emitter_->Restart();
    Operand nothing = NewRegister();
    emitter_->Clear(nothing);
    return nothing;
  }
  static bool IsKill(const VarBindingObj* binding) {
    static const Op& kill = *new Op(Op::Get("relax.vm.kill_object"));
    auto* call = binding ? binding->value.as<CallObj>() : nullptr;
    return call && call->Is(kill);
  }
  /// Whether it looks at the result: what the call of itself returns was looked at there.
  static bool IsCheck(const VarBindingObj* binding) {
    if (binding && binding->value.as<TupleGetItemObj>()) return true;
    auto* call = binding ? binding->value.as<CallObj>() : nullptr;
    auto* callee = call ? call->op.as<ExternFuncObj>() : nullptr;
    return callee && View(callee->global_symbol).starts_with("vm.builtin.check_");
  }
  void Bind(const VarBindingObj* binding) {
    values_[binding->var->vid.get()] = Value(binding->value);
  }

  Operand OfPrim(const PrimValueObj* prim) {
    if (auto* number = prim->value.as<FloatImmObj>()) return Constant(number->value);
    auto* number = prim->value.as<IntImmObj>();
    if (!number) {
      Fail("expected scalars to be computed (ComputePrimValue, VMShapeLower)", prim->value);
    }
    if (number->dtype.is_bool()) return Constant(number->value != 0);
    constexpr int64_t kImmediateLimit = int64_t{1} << (Operand::kBits - 1);
    bool fits = number->value >= -kImmediateLimit && number->value < kImmediateLimit;
    return fits ? Operand::Make(ArgKind::kImmediate, number->value) : Constant(number->value);
  }
  Operand OfShape(const ShapeExprObj* shape) {
    std::vector<int64_t> extents;
    for (const PrimExpr& dim : shape->values) {
      auto extent = AsConstInt(dim);
      if (!extent) {
        Fail("expected shapes to be computed (VMShapeLower)", ffi::GetRef<ShapeExpr>(shape));
      }
      extents.push_back(*extent);
    }
    return Constant(ffi::Shape(extents.begin(), extents.end()));
  }

  /// The name of a function in the executable.
  std::string Symbol(const Expr& callee) const {
    if (auto* packed = callee.as<ExternFuncObj>()) return packed->global_symbol;
    auto var = As<GlobalVar>(callee);
    BaseFunc func = mod_->Lookup(var);
    if (auto* packed = func.as<ExternFuncObj>()) return packed->global_symbol;
    return VMSymbol(var, func);
  }
  Operand OfCall(const CallObj* call) {
    if (call->op.as<OpObj>()) return OfOperator(call);
    if (call->op.as<GlobalVarObj>() || call->op.as<ExternFuncObj>())
      return Result(call, Symbol(call->op), Values(call->args));
    return Result(call, "vm.builtin.invoke_closure",
                  Values(call->args, {kMachine, Value(call->op)}));
  }
  /// A call whose result nobody can use needs no register.
  Operand Result(const CallObj* call, const std::string& name, const std::vector<Operand>& args) {
    if (!ReturnsNothing(call)) return Emit(name, args);
    emitter_->Call(name, args, kVoid);
    return kVoid;
  }
  const Array<Expr>& Fields(const Expr& args) const {
    auto* tuple = args.as<TupleObj>();
    if (!tuple) Fail("expected the arguments of a call as a tuple", args);
    return tuple->fields;
  }
  Operand OfOperator(const CallObj* call) {
    const String& name = call->op.as<OpObj>()->name;
    const Array<Expr>& args = call->args;
    if (name == "relax.call_builtin_with_ctx")
      return Result(call, Symbol(args[0]), Values(Fields(args[1]), {kMachine}));
    if (name == "relax.call_pure_packed" || name == "relax.call_inplace_packed") {
      std::vector<Operand> values = Values(Array<Expr>(args.begin() + 1, args.end()));
      return Result(call, Symbol(args[0]), values);
    }
    if (name == "relax.vm.call_tir_dyn") {
      return Result(call, "vm.builtin.call_tir_dyn", Values(Fields(args[1]), {Value(args[0])}));
    }
    if (name == "relax.null_value") return kVoid;
    if (name == "relax.vm.alloc_storage")
      return Emit("vm.builtin.alloc_storage", Values(args, {kMachine}));
    if (name == "relax.vm.alloc_tensor")  // the storage knows its device
      return AllocTensor(Values(Array<Expr>(args.begin(), args.begin() + 4)));
    if (name == "relax.vm.kill_object") {
      Operand value = Value(args[0]);
      if (IsRegister(value)) Kill(value);
      return kVoid;
    }
    Fail("expected operators to be lowered (LegalizeOps, LowerRuntimeBuiltin)",
         ffi::GetRef<Call>(call));
  }

  // ---- tensors in storages ----------------------------------------------------------------------
  // A tensor of one place, shape and type in one storage is made once, however often values lie
  // there; it costs no memory that the storage does not.
  struct PlacedTensor {
    Operand reg;
    bool is_alive;  // whether a value lies there
  };
  using Place = std::array<int64_t, 3>;  // offset, shape, type

  Operand AllocTensor(const std::vector<Operand>& args) {
    bool is_fixed = IsRegister(args[0]) && !IsRegister(args[1]) && !IsRegister(args[2]);
    Place place{args[1].word, args[2].word, args[3].word};
    if (auto storage = placed_.find(args[0].value()); is_fixed && storage != placed_.end()) {
      if (auto known = storage->second.find(place); known != storage->second.end()) {
        known->second.is_alive = true;
        return known->second.reg;
      }
    }
    Operand tensor = Emit("vm.builtin.alloc_tensor", args);
    if (is_fixed && branch_depth_ == 0) {
      placed_[args[0].value()][place] = {tensor, true};
      storage_of_[tensor.value()] = {args[0].value(), place};
    }
    return tensor;
  }
  void Kill(Operand reg) {
    if (auto tensor = storage_of_.find(reg.value()); tensor != storage_of_.end()) {
      const auto& [storage, place] = tensor->second;
      placed_[storage][place].is_alive = false;
      return;
    }
    // Its tensors keep the storage: those that are not needed any more go, others when they end.
    if (auto storage = placed_.find(reg.value()); storage != placed_.end()) {
      for (const auto& [place, tensor] : storage->second) {
        storage_of_.erase(tensor.reg.value());
        if (!tensor.is_alive) emitter_->Clear(tensor.reg);
      }
      placed_.erase(storage);
    }
    emitter_->Clear(reg);
  }

  const IRModule& mod_;
  const ExecBuilder& builder_;
  VMEmitter* emitter_;
  const Object* func_ = nullptr;
  std::vector<const VarBindingObj*> ending_;  // values that end behind the function's last one
  int64_t num_registers_ = 0;
  int branch_depth_ = 0;
  std::unordered_map<int64_t, std::map<Place, PlacedTensor>> placed_;  // by register of the storage
  std::unordered_map<int64_t, std::pair<int64_t, Place>> storage_of_;  // by register of the tensor
  std::unordered_map<const Object*, Operand> values_;                  // by the id of the variable
};
}  // namespace

int64_t EmitFunction(const Function& func, const IRModule& mod, const ExecBuilder& builder,
                     VMEmitter* emitter) {
  return FunctionEmitter(mod, builder, emitter).Run(func);
}
}  // namespace tvm::relax
