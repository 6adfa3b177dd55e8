// SPDX-License-Identifier: Apache-2.0
// Tile registers (AMX): functions that use them set them up first and release them at their ends.
//
// Calls may leave them in any state, so they are set up again after each. The operating system
// keeps them from processes that have not asked for them: the first function that runs asks, so
// that code works wherever it is linked to.
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <array>

#include "backend/llvm/codegen.h"

namespace tvm::codegen {
namespace {
llvm::Intrinsic::ID IntrinsicOf(const llvm::Instruction& i) {
  auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
  auto* callee = call ? call->getCalledFunction() : nullptr;
  return callee ? callee->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
}
/// Whether a function uses tiles, and nobody set them up.
bool NeedsTiles(llvm::Function& f) {
  bool uses = false;
  for (llvm::Instruction& i : llvm::instructions(f)) {
    switch (IntrinsicOf(i)) {
      case llvm::Intrinsic::x86_ldtilecfg:
        return false;
      case llvm::Intrinsic::x86_tilezero:
      case llvm::Intrinsic::x86_tileloadd64:
      case llvm::Intrinsic::x86_tilestored64:
        uses = true;
        break;
      default:
        break;
    }
  }
  return uses;
}
/// Eight tiles of 16 rows of 64 bytes.
llvm::Constant* TileShapes(ModuleGen& gen) {
  constexpr const char* kName = "tvm.tile_shapes";
  if (auto* known = gen.module->getNamedGlobal(kName)) return known;
  constexpr int kTiles = 8, kColumnBytes = 16, kRows = 48;
  std::array<uint8_t, 64> bytes{};
  bytes[0] = 1;  // the only palette there is
  for (int tile = 0; tile < kTiles; ++tile) {
    bytes[kColumnBytes + 2 * tile] = 64;
    bytes[kRows + tile] = 16;
  }
  auto* data = llvm::ConstantDataArray::get(gen.context, bytes);
  auto* global = new llvm::GlobalVariable(*gen.module, data->getType(), true,
                                          llvm::GlobalValue::InternalLinkage, data, kName);
  global->setAlignment(llvm::Align(64));
  return global;
}
/// int32 request(): 0, or -1 with the error set, asking the system the first time.
llvm::Function* RequestFunction(ModuleGen& gen) {
  constexpr const char* kName = "tvm.request_tiles";
  if (auto* known = gen.module->getFunction(kName)) return known;
  constexpr int kArchPrctl = 158, kRequestPermission = 0x1023, kTileData = 18;
  auto* granted =
      new llvm::GlobalVariable(*gen.module, gen.i32, false, llvm::GlobalValue::InternalLinkage,
                               llvm::ConstantInt::get(gen.i32, 0), "tvm.tiles_granted");
  auto* f = gen.NewFunction(llvm::FunctionType::get(gen.i32, false), kName, true);
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(gen.context, name, f); };
  auto *entry = block("entry"), *ask = block("ask"), *keep = block("keep"),
       *refuse = block("refuse"), *done = block("done");
  llvm::IRBuilder<> b(entry);
  // Several threads may ask at once, which does no harm.
  auto* known = b.CreateAlignedLoad(gen.i32, granted, llvm::Align(4));
  known->setAtomic(llvm::AtomicOrdering::Monotonic);
  b.CreateCondBr(b.CreateIsNotNull(known), done, ask);
  b.SetInsertPoint(ask);
  auto* type = llvm::FunctionType::get(gen.i64, {gen.i64}, true);
  llvm::Value* status =
      b.CreateCall(gen.Extern("syscall", type),
                   {b.getInt64(kArchPrctl), b.getInt64(kRequestPermission), b.getInt64(kTileData)});
  b.CreateCondBr(b.CreateIsNull(status), keep, refuse);
  b.SetInsertPoint(keep);
  b.CreateAlignedStore(b.getInt32(1), granted, llvm::Align(4))
      ->setAtomic(llvm::AtomicOrdering::Monotonic);
  b.CreateBr(done);
  b.SetInsertPoint(refuse);
  b.CreateRet(b.CreateCall(
      gen.RaiseFunction({}),
      {gen.Text("RuntimeError"),
       gen.Text("AMX: expected the operating system to grant tile registers to this process, which "
                "it refuses; compile with -mattr=-amx-tile")}));
  b.SetInsertPoint(done);
  b.CreateRet(b.getInt32(0));
  return f;
}
void SetUpTiles(ModuleGen& gen, llvm::Function& f) {
  auto* pair = llvm::dyn_cast<llvm::StructType>(f.getReturnType());
  if (f.getReturnType() != gen.i32 && !pair) {
    Unsupported(
        "expected a function with a result that other libraries may call not to use tile "
        "registers: " +
        f.getName().str());
  }
  std::vector<llvm::Instruction*> calls, ends, slots;
  for (llvm::Instruction& i : llvm::instructions(f)) {
    bool is_call = llvm::isa<llvm::CallBase>(i) && IntrinsicOf(i) == llvm::Intrinsic::not_intrinsic;
    if (is_call) calls.push_back(&i);
    if (llvm::isa<llvm::ReturnInst>(i)) ends.push_back(&i);
    if (auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&i); slot && slot->isStaticAlloca())
      slots.push_back(&i);
  }
  llvm::IRBuilder<> b(gen.context);
  auto at = [&](llvm::Instruction* i) {
    b.SetInsertPoint(i);
    b.SetCurrentDebugLocation(i->getDebugLoc());
  };
  for (llvm::Instruction* call : calls) {
    at(call->getNextNode());
    b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::x86_ldtilecfg, {TileShapes(gen)});
  }
  for (llvm::Instruction* end : ends) {
    at(end);
    b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::x86_tilerelease, {});
  }
  // Slots on the stack stay in the first block, which ends with the question for permission.
  llvm::BasicBlock& first = f.getEntryBlock();
  for (auto it = slots.rbegin(); it != slots.rend(); ++it)
    (*it)->moveBefore(first, first.getFirstInsertionPt());
  auto begin = first.getFirstInsertionPt();
  while (llvm::isa<llvm::AllocaInst>(*begin)) ++begin;
  llvm::BasicBlock* rest = first.splitBasicBlock(begin, "with_tiles");
  auto* refused = llvm::BasicBlock::Create(gen.context, "without_tiles", &f);
  first.getTerminator()->eraseFromParent();
  b.SetInsertPoint(&first);
  b.SetCurrentDebugLocation(rest->begin()->getDebugLoc());
  llvm::Value* status = b.CreateCall(RequestFunction(gen), {});
  b.CreateCondBr(b.CreateIsNull(status), rest, refused);
  b.SetInsertPoint(refused);
  b.CreateRet(pair ? b.CreateInsertValue(llvm::Constant::getNullValue(pair), status, 0) : status);
  b.SetInsertPoint(rest, rest->begin());
  b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::x86_ldtilecfg, {TileShapes(gen)});
}
}  // namespace

void ModuleGen::SetUpTiles() {
  std::vector<llvm::Function*> found;
  for (llvm::Function& f : *module) {
    if (!f.isDeclaration() && NeedsTiles(f)) found.push_back(&f);
  }
  for (llvm::Function* f : found) codegen::SetUpTiles(*this, *f);
}

}  // namespace tvm::codegen
