// SPDX-License-Identifier: Apache-2.0
// Convolutions of any number of dimensions, in any order of axes, in groups; transposed ones.
#include "topi/nn/spatial.h"
#include "tvm/topi/nn.h"
#include "tvm/topi/transform.h"

namespace tvm::topi::nn {
using namespace tir;
namespace {
std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}
/// Sizes and steps of windows, by spatial axis.
struct Windows {
  Index kernel, dilated, strides, dilation;  // dilated: what a window spans
  Array<IterVar> taps;                       // through a window
  Windows(const char* op, const Tensor& kernel_tensor, const SpatialAxes& axes,
          const ConvOptions& options) {
    strides = Exprs(op, "strides", options.strides, axes.size());
    dilation = Exprs(op, "dilation", options.dilation, axes.size());
    for (size_t k = 0; k < axes.size(); ++k) {
      const PrimExpr& size = kernel_tensor->shape[axes.axes[k]];
      PrimExpr one = MakeConst(size.dtype(), 1);
      kernel.push_back(size);
      strides[k] = tvm::cast(size.dtype(), strides[k]);
      dilation[k] = tvm::cast(size.dtype(), dilation[k]);
      dilated.push_back(Simplified((size - one) * dilation[k] + one));
      taps.push_back(Along(size, kNames[axes.size() - 1][k]));
    }
  }
  /// How many there are in the padded data.
  PrimExpr Count(size_t k, const PrimExpr& extent) const {
    PrimExpr count = floordiv(extent - dilated[k], strides[k]);
    return Simplified(count + MakeConst(count.dtype(), 1));
  }
  /// Where a tap of the window of a result at `i` reads along a spatial axis.
  PrimExpr Read(size_t k, const PrimExpr& i) const {
    return i * strides[k] + taps[k]->var * dilation[k];
  }

 private:
  static constexpr const char* kNames[][3] = {{"rx"}, {"ry", "rx"}, {"rz", "ry", "rx"}};
};
/// The sum of products that is an element of the result.
PrimExpr SumOfProducts(const Tensor& data, const Index& source, const Tensor& kernel,
                       const Index& weight, const ConvOptions& options,
                       const Array<IterVar>& iters) {
  return te::sum(
      AsType(options.out_dtype, At(data, source)) * AsType(options.out_dtype, At(kernel, weight)),
      iters);
}
/// Where the axes of data and kernel are, what windows see, and how data is padded.
struct Operands {
  SpatialAxes axes;
  std::string op;  // conv2d
  SpatialAxes kernel_axes;
  Windows windows;
  Padding padding;
  size_t c, o, in;
  /// `suffix` is what the name has behind "conv2d", `letters` are those of the kernel's channels.
  Operands(const Tensor& data, const Tensor& kernel, const ConvOptions& options,
           const std::string& suffix, const char* letters)
      : axes(("conv" + suffix).c_str(), options.data_layout, "NC", data),
        op("conv" + std::to_string(axes.size()) + "d" + suffix),
        kernel_axes(KernelAxes(kernel, options, letters)),
        windows(op.c_str(), kernel, kernel_axes, options),
        padding(op.c_str(), options.padding, windows.dilated),
        c(axes.At('C')),
        o(kernel_axes.At('O')),
        in(kernel_axes.At('I')) {
    CheckGroups("channels", data->shape[c], options.groups);
  }
  void CheckGroups(const char* what, const PrimExpr& count, int64_t groups) const {
    auto n = AsConstInt(count);
    if (groups < 1 || (n && *n % groups != 0)) {
      Complain(op.c_str(), std::string("groups that divide the ") + what,
               std::to_string(groups) + " for " + Text({count}));
    }
  }

