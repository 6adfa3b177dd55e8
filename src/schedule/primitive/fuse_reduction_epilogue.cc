// SPDX-License-Identifier: Apache-2.0
// fuse_reduction_epilogue: a reduction starts with what another block combines with its result.
#include "schedule/primitive/inline.h"
#include "tvm/ir/structural.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

/// The parts of both blocks.
struct Epilogue {
  const Placed *reduction, *block;
  Reduction form;               // of the reduction
  const BufferStoreObj* store;  // of the epilogue
  Array<PrimExpr> read_at;      // where the epilogue reads the reduction's result
  PrimExpr other;               // what it combines with it
};

void CheckBlocks(const Focus& at, Epilogue* e) {
  const Placed &reduction = *e->reduction, &block = *e->block;
  ObjectRef here = reduction.realize->block, there = block.realize->block;
  Require(WhyNotReduction(at.scope, reduction), {here});
  Require(WhyNotCovering(reduction), {here});
  Require(WhyNoReducer(reduction.block(), &e->form), {here});
  if (e->form.buffers.size() != 1 || !e->form.any_order) {
    Refuse("expected " + NameOf(reduction) + " to reduce one value, in any order", {here});
  }
  Require(WhyNotComplete(at.scope, block), {there});
  Require(WhyNotCovering(block), {there});
  e->store = block.block()->body.as<BufferStoreObj>();
  if (!e->store || e->store->predicate.has_value() || !block.block()->alloc_buffers.empty() ||
      !block.block()->match_buffers.empty())
    Refuse("expected a block whose body is one store, got " + NameOf(block), {there});
  const Buffer& result = e->form.buffers[0];
  if (!at.scope.Owns(result)) {
    Refuse("expected a buffer that is allocated in the scope of the block, got " +
               std::string(result->name) + ", which is needed after it (that of an output block)",
           {here});
  }
  std::vector<const Placed*> readers = at.scope.ReadersOf(result);
  if (readers.size() != 1 || readers[0]->order != block.order) {
    Refuse("expected " + NameOf(block) + " to be the only reader of buffer " +
               std::string(result->name) + ", which " + NameOf(reduction) + " writes",
           {here, there});
  }
  if (block.order < reduction.order)
    Refuse("expected " + NameOf(block) + " after " + NameOf(reduction), {here, there});
  if (IsUsedOtherwise(block.block()->body, result)) {
    Refuse(NameOf(block) + " uses buffer " + std::string(result->name) +
               " in another way than by loads",
           {there});
  }
}

/// Whether both combine in the same way; the order of the two values does not matter.
bool IsSameCombination(const CommReducer& a, const CommReducer& b) {
  PrimExpr x = a->lhs[0], y = a->rhs[0];
  PrimExpr combined = a->Combine({x}, {y})[0];
  return StructuralEqual(combined, b->Combine({x}, {y})[0]) ||
         StructuralEqual(combined, b->Combine({y}, {x})[0]);
}

/// The value as a combination of the reduction's result and something else.
void CheckValue(Epilogue* e) {
  const Buffer& result = e->form.buffers[0];
  ObjectRef there = e->block->realize->block;
  bool loads = false;
  PostOrderVisit(e->store->value, [&](const ObjectRef& n) {
    auto* load = n.as<BufferLoadObj>();
    if (!load || !load->buffer.same_as(result)) return;
    e->read_at = load->indices;
    loads = true;
  });
  if (!loads) {
    Refuse("expected the value that " + NameOf(*e->block) + " stores to load from buffer " +
               std::string(result->name) + ", got " + Text(e->store->value),
           {there});
  }
  // As if it went on reducing: one definition of what combines.
  Reduction more;
  bool same = e->store->value.dtype() == result->dtype && e->store->buffer->dtype == result->dtype;
  if (same) {
    Block as_reduction(Array<IterVar>{}, {}, {}, e->block->block()->name_hint,
                       BufferStore(result, e->store->value, e->read_at));
    const PrimExpr& start = e->form.reducer->identity_element[0];
    Edit(&as_reduction)->init = BufferStore(result, start, e->read_at);
    same = WhyNoReducer(as_reduction.get(), &more).empty() &&
           IsSameCombination(more.reducer, e->form.reducer);
  }
  if (!same) {
    Refuse("expected " + NameOf(*e->block) + " to combine buffer " + std::string(result->name) +
               " with something else as " + NameOf(*e->reduction) +
               " combines its values (a sum with +), got " + Text(e->store->value),
           {there});
  }
  e->other = more.sources[0];
  if (SideEffect(e->other) > CallEffectKind::kReadState)
    Refuse("expected a value without side effects, got " + Text(e->other), {there});
}

