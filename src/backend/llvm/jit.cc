// SPDX-License-Identifier: Apache-2.0
// Object files linked into this process by ORC: one session, one library per module.
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <atomic>
#include <utility>

#include "backend/llvm/compile.h"

namespace tvm::codegen {
namespace {
namespace orc = llvm::orc;

/// What the session reported in this thread: the causes, where a lookup tells only what failed.
thread_local std::string reported;

void Check(llvm::Error error) {
  if (!error) return;
  std::string causes = std::exchange(reported, {});
  TVM_FFI_THROW(RuntimeError) << "JIT: " << causes << llvm::toString(std::move(error));
}
template <class T>
T Check(llvm::Expected<T> value) {
  if (!value) Check(value.takeError());
  return static_cast<T&&>(*value);
}

/// Leaked: functions of modules may be called while the process ends.
orc::LLJIT& Session() {
  static orc::LLJIT* jit = [] {
    FindBackend(HostTriple());
    orc::JITTargetMachineBuilder machine{llvm::Triple(HostTriple())};
    auto made =
        Check(orc::LLJITBuilder()
                  .setJITTargetMachineBuilder(std::move(machine))
                  .setObjectLinkingLayerCreator([](orc::ExecutionSession& session, auto&&...) {
                    return std::make_unique<orc::ObjectLinkingLayer>(session);
                  })
                  .setPlatformSetUp(orc::setUpInactivePlatform)
                  .create());
    made->getExecutionSession().setErrorReporter(
        [](llvm::Error error) { reported += llvm::toString(std::move(error)) + "; "; });
    // libtvm_ffi may have been loaded with local names, where the process's search finds nothing.
    orc::SymbolMap runtime;
    auto add = [&](const char* name, auto* fn) {
      runtime[made->mangleAndIntern(name)] = {
          orc::ExecutorAddr::fromPtr(fn),
          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    };
    add("TVMFFIErrorSetRaisedFromCStr", &TVMFFIErrorSetRaisedFromCStr);
    add("TVMFFIFunctionCall", &TVMFFIFunctionCall);
    add("TVMFFIEnvModLookupFromImports", &TVMFFIEnvModLookupFromImports);
    Check(made->getMainJITDylib().define(orc::absoluteSymbols(std::move(runtime))));
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
    auto& library = Check(jit.createJITDylib("tvm." + std::to_string(serial++)));
    library.addToLinkOrder(jit.getMainJITDylib());
    state_->library = &library;
    for (const std::string& object : objects) {
      auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "object");
      Check(jit.addObjectFile(library, std::move(buffer)));
    }
  });
}
JitLibrary::~JitLibrary() {
  llvm::consumeError(Session().getExecutionSession().removeJITDylib(*state_->library));
}
void* JitLibrary::Lookup(const std::string& symbol) const {
  void* address = nullptr;
  Guarded([&] { address = Check(Session().lookup(*state_->library, symbol)).toPtr<void*>(); });
  return address;
}

}  // namespace tvm::codegen
