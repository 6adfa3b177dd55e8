// SPDX-License-Identifier: Apache-2.0
// What the cost model looks at: the stores of a program, the loops around each, what it computes
// and which elements it touches.
#pragma once
#include <array>
#include <vector>

#include "tvm/tir/function.h"

namespace tvm::tune {

/// Kinds of arithmetic, counted apart for floats and integers.
enum Arithmetic { kAddSub, kMul, kDivMod, kMinMax, kCompare, kChoose, kMath, kOther, kKinds };

struct Loop {
  const tir::ForObj* node;
  double extent;
  tir::ForKind kind;
  double unroll_steps;  // pragma_auto_unroll_max_step in force
};
/// An index as a sum of loop variables times numbers; one entry per loop around, outer first. Only
/// how far it moves counts, so constants and signs are left out.
using Affine = std::vector<double>;

/// All accesses of one store to one buffer; bounding boxes of several are joined.
struct Access {
  tir::Buffer buffer;
  bool reads = false, writes = false;
  int count = 0;
  std::vector<Affine> indices;  // per dimension
};
struct StoreInfo {
  const tir::BufferStoreObj* node;
  std::vector<Loop> loops;  // outer first
  std::vector<Access> accesses;
  std::array<double, kKinds> float_ops{}, int_ops{};  // of one execution
  double allocated_bytes = 0;                         // of the buffer written, if local
};

/// The stores of a function in program order, on programs with or without blocks.
std::vector<StoreInfo> CollectStores(const tir::PrimFunc& func);

}  // namespace tvm::tune
