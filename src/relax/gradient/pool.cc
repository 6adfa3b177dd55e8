// SPDX-License-Identifier: Apache-2.0
// Gradients of pools of 1 to 3 dimensions.
#include "relax/gradient/gradient.h"
#include "tvm/expr/op.h"

namespace tvm::relax {
namespace {
/// A pool of two dimensions: what its backward operator takes beside the tensors.
struct Pool {
  bool is_max;
  Ints size, strides, padding, dilation;
  bool ceil_mode, count_include_pad;
  String layout;
  Value Forward(Grad& r, const Value& data) const {
    return Run(r, is_max ? "nn.max_pool2d" : "nn.avg_pool2d", data);
  }
  Value Backward(Grad& r, const Value& g, const Value& data) const {
    return Run(r, is_max ? "grad.max_pool2d_backward" : "grad.avg_pool2d_backward", g, data);
  }

 private:
  template <class... T>
  Value Run(Grad& r, const char* op, const T&... tensors) const {
    return r.F(op, tensors..., size, strides, padding, dilation, ceil_mode, count_include_pad,
               layout, layout);
  }
};
IntImm Number(int64_t value) { return IntImm(DataType::Int(64), value); }
template <class Attrs>
Pool PoolOf(Grad& r, const Attrs* a, const String& layout, const std::vector<int64_t>& dims) {
  if (!a->out_layout.empty() && a->out_layout != a->layout)
    r.Refuse("a result in another layout than the data");
  bool is_max = std::string(r.call->op.as<OpObj>()->name).find("max") != std::string::npos;
  auto count = static_cast<int64_t>(a->pool_size.size());
  // A dimension that is not pooled has windows of one element.
  auto pick = [&](const Ints& from, int64_t other, int64_t offset) {
    Ints picked;
    for (int64_t dim : dims) picked.push_back(dim < 0 ? Number(other) : from[dim + offset]);
    return picked;
  };
  Ints padding = pick(a->padding, 0, 0);
  for (const IntImm& end : pick(a->padding, 0, count)) padding.push_back(end);
  return {is_max,
          pick(a->pool_size, 1, 0),
          pick(a->strides, 1, 0),
          padding,
          pick(a->dilation, 1, 0),
          a->ceil_mode,
          a->count_include_pad,
          layout};
}
Values OfPool2D(Grad& r) {
  auto* attrs = r.attrs<Pool2DAttrsObj>();
  return {PoolOf(r, attrs, attrs->layout, {0, 1}).Backward(r, r.g(), r.x(0))};
}
/// A row is an image of one line.
Values OfPool1D(Grad& r) {
  auto* attrs = r.attrs<Pool1DAttrsObj>();
  std::string layout(attrs->layout);
  auto at = static_cast<int64_t>(layout.find('W'));
  if (static_cast<int64_t>(layout.size()) != r.x(0).ndim()) r.Refuse("a layout in blocks");
  layout.insert(at, "H");
  auto image = [&](const Value& v) { return r.F("expand_dims", v, at); };
  Pool pool = PoolOf(r, attrs, layout, {-1, 0});
  return {r.ReshapeLike(pool.Backward(r, image(r.g()), image(r.x(0))), r.x(0))};
}
/// Windows of a volume are windows over the depth of windows over its layers: largest elements, and
/// means too, since how many elements a window has is a product over the dimensions.
Values OfPool3D(Grad& r) {
  auto* attrs = r.attrs<Pool3DAttrsObj>();
  if (attrs->layout != "NCDHW") r.Refuse("the layout " + std::string(attrs->layout));
  Value x = r.x(0);
  Dims d = r.DimsOf(x), g = r.DimsOf(r.g());
  Pool layers = PoolOf(r, attrs, "NCHW", {1, 2}), depth = PoolOf(r, attrs, "NCHW", {0, -1});
  Value images = r.Reshaped(x, {d[0], d[1] * d[2], d[3], d[4]});
  Value pooled = layers.Forward(r, images);
  Dims stacked = {d[0], d[1], d[2], g[3] * g[4]};
  Value of_depth = depth.Backward(r, r.Reshaped(r.g(), {g[0], g[1], g[2], g[3] * g[4]}),
                                  r.Reshaped(pooled, stacked));
  return {r.ReshapeLike(layers.Backward(r, r.ReshapeLike(of_depth, pooled), images), x)};
}
/// Each element of a window gets an equal share; where windows differ in size, by a matrix whose
/// rows are the windows.
template <class Attrs>
Values OfAdaptivePool(Grad& r) {
  Value x = r.x(0), spread = r.g();
  std::string layout(r.attrs<Attrs>()->layout);
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (layout[i] == 'N' || layout[i] == 'C') continue;
    int64_t in = r.ConstDim(x, i), out = r.ConstDim(r.g(), i);
    if (in == out) continue;
    if (in % out == 0) {
      spread =
          r.F("repeat", spread, in / out, i) * (static_cast<double>(out) / static_cast<double>(in));
      continue;
    }
    Value rows = r.Reshaped(r.F("eye", in, in, 0, x.dtype()), {Dim(in), Dim(1), Dim(in)});
    Value windows = r.F("nn.adaptive_avg_pool1d", rows, Ints{Number(out)}, "NCW");
    spread = r.Multiplied(spread, i, r.Reshaped(windows, {Dim(in), Dim(out)}));
  }
  return {spread};
}
/// Of the gradient's gradient, in which a mean is linear.
Values OfAvgPoolBackward(Grad& r) {
  auto* attrs = r.attrs<Pool2DAttrsObj>();
  Pool pool = PoolOf(r, attrs, attrs->layout, {0, 1});
  pool.is_max = false;
  return {pool.Forward(r, r.g()), {}};
}

TVM_REGISTER() {
  for (const GradientRow& row :
       {GradientRow{"relax.nn.max_pool1d", &OfPool1D},
        {"relax.nn.avg_pool1d", &OfPool1D},
        {"relax.nn.max_pool2d", &OfPool2D},
        {"relax.nn.avg_pool2d", &OfPool2D},
        {"relax.nn.max_pool3d", &OfPool3D},
        {"relax.nn.avg_pool3d", &OfPool3D},
        {"relax.nn.adaptive_avg_pool1d", &OfAdaptivePool<AdaptivePool1DAttrsObj>},
        {"relax.nn.adaptive_avg_pool2d", &OfAdaptivePool<AdaptivePool2DAttrsObj>},
        {"relax.nn.adaptive_avg_pool3d", &OfAdaptivePool<AdaptivePool3DAttrsObj>},
        {"relax.grad.avg_pool2d_backward", &OfAvgPoolBackward}})
    RegisterGradient(row);
}
}  // namespace
}  // namespace tvm::relax
