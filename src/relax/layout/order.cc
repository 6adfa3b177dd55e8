// SPDX-License-Identifier: Apache-2.0
// The dimensions of a tensor in another order, or in blocks.
#include "relax/layout/order.h"

#include <algorithm>

#include "tvm/expr/op.h"
#include "tvm/tir/data_layout.h"

namespace tvm::relax {

Order IdentityOrder(int64_t ndim) {
  Order order;
  for (int64_t i = 0; i < ndim; ++i) order.push_back({i});
  return order;
}
bool IsIdentity(const Order& order) {
  return order == IdentityOrder(static_cast<int64_t>(order.size()));
}
int64_t RankBefore(const Order& order) {
  return std::count_if(order.begin(), order.end(), [](const Part& p) { return p.block == 0; });
}
int64_t BlockOf(int64_t axis, const Order& order) {
  for (const Part& part : order) {
    if (part.axis == OldAxis(axis, order) && part.block != 0) return part.block;
  }
  return 0;
}
bool HasBlocks(const Order& order) {
  return RankBefore(order) != static_cast<int64_t>(order.size());
}
std::optional<Order> OrderOf(const std::string& from, const std::string& to) {
  tir::Layout before(from), after(to);
  if (from == to) return IdentityOrder(static_cast<int64_t>(before.ndim()));
  Order order;
  size_t wholes = 0;
  for (size_t i = 0; i < after.ndim(); ++i) {
    char letter = after.letter(i);
    auto upper = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    int64_t axis = before.IndexOf(upper);
    Part part{axis, letter == upper ? 0 : after.FactorOf(upper)};
    // Blocks of blocks have no order of their own.
    if (axis < 0 || std::find(order.begin(), order.end(), part) != order.end()) return std::nullopt;
    order.push_back(part);
    wholes += letter == upper;
  }
  if (wholes != before.ndim()) return std::nullopt;
  return order;
}
int64_t OldAxis(int64_t axis, const Order& order) {
  return axis < 0 ? axis + RankBefore(order) : axis;
}
int64_t NewAxis(int64_t axis, const Order& order) {
  return std::find(order.begin(), order.end(), Part{OldAxis(axis, order)}) - order.begin();
}
Order Without(const Order& order, const std::vector<bool>& removed) {
  Order rest;
  for (const Part& part : order) {
    if (removed[part.axis]) continue;
    int64_t before = std::count(removed.begin(), removed.begin() + part.axis, true);
    rest.push_back({part.axis - before, part.block});
  }
  return rest;
}
std::string Reordered(const std::string& layout, const Order& order) {
  std::string result;
  for (const Part& part : order) {
    char letter = layout[part.axis];
    if (part.block == 0) {
      result += letter;
    } else {
      result += std::to_string(part.block);
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
  }
  return result;
}
tir::IndexMap MapBetween(const Order& from, const Order& to, const Array<PrimExpr>& shape) {
  auto number = [](int64_t n) { return PrimExpr(IntImm::Int64(n)); };
  arith::Analyzer analyzer;
  Array<tir::Var> indices;
  Array<PrimExpr> before, after;  // the indices of the tensor as it was; those of the result
  for (size_t i = 0; i < from.size(); ++i) {
    tir::Var index("i" + std::to_string(i), DataType::Int(64));
    analyzer.Bind(index, Range::FromMinExtent(number(0), shape[i]));
    indices.push_back(index);
  }
  for (int64_t axis = 0; axis < RankBefore(from); ++axis) {
    PrimExpr index = indices[NewAxis(axis, from)];
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i].axis == axis && from[i].block != 0)
        index = index * number(from[i].block) + indices[i];
    }
    before.push_back(index);
  }
  for (const Part& part : to) {
    PrimExpr index = before[part.axis];
    int64_t block = BlockOf(part.axis, to);
    if (part.block != 0) {
      index = floormod(index, number(block));
    } else if (block != 0) {
      index = floordiv(index, number(block));
    }
    after.push_back(analyzer.Simplify(index));
  }
  return tir::IndexMap(indices, after);
}

}  // namespace tvm::relax
