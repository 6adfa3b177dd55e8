// SPDX-License-Identifier: Apache-2.0
// Statements: control flow, bindings, memory of a function, errors.
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Verifier.h>

#include <algorithm>
#include <sstream>

#include "backend/llvm/codegen.h"
#include "tvm/expr/op.h"

namespace tvm::codegen {
using Value = llvm::Value;
namespace {
/// Whether a loop is annotated with anything but 0.
bool IsOn(const Map<String, Any>& annotations, const char* key) {
  auto it = annotations.find(key);
  if (it == annotations.end()) return false;
  if (auto number = (*it).second.as<int64_t>()) return *number != 0;
  auto* constant = (*it).second.as<IntImmObj>();
  return !constant || constant->value != 0;
}
}  // namespace

FunctionGen::FunctionGen(ModuleGen& gen, llvm::Function* function, DataType result,
                         const Optional<Span>& span)
    : gen_(gen),
      b_(gen.context),
      function_(function),
      scope_(gen.DebugFunction(function, span)),
      result_(result) {
  // LLVM wants a place for calls between functions that have lines.
  if (scope_) b_.SetCurrentDebugLocation(llvm::DILocation::get(gen.context, 0, 0, scope_));
  llvm::FastMathFlags flags;
  flags.setNoNaNs(gen.options.nnan);
  flags.setNoInfs(gen.options.ninf);
  flags.setNoSignedZeros(gen.options.nsz);
  flags.setAllowReciprocal(gen.options.arcp);
  flags.setAllowContract(gen.options.contract);
  flags.setAllowReassoc(gen.options.reassoc);
  b_.setFastMathFlags(flags);
}

void FunctionGen::EmitBody(const FunctionInfo& info) {
  const Array<Var>& params = info.func->params;
  const Stmt& body = info.func->body;
  bool noalias = info.func->HasNonzeroAttr(tir::attr::kNoAlias);
  auto checked = info.func->GetAttr<Array<int64_t>>("tir.param_alignment");
  VariableFacts facts;
  facts(body);
  shape_vars_ = std::move(facts.shape_vars);
  nonnegative_vars_ = std::move(facts.nonnegative);
  pointer_align_ = std::move(facts.align);
  b_.SetInsertPoint(Block("entry"));
  for (size_t i = 0; i < params.size(); ++i) {
    const Var& var = params[i];
    llvm::Argument* arg = function_->getArg(i);
    arg->setName(std::string(var->name_hint));
    vars_[var.get()] = arg;
    MarkIndex(arg, var.dtype().is_index() && shape_vars_.count(var.get()));
    if (!arg->getType()->isPointerTy()) {
      if (nonnegative_vars_.count(var.get()) && var.dtype().is_index()) {
        unsigned bits = var.dtype().bits();
        llvm::ConstantRange range(llvm::APInt(bits, 0), llvm::APInt::getSignedMinValue(bits));
        arg->addAttr(llvm::Attribute::get(gen_.context, llvm::Attribute::Range, range));
      }
      continue;
    }
    auto align = pointer_align_.find(var.get());
    if (align == pointer_align_.end()) continue;  // no buffer's data
    // The entry checked less than buffers promise where a tensor may begin anywhere.
    if (checked && i < checked->size()) align->second = std::max<int64_t>((*checked)[i], 1);
    arg->addAttr(llvm::Attribute::getWithAlignment(gen_.context, llvm::Align(align->second)));
    // Loads of memory that is there for sure need not wait for the condition they are under.
    if (auto size = facts.bytes.find(var.get()); size != facts.bytes.end() && size->second > 0) {
      arg->addAttr(llvm::Attribute::getWithDereferenceableBytes(gen_.context, size->second));
    }
    if (noalias) {
      arg->addAttr(llvm::Attribute::NoAlias);
      noalias_vars_.insert(var.get());
    }
  }
  Gen(body);
  if (!b_.GetInsertBlock()->getTerminator()) {
    if (!result_.is_void()) {
      // The end of a function with a result is reached only without `ret`.
      b_.CreateUnreachable();
    } else {
      Return(b_.getInt32(0));
    }
  }
}

llvm::BasicBlock* FunctionGen::Block(const llvm::Twine& name) {
  return llvm::BasicBlock::Create(gen_.context, name, function_);
}
llvm::AllocaInst* FunctionGen::StackSlot(llvm::Type* type, uint64_t count, llvm::Align align,
                                         const llvm::Twine& name) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> b(&entry, entry.getFirstInsertionPt());
  auto* slot = b.CreateAlloca(llvm::ArrayType::get(type, count), nullptr, name);
  slot->setAlignment(align);
  return slot;
}

