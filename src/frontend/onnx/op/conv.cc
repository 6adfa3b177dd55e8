// SPDX-License-Identifier: Apache-2.0
// Convolutions and what their windows are.
#include "frontend/onnx/op/window.h"
#include "tvm/topi/nn.h"

namespace tvm::frontend::onnx {

std::optional<std::vector<int64_t>> Window::ConstPads() const {
  std::vector<int64_t> pads;
  for (const auto* side : {&before, &after}) {
    for (const PrimExpr& e : *side) {
      auto value = AsConstInt(e);
      if (!value) return std::nullopt;
      pads.push_back(*value);
    }
  }
  return pads;
}
Window ReadWindow(Node& n, const Expr& x, std::vector<int64_t> kernel) {
  Window w;
  w.kernel = n.Ints("kernel_shape", kernel);
  size_t rank = w.kernel.size();
  w.strides = n.Ints("strides", std::vector<int64_t>(rank, 1));
  w.dilations = n.Ints("dilations", std::vector<int64_t>(rank, 1));
  w.ceil_mode = n.Int("ceil_mode", 0) != 0;
  std::vector<int64_t> pads = n.Ints("pads", std::vector<int64_t>(2 * rank, 0));
  std::string auto_pad = n.Str("auto_pad", "NOTSET");
  if (Node::Shape(x).size() != rank + 2)
    n.Fail("data with " + std::to_string(rank) + " spatial axes",
           "rank " + std::to_string(Node::Rank(x)));
  if (w.strides.size() != rank || w.dilations.size() != rank || pads.size() != 2 * rank)
    n.Fail("strides, dilations and pads for " + std::to_string(rank) + " axes", "others");
  for (size_t i = 0; i < rank; ++i) {
    if (w.strides[i] <= 0 || w.dilations[i] <= 0 || w.kernel[i] <= 0)
      n.Fail("kernel, strides and dilations of at least 1", "smaller ones");
    w.before.push_back(Num(pads[i]));
    w.after.push_back(Num(pads[i + rank]));
    if (auto_pad == "VALID") {
      w.before[i] = w.after[i] = Num(0);
    } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      PrimExpr dim = Node::Shape(x)[i + 2], stride = Num(w.strides[i]);
      PrimExpr count = floordiv(dim + stride - Num(1), stride);
      PrimExpr span = Num((w.kernel[i] - 1) * w.dilations[i] + 1);
      PrimExpr total = max((count - Num(1)) * stride + span - dim, Num(0));
      PrimExpr less = n.Simplify(floordiv(total, Num(2))), more = n.Simplify(total - less);
      bool upper = auto_pad == "SAME_UPPER";
      w.before[i] = upper ? less : more;
      w.after[i] = upper ? more : less;
    } else if (auto_pad != "NOTSET") {
      n.Fail("auto_pad to be NOTSET, VALID, SAME_UPPER or SAME_LOWER", auto_pad);
    }
  }
  return w;
}
PrimExpr WindowCount(Node& n, const Window& w, size_t i, const PrimExpr& dim) {
  PrimExpr stride = Num(w.strides[i]), span = Num((w.kernel[i] - 1) * w.dilations[i] + 1);
  PrimExpr room = dim + w.before[i] + w.after[i] - span;
  PrimExpr count = floordiv(room + (w.ceil_mode ? stride - Num(1) : Num(0)), stride) + Num(1);
  if (w.ceil_mode) {
    // A window that would begin behind the data and its first padding is left out.
    count = count - tir::Select((count - Num(1)) * stride >= dim + w.before[i], Num(1), Num(0));
  }
  return n.Simplify(count);
}

