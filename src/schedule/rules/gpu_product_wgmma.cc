// SPDX-License-Identifier: Apache-2.0
// Products of warpgroups (wgmma, sm_90a). The first warpgroup of a block has the copy engine bring
// tiles of both factors into a ring of stages; the others multiply what has come, and store the
// sums. A block stays for several tiles: the next ones are on their way while sums are stored.
//
// Barriers: one for each stage that is full, then one for each that is free again.
#include "schedule/rules/gpu_product_kernel.h"
#include "tvm/arith/analyzer.h"
#include "tvm/arith/pattern.h"
#include "tvm/expr/hopper.h"
#include "tvm/ir/type.h"

namespace tvm::tir::gpu {
namespace {
constexpr int64_t kGroup = 128;        // threads of a warpgroup
constexpr int64_t kLine = 128;         // bytes next to each other in shared memory
constexpr int64_t kPieceRows = 64;     // of an instruction
constexpr int64_t kPieceBytes = 32;    // of its depth
constexpr int64_t kEight = 8 * kLine;  // lines after which the order of their chunks repeats

/// The distance in memory between neighbours of iterators that are gone through as one; undefined
/// where there is no such distance.
PrimExpr StepOf(const Side& side, const Array<PrimExpr>& steps, size_t first) {
  arith::Analyzer analyzer;
  PrimExpr step, extent;
  for (size_t i = side.iters.size(); i-- > 0;) {
    PrimExpr size = cast(DataType::Int(64), side.iters[i]->dom.value()->extent);
    PrimExpr own = cast(DataType::Int(64), steps[first + i]);
    if (IsOne(size)) continue;
    if (step.defined() && !analyzer.CanProveEqual(own, step * extent)) return PrimExpr();
    if (!step.defined()) step = own;
    extent = extent.defined() ? size * extent : size;
    if (i > 0) step = analyzer.Simplify(step);
  }
  return step.defined() ? step : MakeZero(DataType::Int(64));
}
/// A factor as the copy engine is told of it, the innermost dimension first.
struct Tensor {
  PrimExpr offset;                     ///< Of the first element.
  std::vector<PrimExpr> sizes, steps;  ///< In elements.
  bool has_batches = false;
};
std::optional<Tensor> TensorOf(const Factor& factor, const Side& side, const Product& p) {
  if (factor.condition.defined()) return std::nullopt;
  arith::Analyzer analyzer;
  Array<Var> vars;
  for (const Side* s : {&side, &p.depth, &p.batch}) {
    for (const IterVar& iter : s->iters) vars.push_back(iter->var);
  }
  const Buffer& buffer = factor.load->buffer;
  PrimExpr flat = analyzer.Simplify(buffer->FlatIndices(factor.load->indices)[0]);
  Array<PrimExpr> steps = arith::DetectLinearEquation(flat, vars);
  if (steps.empty()) return std::nullopt;
  size_t rows = side.iters.size(), depth = rows + p.depth.iters.size();
  PrimExpr along = StepOf(side, steps, 0), deep = StepOf(p.depth, steps, rows),
           batch = StepOf(p.batch, steps, depth);
  if (!along.defined() || !deep.defined() || !batch.defined()) return std::nullopt;
  Tensor t;
  t.offset = cast(DataType::Int(64), buffer->elem_offset) + cast(DataType::Int(64), steps.back());
  t.sizes = {side.Extent(), p.depth.Extent()};
  t.steps = {along, deep};
  if (factor.along_depth) {
    std::swap(t.sizes[0], t.sizes[1]);
    std::swap(t.steps[0], t.steps[1]);
  }
  if (!IsOne(t.steps[0])) return std::nullopt;
  t.has_batches = !IsZero(batch);
  if (t.has_batches) {
    t.sizes.push_back(p.batch.Extent());
    t.steps.push_back(batch);
  }
  // Steps go forward.
  for (const PrimExpr& step : t.steps) {
    if (AsConstInt(step).value_or(1) <= 0) return std::nullopt;
  }
  return t;
}

class WarpgroupWriter : public ProductWriter {
 public:
  WarpgroupWriter(const Product& product, const ProductTile& tile, int64_t cores)
      : ProductWriter(product, tile), cores_(cores) {}

