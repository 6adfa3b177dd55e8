// SPDX-License-Identifier: Apache-2.0
// LLVM IR -> optimised IR, assembly, object files, and code that runs in this process.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/llvm/target_machine.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace tvm::codegen {

/// Runs `fn`. What LLVM would end the process for becomes a RuntimeError, on a stack deep enough
/// for large expressions.
void Guarded(void (*fn)(void*), void* data);
template <class F>
void Guarded(F&& fn) {
  Guarded([](void* f) { (*static_cast<std::remove_reference_t<F>*>(f))(); }, &fn);
}

/// The passes of `options.opt_level`, in place.
void Optimize(llvm::Module& module, llvm::TargetMachine& machine, const MachineOptions& options);
/// Defines the conversions of float16 that x86 without (some) half instructions calls.
void AddHalfConversions(llvm::Module& module, bool has_f16c);
enum class Output { kAssembly, kObject };
/// Changes `module`: instruction selection prepares the IR in place.
std::string EmitCode(llvm::Module& module, llvm::TargetMachine& machine, Output kind);
std::string PrintIR(const llvm::Module& module);
std::string WriteBitcode(const llvm::Module& module);

/// Object files linked into this process; unloaded on destruction.
class JitLibrary {
 public:
  explicit JitLibrary(const std::vector<std::string>& objects);
  ~JitLibrary();
  JitLibrary(const JitLibrary&) = delete;
  JitLibrary& operator=(const JitLibrary&) = delete;
  /// RuntimeError that names what cannot be resolved.
  void* Lookup(const std::string& symbol) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// LLD in process: ValueError with its messages when it fails. `options` are those of ld.
void Link(const std::vector<std::string>& arguments);

}  // namespace tvm::codegen
