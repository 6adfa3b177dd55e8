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
  int64_t rank = 0;
  for (const Part& part : order) rank += part.IsJoined() ? 2 : !part.IsSplit();
  return rank;
}
Order Inverse(const Order& order) {
  Order result(RankBefore(order));
  for (size_t k = 0; k < order.size(); ++k) {
    const Part& part = order[k];
    auto i = static_cast<int64_t>(k);
    if (part.IsSplit()) {
      result[part.axis].block = part.block;
      result[part.axis].inner = i;
      continue;
    }
    result[part.axis].axis = i;
    if (part.IsJoined()) result[part.inner] = {i, part.block};
  }
  return result;
}
int64_t BlockOf(int64_t axis, const Order& order) {
  axis = OldAxis(axis, order);
  for (const Part& part : order) {
    if (part.block != 0 && (part.axis == axis || part.inner == axis)) return part.block;
  }
  return 0;
}
bool HasBlocks(const Order& order) {
  return std::any_of(order.begin(), order.end(), [](const Part& p) { return p.block != 0; });
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
  axis = OldAxis(axis, order);
  auto is_whole = [&](const Part& p) {
    return (p.axis == axis && !p.IsSplit()) || (p.IsJoined() && p.inner == axis);
  };
  return std::find_if(order.begin(), order.end(), is_whole) - order.begin();
}
Order Permuted(const Order& order, const Optional<Ints>& axes) {
  int64_t rank = RankBefore(order);
  std::vector<int64_t> where(rank);  // of an axis in the result
  for (int64_t i = 0; i < rank; ++i)
    where[axes ? OldAxis(axes.value()[i]->value, order) : rank - 1 - i] = i;
  Order result;
  for (const Part& part : order)
    result.push_back({where[part.axis], part.block, part.IsJoined() ? where[part.inner] : -1});
  return result;
}
bool Divides(const std::vector<bool>& chosen, const Order& order) {
  return std::any_of(order.begin(), order.end(), [&](const Part& p) {
    return p.IsJoined() && chosen[p.axis] != chosen[p.inner];
  });
}
Order Without(const Order& order, const std::vector<bool>& removed) {
  Order rest;
  for (const Part& part : order) {
    if (removed[part.axis]) continue;
    auto left = [&](int64_t axis) {
      return axis - std::count(removed.begin(), removed.begin() + axis, true);
    };
    rest.push_back({left(part.axis), part.block, part.IsJoined() ? left(part.inner) : -1});
  }
  return rest;
}
std::string Reordered(const std::string& layout, const Order& order) {
  std::string letters = layout, result;
  std::erase_if(letters, [](unsigned char c) { return std::isdigit(c); });
  for (const Part& part : order) {
    char letter = letters[part.axis];
    if (!part.IsSplit()) {
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
    const Part& whole = from[NewAxis(axis, from)];
    PrimExpr index = indices[NewAxis(axis, from)], block = number(whole.block);
    if (whole.IsJoined())
      index = axis == whole.inner ? floormod(index, block) : floordiv(index, block);
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i].axis == axis && from[i].IsSplit())
        index = index * number(from[i].block) + indices[i];
    }
    before.push_back(index);
  }
  for (const Part& part : to) {
    PrimExpr index = before[part.axis];
    int64_t block = BlockOf(part.axis, to);
    if (part.IsJoined()) {
      index = index * number(block) + before[part.inner];
    } else if (part.IsSplit()) {
      index = floormod(index, number(block));
    } else if (block != 0) {
      index = floordiv(index, number(block));
    }
    after.push_back(analyzer.Simplify(index));
  }
  return tir::IndexMap(indices, after);
}

}  // namespace tvm::relax