// ---- leaving, and errors ------------------------------------------------------------------------
void FunctionGen::Return(Value* status, Value* result) {
  FreeWorkspaces(0);
  llvm::Type* type = function_->getReturnType();
  if (type == gen_.i32 && result_.is_void()) {
    b_.CreateRet(status);
  } else if (auto* pair = llvm::dyn_cast<llvm::StructType>(type)) {
    Value* both = b_.CreateInsertValue(llvm::PoisonValue::get(pair), status, 0);
    if (!result) result = llvm::Constant::getNullValue(pair->getElementType(1));
    b_.CreateRet(b_.CreateInsertValue(both, result, 1));
  } else if (result) {
    b_.CreateRet(result);
  } else {
    Unsupported("expected a function with a result that other libraries may call not to raise: " +
                function_->getName().str());
  }
}
void FunctionGen::Raise(std::string_view cls, std::string_view format,
                        const std::vector<Value*>& values) {
  std::vector<Value*> args = {gen_.Text(cls), gen_.Text(format)};
  std::vector<llvm::Type*> types;
  for (Value* v : values) {
    llvm::Type* t = v->getType();
    if (t->isFloatingPointTy()) v = b_.CreateFPExt(v, b_.getDoubleTy());
    if (t->isIntegerTy() && t->getIntegerBitWidth() < 32) v = b_.CreateSExt(v, gen_.i32);
    args.push_back(v);
    types.push_back(v->getType());
  }
  Return(b_.CreateCall(gen_.RaiseFunction(types), args));
}
void FunctionGen::RaiseUnless(Value* ok, std::string_view cls, std::string_view format,
                              const std::vector<Value*>& values) {
  auto *bad = Block("raise"), *good = Block("ok");
  Branch(ok, true, good, bad);
  b_.SetInsertPoint(bad);
  Raise(cls, format, values);
  b_.SetInsertPoint(good);
}
void FunctionGen::Propagate(Value* status) {
  auto *bad = Block("failed"), *good = Block("ok");
  Branch(b_.CreateICmpEQ(status, b_.getInt32(0)), true, good, bad);
  b_.SetInsertPoint(bad);
  Return(b_.getInt32(-1));
  b_.SetInsertPoint(good);
}
void FunctionGen::Branch(Value* cond, bool likely, llvm::BasicBlock* yes, llvm::BasicBlock* no) {
  llvm::MDNode* weights =
      likely ? llvm::MDBuilder(gen_.context).createBranchWeights(1 << 20, 1) : nullptr;
  b_.CreateCondBr(cond, yes, no, weights);
}
Value* FunctionGen::CondOf(const PrimExpr& e, bool* likely) {
  auto* call = e.as<CallObj>();
  *likely = call && call->Is(builtin::likely());
  return Gen(e);
}

// ---- bindings -----------------------------------------------------------------------------------
void FunctionGen::Emit(const StmtObj* op) {
  Unsupported("expected a statement that lowering leaves, got " +
                  std::string(ffi::String(op->GetTypeKey())),
              op->span);
}
void FunctionGen::Emit(const LetStmtObj* op) {
  Value* value = Gen(op->value);
  vars_[op->var.get()] = value;
  if (!value->hasName() && !llvm::isa<llvm::Constant>(value))
    value->setName(std::string(op->var->name_hint));
  if (shape_vars_.count(op->var.get())) MarkIndex(value, op->var.dtype().is_index());
  if (NonNegative(op->value)) nonnegative_vars_.insert(op->var.get());
  auto* call = op->value.as<CallObj>();
  if (!call || !call->Is(builtin::TVMBackendAllocWorkspace())) return Gen(op->body);
  // Freed by a statement of the body; and here, where an error or a jump leaves the body before.
  noalias_vars_.insert(op->var.get());
  workspaces_.push_back(value);
  Gen(op->body);
  std::erase(workspaces_, value);
}
void FunctionGen::Emit(const SeqStmtObj* op) {
  for (const Stmt& s : op->seq) {
    Gen(s);
    if (b_.GetInsertBlock()->getTerminator()) return;  // what follows ret, break or continue
  }
}
void FunctionGen::Emit(const DeclBufferObj* op) { Gen(op->body); }
void FunctionGen::Emit(const AttrStmtObj* op) {
  if (View(op->attr_key) == tir::attr::kVolatile) {
    if (auto var = op->node.as<VarObj>()) volatile_vars_.insert(var);
  }
  if (View(op->attr_key) == "pragma_llvm_attributes") {
    auto* text = op->value.as<StringImmObj>();
    if (!text) Unsupported("expected a text as value of pragma_llvm_attributes", op->span);
    AddAttributes(std::string(text->value));
  }
  Gen(op->body);
}
void FunctionGen::AddAttributes(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    size_t equals = std::min(word.find('='), word.size());
    std::string value = equals < word.size() ? word.substr(equals + 1) : "";
    function_->addFnAttr(word.substr(0, equals), value);
    // A function into which this one went would not have them.
    function_->addFnAttr(llvm::Attribute::NoInline);
  }
  asked_attributes_ += text + " ";
}
void FunctionGen::Emit(const EvaluateObj* op) {
  if (!op->value.as<IntImmObj>()) Gen(op->value);
}
void FunctionGen::Emit(const AssertStmtObj* op) {
  auto* text = op->message.as<StringImmObj>();
  if (!text) Unsupported("expected a text as the message of an assertion", op->span);
  auto [cls, message] = SplitErrorClass(std::string(text->value));
  RaiseUnless(Gen(op->condition), cls, message);
  Gen(op->body);
}

