// SPDX-License-Identifier: Apache-2.0
// compute_inline: what a block computes is computed where it is read.
#include "schedule/primitive/examples.h"
#include "schedule/primitive/inline.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {

Array<PrimExpr> StoreForm::At(const Array<PrimExpr>& where) const {
  Map<Var, PrimExpr> values;
  for (size_t i = 0; i < where.size(); ++i) values.Set(places[i], where[i]);
  Array<PrimExpr> result;
  for (const PrimExpr& e : iter_values) result.push_back(Substitute(e, values));
  return result;
}

std::string WhyNoStoreForm(const BlockObj* block, const Array<PrimExpr>& indices, StoreForm* form) {
  Map<Var, Range> domains;
  for (const IterVar& iter : block->iter_vars) domains.Set(iter->var, iter->dom.value());
  form->places = {};
  Array<PrimExpr> outputs;
  for (size_t i = 0; i < indices.size(); ++i) {
    form->places.push_back(Var("i" + std::to_string(i), indices[i].dtype()));
    outputs.push_back(form->places[i]);
  }
  arith::Analyzer analyzer;
  arith::IterMapResult map = arith::DetectIterMap(indices, domains, const_true(),
                                                  arith::IterMapLevel::kBijective, &analyzer);
  if (map->indices.empty() && !indices.empty()) {
    return "block " + std::string(block->name_hint) +
           " has indices that do not tell its iterators apart";
  }
  Map<Var, PrimExpr> inverse = arith::InverseAffineIterMap(map->indices, outputs);
  form->iter_values = {};
  for (const IterVar& iter : block->iter_vars) {
    auto it = inverse.find(iter->var);
    PrimExpr value = it != inverse.end() ? (*it).second : iter->dom.value()->min;
    form->iter_values.push_back(analyzer.Simplify(value));
  }
  return "";
}

namespace {
Array<Range> PointOf(const Array<PrimExpr>& indices) {
  return indices.Map(
      [](const PrimExpr& i) { return Range::FromMinExtent(i, MakeConst(i.dtype(), 1)); });
}
Map<Var, Range> IterDomains(const BlockObj* block) {
  Map<Var, Range> domains;
  for (const IterVar& iter : block->iter_vars) domains.Set(iter->var, iter->dom.value());
  return domains;
}
/// Whether the box of elements that the indices reach while the block's iterators run holds
/// `region`, which is over the domains.
bool Reaches(const BlockObj* block, const Array<PrimExpr>& indices, const Array<Range>& region,
             const Map<Var, Range>& domains) {
  arith::Analyzer analyzer;
  auto box = arith::EstimateRegionStrictBound(PointOf(indices), IterDomains(block), const_true(),
                                              &analyzer);
  if (!box) return false;
  auto asked = arith::EstimateRegionUpperBound(region, domains, const_true(), &analyzer);
  for (size_t i = 0; i < indices.size(); ++i) {
    const arith::IntSet &written = box.value()[i], &read = asked[i];
    if (written.IsNothing() || !read.HasLowerBound() || !read.HasUpperBound() ||
        !analyzer.CanProve(written.min() <= read.min()) ||
        !analyzer.CanProve(written.max() >= read.max())) {
      return false;
    }
  }
  return true;
}
}  // namespace

std::string WhyNotWhole(const BlockObj* block, const Buffer& buffer,
                        const Array<PrimExpr>& indices) {
  // Of nothing, nothing is left out; sets without elements have no bounds to compare.
  if (std::any_of(buffer->shape.begin(), buffer->shape.end(), IsZero)) return "";
  Array<Range> all = buffer->shape.Map(
      [](const PrimExpr& n) { return Range::FromMinExtent(MakeZero(n.dtype()), n); });
  if (Reaches(block, indices, all, {})) return "";
  return "block " + std::string(block->name_hint) + " does not write all of buffer " +
         std::string(buffer->name);
}

