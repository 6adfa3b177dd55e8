// SPDX-License-Identifier: Apache-2.0
// transform_layout: the elements of a buffer move to other places, wherever it is used.
#include "schedule/primitive/examples.h"
#include "schedule/primitive/layout.h"
#include "tvm/expr/op.h"
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
    pad = Variant<IndexMap, PrimExpr, Function>(ResolveIndexMap(like, at.size(), index, nullptr));
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

/// A block over all of the buffer that does something where there is padding.
Stmt PadNest(const Buffer& buffer, const IndexMap& inverse, const PrimExpr& is_padding,
             PadValue& pad, bool store) {
  Array<IterVar> iters;
  std::vector<For> loops;
  Array<PrimExpr> values;
  Map<Var, PrimExpr> at;
  for (size_t i = 0; i < buffer->shape.size(); ++i) {
    DataType t = buffer->shape[i].dtype();
    Var loop("ax" + std::to_string(i), t), v("v" + std::to_string(i), t);
    iters.push_back(
        IterVar(Range::FromMinExtent(MakeZero(t), buffer->shape[i]), v, IterVarType::kDataPar));
    loops.push_back(
        For(loop, MakeZero(t), buffer->shape[i], ForKind::kSerial, Evaluate::Nothing()));
    values.push_back(loop);
    at.Set(inverse->initial_indices[i], cast(inverse->initial_indices[i].dtype(), v));
  }
  Array<PrimExpr> indices = ValuesOf(iters);
  PrimExpr where = Substitute(is_padding, at), value = PadAt(pad, indices, buffer->dtype);
  Stmt body;
  if (store) {
    body = IfThenElse(where, BufferStore(buffer, value, indices));
  } else {
    PrimExpr holds = !where || equal(BufferLoad(buffer, indices), value);
    body = Evaluate(Call(DataType::Bool(), builtin::assume(), {holds}));
  }
  Block block = WithInferredRegions(Block(iters, {}, {}, buffer->name + "_pad", body));
  return InLoops(loops, BlockRealize(values, const_true(), block));
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
  Array<IntImm> separators;
  IndexMap index_map = ResolveIndexMap(map, buffer->shape.size(), t, &separators);
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
  n->axis_separators = separators;
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
  std::function<Stmt(Stmt)> finish;
  bool padded = inverse && !analyzer.CanProve(!inverse->second);
  if (pad.has_value() && !padded) PadAt(pad, ValuesOf({}), buffer->dtype);
  if (pad.has_value() && padded) {
    finish = [&](Stmt body) {
      Block scope(Array<IterVar>{}, {}, {}, "", body);
      ScopeInfo info(scope);
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
      "indices, is written there after the buffer's producer, or assumed of a parameter. "
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
