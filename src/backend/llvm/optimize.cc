// SPDX-License-Identifier: Apache-2.0
// LLVM's optimiser and code emission, with its errors turned into exceptions.
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/StandardInstrumentations.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

#include <bit>
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

/// The passes, top to bottom. Code from TIR needs fewer than what people write in C: it arrives
/// simplified, without memory that could be registers except for small local arrays, and with few,
/// small functions. LLVM's own pipeline gives code as fast (350 operators compared, one 10 %
/// slower here) in 1.3 times the time.
constexpr const char* kPasses =
    "always-inline,function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,instcombine<no-verify-"
    "fixpoint>),"
    "cgscc(inline,function("
    // Loops: what does not change leaves them, short ones dissolve.
    "simplifycfg,early-cse<memssa>,jump-threading,correlated-propagation,"
    "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,"
    "loop-rotate<header-duplication;no-prepare-for-lto>,licm<allowspeculation>,"
    "simple-loop-unswitch<nontrivial;trivial>),"
    "simplifycfg,reassociate,instcombine<no-verify-fixpoint>,"
    "loop(loop-idiom,indvars,loop-deletion,keep-outer-loops,loop-unroll-full),"
    // Local arrays that are indexed by constants now become registers.
    "sroa<modify-cfg>,mldst-motion,gvn,sccp,bdce,instcombine<no-verify-fixpoint>,"
    // Paddings ask the same question again and again.
    "jump-threading,correlated-propagation,adce,dse,loop-mssa(licm<allowspeculation>),"
    "simplifycfg,instcombine<no-verify-fixpoint>)),"
    "globaldce,function(";
constexpr const char* kVectorize =
    "loop-vectorize,loop-load-elim,instcombine<no-verify-fixpoint>,simplifycfg,";
constexpr const char* kPack = "slp-vectorizer,";
constexpr const char* kFinish =
    "vector-combine,instcombine<no-verify-fixpoint>,keep-long-loops,loop-unroll<O3>,sroa<preserve-"
    "cfg>,"
    "instcombine<no-verify-fixpoint>,loop-mssa(licm<allowspeculation>),div-rem-pairs,"
    "simplifycfg<bonus-inst-threshold=1;forward-switch-cond;switch-range-to-icmp;switch-to-lookup;"
    "no-keep-loops;hoist-common-insts;sink-common-insts>),globaldce";

/// A loop around another one that is not unrolled stays a loop: a copy of the inner loop for each
/// of three rows of a window makes a convolution three times as large, and no faster. Loops are
/// visited from the innermost on, each by the passes up to the one that unrolls.
struct KeepOuterLoops : llvm::PassInfoMixin<KeepOuterLoops> {
  llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager&,
                              llvm::LoopStandardAnalysisResults&, llvm::LPMUpdater&) {
    if (!loop.isInnermost()) Keep(loop);
    return llvm::PreservedAnalyses::all();
  }
  static void Keep(llvm::Loop& loop) {
    if (llvm::hasUnrollTransformation(&loop) != llvm::TM_ForcedByUser)
      loop.setLoopAlreadyUnrolled();
  }
};
/// What a loop costs by itself is nothing beside a body as long as this, of which LLVM makes up to
/// four where its model of the processor has room for them.
constexpr size_t kLongBody = 64;
struct KeepLongLoops : llvm::PassInfoMixin<KeepLongLoops> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& manager) {
    for (llvm::Loop* loop : manager.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
      size_t length = 0;
      for (llvm::BasicBlock* block : loop->blocks()) length += block->size();
      if (length > kLongBody) KeepOuterLoops::Keep(*loop);
    }
    return llvm::PreservedAnalyses::all();
  }
};

/// Functions that are called in one place become part of it before all other passes: the inliner
/// would see to that after it has optimised them, and the whole is optimised once more. Bodies of
/// parallel loops are such functions.
void InlineSingleCalls(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || !function.hasLocalLinkage() || !function.hasOneUse()) continue;
    auto* call = llvm::dyn_cast<llvm::CallBase>(*function.user_begin());
    if (!call || call->getCalledFunction() != &function) continue;
    const llvm::Function& caller = *call->getFunction();
    bool stays = function.hasFnAttribute(llvm::Attribute::NoInline) ||
                 function.hasFnAttribute(llvm::Attribute::Cold) ||
                 function.hasFnAttribute(llvm::Attribute::OptimizeNone);
    if (stays || &caller == &function ||
        !llvm::AttributeFuncs::areInlineCompatible(caller, function))
      continue;
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
}

std::string PassesFor(const llvm::Module& module, int level) {
  if (level < 2) return "default<O" + std::to_string(level) + ">";
  size_t largest = LargestBlock(module);
  std::string passes = kPasses;
  if (largest <= kLargestBlockToVectorize) passes += kVectorize;
  if (largest <= kLargestBlockToPack) passes += kPack;
  return passes + kFinish;
}