  Stmt Write(Array<Buffer>* memory) final {
    Begin(memory);
    // Parts are for where there are few tiles.
    blocks_ = t_.parts > 1 ? Works() : min(Works(), I(cores_));
    GoTo(block_);
    ring_ = Ring();
    sums_ = Buffer::Decl({I(Sums())}, p_.type->sum, "sums", "local");
    Stmt copies = Copies(), products = Products();
    if (Groups() > 1) {  // registers of those that copy go to those that multiply
      copies = SeqStmt::Flatten({Do(builtin::ptx_setmaxnreg(), {const_false(), I(40)}), copies});
      products =
          SeqStmt::Flatten({Do(builtin::ptx_setmaxnreg(), {const_true(), I(232)}), products});
    }
    Stmt roles = IfThenElse(thread_ < I(kGroup), copies, products);
    Stmt kernel = Kernel(SeqStmt::Flatten({Barriers(), roles}), blocks_, (Groups() + 1) * kGroup,
                         {ring_, sums_});
    Stmt all = SeqStmt::Flatten({Describe(left_), Describe(right_), kernel});
    PrimExpr room =
        Call(DataType::Handle(), builtin::tvm_stack_alloca(), {StringImm("tensormap"), I(1)});
    return LetStmt(left_map_, room, LetStmt(right_map_, room, all));
  }

 private:
  int64_t Groups() const { return t_.Warps(); }
  int64_t PerLine() const { return kLine / p_.type->Bytes(); }
  int64_t Pieces() const { return t_.warp_rows / kPieceRows; }
  int64_t Sums() const final { return Pieces() * SumsOfPiece(); }
  int64_t SumsOfPiece() const { return t_.warp_columns / 2; }
  PrimExpr Group() const { return floordiv(thread_, I(kGroup)) - I(1); }
  PrimExpr GroupRow() const {
    return floormod(Group(), I(t_.rows / t_.warp_rows)) * I(t_.warp_rows);
  }
  PrimExpr GroupColumn() const {
    return floordiv(Group(), I(t_.rows / t_.warp_rows)) * I(t_.warp_columns);
  }
  PrimExpr IsFirst() const { return equal(floormod(thread_, I(kGroup)), I(0)); }
  PrimExpr StageNumber(const PrimExpr& number) const { return floormod(number, I(t_.stages)); }
  Stmt Free(const PrimExpr& stage) const {
    return Do(builtin::ptx_arrive_barrier(), {I(t_.stages) + stage});
  }