// ---- control flow -------------------------------------------------------------------------------
void FunctionGen::Emit(const IfThenElseObj* op) {
  bool likely = false;
  Value* cond = CondOf(op->condition, &likely);
  auto *yes = Block("then"), *end = Block("endif");
  llvm::BasicBlock* no = op->else_case ? Block("else") : end;
  Branch(cond, likely, yes, no);
  // Memory that a branch gives back before it leaves is still there for what follows.
  std::vector<Value*> workspaces = workspaces_;
  b_.SetInsertPoint(yes);
  Gen(op->then_case);
  if (!b_.GetInsertBlock()->getTerminator()) b_.CreateBr(end);
  workspaces_ = workspaces;
  if (op->else_case) {
    b_.SetInsertPoint(no);
    Gen(*op->else_case);
    if (!b_.GetInsertBlock()->getTerminator()) b_.CreateBr(end);
    workspaces_ = workspaces;
  }
  b_.SetInsertPoint(end);
}
void FunctionGen::Emit(const WhileObj* op) {
  auto *head = Block("while"), *body = Block("while.body"), *end = Block("while.end");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  bool likely = false;
  Branch(CondOf(op->condition, &likely), likely, body, end);
  b_.SetInsertPoint(body);
  loops_.push_back({nullptr, head, end, workspaces_.size()});
  Gen(op->body);
  loops_.pop_back();
  if (!b_.GetInsertBlock()->getTerminator()) b_.CreateBr(head);
  b_.SetInsertPoint(end);
}
void FunctionGen::Emit(const ForObj* op) {
  switch (op->kind) {
    case ForKind::kParallel:
      if (!WritesPartsOfBytes(op->body)) return EmitParallel(op);
      break;
    case ForKind::kThreadBinding:
      Unsupported("a loop bound to GPU threads on a CPU", op->span);
    case ForKind::kVectorized:
      Unsupported("expected VectorizeLoop to have lowered the loop over " +
                      std::string(op->loop_var->name_hint),
                  op->span);
    default:
      break;
  }
  if (EmitExtremum(op)) return;
  Value* begin = Gen(op->min);
  Value* end = b_.CreateAdd(begin, Gen(op->extent), "", false, true);
  Value* step = op->step ? Gen(*op->step) : Lane(op->loop_var.dtype(), 1);
  if (NonNegative(op->min)) nonnegative_vars_.insert(op->loop_var.get());
  EmitLoop(begin, end, step, op->loop_var, op->annotations, op->body, op->kind);
}
namespace {
/// LLVM unrolls short loops before it looks for vectors, and is left with a chain of scalars: sums
/// of 49 elements took six times as long. The shortest are faster as a chain, and long ones are
/// unrolled only once they are made of vectors.
bool IsBetterInVectors(Value* begin, Value* end) {
  auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
  auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
  if (!first || !last) return false;
  int64_t count = last->getSExtValue() - first->getSExtValue();
  return count >= 6 && count <= 100;
}
}  // namespace
void FunctionGen::EmitLoop(Value* begin, Value* end, Value* step, const Var& var,
                           const Map<String, Any>& annotations, const Stmt& body, ForKind kind) {
  std::string name(var->name_hint);
  auto *before = b_.GetInsertBlock(), *head = Block("for." + name);
  auto *next = Block("next." + name), *after = Block("end." + name);
  // The test comes at the end of an iteration: the form LLVM's loop passes want.
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), head, after);
  b_.SetInsertPoint(head);
  auto* phi = b_.CreatePHI(begin->getType(), 2, name);
  phi->addIncoming(begin, before);
  MarkIndex(phi, true);
  vars_[var.get()] = phi;
  loops_.push_back(
      {var.get(), next, kind == ForKind::kParallel ? nullptr : after, workspaces_.size()});
  bool streams = IsOn(annotations, "nontemporal_store");
  streaming_loops_ += streams;
  Gen(body);
  streaming_loops_ -= streams;
  bool reduces = loops_.back().reduces;
  loops_.pop_back();
  if (!b_.GetInsertBlock()->getTerminator()) b_.CreateBr(next);
  b_.SetInsertPoint(next);
  Value* following = b_.CreateAdd(phi, step, "", false, true);
  phi->addIncoming(following, next);
  auto* back = b_.CreateCondBr(b_.CreateICmpSLT(following, end), head, after);

  auto flag = [&](const char* text) {
    return llvm::MDNode::get(gen_.context, llvm::MDString::get(gen_.context, text));
  };
  std::vector<llvm::Metadata*> facts = {nullptr, flag("llvm.loop.mustprogress")};
  if (kind == ForKind::kUnrolled) {
    facts.push_back(flag("llvm.loop.unroll.full"));
  } else if (reduces && IsBetterInVectors(begin, end)) {
    facts.push_back(flag("llvm.loop.unroll.disable"));
  }
  if (annotations.count("pragma_novectorize") || annotations.count("llvm.disable_vectorize")) {
    facts.push_back(llvm::MDNode::get(
        gen_.context, {llvm::MDString::get(gen_.context, "llvm.loop.vectorize.enable"),
                       llvm::ConstantAsMetadata::get(b_.getFalse())}));
  }
  auto* loop = llvm::MDNode::getDistinct(gen_.context, facts);
  loop->replaceOperandWith(0, loop);
  back->setMetadata(llvm::LLVMContext::MD_loop, loop);
  b_.SetInsertPoint(after);
  // Stores that bypass the caches are not ordered with others, not even with those that tell
  // another thread that the work is done.
  if (streams) b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
}

