// SPDX-License-Identifier: Apache-2.0
// transform_layout: the elements of a buffer move to other places, wherever it is used.
#include "schedule/primitive/examples.h"
#include "schedule/primitive/layout.h"
#include "tvm/expr/op.h"
#include "tvm/ir/structural.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {
using PadValue = Optional<Variant<IndexMap, PrimExpr, Function>>;

/// The value of the padding at given indices.
PrimExpr PadAt(PadValue& pad, const Array<PrimExpr>& at, DataType t) {
  auto value = pad.value();
  if (auto fn = value.as<Function>()) {
    DataType index = at.empty() ? DataType::Int(32) : at[0].dtype();
    IndexMapLike like = *fn;
    pad = Variant<IndexMap, PrimExpr, Function>(ResolveIndexMap(like, at.size(), index));
    value = pad.value();
  }
  PrimExpr result;
  if (auto map = value.as<IndexMap>()) {
    if ((*map)->final_indices.size() != 1 || (*map)->initial_indices.size() != at.size())
      Refuse(Text("expected pad_value to give one value for ", at.size(), " indices"));
    arith::Analyzer analyzer;
    result = map->MapIndices(at, &analyzer)[0];
  } else {
    result = value.get<PrimExpr>();
  }
  bool reads = false;
  PostOrderVisit(result, [&](const ObjectRef& n) { reads |= n.as<BufferLoadObj>() != nullptr; });
  if (reads) Refuse("expected a pad_value that reads no buffer, got " + Text(result));
  return cast(t, result);
}

/// Loops over all of a buffer in its new layout, around one block.
struct LayoutNest {
  Array<IterVar> iters;
  std::vector<For> loops;
  Array<PrimExpr> values;
  Map<Var, PrimExpr> at_iters, at_loops;  // the inverse map's indices
  LayoutNest(const Buffer& buffer, const IndexMap& inverse) {
    for (size_t i = 0; i < buffer->shape.size(); ++i) {
      DataType t = buffer->shape[i].dtype();
      Var loop("ax" + std::to_string(i), t), v("v" + std::to_string(i), t);
      auto dom = Range::FromMinExtent(MakeZero(t), buffer->shape[i]);
      iters.push_back(IterVar(dom, v, IterVarType::kDataPar));
      loops.push_back(For(loop, dom->min, dom->extent, ForKind::kSerial, Evaluate::Nothing()));
      values.push_back(loop);
      const Var& index = inverse->initial_indices[i];
      at_iters.Set(index, cast(index.dtype(), v));
      at_loops.Set(index, cast(index.dtype(), loop));
    }
  }
  Stmt Around(const Block& block, const PrimExpr& where) const {
    return InLoops(loops, BlockRealize(values, where, block));
  }
};

/// A block over all of the buffer that fills the padding, or says what is in it.
Stmt PadNest(const Buffer& buffer, const IndexMap& inverse, const PrimExpr& is_padding,
             PadValue& pad, bool store) {
  LayoutNest nest(buffer, inverse);
  Array<PrimExpr> indices = ValuesOf(nest.iters);
  PrimExpr value = PadAt(pad, indices, buffer->dtype);
  std::string name = "buffer_" + std::string(buffer->name);
  if (store) {
    Block block(nest.iters, {}, {}, name + "_padding", BufferStore(buffer, value, indices));
    return nest.Around(WithInferredRegions(block), Substitute(is_padding, nest.at_loops));
  }
  PrimExpr holds =
      !Substitute(is_padding, nest.at_iters) || equal(BufferLoad(buffer, indices), value);
  Block block(nest.iters, {}, {}, name + "_assumption",
              Evaluate(Call(DataType::Bool(), builtin::assume(), {holds})));
  return nest.Around(WithInferredRegions(block), const_true());
}

