// SPDX-License-Identifier: Apache-2.0
// What kernels of products share: tiles, the ring of stages, copies, the last step.
#include "schedule/rules/gpu_product_kernel.h"

#include "tir/threads.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir::gpu {

PrimExpr Side::Extent() const {
  PrimExpr extent(1);
  for (const IterVar& iter : iters)
    extent = extent * cast(DataType::Int(32), iter->dom.value()->extent);
  return extent;
}
void Side::Decompose(PrimExpr number, Map<Var, PrimExpr>* values) const {
  for (size_t i = iters.size(); i-- > 0;) {
    PrimExpr size = cast(DataType::Int(32), iters[i]->dom.value()->extent);
    values->Set(iters[i]->var,
                cast(iters[i]->var.dtype(), i > 0 ? floormod(number, size) : number));
    number = floordiv(number, size);
  }
}

Stmt Do(const Op& op, Array<PrimExpr> args) {
  return Evaluate(Call(DataType::Void(), op, std::move(args)));
}
Stmt Unrolled(const char* name, int64_t count, const std::function<Stmt(const PrimExpr&)>& body) {
  if (count == 1) return body(I(0));
  Var var(name, DataType::Int(32));
  return For(var, I(0), I(count), ForKind::kUnrolled, body(var));
}
Stmt If(const PrimExpr& condition, const Stmt& body) {
  return IsTrue(condition) ? body : IfThenElse(condition, body);
}
Stmt BindTo(const char* tag, const Var& var, const PrimExpr& extent, const Stmt& body) {
  IterVar thread(Optional<Range>(), Var(tag, var.dtype()), IterVarType::kThreadIndex, tag);
  return For(var, I(0), extent, ForKind::kThreadBinding, body, thread);
}
Map<String, Any> InOneLoop() { return {{"irregular_loop_mark", 1}}; }
Stmt Sync() {
  return Evaluate(Call(DataType::Int(32), builtin::tvm_storage_sync(), {StringImm("shared.dyn")}));
}
namespace {
constexpr int64_t kRowGroup = 8;  // tiles below each other that run together: they share columns

/// Puts a value in the place of what is loaded from a buffer.
struct LoadReplacer : Mutator<LoadReplacer, BufferLoadObj> {
  const Buffer& from;
  const PrimExpr& to;
  LoadReplacer(const Buffer& from, const PrimExpr& to) : from(from), to(to) {}
  ObjectRef Rewrite(const BufferLoadObj* op) {
    return op->buffer.same_as(from) ? ObjectRef(to) : MapChildren(op, *this);
  }
};
}  // namespace

PrimExpr InRange(const Side& side, const PrimExpr& number, int64_t multiple) {
  PrimExpr extent = side.Extent();
  auto size = AsConstInt(extent);
  return size && *size % multiple == 0 ? const_true() : number < extent;
}

// ---- copies -------------------------------------------------------------------------------------
Stmt CopyElements(const Factor& factor, const Map<Var, PrimExpr>& values, PrimExpr inside,
                  int64_t lanes, const Buffer& to, const PrimExpr& at) {
  if (factor.condition.defined()) inside = inside && Substitute(factor.condition, values);
  BufferLoad load = Substitute(factor.load, values);
  int64_t bytes = lanes * load.dtype().bits() / 8;
  if (bytes < 4) {  // less than what is copied asynchronously
    PrimExpr value = IsTrue(inside) ? load : if_then_else(inside, load, MakeZero(load.dtype()));
    return BufferStore(to, value, {at});
  }
  PrimExpr offset = load->buffer->FlatIndices(load->indices)[0] + load->buffer->elem_offset;
  Array<PrimExpr> args{to->data, at, load->buffer->data, offset, I(bytes)};
  if (!IsTrue(inside)) args.push_back(inside);
  return Do(builtin::ptx_cp_async(), args);
}
Stmt SharedAmong(const Var& thread, int64_t threads, int64_t count,
                 const std::function<Stmt(const PrimExpr&)>& copy) {
  return Unrolled("chunk", (count + threads - 1) / threads, [&](const PrimExpr& i) {
    PrimExpr number = thread + i * I(threads);
    return count % threads == 0 ? copy(number) : If(number < I(count), copy(number));
  });
}
Stmt RingWriter::CopyPart(const Part& part, int64_t lanes, const PrimExpr& to, const PrimExpr& side,
                          const PrimExpr& step, const PrimExpr& depth) const {
  PrimExpr row = part.first + side, at = (first_step_ + step) * I(t_.depth) + depth;
  Map<Var, PrimExpr> values;
  p_.batch.Decompose(batch_, &values);
  part.side->Decompose(row, &values);
  p_.depth.Decompose(at, &values);
  PrimExpr inside = InRange(*part.side, row, part.extent) && InRange(p_.depth, at, t_.depth);
  return CopyElements(*part.factor, values, inside, lanes, ring_, to);
}
/// Begins the copies for a step of the reduction, if there is one.
Stmt RingWriter::CopyStage(const PrimExpr& step) const {
  PrimExpr stage = StageOf(step);
  Stmt copies = SeqStmt::Flatten({Copy(left_, stage, step), Copy(right_, stage, step)});
  return SeqStmt::Flatten({If(step < steps_, copies), Do(builtin::ptx_commit_group(), {})});
}
Stmt RingWriter::LoadPiece(int64_t piece, const PrimExpr& step) const {
  PrimExpr stage = StageOf(step);
  return SeqStmt::Flatten({Load(left_, stage, piece % Pieces(), piece % 2),
                           Load(right_, stage, piece % Pieces(), piece % 2)});
}

