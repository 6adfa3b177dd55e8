// SPDX-License-Identifier: Apache-2.0
// Products on plain cores.
//
// In shared memory a stage is lines along the rows or columns, one for each step of the depth. The
// lanes of a warp are 4 x 8; a lane has groups of 4 rows and 4 columns, which it loads as vectors,
// all lanes' next to each other before the next group begins.
#include "schedule/rules/gpu_product_kernel.h"

namespace tvm::tir::gpu {
namespace {
constexpr int64_t kGroup = 4, kLaneRows = 4, kLaneColumns = 8;

class CoreWriter : public RingWriter {
 public:
  using RingWriter::RingWriter;

 private:
  /// What is transposed on its way is written across lines: they begin in different banks.
  int64_t LineOf(const Part& part) const {
    return part.extent + (part.factor->along_depth ? kGroup : 0);
  }
  int64_t Lanes(const Part& part) const { return part.is_left ? kLaneRows : kLaneColumns; }
  int64_t Groups(const Part& part) const {
    return (part.is_left ? t_.warp_rows : t_.warp_columns) / (kGroup * Lanes(part));
  }
  int64_t SizeOf(const Part& part) const final { return LineOf(part) * t_.depth; }
  int64_t Pieces() const final { return t_.depth; }
  int64_t Registers(const Part& part) const final { return Groups(part) * kGroup; }
  int64_t Sums() const final { return Registers(left_) * Registers(right_); }

  Stmt Copy(const Part& part, const PrimExpr& stage, const PrimExpr& step) const final {
    bool deep = part.factor->along_depth;
    int64_t lanes = part.factor->lanes, line = deep ? t_.depth : part.extent / lanes;
    return Shared(part.extent * t_.depth / lanes, [&](const PrimExpr& number) {
      PrimExpr along = floormod(number, I(line)) * I(lanes), across = floordiv(number, I(line));
      PrimExpr side = deep ? across : along, depth = deep ? along : across;
      PrimExpr to = stage + part.begin + depth * I(LineOf(part)) + side;
      return CopyPart(part, lanes, to, side, step, depth);
    });
  }
  Stmt Load(const Part& part, const PrimExpr& stage, int64_t piece, int64_t set) const final {
    const Buffer& to = part.is_left ? left_regs_ : right_regs_;
    PrimExpr line = stage + part.begin + I(piece * LineOf(part));
    PrimExpr first = part.is_left ? WarpRow() + floordiv(Lane(), I(kLaneColumns)) * I(kGroup)
                                  : WarpColumn() + floormod(Lane(), I(kLaneColumns)) * I(kGroup);
    return Unrolled("i", Groups(part), [&](const PrimExpr& i) -> Stmt {
      Var v("v", DataType::Int(32));
      PrimExpr from = line + first + i * I(kGroup * Lanes(part));
      PrimExpr at = I(set * Registers(part)) + i * I(kGroup);
      return For(v, I(0), I(kGroup), ForKind::kVectorized,
                 BufferStore(to, BufferLoad(ring_, {from + v}), {at + v}));
    });
  }
  Stmt Multiply(int64_t set) const final {
    int64_t rows = Registers(left_), columns = Registers(right_);
    return Unrolled("i", rows, [&](const PrimExpr& i) {
      return Unrolled("j", columns, [&](const PrimExpr& j) -> Stmt {
        PrimExpr at = i * I(columns) + j;
        PrimExpr a = cast(p_.type->sum, BufferLoad(left_regs_, {I(set * rows) + i}));
        PrimExpr b = cast(p_.type->sum, BufferLoad(right_regs_, {I(set * columns) + j}));
        return BufferStore(sums_, BufferLoad(sums_, {at}) + a * b, {at});
      });
    });
  }
  Stmt Store() const final {
    int64_t columns = Registers(right_);
    PrimExpr row = WarpRow() + floordiv(Lane(), I(kLaneColumns)) * I(kGroup);
    PrimExpr column = WarpColumn() + floormod(Lane(), I(kLaneColumns)) * I(kGroup);
    return Unrolled("i", Registers(left_), [&](const PrimExpr& i) {
      PrimExpr below = floordiv(i, I(kGroup)) * I(kGroup * kLaneRows) + floormod(i, I(kGroup));
      return Unrolled("j", columns / kGroup, [&](const PrimExpr& j) {
        return StoreSums(row + below, column + j * I(kGroup * kLaneColumns),
                         i * I(columns) + j * I(kGroup), kGroup);
      });
    });
  }
};
}  // namespace

Stmt CoreKernel(const Product& product, const ProductTile& tile, Array<Buffer>* memory) {
  return CoreWriter(product, tile).Write(memory);
}

}  // namespace tvm::tir::gpu
