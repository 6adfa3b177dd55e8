// SPDX-License-Identifier: Apache-2.0
// LLVM IR that a file holds, as text or bitcode -> an object file for this machine.
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "backend/llvm/compile.h"
#include "runtime/utf8.h"
#include "tvm/runtime/def.h"

namespace tvm::codegen {
namespace {
ffi::Bytes ObjectOfIR(const String& path) {
  std::string object;
  Guarded([&] {
    llvm::LLVMContext context;
    llvm::SMDiagnostic wrong;
    std::string said;
    llvm::raw_string_ostream out(said);
    auto module = llvm::parseIRFile(std::string(path), wrong, context);
    if (!module) wrong.print(nullptr, out, false);
    if (module && llvm::verifyModule(*module, &out)) module.reset();
    if (!module) {
      TVM_FFI_THROW(ValueError) << "load_module: expected IR of LLVM " << LLVM_VERSION_STRING
                                << " in " << path << ", got\n"
                                << runtime::EncodeUtf8(runtime::DecodeUtf8(said));
    }
    MachineOptions host = MachineOptions::Host();
    llvm::Triple made_for(module->getTargetTriple());
    bool names_none = made_for.getArch() == llvm::Triple::UnknownArch;
    if (!names_none && made_for.getArch() != llvm::Triple(host.triple).getArch()) {
      TVM_FFI_THROW(ValueError) << "load_module: expected IR for " << host.triple << " in " << path
                                << ", got IR for " << made_for.str();
    }
    MachineLease machine(host);
    module->setDataLayout(machine->createDataLayout());
    object = EmitCode(*module, *machine, Output::kObject);
  });
  return ffi::Bytes(object);
}

TVM_REGISTER() {
  Def("runtime._llvm_object", &ObjectOfIR, "An object file made of a file of LLVM's IR.",
      Arg("path"));
}
}  // namespace
}  // namespace tvm::codegen