 private:
  SpatialAxes KernelAxes(const Tensor& kernel, const ConvOptions& options, const char* letters) {
    SpatialAxes found(op.c_str(), options.kernel_layout, letters, kernel);
    if (found.size() != axes.size())
      Complain(op.c_str(), "a kernel with as many spatial axes", Text(kernel->shape));
    return found;
  }
};
/// A convolution of data that is padded already. A channel of the result of a group reads channels
/// of that group alone; `channel` names the iterator over them.
Tensor Convolved(const Operands& at, const Tensor& padded, const Tensor& kernel,
                 const ConvOptions& options, const char* channel, const std::string& name) {
  const PrimExpr &inputs = kernel->shape[at.in], &outputs = kernel->shape[at.o];
  PrimExpr groups = MakeConst(outputs.dtype(), options.groups);
  PrimExpr each = Simplified(floordiv(outputs, groups));
  Shape shape = padded->shape;
  shape.Set(at.c, outputs);
  for (size_t k = 0; k < at.axes.size(); ++k) {
    size_t axis = at.axes.axes[k];
    shape.Set(axis, at.windows.Count(k, padded->shape[axis]));
    if (auto n = AsConstInt(shape[axis]); n && *n < 0)
      Complain(at.op.c_str(), "windows within the padded data", Text(padded->shape));
  }
  IterVar rc = Along(inputs, channel);
  Array<IterVar> iters = at.windows.taps;
  iters.insert(iters.begin(), rc);
  auto element = [&](const Index& i) {
    Index source = i, weight(kernel->shape.size());
    PrimExpr first = options.groups == 1 ? MakeZero(i[at.c].dtype())
                                         : PrimExpr(floordiv(i[at.c], each) * inputs);
    source[at.c] = first + rc->var;
    weight[at.o] = i[at.c];
    weight[at.in] = rc->var;
    for (size_t k = 0; k < at.axes.size(); ++k) {
      source[at.axes.axes[k]] = at.windows.Read(k, i[at.axes.axes[k]]);
      weight[at.kernel_axes.axes[k]] = at.windows.taps[k]->var;
    }
    return SumOfProducts(padded, source, kernel, weight, options, iters);
  };
  return Compute(shape, element, name, kCommReduce);
}
}  // namespace

Tensor conv(const Tensor& data, const Tensor& kernel, const ConvOptions& options) {
  Operands at(data, kernel, options, "", "OI");
  at.CheckGroups("outputs", kernel->shape[at.o], options.groups);
  const PrimExpr& inputs = kernel->shape[at.in];
  if (DifferentDim(data->shape[at.c], inputs * MakeConst(inputs.dtype(), options.groups))) {
    Complain(at.op.c_str(), "as many channels in data and kernel (times groups)",
             Text(data->shape) + " and " + Text(kernel->shape));
  }
  Tensor padded = PadSpatial(data, at.axes, at.padding, MakeZero(data->dtype));
  std::string prefix = options.groups > 1 ? "group_" : "";
  return Convolved(at, padded, kernel, options, "rc",
                   prefix + at.op + "_" + Lower(options.data_layout));
}

Tensor conv_blocked(const Tensor& data, const Tensor& kernel, const ConvOptions& options) {
  constexpr const char* kOp = "conv_blocked";
  SpatialAxes axes(kOp, options.data_layout, "NC", data, true);
  SpatialAxes kernel_axes(kOp, options.kernel_layout, "OI", kernel, true);
  Windows windows(kOp, kernel, kernel_axes, options);
  Padding padding(kOp, options.padding, windows.dilated);
  size_t c = axes.At('C'), block = axes.At('c'), o = kernel_axes.At('O'), in = kernel_axes.At('I');
  bool has_block = axes.Has('c'), is_depthwise = options.groups > 1;
  PrimExpr inputs = kernel->shape[in], inside = MakeConst(inputs.dtype(), 1);
  if (kernel_axes.Has('i')) inside = kernel->shape[kernel_axes.At('i')];
  bool fits = kernel_axes.Has('o') && kernel_axes.size() == axes.size() &&
              (!has_block || block == axes.letters.size() - 1);
  if (is_depthwise) {
    fits = fits && has_block && IsOne(inputs) && IsOne(inside) &&
           !DifferentDim(data->shape[c], kernel->shape[o]) &&
           !DifferentDim(data->shape[block], kernel->shape[kernel_axes.At('o')]);
  } else {
    fits = fits && !DifferentDim(data->shape[c], inputs) &&
           (has_block ? !DifferentDim(data->shape[block], inside) : IsOne(inside));
  }
  if (!fits) {
    Complain(kOp, "a kernel in the blocks of " + Text(data->shape) + " and of the result",
             Text(kernel->shape));
  }
  Tensor padded = PadSpatial(data, axes, padding, MakeZero(data->dtype));
  Shape shape = data->shape;
  shape.Set(c, kernel->shape[o]);
  for (size_t k = 0; k < axes.size(); ++k)
    shape.Set(axes.axes[k], windows.Count(k, padded->shape[axes.axes[k]]));
  if (has_block) shape.pop_back();
  shape.push_back(kernel->shape[kernel_axes.At('o')]);
  // Channels inside of a block last: so they lie in the kernel.
  IterVar rc = Along(inputs, "rc"), ri = Along(inside, "ri");
  Array<IterVar> iters = windows.taps;
  iters.insert(iters.begin(), rc);
  if (kernel_axes.Has('i')) iters.push_back(ri);
  auto element = [&](const Index& i) {
    Index source(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(data->shape.size()));
    Index weight(kernel->shape.size());
    source[c] = is_depthwise ? i[c] : PrimExpr(rc->var);
    if (has_block) source[block] = is_depthwise ? i.back() : PrimExpr(ri->var);
    weight[o] = i[c];
    weight[kernel_axes.At('o')] = i.back();
    weight[in] = rc->var;
    if (kernel_axes.Has('i')) weight[kernel_axes.At('i')] = ri->var;
    for (size_t k = 0; k < axes.size(); ++k) {
      source[axes.axes[k]] = windows.Read(k, i[axes.axes[k]]);
      weight[kernel_axes.axes[k]] = windows.taps[k]->var;
    }
    return SumOfProducts(padded, source, kernel, weight, options, iters);
  };
  return Compute(shape, element, "conv_blocked", kCommReduce);
}

