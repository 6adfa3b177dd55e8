// SPDX-License-Identifier: Apache-2.0
// The kernel of attention (mma.sync, from sm_80 on): a block of threads has some rows of queries
// and goes through the keys, a tile at a time. The scores of a tile stay in registers, where they
// become weights relative to the largest exponent so far; when that grows, sums so far shrink.
#pragma once
#include <cmath>

#include "schedule/rules/gpu_attention.h"
#include "schedule/rules/gpu_product_kernel.h"

namespace tvm::tir::gpu {

inline constexpr int64_t kStages = 2;  ///< Tiles of keys and of values that are under way.
inline constexpr double kLog2E = 1.4426950408889634;
inline PrimExpr F(double value) { return MakeConst(DataType::Float(32), value); }
/// 2 to that power, to a relative error of 2^-22; results below the smallest normal number are 0.
PrimExpr PowerOfTwo(const PrimExpr& e);

/// A condition on a row and a key as a limit of the key.
struct Limit {
  PrimExpr at;    ///< Undefined where it is none.
  bool is_upper;  ///< Keys up to it, else those from it on.
};

class AttentionWriter {
 public:
  AttentionWriter(const Attention& attention, const AttentionTile& tile);
  int64_t SharedElements() const { return query_.Size() + kStages * (key_.Size() + value_.Size()); }
  Stmt Write(Array<Buffer>* memory);

 private:
  int64_t PerChunk() const { return SharedMatrix::kChunkBytes / a_.type->Bytes(); }
  int64_t RowTiles() const { return t_.warp_rows / 16; }
  int64_t KeyTiles() const { return t_.keys / 8; }
  int64_t ColumnTiles() const { return value_.chunks; }
  int64_t Rows() const { return RowTiles() * 2; }  // of a thread
  PrimExpr Lane() const { return floormod(thread_, I(kWarp)); }
  /// The row of a tile that a thread has as its number `row`.
  PrimExpr RowAt(const PrimExpr& row) const {
    return floordiv(thread_, I(kWarp)) * I(t_.warp_rows) + row * I(8) + floordiv(Lane(), I(4));
  }
  /// The first of two neighbours that a thread has of every 8.
  PrimExpr Pair() const { return floormod(Lane(), I(4)) * I(2); }
  /// Where the two numbers of a row of a thread are among those of its tiles of 16 x 8.
  PrimExpr At(const PrimExpr& row, const PrimExpr& tile, int64_t tiles) const {
    return (floordiv(row, I(2)) * I(tiles) + tile) * I(4) + floormod(row, I(2)) * I(2);
  }
  Map<Var, PrimExpr> ValuesAt(const PrimExpr& row) const {
    Map<Var, PrimExpr> values;
    a_.batch.Decompose(batch_, &values);
    a_.rows.Decompose(row, &values);
    return values;
  }
  static Stmt Set(const Buffer& buffer, const PrimExpr& at, const PrimExpr& value) {
    return BufferStore(buffer, value, {at});
  }
  static PrimExpr Get(const Buffer& buffer, const PrimExpr& at) { return BufferLoad(buffer, {at}); }
  Stmt Fill(const Buffer& buffer, int64_t count, double value) const {
    return Unrolled("i", count, [&](const PrimExpr& i) { return Set(buffer, i, F(value)); });
  }
  /// The four lanes of a row combine a number each has for it.
  template <class Combine>
  Stmt CombineLanes(const Buffer& buffer, const PrimExpr& at, Combine&& combine) const {
    auto step = [&](int64_t distance) {
      Var other("other", DataType::Float(32));
      PrimExpr shuffled = Call(DataType::Float(32), builtin::tvm_warp_shuffle(),
                               {MakeConst(DataType::UInt(32), int64_t{0xffffffff}), Get(buffer, at),
                                bitwise_xor(Lane(), I(distance)), I(kWarp), I(kWarp)});
      return LetStmt(other, shuffled, Set(buffer, at, combine(Get(buffer, at), PrimExpr(other))));
    };
    return SeqStmt::Flatten({step(1), step(2)});
  }

  // ---- copies
  Stmt CopyTile(const Factor& factor, const SharedMatrix& matrix, const Side& lines,
                const Side& along, const PrimExpr& first, const PrimExpr& stage) const;
  Stmt CopyKeys(const PrimExpr& tile, const PrimExpr& step) const {
    Stmt copy = CopyTile(a_.key, key_, a_.keys, a_.depth, tile * I(t_.keys),
                         floormod(step, I(kStages)) * I(key_.Size()));
    return SeqStmt::Flatten({If(tile < end_, copy), Do(builtin::ptx_commit_group(), {})});
  }
  Stmt CopyValues(const PrimExpr& tile, const PrimExpr& step) const {
    Stmt copy = CopyTile(a_.value, value_, a_.keys, a_.columns, tile * I(t_.keys),
                         floormod(step, I(kStages)) * I(value_.Size()));
    return SeqStmt::Flatten({If(tile < end_, copy), Do(builtin::ptx_commit_group(), {})});
  }
  Stmt WaitForOlder() const {
    return SeqStmt::Flatten({Do(builtin::ptx_wait_group(), {I(1)}), Sync()});
  }

  // ---- a tile of keys
  Stmt Mma(const Buffer& left, const PrimExpr& left_at, const PrimExpr& right_at,
           const Buffer& sums, const PrimExpr& at) const {
    StringImm factor(a_.type->factor_name), sum(a_.type->sum_name);
    return Do(builtin::ptx_mma(),
              {StringImm("m16n8k16"), StringImm("row"), StringImm("col"), factor, factor, sum,
               left->data, left_at, right_regs_->data, right_at, sums->data, at, const_false()});
  }
  Stmt Scores(const PrimExpr& step) const;
  Stmt Exponents(const PrimExpr& tile) const;
  Stmt Weights() const;
  Stmt Weighted(const PrimExpr& step) const;

  // ---- which keys count
  void FindLimits();
  /// The limit for the first or the last row of the tile of rows.
  PrimExpr LimitAt(const Limit& limit, bool is_last_row) const;

  // ---- results
  Stmt Store() const;
  Stmt StorePart() const;
  /// Stores the two numbers that `value` gives for `column` and the next one.
  Stmt StorePair(const PrimExpr& row, const PrimExpr& column,
                 const std::function<Stmt(const PrimExpr&)>& store) const;
  Stmt StoreResult(const PrimExpr& row, const PrimExpr& column, const PrimExpr& result) const;
  Stmt CombineParts() const;
  Array<BufferRegion> Reads() const;
  PrimExpr Lines() const { return a_.batch.Extent() * a_.rows.Extent(); }

  const Attention& a_;
  const AttentionTile& t_;
  int64_t threads_;
  SharedMatrix query_, key_, value_;
  Var block_{"block", DataType::Int(32)}, thread_{"thread", DataType::Int(32)};
  Var first_row_{"first_row", DataType::Int(32)}, begin_{"begin", DataType::Int(32)},
      end_{"end", DataType::Int(32)};  // rows of the result; tiles of keys
  PrimExpr batch_, part_;
  std::vector<Limit> limits_;  // for each condition
  Buffer ring_, left_regs_, right_regs_, scores_, sums_, top_, high_, total_;
  Buffer partial_, partial_top_, partial_total_;
};

}  // namespace tvm::tir::gpu
