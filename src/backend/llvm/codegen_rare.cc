// SPDX-License-Identifier: Apache-2.0
// Branches that are hardly ever taken, in loops that LLVM vectorises.
//
// LLVM computes both sides of a condition for all lanes of a vector, and the rare side (the
// reduction of huge angles, say) costs several times what the other one does. So the rare side is a
// call of a function that has vector forms, which return at once when no lane needs them:
//
//   y = near ? cheap(x) : far(x)   ->   y = near ? cheap(x) : call rare(x)
//   rare.v8(x, mask) { if (any(mask)) return rare.v8.slow(x, mask) }
//   rare.v8.slow(x, mask) { for each lane of the mask: result[lane] = rare(x[lane]) }
//
// LLVM finds the vector forms by an attribute of the call; Optimize, after the passes, inlines the
// tests into the loops.
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/VFABIDemangler.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include "backend/llvm/codegen.h"

namespace tvm::codegen {
using Value = llvm::Value;
namespace {
/// The lanes of vector forms: what 128 to 512 bits hold.
constexpr int kLanes[] = {2, 4, 8, 16};

/// Calls `scalar` for every lane of the mask, one after the other.
llvm::Function* SlowForm(ModuleGen& gen, llvm::Function* scalar, llvm::FunctionType* type,
                         int lanes, const std::string& name) {
  auto* f = gen.NewFunction(type, name, true);
  f->addFnAttr(llvm::Attribute::Cold);
  f->addFnAttr(llvm::Attribute::NoInline);
  auto block = [&](const char* label) { return llvm::BasicBlock::Create(gen.context, label, f); };
  auto *entry = block("entry"), *loop = block("lane"), *call = block("call"), *next = block("next"),
       *end = block("end");
  llvm::IRBuilder<> b(entry);
  Value* start = llvm::Constant::getNullValue(type->getReturnType());
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  auto* lane = b.CreatePHI(gen.i32, 2);
  auto* result = b.CreatePHI(start->getType(), 2);
  Value* mask = f->getArg(f->arg_size() - 1);
  b.CreateCondBr(b.CreateExtractElement(mask, lane), call, next);
  b.SetInsertPoint(call);
  std::vector<Value*> args;
  for (size_t i = 0; i + 1 < f->arg_size(); ++i)
    args.push_back(b.CreateExtractElement(f->getArg(i), lane));
  Value* changed = b.CreateInsertElement(result, b.CreateCall(scalar, args), lane);
  b.CreateBr(next);
  b.SetInsertPoint(next);
  auto* merged = b.CreatePHI(start->getType(), 2);
  merged->addIncoming(result, loop);
  merged->addIncoming(changed, call);
  Value* following = b.CreateAdd(lane, b.getInt32(1));
  b.CreateCondBr(b.CreateICmpULT(following, b.getInt32(lanes)), loop, end);
  lane->addIncoming(b.getInt32(0), entry);
  lane->addIncoming(following, next);
  result->addIncoming(start, entry);
  result->addIncoming(merged, next);
  b.SetInsertPoint(end);
  b.CreateRet(merged);
  return f;
}
/// Calls the slow form when the mask has a lane.
llvm::Function* VectorForm(ModuleGen& gen, llvm::Function* scalar, int lanes,
                           const std::string& name) {
  auto vector = [&](llvm::Type* t) { return llvm::FixedVectorType::get(t, lanes); };
  std::vector<llvm::Type*> params;
  for (llvm::Argument& arg : scalar->args()) params.push_back(vector(arg.getType()));
  params.push_back(vector(gen.i1));
  auto* type = llvm::FunctionType::get(vector(scalar->getReturnType()), params, false);
  auto* slow = SlowForm(gen, scalar, type, lanes, name + ".slow");
  auto* f = gen.NewFunction(type, name, true);
  f->addFnAttr(llvm::Attribute::AlwaysInline);
  auto block = [&](const char* label) { return llvm::BasicBlock::Create(gen.context, label, f); };
  auto *entry = block("entry"), *some = block("some"), *end = block("end");
  llvm::IRBuilder<> b(entry);
  Value* any = b.CreateOrReduce(f->getArg(f->arg_size() - 1));
  llvm::MDNode* unlikely = llvm::MDBuilder(gen.context).createBranchWeights(1, 1 << 20);
  b.CreateCondBr(any, some, end, unlikely);
  b.SetInsertPoint(some);
  std::vector<Value*> args;
  for (llvm::Argument& arg : f->args()) args.push_back(&arg);
  Value* value = b.CreateCall(slow, args);
  b.CreateBr(end);
  b.SetInsertPoint(end);
  auto* result = b.CreatePHI(type->getReturnType(), 2);
  result->addIncoming(llvm::PoisonValue::get(type->getReturnType()), entry);
  result->addIncoming(value, some);
  b.CreateRet(result);
  return f;
}
}  // namespace

Value* FunctionGen::RareValue(const PrimExpr& value) {
  Captures<decltype(vars_)> captures;
  captures.outside = &vars_;
  captures(value);
  std::vector<llvm::Type*> types;
  std::vector<Value*> args;
  for (const Var& v : captures.vars) {
    args.push_back(vars_.at(v.get()));
    types.push_back(args.back()->getType());
    if (types.back()->isVectorTy() || types.back()->isPointerTy()) return Gen(value);
  }
  if (args.empty()) return Gen(value);
  auto* type = llvm::FunctionType::get(gen_.TypeOf(value.dtype()), types, false);
  auto* f = gen_.NewFunction(type, "tvm.rare", true);
  f->addFnAttr(llvm::Attribute::Cold);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::WillReturn);
  f->setMemoryEffects(llvm::MemoryEffects::none());
  FunctionGen inner(gen_, f, value.dtype(), std::nullopt);
  inner.b_.SetInsertPoint(inner.Block("entry"));
  for (size_t i = 0; i < args.size(); ++i) inner.vars_[captures.vars[i].get()] = f->getArg(i);
  inner.b_.CreateRet(inner.Gen(value));

  auto* call = b_.CreateCall(f, args);
  llvm::SmallVector<std::string, 4> names;
  std::vector<llvm::GlobalValue*> forms;
  std::string scalar = f->getName().str();
  for (int lanes : kLanes) {
    std::string name = scalar + ".v" + std::to_string(lanes);
    forms.push_back(VectorForm(gen_, f, lanes, name));
    // M: masked; one v for each argument that differs between lanes.
    names.push_back("_ZGV_LLVM_M" + std::to_string(lanes) + std::string(args.size(), 'v') + "_" +
                    scalar + "(" + name + ")");
  }
  llvm::VFABI::setVectorVariantNames(call, names);
  // Nothing calls them yet.
  llvm::appendToCompilerUsed(*gen_.module, forms);
  return call;
}

}  // namespace tvm::codegen
