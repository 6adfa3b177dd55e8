// SPDX-License-Identifier: Apache-2.0
// LLVM's optimiser and code emission, with its errors turned into exceptions.
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/StandardInstrumentations.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>

#include <mutex>

#include "backend/llvm/compile.h"
#include "backend/llvm/interrupt.h"
#include "tvm/ir/stack.h"

namespace tvm::codegen {

void Guarded(void (*fn)(void*), void* data) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(
        [](void*, const char* reason, bool) { TVM_FFI_THROW(RuntimeError) << "LLVM: " << reason; });
  });
  OnDeepStack([&] { fn(data); });
}

namespace {
/// Collects what LLVM reports while compiling a module.
struct Reports : llvm::DiagnosticHandler {
  std::string errors;
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream os(errors);
      llvm::DiagnosticPrinterRawOStream printer(os);
      if (!errors.empty()) os << "; ";
      info.print(printer);
    }
    return true;
  }
};
class ReportScope {
 public:
  explicit ReportScope(llvm::LLVMContext& context) : context_(context) {
    auto reports = std::make_unique<Reports>();
    reports_ = reports.get();
    context_.setDiagnosticHandler(std::move(reports));
  }
  ~ReportScope() { context_.setDiagnosticHandler(std::make_unique<llvm::DiagnosticHandler>()); }
  void Check() const {
    if (!reports_->errors.empty()) TVM_FFI_THROW(RuntimeError) << "LLVM: " << reports_->errors;
  }

 private:
  llvm::LLVMContext& context_;
  Reports* reports_;
};
}  // namespace

namespace {
/// The time of LLVM's vectorisers grows with the square of the block they work on: 12 s for 10,000
/// additions in a row.
constexpr size_t kLargestBlockToVectorize = 4096;
/// That of superword parallelism already hurts in tiles that were unrolled by a schedule: 150 of
/// the 220 ms of a softmax candidate, whose code it left as it was. What is that large and still
/// scalar has no use for vectors.
constexpr size_t kLargestBlockToPack = 256;
size_t LargestBlock(const llvm::Module& module) {
  size_t largest = 0;
  for (const llvm::Function& function : module) {
    for (const llvm::BasicBlock& block : function) largest = std::max(largest, block.size());
  }
  return largest;
}
}  // namespace

void Optimize(llvm::Module& module, llvm::TargetMachine& machine, const MachineOptions& options) {
  ReportScope reports(module.getContext());
  std::string problem;
  llvm::raw_string_ostream os(problem);
  if (llvm::verifyModule(module, &os)) {
    TVM_FFI_THROW(InternalError) << "LLVM code generation made invalid code: " << problem;
  }
  llvm::PipelineTuningOptions tuning;
  size_t largest = LargestBlock(module);
  tuning.LoopVectorization = options.opt_level >= 2 && largest <= kLargestBlockToVectorize;
  tuning.SLPVectorization = options.opt_level >= 2 && largest <= kLargestBlockToPack;
  tuning.LoopInterleaving = options.opt_level >= 2;
  // Functions marked optnone are left alone only where these are registered.
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::OptNoneInstrumentation optnone(/*DebugLogging=*/false);
  optnone.registerCallbacks(callbacks);
  callbacks.registerShouldRunOptionalPassCallback(
      [](llvm::StringRef, llvm::Any) { return !IsAbandoned(); });
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  static const llvm::OptimizationLevel kLevels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1, llvm::OptimizationLevel::O2,
      llvm::OptimizationLevel::O3};
  auto level = kLevels[options.opt_level];
  auto passes = options.opt_level == 0 ? builder.buildO0DefaultPipeline(level)
                                       : builder.buildPerModuleDefaultPipeline(level);
  passes.run(module, modules);
  // The vector forms of rare branches: in their places now, or not needed (codegen_rare.cc).
  if (auto* kept = module.getNamedGlobal("llvm.compiler.used")) {
    kept->eraseFromParent();
    llvm::ModulePassManager finish;
    finish.addPass(llvm::AlwaysInlinerPass());
    finish.addPass(llvm::GlobalDCEPass());
    finish.run(module, modules);
  }
  reports.Check();
}

std::string EmitCode(llvm::Module& module, llvm::TargetMachine& machine, Output kind) {
  ReportScope reports(module.getContext());
  llvm::SmallVector<char, 0> code;
  llvm::raw_svector_ostream os(code);
  llvm::legacy::PassManager passes;
  auto type = kind == Output::kObject ? llvm::CodeGenFileType::ObjectFile
                                      : llvm::CodeGenFileType::AssemblyFile;
  if (machine.addPassesToEmitFile(passes, os, nullptr, type)) {
    TVM_FFI_THROW(ValueError) << "LLVM: cannot write this kind of file for "
                              << machine.getTargetTriple().str();
  }
  passes.run(module);
  reports.Check();
  return std::string(code.data(), code.size());
}

std::string PrintIR(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, nullptr);
  return text;
}
std::string WriteBitcode(const llvm::Module& module) {
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  llvm::WriteBitcodeToFile(module, os);
  return bytes;
}

}  // namespace tvm::codegen