namespace {
/// A transposed convolution as a plain one: zeros between and around the data, and the kernel with
/// outputs first and its windows turned round.
struct AsPlain {
  Operands at;
  Tensor padded, kernel;
  AsPlain(const Tensor& data, const Tensor& given, const ConvOptions& options)
      : at(data, given, options, "_transpose", "IO") {
    Index extra = Exprs(at.op.c_str(), "output_padding", options.output_padding, at.axes.size());
    if (DifferentDim(data->shape[at.c], given->shape[at.in])) {
      Complain(at.op.c_str(), "as many channels in data and kernel",
               Text(data->shape) + " and " + Text(given->shape));
    }
    Windows& windows = at.windows;
    Array<PrimExpr> steps;
    for (const PrimExpr& extent : data->shape) steps.push_back(MakeConst(extent.dtype(), 1));
    for (size_t k = 0; k < at.axes.size(); ++k) {
      auto stride = AsConstInt(windows.strides[k]), more = AsConstInt(extra[k]);
      if (stride && more && (*more < 0 || *more >= *stride))
        Complain(at.op.c_str(), "an output_padding below the stride", std::to_string(*more));
      steps.Set(at.axes.axes[k], windows.strides[k]);
      PrimExpr one = MakeConst(windows.dilated[k].dtype(), 1), reach = windows.dilated[k] - one;
      at.padding.before[k] = Simplified(reach - at.padding.before[k]);
      at.padding.after[k] = Simplified(reach - at.padding.after[k] + extra[k]);
      windows.strides[k] = one;
    }
    Tensor dilated = dilate(data, steps, 0, "data_dilate");
    padded = PadSpatial(dilated, at.axes, at.padding, MakeZero(data->dtype), "data_pad");
    kernel = Turned(data, given, options.groups);
  }

 private:
  Tensor Turned(const Tensor& data, const Tensor& given, int64_t groups) {
    const PrimExpr& each = given->shape[at.o];
    PrimExpr group_count = MakeConst(each.dtype(), groups);
    PrimExpr inputs = Simplified(floordiv(data->shape[at.c], group_count));
    Shape shape = {Simplified(each * group_count), inputs};
    for (size_t axis : at.kernel_axes.axes) shape.push_back(given->shape[axis]);
    auto element = [&](const Index& i) {
      Index source(given->shape.size());
      source[at.o] = groups == 1 ? i[0] : floormod(i[0], each);
      source[at.in] = groups == 1 ? i[1] : floordiv(i[0], each) * inputs + i[1];
      for (size_t k = 0; k < at.axes.size(); ++k) {
        PrimExpr last = at.windows.kernel[k] - MakeConst(at.windows.kernel[k].dtype(), 1);
        source[at.kernel_axes.axes[k]] = last - i[2 + k];
      }
      return At(given, source);
    };
    Tensor turned = Compute(shape, element, "kernel_transform");
    at.o = 0;
    at.in = 1;
    for (size_t k = 0; k < at.axes.size(); ++k) at.kernel_axes.axes[k] = 2 + k;
    return turned;
  }
};
}  // namespace

Tensor conv_transpose(const Tensor& data, const Tensor& kernel, const ConvOptions& options) {
  AsPlain plain(data, kernel, options);
  return Convolved(plain.at, plain.padded, plain.kernel, options, "dc",
                   options.groups == 1 ? "compute" : "group_" + plain.at.op);
}

