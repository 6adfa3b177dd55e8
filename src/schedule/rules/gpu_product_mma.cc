// SPDX-License-Identifier: Apache-2.0
// Products on matrix units (mma.sync, from sm_80 on).
#include <algorithm>

#include "schedule/rules/gpu_product_kernel.h"

namespace tvm::tir::gpu {
PrimExpr SharedMatrix::Place(const PrimExpr& line, const PrimExpr& chunk) const {
  int64_t width = std::min<int64_t>(8, chunks), repeat = 8 / width;
  PrimExpr key = floormod(floordiv(line, I(repeat)), I(width));
  PrimExpr row = (floordiv(chunk, I(width)) * I(lines) + line) * I(width);
  return begin + (row + bitwise_xor(floormod(chunk, I(width)), key)) * I(per_chunk);
}
/// The addresses that lanes give are those of lines of 8 x 8 matrices, four of them after each
/// other.
Stmt SharedMatrix::Load(const Buffer& to, const PrimExpr& at, const Buffer& from,
                        const PrimExpr& stage, bool is_left, const PrimExpr& side,
                        const PrimExpr& depth, const PrimExpr& lane) const {
  PrimExpr matrix = floordiv(lane, I(8)), within = floormod(lane, I(8));
  // Which of the four matrices are 8 further along the side, and along the depth.
  PrimExpr aside = is_left ? floormod(matrix, I(2)) : floordiv(matrix, I(2));
  PrimExpr deeper = is_left ? floordiv(matrix, I(2)) : floormod(matrix, I(2));
  PrimExpr line = along_depth ? side + aside * I(8) + within : depth + deeper * I(8) + within;
  PrimExpr chunk = along_depth ? depth + deeper : floordiv(side, I(8)) + aside;
  return Do(builtin::ptx_ldmatrix(),
            {along_depth ? const_false() : const_true(), I(4), StringImm(".b16"), to->data, at,
             from->data, stage + Place(line, chunk)});
}

namespace {
class MmaWriter : public RingWriter {
 public:
  using RingWriter::RingWriter;

 private:
  int64_t PerChunk() const { return SharedMatrix::kChunkBytes / p_.type->Bytes(); }
  bool IsTf32() const { return p_.type->Bytes() == 4; }
  bool InParts() const { return p_.type->terms > 1; }
  SharedMatrix MatrixOf(const Part& part) const {
    bool deep = part.factor->along_depth || IsTf32();
    return {deep ? part.extent : t_.depth, (deep ? t_.depth : part.extent) / PerChunk(), PerChunk(),
            deep, part.begin};
  }
  int64_t RowTiles() const { return t_.warp_rows / 16; }
  int64_t ColumnTiles() const { return t_.warp_columns / 8; }

