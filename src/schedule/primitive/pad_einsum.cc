// SPDX-License-Identifier: Apache-2.0
// pad_einsum, pad_edge: a block runs over a larger domain, on padded copies of its buffers.
#include "schedule/loops.h"
#include "schedule/primitive/cache.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {

/// The buffers of an einsum with the one set of indices each is accessed with: iterators of the
/// block and constants.
struct Operand {
  Buffer buffer;
  Array<PrimExpr> indices;
};

std::string NameOf(const Block& block) { return "block " + std::string(block->name_hint); }

const BufferStoreObj* OneStore(const Block& block, const Stmt& stmt, const char* what) {
  const auto* store = stmt.as<BufferStoreObj>();
  if (!store || store->predicate.has_value())
    Refuse(Text("expected the ", what, " of ", NameOf(block), " to be one store"), {block});
  if (SideEffect(store->value) > CallEffectKind::kReadState)
    Refuse("expected a value without side effects, got " + Text(store->value), {block});
  return store;
}

/// What the block accesses, its result first. Refuses what is no einsum in what is `copied`.
std::vector<Operand> OperandsOf(const Block& block,
                                const std::function<bool(const Array<PrimExpr>&)>& copied) {
  std::vector<Operand> operands;
  auto note = [&](const Buffer& buffer, const Array<PrimExpr>& indices) {
    if (!operands.empty() && !copied(indices)) return;
    std::unordered_set<const Object*> seen;
    for (const PrimExpr& index : indices) {
      bool is_iter = false;
      for (const IterVar& iter : block->iter_vars) is_iter |= iter->var.same_as(index);
      if ((!is_iter && !AsConstInt(index)) || (is_iter && !seen.insert(index.get()).second)) {
        Refuse(Text("expected the indices of buffer ", buffer->name,
                    " to be constants and different iterators of ", NameOf(block), ", got ", index),
               {block});
      }
    }
    for (const Operand& known : operands) {
      if (!known.buffer.same_as(buffer)) continue;
      for (size_t i = 0; i < indices.size(); ++i) {
        if (!ExprDeepEqual(known.indices[i], indices[i])) {
          Refuse(Text("expected ", NameOf(block), " to access buffer ", buffer->name,
                      " with one set of indices, got ", known.indices[i], " and ", indices[i]),
                 {block});
        }
      }
      return;
    }
    operands.push_back({buffer, indices});
  };
  auto visit = [&](const BufferStoreObj* store) {
    note(store->buffer, store->indices);
    PostOrderVisit(store->value, [&](const ObjectRef& node) {
      // What is read under a condition only may lie outside of its buffer otherwise.
      if (auto* call = node.as<CallObj>(); call && call->Is(builtin::if_then_else())) {
        Refuse(Text("expected ", NameOf(block), " to read under no condition, got ",
                    ffi::GetRef<Call>(call)),
               {block});
      }
      if (auto* load = node.as<BufferLoadObj>()) note(load->buffer, load->indices);
    });
  };
  visit(OneStore(block, block->body, "body"));
  if (block->init.has_value()) visit(OneStore(block, block->init.value(), "init"));
  return operands;
}

bool IsAmong(const Array<PrimExpr>& indices, const Var& var) {
  return std::any_of(indices.begin(), indices.end(),
                     [&](const PrimExpr& index) { return index.same_as(var); });
}
bool IsZeroValue(const PrimExpr& e) {
  auto* number = e.as<FloatImmObj>();
  return IsZero(e) || (number && number->value == 0);
}

/// An expression with zeros for the loads that an iterator indexes. A product is zero only if all
/// factors are: the others may be infinite.
struct ZeroLoads : Mutator<ZeroLoads, BufferLoadObj, MulObj, CastObj> {
  Var iter;
  explicit ZeroLoads(const Var& iter) : iter(iter) {}
  ObjectRef Rewrite(const MulObj* op) {
    Mul product = Below<Mul>(op);
    bool zero = IsZeroValue(product->a) && IsZeroValue(product->b);
    return zero ? MakeZero(op->dtype) : PrimExpr(product);
  }
  ObjectRef Rewrite(const CastObj* op) {
    Cast value = Below<Cast>(op);
    return IsZeroValue(value->value) ? MakeZero(op->dtype) : PrimExpr(value);
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    if (!IsAmong(op->indices, iter)) return ffi::GetRef<ObjectRef>(op);
    return MakeZero(op->dtype);
  }
};

