// SPDX-License-Identifier: Apache-2.0
// The dimensions of a tensor in another order, or in blocks.
#pragma once
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "tvm/relax/attrs.h"

namespace tvm::relax {

/// A dimension of a tensor in a layout: dimension `axis` of the tensor as it was; or what of it is
/// split off as blocks of `block` elements; or the dimensions `axis` and `inner` joined, where
/// `inner` had blocks of so many elements.
struct Part {
  int64_t axis;
  int64_t block = 0, inner = -1;
  bool IsSplit() const { return block != 0 && inner < 0; }
  bool IsJoined() const { return inner >= 0; }
  auto operator<=>(const Part&) const = default;
};
/// The dimensions of the tensor in this layout: NHWC of a tensor that was NCHW is {0}, {2}, {3},
/// {1}; NCHW4c is {0}, {1}, {2}, {3}, {1, 4}; NCHW of what was NCHW4c is {0}, {1, 4, 4}, {2}, {3}.
/// Empty: as it was.
using Order = std::vector<Part>;
Order IdentityOrder(int64_t ndim);
bool IsIdentity(const Order& order);
/// The number of dimensions of the tensor as it was.
int64_t RankBefore(const Order& order);
/// The tensor as it was in terms of the one in this layout.
Order Inverse(const Order& order);
/// How many elements of an axis are a block, or 0.
int64_t BlockOf(int64_t axis, const Order& order);
bool HasBlocks(const Order& order);
/// From a layout of letters to another. Nothing when the second is neither a permutation of the
/// first nor one in blocks.
std::optional<Order> OrderOf(const std::string& from, const std::string& to);
/// An axis of the tensor as it was, not negative; and where it, or its blocks as wholes, are now.
int64_t OldAxis(int64_t axis, const Order& order);
int64_t NewAxis(int64_t axis, const Order& order);
/// The order of a tensor whose dimensions are permuted, while the one in the layout stays.
Order Permuted(const Order& order, const Optional<Ints>& axes);
/// Whether some of the axes that a dimension joins are chosen, and others not.
bool Divides(const std::vector<bool>& chosen, const Order& order);
/// What is left of an order when some axes of the tensor as it was are removed.
Order Without(const Order& order, const std::vector<bool>& removed);
/// The letters of a layout in another order.
std::string Reordered(const std::string& layout, const Order& order);
/// How indices go from one order of a tensor, whose shape is known, to another.
tir::IndexMap MapBetween(const Order& from, const Order& to, const Array<PrimExpr>& shape);

}  // namespace tvm::relax
