// SPDX-License-Identifier: Apache-2.0
// Products on GPUs: what a block multiplies, and the kernel that does it.
#pragma once
#include "schedule/rules/look.h"
#include "tvm/tir/stmt.h"

namespace tvm::tir::gpu {

inline constexpr int64_t kWarp = 32;  ///< Threads that run in lockstep.

/// Numbers that are multiplied, and what they are summed up in.
struct ProductType {
  DataType factor, sum;
  const char *factor_name, *sum_name;  ///< As ptx_mma calls them; none where plain cores do it.
  int terms =
      1;  ///< Products that stand for one: of float32 in two parts, which have 11 bits each.
  bool IsMma() const { return factor_name != nullptr; }
  int Bytes() const { return factor.bits() / 8; }
};
/// Iterators of a block that are gone through as one, the last one fastest.
struct Side {
  std::vector<IterVar> iters;
  PrimExpr Extent() const;
  /// Values of the iterators for a number below the extent.
  void Decompose(PrimExpr number, Map<Var, PrimExpr>* values) const;
};
/// One of the two things that are multiplied: zero where the condition does not hold.
struct Factor {
  BufferLoad load;                ///< In terms of the block's iterators, as is the condition.
  PrimExpr condition;             ///< Undefined: always.
  bool along_depth = true;        ///< Neighbours in memory are summed up, else in other results.
  int64_t lanes = 1;              ///< Elements that are copied at once.
  std::vector<PrimExpr> demands;  ///< What has to hold of sizes for that.
};
/// result[batch, row, column] = sum over depth of left[batch, row, depth] * right[batch, column,
/// depth]
struct Product {
  const ProductType* type = nullptr;
  Side batch, rows, columns, depth;
  Factor left, right;
  Buffer result;       ///< What the sum is stored in or, where a block uses it, stands for.
  Array<PrimExpr> at;  ///< Its indices.
  BufferStore store;   ///< The last step in terms of the iterators, where there is one.
};
/// How a kernel divides the work.
struct ProductTile {
  int64_t rows, columns;            ///< Of a block of threads.
  int64_t warp_rows, warp_columns;  ///< Of a warp, or of a warpgroup.
  double speed;                     ///< Share of the best rate that one after another gets.
  int64_t depth = 0;                ///< Of the reduction between barriers.
  int64_t stages = 2;               ///< How many of these are under way.
  int64_t parts = 1;                ///< Of the reduction; a second kernel adds up their sums.
  bool by_warpgroups = false;
  int64_t Warps() const { return rows / warp_rows * (columns / warp_columns); }
};

// ---- what a block computes ----
PrimExpr WithoutCast(PrimExpr e);
/// The row for these factors and their sum, or null.
const ProductType* FindProductType(DataType factor, DataType sum);
/// Whether an expression is what a factor may be; fills it.
bool MatchFactor(PrimExpr e, Factor* factor);
bool Uses(const Factor& factor, const Var& var);
/// Finds the iterator along which a factor lies in memory, makes it the last one of its side, and
/// says how many elements may be copied at once. The order of iterators along the depth is that of
/// both factors: `may_reorder` says whether it is still free.
void LayOut(Factor* factor, Side* side, Side* depth, bool may_reorder, int64_t most);
/// Whether every iterator of the block is a loop.
bool RunsThroughItsDomain(const BlockLook& look);
/// Makes a factor one that is copied element by element; what has to hold where it is not is added.
void TakeDemands(Factor* factor, std::vector<PrimExpr>* demands);
/// The outermost loop of a block, or the block.
const StmtObj* NestOf(const State& state, BlockId block);

/// The statement that computes a product, on matrix units or plain cores: a kernel or, where the
/// reduction is in parts, two with memory between them.
Stmt MmaKernel(const Product& product, const ProductTile& tile, Array<Buffer>* memory);
Stmt CoreKernel(const Product& product, const ProductTile& tile, Array<Buffer>* memory);
/// The same by warpgroups, where the copy engine can bring both factors.
bool FitsWarpgroups(const Product& product);
Stmt WarpgroupKernel(const Product& product, const ProductTile& tile, const Machine& machine,
                     Array<Buffer>* memory);
/// Makes a kernel of a product and the block that alone uses its result; false where it is none, or
/// tiles do not pay.
bool ScheduleProductKernel(const Schedule& sch, const BlockRV& block, const Machine& machine);

}  // namespace tvm::tir::gpu