/// What copies have beyond the domain: zeros, or what lies at its edge.
enum class Beyond { kZero, kEdge };
struct Padding {
  Block block;
  Beyond beyond;
  std::unordered_map<const VarObj*, PrimExpr> extents;  // of the iterators that grow
  arith::Analyzer analyzer;

  Padding(const Block& block, const Array<int64_t>& factors, Beyond beyond)
      : block(block), beyond(beyond) {
    if (factors.size() != block->iter_vars.size()) {
      Refuse(Text("expected a padding for each of the ", block->iter_vars.size(), " iterators of ",
                  NameOf(block), ", got ", factors.size()),
             {block});
    }
    for (size_t i = 0; i < factors.size(); ++i) {
      if (factors[i] < 1) Refuse(Text("expected positive paddings, got ", factors[i]), {block});
      PrimExpr extent = block->iter_vars[i]->dom.value()->extent;
      auto size = AsConstInt(extent);
      constexpr int64_t kMost = INT32_MAX;
      if (factors[i] > kMost || (size && *size > INT64_MAX - kMost) ||
          (size && extent.dtype().bits() == 32 && *size + factors[i] > kMost)) {
        Refuse(Text("expected paddings that keep the extents in ", extent.dtype(), ", got ",
                    factors[i]),
               {block});
      }
      PrimExpr factor = MakeConst(extent.dtype(), factors[i]), one = MakeConst(extent.dtype(), 1);
      PrimExpr padded = analyzer.Simplify(floordiv(extent + factor - one, factor) * factor);
      if (!analyzer.CanProveEqual(padded, extent))
        extents.emplace(block->iter_vars[i]->var.get(), padded);
    }
  }
  bool Grows(const PrimExpr& index) const { return extents.count(index.as<VarObj>()) > 0; }
  bool Grows(const Operand& operand) const {
    return std::any_of(operand.indices.begin(), operand.indices.end(),
                       [&](const PrimExpr& i) { return Grows(i); });
  }
  Range DomainOf(const PrimExpr& index) const {
    for (const IterVar& iter : block->iter_vars) {
      if (iter->var.same_as(index)) return iter->dom.value();
    }
    Refuse("expected an iterator, got " + Text(index), {block});
  }
  Buffer PaddedBuffer(const Operand& operand) const {
    Array<PrimExpr> shape;
    for (size_t i = 0; i < operand.indices.size(); ++i) {
      auto it = extents.find(operand.indices[i].as<VarObj>());
      shape.push_back(it == extents.end() ? operand.buffer->shape[i]
                                          : cast(operand.buffer->shape[i].dtype(), it->second));
    }
    return NewBufferLike(operand.buffer, shape, operand.buffer->name + "_pad",
                         operand.buffer.scope());
  }
  /// Whether an operand with these indices needs a copy; what has zeros is an einsum as a whole.
  bool Copies(const Array<PrimExpr>& indices) const {
    auto grows = [&](const VarObj* v) { return extents.count(v) > 0; };
    return beyond == Beyond::kZero ||
           std::any_of(indices.begin(), indices.end(),
                       [&](const PrimExpr& index) { return UsesVar(index, grows); });
  }
  /// A block that copies an operand with more behind it, or the result without what is behind it.
  CopyNest Copy(const Operand& operand, const Buffer& padded, bool is_input) {
    Array<IterVar> iters;
    std::vector<For> loops;
    Array<PrimExpr> values, at, edge;
    std::vector<PrimExpr> inside;
    for (size_t i = 0; i < operand.indices.size(); ++i) {
      const PrimExpr& index = operand.indices[i];
      if (AsConstInt(index)) {
        at.push_back(index);
        edge.push_back(index);
        continue;
      }
      DataType t = operand.buffer->shape[i].dtype();
      PrimExpr extent = cast(t, DomainOf(index)->extent);
      PrimExpr over = is_input && Grows(index) ? padded->shape[i] : extent;
      std::string number = std::to_string(iters.size());
      Var loop("ax" + number, t), v("v" + number, t);
      loops.push_back(For(loop, MakeZero(t), over, ForKind::kSerial, Evaluate::Nothing()));
      iters.push_back(IterVar(Range::FromMinExtent(MakeZero(t), over), v, IterVarType::kDataPar));
      values.push_back(loop);
      at.push_back(v);
      bool is_longer = is_input && Grows(index);
      edge.push_back(is_longer ? min(v, extent - MakeConst(t, 1)) : PrimExpr(v));
      if (is_longer) inside.push_back(v < extent);
    }
    const Buffer &from = is_input ? operand.buffer : padded,
                 &to = is_input ? padded : operand.buffer;
    PrimExpr value = BufferLoad(from, beyond == Beyond::kEdge ? edge : at);
    if (is_input && beyond == Beyond::kZero)
      value = if_then_else(AllOf(inside), value, MakeZero(value.dtype()));
    Block copy =
        WithInferredRegions(Block(iters, {}, {}, padded->name, BufferStore(to, value, at)));
    return {copy, InLoops(loops, BlockRealize(values, const_true(), copy))};
  }
  /// Refuses when an iteration of the padding would change a result: a sum must get zero there,
  /// with zeros for all that is read beyond the domain.
  void CheckReduction() const {
    for (const IterVar& iter : block->iter_vars) {
      if (iter->iter_type != IterVarType::kCommReduce || !Grows(iter->var)) continue;
      if (beyond == Beyond::kEdge) {
        Refuse(Text("expected a padding of 1 for iterator ", iter->var->name_hint,
                    ", which is reduced: what lies at an edge would be added again"),
               {block});
      }
      Reduction reduction;
      Require(WhyNoReducer(block.get(), &reduction), {block});
      ZeroLoads zero(iter->var);
      PrimExpr there = arith::Analyzer().Simplify(zero.Mutate(reduction.sources[0]));
      if (!IsZeroValue(there) || !reduction.reducer->result[0].as<AddObj>()) {
        Refuse(Text("expected zeros in the padding of iterator ", iter->var->name_hint,
                    " to leave the result of ", NameOf(block),
                    " as it is, which holds of sums of products, but it combines ",
                    reduction.sources[0]),
               {block});
      }
    }
  }
};

