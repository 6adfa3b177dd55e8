// SPDX-License-Identifier: Apache-2.0
// Conversions from and to float16 that x86 processors lack: instruction selection calls these
// functions, which a compiler's library would define; libraries we export need none.
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include "backend/llvm/compile.h"

namespace tvm::codegen {
namespace {
constexpr const char* kExtend = R"(
define weak hidden float @__extendhfsf2(half %h) nounwind {
  %b = bitcast half %h to i16
  %x = zext i16 %b to i32
  %s = and i32 %x, 32768
  %sign = shl i32 %s, 16
  %m = and i32 %x, 32767
  %shifted = shl i32 %m, 13
  %normal = add i32 %shifted, 939524096
  %special = or i32 %shifted, 2139095040
  %count = uitofp i32 %m to float
  %small = fmul float %count, 0x3E70000000000000
  %subnormal = bitcast float %small to i32
  %is_special = icmp uge i32 %m, 31744
  %is_subnormal = icmp ult i32 %m, 1024
  %r0 = select i1 %is_special, i32 %special, i32 %normal
  %r1 = select i1 %is_subnormal, i32 %subnormal, i32 %r0
  %r = or i32 %r1, %sign
  %f = bitcast i32 %r to float
  ret float %f
}
)";
// Halfway cases go to even: above 2^-14 by adding to the bits that are dropped, below it by adding
// 0.5, whose last bit has the weight of float16's.
constexpr const char* kTruncate = R"(
define weak hidden half @__truncsfhf2(float %f) nounwind {
  %x = bitcast float %f to i32
  %s = lshr i32 %x, 16
  %sign = and i32 %s, 32768
  %a = and i32 %x, 2147483647
  %dropped = lshr i32 %a, 13
  %odd = and i32 %dropped, 1
  %rounding = add i32 %odd, 4095
  %rebased = sub i32 %a, 939524096
  %sum = add i32 %rebased, %rounding
  %normal = lshr i32 %sum, 13
  %absolute = bitcast i32 %a to float
  %moved = fadd float %absolute, 5.0e-1
  %moved_bits = bitcast float %moved to i32
  %subnormal = sub i32 %moved_bits, 1056964608
  %payload0 = and i32 %dropped, 1023
  %payload = or i32 %payload0, 32256
  %is_nan = icmp ugt i32 %a, 2139095040
  %is_large = icmp uge i32 %a, 1199566848
  %is_small = icmp ult i32 %a, 947912704
  %r0 = select i1 %is_small, i32 %subnormal, i32 %normal
  %r1 = select i1 %is_large, i32 31744, i32 %r0
  %r2 = select i1 %is_nan, i32 %payload, i32 %r1
  %r = or i32 %r2, %sign
  %h = trunc i32 %r to i16
  %result = bitcast i16 %h to half
  ret half %result
}
)";
// Through float32 rounded to odd, which rounding a second time does not spoil.
constexpr const char* kTruncateDouble = R"(
define weak hidden half @__truncdfhf2(double %d) nounwind {
  %f = fptrunc double %d to float
  %back = fpext float %f to double
  %bits = bitcast float %f to i32
  %ad = call double @llvm.fabs.f64(double %d)
  %ab = call double @llvm.fabs.f64(double %back)
  %inexact = fcmp one double %back, %d
  %away = fcmp ogt double %ab, %ad
  %step = sext i1 %away to i32
  %toward = add i32 %bits, %step
  %odd = or i32 %toward, 1
  %r = select i1 %inexact, i32 %odd, i32 %bits
  %g = bitcast i32 %r to float
  %h = fptrunc float %g to half
  ret half %h
}
declare double @llvm.fabs.f64(double)
)";

bool HasHalf(const llvm::Type* t) { return t->getScalarType()->isHalfTy(); }
}  // namespace

void AddHalfConversions(llvm::Module& module, bool has_f16c) {
  bool extend = false, truncate = false, truncate_double = false;
  for (const llvm::Function& f : module) {
    for (const llvm::Instruction& i : llvm::instructions(f)) {
      bool result = HasHalf(i.getType());
      bool operand = std::any_of(i.op_begin(), i.op_end(),
                                 [](const llvm::Use& u) { return HasHalf(u->getType()); });
      if (!result && !operand) continue;
      if (llvm::isa<llvm::FPTruncInst>(i) &&
          i.getOperand(0)->getType()->getScalarType()->isDoubleTy())
        truncate_double = true;
      // Arithmetic on halves is done in float32.
      extend |= operand && !has_f16c;
      truncate |= (result || truncate_double) && !has_f16c;
    }
  }
  if (!extend && !truncate && !truncate_double) return;
  std::string text;
  if (extend || truncate) text = std::string(kExtend) + kTruncate;
  if (truncate_double) text += kTruncateDouble;
  llvm::SMDiagnostic problem;
  auto helpers = llvm::parseAssemblyString(text, problem, module.getContext());
  if (!helpers)
    TVM_FFI_THROW(InternalError) << "conversions of float16: " << problem.getMessage().str();
  helpers->setDataLayout(module.getDataLayout());
  helpers->setTargetTriple(module.getTargetTriple());
  llvm::AttributeList like;
  for (const llvm::Function& f : module) {
    if (!f.isDeclaration()) like = f.getAttributes();
  }
  std::vector<std::string> names;
  for (llvm::Function& f : *helpers) {
    if (f.isDeclaration()) continue;
    f.addFnAttrs(llvm::AttrBuilder(module.getContext(), like.getFnAttrs()));
    names.push_back(f.getName().str());
  }
  llvm::Linker::linkModules(module, std::move(helpers));
  // Calls appear only in instruction selection: until then nothing seems to use them.
  std::vector<llvm::GlobalValue*> used;
  for (const std::string& name : names) used.push_back(module.getFunction(name));
  llvm::appendToCompilerUsed(module, used);
}

}  // namespace tvm::codegen
