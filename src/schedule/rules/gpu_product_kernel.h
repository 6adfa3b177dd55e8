// SPDX-License-Identifier: Apache-2.0
// What kernels of products share: factors are copied asynchronously into a ring of stages in shared
// memory, from there into registers, multiplied there, and stored.
#pragma once
#include "schedule/rules/gpu_product.h"
#include "tvm/expr/op.h"

namespace tvm::tir::gpu {

inline PrimExpr I(int64_t value) { return PrimExpr(static_cast<int>(value)); }
Stmt Do(const Op& op, Array<PrimExpr> args);
/// Repeats a body that is written `count` times.
Stmt Unrolled(const char* name, int64_t count, const std::function<Stmt(const PrimExpr&)>& body);
Stmt If(const PrimExpr& condition, const Stmt& body);
/// The body for all values of a variable that is an index of the launch.
Stmt BindTo(const char* tag, const Var& var, const PrimExpr& extent, const Stmt& body);
/// Annotations of a long loop: it is not copied for iterations in which conditions are known.
Map<String, Any> InOneLoop();
/// The threads of a block wait for each other.
Stmt Sync();
/// Calls `copy` on the numbers below `count`, shared among the threads.
Stmt SharedAmong(const Var& thread, int64_t threads, int64_t count,
                 const std::function<Stmt(const PrimExpr&)>& copy);
/// Whether a number is below the extent, of which `multiple` at a time are looked at.
PrimExpr InRange(const Side& side, const PrimExpr& number, int64_t multiple);
/// Copies `lanes` elements of a factor to shared memory, asynchronously if they are 4 bytes or
/// more: zeros unless `inside`. `values` are those of the iterators.
Stmt CopyElements(const Factor& factor, const Map<Var, PrimExpr>& values, PrimExpr inside,
                  int64_t lanes, const Buffer& to, const PrimExpr& at);

/// A matrix in shared memory, of which matrix units multiply pieces: lines of up to 8 chunks of 16
/// bytes. The chunks of a line are permuted by its number, so that neither copies nor loads of 8
/// chunks below each other meet in a bank.
struct SharedMatrix {
  static constexpr int64_t kChunkBytes = 16;
  int64_t lines, chunks;  ///< Chunks of a line.
  int64_t per_chunk;      ///< Elements.
  bool along_depth;       ///< Neighbours in a line are summed up, else lines are.
  PrimExpr begin;         ///< In elements.
  int64_t Size() const { return lines * chunks * per_chunk; }
  /// The first element of a chunk.
  PrimExpr Place(const PrimExpr& line, const PrimExpr& chunk) const;
  /// Loads what a lane of a warp has of 16 x (depth of an instruction): rows of the left factor or
  /// columns of the right one from `side` on. `depth` is in chunks where they lie along it, else in
  /// lines.
  Stmt Load(const Buffer& to, const PrimExpr& at, const Buffer& from, const PrimExpr& stage,
            bool is_left, const PrimExpr& side, const PrimExpr& depth, const PrimExpr& lane) const;
};

class ProductWriter {
 public:
  ProductWriter(const Product& product, const ProductTile& tile) : p_(product), t_(tile) {}
  virtual ~ProductWriter() = default;
  virtual Stmt Write(Array<Buffer>* memory) = 0;

 protected:
  /// What a block of threads needs of a factor at a time.
  struct Part {
    const Factor* factor;
    const Side* side;
    bool is_left;
    int64_t extent;  ///< Rows or columns.
    Var first;       ///< The number of the first one.
    PrimExpr begin;  ///< In a stage of the ring.
  };
  /// Elements of the ring for one stage of a factor.
  virtual int64_t SizeOf(const Part& part) const { return part.extent * t_.depth; }
  /// Registers of a thread for sums.
  virtual int64_t Sums() const = 0;

  // ---- which part of the work ----
  /// Makes the memory between the kernels of a reduction in parts.
  void Begin(Array<Buffer>* memory);
  /// How many tiles there are, of all batches and parts.
  PrimExpr Works() const { return Tiles() * p_.batch.Extent() * I(t_.parts); }
  /// What follows is about the tile of this number; `Here` gives its variables their values.
  void GoTo(const PrimExpr& work);
  Stmt Here(const Stmt& body) const;
  /// The kernel, with `count` blocks and what it allocates; then that which adds up parts.
  Stmt Kernel(Stmt body, const PrimExpr& blocks, int64_t threads, const Array<Buffer>& buffers);
  Stmt Clear() const;

