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

int64_t Divided(const char* op, const char* what, const PrimExpr& count, int64_t groups) {
  auto n = AsConstInt(count);
  if (groups < 1 || (n && *n % groups != 0)) {
    Complain(op, std::string("groups that divide the ") + what,
             std::to_string(groups) + " for " + Text({count}));
  }
  return n ? *n / groups : -1;
}
/// A channel of the result of a group reads channels of that group alone.
PrimExpr FirstChannel(const PrimExpr& out_channel, const PrimExpr& outputs, const PrimExpr& inputs,
                      int64_t groups) {
  if (groups == 1) return MakeZero(out_channel.dtype());
  PrimExpr each = Simplified(floordiv(outputs, MakeConst(outputs.dtype(), groups)));
  return floordiv(out_channel, each) * inputs;
}
}  // namespace

Tensor conv(const Tensor& data, const Tensor& kernel, const ConvOptions& options) {
  SpatialAxes axes("conv", options.data_layout, "NC", data);
  const std::string op = "conv" + std::to_string(axes.size()) + "d";
  SpatialAxes kernel_axes(op.c_str(), options.kernel_layout, "OI", kernel);
  if (kernel_axes.size() != axes.size())
    Complain(op.c_str(), "a kernel with as many spatial axes", Text(kernel->shape));
  Windows windows(op.c_str(), kernel, kernel_axes, options);
  Padding padding(op.c_str(), options.padding, windows.dilated);
  int64_t groups = options.groups;
  size_t c = axes.At('C'), o = kernel_axes.At('O'), in = kernel_axes.At('I');
  Divided(op.c_str(), "channels", data->shape[c], groups);
  Divided(op.c_str(), "outputs", kernel->shape[o], groups);
  const PrimExpr& inputs = kernel->shape[in];
  if (DifferentDim(data->shape[c], inputs * MakeConst(inputs.dtype(), groups))) {
    Complain(op.c_str(), "as many channels in data and kernel (times groups)",
             Text(data->shape) + " and " + Text(kernel->shape));
  }
  Tensor padded = PadSpatial(data, axes, padding, MakeZero(data->dtype));
  Shape shape = data->shape;
  shape.Set(c, kernel->shape[o]);
  for (size_t k = 0; k < axes.size(); ++k) {
    shape.Set(axes.axes[k], windows.Count(k, padded->shape[axes.axes[k]]));
    if (auto n = AsConstInt(shape[axes.axes[k]]); n && *n < 0)
      Complain(op.c_str(), "windows within the padded data", Text(padded->shape));
  }
  IterVar rc = Along(inputs, "rc");
  Array<IterVar> iters = windows.taps;
  iters.insert(iters.begin(), rc);
  auto element = [&](const Index& i) {
    Index source = i, weight(kernel->shape.size());
    source[c] = FirstChannel(i[c], kernel->shape[o], inputs, groups) + rc->var;
    weight[o] = i[c];
    weight[in] = rc->var;
    for (size_t k = 0; k < axes.size(); ++k) {
      source[axes.axes[k]] = windows.Read(k, i[axes.axes[k]]);
      weight[kernel_axes.axes[k]] = windows.taps[k]->var;
    }
    return SumOfProducts(padded, source, kernel, weight, options, iters);
  };
  std::string name = (groups > 1 ? "group_" : "") + op + "_" + Lower(options.data_layout);
  return Compute(shape, element, name, kCommReduce);
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

Tensor conv_transpose(const Tensor& data, const Tensor& kernel, const ConvOptions& options) {
  SpatialAxes axes("conv_transpose", options.data_layout, "NC", data);
  const std::string op = "conv" + std::to_string(axes.size()) + "d_transpose";
  SpatialAxes kernel_axes(op.c_str(), options.kernel_layout, "IO", kernel);
  if (kernel_axes.size() != axes.size())
    Complain(op.c_str(), "a kernel with as many spatial axes", Text(kernel->shape));
  Windows windows(op.c_str(), kernel, kernel_axes, options);
  Padding padding(op.c_str(), options.padding, windows.dilated);
  Index extra = Exprs(op.c_str(), "output_padding", options.output_padding, axes.size());
  int64_t groups = options.groups;
  size_t c = axes.At('C'), o = kernel_axes.At('O'), in = kernel_axes.At('I');
  Divided(op.c_str(), "channels", data->shape[c], groups);
  if (DifferentDim(data->shape[c], kernel->shape[in])) {
    Complain(op.c_str(), "as many channels in data and kernel",
             Text(data->shape) + " and " + Text(kernel->shape));
  }
  Array<PrimExpr> steps;
  for (const PrimExpr& extent : data->shape) steps.push_back(MakeConst(extent.dtype(), 1));
  for (size_t k = 0; k < axes.size(); ++k) {
    auto stride = AsConstInt(windows.strides[k]), more = AsConstInt(extra[k]);
    if (stride && more && (*more < 0 || *more >= *stride))
      Complain(op.c_str(), "an output_padding below the stride", std::to_string(*more));
    steps.Set(axes.axes[k], windows.strides[k]);
    PrimExpr one = MakeConst(windows.dilated[k].dtype(), 1), reach = windows.dilated[k] - one;
    padding.before[k] = Simplified(reach - padding.before[k]);
    padding.after[k] = Simplified(reach - padding.after[k] + extra[k]);
  }
  Tensor dilated = dilate(data, steps, 0, "data_dilate");
  Tensor padded = PadSpatial(dilated, axes, padding, MakeZero(data->dtype), "data_pad");
  // The kernel as a convolution reads it: outputs first, windows turned round.
  Shape turned_shape = {kernel->shape[o], kernel->shape[in]};
  for (size_t axis : kernel_axes.axes) turned_shape.push_back(kernel->shape[axis]);
  Tensor turned = Compute(
      turned_shape,
      [&](const Index& i) {
        Index source(kernel->shape.size());
        source[o] = i[0];
        source[in] = i[1];
        for (size_t k = 0; k < axes.size(); ++k) {
          PrimExpr last = windows.kernel[k] - MakeConst(windows.kernel[k].dtype(), 1);
          source[kernel_axes.axes[k]] = last - i[2 + k];
        }
        return At(kernel, source);
      },
      "kernel_transform");
  PrimExpr each = kernel->shape[o], group_count = MakeConst(each.dtype(), groups);
  PrimExpr inputs = Simplified(floordiv(data->shape[c], group_count));
  Shape shape = data->shape;
  shape.Set(c, Simplified(each * group_count));
  for (size_t k = 0; k < axes.size(); ++k) {
    const PrimExpr& extent = padded->shape[axes.axes[k]];
    shape.Set(axes.axes[k], Simplified(extent - windows.dilated[k] + MakeConst(extent.dtype(), 1)));
  }
  IterVar rc = Along(inputs, "dc");
  Array<IterVar> iters = windows.taps;
  iters.insert(iters.begin(), rc);
  auto element = [&](const Index& i) {
    PrimExpr first = groups == 1 ? MakeZero(i[c].dtype()) : floordiv(i[c], each) * inputs;
    Index source = i;
    source[c] = first + rc->var;
    Index weight = {groups == 1 ? i[c] : floormod(i[c], each), first + rc->var};
    for (size_t k = 0; k < axes.size(); ++k) {
      source[axes.axes[k]] = i[axes.axes[k]] + windows.taps[k]->var * windows.dilation[k];
      weight.push_back(windows.taps[k]->var);
    }
    return SumOfProducts(padded, source, turned, weight, options, iters);
  };
  return Compute(shape, element, groups == 1 ? "compute" : "group_" + op, kCommReduce);
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
/// Data in blocks of channels (N, C, H, W, c), kernels (O, I, H, W, i, o).
Tensor Blocked(const Tensor& data, const Tensor& kernel, const Any& strides, const Any& padding,
               const Any& dilation, const String& layout, const String& out_layout,
               Dtype out_dtype) {
  std::string in_block = std::string(layout).substr(4),
              out_block = std::string(out_layout).substr(4);
  std::string kernel_layout = "OIHW" + in_block.substr(0, in_block.size() - 1) + "i" +
                              out_block.substr(0, out_block.size() - 1) + "o";
  return conv_blocked(data, kernel,
                      {strides, padding, dilation, 1, layout, kernel_layout, out_dtype});
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
  Def("topi.nn.depthwise_conv2d_NCHWc", &DepthwiseBlocked,
      "A convolution of channels in blocks with kernels for every channel.", Arg("Input"),
      Arg("Filter"), Arg("stride"), Arg("padding"), Arg("dilation"), Arg("layout"),
      Arg("out_layout"), Arg("out_dtype", nullptr));
  Def("topi.nn.unpack_NCHWc_to_nchw", &Unpack, "Blocks of channels as channels.", Arg("packed_out"),
      Arg("out_dtype"));
}
}  // namespace
}  // namespace tvm::topi::nn