  // ---- the copy engine ----
  /// What is brought at once: lines of 128 bytes along the depth, or along rows or columns.
  int64_t Lines(const Part& part) const {
    return part.factor->along_depth ? part.extent : t_.depth;
  }
  int64_t Boxes(const Part& part) const {
    return part.factor->along_depth ? 1 : part.extent / PerLine();
  }
  const Var& MapOf(const Part& part) const { return part.is_left ? left_map_ : right_map_; }
  Stmt Describe(const Part& part) const {
    constexpr int kSwizzle128Bytes = 3, kPromotion256Bytes = 3;
    Tensor tensor = *TensorOf(*part.factor, *part.side, p_);
    const Buffer& buffer = part.factor->load->buffer;
    PrimExpr bytes = MakeConst(DataType::Int(64), p_.type->Bytes()), data = buffer->data;
    if (!IsZero(tensor.offset)) {
      data = Call(DataType::Handle(), builtin::handle_add_byte_offset(),
                  {data, tensor.offset * bytes});
    }
    auto rank = static_cast<int64_t>(tensor.sizes.size());
    Array<PrimExpr> args{StringImm("runtime.cuTensorMapEncodeTiled"), MapOf(part),
                         StringImm(p_.type->factor.str()), I(rank), data};
    for (const PrimExpr& size : tensor.sizes) args.push_back(size);
    for (int64_t i = 1; i < rank; ++i) args.push_back(tensor.steps[i] * bytes);
    for (int64_t size : {PerLine(), Lines(part), int64_t{1}}) {
      if (size != 1 || tensor.has_batches) args.push_back(I(size));
    }
    for (int64_t i = 0; i < rank; ++i) args.push_back(I(1));
    for (int mode : {0, kSwizzle128Bytes, kPromotion256Bytes, 0}) args.push_back(I(mode));
    return Evaluate(Call(DataType::Int(32), builtin::tvm_call_packed(), args));
  }
  Stmt Bring(const Part& part, const PrimExpr& number, const PrimExpr& step) const {
    bool has_batches = TensorOf(*part.factor, *part.side, p_)->has_batches;
    return Unrolled("box", Boxes(part), [&](const PrimExpr& box) {
      PrimExpr side = part.first + box * I(PerLine()), depth = (first_step_ + step) * I(t_.depth);
      bool deep = part.factor->along_depth;
      Array<PrimExpr> args{ring_->data,
                           StageOf(number) + part.begin + box * I(t_.depth * PerLine()),
                           MapOf(part),
                           StageNumber(number),
                           I(0),
                           deep ? depth : side,
                           deep ? side : depth};
      if (has_batches) args.push_back(batch_);
      return Do(builtin::ptx_cp_async_bulk_tensor(), args);
    });
  }
  Stmt Barriers() const {
    Stmt init = Unrolled("i", t_.stages, [&](const PrimExpr& i) {
      const Op& op = builtin::ptx_init_barrier_thread_count();
      return SeqStmt::Flatten({Do(op, {i, I(1)}), Do(op, {I(t_.stages) + i, I(Groups())})});
    });
    Stmt first = SeqStmt::Flatten({init, Do(builtin::ptx_fence_barrier_init(), {}),
                                   Do(builtin::ptx_fence_proxy_async(), {})});
    return SeqStmt::Flatten({Do(builtin::create_barriers(), {I(2 * t_.stages)}),
                             If(equal(thread_, I(0)), first), Sync()});
  }

  // ---- roles ----
  /// `body` for each tile of the block; `number` counts steps over all of them.
  Stmt ForEachTile(const std::function<Stmt(const PrimExpr& before)>& body) {
    Var turn("turn", DataType::Int(32));
    GoTo(block_ + turn * blocks_);
    PrimExpr before = t_.parts > 1 ? PrimExpr(I(0)) : turn * steps_;
    Stmt one = Here(body(before));
    PrimExpr turns = t_.parts > 1 ? PrimExpr(I(1)) : ceildiv(Works() - block_, blocks_);
    return For(turn, I(0), turns, ForKind::kSerial, one, {}, InOneLoop());
  }
  Stmt Copies() {
    Stmt all = ForEachTile([&](const PrimExpr& before) {
      Var step("step", DataType::Int(32));
      PrimExpr number = before + step, stage = StageNumber(number);
      int64_t bytes = (SizeOf(left_) + SizeOf(right_)) * p_.type->Bytes();
      Stmt body = SeqStmt::Flatten({Do(builtin::ptx_wait_barrier(), {I(t_.stages) + stage}),
                                    Do(builtin::ptx_arrive_barrier_expect_tx(), {stage, I(bytes)}),
                                    Bring(left_, number, step), Bring(right_, number, step)});
      return For(step, I(0), steps_, ForKind::kSerial, body, {}, InOneLoop());
    });
    return If(equal(thread_, I(0)), all);
  }
  Stmt Products() {
    Stmt free = Unrolled("i", t_.stages, [&](const PrimExpr& i) { return Free(i); });
    Stmt all = ForEachTile([&](const PrimExpr& before) {
      Var step("step", DataType::Int(32));
      PrimExpr number = before + step;
      auto previous = [&](const PrimExpr& n) { return StageNumber(n + I(t_.stages - 1)); };
      Stmt body = SeqStmt::Flatten({Do(builtin::ptx_wait_barrier(), {StageNumber(number)}),
                                    Do(builtin::ptx_wgmma_fence(), {}), Multiply(StageOf(number)),
                                    Do(builtin::ptx_wgmma_commit_group(), {}),
                                    Do(builtin::ptx_wgmma_wait_group(), {I(1)}),
                                    If(step > I(0) && IsFirst(), Free(previous(number)))});
      return SeqStmt::Flatten(
          {Clear(), For(step, I(0), steps_, ForKind::kSerial, body, {}, InOneLoop()),
           Do(builtin::ptx_wgmma_wait_group(), {I(0)}),
           If(steps_ > I(0) && IsFirst(), Free(previous(before + steps_))), Store()});
    });
    return SeqStmt::Flatten({If(IsFirst(), free), all});
  }

