// SPDX-License-Identifier: Apache-2.0
// pack_products: a sum of products of small numbers works on words that hold several of them.
#include "schedule/loops.h"
#include "schedule/primitive/cache.h"
#include "tvm/expr/dot.h"

namespace tvm::tir {
namespace {

std::string NameOf(const Block& block) { return "block " + std::string(block->name_hint); }

/// What a word is made of, by the name of the operator on words.
struct Kind {
  const char* name;
  int64_t group;  // numbers in a word
  DataType sum;   // type of the accumulator
  bool (*takes)(DataType);
};
const Kind& KindOf(const String& instruction) {
  static const Kind kinds[] = {
      {"dot_bytes", 4, DataType::Int(32),
       [](DataType t) { return t.is_integer() && t.bits() == 8; }},
      {"dot_shorts", 2, DataType::Int(32),
       [](DataType t) { return t.is_integer() && (t.bits() == 8 || t == DataType::Int(16)); }},
      {"dot_bfloat16", 2, DataType::Float(32), [](DataType t) { return t.is_bfloat16(); }},
      {"float32", 1, DataType::Float(32),
       [](DataType t) { return t.is_float() && t.bits() >= 8 && t.bits() <= 32; }},
  };
  for (const Kind& kind : kinds) {
    if (instruction == kind.name) return kind;
  }
  Refuse(Text("expected dot_bytes, dot_shorts, dot_bfloat16 or float32 as instruction, got ",
              instruction));
}

/// A factor of the products, and the copy of its buffer in words.
struct Factor {
  BufferLoad load;
  Buffer words;
  bool is_shifted = false;
};

/// How often an iterator is an index by itself; nothing where it is part of another index.
std::optional<int> Uses(const Array<PrimExpr>& indices, const Var& iter) {
  int times = 0;
  for (const PrimExpr& index : indices) {
    if (index.same_as(iter)) {
      ++times;
    } else if (UsesAny(index, {iter.get()})) {
      return std::nullopt;
    }
  }
  return times;
}
/// A nest of its own around a block.
CopyNest NestOf(const String& name, const Array<IterVar>& iters, const Stmt& body,
                const Optional<Stmt>& init = {}) {
  std::vector<For> loops;
  Array<PrimExpr> values;
  for (const IterVar& iter : iters) {
    const Range& dom = iter->dom.value();
    Var loop("ax" + std::to_string(loops.size()), dom->extent.dtype());
    loops.push_back(For(loop, dom->min, dom->extent, ForKind::kSerial, Evaluate::Nothing()));
    values.push_back(loop);
  }
  Block block(iters, {}, {}, name, body);
  if (init.has_value()) Edit(&block)->init = init;
  block = WithInferredRegions(block);
  return {block, InLoops(loops, BlockRealize(values, const_true(), block))};
}

struct Packing {
  const Kind& kind;
  Block block;
  Reduction form;
  Factor factors[2];
  Var grouped;                                          // iterator along which numbers share a word
  std::unordered_map<const VarObj*, PrimExpr> extents;  // of the iterators afterwards
  arith::Analyzer analyzer;

  Packing(const String& instruction, const Block& block)
      : kind(KindOf(instruction)), block(block) {}

