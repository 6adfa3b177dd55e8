// SPDX-License-Identifier: Apache-2.0
// Parallel loops: the body becomes a function of its own, which the runtime calls once per task
// with a share of the iterations.
#include "backend/llvm/codegen.h"

namespace tvm::codegen {
using Value = llvm::Value;

void FunctionGen::EmitParallel(const ForObj* op) {
  Value *begin = Gen(op->min), *extent = Gen(op->extent);
  Value* step = op->step ? Gen(*op->step) : Lane(op->loop_var.dtype(), 1);
  std::vector<Var> captures = CapturesOf(op, vars_);

  // The iterations begin + step * [first, last) of one task; buffers stay free of aliases as
  // parameters, which they would not be as members of a structure.
  llvm::Type* index = begin->getType();
  std::vector<llvm::Type*> types = {index, index, index, index};
  std::vector<llvm::Type*> members = {index, index, index};
  std::vector<Value*> values = {begin, extent, step};
  for (const Var& v : captures) {
    Value* value = vars_.at(v.get());
    types.push_back(value->getType());
    members.push_back(value->getType());
    values.push_back(value);
  }
  std::string name = function_->getName().str() + ".for_" + std::string(op->loop_var->name_hint);
  auto* body = gen_.NewFunction(llvm::FunctionType::get(gen_.i32, types, false), name, true);
  FunctionGen inner(gen_, body, DataType::Void(), op->span);
  inner.shape_vars_ = shape_vars_;
  inner.nonnegative_vars_ = nonnegative_vars_;
  inner.pointer_align_ = pointer_align_;
  inner.volatile_vars_ = volatile_vars_;
  inner.in_parallel_ = true;
  inner.streaming_loops_ = streaming_loops_;
  inner.b_.SetInsertPoint(inner.Block("entry"));
  for (size_t i = 0; i < captures.size(); ++i) {
    const Object* var = captures[i].get();
    llvm::Argument* arg = body->getArg(4 + i);
    arg->setName(std::string(captures[i]->name_hint));
    inner.vars_[var] = arg;
    if (index_values_.count(values[3 + i]) || llvm::isa<llvm::ConstantInt>(values[3 + i]))
      inner.MarkIndex(arg, true);
    if (!arg->getType()->isPointerTy()) continue;
    if (auto align = pointer_align_.find(var); align != pointer_align_.end()) {
      arg->addAttr(llvm::Attribute::getWithAlignment(gen_.context, llvm::Align(align->second)));
    }
    if (noalias_vars_.count(var)) {
      arg->addAttr(llvm::Attribute::NoAlias);
      inner.noalias_vars_.insert(var);
    }
  }
  {
    auto& b = inner.b_;
    for (int i = 0; i < 4; ++i) inner.MarkIndex(body->getArg(i), true);
    // Constants stay constants: LLVM knows then how often the loop runs and what it counts in.
    auto known = [](Value* value, Value* other) {
      return llvm::isa<llvm::ConstantInt>(value) ? value : other;
    };
    Value *origin = known(begin, body->getArg(0)), *stride = known(step, body->getArg(1));
    Value* first = b.CreateNSWAdd(origin, b.CreateNSWMul(body->getArg(2), stride));
    Value* last = b.CreateNSWAdd(origin, b.CreateNSWMul(body->getArg(3), stride));
    if (NonNegative(op->min)) inner.nonnegative_vars_.insert(op->loop_var.get());
    inner.EmitLoop(first, last, stride, op->loop_var, op->annotations, op->body,
                   ForKind::kParallel);
    if (!b.GetInsertBlock()->getTerminator()) inner.Return(b.getInt32(0));
  }
  // The extents of the loop are computed here: what vscale is depends on the mode of the function.
  AddAttributes(inner.asked_attributes_);

  // int32 task(task_id, environment {handle, num_task}, closure)
  auto* closure = llvm::StructType::get(gen_.context, members);
  auto* task_type = llvm::FunctionType::get(gen_.i32, {gen_.i32, gen_.ptr, gen_.ptr}, false);
  auto* task = gen_.NewFunction(task_type, name + ".task", true);
  auto* environment = llvm::StructType::get(gen_.ptr, gen_.i32);
  {
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(gen_.context, "entry", task));
    if (auto* scope = gen_.DebugFunction(task, op->span)) {
      b.SetCurrentDebugLocation(llvm::DILocation::get(gen_.context, 0, 0, scope));
    }
    auto member = [&](size_t i) {
      return b.CreateLoad(members[i], b.CreateStructGEP(closure, task->getArg(2), i));
    };
    Value* tasks = b.CreateSExtOrTrunc(
        b.CreateLoad(gen_.i32, b.CreateStructGEP(environment, task->getArg(1), 1)), index);
    Value* id = b.CreateSExtOrTrunc(task->getArg(0), index);
    auto known = [&](Value* value, size_t i) {
      return llvm::isa<llvm::ConstantInt>(value) ? value : member(i);
    };
    Value *origin = known(begin, 0), *span = known(extent, 1), *stride = known(step, 2);
    auto constant = [&](int v) { return llvm::ConstantInt::get(index, v); };
    // Iterations, and an even share of them: the first `rest` tasks get one more.
    Value* count = b.CreateSDiv(b.CreateNSWAdd(span, b.CreateNSWSub(stride, constant(1))), stride);
    count = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count, constant(0));
    Value *share = b.CreateSDiv(count, tasks), *rest = b.CreateSRem(count, tasks);
    auto start = [&](Value* i) {
      return b.CreateNSWAdd(b.CreateNSWMul(i, share),
                            b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, i, rest));
    };
    std::vector<Value*> args = {origin, stride, start(id), start(b.CreateNSWAdd(id, constant(1)))};
    for (size_t i = 3; i < members.size(); ++i) args.push_back(member(i));
    b.CreateRet(b.CreateCall(body, args));
  }

  Value* data = StackSlot(closure, 1, llvm::Align(16), "closure");
  for (size_t i = 0; i < values.size(); ++i)
    b_.CreateStore(values[i], b_.CreateStructGEP(closure, data, i));
  Value* launch = b_.CreateLoad(gen_.ptr, gen_.ContextPointer("__TVMBackendParallelLaunch"));
  auto *with = Block("launch"), *without = Block("launch.inline"), *end = Block("launch.end");
  Branch(b_.CreateIsNotNull(launch), true, with, without);
  b_.SetInsertPoint(with);
  // The runtime chooses into how many tasks the iterations go.
  Value* most =
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, extent, llvm::ConstantInt::get(index, 1));
  if (index->getIntegerBitWidth() > 32) {
    most = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, most,
                                    llvm::ConstantInt::get(index, INT32_MAX));
  }
  most = b_.CreateNeg(b_.CreateSExtOrTrunc(most, gen_.i32));
  auto* launch_type = llvm::FunctionType::get(gen_.i32, {gen_.ptr, gen_.ptr, gen_.i32}, false);
  Value* status = b_.CreateCall(launch_type, launch, {task, data, most});
  b_.CreateBr(end);
  b_.SetInsertPoint(without);
  Value* alone = StackSlot(environment, 1, llvm::Align(8), "environment");
  b_.CreateStore(llvm::ConstantPointerNull::get(gen_.ptr),
                 b_.CreateStructGEP(environment, alone, 0));
  b_.CreateStore(b_.getInt32(1), b_.CreateStructGEP(environment, alone, 1));
  Value* status_alone = b_.CreateCall(task, {b_.getInt32(0), alone, data});
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
  auto* both = b_.CreatePHI(gen_.i32, 2);
  both->addIncoming(status, with);
  both->addIncoming(status_alone, without);
  Propagate(both);
}

}  // namespace tvm::codegen
