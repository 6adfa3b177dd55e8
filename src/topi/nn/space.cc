// SPDX-License-Identifier: Apache-2.0
// Elements between channels, batch and space; larger images; windows that move on.
#include "topi/shape.h"
#include "tvm/topi/nn.h"
#include "tvm/topi/transform.h"

namespace tvm::topi::nn {
using namespace tir;
namespace {
PrimExpr DividedBy(const char* op, const PrimExpr& extent, int64_t by) {
  auto n = AsConstInt(extent);
  if (by < 1 || (n && *n % by != 0))
    Complain(op, "a size that " + std::to_string(by) + " divides", Text({extent}));
  return Simplified(floordiv(extent, MakeConst(extent.dtype(), by)));
}
bool IsChannelsFirst(const char* op, const String& layout) {
  if (layout == "NCHW") return true;
  if (layout != "NHWC")
    Complain(op, "layout \"NCHW\" or \"NHWC\"", '"' + std::string(layout) + '"');
  return false;
}
struct Axes4 {
  size_t channel, height, width;
  explicit Axes4(bool first) : channel(first ? 1 : 3), height(first ? 2 : 1), width(height + 1) {}
};
Tensor DepthToSpace(const Tensor& data, int64_t block_size, String layout, String mode) {
  constexpr const char* kOp = "depth_to_space";
  CheckRank(kOp, "data", data, 4);
  Axes4 a(IsChannelsFirst(kOp, layout));
  if (mode != "DCR" && mode != "CRD")
    Complain(kOp, "mode \"DCR\" or \"CRD\"", '"' + std::string(mode) + '"');
  PrimExpr channels = DividedBy(kOp, data->shape[a.channel], block_size * block_size);
  Shape shape = data->shape;
  PrimExpr block = MakeConst(channels.dtype(), block_size);
  shape.Set(a.channel, channels);
  shape.Set(a.height, Simplified(data->shape[a.height] * block));
  shape.Set(a.width, Simplified(data->shape[a.width] * block));
  auto element = [&](const Index& i) {
    PrimExpr y = floormod(i[a.height], block), x = floormod(i[a.width], block);
    Index source = i;
    source[a.height] = floordiv(i[a.height], block);
    source[a.width] = floordiv(i[a.width], block);
    source[a.channel] = mode == "DCR" ? (y * block + x) * channels + i[a.channel]
                                      : (i[a.channel] * block + y) * block + x;
    return At(data, source);
  };
  return Compute(shape, element, "depth_to_space");
}
Tensor SpaceToDepth(const Tensor& data, int64_t block_size, String layout) {
  constexpr const char* kOp = "space_to_depth";
  CheckRank(kOp, "data", data, 4);
  Axes4 a(IsChannelsFirst(kOp, layout));
  Shape shape = data->shape;
  const PrimExpr& channels = data->shape[a.channel];
  PrimExpr block = MakeConst(channels.dtype(), block_size);
  shape.Set(a.channel, Simplified(channels * block * block));
  shape.Set(a.height, DividedBy(kOp, data->shape[a.height], block_size));
  shape.Set(a.width, DividedBy(kOp, data->shape[a.width], block_size));
  auto element = [&](const Index& i) {
    PrimExpr place = floordiv(i[a.channel], channels);
    Index source = i;
    source[a.channel] = floormod(i[a.channel], channels);
    source[a.height] = i[a.height] * block + floordiv(place, block);
    source[a.width] = i[a.width] * block + floormod(place, block);
    return At(data, source);
  };
  return Compute(shape, element, "space_to_depth");
}
Tensor PixelShuffle(const Tensor& data, int64_t upscale_factor) {
  constexpr const char* kOp = "pixel_shuffle";
  size_t ndim = data->shape.size();
  if (ndim < 3) Complain(kOp, "at least 3 dimensions", Text(data->shape));
  PrimExpr r = MakeConst(IndexType(data->shape), upscale_factor);
  Shape split, result;
  Array<Any> order;
  for (size_t d = 0; d + 3 < ndim; ++d) {
    split.push_back(data->shape[d]);
    result.push_back(data->shape[d]);
    order.push_back(static_cast<int64_t>(d));
  }
  PrimExpr channels = DividedBy(kOp, data->shape[ndim - 3], upscale_factor * upscale_factor);
  const PrimExpr &height = data->shape[ndim - 2], &width = data->shape[ndim - 1];
  for (const PrimExpr& extent : {channels, r, r, height, width}) split.push_back(extent);
  auto lead = static_cast<int64_t>(ndim) - 3;
  for (int64_t axis : {0, 3, 1, 4, 2}) order.push_back(lead + axis);
  for (const PrimExpr& extent : {channels, height * r, width * r})
    result.push_back(Simplified(extent));
  return reshape(transpose(reshape(data, split), Any(order)), result);
}
/// Blocks of space as batches; see batch_to_space_nd for the way back.
Tensor SpaceToBatch(const Tensor& data, const Array<PrimExpr>& block_shape,
                    const Array<PrimExpr>& pad_before, const Array<PrimExpr>& pad_after,
                    const PrimExpr& pad_value) {
  constexpr const char* kOp = "space_to_batch_nd";
  size_t ndim = data->shape.size(), blocks = block_shape.size();
  if (blocks + 1 > ndim || pad_before.size() != blocks || pad_after.size() != blocks)
    Complain(kOp, "padding per block", std::to_string(pad_before.size()));
  Array<PrimExpr> before, after;
  for (size_t d = 0; d < ndim; ++d) {
    bool padded = d >= 1 && d <= blocks;
    PrimExpr zero = MakeZero(data->shape[d].dtype());
    before.push_back(padded ? pad_before[d - 1] : zero);
    after.push_back(padded ? pad_after[d - 1] : zero);
  }
  Tensor padded = pad(data, before, after, pad_value);
  Shape split = {padded->shape[0]}, result = {padded->shape[0]};
  Array<Any> order;
  for (size_t k = 0; k < blocks; ++k) {
    auto size = AsConstInt(block_shape[k]);
    if (!size) Complain(kOp, "blocks of known size", Text(block_shape));
    PrimExpr count = DividedBy(kOp, padded->shape[k + 1], *size);
    split.push_back(count);
    split.push_back(tvm::cast(count.dtype(), block_shape[k]));
    result.Set(0, result[0] * block_shape[k]);
    result.push_back(count);
    order.push_back(static_cast<int64_t>(2 * k + 2));
  }
  result.Set(0, Simplified(result[0]));
  order.push_back(int64_t{0});
  for (size_t k = 0; k < blocks; ++k) order.push_back(static_cast<int64_t>(2 * k + 1));
  for (size_t d = blocks + 1; d < ndim; ++d) {
    order.push_back(static_cast<int64_t>(split.size()));
    split.push_back(padded->shape[d]);
    result.push_back(padded->shape[d]);
  }
  return reshape(transpose(reshape(padded, split), Any(order)), result);
}
Tensor BatchToSpace(const Tensor& data, const Array<PrimExpr>& block_shape, const Any& crop_begin,
                    const Any& crop_end) {
  constexpr const char* kOp = "batch_to_space_nd";
  size_t ndim = data->shape.size(), blocks = block_shape.size();
  if (blocks + 1 > ndim) Complain(kOp, "a block per spatial axis", std::to_string(blocks));
  PrimExpr all = Product(block_shape), batch = Simplified(floordiv(data->shape[0], all));
  Shape split, result = {batch};
  for (const PrimExpr& size : block_shape) split.push_back(size);
  split.push_back(batch);
  for (size_t d = 1; d < ndim; ++d) split.push_back(data->shape[d]);
  Array<Any> order = {static_cast<int64_t>(blocks)};
  for (size_t k = 0; k < blocks; ++k) {
    order.push_back(static_cast<int64_t>(blocks + 1 + k));
    order.push_back(static_cast<int64_t>(k));
    result.push_back(Simplified(data->shape[k + 1] * block_shape[k]));
  }
  for (size_t d = blocks + 1; d < ndim; ++d) {
    order.push_back(static_cast<int64_t>(blocks + d));
    result.push_back(data->shape[d]);
  }
  Tensor whole = reshape(transpose(reshape(data, split), Any(order)), result);
  Index begin = Exprs(kOp, "crops", crop_begin, blocks),
        end = Exprs(kOp, "crops", crop_end, blocks);
  Array<Any> from, to, axes;
  for (size_t k = 0; k < blocks; ++k) {
    from.push_back(begin[k]);
    to.push_back(Simplified(whole->shape[k + 1] - end[k]));
    axes.push_back(static_cast<int64_t>(k + 1));
  }
  return strided_slice(whole, Any(from), Any(to), nullptr, Any(axes));
}
/// All axes behind the batch as one.
Tensor Flatten(const Tensor& data) {
  if (data->shape.empty()) Complain("flatten", "at least 1 dimension", "a scalar");
  Shape rest(data->shape.begin() + 1, data->shape.end());
  auto element = [&](const Index& i) {
    Index source = Unravel(i[1], rest);
    source.insert(source.begin(), i[0]);
    return At(data, source);
  };
  return Compute({data->shape[0], Product(rest)}, element, "tensor");
}
/// The buffer moved on along an axis, new data at its end.
Tensor FifoBuffer(const Tensor& data, const Tensor& buffer, int64_t axis) {
  size_t at = Axis("fifo_buffer", axis, buffer->shape.size());
  CheckRank("fifo_buffer", "data", data, buffer->shape.size());
  const PrimExpr &length = buffer->shape[at], &added = data->shape[at];
  auto element = [&](const Index& i) {
    Index old = i, fresh = i;
    old[at] = i[at] + added;
    fresh[at] = i[at] - length + added;
    return if_then_else(i[at] < length - added, At(buffer, old), At(data, fresh));
  };
  return Compute(buffer->shape, element, "new_buffer");
}

TVM_REGISTER() {
  Def("topi.nn.depth_to_space", &DepthToSpace, "Blocks of channels as squares of pixels.",
      Arg("data"), Arg("block_size"), Arg("layout", "NCHW"), Arg("mode", "DCR"));
  Def("topi.nn.space_to_depth", &SpaceToDepth, "Squares of pixels as blocks of channels.",
      Arg("data"), Arg("block_size"), Arg("layout", "NCHW"));
  Def("topi.nn.pixel_shuffle", &PixelShuffle, "Channels as squares of pixels.", Arg("data"),
      Arg("upscale_factor"));
  Def("topi.nn.space_to_batch_nd", &SpaceToBatch, "Blocks of space as batches.", Arg("data"),
      Arg("block_shape"), Arg("pad_before"), Arg("pad_after"), Arg("pad_value", 0.0));
  Def("topi.nn.batch_to_space_nd", &BatchToSpace, "Batches as blocks of space.", Arg("data"),
      Arg("block_shape"), Arg("crop_begin_list"), Arg("crop_end_list"));
  Def("topi.nn.flatten", &Flatten, "All axes behind the first as one.", Arg("data"));
  Def("topi.nn.fifo_buffer", &FifoBuffer, "The buffer moved on, data at its end.", Arg("data"),
      Arg("buffer"), Arg("axis"));
}
}  // namespace
}  // namespace tvm::topi::nn