/// Masked stores of one lane as plain stores. LLVM's code generators do the same, but for values
/// that were truncated they store the whole wide number and so overwrite what is next to it (22).
void StoreSingleLanes(llvm::Function& function) {
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& inst : llvm::make_early_inc_range(block)) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst);
      if (!call || call->getIntrinsicID() != llvm::Intrinsic::masked_store) continue;
      llvm::Value *value = call->getArgOperand(0), *pointer = call->getArgOperand(1);
      auto* mask = llvm::dyn_cast<llvm::Constant>(call->getArgOperand(call->arg_size() - 1));
      auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
      unsigned active = 0, lane = 0;
      for (unsigned i = 0; mask && type && i < type->getNumElements(); ++i) {
        auto* bit = llvm::dyn_cast_or_null<llvm::ConstantInt>(mask->getAggregateElement(i));
        if (!bit || bit->isOne()) {
          ++active;
          lane = i;
        }
      }
      if (active != 1) continue;
      llvm::IRBuilder<> b(call);
      auto* store = b.CreateAlignedStore(
          b.CreateExtractElement(value, lane),
          b.CreateConstInBoundsGEP1_64(type->getElementType(), pointer, lane), llvm::Align(1));
      store->copyMetadata(*call);
      call->eraseFromParent();
    }
  }
}
/// Masked loads that are wider than a register in pieces that are not. The code generator for x86
/// makes pieces as well, but one of which all lanes are left out, beside others that are not known
/// to be, it loads as a whole (22).
void SplitMaskedLoads(llvm::Function& function, uint64_t register_bits) {
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& inst : llvm::make_early_inc_range(block)) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst);
      if (!call || call->getIntrinsicID() != llvm::Intrinsic::masked_load) continue;
      auto* type = llvm::dyn_cast<llvm::FixedVectorType>(call->getType());
      uint64_t bits = type ? type->getScalarSizeInBits() : 0;
      if (bits == 0 || bits % 8 != 0 || bits * type->getNumElements() <= register_bits) continue;
      unsigned all = type->getNumElements();
      auto piece = static_cast<unsigned>(std::max<uint64_t>(1, register_bits / bits));
      llvm::Value *pointer = call->getArgOperand(0), *joined = llvm::PoisonValue::get(type);
      llvm::Value *mask = call->getArgOperand(call->arg_size() - 2),
                  *others = call->getArgOperand(call->arg_size() - 1);
      llvm::IRBuilder<> b(call);
      for (unsigned first = 0; first < all; first += piece) {
        unsigned lanes = std::min(piece, all - first);
        std::vector<int> cut, widen(all, -1), join;
        for (unsigned i = 0; i < all; ++i) {
          bool is_inside = i >= first && i < first + lanes;
          if (is_inside) {
            cut.push_back(static_cast<int>(i));
            widen[i] = static_cast<int>(i - first);
          }
          join.push_back(static_cast<int>(is_inside ? all + i : i));
        }
        auto* load = b.CreateMaskedLoad(
            llvm::FixedVectorType::get(type->getElementType(), lanes),
            b.CreateConstGEP1_64(type->getElementType(), pointer, first),  // may lie outside
            llvm::Align(bits / 8 & -(bits / 8)), b.CreateShuffleVector(mask, cut),
            b.CreateShuffleVector(others, cut));
        load->copyMetadata(*call);
        joined = b.CreateShuffleVector(joined, b.CreateShuffleVector(load, widen), join);
      }
      call->replaceAllUsesWith(joined);
      call->eraseFromParent();
    }
  }
}
/// The lanes from `first` on of a vector, `lanes` of them in a vector of `all`.
llvm::Value* LanesOf(llvm::IRBuilder<>& b, llvm::Value* vector, unsigned first, unsigned lanes,
                     unsigned all) {
  std::vector<int> chosen(all, -1);
  for (unsigned i = 0; i < lanes; ++i) chosen[i] = static_cast<int>(first + i);
  return b.CreateShuffleVector(vector, chosen);
}
/// Vectors of odd lengths as whole registers, of the last of which a mask leaves lanes out: the
/// code generator takes these in up to four pieces and joins them.
void MaskOddVectors(llvm::Function& function, uint64_t register_bits) {
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& inst : llvm::make_early_inc_range(block)) {
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&inst);
      auto* store = llvm::dyn_cast<llvm::StoreInst>(&inst);
      if (!(load && load->isSimple()) && !(store && store->isSimple())) continue;
      auto* type = llvm::dyn_cast<llvm::FixedVectorType>(
          load ? load->getType() : store->getValueOperand()->getType());
      unsigned bits = type ? type->getScalarSizeInBits() : 0;
      if ((bits != 32 && bits != 64) || type->getElementType()->isPointerTy()) continue;
      unsigned lanes = type->getNumElements(), most = static_cast<unsigned>(register_bits / bits);
      unsigned odd = lanes % most;
      if (std::has_single_bit(odd) || odd * bits <= 128) continue;
      llvm::IRBuilder<> b(&inst);
      llvm::Value* pointer = load ? load->getPointerOperand() : store->getPointerOperand();
      llvm::Align align = load ? load->getAlign() : store->getAlign();
      llvm::Value* joined = llvm::PoisonValue::get(type);
      for (unsigned first = 0; first < lanes; first += most) {
        bool is_odd = first + odd == lanes;
        unsigned count = is_odd ? odd : most, all = std::bit_ceil(count);
        auto* piece = llvm::FixedVectorType::get(type->getElementType(), all);
        auto* at = b.CreateConstInBoundsGEP1_64(type->getElementType(), pointer, first);
        llvm::Align near = llvm::commonAlignment(align, uint64_t{first} * bits / 8);
        std::vector<llvm::Constant*> is_inside;
        for (unsigned i = 0; i < all; ++i) is_inside.push_back(b.getInt1(i < count));
        auto* mask = llvm::ConstantVector::get(is_inside);
        llvm::Instruction* made = nullptr;
        if (load) {
          made = is_odd ? b.CreateMaskedLoad(piece, at, near, mask)
                        : static_cast<llvm::Instruction*>(b.CreateAlignedLoad(piece, at, near));
          std::vector<int> join;
          for (unsigned i = 0; i < lanes; ++i) {
            bool is_new = i >= first && i < first + count;
            join.push_back(static_cast<int>(is_new ? lanes + i : i));
          }
          llvm::Value* moved = made;
          if (first > 0 || all != lanes) {
            std::vector<int> place(lanes, -1);
            for (unsigned i = 0; i < count; ++i) place[first + i] = static_cast<int>(i);
            moved = b.CreateShuffleVector(made, place);
          }
          joined = first == 0 ? moved : b.CreateShuffleVector(joined, moved, join);
        } else {
          llvm::Value* value = LanesOf(b, store->getValueOperand(), first, count, all);
          made = is_odd ? b.CreateMaskedStore(value, at, near, mask)
                        : static_cast<llvm::Instruction*>(b.CreateAlignedStore(value, at, near));
        }
        made->copyMetadata(inst);
      }
      if (load) inst.replaceAllUsesWith(joined);
      inst.eraseFromParent();
    }
  }
}
}  // namespace

