// SPDX-License-Identifier: Apache-2.0
// System libraries: code that makes itself known to the object layer when its program starts.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <fstream>

#include "backend/llvm/compile.h"

namespace tvm::codegen {
namespace {
/// An object whose constructor registers symbols that other objects define.
void WriteRegistration(Array<String> symbols, Target target, String output) {
  std::string object;
  Guarded([&] {
    MachineOptions options = MachineOptions::From(target);
    MachineLease machine(options);
    llvm::LLVMContext context;
    llvm::Module module("registration", context);
    module.setDataLayout(machine->createDataLayout());
#if LLVM_VERSION_MAJOR >= 21
    module.setTargetTriple(machine->getTargetTriple());
#else
    module.setTargetTriple(machine->getTargetTriple().str());
#endif
    module.setPICLevel(llvm::PICLevel::BigPIC);
    llvm::IRBuilder<> b(context);
    auto* pointer = b.getPtrTy();
    auto add = module.getOrInsertFunction("TVMFFIEnvModRegisterSystemLibSymbol", b.getInt32Ty(),
                                          pointer, pointer);
    auto* run = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), false),
                                       llvm::Function::InternalLinkage, "tvm_register", module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", run));
    for (const String& symbol : symbols) {
      std::string name(symbol);
      auto* address = module.getOrInsertGlobal(name, b.getInt8Ty());
      b.CreateCall(add, {b.CreateGlobalString(name), address});
    }
    b.CreateRetVoid();
    llvm::appendToGlobalCtors(module, run, /*Priority=*/65535);
    object = EmitCode(module, *machine, Output::kObject);
  });
  std::ofstream file{std::string(output), std::ios::binary};
  file.write(object.data(), static_cast<std::streamsize>(object.size()));
  file.close();
  if (!file) TVM_FFI_THROW(OSError) << "cannot write " << output;
}
TVM_REGISTER() {
  Def("codegen.write_registration", &WriteRegistration,
      "Writes an object that registers symbols in the system library when its program starts.",
      Arg("symbols"), Arg("target"), Arg("output"));
}
}  // namespace
}  // namespace tvm::codegen