/// The only block that writes the buffer, where it stores one value at its iterators, in loops of
/// its own over all of the buffer: they may as well be those of another layout.
const Placed* PlainWriter(const ScopeInfo& scope, const Buffer& buffer) {
  std::vector<const Placed*> writers = scope.WritersOf(buffer), readers = scope.ReadersOf(buffer);
  if (writers.size() != 1 || scope.IsLoose(buffer)) return nullptr;
  const Placed* p = writers[0];
  const BlockObj* block = p->block();
  auto* store = block->body.as<BufferStoreObj>();
  std::vector<For> loops = p->Loops();
  size_t rank = buffer->shape.size(), sequences = p->path.size() - loops.size();
  if (!store || store->predicate.has_value() || block->init.has_value() ||
      !block->alloc_buffers.empty() || !block->match_buffers.empty() ||
      !IsOne(p->realize->predicate) || loops.size() != rank || block->iter_vars.size() != rank ||
      rank == 0 || sequences > 1 || (sequences == 1 && !p->path[0].as<SeqStmtObj>()) ||
      std::find(readers.begin(), readers.end(), p) != readers.end()) {
    return nullptr;
  }
  for (size_t i = 0; i < rank; ++i) {
    const IterVar& iter = block->iter_vars[i];
    bool covers = IsZero(loops[i]->min) && IsZero(iter->dom.value()->min) &&
                  StructuralEqual(loops[i]->extent, buffer->shape[i]) &&
                  StructuralEqual(iter->dom.value()->extent, buffer->shape[i]);
    if (!covers || iter->iter_type != IterVarType::kDataPar ||
        !store->indices[i].same_as(iter->var) ||
        !p->realize->iter_values[i].same_as(loops[i]->loop_var) ||
        loops[i]->kind != ForKind::kSerial || !loops[i]->annotations.empty()) {
      return nullptr;
    }
  }
  return p;
}

/// The nest of such a block in the new layout: it computes elements, or gives the padding.
std::pair<Block, Stmt> PaddedWriter(const Block& block, const Buffer& buffer,
                                    const IndexMap& inverse, const PrimExpr& is_padding,
                                    PadValue& pad) {
  LayoutNest nest(buffer, inverse);
  Array<PrimExpr> indices = ValuesOf(nest.iters);
  Map<Var, PrimExpr> old;
  for (size_t i = 0; i < block->iter_vars.size(); ++i) {
    const Var& var = block->iter_vars[i]->var;
    old.Set(var, cast(var.dtype(), Substitute(inverse->final_indices[i], nest.at_iters)));
  }
  auto* store = block->body.as<BufferStoreObj>();
  PrimExpr value = if_then_else(Substitute(is_padding, nest.at_iters),
                                PadAt(pad, indices, buffer->dtype), Substitute(store->value, old));
  Block padded = WithInferredRegions(Block(nest.iters, {}, {}, block->name_hint,
                                           BufferStore(buffer, value, indices), {}, {}, {},
                                           block->annotations));
  return {padded, nest.Around(padded, const_true())};
}

/// Whether `back` undoes `map` on all of the ranges.
bool IsInverse(const IndexMap& back, const IndexMap& map, const Array<Range>& ranges) {
  arith::Analyzer analyzer;
  Array<PrimExpr> vars;
  for (size_t i = 0; i < ranges.size(); ++i) {
    analyzer.Bind(map->initial_indices[i], ranges[i]);
    vars.push_back(map->initial_indices[i]);
  }
  Array<PrimExpr> again = back.MapIndices(map->final_indices, &analyzer);
  for (size_t i = 0; i < vars.size(); ++i) {
    if (!analyzer.CanProveEqual(again[i], vars[i])) return false;
  }
  return true;
}

