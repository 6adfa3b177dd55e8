// SPDX-License-Identifier: Apache-2.0
// Building executables, and the builder's face for Python.
#include "tvm/runtime/exec_builder.h"

#include <cstring>
#include <functional>

#include "runtime/host_tensor.h"

namespace tvm::runtime::vm {
namespace {
std::string_view TensorBytes(const Tensor& t) {
  return {static_cast<const char*>(t.data_ptr()) + t.byte_offset(), DataSize(t.shape(), t.dtype())};
}
bool SameExtents(ShapeView a, ShapeView b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}
/// Of pieces from all over large tensors: reading all weights would take a tenth of a second per
/// 500 MB, and those that are equal in the pieces are compared as a whole.
size_t HashBytes(std::string_view bytes) {
  constexpr size_t kPiece = 64, kPieces = 64;
  std::hash<std::string_view> hash;
  if (bytes.size() <= kPiece * kPieces) return hash(bytes);
  size_t mixed = bytes.size(), step = bytes.size() / kPieces;
  for (size_t i = 0; i < kPieces; ++i) mixed = mixed * 31 + hash(bytes.substr(i * step, kPiece));
  return mixed;
}
size_t HashConstant(const Any& value) {
  if (auto tensor = As<Tensor>(value)) return HashBytes(TensorBytes(*tensor));
  if (auto shape = value.as<Shape>()) {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(shape->data()), shape->size() * sizeof(int64_t)});
  }
  if (auto tuple = value.as<Array<Any>>()) return tuple->size();
  return ffi::AnyHash()(value);
}
bool SameConstant(const Any& a, const Any& b) {
  if (auto x = As<Tensor>(a)) {
    auto y = As<Tensor>(b);
    if (!y) return false;
    DLDataType t = x->dtype(), u = y->dtype();
    return t.code == u.code && t.bits == u.bits && t.lanes == u.lanes &&
           SameExtents(x->shape(), y->shape()) && TensorBytes(*x) == TensorBytes(*y);
  }
  if (auto x = a.as<Shape>()) {
    auto y = b.as<Shape>();
    return y && SameExtents(*x, *y);
  }
  if (auto x = a.as<Array<Any>>()) {
    auto y = b.as<Array<Any>>();
    bool same = y && x->size() == y->size();
    for (size_t i = 0; same && i < x->size(); ++i) same = SameConstant((*x)[i], (*y)[i]);
    return same;
  }
  return ffi::AnyEqual()(a, b);
}
/// On the CPU, contiguous and aligned as kernels expect; shared where it is already.
Any Normalized(const Any& value) {
  if (auto tuple = value.as<Array<Any>>()) {
    Array<Any> items;
    for (const Any& item : *tuple) items.push_back(Normalized(item));
    return items;
  }
  auto tensor = As<Tensor>(value);
  return tensor ? Any(HostTensor(*tensor, kAllocAlignment)) : value;
}

/// Numbers the registers of a function by first use.
class RegisterNumbering {
 public:
  explicit RegisterNumbering(FunctionInfo* f) : f_(f) {
    for (size_t i = 0; i < f->params.size(); ++i) Define(static_cast<int64_t>(i));
  }
  int64_t Define(int64_t reg) {
    auto [it, fresh] = numbers_.try_emplace(reg, static_cast<int64_t>(numbers_.size()));
    f_->num_registers = static_cast<int64_t>(numbers_.size());
    return it->second;
  }
  int64_t Use(int64_t reg) const {
    auto it = numbers_.find(reg);
    if (it == numbers_.end()) {
      TVM_FFI_THROW(ValueError) << "ExecBuilder: register " << reg << " of function '" << f_->name
                                << "' is read but nothing is ever written to it before";
    }
    return it->second;
  }

 private:
  FunctionInfo* f_;
  std::unordered_map<int64_t, int64_t> numbers_;
};
int64_t PlainRegister(const char* what, Operand operand) {
  if (operand.kind() != static_cast<int>(ArgKind::kRegister)) {
    TVM_FFI_THROW(ValueError) << what << ": expected a register, got another kind of argument";
  }
  return operand.value();
}
}  // namespace