// ---- results ------------------------------------------------------------------------------------
PrimExpr ProductWriter::PlaceOf(const PrimExpr& row, const PrimExpr& column) const {
  PrimExpr line = (part_ * p_.batch.Extent() + batch_) * p_.rows.Extent() + row;
  return line * p_.columns.Extent() + column;
}
Stmt ProductWriter::StoreElement(const PrimExpr& row, const PrimExpr& column,
                                 const PrimExpr& sum) const {
  PrimExpr value = BufferLoad(sums_, {sum});
  if (partial_.defined()) return BufferStore(partial_, value, {PlaceOf(row, column)});
  return StoreResult(row, column, value);
}
Stmt ProductWriter::StoreResult(const PrimExpr& row, const PrimExpr& column,
                                const PrimExpr& sum) const {
  Map<Var, PrimExpr> values;
  p_.batch.Decompose(batch_, &values);
  p_.rows.Decompose(row, &values);
  p_.columns.Decompose(column, &values);
  PrimExpr value = cast(p_.result->dtype, sum);
  if (!p_.store.defined()) return BufferStore(p_.result, value, Substitute(p_.at, values));
  return LoadReplacer(p_.result, value).Mutate(Substitute(p_.store, values));
}
Stmt ProductWriter::StoreSums(const PrimExpr& row, const PrimExpr& column, const PrimExpr& sum,
                              int64_t count) const {
  PrimExpr at = left_.first + row, first = right_.first + column;
  auto columns = AsConstInt(p_.columns.Extent());
  bool is_vector = columns && *columns % count == 0;
  Var lane("v", DataType::Int(32));
  Stmt one = StoreElement(at, first + lane, sum + lane);
  PrimExpr inside = InRange(p_.rows, at, t_.rows);
  if (is_vector) {
    return If(inside && InRange(p_.columns, first, t_.columns),
              For(lane, I(0), I(count), ForKind::kVectorized, one));
  }
  return If(inside, For(lane, I(0), I(count), ForKind::kUnrolled,
                        If(InRange(p_.columns, first + lane, t_.columns), one)));
}
Array<BufferRegion> ProductWriter::Reads() const {
  Array<BufferRegion> reads;
  auto add = [&](const Buffer& buffer) {
    for (const BufferRegion& known : reads) {
      if (known->buffer.same_as(buffer)) return;
    }
    reads.push_back(BufferRegion::Full(buffer));
  };
  add(p_.left.load->buffer);
  add(p_.right.load->buffer);
  if (!p_.store.defined()) return reads;
  PostOrderVisit(p_.store->value, [&](const ObjectRef& node) {
    auto* load = node.as<BufferLoadObj>();
    if (load && !load->buffer.same_as(p_.result)) add(load->buffer);
  });
  return reads;
}

Stmt ProductWriter::AddParts() {
  constexpr int64_t kThreads = 256;
  Var block("block", DataType::Int(32)), thread("thread", DataType::Int(32));
  Var sum("sum", p_.type->sum);
  PrimExpr number = block * I(kThreads) + thread, columns = p_.columns.Extent(), total;
  for (int64_t part = 0; part < t_.parts; ++part) {
    PrimExpr one = BufferLoad(partial_, {I(part) * Count() + number});
    total = part == 0 ? one : total + one;
  }
  PrimExpr line = floordiv(number, columns);
  batch_ = floordiv(line, p_.rows.Extent());
  Stmt store = StoreResult(floormod(line, p_.rows.Extent()), floormod(number, columns), sum);
  Array<BufferRegion> reads = Reads();
  reads.push_back(BufferRegion::Full(partial_));
  Block body({}, reads, {BufferRegion::Full(Out())}, "parts",
             If(number < Count(), LetStmt(sum, total, store)));
  Stmt kernel = BindTo("threadIdx.x", thread, I(kThreads), BlockRealize({}, const_true(), body));
  return BindTo("blockIdx.x", block, ceildiv(Count(), I(kThreads)), kernel);
}

