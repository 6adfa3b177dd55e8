// SPDX-License-Identifier: Apache-2.0
// What the kernel of attention stores: results, or those of parts of the keys and then all
// together.
#include "schedule/rules/gpu_attention_kernel.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir::gpu {
namespace {
/// A sum of weights to divide by. That of a row which sees no key is 0, and so is its result.
PrimExpr NotZero(const PrimExpr& total) {
  PrimExpr one = MakeConst(total.dtype(), 1);
  return Select(equal(total, MakeZero(total.dtype())), one, total);
}
}  // namespace

Stmt AttentionWriter::StoreResult(const PrimExpr& row, const PrimExpr& column,
                                  const PrimExpr& result) const {
  Map<Var, PrimExpr> values = ValuesAt(row);
  a_.columns.Decompose(column, &values);
  values.Set(a_.result, result);
  return Substitute(a_.store, values);
}
Stmt AttentionWriter::StorePair(const PrimExpr& row, const PrimExpr& column,
                                const std::function<Stmt(const PrimExpr&)>& store) const {
  Var lane("lane", DataType::Int(32));
  int64_t columns = AsConstInt(a_.columns.Extent()).value();
  PrimExpr inside = InRange(a_.rows, row, t_.rows);
  if (columns % 2 == 0) {
    inside = inside && InRange(a_.columns, column, ColumnTiles() * 8);
    return If(inside, For(lane, I(0), I(2), ForKind::kVectorized, store(lane)));
  }
  return If(inside, For(lane, I(0), I(2), ForKind::kUnrolled,
                        If(InRange(a_.columns, column + lane, ColumnTiles() * 8), store(lane))));
}
Stmt AttentionWriter::Store() const {
  return Unrolled("r", Rows(), [&](const PrimExpr& r) {
    Var by("by", DataType::Float(32));
    PrimExpr row = first_row_ + RowAt(r);
    Stmt total =
        CombineLanes(total_, r, [](const PrimExpr& a, const PrimExpr& b) { return a + b; });
    Stmt store = Unrolled("j", ColumnTiles(), [&](const PrimExpr& j) {
      PrimExpr column = j * I(8) + Pair(), at = At(r, j, ColumnTiles());
      return StorePair(row, column, [&](const PrimExpr& lane) {
        PrimExpr result = Get(sums_, at + lane) * by;
        if (a_.zero_nan) result = Select(Get(total_, r) > F(0), result, F(0));
        return StoreResult(row, column + lane, result);
      });
    });
    return SeqStmt::Flatten({total, LetStmt(by, div(F(1), NotZero(Get(total_, r))), store)});
  });
}
/// Sums, and for every row the largest exponent and the sum of weights.
Stmt AttentionWriter::StorePart() const {
  PrimExpr columns = a_.columns.Extent();
  return Unrolled("r", Rows(), [&](const PrimExpr& r) {
    PrimExpr row = first_row_ + RowAt(r);
    PrimExpr line = part_ * Lines() + batch_ * a_.rows.Extent() + row;
    Stmt total =
        CombineLanes(total_, r, [](const PrimExpr& a, const PrimExpr& b) { return a + b; });
    Stmt store = Unrolled("j", ColumnTiles(), [&](const PrimExpr& j) {
      PrimExpr column = j * I(8) + Pair(), at = At(r, j, ColumnTiles());
      return StorePair(row, column, [&](const PrimExpr& lane) {
        return Set(partial_, line * columns + column + lane, Get(sums_, at + lane));
      });
    });
    Stmt of_row = SeqStmt::Flatten(
        {Set(partial_top_, line, Get(top_, r)), Set(partial_total_, line, Get(total_, r))});
    PrimExpr is_first = InRange(a_.rows, row, t_.rows) && equal(floormod(Lane(), I(4)), I(0));
    return SeqStmt::Flatten({total, store, If(is_first, of_row)});
  });
}
/// A thread has an element of the result.
Stmt AttentionWriter::CombineParts() const {
  constexpr int64_t kThreads = 256;
  Var block("block", DataType::Int(32)), thread("thread", DataType::Int(32));
  PrimExpr columns = a_.columns.Extent(), count = Lines() * columns;
  PrimExpr number = block * I(kThreads) + thread, line = floordiv(number, columns);
  Buffer high = Buffer::Decl({I(1)}, DataType::Float(32), "high", "local"),
         sums = Buffer::Decl({I(2)}, DataType::Float(32), "sums", "local");
  double scale = a_.scale * kLog2E;
  auto for_parts = [&](const std::function<Stmt(const PrimExpr&)>& body) {
    Var part("part", DataType::Int(32));
    return For(part, I(0), I(t_.parts), ForKind::kSerial, body(part * Lines() + line));
  };
  PrimExpr none = -infinity(DataType::Float(32)), top = Get(high, I(0));
  Var weight("weight", DataType::Float(32));
  Stmt largest = for_parts([&](const PrimExpr& at) {
    return Set(high, I(0), max(Get(high, I(0)), Get(partial_top_, at)));
  });
  Stmt add = for_parts([&](const PrimExpr& at) -> Stmt {
    PrimExpr base = Select(equal(top, none), F(0), top * F(scale));
    Stmt both = SeqStmt::Flatten(
        {Set(sums, I(0),
             Get(sums, I(0)) +
                 Get(partial_, at * columns + floormod(number, columns)) * PrimExpr(weight)),
         Set(sums, I(1), Get(sums, I(1)) + Get(partial_total_, at) * PrimExpr(weight))});
    return LetStmt(weight, PowerOfTwo(Get(partial_top_, at) * F(scale) - base), both);
  });
  AttentionWriter own = *this;
  own.batch_ = floordiv(line, a_.rows.Extent());
  PrimExpr total = Get(sums, I(1)), result = div(Get(sums, I(0)), NotZero(total));
  if (a_.zero_nan) result = Select(total > F(0), result, F(0));
  Stmt store = own.StoreResult(floormod(line, a_.rows.Extent()), floormod(number, columns), result);
  Stmt all = SeqStmt::Flatten(
      {Set(high, I(0), none), Set(sums, I(0), F(0)), Set(sums, I(1), F(0)), largest, add, store});
  Array<BufferRegion> reads = Reads();
  for (const Buffer& buffer : {partial_, partial_top_, partial_total_})
    reads.push_back(BufferRegion::Full(buffer));
  Block body({}, reads, {BufferRegion::Full(a_.store->buffer)}, "parts", If(number < count, all),
             {}, {high, sums});
  Stmt kernel = BindTo("threadIdx.x", thread, I(kThreads), BlockRealize({}, const_true(), body));
  return BindTo("blockIdx.x", block, ceildiv(count, I(kThreads)), kernel);
}
Array<BufferRegion> AttentionWriter::Reads() const {
  std::vector<Buffer> buffers;
  auto add = [&](const ObjectRef& e) {
    PostOrderVisit(e, [&](const ObjectRef& node) {
      auto* load = node.as<BufferLoadObj>();
      if (!load) return;
      bool is_known = std::any_of(buffers.begin(), buffers.end(),
                                  [&](const Buffer& b) { return b.same_as(load->buffer); });
      if (!is_known) buffers.push_back(load->buffer);
    });
  };
  for (const Factor* factor : {&a_.query, &a_.key, &a_.value}) add(factor->load);
  add(a_.exponent);
  add(a_.store->value);
  for (const PrimExpr& condition : a_.allowed) add(condition);
  Array<BufferRegion> reads;
  for (const Buffer& buffer : buffers) reads.push_back(BufferRegion::Full(buffer));
  return reads;
}

}  // namespace tvm::tir::gpu
