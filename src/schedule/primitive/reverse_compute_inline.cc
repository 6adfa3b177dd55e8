// SPDX-License-Identifier: Apache-2.0
// reverse_compute_inline: what a block computes is computed where its only input is produced.
#include "schedule/primitive/examples.h"
#include "schedule/primitive/inline.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {
using arith::Analyzer;

/// The parts of a pair of blocks that become one.
struct Pair {
  const Placed *producer, *consumer;
  const BufferStoreObj *produced, *stored;
  Array<PrimExpr> read_at;  // the indices with which the consumer reads
};

const BufferStoreObj* OnlyStore(const Placed& p) {
  const BlockObj* block = p.block();
  const auto* store = block->body.as<BufferStoreObj>();
  if (!store || store->predicate.has_value() || block->init.has_value() ||
      !block->alloc_buffers.empty() || !block->match_buffers.empty()) {
    Refuse("expected a block whose body is one store, got block " + std::string(block->name_hint),
           {p.realize->block});
  }
  return store;
}

/// The indices of the loads of `buffer`, which must all be alike.
Array<PrimExpr> ReadIndices(const Placed& consumer, const PrimExpr& value, const Buffer& buffer) {
  std::optional<Array<PrimExpr>> found;
  PostOrderVisit(value, [&](const ObjectRef& node) {
    auto* load = node.as<BufferLoadObj>();
    if (!load || !load->buffer.same_as(buffer)) return;
    if (!found) found = load->indices;
    for (size_t i = 0; i < load->indices.size(); ++i) {
      if (!ExprDeepEqual(load->indices[i], (*found)[i])) {
        Refuse("expected block " + std::string(consumer.block()->name_hint) +
                   " to read one element of buffer " + std::string(buffer->name) +
                   " per iteration, got several",
               {consumer.realize->block});
      }
    }
  });
  if (!found) {
    Refuse("expected block " + std::string(consumer.block()->name_hint) + " to load from buffer " +
               std::string(buffer->name),
           {consumer.realize->block});
  }
  return *found;
}

Pair CheckPair(const Focus& at) {
  const Placed& consumer = *at.block;
  ObjectRef where = consumer.realize->block;
  Pair pair{nullptr, &consumer, nullptr, OnlyStore(consumer), {}};
  Require(WhyNotComplete(at.scope, consumer), {where});
  Require(WhyNotCovering(consumer), {where});
  std::string name = "block " + std::string(consumer.block()->name_hint);
  if (SideEffect(pair.stored->value) > CallEffectKind::kReadState)
    Refuse("expected a value without side effects, got " + Text(pair.stored->value), {where});
  std::vector<const Placed*> producers = at.scope.ProducersOf(consumer);
  if (producers.size() != 1) {
    Refuse("expected " + name + " to have one producer, got " + std::to_string(producers.size()),
           {where});
  }
  const Placed& producer = *(pair.producer = producers[0]);
  ObjectRef there = producer.realize->block;
  if (producer.order > consumer.order)
    Refuse("expected the producer of " + name + " before it", {where, there});
  Require(WhyNotComplete(at.scope, producer), {there});
  Require(WhyNotCovering(producer), {there});
  pair.produced = OnlyStore(producer);
  const Buffer& buffer = pair.produced->buffer;
  if (!at.scope.Owns(buffer)) {
    Refuse("expected a buffer that is allocated in the scope of the block, got " +
               std::string(buffer->name) + ", which is needed after it (that of an output block)",
           {there});
  }
  if (at.scope.ReadersOf(buffer).size() != 1) {
    Refuse("expected " + name + " to be the only reader of buffer " + std::string(buffer->name),
           {where});
  }
  // The result must not be in use before; what else is read is not produced in this scope.
  for (const BufferRegion& write : consumer.block()->writes) {
    for (const Placed* reader : at.scope.ReadersOf(write->buffer)) {
      if (reader->order < consumer.order) {
        Refuse("block " + std::string(reader->block()->name_hint) + " reads buffer " +
                   std::string(write->buffer->name) + " before " + name + " writes it",
               {reader->realize->block});
      }
    }
  }
  if (IsUsedOtherwise(consumer.block()->body, buffer)) {
    Refuse(name + " uses buffer " + std::string(buffer->name) + " in another way than by loads",
           {where});
  }
  for (const PrimExpr& index : pair.stored->indices) {
    PostOrderVisit(index, [&](const ObjectRef& node) {
      if (node.as<BufferLoadObj>())
        Refuse("expected indices without loads, got " + Text(index), {where});
    });
  }
  pair.read_at = ReadIndices(consumer, pair.stored->value, buffer);
  return pair;
}