  int64_t Pieces() const final { return t_.depth / PerChunk() / 2; }
  int64_t Sums() const final { return RowTiles() * ColumnTiles() * 4; }
  /// Of one set; where numbers are in parts, the small ones follow.
  int64_t Registers(const Part& part) const final { return Large(part) * (InParts() ? 2 : 1); }
  int64_t Large(const Part& part) const {
    return part.is_left ? RowTiles() * 4 : ColumnTiles() * 2;
  }
  DataType RegisterType() const final { return DataType::UInt(32); }
  Stmt Copy(const Part& part, const PrimExpr& stage, const PrimExpr& step) const final {
    SharedMatrix matrix = MatrixOf(part);
    // Neighbours copy what lies next to each other in memory.
    bool by_lines = matrix.along_depth != part.factor->along_depth;
    return Shared(matrix.lines * matrix.chunks, [&](const PrimExpr& number) {
      PrimExpr unit = I(by_lines ? matrix.lines : matrix.chunks);
      PrimExpr line = floordiv(number, unit), chunk = floormod(number, unit);
      if (by_lines) std::swap(line, chunk);
      PrimExpr to = stage + matrix.Place(line, chunk);
      int64_t lanes = part.factor->lanes;
      return Unrolled("piece", PerChunk() / lanes, [&](const PrimExpr& i) {
        PrimExpr along = chunk * I(PerChunk()) + i * I(lanes);
        bool deep = matrix.along_depth;
        return CopyPart(part, lanes, to + i * I(lanes), deep ? line : along, step,
                        deep ? along : line);
      });
    });
  }
  Stmt Load(const Part& part, const PrimExpr& stage, int64_t piece, int64_t set) const final {
    SharedMatrix matrix = MatrixOf(part);
    int64_t count = part.is_left ? RowTiles() : ColumnTiles() / 2;
    PrimExpr first = part.is_left ? WarpRow() : WarpColumn();
    const Buffer& to = part.is_left ? left_regs_ : right_regs_;
    return Unrolled("i", count, [&](const PrimExpr& i) {
      PrimExpr at = I(set * Registers(part)) + i * I(4);
      Stmt load = matrix.Load(to, at, ring_, stage, part.is_left, first + i * I(16),
                              I(piece * (matrix.along_depth ? 2 : 16)), Lane());
      return IsTf32() ? SeqStmt::Flatten({load, Round(to, at, Large(part))}) : load;
    });
  }
  /// Rounds four numbers to tf32, which matrix units would cut off; where they are in parts, what
  /// is left over goes `small` registers further.
  Stmt Round(const Buffer& regs, const PrimExpr& first, int64_t small) const {
    DataType word = DataType::UInt(32), number = DataType::Float(32);
    auto rounded = [&](const PrimExpr& x) {
      return Call(word, builtin::call_pure_extern(), {StringImm("cvt.rna.tf32.f32"), x});
    };
    return Unrolled("r", 4, [&](const PrimExpr& r) -> Stmt {
      PrimExpr value = reinterpret(number, BufferLoad(regs, {first + r}));
      if (!InParts()) return BufferStore(regs, rounded(value), {first + r});
      Var x("x", number), large("large", word);
      PrimExpr rest = x - reinterpret(number, large);
      Stmt stores = SeqStmt::Flatten({BufferStore(regs, large, {first + r}),
                                      BufferStore(regs, rounded(rest), {first + I(small) + r})});
      return LetStmt(x, value, LetStmt(large, rounded(x), stores));
    });
  }
  Stmt Multiply(int64_t set) const final {
    if (!InParts()) return Multiply(set, false, false);
    // What is small first.
    return SeqStmt::Flatten(
        {Multiply(set, true, false), Multiply(set, false, true), Multiply(set, false, false)});
  }
  Stmt Multiply(int64_t set, bool small_left, bool small_right) const {
    StringImm factor(p_.type->factor_name), sum(p_.type->sum_name);
    StringImm shape(IsTf32() ? "m16n8k8" : p_.type->Bytes() == 2 ? "m16n8k16" : "m16n8k32");
    auto begin = [&](const Part& part, bool is_small) {
      return I(set * Registers(part) + (is_small ? Large(part) : 0));
    };
    return Unrolled("i", RowTiles(), [&](const PrimExpr& i) {
      return Unrolled("j", ColumnTiles(), [&](const PrimExpr& j) {
        return Do(builtin::ptx_mma(),
                  {shape, StringImm("row"), StringImm("col"), factor, factor, sum, left_regs_->data,
                   begin(left_, small_left) + i * I(4), right_regs_->data,
                   begin(right_, small_right) + j * I(2), sums_->data,
                   (i * I(ColumnTiles()) + j) * I(4), const_false()});
      });
    });
  }
  /// A lane has two sums next to each other, and two 8 rows below, of every 16 x 8.
  Stmt Store() const final {
    return Unrolled("i", RowTiles() * 2, [&](const PrimExpr& i) {
      PrimExpr row = WarpRow() + i * I(8) + floordiv(Lane(), I(4));
      return Unrolled("j", ColumnTiles(), [&](const PrimExpr& j) {
        PrimExpr column = WarpColumn() + j * I(8) + floormod(Lane(), I(4)) * I(2);
        PrimExpr tile = floordiv(i, I(2)) * I(ColumnTiles()) + j;
        return StoreSums(row, column, tile * I(4) + floormod(i, I(2)) * I(2), 2);
      });
    });
  }
};
}  // namespace

Stmt MmaKernel(const Product& product, const ProductTile& tile, Array<Buffer>* memory) {
  return MmaWriter(product, tile).Write(memory);
}

}  // namespace tvm::tir::gpu
