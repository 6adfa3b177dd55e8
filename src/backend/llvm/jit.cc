// SPDX-License-Identifier: Apache-2.0
// Object files linked into this process by ORC: one session, one library per module.
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <atomic>
#include <mutex>

#include "backend/llvm/compile.h"

namespace tvm::codegen {
namespace {
namespace orc = llvm::orc;

template <class T>
T Check(llvm::Expected<T> value, const char* what) {
  if (!value) TVM_FFI_THROW(RuntimeError) << what << ": " << llvm::toString(value.takeError());
  return static_cast<T&&>(*value);
}
void Check(llvm::Error error, const char* what) {
  if (error) TVM_FFI_THROW(RuntimeError) << what << ": " << llvm::toString(std::move(error));
}

/// Leaked: functions of modules may be called while the process ends.
orc::LLJIT& Session() {
  static orc::LLJIT* jit = [] {
    FindBackend(HostTriple());
    orc::JITTargetMachineBuilder machine{llvm::Triple(HostTriple())};
    auto made = Check(
        orc::LLJITBuilder()
            .setJITTargetMachineBuilder(std::move(machine))
            .setObjectLinkingLayerCreator([](orc::ExecutionSession& session, auto&&...) {
              return std::make_unique<orc::ObjectLinkingLayer>(session);
            })
            .setPlatformSetUp(orc::setUpInactivePlatform)
            .create(),
        "JIT");
    // Lookups give their own error; what the session would print besides goes nowhere.
    made->getExecutionSession().setErrorReporter(
        [](llvm::Error error) { llvm::consumeError(std::move(error)); });
    // libtvm_ffi may have been loaded with local names, where the process's search finds nothing.
    orc::SymbolMap runtime;
    auto add = [&](const char* name, auto* fn) {
      runtime[made->mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(fn),
                                              llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    };
    add("TVMFFIErrorSetRaisedFromCStr", &TVMFFIErrorSetRaisedFromCStr);
    add("TVMFFIFunctionCall", &TVMFFIFunctionCall);
    add("TVMFFIEnvModLookupFromImports", &TVMFFIEnvModLookupFromImports);
    Check(made->getMainJITDylib().define(orc::absoluteSymbols(std::move(runtime))), "JIT");
    return made.release();
  }();
  return *jit;
}
}  // namespace

struct JitLibrary::State {
  orc::JITDylib* library;
};

JitLibrary::JitLibrary(const std::vector<std::string>& objects) : state_(new State) {
  Guarded([&] {
    orc::LLJIT& jit = Session();
    static std::atomic<int> serial = 0;
    auto& library = Check(jit.createJITDylib("tvm." + std::to_string(serial++)), "JIT");
    library.addToLinkOrder(jit.getMainJITDylib());
    state_->library = &library;
    for (const std::string& object : objects) {
      auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "object");
      Check(jit.addObjectFile(library, std::move(buffer)), "JIT");
    }
  });
}
JitLibrary::~JitLibrary() {
  llvm::consumeError(Session().getExecutionSession().removeJITDylib(*state_->library));
}
void* JitLibrary::Lookup(const std::string& symbol) const {
  void* address = nullptr;
  Guarded([&] {
    address = Check(Session().lookup(*state_->library, symbol), "JIT").toPtr<void*>();
  });
  return address;
}

}  // namespace tvm::codegen
