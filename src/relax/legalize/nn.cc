// SPDX-License-Identifier: Apache-2.0
// Lowering of convolutions and pools in any layout, padding by mode, losses, images.
#include "tvm/topi/nn.h"

#include <algorithm>

#include "relax/legalize/lowering.h"
#include "tvm/relax/attrs.h"
#include "tvm/topi/transform.h"

namespace tvm::relax {
namespace {
// ---- layouts ------------------------------------------------------------------------------------
/// "NCHW" of "NCHW16c".
String WithoutBlocks(const String& layout) {
  std::string plain;
  for (char c : std::string(layout)) {
    if (std::isupper(static_cast<unsigned char>(c))) plain += c;
  }
  return plain;
}
te::Tensor InLayout(const te::Tensor& t, const String& from, const String& to) {
  return from == to ? t : topi::layout_transform(t, from, to);
}
/// `compute` on data without blocks of channels; the result in the layout that the call asks for.
template <class F>
te::Tensor WithPlainLayout(const te::Tensor& data, const String& layout, const String& out_layout,
                           F&& compute) {
  String plain = WithoutBlocks(layout);
  te::Tensor result = compute(InLayout(data, layout, plain), plain);
  return InLayout(result, plain, out_layout.empty() ? layout : out_layout);
}

// ---- convolutions -------------------------------------------------------------------------------
template <class AttrsObjT>
topi::nn::ConvOptions OptionsOf(const AttrsObjT* attrs, const String& data_layout) {
  return {attrs->strides,  attrs->padding, attrs->dilation,
          attrs->groups,   data_layout,    WithoutBlocks(attrs->kernel_layout),
          attrs->out_dtype};
}
/// What stands before a block in a layout: "8" of "NCHW8c" for 'c', "" without that block.
std::string BlockOf(const String& layout, char letter) {
  const std::string text = layout;
  size_t end = text.find(letter), begin = end;
  if (end == std::string::npos) return "";
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1]))) --begin;
  return text.substr(begin, end - begin);
}
/// Whether channels, and only they, are in blocks: of the result, of what the kernel has for them,
/// and of the data as far as the kernel has blocks for them, too.
template <class AttrsObjT>
bool AreBlocksOfChannels(const AttrsObjT* attrs) {
  std::string data = BlockOf(attrs->data_layout, 'c'), out = BlockOf(attrs->out_layout, 'c');
  std::string in = BlockOf(attrs->kernel_layout, 'i');
  std::string spatial = std::string("DHW").substr(3 - attrs->strides.size());
  std::string kernel = "OI" + spatial + (in.empty() ? "" : in + "i") + out + "o";
  bool is_depthwise = attrs->groups > 1 && in == "1" && data == out;
  return !out.empty() && attrs->out_layout == "NC" + spatial + out + "c" &&
         attrs->data_layout == "NC" + spatial + (data.empty() ? "" : data + "c") &&
         attrs->kernel_layout == kernel && (is_depthwise || (attrs->groups == 1 && in == data));
}
template <class AttrsObjT, size_t kDims>
Expr LowerConv(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto* attrs = lowered.Attrs<AttrsObjT>();
  te::Tensor data = lowered.Tensor(0), weight = lowered.Tensor(1);
  const std::string name = "conv" + std::to_string(kDims) + "d";
  if (AreBlocksOfChannels(attrs)) {
    topi::nn::ConvOptions options = OptionsOf(attrs, attrs->data_layout);
    options.kernel_layout = attrs->kernel_layout;
    return lowered.Finish(name, {topi::nn::conv_blocked(data, weight, options)});
  }
  auto compute = [&](const te::Tensor& x, const String& layout) {
    te::Tensor kernel = InLayout(weight, attrs->kernel_layout, WithoutBlocks(attrs->kernel_layout));
    return topi::nn::conv(x, kernel, OptionsOf(attrs, layout));
  };
  return lowered.Finish(name,
                        {WithPlainLayout(data, attrs->data_layout, attrs->out_layout, compute)});
}
template <class AttrsObjT, size_t kDims>
Expr LowerConvTranspose(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto* attrs = lowered.Attrs<AttrsObjT>();
  te::Tensor data = lowered.Tensor(0), weight = lowered.Tensor(1);
  auto compute = [&](const te::Tensor& x, const String& layout) {
    te::Tensor kernel = InLayout(weight, attrs->kernel_layout, WithoutBlocks(attrs->kernel_layout));
    topi::nn::ConvOptions options = OptionsOf(attrs, layout);
    options.output_padding = attrs->output_padding;
    return topi::nn::conv_transpose(x, kernel, options);
  };
  return lowered.Finish("conv" + std::to_string(kDims) + "d_transpose",
                        {WithPlainLayout(data, attrs->data_layout, attrs->out_layout, compute)});
}