namespace {
std::string SpatialLetters(size_t rank) { return std::string("DHW").substr(3 - rank); }
Expr WithBias(Node& n, const Expr& y, const Expr& bias) {
  Dims shape(Node::Rank(y), Num(1));
  shape.Set(1, Node::Shape(bias)[0]);
  return n("add", y, n.Reshape(bias, shape));
}
/// Padded data.
Expr Padded(Node& n, const Expr& x, const Window& w, const std::optional<Expr>& padding) {
  std::vector<PrimExpr> before(2, Num(0)), after(2, Num(0));
  before.insert(before.end(), w.before.begin(), w.before.end());
  after.insert(after.end(), w.after.begin(), w.after.end());
  Te te(n);
  te::Tensor t = te(x);
  PrimExpr value = padding ? te(n.Reshape(*padding, {}))(Array<PrimExpr>()) : MakeZero(t->dtype);
  return te.Done("pad", topi::nn::pad(t, DimsOf(te(before)), DimsOf(te(after)), value));
}
/// The weight with the sizes of kernel_shape where it does not say its own.
Expr WithKernelShape(Node& n, const Expr& w) {
  std::vector<int64_t> kernel = n.Ints("kernel_shape");
  Dims shape = Node::Shape(w);
  if (kernel.size() + 2 != shape.size()) return w;
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (!AsConstInt(shape[i + 2])) shape.Set(i + 2, Num(kernel[i]));
  }
  return n.Fitted(w, shape);
}
/// The sizes of a weight's window. Without automatic padding nothing depends on one that only
/// running tells, which is 1 here.
std::vector<int64_t> KernelOf(Node& n, const Expr& w, bool is_needed) {
  std::vector<int64_t> kernel;
  for (int64_t i = 2; i < Node::Rank(w); ++i) {
    auto size = AsConstInt(Node::Shape(w)[i]);
    kernel.push_back(size || is_needed ? n.StaticDim(w, i) : 1);
  }
  return kernel;
}
}  // namespace

Expr Convolve(Node& n, Expr x, Expr weight, const Any& out_dtype,
              const std::optional<Expr>& padding) {
  weight = WithKernelShape(n, weight);
  bool is_same = n.Str("auto_pad", "NOTSET").rfind("SAME", 0) == 0;
  std::vector<int64_t> kernel = KernelOf(n, weight, is_same);
  Window w = ReadWindow(n, x, kernel);
  int64_t group = n.Int("group", 1);
  if (w.kernel != kernel) n.Fail("kernel_shape to be that of the weight", "another");
  if (w.size() < 1 || w.size() > 3)
    n.Unsupported("a convolution of " + std::to_string(w.size()) + " dimensions");
  auto pads = w.ConstPads();
  bool is_padded = !pads || std::any_of(pads->begin(), pads->end(), [](int64_t p) { return p; });
  if (!pads || (padding && is_padded)) {
    x = Padded(n, x, w, padding);
    pads = std::vector<int64_t>(2 * w.size(), 0);
  }
  std::string letters = SpatialLetters(w.size());
  std::string name = "nn.conv" + std::to_string(w.size()) + "d";
  return n(name.c_str(), x, weight, List(w.strides), List(*pads), List(w.dilations), group,
           "NC" + letters, "OI" + letters, nullptr, out_dtype);
}