void Optimize(llvm::Module& module, llvm::TargetMachine& machine, const MachineOptions& options) {
  ReportScope reports(module.getContext());
  std::string problem;
  llvm::raw_string_ostream os(problem);
  if (llvm::verifyModule(module, &os)) {
    TVM_FFI_THROW(InternalError) << "LLVM code generation made invalid code: " << problem;
  }
  // Functions marked optnone are left alone only where these are registered.
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::OptNoneInstrumentation optnone(/*DebugLogging=*/false);
  optnone.registerCallbacks(callbacks);
  callbacks.registerShouldRunOptionalPassCallback(
      [](llvm::StringRef, llvm::Any) { return !IsAbandoned(); });
  llvm::PassBuilder builder(&machine, {}, std::nullopt, &callbacks);
  builder.registerPipelineParsingCallback(
      [](llvm::StringRef name, llvm::LoopPassManager& passes, auto) {
        if (name != "keep-outer-loops") return false;
        passes.addPass(KeepOuterLoops());
        return true;
      });
  builder.registerPipelineParsingCallback(
      [](llvm::StringRef name, llvm::FunctionPassManager& passes, auto) {
        if (name != "keep-long-loops") return false;
        passes.addPass(KeepLongLoops());
        return true;
      });
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  if (options.opt_level >= 2) InlineSingleCalls(module);
  llvm::ModulePassManager passes;
  if (auto error = builder.parsePassPipeline(passes, PassesFor(module, options.opt_level))) {
    TVM_FFI_THROW(InternalError) << "LLVM passes: " << llvm::toString(std::move(error));
  }
  passes.run(module, modules);
  // The vector forms of rare branches: in their places now, or not needed (codegen_rare.cc).
  if (auto* kept = module.getNamedGlobal("llvm.compiler.used")) {
    kept->eraseFromParent();
    llvm::ModulePassManager finish;
    finish.addPass(llvm::AlwaysInlinerPass());
    finish.addPass(llvm::GlobalDCEPass());
    finish.run(module, modules);
  }
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    StoreSingleLanes(function);
    auto kind = llvm::TargetTransformInfo::RGK_FixedWidthVector;
    auto bits = machine.getTargetTransformInfo(function).getRegisterBitWidth(kind).getFixedValue();
    if (bits > 0) SplitMaskedLoads(function, bits);
    if (bits > 0 && machine.getTargetTriple().isX86() &&
        machine.getMCSubtargetInfo()->checkFeatures("+avx512vl"))
      MaskOddVectors(function, bits);
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
