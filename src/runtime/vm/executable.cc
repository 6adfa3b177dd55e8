// SPDX-License-Identifier: Apache-2.0
// Executables: what makes one valid, and the functions it offers as a module.
#include <algorithm>

#include "tvm/runtime/vm.h"

namespace tvm::runtime::vm {

Operand Operand::Make(ArgKind kind, int64_t value) {
  constexpr int64_t kLimit = int64_t{1} << (kBits - 1);
  if (value < -kLimit || value >= kLimit) {
    TVM_FFI_THROW(ValueError) << "ExecBuilder: expected a value of at most 56 bits, got " << value;
  }
  uint64_t low = static_cast<uint64_t>(value) & ((uint64_t{1} << kBits) - 1);
  return {static_cast<int64_t>(static_cast<uint64_t>(kind) << kBits | low)};
}

int64_t ExecutableObj::Find(std::string_view name) const {
  auto it = std::find_if(functions.begin(), functions.end(),
                         [&](const FunctionInfo& f) { return f.name == name; });
  return it == functions.end() ? -1 : it - functions.begin();
}

namespace {
/// Follows the instructions of one function.
class FunctionVerifier {
 public:
  FunctionVerifier(const ExecutableObj* exec, const FunctionInfo& f) : exec_(exec), f_(f) {}
  void Run() {
    auto params = static_cast<int64_t>(f_.params.size());
    if (f_.kind == FunctionKind::kPacked) {
      // Compiled functions trust the lists that they get: only a machine passes them.
      if (f_.name.starts_with(kVMTIRPrefix)) Fail("is the code of another function");
      return;
    }
    if (f_.num_registers < params) Fail("has fewer registers than parameters");
    // Every register but those of parameters occurs in the code: a few bytes cannot ask for more.
    // The code of a compiled function is elsewhere.
    constexpr int64_t kMaxCompiledRegisters = int64_t{1} << 22;
    bool compiled = f_.kind == FunctionKind::kVMTIR;
    int64_t limit = compiled ? kMaxCompiledRegisters : static_cast<int64_t>(exec_->code.size()) + 1;
    if (f_.num_registers - params > limit) Fail("has more registers than instructions use");
    if (compiled) return;
    auto count = static_cast<int64_t>(exec_->offsets.size());
    if (f_.begin < 0 || f_.begin >= f_.end || f_.end > count) Fail("has no instructions");
    for (pc_ = f_.begin; pc_ < f_.end; ++pc_) Instruction();
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    TVM_FFI_THROW(ValueError) << "VM executable: function '" << f_.name << "' " << what;
    TVM_FFI_UNREACHABLE();
  }
  [[noreturn]] void FailHere(const std::string& what) const {
    Fail("is malformed at instruction " + std::to_string(pc_ - f_.begin) + ": " + what);
  }
  void Instruction() {
    auto size = static_cast<int64_t>(exec_->code.size());
    int64_t at = exec_->offsets[pc_];
    if (at < 0 || at >= size) FailHere("it lies outside the code");
    const int64_t* words = exec_->code.data() + at;
    int64_t left = size - at - 1;  // behind the opcode
    auto need = [&](int64_t n) {
      if (left < n) FailHere("it is truncated");
    };
    switch (static_cast<Opcode>(words[0])) {
      case Opcode::kCall:
        need(3);
        if (words[1] != kVoidRegister) Register(words[1]);
        Index(words[2], exec_->functions.size(), "function");
        if (words[3] < 0 || words[3] > left - 3) FailHere("it is truncated");
        for (int64_t i = 0; i < words[3]; ++i) Argument({words[4 + i]});
        return FallThrough();
      case Opcode::kRet:
        need(1);
        return Register(words[1]);
      case Opcode::kGoto:
        need(1);
        return Jump(words[1]);
      case Opcode::kIf:
        need(2);
        Register(words[1]);
        Jump(words[2]);
        return FallThrough();
    }
    FailHere("unknown opcode " + std::to_string(words[0]));
  }
  void Argument(Operand arg) {
    switch (static_cast<ArgKind>(arg.kind())) {
      case ArgKind::kRegister:
        if (arg.value() != kVoidRegister && arg.value() != kVMRegister) Register(arg.value());
        return;
      case ArgKind::kImmediate:
        return;
      case ArgKind::kConstant:
        return Index(arg.value(), exec_->constants.size(), "constant");
      case ArgKind::kFunction:
        return Index(arg.value(), exec_->functions.size(), "function");
    }
    FailHere("unknown kind of argument " + std::to_string(arg.kind()));
  }
  void Index(int64_t i, size_t size, const char* what) {
    if (i < 0 || i >= static_cast<int64_t>(size)) {
      FailHere("expected a " + std::string(what) + " below " + std::to_string(size) + ", got " +
               std::to_string(i));
    }
  }
  void Register(int64_t i) { Index(i, static_cast<size_t>(f_.num_registers), "register"); }
  void Jump(int64_t offset) {
    int64_t target;
    if (__builtin_add_overflow(pc_, offset, &target) || target < f_.begin || target >= f_.end) {
      FailHere("it jumps out of the function");
    }
  }
  void FallThrough() {
    if (pc_ + 1 >= f_.end) FailHere("the function ends without a return");
  }

  const ExecutableObj* exec_;
  const FunctionInfo& f_;
  int64_t pc_ = 0;
};
}  // namespace

void ExecutableObj::Verify() const {
  std::vector<std::string_view> names;
  for (const FunctionInfo& f : functions) {
    FunctionVerifier(this, f).Run();
    names.push_back(f.name);
  }
  std::sort(names.begin(), names.end());
  if (auto it = std::adjacent_find(names.begin(), names.end()); it != names.end()) {
    TVM_FFI_THROW(ValueError) << "VM executable: the function '" << *it << "' is defined twice";
  }
}

Optional<Function> ExecutableObj::GetFunction(const String& name) {
  auto self = ffi::GetRef<Module>(this);
  std::string_view key = View(name);
  auto text = [&](std::string (ExecutableObj::*method)() const) {
    return Function::FromTyped([self, this, method] { return String((this->*method)()); });
  };
  auto load = [&](bool profiles) {
    return Function::FromTyped(
        [self, profiles] { return Module(ffi::make_object<VirtualMachineObj>(self, profiles)); });
  };
  if (key == "stats") return text(&ExecutableObj::Stats);
  if (key == "as_text") return text(&ExecutableObj::AsText);
  if (key == "as_python") return text(&ExecutableObj::AsPython);
  if (key == "vm_load_executable") return load(false);
  if (key == "vm_profiler_load_executable") return load(true);
  if (key == "has_function") {
    return Function::FromTyped([self, this](String function) {
      int64_t i = Find(View(function));
      return i >= 0 && functions[i].kind != FunctionKind::kPacked;
    });
  }
  if (key == kFunctionNames) {
    return Function::FromTyped([self, this] {
      Array<String> names;
      for (const FunctionInfo& f : functions) {
        if (f.kind != FunctionKind::kPacked) names.push_back(f.name);
      }
      return names;
    });
  }
  return std::nullopt;
}

namespace {
TVM_REGISTER() {
  Def(
      "ffi.Module.load_from_bytes.relax.VMExecutable",
      [](ffi::Bytes bytes) { return Module(ExecutableObj::Load({bytes.data(), bytes.size()})); },
      "An executable of a virtual machine from its bytes.", Arg("bytes"));
}
}  // namespace
}  // namespace tvm::runtime::vm