/// The loops around a block, which contain nothing else, where what grows is one of them.
std::vector<For> GrowingLoops(const Placed& p, const Padding& pad) {
  Block block = p.realize->block;
  std::vector<For> loops;
  bool fits = IsTrue(p.realize->predicate);
  for (const Stmt& s : p.path) {
    if (auto loop = s.as<For>()) {
      loops.push_back(*loop);
    } else {
      fits &= loops.empty() && s.as<SeqStmtObj>();
    }
  }
  for (size_t i = 0; i < block->iter_vars.size(); ++i) {
    if (!pad.Grows(block->iter_vars[i]->var)) continue;
    const Range& dom = block->iter_vars[i]->dom.value();
    fits &= std::any_of(loops.begin(), loops.end(), [&](const For& loop) {
      return loop->loop_var.same_as(p.realize->iter_values[i]) && IsZero(loop->min) &&
             IsZero(dom->min) && arith::Analyzer().CanProveEqual(loop->extent, dom->extent);
    });
  }
  if (!fits) {
    Refuse(Text("expected the iterators of ", NameOf(block),
                " that are padded to be loops around it, which contain nothing else"),
           {block});
  }
  return loops;
}

void Pad(State& state, BlockId id, const Array<int64_t>& padding, Beyond beyond) {
  Focus at(state, id);
  const Placed& p = *at.block;
  Block block = p.realize->block;
  Require(WhyNotStage(at.scope, p), {block});
  if (!block->alloc_buffers.empty() || !block->match_buffers.empty())
    Refuse("expected " + NameOf(block) + " not to allocate or match buffers", {block});
  Padding pad(block, padding, beyond);
  std::vector<For> loops = beyond == Beyond::kZero ? IterLoops(p) : GrowingLoops(p, pad);
  std::vector<Operand> operands =
      OperandsOf(block, [&](const Array<PrimExpr>& indices) { return pad.Copies(indices); });
  if (pad.extents.empty()) return;
  pad.CheckReduction();
  for (const IterVar& iter : block->iter_vars) {
    if (iter->iter_type == IterVarType::kDataPar && pad.Grows(iter->var) &&
        !IsAmong(operands[0].indices, iter->var)) {
      Refuse(Text("expected iterator ", iter->var->name_hint, " to be an index of buffer ",
                  operands[0].buffer->name, ", which ", NameOf(block), " writes"),
             {block});
    }
  }

  Array<Stmt> before, after;
  Array<Buffer> inputs, results;  // scripts know them in this order
  Stmt realize = p.realize;
  for (const Operand& operand : operands) {
    if (!pad.Grows(operand)) continue;
    CheckPlainUse(p, operand.buffer);
    bool is_input = !operand.buffer.same_as(operands[0].buffer);
    Buffer padded = pad.PaddedBuffer(operand);
    (is_input ? before : after).push_back(pad.Copy(operand, padded, is_input).nest);
    (is_input ? inputs : results).push_back(padded);
    realize = ReplaceBuffer(realize, operand.buffer, padded, nullptr);
  }
  Block scope = at.scope.block;
  for (const Array<Buffer>& padded : {inputs, results}) {
    for (const Buffer& buffer : padded) scope = WithAllocated(scope, buffer);
  }
  Block larger = realize.as<BlockRealizeObj>()->block;
  Edit(&larger)->iter_vars = larger->iter_vars.Map([&](const IterVar& iter) {
    auto it = pad.extents.find(iter->var.get());
    if (it == pad.extents.end()) return iter;
    IterVar wide = iter;
    Edit(&wide)->dom = Range::FromMinExtent(iter->dom.value()->min, it->second);
    return wide;
  });
  larger = WithInferredRegions(larger);
  for (size_t i = 0; i < block->iter_vars.size(); ++i) {
    auto it = pad.extents.find(block->iter_vars[i]->var.get());
    for (For& loop : loops) {
      if (it == pad.extents.end() || !loop->loop_var.same_as(p.realize->iter_values[i])) continue;
      RequirePlain(loop.get());
      Edit(&loop)->extent = it->second;
    }
  }
  Stmt nest = InLoops(loops, BlockRealize(p.realize->iter_values, const_true(), larger));
  Array<Stmt> all = before;
  all.push_back(nest);
  for (const Stmt& s : after) all.push_back(s);
  const Stmt old = p.Loops()[0];
  Stmt body = ReplaceStmts(scope->body, {{old.get(), SeqStmt::Flatten(all)}});
  Commit(state, at.scope_id, WithBody(scope, body), {{larger.get(), block}});
}