  /// The source of the reduction as a product of two loads.
  void FindFactors(int64_t shifted) {
    Require(WhyNoReducer(block.get(), &form), {block});
    auto* product = form.sources.size() == 1 ? form.sources[0].as<MulObj>() : nullptr;
    if (!product || !form.reducer->result[0].as<AddObj>()) {
      Refuse(Text("expected a sum of products in ", NameOf(block), ", got a reduction of ",
                  form.sources[0]),
             {block});
    }
    // An integer that is shorter than the accumulator wraps to the same.
    DataType result = form.buffers[0]->dtype;
    bool holds = result.is_integer() == kind.sum.is_integer() && result.bits() <= 32;
    if (!holds || product->dtype != result) {
      Refuse(Text("expected ", NameOf(block), " to sum up in a type that ", kind.sum,
                  " can stand for, got products in ", product->dtype, " and a sum in ", result),
             {block});
    }
    for (int i = 0; i < 2; ++i) {
      PrimExpr e = i == 0 ? product->a : product->b;
      if (auto* c = e.as<CastObj>()) e = c->value;
      auto load = e.as<BufferLoad>();
      if (!load || !kind.takes((*load)->dtype) || (*load)->predicate.has_value()) {
        Refuse(Text("expected factors that are elements of a buffer, of a type that ", kind.name,
                    " takes, got ", e),
               {block});
      }
      factors[i].load = *load;
      factors[i].is_shifted = i == shifted;
    }
    if (shifted < -1 || shifted > 1 || (shifted >= 0 && kind.group != 4))
      Refuse(Text("expected -1, or 0 or 1 for dot_bytes, as shifted, got ", shifted), {block});
  }
  /// Whether an iterator is an index by itself wherever it is used, at most once in an access.
  bool IsPlain(const Var& iter) const {
    for (const Array<PrimExpr>& indices :
         {factors[0].load->indices, factors[1].load->indices, form.indices}) {
      if (Uses(indices, iter).value_or(2) > 1) return false;
    }
    return true;
  }
  /// The longest iterator of the reduction that both factors are indexed by.
  void FindGrouped() {
    int64_t longest = 0;
    for (const IterVar& iter : block->iter_vars) {
      if (iter->iter_type != IterVarType::kCommReduce || !IsPlain(iter->var)) continue;
      bool in_both = true;
      for (const Factor& f : factors) in_both &= Uses(f.load->indices, iter->var) == 1;
      int64_t size = AsConstInt(iter->dom.value()->extent).value_or(INT32_MAX);
      if (in_both && size > longest) {
        grouped = iter->var;
        longest = size;
      }
    }
    if (!grouped.defined()) {
      Refuse("expected an iterator of the reduction in " + NameOf(block) +
                 " that is an index of both factors",
             {block});
    }
  }
  /// Whether an iterator counts the numbers of a word which lie next to each other in both factors:
  /// then these are words as they are.
  bool FindWords() {
    auto counts = [&](const IterVar& iter) {
      PrimExpr next = iter->var + MakeConst(iter->var.dtype(), 1);
      return std::all_of(std::begin(factors), std::end(factors), [&](const Factor& factor) {
        const Buffer& from = factor.load->buffer;
        Array<PrimExpr> others = factor.load->indices;
        PrimExpr last = others.back();
        others.pop_back();
        PrimExpr step = Substitute(last, {{iter->var, next}}) - last;
        return from->dtype.bits() * kind.group == 32 && Uses(others, iter->var) == 0 &&
               (from->strides.empty() || IsOne(from->strides.back())) &&
               analyzer.CanProveEqual(step, MakeConst(step.dtype(), 1));
      });
    };
    for (const IterVar& iter : block->iter_vars) {
      if (iter->iter_type != IterVarType::kCommReduce || kind.group == 1) continue;
      if (AsConstInt(iter->dom.value()->extent) != kind.group || !counts(iter)) continue;
      grouped = iter->var;
      return true;
    }
    return false;
  }
  /// The word that begins where the iterator of its numbers is 0.
  PrimExpr WordInMemory(const Factor& factor) const {
    Array<PrimExpr> at = factor.load->indices;
    PrimExpr first = Substitute(at.back(), {{grouped, MakeZero(grouped.dtype())}});
    at.Set(at.size() - 1, Ramp(arith::Analyzer().Simplify(first), MakeConst(first.dtype(), 1),
                               IntImm::Int32(kind.group)));
    return reinterpret(WordType(factor), BufferLoad(factor.load->buffer, at));
  }
  DataType WordType(const Factor& factor) const {
    if (kind.group == 1) return kind.sum;
    bool is_signed =
        kind.group == 4 ? factor.load->dtype.is_int() != factor.is_shifted : kind.sum.is_int();
    return is_signed ? DataType::Int(32) : DataType::UInt(32);
  }
  void FindExtents(const Array<int64_t>& padding) {
    if (!padding.empty() && padding.size() != block->iter_vars.size()) {
      Refuse(Text("expected a padding for each of the ", block->iter_vars.size(), " iterators of ",
                  NameOf(block), ", got ", padding.size()),
             {block});
    }
    for (size_t i = 0; i < block->iter_vars.size(); ++i) {
      const IterVar& iter = block->iter_vars[i];
      int64_t to = padding.empty() ? 1 : padding[i];
      if (to < 1) Refuse(Text("expected positive paddings, got ", to), {block});
      if (to > 1 && !IsPlain(iter->var)) {
        Refuse(Text("expected iterator ", iter->var->name_hint,
                    ", which is padded, to be an index by itself"),
               {block});
      }
      PrimExpr extent = iter->dom.value()->extent;
      auto divided = [&](const PrimExpr& e, int64_t by) {
        return floordiv(e + MakeConst(e.dtype(), by - 1), MakeConst(e.dtype(), by));
      };
      PrimExpr words = iter->var.same_as(grouped) ? divided(extent, kind.group) : extent;
      extents[iter->var.get()] =
          analyzer.Simplify(divided(words, to) * MakeConst(extent.dtype(), to));
    }
  }
  /// The extent of an index that is an iterator, before.
  PrimExpr DomainOf(const PrimExpr& index) const {
    for (const IterVar& iter : block->iter_vars) {
      if (iter->var.same_as(index)) return iter->dom.value()->extent;
    }
    return PrimExpr();
  }
  /// A shape with the dimensions that iterators index as large as these are afterwards.
  Array<PrimExpr> ShapeOf(const Buffer& buffer, const Array<PrimExpr>& indices) {
    Array<PrimExpr> shape = buffer->shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      PrimExpr before = DomainOf(indices[d]);
      if (!before.defined()) continue;
      PrimExpr after = extents[indices[d].as<VarObj>()];
      if (!analyzer.CanProveEqual(before, after)) shape.Set(d, cast(shape[d].dtype(), after));
    }
    return shape;
  }
  /// Whether the words of a factor fill the domain along a dimension, with nothing beyond.
  bool Fills(const Factor& factor, size_t d, int64_t numbers) {
    DataType t = factor.words->shape[d].dtype();
    PrimExpr before = DomainOf(factor.load->indices[d]);
    return !before.defined() ||
           analyzer.CanProve(factor.words->shape[d] * MakeConst(t, numbers) <= cast(t, before));
  }
  /// Elements of a factor that lie in the word at `at`: `count` from number `i` on; 0 beyond the
  /// domain.
  PrimExpr ElementsOf(const Factor& factor, Array<PrimExpr> at, int64_t i, int64_t count) {
    std::vector<PrimExpr> inside;
    for (size_t d = 0; d < at.size(); ++d) {
      DataType t = at[d].dtype();
      const PrimExpr& index = factor.load->indices[d];
      bool is_grouped = index.same_as(grouped);
      if (is_grouped) at.Set(d, at[d] * MakeConst(t, kind.group) + MakeConst(t, i));
      if (!Fills(factor, d, is_grouped ? kind.group : 1))
        inside.push_back(at[d] < cast(t, DomainOf(index)));
      if (is_grouped && count > 1) at.Set(d, Ramp(at[d], MakeConst(t, 1), IntImm::Int32(count)));
    }
    PrimExpr value = BufferLoad(factor.load->buffer, at);
    if (count > 1) value = reinterpret(DataType::UInt(32), value);
    if (inside.empty()) return value;
    return if_then_else(AllOf(inside), value, MakeZero(value.dtype()));
  }
  /// Whether words lie in memory as they are.
  bool IsInMemory(const Factor& factor) {
    const Buffer& from = factor.load->buffer;
    size_t last = from->shape.size() - 1;
    return from->dtype.bits() * kind.group == 32 && factor.load->indices[last].same_as(grouped) &&
           Fills(factor, last, kind.group) && (from->strides.empty() || IsOne(from->strides[last]));
  }
  PrimExpr WordOf(const Factor& factor, const Array<PrimExpr>& at) {
    if (kind.group == 1) return cast(kind.sum, ElementsOf(factor, at, 0, 1));
    DataType t = DataType::UInt(32);
    int bits = 32 / static_cast<int>(kind.group);
    PrimExpr word;
    if (IsInMemory(factor)) word = ElementsOf(factor, at, 0, kind.group);
    for (int64_t i = 0; i < kind.group && !IsInMemory(factor); ++i) {
      PrimExpr number = ElementsOf(factor, at, i, 1);
      if (number.dtype().bits() < bits) number = cast(DataType::Int(bits), number);
      PrimExpr part = cast(t, reinterpret(DataType::UInt(bits), number));
      if (i > 0) part = shift_left(part, MakeConst(t, i * bits));
      word = word.defined() ? bitwise_or(word, part) : part;
    }
    if (factor.is_shifted) word = bitwise_xor(word, MakeConst(t, int64_t{0x80808080}));
    return reinterpret(factor.words->dtype, word);
  }
  /// The block that packs a factor.
  CopyNest Words(Factor* factor, const char* suffix) {
    const Buffer& from = factor->load->buffer;
    Array<PrimExpr> at;
    Array<IterVar> iters;
    factor->words =
        Buffer::Decl(ShapeOf(from, factor->load->indices), WordType(*factor), from->name + suffix);
    for (const PrimExpr& extent : factor->words->shape) {
      Var v("v" + std::to_string(at.size()), extent.dtype());
      iters.push_back(
          IterVar(Range::FromMinExtent(MakeZero(v.dtype()), extent), v, IterVarType::kDataPar));
      at.push_back(v);
    }
    return NestOf(factor->words->name, iters, BufferStore(factor->words, WordOf(*factor, at), at));
  }
  /// Some iterators with variables of their own; `values` maps the old ones to them.
  Array<IterVar> Fresh(const std::function<bool(const IterVar&)>& which,
                       Map<Var, PrimExpr>* values) const {
    Array<IterVar> iters;
    for (const IterVar& iter : block->iter_vars) {
      if (!which(iter)) continue;
      Var var("v" + std::to_string(iters.size()), iter->var.dtype());
      iters.push_back(IterVar(iter->dom.value(), var, iter->iter_type));
      values->Set(iter->var, var);
    }
    return iters;
  }
  /// Sums of the factor that is not shifted: its products with 128 are taken back.
  CopyNest Sums(const Factor& factor, Buffer* sums, Array<PrimExpr>* at) const {
    Map<Var, PrimExpr> values;
    Array<PrimExpr> shape, here;
    auto indexes = [&](const IterVar& iter) {
      return iter->iter_type == IterVarType::kDataPar &&
             std::any_of(factor.load->indices.begin(), factor.load->indices.end(),
                         [&](const PrimExpr& i) { return UsesAny(i, {iter->var.get()}); });
    };
    Array<IterVar> iters = Fresh(
        [&](const IterVar& iter) {
          return iter->iter_type == IterVarType::kCommReduce || indexes(iter);
        },
        &values);
    for (const IterVar& iter : block->iter_vars) {
      if (!indexes(iter)) continue;
      shape.push_back(iter->dom.value()->extent);
      at->push_back(iter->var);
      here.push_back(values[iter->var]);
    }
    if (shape.empty()) {
      shape = {IntImm::Int32(1)};
      here = {IntImm::Int32(0)};
      *at = here;
    }
    *sums = Buffer::Decl(shape, kind.sum, factor.load->buffer->name + "_sums");
    PrimExpr value = cast(kind.sum, Substitute(PrimExpr(factor.load), values));
    return NestOf((*sums)->name, iters, BufferStore(*sums, BufferLoad(*sums, here) + value, here),
                  Stmt(BufferStore(*sums, MakeZero(kind.sum), here)));
  }
  /// The results from the accumulators.
  CopyNest Results(const Buffer& packed, const Buffer& sums, const Array<PrimExpr>& sums_at) const {
    Map<Var, PrimExpr> values;
    auto spatial = [](const IterVar& i) { return i->iter_type == IterVarType::kDataPar; };
    Array<IterVar> iters = Fresh(spatial, &values);
    const Buffer& result = form.buffers[0];
    PrimExpr value = BufferLoad(packed, form.indices);
    for (const Factor& factor : factors) {
      if (!factor.is_shifted) continue;
      PrimExpr by = MakeConst(kind.sum, factor.load->dtype.is_int() ? -128 : 128);
      value = value + BufferLoad(sums, sums_at) * by;
    }
    BufferStore store(result, cast(result->dtype, value), form.indices);
    return NestOf(result->name + "_result", iters, Substitute(Stmt(store), values));
  }
};

std::vector<BlockId> PackProducts(State& state, BlockId id, String instruction, int64_t shifted,
                                  Array<int64_t> padding) {
  Focus at(state, id);
  const Placed& p = *at.block;
  Packing pack(instruction, p.realize->block);
  const Block& block = pack.block;
  Require(WhyNotReduction(at.scope, p), {block});
  if (!block->alloc_buffers.empty() || !block->match_buffers.empty())
    Refuse("expected " + NameOf(block) + " not to allocate or match buffers", {block});
  std::vector<For> loops = IterLoops(p);
  for (const For& loop : loops) RequirePlain(loop.get());
  pack.FindFactors(shifted);
  bool are_words = padding.empty() && shifted < 0 && pack.FindWords();
  if (pack.kind.group > 1 && !are_words) pack.FindGrouped();
  pack.FindExtents(padding);

  Block scope = at.scope.block;
  std::vector<Block> made;
  Array<Stmt> all;
  auto add = [&](const CopyNest& nest) { made.push_back(nest.block), all.push_back(nest.nest); };
  bool is_square = pack.factors[0].load->buffer.same_as(pack.factors[1].load->buffer);
  for (int i = 0; i < 2 && !are_words; ++i) {
    CheckPlainUse(p, pack.factors[i].load->buffer);
    add(pack.Words(&pack.factors[i], is_square && i == 1 ? "_words_2" : "_words"));
    scope = WithAllocated(scope, pack.factors[i].words);
  }
  Buffer sums;
  Array<PrimExpr> sums_at;
  if (shifted >= 0) {
    add(pack.Sums(pack.factors[1 - shifted], &sums, &sums_at));
    scope = WithAllocated(scope, sums);
  }
  const Buffer& result = pack.form.buffers[0];
  Array<PrimExpr> shape = pack.ShapeOf(result, pack.form.indices);
  bool is_direct = shifted < 0 && result->dtype == pack.kind.sum && shape.same_as(result->shape);
  Buffer sum = is_direct ? result : Buffer::Decl(shape, pack.kind.sum, result->name + "_sum");
  PrimExpr words[2];
  for (int i = 0; i < 2; ++i) {
    const Factor& factor = pack.factors[i];
    words[i] =
        are_words ? pack.WordInMemory(factor) : BufferLoad(factor.words, factor.load->indices);
  }
  PrimExpr product = pack.kind.group == 1
                         ? words[0] * words[1]
                         : PrimExpr(Call(pack.kind.sum, Op::Get("tir." + std::string(instruction)),
                                         {words[0], words[1]}));
  Block packed = block;
  auto* n = Edit(&packed);
  n->body = BufferStore(sum, BufferLoad(sum, pack.form.indices) + product, pack.form.indices);
  n->init = Stmt(BufferStore(sum, MakeZero(pack.kind.sum), pack.form.indices));
  n->iter_vars = block->iter_vars.Map([&](const IterVar& iter) {
    IterVar other = iter;
    Edit(&other)->dom = Range::FromMinExtent(iter->dom.value()->min, pack.extents[iter->var.get()]);
    return other;
  });
  packed = WithInferredRegions(packed);
  for (size_t i = 0; i < block->iter_vars.size(); ++i) {
    for (For& loop : loops) {
      if (!loop->loop_var.same_as(p.realize->iter_values[i])) continue;
      Edit(&loop)->extent = pack.extents[block->iter_vars[i]->var.get()];
    }
  }
  all.push_back(InLoops(loops, BlockRealize(p.realize->iter_values, const_true(), packed)));
  if (!is_direct) {
    scope = WithAllocated(scope, sum);
    add(pack.Results(sum, sums, sums_at));
  }
  Stmt body = ReplaceStmts(scope->body, {{p.Loops()[0].get(), SeqStmt::Flatten(all)}});
  Commit(state, at.scope_id, WithBody(scope, body), {{packed.get(), block}});
  std::vector<BlockId> ids;
  for (const Block& b : made) ids.push_back(state.Find(b.get()));
  return ids;
}

TVM_REGISTER() {
  DefPrimitive(
      "PackProducts", "pack_products", &PackProducts, &Schedule::PackProducts,
      "Makes a sum of products work on copies of its factors in which each word of 32 bits holds "
      "the numbers that one instruction multiplies: four bytes (dot_bytes), two int16 or bytes "
      "widened to them (dot_shorts), two bfloat16 (dot_bfloat16) or one number converted to "
      "float32 (float32), next to each other along an iterator of the reduction that both factors "
      "are indexed by. Sums are int32 or float32 and converted at the end: a sum in bfloat16 or "
      "float16 is rounded once. Where the instruction takes only bytes of the other sign, "
      "`shifted` "
      "says which factor is stored 128 higher or lower; 128 times the sums of the other one are "
      "taken back from the results. `padding` makes the domain a multiple of a number for each "
      "iterator, filled up with zeros. Factors whose last index an iterator of the reduction "
      "counts, "
      "as many numbers as a word has, are words as they lie in memory, and are not copied. Returns "
      "the blocks it adds: the two that pack, one that sums "
      "up where a factor is shifted, one that writes the results where they need a last step.",
      {R"(
def before(A: T.Buffer((8, 10), "uint8"), B: T.Buffer((10, 16), "int8"), C: T.Buffer((8, 16), "int32")):
    for i, j, k in T.grid(8, 16, 10):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj]))",
       R"(sch.pack_products("C", "dot_bytes"))"},
      Arg("block"), Arg("instruction"), Arg("shifted", -1), Arg("padding", Array<int64_t>()));
}

}  // namespace
}  // namespace tvm::tir