namespace {
Outputs ConvertConv(Node& n) {
  Expr y = Convolve(n, n.In(0), n.In(1), nullptr);
  return n.Has(2) ? WithBias(n, y, n.In(2)) : y;
}
/// A transposed convolution of any window as a sum over it: `cut` is taken off before results of
/// those sizes.
Expr SumTransposed(Node& n, const Expr& x, const Expr& weight, const Window& w, int64_t group,
                   const std::vector<PrimExpr>& cut, const std::vector<PrimExpr>& sizes) {
  Te te(n);
  te::Tensor t = te(x), taps = te(weight);
  std::vector<PrimExpr> first = te(cut), dims = te(sizes);
  DataType exact = t->dtype.bits() == 16 ? DataType::Float(32) : t->dtype;
  PrimExpr each = topi::Simplified(floordiv(t->shape[1], Num(group))), outs = taps->shape[1];
  Dims shape{t->shape[0], topi::Simplified(outs * Num(group))};
  for (const PrimExpr& d : dims) shape.push_back(d);
  auto element = [&](const Index& i) {
    te::IterVar c = topi::Along(each, "c");
    Array<te::IterVar> axes{c};
    PrimExpr channel = floordiv(i[1], outs) * each + c->var, inside = const_true();
    Index from{i[0], channel}, tap{channel, floormod(i[1], outs)};
    for (size_t a = 0; a < w.size(); ++a) {
      te::IterVar k = topi::Along(taps->shape[a + 2], "k" + std::to_string(a));
      PrimExpr at = i[a + 2] + first[a] - k->var * Num(w.dilations[a]);
      PrimExpr source = floordiv(at, Num(w.strides[a]));
      inside = inside && equal(floormod(at, Num(w.strides[a])), Num(0)) && source >= Num(0) &&
               source < t->shape[a + 2];
      axes.push_back(k);
      from.push_back(source);
      tap.push_back(k->var);
    }
    PrimExpr product = tvm::cast(exact, topi::At(t, from)) * tvm::cast(exact, topi::At(taps, tap));
    return te::sum(if_then_else(inside, product, MakeZero(exact)), axes);
  };
  te::Tensor sum = topi::Compute(shape, element, "conv_transpose", topi::kCommReduce);
  return n.Cast(te.Done("conv_transpose", sum), t->dtype);
}
Outputs ConvertConvTranspose(Node& n) {
  Expr x = n.In(0), weight = WithKernelShape(n, n.In(1));
  std::string auto_pad = n.Str("auto_pad", "NOTSET");
  // Its SAME padding is that of the result.
  n.attributes.erase("auto_pad");
  Window w = ReadWindow(n, x, KernelOf(n, weight, false));
  size_t rank = w.size();
  if (rank < 1 || rank > 3)
    n.Unsupported("a convolution of " + std::to_string(rank) + " dimensions");
  int64_t group = n.Int("group", 1);
  std::vector<int64_t> extra = n.Ints("output_padding", std::vector<int64_t>(rank, 0));
  std::vector<int64_t> shape = n.Ints("output_shape");
  std::vector<int64_t> pads = *w.ConstPads();
  bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (shape.size() == rank + 2) shape.erase(shape.begin(), shape.begin() + 2);
  if (auto_pad == "VALID") std::fill(pads.begin(), pads.end(), 0);
  if (extra.size() != rank || (!shape.empty() && shape.size() != rank))
    n.Fail("output_padding and output_shape for " + std::to_string(rank) + " axes", "others");
  bool has_size = same || !shape.empty(), is_open = false;
  std::vector<PrimExpr> cut, sizes;
  for (size_t i = 0; i < rank; ++i) {
    PrimExpr dim = Node::Shape(x)[i + 2], taps = Node::Shape(weight)[i + 2];
    is_open |= !AsConstInt(taps);
    PrimExpr full = (dim - Num(1)) * Num(w.strides[i]) + (taps - Num(1)) * Num(w.dilations[i]) +
                    Num(extra[i] + 1);
    cut.push_back(Num(pads[i]));
    sizes.push_back(n.Simplify(full - Num(pads[i] + pads[i + rank])));
    if (!has_size) continue;
    sizes[i] = shape.empty() ? dim * Num(w.strides[i]) : Num(shape[i]);
    PrimExpr total = n.Simplify(full - sizes[i]), half = floordiv(max(total, Num(0)), Num(2));
    cut[i] = n.Simplify(auto_pad == "SAME_UPPER" ? half : max(total, Num(0)) - half);
    if (auto known = AsConstInt(total)) {
      extra[i] += std::max<int64_t>(-*known, 0);  // zeros behind the result
      pads[i] = *AsConstInt(cut[i]);
      pads[i + rank] = std::max<int64_t>(*known, 0) - pads[i];
    } else {
      is_open = true;
    }
  }
  if (is_open) {
    Expr y = SumTransposed(n, x, weight, w, group, cut, sizes);
    return n.Has(2) ? WithBias(n, y, n.In(2)) : y;
  }
  std::string letters = SpatialLetters(rank);
  bool dilated =
      std::any_of(w.dilations.begin(), w.dilations.end(), [](int64_t d) { return d > 1; });
  bool padded = false;
  for (size_t i = 0; i < rank; ++i) padded |= extra[i] >= w.strides[i];
  Expr y;
  if (rank < 3 && !dilated && !padded) {
    std::string name = "nn.conv" + std::to_string(rank) + "d_transpose";
    y = n(name.c_str(), x, weight, List(w.strides), List(pads), List(extra), List(w.dilations),
          group, "NC" + letters, "IO" + letters);
  } else {
    Te te(n);
    te::Tensor kernel = te(weight), data = te(x);
    if (dilated) {
      Dims steps{Num(1), Num(1)};
      for (int64_t d : w.dilations) steps.push_back(Num(d));
      kernel = topi::nn::dilate(kernel, steps);
    }
    // Zeros behind the result are padding that is not cut off.
    std::vector<int64_t> late = extra, cut = pads;
    for (size_t i = 0; i < rank; ++i) {
      late[i] = std::min(extra[i], w.strides[i] - 1);
      cut[i + rank] -= extra[i] - late[i];
    }
    bool negative = std::any_of(cut.begin(), cut.end(), [](int64_t p) { return p < 0; });
    topi::nn::ConvOptions options;
    options.strides = List(w.strides);
    options.padding = List(negative ? std::vector<int64_t>(2 * rank, 0) : cut);
    options.groups = group;
    options.data_layout = "NC" + letters;
    options.kernel_layout = "IO" + letters;
    options.output_padding = List(negative ? std::vector<int64_t>(rank, 0) : late);
    te::Tensor full = topi::nn::conv_transpose(data, kernel, options);
    if (negative) {
      Dims before{Num(0), Num(0)}, after{Num(0), Num(0)};
      for (size_t i = 0; i < rank; ++i) {
        before.push_back(Num(-cut[i]));
        after.push_back(Num(late[i] - cut[i + rank]));
      }
      full = topi::nn::pad(full, before, after, MakeZero(full->dtype));
    }
    y = te.Done("conv_transpose", full);
  }
  return n.Has(2) ? WithBias(n, y, n.In(2)) : y;
}
/// A convolution whose samples are moved by offsets that are data.
Outputs ConvertDeformConv(Node& n) {
  Expr x = n.In(0), weight = WithKernelShape(n, n.In(1)), offset = n.In(2);
  Window w = ReadWindow(n, x, KernelOf(n, weight, false));
  PrimExpr group = Num(n.Int("group", 1)), offset_group = Num(n.Int("offset_group", 1));
  Te te(n);
  te::Tensor t = te(x), wt = te(weight), off = te(offset);
  std::optional<te::Tensor> bias, mask;
  if (n.Has(3)) bias = te(n.In(3));
  if (n.Has(4)) mask = te(n.In(4));
  DataType d = t->dtype;
  PrimExpr h = t->shape[2], width = t->shape[3];
  PrimExpr channels = t->shape[1], outputs = wt->shape[0], columns = wt->shape[3];
  Dims shape{t->shape[0], outputs, off->shape[2], off->shape[3]};
  PrimExpr per_group = topi::Simplified(floordiv(channels, group));
  te::Tensor sums = topi::Compute(
      shape,
      [&](const Index& i) {
        te::IterVar c = topi::Along(per_group, "c"), ky = topi::Along(wt->shape[2], "ky"),
                    kx = topi::Along(columns, "kx");
        PrimExpr own = topi::Simplified(floordiv(outputs, group));
        PrimExpr channel = floordiv(i[1], own) * per_group + c->var;
        PrimExpr og = floordiv(channel, topi::Simplified(floordiv(channels, offset_group)));
        PrimExpr tap = (og * wt->shape[2] + ky->var) * columns + kx->var;
        auto place = [&](size_t a, const PrimExpr& at, const PrimExpr& k, int64_t part) {
          PrimExpr base = at * Num(w.strides[a]) - w.before[a] + k * Num(w.dilations[a]);
          return tvm::cast(d, base) + off(i[0], tap * Num(2) + Num(part), i[2], i[3]);
        };
        PrimExpr y = place(0, i[2], ky->var, 0), px = place(1, i[3], kx->var, 1);
        auto whole = [](const PrimExpr& e) {
          return tvm::cast(DataType::Int(64),
                           max(min(floor(e), Num(e.dtype(), 1e6)), Num(e.dtype(), -1e6)));
        };
        PrimExpr y0 = whole(y), x0 = whole(px), sum = MakeZero(d);
        for (int64_t a : {0, 1}) {
          for (int64_t b : {0, 1}) {
            PrimExpr yy = y0 + Num(a), xx = x0 + Num(b);
            PrimExpr inside = yy >= Num(0) && yy < h && xx >= Num(0) && xx < width;
            PrimExpr weight_y = Num(d, 1) - tvm::abs(y - tvm::cast(d, yy));
            PrimExpr weight_x = Num(d, 1) - tvm::abs(px - tvm::cast(d, xx));
            sum = sum +
                  if_then_else(inside, weight_y * weight_x * t(i[0], channel, yy, xx), MakeZero(d));
          }
        }
        if (mask) sum = sum * (*mask)(i[0], tap, i[2], i[3]);
        return te::sum(sum * wt(i[1], c->var, ky->var, kx->var), {c, ky, kx});
      },
      "deform_conv", topi::kCommReduce);
  if (!bias) return te.Done("deform_conv", sums);
  return ComputeElements(n, "deform_conv", te, shape,
                         [&](const Index& i) { return topi::At(sums, i) + (*bias)(i[1]); });
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"Conv", &ConvertConv},
      {"ConvTranspose", &ConvertConvTranspose},
      {"DeformConv", &ConvertDeformConv},
  });
}

}  // namespace tvm::frontend::onnx
