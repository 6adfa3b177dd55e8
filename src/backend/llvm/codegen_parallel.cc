// SPDX-License-Identifier: Apache-2.0
// Parallel loops: the body becomes a function of its own, which the runtime calls once per task
// with a share of the iterations.
#include "backend/llvm/codegen.h"

namespace tvm::codegen {
using Value = llvm::Value;
namespace {
/// Constants stay constants: LLVM knows then how often a loop runs and what it counts in.
bool IsKnown(Value* value) { return llvm::isa<llvm::ConstantInt>(value); }
}  // namespace

/// int32 body(begin, step, first, last, captures...): the iterations begin + step * [first, last)
/// of one task; buffers stay free of aliases as parameters, which they would not be as members of a
/// structure. `values`: begin, extent, step, then those of the captures.
llvm::Function* FunctionGen::ParallelBody(const ForObj* op, const std::vector<Var>& captures,
                                          const std::vector<Value*>& values,
                                          const std::string& name) {
  std::vector<llvm::Type*> types(4, values[0]->getType());
  for (size_t i = 0; i < captures.size(); ++i) types.push_back(values[3 + i]->getType());
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
  auto& b = inner.b_;
  for (int i = 0; i < 4; ++i) inner.MarkIndex(body->getArg(i), true);
  Value* origin = IsKnown(values[0]) ? values[0] : body->getArg(0);
  Value* stride = IsKnown(values[2]) ? values[2] : body->getArg(1);
  Value* first = b.CreateNSWAdd(origin, b.CreateNSWMul(body->getArg(2), stride));
  Value* last = b.CreateNSWAdd(origin, b.CreateNSWMul(body->getArg(3), stride));
  if (NonNegative(op->min)) inner.nonnegative_vars_.insert(op->loop_var.get());
  inner.EmitLoop(first, last, stride, op->loop_var, op->annotations, op->body, ForKind::kParallel);
  if (!b.GetInsertBlock()->getTerminator()) inner.Return(b.getInt32(0));
  // The extents of the loop are computed here: what vscale is depends on the mode of the function.
  AddAttributes(inner.asked_attributes_);
  return body;
}

/// int32 task(task_id, environment {handle, num_task}, closure {begin, extent, step, captures...})
llvm::Function* FunctionGen::ParallelTask(const ForObj* op, llvm::Function* body,
                                          const std::vector<Value*>& values,
                                          llvm::StructType* closure,
                                          llvm::StructType* environment) {
  auto* type = llvm::FunctionType::get(gen_.i32, {gen_.i32, gen_.ptr, gen_.ptr}, false);
  auto* task = gen_.NewFunction(type, body->getName().str() + ".task", true);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(gen_.context, "entry", task));
  if (auto* scope = gen_.DebugFunction(task, op->span)) {
    b.SetCurrentDebugLocation(llvm::DILocation::get(gen_.context, 0, 0, scope));
  }
  auto member = [&](size_t i) {
    return b.CreateLoad(closure->getElementType(i), b.CreateStructGEP(closure, task->getArg(2), i));
  };
  llvm::Type* index = closure->getElementType(0);
  Value* tasks = b.CreateSExtOrTrunc(
      b.CreateLoad(gen_.i32, b.CreateStructGEP(environment, task->getArg(1), 1)), index);
  Value* id = b.CreateSExtOrTrunc(task->getArg(0), index);
  auto known = [&](size_t i) { return IsKnown(values[i]) ? values[i] : member(i); };
  Value *origin = known(0), *span = known(1), *stride = known(2);
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
  for (size_t i = 3; i < closure->getNumElements(); ++i) args.push_back(member(i));
  b.CreateRet(b.CreateCall(body, args));
  return task;
}

/// Calls the runtime, which chooses into how many tasks the iterations go, or, where there is none,
/// one task.
void FunctionGen::LaunchParallel(llvm::Function* task, llvm::StructType* environment, Value* data,
                                 Value* extent) {
  llvm::Type* index = extent->getType();
  Value* launch = b_.CreateLoad(gen_.ptr, gen_.ContextPointer("__TVMBackendParallelLaunch"));
  auto *with = Block("launch"), *without = Block("launch.inline"), *end = Block("launch.end");
  Branch(b_.CreateIsNotNull(launch), true, with, without);
  b_.SetInsertPoint(with);
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

void FunctionGen::EmitParallel(const ForObj* op) {
  std::vector<Value*> values = {Gen(op->min), Gen(op->extent)};
  values.push_back(op->step ? Gen(*op->step) : Lane(op->loop_var.dtype(), 1));
  std::vector<Var> captures = CapturesOf(op, vars_);
  for (const Var& v : captures) values.push_back(vars_.at(v.get()));
  std::vector<llvm::Type*> members;
  for (Value* value : values) members.push_back(value->getType());
  auto* closure = llvm::StructType::get(gen_.context, members);
  auto* environment = llvm::StructType::get(gen_.ptr, gen_.i32);

  std::string name = function_->getName().str() + ".for_" + std::string(op->loop_var->name_hint);
  llvm::Function* body = ParallelBody(op, captures, values, name);
  llvm::Function* task = ParallelTask(op, body, values, closure, environment);
  Value* data = StackSlot(closure, 1, llvm::Align(16), "closure");
  for (size_t i = 0; i < values.size(); ++i)
    b_.CreateStore(values[i], b_.CreateStructGEP(closure, data, i));
  LaunchParallel(task, environment, data, values[1]);
}

}  // namespace tvm::codegen
