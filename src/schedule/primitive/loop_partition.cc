// SPDX-License-Identifier: Apache-2.0
// loop_partition: a loop becomes loops over parts of its range, one after the other.
#include <algorithm>

#include "schedule/loops.h"
#include "schedule/primitive/examples.h"
#include "schedule/rewrite.h"
#include "tir/analyzed_mutator.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {

/// The ends of the parts, from the lengths given.
std::vector<PrimExpr> Ends(const ForObj* loop, const std::vector<std::optional<PrimExpr>>& lengths,
                           arith::Analyzer* analyzer) {
  auto about = ffi::GetRef<ObjectRef>(loop);
  DataType dtype = loop->loop_var.dtype();
  PrimExpr known = MakeZero(dtype);
  size_t missing = 0;
  for (const auto& length : lengths) {
    missing += !length;
    if (!length) continue;
    if (!length->dtype().is_int() && !length->dtype().is_uint()) {
      Refuse(Text("expected integers as factors, got ", *length), {about});
    }
    // A part whose length depends on sizes may be empty.
    if (!analyzer->CanProveGreaterEqual(*length, length->as<IntImmObj>() ? 1 : 0)) {
      Refuse(Text("expected positive factors, got ", *length), {about});
    }
    known = known + InTypeOf(loop, *length);
  }
  if (lengths.empty()) Refuse("expected at least one factor, got none", {about});
  if (missing > 1) Refuse("expected at most one factor to be None, got two", {about});
  bool is_fixed = std::all_of(lengths.begin(), lengths.end(), [](const auto& length) {
    return !length || length->template as<IntImmObj>();
  });
  if (!analyzer->CanProve(is_fixed ? known < loop->extent : known <= loop->extent)) {
    Refuse(Text("expected factors with a sum below ", loop->extent, ", got ",
                analyzer->Simplify(known)),
           {about});
  }
  PrimExpr rest = loop->extent - known, end = loop->min;
  std::vector<PrimExpr> ends;
  for (const auto& length : lengths) {
    end = analyzer->Simplify(end + (length ? InTypeOf(loop, *length) : rest));
    ends.push_back(end);
  }
  if (!missing) ends.push_back(analyzer->Simplify(loop->min + loop->extent));
  return ends;
}

/// The body for one part of the range: blocks get the part's suffix in their names, and reductions
/// that began in an earlier part go on without an init.
struct PartBody : Mutator<PartBody, BlockRealizeObj> {
  std::string suffix;
  Var part;
  bool is_first;
  const ForObj* whole;
  arith::Analyzer* analyzer;

  PartBody(std::string suffix, Var part, bool is_first, const ForObj* whole,
           arith::Analyzer* analyzer)
      : suffix(std::move(suffix)),
        part(std::move(part)),
        is_first(is_first),
        whole(whole),
        analyzer(analyzer) {}
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    BlockRealize realize = ffi::GetRef<BlockRealize>(op);
    Block block = op->block;
    auto* n = Edit(&block);
    n->name_hint = std::string(n->name_hint) + suffix;
    if (!is_first && n->init && HasBegun(op)) {
      n->init = Optional<Stmt>();
      Array<BufferRegion> reads = n->writes;  // goes on with what is there
      for (const BufferRegion& read : n->reads) reads.push_back(read);
      n->reads = reads;
    }
    Edit(&realize)->block = block;
    return realize;
  }
  /// Whether no iteration of this part is the first one of a reduction of the block.
  bool HasBegun(const BlockRealizeObj* op) const {
    bool begun = false, over_reduction = false;
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      const IterVar& iter = op->block->iter_vars[i];
      if (iter->iter_type != IterVarType::kCommReduce) continue;
      over_reduction |=
          UsesVar(op->iter_values[i], [&](const VarObj* v) { return part.get() == v; });
      begun |= analyzer->CanProve(op->iter_values[i] > iter->dom.value()->min);
    }
    if (over_reduction && !begun) {
      Refuse(Text("expected the reduction of block ", op->block->name_hint,
                  " to begin in the first part, which cannot be shown"),
             {ffi::GetRef<ObjectRef>(whole)});
    }
    return begun;
  }
};

BlockRealize Opaque(const std::string& name, const Stmt& body) {
  return BlockRealize({}, const_true(), WithInferredRegions(Block({}, {}, {}, name, body)));
}

std::vector<LoopId> LoopPartition(State& self, LoopId id,
                                  const std::vector<std::optional<PrimExpr>>& factors,
                                  bool preserve_unit_iters) {
  For loop = ffi::GetRef<For>(self.loop(id));
  RequirePlain(loop.get());
  arith::Analyzer analyzer;
  LearnParams(&analyzer, self.FuncOf(id));
  for (const auto& [var, range] : DomainsOf(self, self.LoopsAbove(id))) analyzer.Bind(var, range);
  std::vector<PrimExpr> ends = Ends(loop.get(), factors, &analyzer);
  std::vector<BlockId> blocks = self.ChildBlocks(id);
  if (blocks.empty()) Refuse("expected a loop with blocks below it", {loop});
  std::string first = self.block(blocks[0])->name_hint, var(loop->loop_var->name_hint);

  PrimExpr begin = loop->min;
  Array<Stmt> parts;
  for (size_t i = 0; i < ends.size(); ++i) {
    std::string suffix = "_" + var + std::to_string(i);
    Var part(var + std::to_string(i), loop->loop_var.dtype());
    PrimExpr extent = analyzer.Simplify(ends[i] - begin);
    LoopVarRewrite rewrite;
    rewrite.domains = DomainsOf(self, self.LoopsAbove(id));
    rewrite.domains.Set(part, Range::FromMinExtent(begin, extent));
    bool single = !preserve_unit_iters && IsOne(extent);
    rewrite.values.Set(loop->loop_var, single ? begin : PrimExpr(part));
    analyzer.Bind(part, Range::FromMinExtent(begin, extent));
    Stmt body = rewrite(loop->body);
    body = PartBody(suffix, part, i == 0, loop.get(), &analyzer).Mutate(body);
    parts.push_back(
        Opaque(first + suffix + "_partition", For(part, begin, extent, ForKind::kSerial, body)));
    begin = ends[i];
  }
  // Every part defines the iterators and inner loops again: each gets its own.
  Stmt whole = ConvertSSA(Opaque(first + "_" + var + "_common", SeqStmt::Flatten(parts)));
  self.Replace(id, whole);
  std::vector<LoopId> result;
  auto* seq = whole.as<BlockRealizeObj>()->block->body.as<SeqStmtObj>();
  if (!seq) Refuse("expected at least two parts", {loop});
  for (const Stmt& part : seq->seq) {
    result.push_back(self.Find(part.as<BlockRealizeObj>()->block->body.as<ForObj>()));
  }
  return result;
}

TVM_REGISTER() {
  DefPrimitive(
      "LoopPartition", "loop_partition", &LoopPartition, &Schedule::LoopPartition,
      "Makes loops of one, over parts of its range that follow each other. The factors are the "
      "lengths of the parts; one may be None, else what is left is another part. The blocks below "
      "are there once for every part, named after it (B becomes B_i0, B_i1, ...).",
      {kOneStage,
       R"(i, = sch.get_loops("B")
i0, i1 = sch.loop_partition(i, [4]))"},
      Arg("loop"), Arg("factors"), Arg("preserve_unit_iters", true));
}

}  // namespace
}  // namespace tvm::tir