  // ---- results ----
  /// Stores `count` sums, from `sum` on, at columns next to each other of the tile.
  Stmt StoreSums(const PrimExpr& row, const PrimExpr& column, const PrimExpr& sum,
                 int64_t count) const;
  PrimExpr Lane() const { return floormod(thread_, I(kWarp)); }
  PrimExpr WarpRow() const { return floormod(Warp(), I(t_.rows / t_.warp_rows)) * I(t_.warp_rows); }
  PrimExpr WarpColumn() const {
    return floordiv(Warp(), I(t_.rows / t_.warp_rows)) * I(t_.warp_columns);
  }
  PrimExpr Warp() const { return floordiv(thread_, I(kWarp)); }

  /// Where the stage of the ring for a step begins, in elements.
  PrimExpr StageOf(const PrimExpr& step) const {
    return floormod(step, I(t_.stages)) * I(SizeOf(left_) + SizeOf(right_));
  }
  Buffer Ring() const;

  const Product& p_;
  const ProductTile& t_;
  Var block_{"block", DataType::Int(32)}, thread_{"thread", DataType::Int(32)};
  Part left_, right_;
  PrimExpr batch_, steps_, first_step_;
  Buffer ring_, sums_;

 private:
  PrimExpr RowTiles() const { return ceildiv(p_.rows.Extent(), I(t_.rows)); }
  PrimExpr ColumnTiles() const { return ceildiv(p_.columns.Extent(), I(t_.columns)); }
  PrimExpr Tiles() const { return RowTiles() * ColumnTiles(); }
  /// Stores a sum, or what the last step makes of it.
  Stmt StoreResult(const PrimExpr& row, const PrimExpr& column, const PrimExpr& sum) const;
  /// Where the sum of a part is among all of them.
  PrimExpr PlaceOf(const PrimExpr& row, const PrimExpr& column) const;
  Stmt StoreElement(const PrimExpr& row, const PrimExpr& column, const PrimExpr& sum) const;
  Array<BufferRegion> Reads() const;
  /// The kernel that adds up the sums of parts.
  Stmt AddParts();
  const Buffer& Out() const { return p_.store.defined() ? p_.store->buffer : p_.result; }
  PrimExpr Count() const { return p_.batch.Extent() * p_.rows.Extent() * p_.columns.Extent(); }
  PrimExpr part_, row_, column_;  // the last two: values of the variables
  Buffer partial_;                // sums of all parts
};

/// Kernels in which all threads copy, load into registers and multiply there, in turns.
class RingWriter : public ProductWriter {
 public:
  using ProductWriter::ProductWriter;
  Stmt Write(Array<Buffer>* memory) final;

 protected:
  // ---- what kernels differ in ----
  /// Copies a stage of a factor for a step of the reduction; `stage` is where it begins.
  virtual Stmt Copy(const Part& part, const PrimExpr& stage, const PrimExpr& step) const = 0;
  /// Into how many pieces a stage is divided: an even number.
  virtual int64_t Pieces() const = 0;
  /// Loads a piece into registers, of which there are two sets, and multiplies one set.
  virtual Stmt Load(const Part& part, const PrimExpr& stage, int64_t piece, int64_t set) const = 0;
  virtual Stmt Multiply(int64_t set) const = 0;
  virtual Stmt Store() const = 0;
  virtual int64_t Registers(const Part& part) const = 0;
  virtual DataType RegisterType() const { return p_.type->factor; }

  // ---- steps they share ----
  /// Copies `lanes` elements of a factor to `to` in the ring, those from `side` and `depth` on.
  Stmt CopyPart(const Part& part, int64_t lanes, const PrimExpr& to, const PrimExpr& side,
                const PrimExpr& step, const PrimExpr& depth) const;
  Stmt Shared(int64_t count, const std::function<Stmt(const PrimExpr&)>& copy) const {
    return SharedAmong(thread_, t_.Warps() * kWarp, count, copy);
  }
  Buffer left_regs_, right_regs_;

 private:
  Stmt CopyStage(const PrimExpr& step) const;
  Stmt LoadPiece(int64_t piece, const PrimExpr& step) const;
};

}  // namespace tvm::tir::gpu