/// The epilogue now runs where the reduction does: what it reads must be there already, and what it
/// writes not in use.
void CheckOrder(const Focus& at, const Epilogue& e) {
  for (const BufferRegion& read : e.block->block()->reads) {
    if (read->buffer.same_as(e.form.buffers[0])) continue;
    for (const Placed* writer : at.scope.WritersOf(read->buffer)) {
      bool ready = writer->order < e.reduction->order;
      for (const For& loop : CommonLoops(*writer, *e.reduction))
        ready &= e.block->IsBelow(loop.get());
      if (!ready) {
        Refuse("block " + std::string(writer->block()->name_hint) + " writes buffer " +
                   std::string(read->buffer->name) + ", which " + NameOf(*e.block) +
                   " reads, after " + NameOf(*e.reduction) + " begins",
               {writer->realize->block});
      }
    }
    if (at.scope.IsLoose(read->buffer))
      Refuse("statements outside of blocks use buffer " + std::string(read->buffer->name),
             {at.scope.block});
  }
  for (const Placed* reader : at.scope.ReadersOf(e.store->buffer)) {
    if (reader->order < e.block->order || !CommonLoops(*reader, *e.reduction).empty() ||
        !CommonLoops(*reader, *e.block).empty()) {
      Refuse("block " + std::string(reader->block()->name_hint) + " may read buffer " +
                 std::string(e.store->buffer->name) + " before " + NameOf(*e.block) + " writes it",
             {reader->realize->block});
    }
  }
}

/// The iterators of the epilogue in terms of those of the reduction.
Map<Var, PrimExpr> IterValues(const Epilogue& e) {
  StoreForm form;
  ObjectRef there = e.block->realize->block;
  Require(WhyNoStoreForm(e.block->block(), e.read_at, &form), {there});
  Array<PrimExpr> values = form.At(e.form.indices);
  arith::Analyzer analyzer;
  for (const IterVar& iter : e.reduction->block()->iter_vars)
    analyzer.Bind(iter->var, iter->dom.value());
  Map<Var, PrimExpr> map;
  bool all = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const IterVar& iter = e.block->block()->iter_vars[i];
    const Range& dom = iter->dom.value();
    map.Set(iter->var, analyzer.Simplify(values[i]));
    all &= analyzer.CanProve(dom->min <= values[i]) &&
           analyzer.CanProve(values[i] < dom->min + dom->extent);
  }
  for (size_t i = 0; i < e.read_at.size(); ++i)
    all &= analyzer.CanProveEqual(Substitute(e.read_at[i], map), e.form.indices[i]);
  if (!all) {
    Refuse("expected " + NameOf(*e.block) + " to read every element that " + NameOf(*e.reduction) +
               " writes",
           {there, e.reduction->realize->block});
  }
  return map;
}

void FuseReductionEpilogue(State& state, BlockId reduction_block, BlockId epilogue_block) {
  Focus at(state, reduction_block);
  Epilogue e{at.block, at.scope.Find(state.block(epilogue_block)), {}, nullptr, {}, {}};
  if (!e.block || e.block == e.reduction) {
    Refuse("expected another block of the scope of " + NameOf(*e.reduction) + ", got block " +
               std::string(state.block(epilogue_block)->name_hint),
           {state.inner_stmt(epilogue_block)});
  }
  CheckBlocks(at, &e);
  CheckValue(&e);
  CheckOrder(at, e);
  Map<Var, PrimExpr> map = IterValues(e);

  const Buffer& to = e.store->buffer;
  Array<PrimExpr> indices = Substitute(e.store->indices, map);
  const PrimExpr& start = e.form.reducer->identity_element[0];
  PrimExpr other = Substitute(e.other, map), init = other;
  auto* number = start.as<FloatImmObj>();
  bool is_sum = e.form.reducer->result[0].as<AddObj>();
  bool is_identity = is_sum && (IsZero(start) || (number && number->value == 0));
  if (!is_identity) init = e.form.reducer->Combine({start}, {other})[0];
  Block block = e.reduction->realize->block, fused = block;
  auto* n = Edit(&fused);
  n->init = BufferStore(to, init, indices);
  n->body = BufferStore(
      to, e.form.reducer->Combine({BufferLoad(to, indices)}, {e.form.sources[0]})[0], indices);
  fused = WithInferredRegions(fused);
  BlockRealize realize = e.reduction->realize;
  Edit(&realize)->block = fused;
  Block scope = WithoutAllocated(at.scope.block, e.form.buffers[0]);
  Stmt body = ReplaceStmts(scope->body, {{e.block->realize.get(), Evaluate::Nothing()},
                                         {e.reduction->realize.get(), realize}});
  Commit(state, at.scope_id, WithBody(scope, body), {{fused.get(), block}});
}

TVM_REGISTER() {
  DefPrimitive(
      "FuseReductionEpilogue", "fuse_reduction_epilogue", &FuseReductionEpilogue,
      &Schedule::FuseReductionEpilogue,
      "Makes a reduction write where a block writes that combines its result with another value "
      "as the reduction does, such as a bias that is added to a sum. The reduction starts with "
      "that value; the block and the buffer between them are removed.",
      {R"(
def before(A: T.Buffer((16, 32), "float32"), bias: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,))
    for i, k in T.grid(16, 32):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] + bias[vi])",
       R"(sch.fuse_reduction_epilogue("B", "C"))"},
      Arg("reduction_block"), Arg("epilogue_block"));
}

}  // namespace
}  // namespace tvm::tir
