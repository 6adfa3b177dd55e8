// SPDX-License-Identifier: Apache-2.0
// Whether a statement is the computation that an intrinsic describes.
#pragma once
#include "schedule/rewrite.h"

namespace tvm::tir {

/// Where a buffer of the description lies in one of the program: element `index` of the former is
/// element `begin + index` of the latter, whose leading dimensions may be more.
struct BufferMatch {
  Buffer described, buffer;
  Array<PrimExpr> begin;
  Array<Range> Region() const;
};
/// Why `stmt` is not what `desc` (the body of a description) computes; else fills `buffers`. Loops
/// of extent 1 and how blocks are bound do not matter: both are compared as loops and stores.
/// `fixed` are variables that may occur in where the buffers begin.
std::string WhyNotIntrin(const Stmt& stmt, const Stmt& desc, std::vector<BufferMatch>* buffers);

/// Loops and stores without blocks: iterators replaced by their values, loops of extent 1 by their
/// start.
Stmt WithoutBlocks(const Stmt& stmt);

}  // namespace tvm::tir
