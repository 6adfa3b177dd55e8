// SPDX-License-Identifier: Apache-2.0
// Questions about schedules: names, outputs, reuse, layouts, and how an intrinsic fits a block.
#include "schedule/analysis/intrin_match.h"
#include "tvm/expr/op.h"
#include "tvm/schedule/schedule.h"
#include "tvm/tir/index_map.h"

namespace tvm::tir {

bool NeedsMultiLevelTiling(const ScopeInfo& scope, const Placed& p) {
  const BlockObj* block = p.block();
  if (block->writes.size() != 1 || !WhyNotStage(scope, p).empty() || !WhyNotAffine(p).empty())
    return false;
  // A buffer that some spatial iterator does not index is read again for each of its values.
  int reused = 0;
  for (const BufferRegion& read : ReadsOf(block)) {
    int unused = 0;
    for (const IterVar& iter : block->iter_vars) {
      if (iter->iter_type != IterVarType::kDataPar || IsOne(iter->dom.value()->extent)) continue;
      unused += !UsesVar(read, [&](const VarObj* v) { return v == iter->var.get(); });
    }
    reused += unused > 0;
  }
  return reused >= 1 && block->init.has_value();
}

/// How the loops of a block and those of an intrinsic's description correspond.
struct TensorizeInfoObj : NodeObj {
  Map<StmtSRef, For> loop_map;
  Map<For, int64_t> desc_loop_indexer;
  Optional<Array<int64_t>> block_iter_paddings;
  static void Fields(auto&& def) {
    def("loop_map", &TensorizeInfoObj::loop_map);
    def("desc_loop_indexer", &TensorizeInfoObj::desc_loop_indexer);
    def("block_iter_paddings", &TensorizeInfoObj::block_iter_paddings);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.schedule.TensorizeInfo", TensorizeInfoObj, NodeObj);
};
TVM_NODE_REF(TensorizeInfo, ObjectRef, TensorizeInfoObj);

namespace {

bool HasBlock(Schedule sch, String name) {
  for (const auto& [function, func] : sch.mod()->functions) {
    if (!sch.state().BlocksNamed(name, function->name_hint).empty()) return true;
  }
  return false;
}

bool IsOutput(Schedule sch, BlockRV rv) {
  const State& state = sch.state();
  Focus at(state, BlockId{sch.IdOf(rv)});
  return IsOutputBlock(at.scope, *at.block);
}

BlockRealize GetBlockRealize(Schedule sch, BlockRV block) {
  return ffi::GetRef<BlockRealize>(sch.state().realize(BlockId{sch.IdOf(block)}));
}

/// Whether all that the children of a block read was written before, and nothing that one reads is
/// overwritten by another afterwards.
bool RunsInStages(const State& state, BlockId id) {
  ScopeInfo scope(ffi::GetRef<Block>(state.block(id)));
  bool covers = std::all_of(scope.children.begin(), scope.children.end(),
                            [&](const Placed& p) { return WhyNotRegionCover(scope, p).empty(); });
  std::vector<BlockId> children = state.ChildBlocks(id);
  return covers && std::none_of(children.begin(), children.end(), [&](BlockId child) {
           std::vector<DepEdge> edges = state.scope(id).From(child);
           return std::any_of(edges.begin(), edges.end(),
                              [](const DepEdge& e) { return e.kind == DepKind::kWAR; });
         });
}

/// Whether the block's bindings are affine, all it reads was written, and its children are stages.
Array<bool> CachedFlags(ScheduleState state, StmtSRef sref) {
  const State& now = state->value;
  if (!now.Has(sref->id) || !now.IsBlock(sref->id))
    TVM_FFI_THROW(ValueError) << "ScheduleState: expected a block of this state";
  BlockId id{sref->id};
  bool affine = true, cover = true;
  if (now.ScopeOf(id) != kNoNode) {
    Focus at(now, id);
    affine = WhyNotAffine(*at.block).empty();
    cover = WhyNotRegionCover(at.scope, *at.block).empty();
  }
  return {affine, cover, RunsInStages(now, id)};
}

/// The order in which loops meet the digits of a flat index, as a map to that order.
Optional<IndexMap> SuggestIndexMap(Buffer buffer, Array<PrimExpr> indices, Array<For> loops,
                                   PrimExpr predicate) {
  arith::Analyzer analyzer;
  Map<Var, Range> domains;
  std::unordered_map<const Object*, size_t> position;
  for (size_t i = 0; i < loops.size(); ++i) {
    domains.Set(loops[i]->loop_var, Range::FromMinExtent(loops[i]->min, loops[i]->extent));
    position[loops[i]->loop_var.get()] = i;
  }
  if (!IsTrue(predicate)) return std::nullopt;
  DataType t = buffer->shape.empty() ? DataType::Int(32) : buffer->shape[0].dtype();
  auto flat = [&](const Array<PrimExpr>& at) {
    PrimExpr index = MakeZero(t);
    for (size_t i = 0; i < at.size(); ++i) index = index * buffer->shape[i] + cast(t, at[i]);
    return analyzer.Simplify(index);
  };
  arith::IterSumExpr sum;
  try {
    sum = arith::NormalizeToIterSum(flat(indices), domains, &analyzer);
  } catch (const ffi::Error&) {
    return std::nullopt;
  }
  struct Digit {
    size_t loop;
    int64_t lower;
    PrimExpr scale, extent;
  };
  std::vector<Digit> digits;
  PrimExpr expected = MakeConst(t, 1);
  for (size_t i = sum->args.size(); i-- > 0;) {
    const arith::IterSplitExpr& split = sum->args[i];
    auto it = position.find(split->source->source.get());
    auto lower = AsConstInt(split->lower_factor);
    if (it == position.end() || !lower || !analyzer.CanProveEqual(split->scale, expected))
      return std::nullopt;
    digits.push_back({it->second, *lower, split->scale, split->extent});
    expected = analyzer.Simplify(expected * split->extent);
  }
  PrimExpr size = MakeConst(t, 1);
  for (const PrimExpr& extent : buffer->shape) size = size * extent;
  if (!IsZero(sum->base) || !analyzer.CanProveEqual(expected, size)) return std::nullopt;
  std::stable_sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) {
    return std::pair(a.loop, -a.lower) < std::pair(b.loop, -b.lower);
  });
  Array<Var> initial;
  Array<PrimExpr> values, result;
  for (size_t i = 0; i < buffer->shape.size(); ++i) {
    initial.push_back(Var("i" + std::to_string(i), t));
    values.push_back(initial[i]);
    analyzer.Bind(initial[i], Range::FromMinExtent(MakeZero(t), buffer->shape[i]));
  }
  PrimExpr index = flat(values);
  for (const Digit& d : digits)
    result.push_back(analyzer.Simplify(floormod(floordiv(index, d.scale), d.extent)));
  return IndexMap(initial, result);
}

/// Finds which iterator of a block plays which of a description: both compute the same, and the
/// description's indices are the last ones of the block's.
struct IterMatcher {
  std::unordered_map<const VarObj*, Var> to_block;  // the description's iterators
  Map<Buffer, Buffer> buffers;
  bool anywhere = false;  // indices are not compared