void TransformLayout(State& state, BlockId id, BufferRef& ref, IndexMapLike& map, PadValue& pad,
                     bool assume_injective_transform) {
  Buffer buffer = ResolveBuffer(state, id, ref);
  Definition at = FindDefinition(state, id, buffer);
  std::string name = "buffer " + std::string(buffer->name);
  if (!buffer->strides.empty())
    Refuse("expected a buffer without explicit strides, got " + name, {state.inner_stmt(id)});
  DataType t = buffer->shape.empty() ? DataType::Int(32) : buffer->shape[0].dtype();
  IndexMap index_map = ResolveIndexMap(map, buffer->shape.size(), t);
  arith::Analyzer analyzer;
  Array<Range> ranges;
  for (const PrimExpr& extent : buffer->shape)
    ranges.push_back(Range::FromMinExtent(MakeZero(extent.dtype()), extent));
  std::optional<std::pair<IndexMap, PrimExpr>> inverse;
  try {
    inverse = index_map.NonSurjectiveInverse(ranges, &analyzer);
    if (!IsInverse(inverse->first, index_map, ranges)) inverse.reset();
  } catch (const ffi::Error& error) {
  }
  if (!inverse && !assume_injective_transform) {
    Refuse("expected index_map to give every element of " + name + " its own place, got " +
               Spelled(index_map),
           {state.inner_stmt(id)});
  }
  Buffer with = buffer;
  auto* n = Edit(&with);
  n->shape = index_map.MapShape(buffer->shape, &analyzer).Map([&](const PrimExpr& e) {
    return cast(t, analyzer.Simplify(e));
  });
  n->axis_separators = {};
  // Within the ranges of iterators indices are simpler: v // 64 is 0 for v below 64.
  PostOrderVisit(state.block(at.block)->body, [&](const ObjectRef& node) {
    if (auto* block = node.as<BlockObj>()) {
      for (const IterVar& iter : block->iter_vars) {
        analyzer.Bind(iter->var, iter->dom.value(), true);
      }
    }
  });
  auto indices = [&](const Array<PrimExpr>& old) {
    return index_map.MapIndices(old, &analyzer).Map([&](const PrimExpr& e) {
      return analyzer.Simplify(e);
    });
  };
  std::function<Stmt(Stmt, BlockMap*)> finish;
  bool padded = inverse && !analyzer.CanProve(!inverse->second);
  if (pad.has_value() && !padded) PadAt(pad, ValuesOf({}), buffer->dtype);
  if (pad.has_value() && padded) {
    finish = [&](Stmt body, BlockMap* same) {
      ScopeInfo before(ffi::GetRef<Block>(state.block(at.block)));
      ScopeInfo info(Block(Array<IterVar>{}, {}, {}, "", body));
      if (const Placed* plain = PlainWriter(before, buffer)) {
        const Block& block = plain->realize->block;
        auto [padded, nest] = PaddedWriter(block, with, inverse->first, inverse->second, pad);
        same->emplace(padded.get(), block);
        return ReplaceStmts(body, {{info.children[plain->order].Loops()[0].get(), nest}});
      }
      int last = -1;
      for (const Placed* p : info.WritersOf(with)) last = std::max(last, p->order);
      Stmt nest = PadNest(with, inverse->first, inverse->second, pad, last >= 0);
      if (last < 0) return Sequence({nest, body});
      const Placed& writer = info.children[last];
      bool in_sequence = body.as<SeqStmtObj>() != nullptr;
      const Stmt& after = !in_sequence             ? body
                          : writer.path.size() > 1 ? writer.path[1]
                                                   : Stmt(writer.realize);
      return ReplaceStmts(body, {{after.get(), Sequence({after, nest})}});
    };
  }
  ChangeBuffer(state, at, buffer, with, indices, finish);
}

void SetAxisSeparator(State& state, BlockId id, BufferRef& ref,
                      Optional<Array<int64_t>> axis_separators) {
  Buffer buffer = ResolveBuffer(state, id, ref);
  Definition at = FindDefinition(state, id, buffer);
  auto rank = static_cast<int64_t>(buffer->shape.size());
  Array<IntImm> separators;
  int64_t last = 0;
  for (int64_t s : axis_separators.value_or(Array<int64_t>())) {
    if (s < last || s > rank) {
      Refuse(Text("expected axis_separators that do not decrease, from 0 to ", rank, ", got ", s),
             {state.inner_stmt(id)});
    }
    separators.push_back(IntImm::Int32(s));
    last = s;
  }
  Buffer with = buffer;
  Edit(&with)->axis_separators = separators;
  BlockMap same;
  Block block = ffi::GetRef<Block>(state.block(at.block));
  auto changed = ReplaceBuffer(block, buffer, with, &same).as<Block>().value();
  Redefine(state, at, with, changed, same);
}

TVM_REGISTER() {
  DefPrimitive(
      "TransformLayout", "transform_layout", &TransformLayout, &Schedule::TransformLayout,
      "Moves element `i` of a buffer of the block to `index_map(i)`, in all of the function. A map "
      "that leaves gaps makes the buffer larger; pad_value, a value or a function of the new "
      "indices, is what the buffer's producer gives there, what a block after it writes there, or "
      "what is assumed of a parameter. "
      "assume_injective_transform skips the proof that no two elements get one place.",
      {R"(
def before(A: T.Buffer((16, 64), "float32"), C: T.Buffer((16, 64), "float32")):
    B = T.alloc_buffer((16, 64))
    for i, j in T.grid(16, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(16, 64):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0)",
       R"(sch.transform_layout("B", ("write", 0), lambda i, j: (j // 16, i, j % 16)))"},
      Arg("block"), Arg("buffer"), Arg("index_map"), Arg("pad_value", nullptr),
      Arg("assume_injective_transform", false));
  DefPrimitive("SetAxisSeparator", "set_axis_separator", &SetAxisSeparator,
               &Schedule::SetAxisSeparator,
               "Sets where flattening a buffer starts a new physical dimension.",
               {kWideGrid, R"(sch.set_axis_separator("B", ("write", 0), [1]))"}, Arg("block"),
               Arg("buffer"), Arg("axis_separators"));
}
}  // namespace
}  // namespace tvm::tir
