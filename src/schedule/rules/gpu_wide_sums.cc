// SPDX-License-Identifier: Apache-2.0
// On GPUs sums of small floats are sums of float32, rounded at the end: one that is rounded at
// every step stands still when it is long, and takes more instructions.
//
//   for i, k in T.grid(n, m):         for i, k in T.grid(n, m): C_wide[i] += float32(A[i, k])
//       C[i] += A[i, k]         -->   for i in range(n): C[i] = float16(C_wide[i])
#include <algorithm>

#include "schedule/rules/look.h"
#include "tir/analysis/reduction.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
PrimExpr Widened(const PrimExpr& e) {
  DataType wide = DataType::Float(32);
  auto* times = e.as<MulObj>();
  return times ? mul(cast(wide, times->a), cast(wide, times->b)) : cast(wide, e);
}
}  // namespace

bool WritesAll(const BlockObj* block, const Buffer& buffer, const Array<PrimExpr>& indices) {
  std::vector<const Object*> seen;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (IsZero(indices[i]) && IsOne(buffer->shape[i])) continue;
    auto iter = std::find_if(block->iter_vars.begin(), block->iter_vars.end(),
                             [&](const IterVar& v) { return v->var.same_as(indices[i]); });
    if (iter == block->iter_vars.end() || (*iter)->iter_type != IterVarType::kDataPar) return false;
    if (!ExprDeepEqual((*iter)->dom.value()->extent, buffer->shape[i])) return false;
    if (std::count(seen.begin(), seen.end(), (*iter).get()) > 0) return false;
    seen.push_back((*iter).get());
  }
  return true;
}

namespace {
struct SumWidener : Mutator<SumWidener, BlockObj> {
  ObjectRef Rewrite(const BlockObj* op) {
    Block block = Below<Block>(op);
    auto* seq = block->body.as<SeqStmtObj>();
    Array<Stmt> nests = seq ? seq->seq : Array<Stmt>{block->body}, result;
    Array<Buffer> made;
    for (const Stmt& nest : nests) Widen(nest, &result, &made);
    if (made.empty()) return block;
    auto* n = Edit(&block);
    n->body = SeqStmt::Flatten(result);
    for (const Buffer& buffer : made) n->alloc_buffers.push_back(buffer);
    return block;
  }

 private:
  static void Widen(const Stmt& nest, Array<Stmt>* result, Array<Buffer>* made) {
    std::vector<Stmt> loops;
    Stmt inner = nest;
    while (auto* loop = inner.as<ForObj>()) {
      loops.push_back(inner);
      inner = loop->body;
    }
    auto* realize = inner.as<BlockRealizeObj>();
    Reduction form;
    if (!realize || loops.empty() || !IsTrue(realize->predicate) || !realize->block->init ||
        !WhyNoReducer(realize->block.get(), &form).empty() || form.buffers.size() != 1 ||
        !form.reducer->result[0].as<AddObj>()) {
      result->push_back(nest);
      return;
    }
    const Buffer& narrow = form.buffers[0];
    DataType t = narrow->dtype;
    if (!t.is_scalar() || !t.is_float() || t.bits() != 16 ||
        !WritesAll(realize->block.get(), narrow, form.indices)) {
      result->push_back(nest);
      return;
    }
    Buffer wide =
        Buffer::Decl(narrow->shape, DataType::Float(32), std::string(narrow->name) + "_wide");
    made->push_back(wide);
    Block block = realize->block;
    auto* n = Edit(&block);
    PrimExpr sum = add(BufferLoad(wide, form.indices), Widened(form.sources[0]));
    n->init = BufferStore(wide, MakeZero(wide->dtype), form.indices);
    n->body = BufferStore(wide, sum, form.indices);
    n->writes = {BufferRegion(wide, realize->block->writes[0]->region)};
    result->push_back(
        MergeNest(loops, BlockRealize(realize->iter_values, realize->predicate, block)));
    result->push_back(Rounded(wide, narrow));
  }
  /// narrow[...] = wide[...]
  static Stmt Rounded(const Buffer& wide, const Buffer& narrow) {
    Array<IterVar> iters;
    Array<PrimExpr> at, values;
    Array<Range> region;
    std::vector<Var> vars;
    for (const PrimExpr& extent : narrow->shape) {
      vars.emplace_back("i", extent.dtype());
      Var v("v", extent.dtype());
      iters.push_back(IterVar(Range::FromMinExtent(MakeZero(extent.dtype()), extent), v,
                              IterVarType::kDataPar, ""));
      at.push_back(v);
      values.push_back(vars.back());
      region.push_back(Range::FromMinExtent(v, MakeConst(extent.dtype(), 1)));
    }
    Stmt store = BufferStore(narrow, cast(narrow->dtype, BufferLoad(wide, at)), at);
    Block block(iters, {BufferRegion(wide, region)}, {BufferRegion(narrow, region)},
                std::string(narrow->name) + "_rounded", store);
    Stmt nest = BlockRealize(values, const_true(), block);
    for (size_t i = vars.size(); i-- > 0;)
      nest = For(vars[i], MakeZero(vars[i].dtype()), narrow->shape[i], ForKind::kSerial, nest);
    return nest;
  }
};
}  // namespace

PrimFunc WithWideSums(PrimFunc func) { return RewriteBody(std::move(func), SumWidener()); }

}  // namespace tvm::tir