namespace {
const BufferStoreObj* CheckProducer(const Focus& at, StoreForm* form) {
  const Placed& p = *at.block;
  ScopeInfo scope = at.scope;  // predicates that read the buffer will not any more
  for (const BufferRegion& w : p.block()->writes) scope.asked.erase(w->buffer->data.get());
  const BlockObj* block = p.block();
  ObjectRef where = p.realize->block;
  const auto* store = block->body.as<BufferStoreObj>();
  if (!store || store->predicate.has_value() || block->init.has_value() ||
      !block->alloc_buffers.empty() || !block->match_buffers.empty()) {
    Refuse("expected a complete block whose body is one store, got block " +
               std::string(block->name_hint),
           {where});
  }
  Require(WhyNotComplete(scope, p), {where});
  Require(WhyNotCovering(p), {where});
  if (SideEffect(store->value) > CallEffectKind::kReadState) {
    Refuse("expected a value without side effects, got " + Text(store->value), {where});
  }
  const Buffer& buffer = store->buffer;
  if (!at.scope.Owns(buffer)) {
    Refuse("expected a buffer that is allocated in the scope of the block, got " +
               std::string(buffer->name) + ", which is needed after it (that of an output block)",
           {where});
  }
  Require(WhyNoStoreForm(block, store->indices, form), {where});
  return store;
}
}  // namespace

void ComputeInline(State& state, BlockId id) {
  Focus at(state, id);
  StoreForm form;
  const BufferStoreObj* store = CheckProducer(at, &form);
  const Placed& producer = *at.block;
  Buffer buffer = store->buffer;
  std::vector<const Placed*> consumers = at.scope.ConsumersOf(producer);
  // Elements that nobody writes may be read where the whole is written by others, not here: their
  // value would be computed from elements outside of the inputs.
  std::string partly = WhyNotWhole(producer.block(), buffer, store->indices);
  if (auto it = at.scope.asked.find(buffer->data.get()); it != at.scope.asked.end()) {
    Require(partly, {producer.realize->block});
    for (int order : it->second) {
      const Placed* asking = &at.scope.children[order];
      if (std::find(consumers.begin(), consumers.end(), asking) == consumers.end())
        consumers.push_back(asking);
    }
  }
  Array<Var> iters = producer.block()->iter_vars.Map([](const IterVar& i) { return i->var; });
  AccessRewrite rewrite{buffer, [&](const BufferLoad& load) {
                          Array<PrimExpr> values = form.At(load->indices);
                          Map<Var, PrimExpr> map;
                          for (size_t i = 0; i < iters.size(); ++i) map.Set(iters[i], values[i]);
                          return Substitute(store->value, map);
                        }};
  StmtMap changes{{producer.realize.get(), Evaluate::Nothing()}};
  BlockMap same;
  for (const Placed* consumer : consumers) {
    Block block = consumer->realize->block;
    if (consumer->order < producer.order) {
      Refuse("block " + std::string(block->name_hint) + " reads buffer " +
                 std::string(buffer->name) + " before it is written",
             {block});
    }
    Require(WhyNotStable(at.scope, producer, *consumer), {block});
    if (IsUsedOtherwise(block, buffer)) {
      Refuse("block " + std::string(block->name_hint) + " uses buffer " +
                 std::string(buffer->name) + " in another way than by loads",
             {block});
    }
    for (const BufferRegion& read : block->reads) {
      if (partly.empty() || !read->buffer.same_as(buffer)) continue;
      if (!Reaches(producer.block(), store->indices, read->region, IterDomains(block.get())))
        Require(partly, {producer.realize->block});
    }
    changes[consumer->realize.get()] = RewriteAccesses(consumer->realize, rewrite, &same);
  }
  Block scope = WithoutAllocated(at.scope.block, buffer);
  Commit(state, at.scope_id, WithBody(scope, ReplaceStmts(scope->body, changes)), same);
}

namespace {
TVM_REGISTER() {
  DefPrimitive(
      "ComputeInline", "compute_inline", &ComputeInline, &Schedule::ComputeInline,
      "Computes what a block stores where it is read, and removes the block and its buffer. The "
      "block stores one value per iteration, without side effects, to a buffer that nobody needs "
      "afterwards; where nobody reads it, it is only removed.",
      {kTwoStages, R"(sch.compute_inline("B"))"}, Arg("block"));
}
}  // namespace

}  // namespace tvm::tir
