// SPDX-License-Identifier: Apache-2.0
// Attention on GPUs: what a function computes, and the kernel that does it.
#pragma once
#include "schedule/rules/gpu_product.h"

namespace tvm::tir::gpu {

/// result[batch, row, column] =
///     sum over keys of softmax over keys(exponent(query · key))[batch, row, key] *
///     value[batch, key, column]
///
/// Everything is in terms of the iterators; numbers are float32.
struct Attention {
  const ProductType* type = nullptr;
  Side batch, rows, columns;  ///< Of the result.
  Side keys, depth;           ///< What is summed up: by the second and by the first product.
  Factor query, key, value;
  Var score{"score", DataType::Float(32)};  ///< Stands for query · key.
  PrimExpr exponent;                        ///< In terms of it.
  double scale = 1;                         ///< The exponent is so many times that; above 0.
  std::vector<PrimExpr> allowed;            ///< All hold, or a key has no weight.
  bool zero_nan = false;                    ///< Rows whose weights are NaN give 0.
  Var result{"result", DataType::Float(32)};
  BufferStore store;  ///< What is stored, in terms of the result.
};
/// How a kernel divides the work.
struct AttentionTile {
  int64_t rows, keys;  ///< Of a block of threads, at a time.
  int64_t warp_rows;   ///< Of a warp, which has all keys of them.
  int64_t parts = 1;   ///< Of the keys; a second kernel puts their results together.
  int64_t Warps() const { return rows / warp_rows; }
};
/// Bytes of shared memory that a block needs.
int64_t SharedBytes(const Attention& attention, const AttentionTile& tile);
/// The statement that computes it: a kernel or, where keys are in parts, two with memory between
/// them.
Stmt AttentionKernel(const Attention& attention, const AttentionTile& tile, Array<Buffer>* memory);

}  // namespace tvm::tir::gpu
