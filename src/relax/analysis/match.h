// SPDX-License-Identifier: Apache-2.0
// Symbolic variables of parameters matched with arguments.
#pragma once
#include "tvm/relax/struct_info.h"

namespace tvm::relax {

/// Binds the symbolic variables that stand alone in `param` to what is in their places in `arg`;
/// the first place of a variable counts, and those bound already stay.
void BindSymbolic(const StructInfo& param, const StructInfo& arg,
                  Map<tir::Var, PrimExpr>* bindings);

}  // namespace tvm::relax