  bool Access(const Buffer& a, const Array<PrimExpr>& at, const Buffer& b,
              const Array<PrimExpr>& described) {
    if (a->dtype != b->dtype || at.size() < described.size()) return false;
    if (auto it = buffers.find(b); it != buffers.end() && !(*it).second.same_as(a)) return false;
    buffers.Set(b, a);
    if (anywhere) return true;
    size_t more = at.size() - described.size();
    for (size_t i = 0; i < described.size(); ++i) {
      auto *x = at[more + i].as<VarObj>(), *y = described[i].as<VarObj>();
      if (!y && ExprDeepEqual(at[more + i], described[i])) continue;
      if (!x || !y) return false;
      auto [it, is_new] = to_block.emplace(y, ffi::GetRef<Var>(x));
      if (!is_new && it->second.get() != x) return false;
    }
    return true;
  }
  bool Same(const PrimExpr& a, const PrimExpr& b) {
    if (a->type_index() != b->type_index() || a.dtype() != b.dtype()) return false;
    if (auto *x = a.as<BufferLoadObj>(), *y = b.as<BufferLoadObj>(); x)
      return Access(x->buffer, x->indices, y->buffer, y->indices);
    std::vector<ObjectRef> below, described;
    VisitChildren(a.get(), [&](const ObjectRef& c) { below.push_back(c); });
    VisitChildren(b.get(), [&](const ObjectRef& c) { described.push_back(c); });
    if (below.size() != described.size()) return false;
    if (below.empty()) return ExprDeepEqual(a, b);
    for (size_t i = 0; i < below.size(); ++i) {
      auto x = below[i].as<PrimExpr>(), y = described[i].as<PrimExpr>();
      if (x && y ? !Same(*x, *y) : !below[i].same_as(described[i])) return false;
    }
    return true;
  }
};

Optional<TensorizeInfo> GetTensorizeLoopMapping(Schedule sch, BlockRV rv, PrimFunc desc,
                                                bool allow_padding) {
  const State& state = sch.state();
  Focus at(state, BlockId{sch.IdOf(rv)});
  auto* root = desc->body.as<BlockRealizeObj>();
  if (!root) return std::nullopt;
  ScopeInfo described(root->block);
  if (described.children.size() != 1) return std::nullopt;
  const Placed &p = *at.block, &d = described.children[0];
  auto *store = p.block()->body.as<BufferStoreObj>(),
       *d_store = d.block()->body.as<BufferStoreObj>();
  if (!store || !d_store) return std::nullopt;
  auto matches = [&](IterMatcher* m) {
    return m->Access(store->buffer, store->indices, d_store->buffer, d_store->indices) &&
           m->Same(store->value, d_store->value);
  };
  IterMatcher match, anywhere;
  anywhere.anywhere = true;
  bool by_index = matches(&match);
  if (!by_index && !matches(&anywhere)) return std::nullopt;
  auto position = [](const BlockObj* block, const VarObj* var) -> std::optional<size_t> {
    for (size_t i = 0; i < block->iter_vars.size(); ++i) {
      if (block->iter_vars[i]->var.get() == var) return i;
    }
    return std::nullopt;
  };
  auto loop_of = [](const Placed& placed, size_t iter) -> Optional<For> {
    for (const For& loop : placed.Loops()) {
      if (loop->loop_var.same_as(placed.realize->iter_values[iter])) return loop;
    }
    return std::nullopt;
  };
  auto info = NewObject<TensorizeInfoObj>();
  Array<int64_t> paddings;
  bool padded = false;
  for (size_t i = 0; i < p.block()->iter_vars.size(); ++i) paddings.push_back(1);
  int64_t index = 0;
  for (const For& loop : d.Loops()) info->desc_loop_indexer.Set(loop, index++);
  std::vector<std::pair<std::optional<size_t>, std::optional<size_t>>> pairs;
  if (by_index) {
    for (const auto& [d_var, var] : match.to_block)
      pairs.emplace_back(position(p.block(), var.get()), position(d.block(), d_var));
  } else {
    // Where buffers have another layout than the description, loops meet by their kind, from the
    // innermost out.
    std::vector<For> loops = p.Loops(), d_loops = d.Loops();
    auto iter_of = [](const Placed& placed, const For& loop) -> std::optional<size_t> {
      for (size_t i = 0; i < placed.realize->iter_values.size(); ++i) {
        if (placed.realize->iter_values[i].same_as(loop->loop_var)) return i;
      }
      return std::nullopt;
    };
    auto next = loops.rbegin();
    for (auto d_loop = d_loops.rbegin(); d_loop != d_loops.rend(); ++d_loop) {
      auto j = iter_of(d, *d_loop);
      std::optional<size_t> i;
      for (; j && !i && next != loops.rend(); ++next) {
        i = iter_of(p, *next);
        if (i && p.block()->iter_vars[*i]->iter_type != d.block()->iter_vars[*j]->iter_type)
          i.reset();
      }
      pairs.emplace_back(i, j);
    }
  }
  for (auto [i, j] : pairs) {
    if (!i || !j) return std::nullopt;
    const IterVar &iter = p.block()->iter_vars[*i], &d_iter = d.block()->iter_vars[*j];
    Optional<For> loop = loop_of(p, *i), d_loop = loop_of(d, *j);
    auto extent = AsConstInt(iter->dom.value()->extent),
         tile = AsConstInt(d_iter->dom.value()->extent);
    if (iter->iter_type != d_iter->iter_type || !loop.has_value() || !d_loop.has_value() || !tile)
      return std::nullopt;
    if (!extent || *extent % *tile != 0) {
      if (!allow_padding) return std::nullopt;
      paddings.Set(*i, *tile);
      padded = true;
    }
    auto sref = NewObject<StmtSRefObj>();
    sref->state = sch->state;
    sref->id = state.FindLoop(loop.value()->loop_var);
    info->loop_map.Set(StmtSRef(sref), d_loop.value());
  }
  if (info->loop_map.size() != d.block()->iter_vars.size()) return std::nullopt;
  if (padded) info->block_iter_paddings = paddings;
  return TensorizeInfo(info);
}

TVM_REGISTER() {
  RegisterNode<TensorizeInfoObj>("How the loops of a block and of an intrinsic correspond.");
  Def("tir.schedule._cached_flags", &CachedFlags, "", Arg("state"), Arg("block_sref"));
  Def("tir.schedule.GetBlockRealize", &GetBlockRealize, "A block with its bindings.", Arg("sch"),
      Arg("block"));
  Def("tir.schedule.has_block", &HasBlock, "Whether a function of the schedule has such a block.",
      Arg("sch"), Arg("block_name"));
  Def("tir.schedule.is_output_block", &IsOutput,
      "Whether the block writes a buffer that is needed after its scope.", Arg("sch"),
      Arg("block"));
  Def("tir.schedule.suggest_index_map", &SuggestIndexMap,
      "The layout in which the loops access the buffer one element after the other, or None.",
      Arg("buffer"), Arg("indices"), Arg("loops"), Arg("predicate"));
  Def("tir.schedule.get_tensorize_loop_mapping", &GetTensorizeLoopMapping,
      "Which loop of the block stands for which of the description, or None.", Arg("sch"),
      Arg("block"), Arg("desc_func"), Arg("allow_padding", false));
}
}  // namespace
}  // namespace tvm::tir
