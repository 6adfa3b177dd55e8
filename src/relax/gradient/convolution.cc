// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions, in the layouts NC… and OI… (IO… where they are transposed).
#include "relax/gradient/gradient.h"
#include "tvm/expr/op.h"

namespace tvm::relax {
namespace {
/// What the attributes of all convolutions have in common.
struct Conv {
  Ints strides, padding, dilation;
  int64_t groups;
  size_t spatial;
};
template <class Attrs>
Conv ConvOf(Grad& r, bool transposed) {
  auto* a = r.attrs<Attrs>();
  size_t spatial = a->strides.size();
  std::string dims = std::string("DHW").substr(3 - spatial);
  std::string kernel = (transposed ? "IO" : "OI") + dims;
  bool plain = std::string(a->data_layout) == "NC" + dims &&
               (a->out_layout.empty() || a->out_layout == a->data_layout) &&
               std::string(a->kernel_layout) == kernel;
  if (!plain) {
    r.Refuse("layouts other than NC" + dims + " and " + kernel +
             ", which a change of layouts gives");
  }
  return {a->strides, a->padding, a->dilation, a->groups, spatial};
}
std::string Name(const Conv& conv, const char* end) {
  return "nn.conv" + std::to_string(conv.spatial) + "d" + end;
}
/// Of the weight in out = conv(data, weight): the data, with groups of channels as batches,
/// convolved with the gradient of out; strides and dilation change places.
Value OfWeight(Grad& r, const Conv& conv, const Value& data, const Value& grad,
               const Value& weight) {
  Dims d = r.DimsOf(data), g = r.DimsOf(grad), w = r.DimsOf(weight);
  PrimExpr groups = Dim(conv.groups);
  Dims data_split = {d[0], groups, floordiv(d[1], groups)};
  Dims grad_split = {g[0], groups, floordiv(g[1], groups)};
  Dims data_flat = {floordiv(d[1], groups), groups * d[0]}, grad_flat = {g[1], g[0]};
  std::vector<int64_t> data_order = {2, 1, 0}, grad_order = {1, 2, 0}, back = {1, 0};
  for (size_t i = 0; i < conv.spatial; ++i) {
    data_split.push_back(d[i + 2]);
    grad_split.push_back(g[i + 2]);
    data_flat.push_back(d[i + 2]);
    grad_flat.push_back(g[i + 2]);
    data_order.push_back(static_cast<int64_t>(i) + 3);
    grad_order.push_back(static_cast<int64_t>(i) + 3);
    back.push_back(static_cast<int64_t>(i) + 2);
  }
  Value x = r.Reshaped(r.Permuted(r.Reshaped(data, data_split), data_order), data_flat);
  Value k = r.Reshaped(r.Permuted(r.Reshaped(grad, grad_split), grad_order), grad_flat);
  Value sums =
      r.F(Name(conv, "").c_str(), x, k, conv.dilation, conv.padding, conv.strides, conv.groups);
  Value result = r.Permuted(sums, back);
  // What the strides did not reach is not part of the weight.
  for (size_t i = 0; i < conv.spatial; ++i) {
    auto axis = static_cast<int64_t>(i) + 2;
    if (r.ConstDim(result, axis) != r.ConstDim(weight, axis))
      result = r.Slice(result, axis, Dim(0), w[axis]);
  }
  return result;
}
template <class Attrs>
Values OfConv(Grad& r) {
  Conv conv = ConvOf<Attrs>(r, false);
  Value data = r.x(0), weight = r.x(1), g = r.g();
  Array<int64_t> rest;  // by how much the transposed convolution is smaller than the data
  for (size_t i = 0; i < conv.spatial; ++i) {
    auto axis = static_cast<int64_t>(i) + 2;
    int64_t covered = (r.ConstDim(g, axis) - 1) * conv.strides[i]->value - conv.padding[i]->value -
                      conv.padding[i + conv.spatial]->value +
                      conv.dilation[i]->value * (r.ConstDim(weight, axis) - 1) + 1;
    rest.push_back(r.ConstDim(data, axis) - covered);
  }
  Value of_data = r.F(Name(conv, "_transpose").c_str(), g, weight, conv.strides, conv.padding, rest,
                      conv.dilation, conv.groups);
  return {of_data, OfWeight(r, conv, data, g, weight)};
}
/// Elements along the spatial axes, `strides` apart, with zeros behind each.
Value Spaced(Grad& r, const Conv& conv, Value value) {
  for (size_t i = 0; i < conv.spatial; ++i) {
    int64_t stride = conv.strides[i]->value, axis = static_cast<int64_t>(i) + 2;
    if (stride == 1) continue;
    Dims dims = r.DimsOf(value);
    Value apart = r.F("expand_dims", value, axis + 1);
    Array<int64_t> width(2 * (dims.size() + 1), 0);
    width.Set(2 * (axis + 1) + 1, stride - 1);
    dims.Set(axis, dims[axis] * Dim(stride));
    value = r.Reshaped(r.F("nn.pad", apart, width), dims);
  }
  return value;
}
/// There is no transposed convolution of volumes: the spaced gradient, convolved with the weight
/// turned round.
Values OfConv3D(Grad& r) {
  Conv conv = ConvOf<Conv3DAttrsObj>(r, false);
  Value data = r.x(0), weight = r.x(1);
  Dims w = r.DimsOf(weight);
  PrimExpr groups = Dim(conv.groups), outputs = floordiv(w[0], groups);
  Value turned = r.Reshaped(weight, {groups, outputs, w[1], w[2], w[3], w[4]});
  turned = r.Reshaped(r.Permuted(turned, {0, 2, 1, 3, 4, 5}),
                      {groups * w[1], outputs, w[2], w[3], w[4]});
  for (int64_t axis : {2, 3, 4}) turned = r.F("flip", turned, axis);
  Value spaced = Spaced(r, conv, r.g());
  Array<int64_t> begins, padding, ones;
  for (size_t i = 0; i < conv.spatial; ++i) {
    auto axis = static_cast<int64_t>(i) + 2;
    int64_t reach = conv.dilation[i]->value * (r.ConstDim(weight, axis) - 1);
    int64_t begin = reach - conv.padding[i]->value;
    int64_t size = r.ConstDim(spaced, axis);
    int64_t end = r.ConstDim(data, axis) + reach - size - begin;
    // What would be padded by less than nothing is cut off.
    int64_t from = std::max<int64_t>(-begin, 0), to = size + std::min<int64_t>(end, 0);
    if (from > 0 || to < size) spaced = r.Slice(spaced, axis, Dim(from), Dim(to));
    begins.push_back(std::max<int64_t>(begin, 0));
    padding.push_back(std::max<int64_t>(end, 0));
    ones.push_back(1);
  }
  begins.insert(begins.end(), padding.begin(), padding.end());
  Value of_data = r.F("nn.conv3d", spaced, turned, ones, begins, conv.dilation, conv.groups);
  return {of_data, OfWeight(r, conv, data, r.g(), weight)};
}
template <class Attrs>
Values OfConvTranspose(Grad& r) {
  Conv conv = ConvOf<Attrs>(r, true);
  Value of_data = r.F(Name(conv, "").c_str(), r.g(), r.x(1), conv.strides, conv.padding,
                      conv.dilation, conv.groups);
  return {of_data, OfWeight(r, conv, r.g(), r.x(0), r.x(1))};
}

TVM_REGISTER() {
  for (const GradientRow& row :
       {GradientRow{"relax.nn.conv1d", &OfConv<Conv1DAttrsObj>},
        {"relax.nn.conv2d", &OfConv<Conv2DAttrsObj>},
        {"relax.nn.conv3d", &OfConv3D},
        {"relax.nn.conv1d_transpose", &OfConvTranspose<Conv1DTransposeAttrsObj>},
        {"relax.nn.conv2d_transpose", &OfConvTranspose<Conv2DTransposeAttrsObj>}})
    RegisterGradient(row);
}
}  // namespace
}  // namespace tvm::relax