// ---- the kernel ---------------------------------------------------------------------------------
void ProductWriter::Begin(Array<Buffer>* memory) {
  if (t_.parts == 1) return;
  partial_ = Buffer::Decl({I(t_.parts) * Count()}, p_.type->sum, "partial", "global");
  memory->push_back(partial_);
}
void ProductWriter::GoTo(const PrimExpr& work) {
  PrimExpr blocks = Tiles() * p_.batch.Extent();
  bool in_parts = t_.parts > 1;
  PrimExpr tile = in_parts ? floormod(work, blocks) : work;
  PrimExpr number = floormod(tile, Tiles());
  batch_ = floordiv(tile, Tiles());
  part_ = in_parts ? floordiv(work, blocks) : I(0);
  // A few tiles below each other, then the next columns: what they read stays in the cache.
  PrimExpr group = floordiv(number, I(kRowGroup) * ColumnTiles()) * I(kRowGroup);
  PrimExpr size = min(RowTiles() - group, I(kRowGroup));
  PrimExpr within = floormod(number, I(kRowGroup) * ColumnTiles());
  row_ = (group + floormod(within, size)) * I(t_.rows);
  column_ = floordiv(within, size) * I(t_.columns);
  Var row("row", DataType::Int(32)), column("column", DataType::Int(32));
  left_ = {&p_.left, &p_.rows, true, t_.rows, row, I(0)};
  right_ = {&p_.right, &p_.columns, false, t_.columns, column, I(SizeOf(left_))};
  steps_ = ceildiv(p_.depth.Extent(), I(t_.depth));
  first_step_ = I(0);
  if (in_parts) {
    PrimExpr each = ceildiv(steps_, I(t_.parts));
    first_step_ = part_ * each;
    steps_ = min(each, steps_ - first_step_);
  }
}
Stmt ProductWriter::Here(const Stmt& body) const {
  return LetStmt(left_.first, row_, LetStmt(right_.first, column_, body));
}
Buffer ProductWriter::Ring() const {
  int64_t stage = SizeOf(left_) + SizeOf(right_);
  return Buffer::Decl({I(stage * t_.stages)}, p_.type->factor, "ring", "shared.dyn");
}
Stmt ProductWriter::Clear() const {
  return Unrolled("i", Sums(), [&](const PrimExpr& i) -> Stmt {
    return BufferStore(sums_, MakeZero(p_.type->sum), {i});
  });
}
Stmt ProductWriter::Kernel(Stmt body, const PrimExpr& blocks, int64_t threads,
                           const Array<Buffer>& buffers) {
  bool in_parts = t_.parts > 1;
  // Loops are left to the compiler of the text, which is shorter then.
  body = AttrStmt(I(0), attr::kPragmaUnrollExplicit, I(0), body);
  body = AttrStmt(I(0), kOwnBarriers, I(1), body);
  Block block({}, Reads(), {BufferRegion::Full(in_parts ? partial_ : Out())}, "product", body, {},
              buffers);
  Stmt kernel = BindTo("threadIdx.x", thread_, I(threads), BlockRealize({}, const_true(), block));
  kernel = BindTo("blockIdx.x", block_, blocks, kernel);
  return in_parts ? SeqStmt::Flatten({kernel, AddParts()}) : kernel;
}

Stmt RingWriter::Write(Array<Buffer>* memory) {
  Begin(memory);
  GoTo(block_);
  ring_ = Ring();
  left_regs_ = Buffer::Decl({I(2 * Registers(left_))}, RegisterType(), "left", "local");
  right_regs_ = Buffer::Decl({I(2 * Registers(right_))}, RegisterType(), "right", "local");
  sums_ = Buffer::Decl({I(Sums())}, p_.type->sum, "sums", "local");

  Stmt wait = Do(builtin::ptx_wait_group(), {I(t_.stages - 2)});
  Var step("step", DataType::Int(32));
  Array<Stmt> body;
  for (int64_t piece = 0; piece < Pieces(); ++piece) {
    bool is_last = piece + 1 == Pieces();
    if (is_last) {
      // All that is left of the stage is in registers: after the barrier it is free.
      body.push_back(wait);
      body.push_back(Sync());
    }
    body.push_back(LoadPiece(piece + 1, is_last ? step + 1 : PrimExpr(step)));
    if (piece == 0) body.push_back(CopyStage(step + I(t_.stages - 1)));
    body.push_back(Multiply(piece % 2));
  }
  Stmt begin = Unrolled("first", t_.stages - 1, [&](const PrimExpr& i) { return CopyStage(i); });
  Stmt all = SeqStmt::Flatten(
      {Clear(), begin, wait, Sync(), LoadPiece(0, I(0)),
       For(step, I(0), steps_, ForKind::kSerial, SeqStmt::Flatten(body), {}, InOneLoop()),
       Store()});
  return Kernel(Here(all), Works(), t_.Warps() * kWarp, {ring_, left_regs_, right_regs_, sums_});
}

}  // namespace tvm::tir::gpu