int64_t ExecBuilderObj::DeclareFunction(const std::string& name, FunctionKind kind) {
  auto [it, fresh] =
      function_index_.try_emplace(name, static_cast<int64_t>(exec()->functions.size()));
  if (fresh) {
    FunctionInfo f;
    f.name = name;
    exec()->functions.push_back(std::move(f));
  }
  if (kind != FunctionKind::kPacked) exec()->functions[it->second].kind = kind;
  return it->second;
}
void ExecBuilderObj::BeginFunction(const std::string& name, std::vector<std::string> params) {
  if (current_ >= 0) {
    TVM_FFI_THROW(ValueError) << "ExecBuilder: expected the end of function '"
                              << exec()->functions[current_].name << "' before '" << name << "'";
  }
  int64_t index = DeclareFunction(name, FunctionKind::kVM);
  FunctionInfo& f = exec()->functions[index];
  if (f.end != 0)
    TVM_FFI_THROW(ValueError) << "ExecBuilder: function '" << name << "' is defined twice";
  f.params = std::move(params);
  f.begin = static_cast<int64_t>(exec()->offsets.size());
  current_ = index;
}
void ExecBuilderObj::EndFunction() {
  if (current_ < 0) TVM_FFI_THROW(ValueError) << "ExecBuilder: no function is being built";
  exec()->functions[current_].end = static_cast<int64_t>(exec()->offsets.size());
  current_ = -1;
}
void ExecBuilderObj::DefineCompiled(const std::string& name, std::vector<std::string> params,
                                    int64_t num_registers) {
  FunctionInfo& f = exec()->functions[DeclareFunction(name, FunctionKind::kVMTIR)];
  f.params = std::move(params);
  f.num_registers = num_registers;
}
void ExecBuilderObj::SetSignature(const std::string& name, std::string signature) {
  exec()->functions[DeclareFunction(name)].signature = std::move(signature);
}

Operand ExecBuilderObj::ConvertConstant(const Any& constant) {
  Any value = Normalized(constant);
  size_t hash = HashConstant(value);
  auto [begin, end] = constant_index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (SameConstant(exec()->constants[it->second], value)) {
      return Operand::Make(ArgKind::kConstant, it->second);
    }
  }
  auto index = static_cast<int64_t>(exec()->constants.size());
  exec()->constants.push_back(std::move(value));
  constant_index_.emplace(hash, index);
  return Operand::Make(ArgKind::kConstant, index);
}

void ExecBuilderObj::Emit(std::initializer_list<int64_t> words) {
  if (current_ < 0) {
    TVM_FFI_THROW(ValueError) << "ExecBuilder: expected an instruction inside a function";
  }
  exec()->offsets.push_back(static_cast<int64_t>(exec()->code.size()));
  exec()->code.insert(exec()->code.end(), words);
}
void ExecBuilderObj::EmitCall(const std::string& name, const std::vector<Operand>& args,
                              Operand dst) {
  int64_t reg = PlainRegister("emit_call: dst", dst);
  Emit({static_cast<int64_t>(Opcode::kCall), reg, DeclareFunction(name),
        static_cast<int64_t>(args.size())});
  for (Operand arg : args) exec()->code.push_back(arg.word);
}
void ExecBuilderObj::EmitRet(Operand result) {
  Emit({static_cast<int64_t>(Opcode::kRet), PlainRegister("emit_ret", result)});
}
void ExecBuilderObj::EmitGoto(int64_t offset) {
  Emit({static_cast<int64_t>(Opcode::kGoto), offset});
}
void ExecBuilderObj::EmitIf(Operand condition, int64_t false_offset) {
  Emit({static_cast<int64_t>(Opcode::kIf), PlainRegister("emit_if", condition), false_offset});
}
void ExecBuilderObj::JumpHere(int64_t jump) {
  int64_t* words = exec()->code.data() + exec()->offsets.at(jump);
  words[words[0] == static_cast<int64_t>(Opcode::kIf) ? 2 : 1] = NumInstructions() - jump;
}

Module ExecBuilderObj::Get() {
  if (current_ >= 0) {
    TVM_FFI_THROW(ValueError) << "ExecBuilder: function '" << exec()->functions[current_].name
                              << "' has no end";
  }
  auto built = ffi::make_object<ExecutableObj>();
  built->functions = exec()->functions;
  built->constants = exec()->constants;
  built->offsets = exec()->offsets;
  built->code = exec()->code;
  for (FunctionInfo& f : built->functions) {
    if (f.kind != FunctionKind::kVM) continue;
    RegisterNumbering numbers(&f);
    for (int64_t pc = f.begin; pc < f.end; ++pc) {
      int64_t* w = built->code.data() + built->offsets[pc];
      switch (static_cast<Opcode>(w[0])) {
        case Opcode::kCall:
          for (int64_t* arg = w + 4; arg < w + 4 + w[3]; ++arg) {
            Operand operand{*arg};
            if (operand.kind() == static_cast<int>(ArgKind::kRegister) &&
                operand.value() < kVoidRegister) {
              *arg = numbers.Use(operand.value());
            }
          }
          if (w[1] != kVoidRegister) w[1] = numbers.Define(w[1]);
          break;
        case Opcode::kRet:
        case Opcode::kIf:
          w[1] = numbers.Use(w[1]);
          break;
        case Opcode::kGoto:
          break;
      }
    }
  }
  built->Verify();
  return Module(built);
}

