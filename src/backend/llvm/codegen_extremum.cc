// SPDX-License-Identifier: Apache-2.0
// The largest or smallest of many numbers. That a NaN among them is the result costs vectors two
// more instructions for each one, so that it is looked for in another way.
#include "backend/llvm/codegen.h"
#include "tvm/expr/substitute.h"

namespace tvm::codegen {
using Value = llvm::Value;

namespace {
constexpr int kInterleave = 4;  // vectors that hide the latency of an addition

/// What a loop combines with a scalar in memory, by max or min.
struct Extremum {
  const BufferStoreObj* store;
  PrimExpr next;
  bool is_max;
};
std::optional<Extremum> FindExtremum(const ForObj* loop) {
  constexpr int64_t kFew = 64;  // iterations that do not pay for a second loop
  auto* store = loop->body.as<BufferStoreObj>();
  auto* extent = loop->extent.as<IntImmObj>();
  if (loop->kind != ForKind::kSerial || !loop->annotations.empty() || loop->step || !store ||
      store->predicate || store->indices.size() != 1 || (extent && extent->value < kFew))
    return std::nullopt;
  auto is_loop_var = [&](const VarObj* v) { return v == loop->loop_var.get(); };
  DataType t = store->value.dtype();
  bool is_max = store->value.as<MaxObj>();
  if ((t != DataType::Float(32) && t != DataType::Float(64)) ||
      (!is_max && !store->value.as<MinObj>()) || UsesVar(store->indices[0], is_loop_var))
    return std::nullopt;
  auto* both = static_cast<const BinaryOpFields*>(store->value.get());
  auto is_old = [&](const PrimExpr& e) {
    auto* load = e.as<BufferLoadObj>();
    return load && load->buffer.same_as(store->buffer) && !load->predicate &&
           ExprDeepEqual(load->indices[0], store->indices[0]);
  };
  if (is_old(both->a) == is_old(both->b)) return std::nullopt;
  PrimExpr next = is_old(both->a) ? both->b : both->a;
  bool is_simple = true;
  PostOrderVisit(next, [&](const ObjectRef& node) {
    auto* load = node.as<BufferLoadObj>();
    is_simple &= !node.as<CallObj>() && !node.as<LetObj>() &&
                 !(load && load->buffer->data.same_as(store->buffer->data));
  });
  if (!is_simple) return std::nullopt;
  return Extremum{store, next, is_max};
}
}  // namespace

/// Compares as if there were no NaN, and adds the numbers up: only if the sum is NaN, which it also
/// is of infinities of both signs, the loop runs again as it is written.
bool FunctionGen::EmitExtremum(const ForObj* op) {
  auto found = FindExtremum(op);
  // The result stays in a register: nothing else may be the same memory.
  if (!found || !noalias_vars_.count(found->store->buffer->data.get())) return false;
  const BufferStoreObj* store = found->store;
  llvm::Type* type = gen_.TypeOf(store->value.dtype());
  Value* place = ElementPointer(store->buffer, Gen(store->indices[0]));
  llvm::Align align = AlignOf(store->buffer, store->indices[0], 1);
  Value* start = b_.CreateAlignedLoad(type, place, align);
  Value* begin = Gen(op->min);
  Value* end = b_.CreateAdd(begin, Gen(op->extent), "", false, true);
  if (NonNegative(op->min)) nonnegative_vars_.insert(op->loop_var.get());
  auto *before = b_.GetInsertBlock(), *head = Block("extremum"), *after = Block("extremum.end");
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), head, after);
  b_.SetInsertPoint(head);
  auto phi = [&](Value* first) {
    auto* made = b_.CreatePHI(first->getType(), 2);
    made->addIncoming(first, before);
    return made;
  };
  auto *index = phi(begin), *best = phi(start), *sum = phi(start);
  MarkIndex(index, true);
  vars_[op->loop_var.get()] = index;
  Value* x = Gen(found->next);
  llvm::FastMathFlags ordered = b_.getFastMathFlags();
  ordered.setNoNaNs();
  ordered.setNoSignedZeros();
  auto id = found->is_max ? llvm::Intrinsic::maxnum : llvm::Intrinsic::minnum;
  Value* better = b_.CreateBinaryIntrinsic(id, best, x, ordered);
  Value* more = b_.CreateFAdd(sum, x);
  llvm::cast<llvm::Instruction>(more)->setHasAllowReassoc(true);
  Value* next = b_.CreateAdd(index, Lane(op->loop_var.dtype(), 1), "", false, true);
  auto* last = b_.GetInsertBlock();
  for (auto [merged, value] : {std::pair{index, next}, {best, better}, {sum, more}})
    merged->addIncoming(value, last);
  auto* back = b_.CreateCondBr(b_.CreateICmpSLT(next, end), head, after);
  // Unrolled to the end, all comparisons would move behind the test of the sum, and what they
  // compare to the stack.
  auto text = [&](const char* t) { return llvm::MDString::get(gen_.context, t); };
  auto* kept = llvm::MDNode::get(gen_.context, text("llvm.loop.unroll.disable"));
  // Which also keeps the vectors of several iterations apart, unless it is asked for.
  auto* several =
      llvm::MDNode::get(gen_.context, {text("llvm.loop.interleave.count"),
                                       llvm::ConstantAsMetadata::get(b_.getInt32(kInterleave))});
  auto* facts = llvm::MDNode::getDistinct(gen_.context, {nullptr, kept, several});
  facts->replaceOperandWith(0, facts);
  back->setMetadata(llvm::LLVMContext::MD_loop, facts);
  b_.SetInsertPoint(after);
  auto result = [&](Value* value) {
    auto* made = phi(start);
    made->addIncoming(value, last);
    return made;
  };
  Value *first = result(better), *total = result(more);
  auto *again = Block("extremum.nan"), *store_it = Block("extremum.store"), *done = Block("done");
  Branch(b_.CreateFCmpORD(total, total), true, store_it, again);
  b_.SetInsertPoint(store_it);
  b_.CreateAlignedStore(first, place, align);
  b_.CreateBr(done);
  b_.SetInsertPoint(again);
  EmitLoop(begin, end, Lane(op->loop_var.dtype(), 1), op->loop_var, op->annotations, op->body,
           op->kind);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  return true;
}

}  // namespace tvm::codegen