// ---- pools --------------------------------------------------------------------------------------
/// The name of the operator: "max_pool2d" of "relax.nn.max_pool2d".
std::string LastWord(const Call& call) {
  std::string name = call->op.as<OpObj>()->name;
  return name.substr(name.rfind('.') + 1);
}
/// Channels may stay in blocks: windows go along other axes.
template <class AttrsObjT, class F>
te::Tensor PooledInLayout(const te::Tensor& data, const AttrsObjT* attrs, F&& compute) {
  String layout = attrs->layout, plain = WithoutBlocks(layout);
  std::string block = BlockOf(layout, 'c');
  bool stays = !block.empty() && layout == std::string(plain) + block + "c" &&
               (attrs->out_layout.empty() || attrs->out_layout == layout);
  return stays ? compute(data, layout) : WithPlainLayout(data, layout, attrs->out_layout, compute);
}
template <class AttrsObjT>
Expr LowerPool(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto* attrs = lowered.Attrs<AttrsObjT>();
  std::string name = LastWord(call);
  te::Tensor data = lowered.Tensor(0);
  auto compute = [&](const te::Tensor& x, const String& layout) {
    return topi::nn::pool(x, attrs->pool_size, attrs->strides, attrs->dilation, attrs->padding,
                          name.substr(0, 3), attrs->ceil_mode, layout, attrs->count_include_pad);
  };
  return lowered.Finish(name, {PooledInLayout(data, attrs, compute)});
}
template <class AttrsObjT>
Expr LowerAdaptivePool(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto* attrs = lowered.Attrs<AttrsObjT>();
  te::Tensor data = lowered.Tensor(0);
  auto compute = [&](const te::Tensor& x, const String& layout) {
    Any size = attrs->output_size ? Any(attrs->output_size.value()) : Any(nullptr);
    return topi::nn::adaptive_pool(x, size, "avg", layout);
  };
  return lowered.Finish(LastWord(call), {PooledInLayout(data, attrs, compute)});
}