  // ---- matrix units ----
  PrimExpr Descriptor(const Part& part, const PrimExpr& stage, const PrimExpr& side,
                      const PrimExpr& piece) const {
    bool deep = part.factor->along_depth;
    int64_t per_line = PerLine(), step = kPieceBytes / p_.type->Bytes();
    PrimExpr at =
        deep ? side * I(per_line) + piece * I(step)
             : floordiv(side, I(per_line)) * I(t_.depth * per_line) + piece * I(step * per_line);
    int64_t leading = deep ? 16 : t_.depth * kLine;
    return Call(DataType::UInt(64), builtin::ptx_wgmma_descriptor(),
                {ring_->data, stage + part.begin + at, I(leading), I(kEight), I(kLine)});
  }
  Stmt Multiply(const PrimExpr& stage) const {
    StringImm factor(p_.type->factor_name), sum(p_.type->sum_name);
    int64_t depth = kPieceBytes / p_.type->Bytes();
    StringImm shape("m64n" + std::to_string(t_.warp_columns) + "k" + std::to_string(depth));
    auto across = [](const Part& part) {
      return part.factor->along_depth ? const_false() : const_true();
    };
    return Unrolled("k", t_.depth / depth, [&](const PrimExpr& k) {
      return Unrolled("m", Pieces(), [&](const PrimExpr& m) {
        PrimExpr row = GroupRow() + m * I(kPieceRows);
        return Do(builtin::ptx_wgmma_mma_async(),
                  {shape, factor, factor, sum, across(left_), across(right_),
                   Descriptor(left_, stage, row, k), Descriptor(right_, stage, GroupColumn(), k),
                   sums_->data, m * I(SumsOfPiece()), I(1)});
      });
    });
  }
  /// A thread has two sums next to each other, and two 8 rows below, of every 8 columns.
  Stmt Store() const {
    PrimExpr lane = floormod(thread_, I(kWarp)),
             warp = floordiv(floormod(thread_, I(kGroup)), I(kWarp));
    return Unrolled("i", Pieces() * 2, [&](const PrimExpr& i) {
      PrimExpr row = GroupRow() + floordiv(i, I(2)) * I(kPieceRows) + warp * I(16) +
                     floormod(i, I(2)) * I(8) + floordiv(lane, I(4));
      return Unrolled("j", t_.warp_columns / 8, [&](const PrimExpr& j) {
        PrimExpr column = GroupColumn() + j * I(8) + floormod(lane, I(4)) * I(2);
        PrimExpr sum = floordiv(i, I(2)) * I(SumsOfPiece()) + j * I(4) + floormod(i, I(2)) * I(2);
        return StoreSums(row, column, sum, 2);
      });
    });
  }

  int64_t cores_;
  PrimExpr blocks_;
  static Type MapType() {
    return New<TensorMapType>([](TensorMapTypeObj*) {});
  }
  Var left_map_{"left_map", MapType()}, right_map_{"right_map", MapType()};
};
}  // namespace

bool FitsWarpgroups(const Product& p) {
  auto fits = [&](const Factor& factor, const Side& side) {
    return factor.lanes * p.type->Bytes() == 16 && TensorOf(factor, side, p).has_value();
  };
  return p.type->IsMma() && p.type->Bytes() <= 2 && fits(p.left, p.rows) &&
         fits(p.right, p.columns);
}
Stmt WarpgroupKernel(const Product& product, const ProductTile& tile, const Machine& machine,
                     Array<Buffer>* memory) {
  return WarpgroupWriter(product, tile, machine->cores).Write(memory);
}

}  // namespace tvm::tir::gpu