/// Refuses unless the producer stores every element that the consumer reads: iterations of the
/// consumer run where the producer does.
void RequireProduced(const Pair& pair) {
  const BlockObj *producer = pair.producer->block(), *consumer = pair.consumer->block();
  StoreForm form;
  Require(WhyNoStoreForm(producer, pair.produced->indices, &form), {pair.producer->realize->block});
  Analyzer analyzer;
  for (const IterVar& iter : consumer->iter_vars) analyzer.Bind(iter->var, iter->dom.value());
  Array<PrimExpr> iter_values = form.At(pair.read_at);
  Map<Var, PrimExpr> values;
  bool stored = true;
  for (size_t i = 0; i < iter_values.size(); ++i) {
    const Range& dom = producer->iter_vars[i]->dom.value();
    values.Set(producer->iter_vars[i]->var, iter_values[i]);
    stored &= analyzer.CanProve(dom->min <= iter_values[i]) &&
              analyzer.CanProve(iter_values[i] < dom->min + dom->extent);
  }
  for (size_t i = 0; i < pair.read_at.size(); ++i) {
    stored &=
        analyzer.CanProveEqual(Substitute(pair.produced->indices[i], values), pair.read_at[i]);
  }
  if (!stored) {
    Refuse("expected block " + std::string(producer->name_hint) + " to store all elements that " +
               "block " + std::string(consumer->name_hint) + " reads, which cannot be shown",
           {pair.consumer->realize->block});
  }
}

/// Where the producer's iteration has a counterpart in the consumer, as a condition on its
/// iterators.
PrimExpr Counterpart(const Pair& pair, const Array<PrimExpr>& iter_values) {
  Analyzer analyzer;
  for (const IterVar& iter : pair.producer->block()->iter_vars)
    analyzer.Bind(iter->var, iter->dom.value());
  std::vector<PrimExpr> conditions;
  auto need = [&](const PrimExpr& condition) {
    PrimExpr rest = analyzer.Simplify(condition);
    if (!IsTrue(rest) && !analyzer.CanProve(rest)) conditions.push_back(rest);
  };
  Map<Var, PrimExpr> values;
  const Array<IterVar>& iters = pair.consumer->block()->iter_vars;
  for (size_t i = 0; i < iters.size(); ++i) {
    const Range& dom = iters[i]->dom.value();
    values.Set(iters[i]->var, iter_values[i]);
    need(dom->min <= iter_values[i]);
    need(iter_values[i] < dom->min + dom->extent);
  }
  for (size_t i = 0; i < pair.read_at.size(); ++i)
    need(equal(Substitute(pair.read_at[i], values), pair.produced->indices[i]));
  return AllOf(conditions);
}
}  // namespace

void ReverseComputeInline(State& state, BlockId id) {
  Focus at(state, id);
  Pair pair = CheckPair(at);
  StoreForm form;
  Require(WhyNoStoreForm(pair.consumer->block(), pair.read_at, &form),
          {pair.consumer->realize->block});
  RequireProduced(pair);
  Array<PrimExpr> iter_values = form.At(pair.produced->indices);
  Map<Var, PrimExpr> map;
  for (size_t i = 0; i < iter_values.size(); ++i)
    map.Set(pair.consumer->block()->iter_vars[i]->var, iter_values[i]);

  AccessRewrite rewrite{pair.produced->buffer,
                        [&](const BufferLoad&) { return pair.produced->value; }};
  BufferStore store =
      Any(RewriteAccesses(BufferStore(pair.stored->buffer, Substitute(pair.stored->value, map),
                                      Substitute(pair.stored->indices, map)),
                          rewrite, nullptr))
          .cast<BufferStore>();
  Block block = pair.producer->realize->block;
  PrimExpr condition = BoundCondition(pair.producer->realize, Counterpart(pair, iter_values));
  BlockMap same;
  Block fused = block;
  Edit(&fused)->body = store;
  fused = WithInferredRegions(fused);
  same.emplace(fused.get(), block);
  BlockRealize realize = pair.producer->realize;
  std::vector<PrimExpr> conditions = Conjuncts(realize->predicate);
  for (const PrimExpr& c : Conjuncts(condition)) conditions.push_back(c);
  auto* n = Edit(&realize);
  n->block = fused;
  n->predicate = AllOf(conditions);
  Block scope = WithoutAllocated(at.scope.block, pair.produced->buffer);
  Stmt body = ReplaceStmts(scope->body, {{pair.consumer->realize.get(), Evaluate::Nothing()},
                                         {pair.producer->realize.get(), realize}});
  Commit(state, at.scope_id, WithBody(scope, body), same);
}

namespace {
TVM_REGISTER() {
  DefPrimitive(
      "ReverseComputeInline", "reverse_compute_inline", &ReverseComputeInline,
      &Schedule::ReverseComputeInline,
      "Computes what a block stores where its only producer stores, and removes the block and the "
      "buffer between them. Each iteration of the block reads one element of that buffer, and no "
      "two the same.",
      {kTwoStages, R"(sch.reverse_compute_inline("C"))"}, Arg("block"));
}
}  // namespace

}  // namespace tvm::tir