// ---- memory of the function ---------------------------------------------------------------------
void FunctionGen::Emit(const AllocateObj* op) {
  if (auto* c = op->condition.as<IntImmObj>(); c && c->value == 0) return Gen(op->body);
  std::string name(op->buffer_var->name_hint);
  llvm::Type* type = gen_.MemoryType(op->dtype);
  uint64_t element = op->dtype.bits() < 8 ? 0 : gen_.layout.getTypeAllocSize(type).getFixedValue();
  int64_t count = op->ConstantSize();
  auto& align = pointer_align_[op->buffer_var.get()];
  align = std::max<int64_t>(align, kBufferAlign);
  noalias_vars_.insert(op->buffer_var.get());
  // Types below a byte are packed.
  auto bytes_of = [&](uint64_t n) {
    return element ? n * element : (n * op->dtype.bits() * op->dtype.lanes() + 7) / 8;
  };
  if (count > 0 && static_cast<uint64_t>(count) <= kMaxStackBuffer) {
    uint64_t bytes = bytes_of(count);
    if (bytes <= kMaxStackBuffer && stack_bytes_ + bytes <= kMaxStackBytes) {
      stack_bytes_ += bytes;
      vars_[op->buffer_var.get()] = element ? StackSlot(type, count, llvm::Align(align), name)
                                            : StackSlot(gen_.i8, bytes, llvm::Align(align), name);
      return Gen(op->body);
    }
  }
  Value* n = llvm::ConstantInt::get(gen_.i64, 1);
  for (const PrimExpr& e : op->extents) {
    n = b_.CreateNSWMul(n, b_.CreateSExtOrTrunc(Gen(e), gen_.i64));
  }
  Value* bytes;
  if (element) {
    bytes = b_.CreateNSWMul(n, b_.getInt64(element));
  } else {
    Value* bits = b_.CreateNSWMul(n, b_.getInt64(op->dtype.bits() * op->dtype.lanes()));
    bytes = b_.CreateLShr(b_.CreateAdd(bits, b_.getInt64(7)), 3);
  }
  Value* memory = AllocWorkspace(bytes, op->dtype);
  memory->setName(name);
  vars_[op->buffer_var.get()] = memory;
  workspaces_.push_back(memory);
  Gen(op->body);
  if (!b_.GetInsertBlock()->getTerminator()) FreeWorkspace(memory);
  workspaces_.pop_back();
}
void FunctionGen::Emit(const AllocateConstObj* op) {
  if (!op->data) Unsupported("expected AllocateConst to hold its data", op->span);
  const DLTensor* t = op->data.value().GetDLTensorPtr();
  size_t bytes = ffi::GetDataSize(*t);
  llvm::StringRef raw(static_cast<const char*>(t->data) + t->byte_offset, bytes);
  auto* data = llvm::ConstantDataArray::getRaw(raw, bytes, gen_.i8);
  auto* global = new llvm::GlobalVariable(*gen_.module, data->getType(), true,
                                          llvm::GlobalValue::PrivateLinkage, data,
                                          std::string(op->buffer_var->name_hint));
  global->setAlignment(llvm::Align(kBufferAlign));
  vars_[op->buffer_var.get()] = global;
  pointer_align_[op->buffer_var.get()] = kBufferAlign;
  Gen(op->body);
}
void FunctionGen::FreeWorkspaces(size_t down_to) {
  for (size_t i = workspaces_.size(); i > down_to; --i) FreeWorkspace(workspaces_[i - 1]);
}
Value* FunctionGen::AllocWorkspace(Value* bytes, DataType dtype, Value* device_type,
                                   Value* device_id) {
  if (!device_type) device_type = b_.getInt32(kDLCPU);
  if (!device_id) device_id = b_.getInt32(0);
  auto* type =
      llvm::FunctionType::get(gen_.ptr, {gen_.i32, gen_.i32, gen_.i64, gen_.i32, gen_.i32}, false);
  Value* runtime = b_.CreateLoad(gen_.ptr, gen_.ContextPointer("__TVMBackendAllocWorkspace"));
  auto *with = Block("alloc.runtime"), *without = Block("alloc.plain"), *end = Block("alloc.end");
  Branch(b_.CreateIsNotNull(runtime), true, with, without);
  b_.SetInsertPoint(with);
  auto* a = b_.CreateCall(
      type, runtime,
      {device_type, device_id, bytes, b_.getInt32(dtype.code()), b_.getInt32(dtype.bits())});
  b_.CreateBr(end);
  b_.SetInsertPoint(without);
  auto* plain = llvm::FunctionType::get(gen_.ptr, {gen_.SizeType(), gen_.SizeType()}, false);
  // aligned_alloc wants a multiple of the alignment, and at least one byte.
  Value* rounded = b_.CreateAnd(b_.CreateAdd(bytes, b_.getInt64(kBufferAlign)),
                                b_.getInt64(~(kBufferAlign - 1)));
  auto* c = b_.CreateCall(gen_.Extern("aligned_alloc", plain),
                          {llvm::ConstantInt::get(gen_.SizeType(), kBufferAlign),
                           b_.CreateZExtOrTrunc(rounded, gen_.SizeType())});
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
  for (auto* call : {a, c}) call->addRetAttr(llvm::Attribute::NoAlias);
  auto* memory = b_.CreatePHI(gen_.ptr, 2);
  memory->addIncoming(a, with);
  memory->addIncoming(c, without);
  RaiseUnless(b_.CreateIsNotNull(memory), "MemoryError",
              "%s: cannot allocate %lld bytes of temporary memory",
              {gen_.Text(function_->getName().str()), bytes});
  return memory;
}
void FunctionGen::FreeWorkspace(Value* pointer) {
  auto* type = llvm::FunctionType::get(gen_.i32, {gen_.i32, gen_.i32, gen_.ptr}, false);
  Value* runtime = b_.CreateLoad(gen_.ptr, gen_.ContextPointer("__TVMBackendFreeWorkspace"));
  auto *with = Block("free.runtime"), *without = Block("free.plain"), *end = Block("free.end");
  Branch(b_.CreateIsNotNull(runtime), true, with, without);
  b_.SetInsertPoint(with);
  b_.CreateCall(type, runtime, {b_.getInt32(kDLCPU), b_.getInt32(0), pointer});
  b_.CreateBr(end);
  b_.SetInsertPoint(without);
  b_.CreateCall(gen_.Extern("free", llvm::FunctionType::get(b_.getVoidTy(), {gen_.ptr}, false)),
                {pointer});
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
}

}  // namespace tvm::codegen
