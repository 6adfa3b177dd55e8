// SPDX-License-Identifier: Apache-2.0
// Gradients of attention, distances, windows and paddings.
#include <algorithm>
#include <cmath>

#include "attention.h"
#include "converter.h"
#include "elementwise.h"
#include "network.h"

namespace tvm::frontend::torch {
namespace {

// ---- attention ----------------------------------------------------------------------------------
Expr Transposed(Conversion& c, const Expr& x) {
  std::vector<int64_t> axes = Axes(RankOf(x));
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return c.Permute(x, axes);
}
Any AttentionBackward(Conversion& c) {
  Expr grad = c.Tensor(0), q = c.Tensor(1), k = c.Tensor(2), v = c.Tensor(3);
  DataType t = TypeOf(q);
  Expr logs = c.Emit("expand_dims", c.Cast(c.Tensor(5), t), -1);
  Expr scores = AttentionScores(c, q, k, c.OptionalTensor(8), c.Flag(7), c[9]);
  Expr weights = c.Emit("exp", c.Emit("subtract", scores, logs));
  Expr grad_v = MatMul(c, Transposed(c, weights), grad);
  Expr grad_weights = MatMul(c, grad, Transposed(c, v));
  Expr along = c.Emit("sum", c.Emit("multiply", grad, c.Tensor(4)), Array<Any>{-1}, true);
  Expr grad_scores = c.Emit("multiply", weights, c.Emit("subtract", grad_weights, along));
  grad_scores = c.Emit("multiply", grad_scores, c.Const(AttentionScale(q, c[9]), t));
  return Array<Any>{MatMul(c, grad_scores, k), MatMul(c, Transposed(c, grad_scores), q), grad_v};
}

// ---- distances ----------------------------------------------------------------------------------
/// The gradient in a of |a - b|_p, where `grad` and `distance` have one axis less.
Expr DistanceGradient(Conversion& c, const Expr& grad, const Expr& gap, double p,
                      const Expr& distance) {
  DataType t = TypeOf(gap);
  Expr g = c.Emit("expand_dims", grad, -1), d = c.Emit("expand_dims", distance, -1);
  Expr zero = c.Const(0.0, t), size = c.Emit("abs", gap);
  if (p == 0) return c.Emit("multiply", c.Emit("zeros_like", gap), g);
  if (p == 1) return c.Emit("multiply", c.Emit("sign", gap), g);
  if (std::isinf(p)) {
    Expr is_largest = c.Cast(c.Emit("equal", size, d), t);
    return c.Emit("multiply", c.Emit("multiply", c.Emit("sign", gap), is_largest), g);
  }
  Expr slope = c.Emit("multiply", c.Emit("sign", gap),
                      c.Emit("power", c.Emit("divide", size, d), c.Const(p - 1, t)));
  if (p == 2) slope = c.Emit("divide", gap, d);
  Expr is_flat = c.Emit("equal", d, zero);
  if (p < 1) is_flat = c.Emit("logical_or", is_flat, c.Emit("equal", gap, zero));
  return c.Emit("where", is_flat, zero, c.Emit("multiply", slope, g));
}
Any CDistBackward(Conversion& c) {
  Expr a = c.Emit("expand_dims", c.Tensor(1), -2), b = c.Emit("expand_dims", c.Tensor(2), -3);
  Expr gap = c.Emit("subtract", a, b);
  Dims shape = ShapeOf(gap);
  // PyTorch sums an empty batch up as well.
  if (std::any_of(shape.begin(), shape.end(), &IsZero)) return c.Emit("zeros_like", c.Tensor(1));
  Expr all = DistanceGradient(c, c.Tensor(0), gap, c.Number(3), c.Tensor(4));
  return c.Emit("sum", all, Array<Any>{-2});
}
/// Pairs of rows i < j, put at both places of a matrix.
Any PDistBackward(Conversion& c) {
  Expr x = c.Tensor(1);
  auto n = AsConstInt(ShapeOf(x)[0]);
  if (!n) TVM_REFUSE(c, NotImplementedError) << "expected a constant number of rows";
  if (*n < 2) return c.Emit("zeros_like", x);
  PrimExpr rows = IntImm::Int64(*n);
  auto matrix = [&](const Expr& pairs, const char* name) {
    return c.Compute(name, {pairs}, [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
      te::Tensor values = in[0];
      return {te::compute(
          Array<PrimExpr>{rows, rows},
          [&](const Array<tir::Var>& at) {
            PrimExpr i = min(at[0], at[1]), j = max(at[0], at[1]);
            // Rows before i have n - 1, n - 2, … pairs.
            PrimExpr place = floordiv(i * (IntImm::Int64(2 * *n - 1) - i), IntImm::Int64(2)) + j -
                             i - IntImm::Int64(1);
            place = max(min(place, values->shape[0] - IntImm::Int64(1)), IntImm::Int64(0));
            return tir::Select(equal(i, j), MakeZero(values->dtype), values(place));
          },
          "matrix")};
    });
  };
  Expr grad = matrix(c.Tensor(0), "pairs_gradient"), distance = matrix(c.Tensor(3), "pairs");
  Expr gap = c.Emit("subtract", c.Emit("expand_dims", x, 1), c.Emit("expand_dims", x, 0));
  Expr all = DistanceGradient(c, grad, gap, c.Number(2), distance);
  return c.Emit("sum", all, Array<Any>{1});
}

// ---- windows ------------------------------------------------------------------------------------
/// Each gradient goes to where the maximum came from.
Expr ToMaxima(Conversion& c, const Expr& grad, const Expr& x, const Expr& indices, int64_t dims) {
  Dims shape = ShapeOf(x), pooled = ShapeOf(grad);
  Dims planes(shape.begin(), shape.end() - dims), flat = planes;
  Dims inner(shape.end() - dims, shape.end()), outer(pooled.end() - dims, pooled.end());
  planes.push_back(c.Simplify(Count(inner)));
  flat.push_back(c.Simplify(Count(outer)));
  Expr zeros = c.Emit("zeros", planes, TypeOf(x));
  Expr sums = c.Emit("scatter_elements", zeros, c.Reshape(indices, flat), c.Reshape(grad, flat),
                     static_cast<int64_t>(planes.size()) - 1, String("add"));
  return c.Reshape(sums, shape);
}
int64_t DimsOfWindow(const Conversion& c) { return c.op[0] - '0'; }
Any MaxPoolBackward(Conversion& c) {
  return ToMaxima(c, c.Tensor(0), c.Tensor(1), c.Tensor(7), DimsOfWindow(c));
}
Any AdaptiveMaxPoolBackward(Conversion& c) {
  return ToMaxima(c, c.Tensor(0), c.Tensor(1), c.Tensor(2), DimsOfWindow(c));
}
Any FractionalMaxPoolBackward(Conversion& c) {
  return ToMaxima(c, c.Tensor(0), c.Tensor(1), c.Tensor(4), DimsOfWindow(c));
}
/// Each element takes part in the windows o with o·stride - padding + k = its place.
Any AvgPoolBackward(Conversion& c) {
  Expr grad = c.Tensor(0), x = c.Tensor(1);
  size_t dims = DimsOfWindow(c);
  std::vector<int64_t> size = c.Ints(2, dims, 1), padding = c.Ints(4, dims, 0);
  std::vector<int64_t> stride = c.Ints(3).empty() ? size : c.Ints(3, dims, 1);
  bool counts_padding = c.Flag(6);
  auto num = [](int64_t value) { return IntImm::Int64(value); };
  return c.Compute("avg_pool_backward", {grad, x},
                   [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
                     te::Tensor g = in[0], data = in[1];
                     size_t lead = data->shape.size() - dims;
                     Array<tir::IterVar> window;
                     for (int64_t n : size) {
                       window.push_back(te::reduce_axis(Range::FromMinExtent(num(0), num(n))));
                     }
                     auto element = [&](const Array<tir::Var>& i) {
                       Array<PrimExpr> at(i.begin(), i.end() - dims);
                       PrimExpr inside = const_true(), count = num(1);
                       for (size_t d = 0; d < dims; ++d) {
                         const PrimExpr& extent = data->shape[lead + d];
                         PrimExpr p = i[lead + d] + num(padding[d]) - window[d]->var;
                         PrimExpr o = floordiv(p, num(stride[d]));
                         inside = inside && equal(floormod(p, num(stride[d])), num(0)) &&
                                  o >= num(0) && o < g->shape[lead + d];
                         PrimExpr begin = o * num(stride[d]) - num(padding[d]);
                         PrimExpr end = min(begin + num(size[d]), extent + num(padding[d]));
                         if (!counts_padding) {
                           begin = max(begin, num(0));
                           end = min(end, extent);
                         }
                         count = count * (end - begin);
                         at.push_back(max(min(o, g->shape[lead + d] - num(1)), num(0)));
                       }
                       count = c.Given(7) ? num(c.Int(7)) : max(count, num(1));
                       PrimExpr part = div(g(at), cast(g->dtype, count));
                       return te::sum(tir::Select(inside, part, MakeZero(g->dtype)), window);
                     };
                     return {te::compute(data->shape, element, "gradient")};
                   });
}

// ---- elements that were repeated, or taken ------------------------------------------------------
/// What was added to the ends goes to the first and the last element.
Any ReplicationPadBackward(Conversion& c) {
  Expr grad = c.Tensor(0), x = c.Tensor(1);
  std::vector<int64_t> pairs = c.Ints(2);
  int64_t rank = RankOf(x);
  for (size_t i = 0; 2 * i < pairs.size(); ++i) {
    int64_t axis = rank - 1 - static_cast<int64_t>(i), left = pairs[2 * i];
    PrimExpr n = ShapeOf(x)[axis];
    Expr place = c.Arange(ShapeOf(grad)[axis]);
    place = c.Emit("subtract", place, c.Const(left));
    Expr last = SizeTensor(c, c.Simplify(n - IntImm::Int64(1)));
    place = c.Emit("minimum", c.Emit("maximum", place, c.Const(0)), last);
    Dims shape(rank, IntImm::Int64(1)), result = ShapeOf(grad);
    shape.Set(axis, ShapeOf(grad)[axis]);
    place = c.BroadcastTo(c.Reshape(place, shape), ShapeOf(grad));
    result.Set(axis, n);
    Expr zeros = c.Emit("zeros", result, TypeOf(grad));
    grad = c.Emit("scatter_elements", zeros, place, grad, axis, String("add"));
  }
  return grad;
}
/// The elements where the mask holds, in order; zeros behind them.
Any MaskedScatterBackward(Conversion& c) {
  Expr grad = c.Tensor(0), mask = c.BroadcastTo(c.Tensor(1), ShapeOf(grad));
  Dims shape = c.Sizes(2);
  PrimExpr n = c.Simplify(Count(shape));
  DataType index = DataType::Int(64);
  Expr flags = c.Emit("reshape", mask, Array<Any>{-1});
  Expr place = c.Emit("subtract", c.Emit("cumsum", c.Cast(flags, index), 0, index), c.Const(1));
  Expr end = SizeTensor(c, n);
  place = c.Emit("where", flags, c.Emit("minimum", place, end), end);
  Expr zeros = c.Emit("zeros", Dims{c.Simplify(n + IntImm::Int64(1))}, TypeOf(grad));
  Expr flat = c.Emit("reshape", grad, Array<Any>{-1});
  Expr taken = c.Emit("scatter_elements", zeros, place, flat, 0, String("update"));
  return c.Reshape(c.Slice(taken, 0, IntImm::Int64(0), n), shape);
}

TVM_REGISTER() {
  Converter("_scaled_dot_product_flash_attention_for_cpu_backward.default",
            "grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask=None, "
            "scale=None",
            &AttentionBackward);
  Converter("_cdist_backward.default", "grad, x1, x2, p, cdist", &CDistBackward);
  Converter("_pdist_backward.default", "grad, self, p, pdist", &PDistBackward);
  const char* windows =
      "grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices";
  Converter("max_pool2d_with_indices_backward.default", windows, &MaxPoolBackward, "2");
  Converter("max_pool3d_with_indices_backward.default", windows, &MaxPoolBackward, "3");
  const char* adaptive = "grad_output, self, indices";
  Converter("adaptive_max_pool2d_backward.default", adaptive, &AdaptiveMaxPoolBackward, "2");
  Converter("adaptive_max_pool3d_backward.default", adaptive, &AdaptiveMaxPoolBackward, "3");
  const char* random = "grad_output, self, kernel_size, output_size, indices";
  Converter("fractional_max_pool2d_backward.default", random, &FractionalMaxPoolBackward, "2");
  Converter("fractional_max_pool3d_backward.default", random, &FractionalMaxPoolBackward, "3");
  const char* averages =
      "grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, "
      "divisor_override";
  Converter("avg_pool2d_backward.default", averages, &AvgPoolBackward, "2");
  Converter("avg_pool3d_backward.default", averages, &AvgPoolBackward, "3");
  Converter(
      "replication_pad1d_backward.default replication_pad2d_backward.default "
      "replication_pad3d_backward.default",
      "grad_output, self, padding", &ReplicationPadBackward);
  Converter("masked_scatter_backward.default", "grad_output, mask, sizes", &MaskedScatterBackward);
}

}  // namespace
}  // namespace tvm::frontend::torch