// ---- padding, losses, images
// ----------------------------------------------------------------------
Expr LowerPad(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto* attrs = lowered.Attrs<PadAttrsObj>();
  te::Tensor data = lowered.Tensor(0);
  Array<PrimExpr> before, after;
  for (size_t i = 0; i < attrs->pad_width.size(); i += 2) {
    before.push_back(attrs->pad_width[i]);
    after.push_back(attrs->pad_width[i + 1]);
  }
  if (attrs->pad_mode == "constant") {
    PrimExpr value = MakeConst(data->dtype, attrs->pad_value);
    return lowered.Finish("pad", {topi::nn::pad(data, before, after, value)});
  }
  std::string mode = attrs->pad_mode == "edge" ? "replicate" : std::string(attrs->pad_mode);
  std::string name = mode + "_pad";
  std::string function = "topi.nn." + name;
  std::string block = name;
  block[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(block[0])));
  block.replace(block.find("_pad"), 4, "PadInput");
  return lowered.Finish(name, lowered.Run(function.c_str(), {data, before, after, String(block)}));
}
Expr LowerNLLLoss(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto* attrs = lowered.Attrs<NLLLossAttrsObj>();
  Any predictions = lowered.Tensor(0), targets = lowered.Tensor(1), weights = lowered.Argument(2);
  return lowered.Finish(lowered.Has(2) ? "nll_loss" : "nll_loss_without_weight",
                        lowered.Run("topi.nn.nll_loss", {predictions, targets, weights,
                                                         attrs->reduction, attrs->ignore_index}));
}
Expr LowerNLLLossBackward(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto* attrs = lowered.Attrs<NLLLossAttrsObj>();
  std::vector<Any> arguments;
  for (size_t i = 0; i < 3; ++i) arguments.push_back(lowered.Tensor(i));
  arguments.push_back(lowered.Argument(3));
  arguments.push_back(attrs->reduction);
  arguments.push_back(attrs->ignore_index);
  return lowered.Finish(lowered.Has(3) ? "te_nll_loss_backward" : "te_nll_loss_backward_no_weight",
                        lowered.Run("topi.nn.nll_loss_backward", arguments));
}
/// The operator's grid has its coordinates last, topi's second.
Expr LowerGridSample(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto* attrs = lowered.Attrs<GridSampleAttrsObj>();
  te::Tensor data = lowered.Tensor(0), grid = lowered.Tensor(1);
  auto ndim = static_cast<int64_t>(grid->shape.size());
  Array<Any> order = {0, ndim - 1};
  for (int64_t d = 1; d + 1 < ndim; ++d) order.push_back(d);
  te::Tensor turned = topi::transpose(grid, Any(order));
  return lowered.Finish("grid_sample", lowered.Run("topi.image.grid_sample",
                                                   {data, turned, attrs->method, attrs->layout,
                                                    attrs->padding_mode, attrs->align_corners}));
}

TVM_REGISTER() {
  struct Entry {
    const char* op;
    Expr (*lower)(const BlockBuilder&, const Call&);
  };
  constexpr Entry kEntries[] = {
      {"relax.nn.conv1d", &LowerConv<Conv1DAttrsObj, 1>},
      {"relax.nn.conv2d", &LowerConv<Conv2DAttrsObj, 2>},
      {"relax.nn.conv3d", &LowerConv<Conv3DAttrsObj, 3>},
      {"relax.nn.conv1d_transpose", &LowerConvTranspose<Conv1DTransposeAttrsObj, 1>},
      {"relax.nn.conv2d_transpose", &LowerConvTranspose<Conv2DTransposeAttrsObj, 2>},
      {"relax.nn.max_pool1d", &LowerPool<Pool1DAttrsObj>},
      {"relax.nn.max_pool2d", &LowerPool<Pool2DAttrsObj>},
      {"relax.nn.max_pool3d", &LowerPool<Pool3DAttrsObj>},
      {"relax.nn.avg_pool1d", &LowerPool<Pool1DAttrsObj>},
      {"relax.nn.avg_pool2d", &LowerPool<Pool2DAttrsObj>},
      {"relax.nn.avg_pool3d", &LowerPool<Pool3DAttrsObj>},
      {"relax.nn.adaptive_avg_pool1d", &LowerAdaptivePool<AdaptivePool1DAttrsObj>},
      {"relax.nn.adaptive_avg_pool2d", &LowerAdaptivePool<AdaptivePool2DAttrsObj>},
      {"relax.nn.adaptive_avg_pool3d", &LowerAdaptivePool<AdaptivePool3DAttrsObj>},
      {"relax.nn.pad", &LowerPad},
      {"relax.nn.nll_loss", &LowerNLLLoss},
      {"relax.grad.nll_loss_backward", &LowerNLLLossBackward},
      {"relax.image.grid_sample", &LowerGridSample},
  };
  for (const Entry& entry : kEntries) FLegalize.Set(Op::Register(entry.op), entry.lower);
}
}  // namespace
}  // namespace tvm::relax