void PadEinsum(State& state, BlockId id, Array<int64_t> padding) {
  Pad(state, id, padding, Beyond::kZero);
}
void PadEdge(State& state, BlockId id, Array<int64_t> padding) {
  Pad(state, id, padding, Beyond::kEdge);
}

TVM_REGISTER() {
  DefPrimitive(
      "PadEdge", "pad_edge", &PadEdge,
      "Makes the domain of a block a multiple of `padding`, one number for each iterator, 1 for "
      "those of reductions. The block works on copies that repeat what lies at the edge of the "
      "domain, and what it should have written is copied back. Inlined, a copy is an index that "
      "does not go beyond the edge.",
      {R"(
def before(A: T.Buffer((127, 10), "float32"), B: T.Buffer((10,), "float32"), C: T.Buffer((127,), "float32")):
    for i, k in T.grid(127, 10):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk] * B[vk])",
       R"(sch.pad_edge("C", [16, 1])
sch.compute_inline("A_pad"))"},
      Arg("block"), Arg("padding"));
  DefPrimitive(
      "PadEinsum", "pad_einsum", &PadEinsum, &Schedule::PadEinsum,
      "Makes the domain of a block a multiple of `padding`, one number for each iterator. The "
      "block works on copies of its buffers that have zeros beyond the domain, and what it should "
      "have written is copied back. Its indices are iterators or constants; where a reduction "
      "grows it is a sum of products.",
      {R"(
def before(A: T.Buffer((127, 10), "float32"), B: T.Buffer((10,), "float32"), C: T.Buffer((127,), "float32")):
    for i, k in T.grid(127, 10):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vk] * B[vk])",
       R"(sch.pad_einsum("C", [16, 4]))"},
      Arg("block"), Arg("padding"));
}

}  // namespace
}  // namespace tvm::tir
