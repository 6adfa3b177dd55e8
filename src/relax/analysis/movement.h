// SPDX-License-Identifier: Apache-2.0
// What decides whether moving data is worth a kernel of its own.
#pragma once
#include "tvm/tir/function.h"

namespace tvm::relax {

/// Whether the function only puts the axes of a buffer into another order.
bool IsTranspose(const tir::PrimFunc& func);
/// Whether it is one whose last axis stays the last.
bool KeepsRows(const tir::PrimFunc& func);
/// Whether the function sums up along one axis, as products of matrices do.
bool SumsOverOneAxis(const tir::PrimFunc& func);
/// Whether no element of `buffer` is read twice: as a product of one row does with its matrix.
bool ReadsEachOnce(const tir::PrimFunc& func, const tir::Buffer& buffer);

}  // namespace tvm::relax