namespace {
std::vector<Operand> Operands(const Array<int64_t>& words) {
  std::vector<Operand> operands;
  for (int64_t word : words) operands.push_back({word});
  return operands;
}
/// The names given, then numbers.
std::vector<std::string> ParamNames(int64_t num_inputs, const Optional<Array<String>>& names) {
  std::vector<std::string> params;
  for (const String& name : names.value_or({})) params.emplace_back(View(name));
  if (num_inputs < 0 || static_cast<int64_t>(params.size()) > num_inputs) {
    TVM_FFI_THROW(ValueError) << "ExecBuilder: expected at most " << num_inputs
                              << " names of parameters, got " << params.size();
  }
  while (static_cast<int64_t>(params.size()) < num_inputs) {
    params.push_back("arg" + std::to_string(params.size()));
  }
  return params;
}
int64_t MakeOperand(int kind, int64_t value) {
  return Operand::Make(static_cast<ArgKind>(kind), value).word;
}
TVM_REGISTER() {
  ExecBuilderObj::RuntimeTypeIndex();
  Def("runtime.vm.ExecBuilder", [] { return ExecBuilder(); }, "A builder of executables.");
  Def("runtime.vm.ExecBuilderArg", &MakeOperand, "An argument of a call as one word.", Arg("kind"),
      Arg("value"));
  Def(
      "runtime.vm.ExecBuilderDeclare",
      [](ExecBuilder self, String name, int kind) {
        return MakeOperand(3, self->DeclareFunction(name, static_cast<FunctionKind>(kind)));
      },
      "A function as an argument; it may be defined later.", Arg("self"), Arg("name"),
      Arg("kind", 0));
  Def(
      "runtime.vm.ExecBuilderBegin",
      [](ExecBuilder self, String name, int64_t num_inputs, Optional<Array<String>> names) {
        self->BeginFunction(name, ParamNames(num_inputs, names));
      },
      "Begins a function.", Arg("self"), Arg("name"), Arg("num_inputs"), Arg("param_names"));
  Def(
      "runtime.vm.ExecBuilderEnd", [](ExecBuilder self) { self->EndFunction(); },
      "Ends the function.", Arg("self"));
  Def(
      "runtime.vm.ExecBuilderCompiled",
      [](ExecBuilder self, String name, int64_t num_inputs, int64_t num_registers) {
        self->DefineCompiled(name, ParamNames(num_inputs, std::nullopt), num_registers);
      },
      "A function that a module defines as __vmtir__<name>.", Arg("self"), Arg("name"),
      Arg("num_inputs"), Arg("num_registers"));
  Def(
      "runtime.vm.ExecBuilderConstant",
      [](ExecBuilder self, Any value) { return self->ConvertConstant(value).word; },
      "A constant as an argument.", Arg("self"), Arg("value"));
  Def(
      "runtime.vm.ExecBuilderCall",
      [](ExecBuilder self, String name, Array<int64_t> args, int64_t dst) {
        self->EmitCall(name, Operands(args), {dst});
      },
      "A call.", Arg("self"), Arg("name"), Arg("args"), Arg("dst"));
  Def(
      "runtime.vm.ExecBuilderRet", [](ExecBuilder self, int64_t reg) { self->EmitRet({reg}); },
      "A return.", Arg("self"), Arg("result"));
  Def(
      "runtime.vm.ExecBuilderGoto",
      [](ExecBuilder self, int64_t offset) { self->EmitGoto(offset); }, "A jump.", Arg("self"),
      Arg("pc_offset"));
  Def(
      "runtime.vm.ExecBuilderIf",
      [](ExecBuilder self, int64_t cond, int64_t offset) { self->EmitIf({cond}, offset); },
      "A jump where the condition is false.", Arg("self"), Arg("cond"), Arg("false_offset"));
  Def(
      "runtime.vm.ExecBuilderGet", [](ExecBuilder self) { return self->Get(); }, "The executable.",
      Arg("self"));
}
}  // namespace
}  // namespace tvm::runtime::vm
