// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools.
#include "converter.h"
#include "network.h"
#include "tvm/topi/nn.h"
#include "tvm/topi/reduction.h"

namespace tvm::frontend::torch {

Expr WithBatch(Conversion& c, const Expr& x, int64_t rank,
               const std::function<Expr(const Expr&)>& compute) {
  if (RankOf(x) == rank) return compute(x);
  if (RankOf(x) != rank - 1) {
    TVM_REFUSE(c, ValueError) << "expected a tensor of rank " << rank - 1 << " or " << rank
                              << ", got rank " << RankOf(x);
  }
  return c.Emit("squeeze", compute(c.Emit("expand_dims", x, 0)), Array<Any>{0});
}

namespace {

const char* DataLayout(int64_t dims) { return dims == 1 ? "NCW" : dims == 2 ? "NCHW" : "NCDHW"; }
String KernelLayout(int64_t dims, bool transposed) {
  return std::string(transposed ? "IO" : "OI") + (DataLayout(dims) + 2);
}
std::string OpName(const char* before, int64_t dims, const char* after = "") {
  return before + std::to_string(dims) + "d" + after;
}

Expr AddBias(Conversion& c, const Expr& x, const Optional<Expr>& bias, int64_t dims) {
  if (!bias.has_value()) return x;
  Array<Any> shape = {1, -1};
  for (int64_t i = 0; i < dims; ++i) shape.push_back(1);
  return c.Emit("add", x, c.Emit("reshape", *bias, shape));
}
}  // namespace

Expr Convolve(Conversion& c, const Expr& x, const Expr& weight, const ConvParams& p, int64_t dims) {
  DataType t = TypeOf(x);
  DataType sum = topi::SumType(t);
  Expr out = c.Emit(OpName("nn.conv", dims).c_str(), x, weight, AnyArray(p.stride),
                    AnyArray(p.padding), AnyArray(p.dilation), p.groups, String(DataLayout(dims)),
                    KernelLayout(dims, false), nullptr, sum);
  return c.Cast(out, t);
}
namespace {
/// A transposed convolution as a convolution: zeros between the elements of x, more of them around,
/// and the kernel mirrored.
Expr ConvolveDilated(Conversion& c, const Expr& x, const Expr& weight, const ConvParams& p,
                     int64_t dims) {
  Expr spread = c.Compute("dilate", {x}, [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
    Array<PrimExpr> strides = {1, 1};
    for (int64_t s : p.stride) strides.push_back(static_cast<int32_t>(s));
    return {topi::nn::dilate(in[0], strides)};
  });
  Dims kernel = ShapeOf(weight);
  ConvParams direct;
  direct.groups = p.groups;
  direct.dilation = p.dilation;
  direct.stride.assign(dims, 1);
  direct.padding.assign(dims, 0);
  Array<Any> around = {0, 0, 0, 0};
  for (int64_t i = 0; i < dims; ++i) {
    auto k = AsConstInt(kernel[2 + i]);
    if (!k) TVM_REFUSE(c, NotImplementedError) << "expected a kernel of constant size";
    int64_t reach = p.dilation[i] * (*k - 1) - p.padding[i];
    around.push_back(reach);
    around.push_back(reach + p.output_padding[i]);
  }
  Expr mirrored = weight;
  for (int64_t i = 0; i < dims; ++i) mirrored = c.Emit("flip", mirrored, 2 + i);
  // (I, O / g, …) to (O, I / g, …)
  PrimExpr g = IntImm::Int64(p.groups);
  Dims grouped = {g, floordiv(kernel[0], g), kernel[1]}, turned = {kernel[1] * g, grouped[1]};
  std::vector<int64_t> order = {0, 2, 1};
  for (int64_t i = 0; i < dims; ++i) {
    grouped.push_back(kernel[2 + i]);
    turned.push_back(kernel[2 + i]);
    order.push_back(3 + i);
  }
  mirrored = c.Reshape(c.Permute(c.Reshape(mirrored, grouped), order), turned);
  return Convolve(c, c.Emit("nn.pad", spread, around), mirrored, direct, dims);
}
}  // namespace

Expr ConvolveTransposed(Conversion& c, const Expr& x, const Expr& weight, const ConvParams& p,
                        int64_t dims) {
  bool is_dilated =
      std::any_of(p.dilation.begin(), p.dilation.end(), [](int64_t d) { return d != 1; });
  bool exceeds = false;  // more output padding than the operator allows
  for (int64_t i = 0; i < dims; ++i) exceeds |= p.output_padding[i] >= p.stride[i];
  if (dims == 3 || is_dilated || exceeds) return ConvolveDilated(c, x, weight, p, dims);
  DataType t = TypeOf(x);
  DataType sum = topi::SumType(t);
  Expr out = c.Emit(OpName("nn.conv", dims, "_transpose").c_str(), x, weight, AnyArray(p.stride),
                    AnyArray(p.padding), AnyArray(p.output_padding), AnyArray(p.dilation), p.groups,
                    String(DataLayout(dims)), KernelLayout(dims, true), nullptr, sum);
  return c.Cast(out, t);
}
namespace {

Any Convolution(Conversion& c, const ConvParams& params, bool transposed) {
  Expr weight = c.Tensor(1);
  int64_t dims = RankOf(weight) - 2;
  if (dims < 1 || dims > 3) {
    TVM_REFUSE(c, ValueError) << "expected a kernel of rank 3, 4 or 5, got rank " << RankOf(weight);
  }
  ConvParams p = params;
  for (auto* list : {&p.stride, &p.dilation, &p.output_padding, &p.padding}) {
    if (list->size() == 1) list->resize(dims, (*list)[0]);
  }
  return WithBatch(c, c.Tensor(0), dims + 2, [&](const Expr& x) {
    Expr out = (transposed ? ConvolveTransposed : Convolve)(c, x, weight, p, dims);
    return AddBias(c, out, c.OptionalTensor(2), dims);
  });
}
Any GeneralConvolution(Conversion& c) {
  return Convolution(c, {c.Ints(3), c.Ints(4), c.Ints(5), c.Ints(7), c.Int(8)}, c.Flag(6));
}
Any Conv(Conversion& c) {
  ConvParams p{c.Ints(3), {}, c.Ints(5), {0}, c.Int(6)};
  if (!c[4].try_cast<String>()) {
    p.padding = c.Ints(4);
    return Convolution(c, p, false);
  }
  int64_t dims = RankOf(c.Tensor(1)) - 2;
  p.padding.assign(2 * dims, 0);
  if (c.Text(4) == "same") {
    Dims kernel = ShapeOf(c.Tensor(1));
    for (int64_t i = 0; i < dims; ++i) {
      int64_t total = p.dilation[p.dilation.size() == 1 ? 0 : i] * (*AsConstInt(kernel[2 + i]) - 1);
      p.padding[i] = total / 2;
      p.padding[dims + i] = total - total / 2;
    }
  }
  return Convolution(c, p, false);
}
Any ConvTranspose(Conversion& c) {
  return Convolution(c, {c.Ints(3), c.Ints(4), c.Ints(7), c.Ints(5), c.Int(6)}, true);
}

// ---- pools --------------------------------------------------------------------------------------
int64_t DimsOfPool(const Conversion& c) { return c.op[0] - '0'; }

struct Window {
  std::vector<int64_t> size, stride, padding, dilation;
};
Window WindowOf(const Conversion& c, int64_t dims) {
  Window w;
  w.size = c.Ints(1, dims, 1);
  w.stride = c.Ints(2).empty() ? w.size : c.Ints(2, dims, 1);
  w.padding = c.Ints(3, dims, 0);
  w.dilation.assign(dims, 1);
  return w;
}
Any AvgPool(Conversion& c) {
  int64_t dims = DimsOfPool(c);
  Window w = WindowOf(c, dims);
  bool ceil_mode = c.Flag(4), include_pad = c.Flag(5);
  return WithBatch(c, c.Tensor(0), dims + 2, [&](const Expr& x) {
    const std::string name = OpName("nn.avg_pool", dims);
    String layout = DataLayout(dims);
    if (!c.Given(6)) {
      return c.Emit(name.c_str(), x, AnyArray(w.size), AnyArray(w.stride), AnyArray(w.padding),
                    AnyArray(w.dilation), ceil_mode, include_pad, layout);
    }
    // With another divisor: windows that are whole thanks to zeros, so that all have one count.
    std::vector<int64_t> widths(4, 0);
    double count = 1;
    for (int64_t i = 0; i < dims; ++i) {
      auto n = AsConstInt(ShapeOf(x)[2 + i]);
      if (!n) TVM_REFUSE(c, NotImplementedError) << "divisor_override: expected constant sizes";
      int64_t room = *n + 2 * w.padding[i] - w.size[i] + (ceil_mode ? w.stride[i] - 1 : 0);
      int64_t last = room / w.stride[i];
      if (ceil_mode && last * w.stride[i] >= *n + w.padding[i]) --last;
      widths.push_back(w.padding[i]);
      widths.push_back(std::max<int64_t>(last * w.stride[i] + w.size[i] - *n - w.padding[i], 0));
      count *= static_cast<double>(w.size[i]);
    }
    // Means of integers would be cut off before they are sums again.
    bool is_whole = IsIntegral(TypeOf(x));
    Expr real = is_whole ? c.Cast(x, DataType::Float(64)) : x;
    Expr padded = c.Emit("nn.pad", real, AnyArray(widths), String("constant"), 0.0);
    std::vector<int64_t> none(dims, 0);
    Expr mean = c.Emit(name.c_str(), padded, AnyArray(w.size), AnyArray(w.stride), AnyArray(none),
                       AnyArray(w.dilation), false, true, layout);
    if (!is_whole) return c.Emit("multiply", mean, c.Const(count / c.Number(6), TypeOf(x)));
    Expr sum = c.Emit("round", c.Emit("multiply", mean, c.Const(count, TypeOf(real))));
    return c.Cast(c.Emit("divide", sum, c.Const(c.Number(6), TypeOf(real))), TypeOf(x));
  });
}
Expr MaxPoolOf(Conversion& c, const Expr& x, const Window& w, bool ceil_mode, int64_t dims) {
  return c.Emit(OpName("nn.max_pool", dims).c_str(), x, AnyArray(w.size), AnyArray(w.stride),
                AnyArray(w.padding), AnyArray(w.dilation), ceil_mode, false,
                String(DataLayout(dims)));
}
Any MaxPool(Conversion& c) {
  int64_t dims = DimsOfPool(c);
  Window w = WindowOf(c, dims);
  w.dilation = c.Ints(4, dims, 1);
  return WithBatch(c, c.Tensor(0), dims + 2,
                   [&](const Expr& x) { return MaxPoolOf(c, x, w, c.Flag(5), dims); });
}
/// Where in the plane of its channel each maximum lies: the first of equal ones, and a NaN before
/// all numbers.
Expr MaxPoolIndices(Conversion& c, const Expr& x, const Expr& pooled, const Window& w,
                    int64_t dims) {
  return c.Compute("max_pool_indices", {x, pooled}, [&](const Array<te::Tensor>& in) {
    Array<tir::IterVar> window;
    for (int64_t i = 0; i < dims; ++i) {
      window.push_back(
          te::reduce_axis(Range::FromMinExtent(IntImm::Int64(0), IntImm::Int64(w.size[i]))));
    }
    te::Tensor data = in[0], most = in[1];
    te::Tensor index = te::compute(
        most->shape,
        [&](const Array<tir::Var>& i) {
          Array<PrimExpr> at = {i[0], i[1]};
          PrimExpr inside = const_true(), flat = IntImm::Int64(0);
          for (int64_t d = 0; d < dims; ++d) {
            PrimExpr extent = cast(DataType::Int(64), data->shape[2 + d]);
            PrimExpr p = cast(DataType::Int(64), i[2 + d]) * IntImm::Int64(w.stride[d]) +
                         cast(DataType::Int(64), window[d]->var) * IntImm::Int64(w.dilation[d]) -
                         IntImm::Int64(w.padding[d]);
            inside = inside && p >= IntImm::Int64(0) && p < extent;
            flat = flat * extent + p;
            at.push_back(p);
          }
          PrimExpr outside = max_value(DataType::Int(64));
          PrimExpr value = data(at);
          PrimExpr is_most = equal(value, most(i));
          if (value.dtype().is_float()) is_most = is_most || isnan(value);
          return te::min(if_then_else(inside, tir::Select(is_most, flat, outside), outside),
                         window);
        },
        "index");
    return Array<te::Tensor>{index};
  });
}
Any MaxPoolWithIndices(Conversion& c) {
  int64_t dims = DimsOfPool(c);
  Window w = WindowOf(c, dims);
  w.dilation = c.Ints(4, dims, 1);
  Expr x = c.Tensor(0);
  bool is_batch = RankOf(x) == dims + 2;
  if (!is_batch) x = c.Emit("expand_dims", x, 0);
  Expr pooled = MaxPoolOf(c, x, w, c.Flag(5), dims);
  Expr indices = c.Used(1) ? MaxPoolIndices(c, x, pooled, w, dims) : c.Emit("zeros_like", pooled);
  if (!is_batch) {
    pooled = c.Emit("squeeze", pooled, Array<Any>{0});
    indices = c.Emit("squeeze", indices, Array<Any>{0});
  }
  return c.BindTuple({pooled, indices});
}
Any AdaptiveAvgPool(Conversion& c) {
  int64_t dims = DimsOfPool(c);
  std::vector<int64_t> size = c.Ints(1, dims, 1);
  return WithBatch(c, c.Tensor(0), dims + 2, [&](const Expr& x) {
    return c.Emit(OpName("nn.adaptive_avg_pool", dims).c_str(), x, AnyArray(size),
                  String(DataLayout(dims)));
  });
}

TVM_REGISTER() {
  Converter("convolution.default",
            "input, weight, bias, stride, padding, dilation, transposed, output_padding, groups",
            &GeneralConvolution);
  Converter(
      "conv1d.default conv2d.default conv3d.default conv1d.padding conv2d.padding "
      "conv3d.padding",
      "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1", &Conv);
  Converter("conv_transpose1d.default conv_transpose2d.input conv_transpose3d.input",
            "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1",
            &ConvTranspose);
  const char* avg =
      "self, kernel_size, stride=[], padding=0, ceil_mode=False, "
      "count_include_pad=True, divisor_override=None";
  const char* max = "self, kernel_size, stride=[], padding=0, dilation=1, ceil_mode=False";
  Converter("avg_pool1d.default", avg, &AvgPool, "1");
  Converter("avg_pool2d.default", avg, &AvgPool, "2");
  Converter("avg_pool3d.default", avg, &AvgPool, "3");
  Converter("max_pool1d.default", max, &MaxPool, "1");
  Converter("max_pool2d.default", max, &MaxPool, "2");
  Converter("max_pool3d.default", max, &MaxPool, "3");
  Converter("max_pool2d_with_indices.default", max, &MaxPoolWithIndices, "2");
  Converter("max_pool3d_with_indices.default", max, &MaxPoolWithIndices, "3");
  Converter("adaptive_avg_pool1d.default", "self, output_size", &AdaptiveAvgPool, "1");
  Converter("adaptive_avg_pool2d.default _adaptive_avg_pool2d.default", "self, output_size",
            &AdaptiveAvgPool, "2");
  Converter("adaptive_avg_pool3d.default _adaptive_avg_pool3d.default", "self, output_size",
            &AdaptiveAvgPool, "3");
}

}  // namespace
}  // namespace tvm::frontend::torch