// ---- names by layout ----------------------------------------------------------------------------
namespace {
using Dtype = Optional<DataType>;
constexpr const char* kDoc = "A convolution.";

/// Channels-first data has kernels with channels first, and alike for last.
String KernelLayout(const String& data_layout, const String& kernel_layout) {
  if (!kernel_layout.empty()) return kernel_layout;
  std::string data = data_layout, spatial;
  for (char c : data) {
    if (c != 'N' && c != 'C') spatial += c;
  }
  return data.starts_with("NC") ? "OI" + spatial : spatial + "IO";
}
Tensor Conv(const Tensor& data, const Tensor& kernel, const Any& strides, const Any& padding,
            const Any& dilation, int64_t groups, const String& data_layout,
            const String& kernel_layout, Dtype out_dtype) {
  return conv(data, kernel,
              {strides, padding, dilation, groups, data_layout,
               KernelLayout(data_layout, kernel_layout), out_dtype});
}
Tensor Transposed(const Tensor& data, const Tensor& kernel, const Any& strides, const Any& padding,
                  Dtype out_dtype, const Any& output_padding, int64_t groups,
                  const char* data_layout, const char* kernel_layout) {
  return conv_transpose(
      data, kernel,
      {strides, padding, 1, groups, data_layout, kernel_layout, out_dtype, output_padding});
}
/// Data and kernel of a transposed convolution as a plain one of stride 1 reads them.
Array<Tensor> Preprocess(const Tensor& data, const Tensor& kernel, const Any& strides,
                         const Any& padding, Dtype out_dtype, const Any& output_padding,
                         const char* data_layout, const char* kernel_layout) {
  AsPlain plain(data, kernel,
                {strides, padding, 1, 1, data_layout, kernel_layout, out_dtype, output_padding});
  return {plain.padded, plain.kernel};
}
/// Every channel has kernels of its own: Filter is (C, M, H, W) or (H, W, C, M).
Tensor Depthwise(const Tensor& input, const Tensor& filter, const ConvOptions& options) {
  constexpr const char* kOp = "depthwise_conv2d";
  SpatialAxes axes(kOp, options.data_layout, "NC", input);
  SpatialAxes kernel_axes(kOp, options.kernel_layout, "IO", filter);
  Windows windows(kOp, filter, kernel_axes, options);
  Padding padding(kOp, options.padding, windows.dilated);
  size_t c = axes.At('C'), in = kernel_axes.At('I'), out = kernel_axes.At('O');
  if (DifferentDim(input->shape[c], filter->shape[in]))
    Complain(kOp, "kernels for every channel of " + Text(input->shape), Text(filter->shape));
  Tensor padded = PadSpatial(input, axes, padding, MakeZero(input->dtype));
  const PrimExpr& each = filter->shape[out];
  Shape shape = input->shape;
  shape.Set(c, Simplified(input->shape[c] * each));
  for (size_t k = 0; k < axes.size(); ++k)
    shape.Set(axes.axes[k], windows.Count(k, padded->shape[axes.axes[k]]));
  auto element = [&](const Index& i) {
    Index source = i, weight(filter->shape.size());
    source[c] = weight[in] = IsOne(each) ? i[c] : floordiv(i[c], each);
    weight[out] = IsOne(each) ? MakeZero(i[c].dtype()) : floormod(i[c], each);
    for (size_t k = 0; k < axes.size(); ++k) {
      source[axes.axes[k]] = windows.Read(k, i[axes.axes[k]]);
      weight[kernel_axes.axes[k]] = windows.taps[k]->var;
    }
    return SumOfProducts(padded, source, filter, weight, options, windows.taps);
  };
  return Compute(shape, element, "DepthwiseConv2d",
                 ("depthwise_" + Lower(options.data_layout)).c_str());
}
/// The size of the blocks of a layout: "16" of "NCHW16c".
std::string BlockOf(const char* op, const String& layout) {
  std::string text = layout;
  if (text.size() < 6 || !text.starts_with("NCHW") || text.back() != 'c')
    Complain(op, "a layout such as NCHW16c", text);
  return text.substr(4, text.size() - 5);
}
/// Data in blocks of channels (N, C, H, W, c), kernels (O, I, H, W, i, o).
Tensor Blocked(const Tensor& data, const Tensor& kernel, const Any& strides, const Any& padding,
               const Any& dilation, const String& layout, const String& out_layout,
               Dtype out_dtype) {
  constexpr const char* kOp = "conv2d_NCHWc";
  std::string kernel_layout = "OIHW" + BlockOf(kOp, layout) + "i" + BlockOf(kOp, out_layout) + "o";
  return conv_blocked(data, kernel,
                      {strides, padding, dilation, 1, layout, kernel_layout, out_dtype});
}
/// The same of small integers, whose kernels (O, I, H, W, i / n, o, n) have n inputs together, as
/// instructions read them that add n products.
Tensor BlockedInt8(const Tensor& data, const Tensor& kernel, const Any& strides, const Any& padding,
                   const Any& dilation, const String& layout, const String& out_layout,
                   Dtype out_dtype, int64_t n_elems) {
  constexpr const char* kOp = "conv2d_NCHWc_int8";
  CheckRank(kOp, "kernels in blocks", kernel, 7);
  const Shape& s = kernel->shape;
  if (n_elems < 1 || DifferentDim(s[6], MakeConst(s[6].dtype(), n_elems)))
    Complain(kOp, "kernels of " + std::to_string(n_elems) + " inputs together", Text(s));
  auto element = [&](const Index& i) {
    return kernel(i[0], i[1], i[2], i[3], floordiv(i[4], s[6]), i[5], floormod(i[4], s[6]));
  };
  Tensor plain =
      Compute({s[0], s[1], s[2], s[3], Simplified(s[4] * s[6]), s[5]}, element, "kernel_blocks");
  return Blocked(data, plain, strides, padding, dilation, layout, out_layout, out_dtype);
}
/// (N, C, H, W, c) as (N, C, H, W).
Tensor Unpack(const Tensor& packed, Dtype out_dtype) {
  CheckRank("unpack_NCHWc_to_nchw", "channels in blocks", packed, 5);
  const Shape& s = packed->shape;
  auto element = [&](const Index& i) {
    PrimExpr block = floordiv(i[1], s[4]), place = floormod(i[1], s[4]);
    return AsType(out_dtype, packed(i[0], block, i[2], i[3], place));
  };
  return Compute({s[0], Simplified(s[1] * s[4]), s[2], s[3]}, element, "output_unpack");
}
/// Data in blocks of channels or not, kernels (O, I, H, W, o).
Tensor BlockedResult(const Tensor& data, const Tensor& kernel, const Any& strides,
                     const Any& padding, const Any& dilation, const String& layout,
                     const String& out_layout, Dtype out_dtype) {
  constexpr const char* kOp = "conv2d_NCHWc_OIHWo";
  SpatialAxes axes(kOp, layout, "NC", data, true);
  Tensor plain = axes.Has('c') ? Unpack(data, std::nullopt) : data;
  return conv_blocked(
      plain, kernel,
      {strides, padding, dilation, 1, "NCHW", "OIHW" + BlockOf(kOp, out_layout) + "o", out_dtype});
}
/// Input and result in blocks of channels (N, C, H, W, c), Filter (O, 1, H, W, 1, o).
Tensor DepthwiseBlocked(const Tensor& input, const Tensor& filter, const Any& stride,
                        const Any& padding, const Any& dilation, const String& layout,
                        const String& out_layout, Dtype out_dtype) {
  constexpr const char* kOp = "depthwise_conv2d_NCHWc";
  SpatialAxes(kOp, layout, "NC", input, true);
  CheckRank(kOp, "kernels in blocks", filter, 6);
  const Shape& f = filter->shape;
  Tensor data = Unpack(input, std::nullopt);
  PrimExpr each = Simplified(floordiv(f[0] * f[5], data->shape[1])), zero = MakeZero(f[0].dtype());
  auto weight = [&](const Index& i) {
    PrimExpr channel = i[0] * each + i[1];
    return filter(floordiv(channel, f[5]), zero, i[2], i[3], zero, floormod(channel, f[5]));
  };
  Tensor kernel = Compute({data->shape[1], each, f[2], f[3]}, weight, "kernel_unpack");
  Tensor sums = Depthwise(data, kernel, {stride, padding, dilation, 1, "NCHW", "IOHW", out_dtype});
  auto element = [&](const Index& i) { return sums(i[0], i[1] * f[5] + i[4], i[2], i[3]); };
  const Shape& s = sums->shape;
  Tensor result = Compute({s[0], f[0], s[2], s[3], f[5]}, element, "output_pack");
  SpatialAxes(kOp, out_layout, "NC", result, true);
  return result;
}
/// What a depthwise convolution in NHWC of an input of a shape gave this gradient of its result.
struct DepthwiseGrad {
  Shape input, filter;  // (H, W, C, M)
  Index strides, before, extra;
  DepthwiseGrad(const char* op, const Tensor& out_grad, const Shape& result, Shape given,
                Shape kernel, const Any& stride, const Any& pad)
      : input(std::move(given)),
        filter(std::move(kernel)),
        strides(Exprs(op, "stride", stride, 2)) {
    CheckRank(op, "a gradient", out_grad, 4);
    if (input.size() != 4 || filter.size() != 4 || result.size() != 4)
      Complain(op, "shapes (N, H, W, C) and (H, W, C, M)", Text(input) + " and " + Text(filter));
    Padding padding(op, pad, {filter[0], filter[1]});
    before = padding.before;
    PrimExpr zero = MakeZero(filter[0].dtype()), one = MakeConst(zero.dtype(), 1);
    Shape expected = {input[0], zero, zero, Simplified(filter[2] * filter[3])};
    for (size_t k = 0; k < 2; ++k) {
      // Pixels behind the last window have no part in the result.
      PrimExpr room = input[1 + k] + padding.before[k] + padding.after[k] - filter[k];
      PrimExpr step = tvm::cast(room.dtype(), strides[k]);
      expected.Set(1 + k, Simplified(floordiv(room, step) + one));
      extra.push_back(Simplified(floormod(room, step)));
    }
    bool fits = !DifferentDim(input[3], filter[2]);
    for (size_t d = 0; d < 4; ++d) {
      fits = fits && !DifferentDim(expected[d], result[d]) &&
             !DifferentDim(expected[d], out_grad->shape[d]);
    }
    if (!fits) {
      Complain(op, "a gradient " + Text(expected) + " of " + Text(input) + " by " + Text(filter),
               Text(out_grad->shape));
    }
  }
};
Tensor DepthwiseInputGrad(const Tensor& filter, const Tensor& out_grad, const Shape& oshape,
                          const Shape& ishape, const Any& stride, const Any& padding) {
  constexpr const char* kOp = "depthwise_conv2d_backward_input_nhwc";
  DepthwiseGrad at(kOp, out_grad, oshape, ishape, filter->shape, stride, padding);
  auto channels = AsConstInt(ishape[3]);
  if (!channels) Complain(kOp, "a number of channels that is known", Text(ishape));
  const PrimExpr& each = filter->shape[3];
  auto element = [&](const Index& i) {
    return filter(i[0], i[1], floordiv(i[2], each), floormod(i[2], each));
  };
  Tensor flat =
      Compute({at.filter[0], at.filter[1], out_grad->shape[3], MakeConst(each.dtype(), 1)}, element,
              "Filter_flat");
  Array<PrimExpr> extra(at.extra.begin(), at.extra.end());
  return conv_transpose(out_grad, flat,
                        {stride, padding, 1, *channels, "NHWC", "HWIO", std::nullopt, extra});
}
Tensor DepthwiseWeightGrad(const Tensor& input, const Tensor& out_grad, const Shape& oshape,
                           const Shape& fshape, const Any& stride, const Any& padding) {
  constexpr const char* kOp = "depthwise_conv2d_backward_weight_nhwc";
  DepthwiseGrad at(kOp, out_grad, oshape, input->shape, fshape, stride, padding);
  Tensor padded = PadSpatial(input, SpatialAxes(kOp, "NHWC", "NC", input),
                             Padding(kOp, padding, {fshape[0], fshape[1]}), MakeZero(input->dtype));
  IterVar n = Along(out_grad->shape[0], "n"), y = Along(out_grad->shape[1], "y"),
          x = Along(out_grad->shape[2], "x");
  auto element = [&](const Index& i) {
    PrimExpr value =
        padded(n->var, y->var * at.strides[0] + i[0], x->var * at.strides[1] + i[1], i[2]);
    return te::sum(value * out_grad(n->var, y->var, x->var, i[2] * fshape[3] + i[3]), {n, y, x});
  };
  return Compute(fshape, element, "Weight_grad", kCommReduce);
}

// One row per layout: name, layouts of data and kernel, names of the tensors and of the strides.
#define TVM_CONVOLUTIONS(ROW)                                     \
  ROW("conv1d_ncw", "NCW", "OIW", "data", "kernel", "strides")    \
  ROW("conv1d_nwc", "NWC", "WIO", "data", "kernel", "strides")    \
  ROW("conv2d_nchw", "NCHW", "OIHW", "Input", "Filter", "stride") \
  ROW("conv2d_nhwc", "NHWC", "HWIO", "Input", "Filter", "stride") \
  ROW("conv2d_hwcn", "HWCN", "HWIO", "Input", "Filter", "stride")
#define TVM_GROUPED_CONVOLUTIONS(ROW)                                   \
  ROW("group_conv1d_ncw", "NCW", "OIW", "data", "kernel", "strides")    \
  ROW("group_conv1d_nwc", "NWC", "WIO", "data", "kernel", "strides")    \
  ROW("group_conv2d_nchw", "NCHW", "OIHW", "Input", "Filter", "stride") \
  ROW("group_conv2d_nhwc", "NHWC", "HWIO", "Input", "Filter", "stride") \
  ROW("conv3d_ncdhw", "NCDHW", "OIDHW", "Input", "Filter", "stride")    \
  ROW("conv3d_ndhwc", "NDHWC", "DHWIO", "Input", "Filter", "stride")
#define TVM_TRANSPOSED_CONVOLUTIONS(ROW)                                     \
  ROW("conv1d_transpose_ncw", "NCW", "IOW", "data", "kernel", "stride")      \
  ROW("conv2d_transpose_nchw", "NCHW", "IOHW", "Input", "Filter", "strides") \
  ROW("conv3d_transpose_ncdhw", "NCDHW", "IODHW", "Input", "Filter", "strides")

TVM_REGISTER() {
#define ROW(name, data_layout, kernel_layout, data_name, kernel_name, strides_name)             \
  Def(                                                                                          \
      "topi.nn." name,                                                                          \
      [](Tensor data, Tensor kernel, Any strides, Any padding, Any dilation, Dtype out_dtype) { \
        return Conv(data, kernel, strides, padding, dilation, 1, data_layout, kernel_layout,    \
                    out_dtype);                                                                 \
      },                                                                                        \
      kDoc, Arg(data_name), Arg(kernel_name), Arg(strides_name, 1), Arg("padding", "VALID"),    \
      Arg("dilation", 1), Arg("out_dtype", nullptr));
  TVM_CONVOLUTIONS(ROW)
#undef ROW
#define ROW(name, data_layout, kernel_layout, data_name, kernel_name, strides_name)               \
  Def(                                                                                            \
      "topi.nn." name,                                                                            \
      [](Tensor data, Tensor kernel, Any strides, Any padding, Any dilation, int64_t groups,      \
         Dtype out_dtype) {                                                                       \
        return Conv(data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, \
                    out_dtype);                                                                   \
      },                                                                                          \
      "A convolution in groups of channels.", Arg(data_name), Arg(kernel_name),                   \
      Arg(strides_name, 1), Arg("padding", "VALID"), Arg("dilation", 1), Arg("groups", 1),        \
      Arg("out_dtype", nullptr));
  TVM_GROUPED_CONVOLUTIONS(ROW)
#undef ROW
#define ROW(name, data_layout, kernel_layout, data_name, kernel_name, strides_name)             \
  Def(                                                                                          \
      "topi.nn." name,                                                                          \
      [](Tensor data, Tensor kernel, Any strides, Any padding, Dtype out_dtype, Any more) {     \
        return Transposed(data, kernel, strides, padding, out_dtype, more, 1, data_layout,      \
                          kernel_layout);                                                       \
      },                                                                                        \
      "A transposed convolution.", Arg(data_name), Arg(kernel_name), Arg(strides_name),         \
      Arg("padding"), Arg("out_dtype"), Arg("output_padding"));                                 \
  Def(                                                                                          \
      "topi.nn.group_" name,                                                                    \
      [](Tensor data, Tensor kernel, Any strides, Any padding, Dtype out_dtype, Any more,       \
         int64_t groups) {                                                                      \
        return Transposed(data, kernel, strides, padding, out_dtype, more, groups, data_layout, \
                          kernel_layout);                                                       \
      },                                                                                        \
      "A transposed convolution in groups of channels.", Arg("data"), Arg("kernel"),            \
      Arg(name[4] == '3' ? "strides" : "stride"), Arg("padding"), Arg("out_dtype"),             \
      Arg("output_padding"), Arg("groups"));
  TVM_TRANSPOSED_CONVOLUTIONS(ROW)
#undef ROW
#define ROW(name, dims, data_layout, kernel_layout)                                            \
  Def(                                                                                         \
      "topi.nn." name "_preprocess",                                                           \
      [](Tensor data, Tensor kernel, Any strides, Any padding, Dtype out_dtype, Any more) {    \
        return Preprocess(data, kernel, strides, padding, out_dtype, more, data_layout,        \
                          kernel_layout);                                                      \
      },                                                                                       \
      "Data and kernel of a transposed convolution as a plain one of stride 1 reads them.",    \
      Arg("data"), Arg("kernel"), Arg("strides"), Arg("padding"), Arg("out_dtype"),            \
      Arg("output_padding"));                                                                  \
  Def(                                                                                         \
      "topi.nn.declaration_conv" dims "d_transpose_impl",                                      \
      [](Tensor data, Tensor kernel, Any strides, Any padding, Dtype out_dtype, Any more) {    \
        return Transposed(data, kernel, strides, padding, out_dtype, more, 1, data_layout,     \
                          kernel_layout);                                                      \
      },                                                                                       \
      "A transposed convolution.", Arg("data"), Arg("kernel"), Arg("strides"), Arg("padding"), \
      Arg("out_dtype"), Arg("output_padding"));
  ROW("conv2d_transpose_nchw", "2", "NCHW", "IOHW")
  ROW("conv3d_transpose_ncdhw", "3", "NCDHW", "IODHW")
#undef ROW
  Def("topi.nn.conv", &Conv, "A convolution of any number of dimensions in the given layouts.",
      Arg("inp"), Arg("filt"), Arg("stride"), Arg("padding"), Arg("dilation"), Arg("groups"),
      Arg("data_layout"), Arg("kernel_layout", ""), Arg("out_dtype", nullptr));
  Def("topi.nn.conv1d", &Conv, kDoc, Arg("data"), Arg("kernel"), Arg("strides", 1),
      Arg("padding", "VALID"), Arg("dilation", 1), Arg("groups", 1), Arg("data_layout", "NCW"),
      Arg("kernel_layout", ""), Arg("out_dtype", nullptr));
  Def(
      "topi.nn.conv2d",
      [](Tensor data, Tensor kernel, Any strides, Any padding, Any dilation, String data_layout,
         String kernel_layout, Dtype out_dtype) {
        return Conv(data, kernel, strides, padding, dilation, 1, data_layout, kernel_layout,
                    out_dtype);
      },
      kDoc, Arg("input"), Arg("filter"), Arg("strides"), Arg("padding"), Arg("dilation"),
      Arg("data_layout", "NCHW"), Arg("kernel_layout", ""), Arg("out_dtype", nullptr));
  Def(
      "topi.nn.depthwise_conv2d_nchw",
      [](Tensor data, Tensor kernel, Any strides, Any padding, Any dilation, Dtype out_dtype) {
        return Depthwise(data, kernel, {strides, padding, dilation, 1, "NCHW", "IOHW", out_dtype});
      },
      "A convolution with kernels for every channel.", Arg("Input"), Arg("Filter"), Arg("stride"),
      Arg("padding"), Arg("dilation"), Arg("out_dtype", nullptr));
  Def(
      "topi.nn.depthwise_conv2d_nhwc",
      [](Tensor data, Tensor kernel, Any strides, Any padding, Any dilation, String kernel_layout,
         Dtype out_dtype) {
        // In the name of the layout O stands for the channel, I for the kernels of one.
        std::string layout = kernel_layout;
        for (char& c : layout) c = c == 'O' ? 'I' : c == 'I' ? 'O' : c;
        return Depthwise(data, kernel, {strides, padding, dilation, 1, "NHWC", layout, out_dtype});
      },
      "A convolution with kernels for every channel.", Arg("Input"), Arg("Filter"), Arg("stride"),
      Arg("padding"), Arg("dilation"), Arg("kernel_layout", "HWOI"), Arg("out_dtype", nullptr));
  Def("topi.nn.conv2d_NCHWc", &Blocked, "A convolution of channels in blocks.", Arg("data"),
      Arg("kernel"), Arg("stride"), Arg("padding"), Arg("dilation"), Arg("layout"),
      Arg("out_layout"), Arg("out_dtype", "float32"));
  Def("topi.nn.conv2d_NCHWc_OIHWo", &BlockedResult,
      "A convolution whose result has channels in blocks, by kernels (O, I, H, W, o).", Arg("data"),
      Arg("kernel"), Arg("stride"), Arg("padding"), Arg("dilation"), Arg("layout"),
      Arg("out_layout"), Arg("out_dtype", "float32"));
  Def("topi.nn.conv2d_NCHWc_int8", &BlockedInt8,
      "A convolution of channels in blocks by kernels (O, I, H, W, i / n_elems, o, n_elems).",
      Arg("data"), Arg("kernel"), Arg("stride"), Arg("padding"), Arg("dilation"), Arg("layout"),
      Arg("out_layout"), Arg("out_dtype", "int32"), Arg("n_elems", 4));
  Def("topi.nn.depthwise_conv2d_backward_input_nhwc", &DepthwiseInputGrad,
      "The gradient of the input of depthwise_conv2d_nhwc, given that of its result.",
      Arg("Filter"), Arg("Out_grad"), Arg("oshape"), Arg("ishape"), Arg("stride"), Arg("padding"));
  Def("topi.nn.depthwise_conv2d_backward_weight_nhwc", &DepthwiseWeightGrad,
      "The gradient of the filter of depthwise_conv2d_nhwc, given that of its result.",
      Arg("Input"), Arg("Out_grad"), Arg("oshape"), Arg("fshape"), Arg("stride"), Arg("padding"));
  Def("topi.nn.depthwise_conv2d_NCHWc", &DepthwiseBlocked,
      "A convolution of channels in blocks with kernels for every channel.", Arg("Input"),
      Arg("Filter"), Arg("stride"), Arg("padding"), Arg("dilation"), Arg("layout"),
      Arg("out_layout"), Arg("out_dtype", nullptr));
  Def("topi.nn.unpack_NCHWc_to_nchw", &Unpack, "Blocks of channels as channels.", Arg("packed_out"),
      Arg("out_dtype"));
}
}  // namespace
}  // namespace tvm::topi::nn
