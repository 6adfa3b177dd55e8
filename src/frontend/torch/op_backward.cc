// SPDX-License-Identifier: Apache-2.0
// Gradients that PyTorch's own differentiation leaves as operators.
#include "converter.h"
#include "network.h"
#include "tvm/topi/reduction.h"

namespace tvm::frontend::torch {
namespace {

/// Whether that gradient is wanted: an entry of output_mask.
bool Wanted(const Conversion& c, size_t mask, size_t i) { return c.Ints(mask)[i] != 0; }

// ---- convolution --------------------------------------------------------------------------------
/// The first elements along the spatial axes, as many as there are in `shape`.
Expr CutTo(Conversion& c, Expr x, const Dims& shape) {
  for (size_t i = 2; i < shape.size(); ++i) {
    if (c.Equal(ShapeOf(x)[i], shape[i])) continue;
    x = c.Slice(x, static_cast<int64_t>(i), IntImm::Int64(0), shape[i]);
  }
  return x;
}
/// The gradient of a convolution in its kernel: the input convolved with the result's gradient,
/// strides and dilations exchanged, batches as channels.
Expr KernelGradient(Conversion& c, const Expr& x, const Expr& grad, const Dims& kernel,
                    const ConvParams& p, int64_t dims) {
  PrimExpr g = IntImm::Int64(p.groups);
  Dims sizes = ShapeOf(x), outputs = ShapeOf(grad);
  // x: (N, g, C / g, …) to (C / g, g * N, …)
  Dims split = {sizes[0], g, c.Simplify(floordiv(sizes[1], g))};
  Dims merged = {split[2], c.Simplify(g * sizes[0])};
  std::vector<int64_t> order = {2, 1, 0}, swap = {1, 0};
  for (int64_t i = 0; i < dims; ++i) {
    split.push_back(sizes[2 + i]);
    merged.push_back(sizes[2 + i]);
    order.push_back(3 + i);
    swap.push_back(2 + i);
  }
  Expr data = c.Reshape(c.Permute(c.Reshape(x, split), order), merged);
  ConvParams exchanged = p;
  std::swap(exchanged.stride, exchanged.dilation);
  Expr result = Convolve(c, data, c.Permute(grad, swap), exchanged, dims);
  // Rows that the strides had left over give more than the kernel has.
  return c.Permute(CutTo(c, result, kernel), swap);
}
/// How much larger than the least a transposed convolution's result shall be.
std::vector<int64_t> OutputPadding(Conversion& c, const Dims& wanted, const Dims& from,
                                   const Dims& kernel, const ConvParams& p, int64_t dims) {
  std::vector<int64_t> padding;
  for (int64_t i = 0; i < dims; ++i) {
    PrimExpr least = (from[2 + i] - IntImm::Int64(1)) * IntImm::Int64(p.stride[i]) -
                     IntImm::Int64(2 * p.padding[i]) +
                     IntImm::Int64(p.dilation[i]) * (kernel[2 + i] - IntImm::Int64(1)) +
                     IntImm::Int64(1);
    auto more = AsConstInt(c.Simplify(wanted[2 + i] - least));
    if (!more) TVM_REFUSE(c, NotImplementedError) << "expected constant sizes of images";
    padding.push_back(*more);
  }
  return padding;
}
Any ConvolutionBackward(Conversion& c) {
  Expr grad = c.Tensor(0), x = c.Tensor(1), weight = c.Tensor(2);
  int64_t dims = RankOf(weight) - 2;
  bool transposed = c.Flag(7);
  ConvParams p{c.Ints(4), c.Ints(5), c.Ints(6), std::vector<int64_t>(dims, 0), c.Int(9)};
  for (auto* list : {&p.stride, &p.padding, &p.dilation}) {
    if (list->size() == 1) list->resize(dims, (*list)[0]);
  }
  Dims kernel = ShapeOf(weight);
  Array<Any> results = {nullptr, nullptr, nullptr};
  if (Wanted(c, 10, 0)) {
    if (transposed) {
      // What was added to the result beyond the least size gives too much.
      Expr result = Convolve(c, grad, weight, p, dims);
      results.Set(0, CutTo(c, result, ShapeOf(x)));
    } else {
      ConvParams back = p;
      back.output_padding = OutputPadding(c, ShapeOf(x), ShapeOf(grad), kernel, p, dims);
      results.Set(0, ConvolveTransposed(c, grad, weight, back, dims));
    }
  }
  if (Wanted(c, 10, 1)) {
    results.Set(1,
                KernelGradient(c, transposed ? grad : x, transposed ? x : grad, kernel, p, dims));
  }
  if (Wanted(c, 10, 2)) {
    std::vector<int64_t> axes = {0};
    for (int64_t i = 0; i < dims; ++i) axes.push_back(2 + i);
    results.Set(2, c.Emit("sum", grad, AnyArray(axes)));
  }
  return results;
}

// ---- normalisation ------------------------------------------------------------------------------
/// The gradient in x of (x - mean) · rstd · weight over some axes.
Expr NormGradient(Conversion& c, const Expr& scaled, const Expr& normal, const Expr& rstd,
                  const std::vector<int64_t>& axes) {
  Expr mean = c.Emit("mean", scaled, AnyArray(axes), true);
  Expr along = c.Emit("mean", c.Emit("multiply", scaled, normal), AnyArray(axes), true);
  Expr rest = c.Emit("subtract", scaled, mean);
  rest = c.Emit("subtract", rest, c.Emit("multiply", normal, along));
  return c.Emit("multiply", rest, rstd);
}
/// An argument in the type of sums: under autocast parameters are wider than what they scale.
Expr WideArg(Conversion& c, size_t i) {
  return c.Cast(c.Tensor(i), topi::SumType(TypeOf(c.Tensor(i))));
}
/// A gradient in the type of what it is the gradient of.
Expr InTypeOf(Conversion& c, size_t i, const Expr& gradient) {
  return c.Cast(gradient, TypeOf(c.Tensor(i)));
}
Any LayerNormBackward(Conversion& c) {
  Expr grad = WideArg(c, 0), x = WideArg(c, 1), mean = WideArg(c, 3), rstd = WideArg(c, 4);
  int64_t rank = RankOf(x), inner = c.Sizes(2).size();
  std::vector<int64_t> axes, outer = Axes(rank - inner);
  for (int64_t i = rank - inner; i < rank; ++i) axes.push_back(i);
  Expr normal = c.Emit("multiply", c.Emit("subtract", x, mean), rstd);
  Array<Any> results = {nullptr, nullptr, nullptr};
  if (Wanted(c, 7, 0)) {
    Expr scaled = c.Given(5) ? c.Emit("multiply", grad, WideArg(c, 5)) : grad;
    results.Set(0, InTypeOf(c, 1, NormGradient(c, scaled, normal, rstd, axes)));
  }
  auto total = [&](const Expr& e) { return outer.empty() ? e : c.Emit("sum", e, AnyArray(outer)); };
  if (Wanted(c, 7, 1) && c.Given(5)) {
    results.Set(1, InTypeOf(c, 5, total(c.Emit("multiply", grad, normal))));
  }
  if (Wanted(c, 7, 2) && c.Given(6)) results.Set(2, InTypeOf(c, 6, total(grad)));
  return results;
}
Any GroupNormBackward(Conversion& c) {
  Expr grad = WideArg(c, 0), x = WideArg(c, 1);
  Dims shape = ShapeOf(x);
  PrimExpr groups = IntImm::Int64(c.Int(8));
  PrimExpr inner = floordiv(Count(Dims(shape.begin() + 1, shape.end())), groups);
  Dims grouped = {shape[0], groups, c.Simplify(inner)};
  Dims statistics = {shape[0], groups, IntImm::Int64(1)};
  Expr mean = c.Reshape(WideArg(c, 2), statistics), rstd = c.Reshape(WideArg(c, 3), statistics);
  Expr centred = c.Emit("subtract", c.Reshape(x, grouped), mean);
  Expr normal = c.Emit("multiply", centred, rstd);
  Array<Any> results = {nullptr, nullptr, nullptr};
  if (Wanted(c, 9, 0)) {
    Expr scaled = grad;
    if (c.Given(4)) {
      Dims channels(shape.size(), IntImm::Int64(1));
      channels.Set(1, shape[1]);
      scaled = c.Emit("multiply", grad, c.Reshape(WideArg(c, 4), channels));
    }
    Expr gradient = NormGradient(c, c.Reshape(scaled, grouped), normal, rstd, {2});
    results.Set(0, InTypeOf(c, 1, c.Reshape(gradient, shape)));
  }
  std::vector<int64_t> others = Axes(shape.size());
  others.erase(others.begin() + 1);
  auto of_parameters = [&](const Expr& e) { return InTypeOf(c, c.Given(4) ? 4 : 1, e); };
  if (Wanted(c, 9, 1)) {
    Expr product = c.Emit("multiply", grad, c.Reshape(normal, shape));
    results.Set(1, of_parameters(c.Emit("sum", product, AnyArray(others))));
  }
  if (Wanted(c, 9, 2)) results.Set(2, of_parameters(c.Emit("sum", grad, AnyArray(others))));
  return results;
}

// ---- pools and embeddings -----------------------------------------------------------------------
/// Each element of the input takes part in the windows o with o·in // out ≤ i < ceil((o+1)·in/out).
Any AdaptiveAvgPoolBackward(Conversion& c) {
  size_t dims = c.op[0] - '0';
  return c.Compute(
      "adaptive_avg_pool_backward", {c.Tensor(0), c.Tensor(1)},
      [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
        te::Tensor grad = in[0], x = in[1];
        size_t rank = x->shape.size();
        auto wide = [](const PrimExpr& e) { return cast(DataType::Int(64), e); };
        Array<tir::IterVar> windows;
        for (size_t i = rank - dims; i < rank; ++i) {
          windows.push_back(
              te::reduce_axis(Range::FromMinExtent(IntImm::Int64(0), wide(grad->shape[i]))));
        }
        return {te::compute(
            x->shape,
            [&](const Array<tir::Var>& i) {
              Array<PrimExpr> at(i.begin(), i.end() - dims);
              PrimExpr inside = const_true(), count = IntImm::Int64(1);
              for (size_t d = 0; d < dims; ++d) {
                PrimExpr o = wide(windows[d]->var), n = wide(x->shape[rank - dims + d]),
                         m = wide(grad->shape[rank - dims + d]), p = wide(i[rank - dims + d]);
                PrimExpr begin = floordiv(o * n, m);
                PrimExpr end = ceildiv((o + IntImm::Int64(1)) * n, m);
                inside = inside && begin <= p && p < end;
                count = count * (end - begin);
                at.push_back(o);
              }
              PrimExpr part = div(grad(at), cast(grad->dtype, count));
              return te::sum(tir::Select(inside, part, MakeConst(grad->dtype, 0)), windows);
            },
            "gradient")};
      });
}
Any EmbeddingBackward(Conversion& c) {
  Expr grad = c.Tensor(0), indices = c.Tensor(1);
  if (c.Flag(4)) TVM_REFUSE(c, NotImplementedError) << "scale_grad_by_freq: expected False";
  PrimExpr width = ShapeOf(grad)[RankOf(grad) - 1], n = c.Simplify(Count(ShapeOf(indices)));
  Expr rows = c.Reshape(grad, {n, width}), flat = c.Reshape(indices, {n, IntImm::Int64(1)});
  if (c.Int(3) >= 0) {
    Expr counted = c.Emit("not_equal", flat, c.As(c[3], TypeOf(indices)));
    rows = c.Emit("where", counted, rows, c.Const(0.0, TypeOf(grad)));
  }
  Expr zeros = c.Emit("zeros", Dims{AsSize(c[2]), width}, TypeOf(grad));
  Expr at = c.BroadcastTo(flat, {n, width});
  return c.Emit("scatter_elements", zeros, at, rows, 0, String("add"));
}

TVM_REGISTER() {
  Converter("convolution_backward.default",
            "grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, "
            "output_padding, groups, output_mask",
            &ConvolutionBackward);
  Converter("native_layer_norm_backward.default",
            "grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask",
            &LayerNormBackward);
  Converter("native_group_norm_backward.default",
            "grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask",
            &GroupNormBackward);
  Converter("_adaptive_avg_pool2d_backward.default", "grad_output, self", &AdaptiveAvgPoolBackward,
            "2");
  Converter("_adaptive_avg_pool3d_backward.default", "grad_output, self", &AdaptiveAvgPoolBackward,
            "3");
  Converter("embedding_dense_backward.default",
            "grad_output, indices, num_weights, padding_idx, scale_grad_by_freq",
            &EmbeddingBackward);
}

}  // namespace
}  // namespace tvm::frontend::torch
