// SPDX-License-Identifier: Apache-2.0
// Convolutions with windows of 3 x 3 by Winograd's F(2 x 2, 3 x 3): 16 products for each 2 x 2
// results, where windows take 36.
//
//   result = A' ((G w G') * (B' tile B)) A    for each tile of 4 x 4 elements, two apart
#include "topi/nn/spatial.h"
#include "tvm/expr/op.h"
#include "tvm/topi/nn.h"

namespace tvm::topi::nn {
using namespace tir;
namespace {
/// The elements of a line.
using Line = std::function<PrimExpr(int64_t)>;
PrimExpr Is(const PrimExpr& i, int64_t value) { return EQ(i, MakeConst(i.dtype(), value)); }
/// The i-th element of G, B' or A' times a line.
PrimExpr OfWeights(const PrimExpr& i, const Line& w) {
  PrimExpr ends = w(0) + w(2), half = MakeConst(ends.dtype(), 0.5);
  return if_then_else(
      Is(i, 0), w(0),
      if_then_else(Is(i, 3), w(2),
                   if_then_else(Is(i, 1), (ends + w(1)) * half, (ends - w(1)) * half)));
}
/// The rows d0 - d2, d1 + d2, d2 - d1, d1 - d3: the places are computed, not chosen from all
/// differences, as a tile is a line of such lines and every stage looks at every load.
PrimExpr OfTile(const PrimExpr& i, const std::function<PrimExpr(const PrimExpr&)>& d) {
  auto number = [&](int64_t value) { return MakeConst(i.dtype(), value); };
  PrimExpr first = d(min(i, number(4) - i));
  PrimExpr second = d(max(number(2) - floordiv(i, number(2)), number(2) * i - number(3)));
  return Select(Is(i, 1), first + second, first - second);
}
PrimExpr OfResult(const PrimExpr& i, const Line& m) {
  PrimExpr second = m(1), third = m(2);
  return Select(Is(i, 0), m(0) + second + third, second - third - m(3));
}
}  // namespace

Tensor winograd_weights(const Tensor& kernel, int64_t width) {
  constexpr const char* kOp = "winograd_weights";
  CheckRank(kOp, "kernel", kernel, 4);
  const Shape& k = kernel->shape;
  DataType t = k[0].dtype();
  auto number = [t](int64_t n) { return MakeConst(t, n); };
  if (DifferentDim(k[2], number(3)) || DifferentDim(k[3], number(3)))
    Complain(kOp, "windows of 3 x 3", Text(k));
  auto columns = AsConstInt(k[0]);
  if (width < 1 || (columns && *columns % width != 0))
    Complain(kOp, "a width that divides " + Text({k[0]}), std::to_string(width));
  Shape shape{number(4), number(4), Simplified(floordiv(k[0], number(width))), k[1], number(width)};
  auto element = [&](const Index& i) {
    return OfWeights(i[0], [&](int64_t y) {
      return OfWeights(i[1], [&](int64_t x) {
        return At(kernel, {i[2] * number(width) + i[4], i[3], number(y), number(x)});
      });
    });
  };
  return Compute(shape, element, "weights");
}

Tensor winograd_conv2d(const Tensor& data, const Tensor& weights, const Any& padding,
                       int64_t block) {
  constexpr const char* kOp = "winograd_conv2d";
  CheckRank(kOp, "data", data, 5);
  CheckRank(kOp, "weights", weights, 5);
  const Shape &d = data->shape, &w = weights->shape;
  DataType t = d[0].dtype();
  auto number = [t](int64_t n) { return MakeConst(t, n); };
  PrimExpr two = number(2), inputs = Simplified(d[1] * d[4]), outputs = Simplified(w[2] * w[4]);
  if (DifferentDim(inputs, w[3]))
    Complain(kOp, "as many channels in data and weights", Text(d) + " and " + Text(w));
  Padding margins(kOp, padding, {number(3), number(3)});
  // Tiles end behind the data where the results do not fill them.
  Index results, tiles;
  Array<PrimExpr> before(5, number(0)), after(5, number(0));
  bool is_padded = false;
  for (size_t k = 0; k < 2; ++k) {
    const PrimExpr& size = d[2 + static_cast<int64_t>(k)];
    results.push_back(Simplified(size + margins.before[k] + margins.after[k] - two));
    tiles.push_back(Simplified(floordiv(results[k] + number(1), two)));
    auto at = static_cast<int64_t>(2 + k);
    before.Set(at, margins.before[k]);
    after.Set(at, Simplified(tiles[k] * two + two - size - margins.before[k]));
    is_padded |= !IsZero(before[at]) || !IsZero(after[at]);
  }
  Tensor padded = is_padded ? pad(data, before, after, MakeZero(data->dtype), "padded") : data;
  PrimExpr four = number(4);
  auto tile_of = [&](const Index& i) {
    return OfTile(i[0], [&](const PrimExpr& y) {
      return OfTile(i[1], [&](const PrimExpr& x) {
        return At(padded, {i[2], floordiv(i[5], d[4]), i[3] * two + y, i[4] * two + x,
                           floormod(i[5], d[4])});
      });
    });
  };
  Tensor transformed =
      Compute({four, four, d[0], tiles[0], tiles[1], inputs}, tile_of, "transformed");
  IterVar c = Along(inputs, "c");
  auto product_of = [&](const Index& i) {
    return te::sum(
        At(transformed, {i[0], i[1], i[2], i[3], i[4], c->var}) *
            At(weights, {i[0], i[1], floordiv(i[5], w[4]), c->var, floormod(i[5], w[4])}),
        {c});
  };
  Tensor products =
      Compute({four, four, d[0], tiles[0], tiles[1], outputs}, product_of, "products", kCommReduce);
  PrimExpr of_block = number(block);
  auto result_of = [&](const Index& i) {
    return OfResult(floormod(i[2], two), [&](int64_t y) {
      return OfResult(floormod(i[3], two), [&](int64_t x) {
        return At(products, {number(y), number(x), i[0], floordiv(i[2], two), floordiv(i[3], two),
                             i[1] * of_block + i[4]});
      });
    });
  };
  return Compute({d[0], Simplified(floordiv(outputs, of_block)), results[0], results[1], of_block},
                 result_of, "conv2d_winograd");
}
}  // namespace tvm::topi::nn
