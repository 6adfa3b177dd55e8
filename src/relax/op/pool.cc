// SPDX-License-Identifier: Apache-2.0
// Pools of 1 to 3 dimensions.
#include "window.h"

namespace tvm::relax {
namespace {

template <class A>
void InitPool(A* attrs, int64_t d) {
  SpreadOne(&attrs->pool_size, d, "pool_size");
  SpreadOne(&attrs->strides, d, "strides");
  SpreadOne(&attrs->dilation, d, "dilation");
  SpreadPadding(&attrs->padding, d);
  if (attrs->out_layout.empty()) attrs->out_layout = attrs->layout;
}
template <class A>
void InitAdaptive(A* attrs, int64_t d) {
  if (attrs->output_size.has_value()) {
    Ints sizes = *attrs->output_size;
    SpreadOne(&sizes, d, "output_size");
    attrs->output_size = sizes;
  }
  if (attrs->out_layout.empty()) attrs->out_layout = attrs->layout;
}

/// The number of windows; rounding up, a window that would begin in the padding at the end is none.
PrimExpr Windows(Infer& in, const PrimExpr& dim, int64_t begin, int64_t end, int64_t reach,
                 int64_t stride, bool ceil_mode) {
  PrimExpr room = dim + Dim(begin + end - reach - 1);
  if (!ceil_mode) return in.Simplify(floordiv(room, Dim(stride)) + Dim(1));
  PrimExpr count = in.Simplify(floordiv(room + Dim(stride - 1), Dim(stride)) + Dim(1));
  PrimExpr outside = in.Simplify((count - Dim(1)) * Dim(stride) >= dim + Dim(begin));
  if (IsTrue(outside)) return in.Simplify(count - Dim(1));
  if (IsFalse(outside)) return count;
  return if_then_else(outside, count - Dim(1), count);
}
template <class A, int64_t d>
StructInfo InferPool(Infer& in) {
  const TensorStructInfoObj* data = in.Tensor(0);
  auto* attrs = in.attrs<A>();
  const std::string layout = CanonicalLayout("NC", d);
  auto x = Canonical(in, data, attrs->layout, layout, "data");
  for (int64_t i = 0; i < d; ++i) {
    for (const Ints& values : {attrs->pool_size, attrs->strides, attrs->dilation}) {
      if (values[i]->value <= 0) {
        TVM_RAISE(in) << "expected positive pool_size, strides and dilation, got "
                      << values[i]->value;
      }
    }
    if (!x) continue;
    int64_t reach = attrs->dilation[i]->value * (attrs->pool_size[i]->value - 1);
    x->Set(2 + i, Windows(in, (*x)[2 + i], attrs->padding[i]->value, attrs->padding[d + i]->value,
                          reach, attrs->strides[i]->value, attrs->ceil_mode));
    if (auto n = AsConstInt((*x)[2 + i]); n && *n < 0) {
      TVM_RAISE(in) << "expected a window that fits in the padded data, got " << ShowShape(data)
                    << " and a window of " << reach + 1 << " in dimension " << i;
    }
  }
  return InLayout(in, x, layout, attrs->out_layout, data->dtype);
}
template <class A, int64_t d>
StructInfo InferMeanPool(Infer& in) {
  in.ExpectNoBool(in.Tensor(0), "data");
  return InferPool<A, d>(in);
}
template <class A, int64_t d>
StructInfo InferAdaptivePool(Infer& in) {
  const TensorStructInfoObj* data = in.Tensor(0);
  in.ExpectNoBool(data, "data");
  auto* attrs = in.attrs<A>();
  const std::string layout = CanonicalLayout("NC", d);
  auto x = Canonical(in, data, attrs->layout, layout, "data");
  for (int64_t i = 0; attrs->output_size.has_value() && i < d; ++i) {
    int64_t size = (*attrs->output_size)[i]->value;
    if (size <= 0) TVM_RAISE(in) << "expected a positive output_size, got " << size;
    if (x) x->Set(2 + i, Dim(size));
  }
  return InLayout(in, x, layout, attrs->out_layout, data->dtype);
}

template <class A, int64_t d>
void DefPool(const char* name, const std::string& size, const char* include_pad, const char* doc,
             StructInfo (*infer)(Infer&) = &InferPool<A, d>) {
  const std::string one = size, zeros = d == 1 ? "(0, 0)" : d == 2 ? "(0, 0)" : "(0, 0, 0)";
  std::string schema = "data: Tensor, pool_size=" + one + ", strides=" + one +
                       ", padding=" + zeros + ", dilation=" + one +
                       ", ceil_mode=False, count_include_pad=" + include_pad + ", layout='" +
                       CanonicalLayout("NC", d) + "', out_layout=None";
  Operator(name, schema.c_str(), infer, doc)
      .template Attrs<A>()
      .Pattern(kOutEWiseFusable)
      .Precision(kFollow);
}
template <class A, int64_t d>
void DefAdaptive(const char* name) {
  std::string schema =
      "data: Tensor, output_size=None, layout='" + CanonicalLayout("NC", d) + "', out_layout=None";
  Operator(name, schema.c_str(), &InferAdaptivePool<A, d>,
           "The mean over windows chosen such that the result has the output_size.")
      .template Attrs<A>()
      .Pattern(kOutEWiseFusable)
      .Precision(kFollow);
}

TVM_REGISTER() {
  const char *largest = "The largest element in each window.", *mean = "The mean of each window.";
  DefPool<Pool1DAttrsObj, 1>("relax.nn.max_pool1d", "(1,)", "False", largest);
  DefPool<Pool2DAttrsObj, 2>("relax.nn.max_pool2d", "(1, 1)", "False", largest);
  DefPool<Pool3DAttrsObj, 3>("relax.nn.max_pool3d", "(1, 1, 1)", "False", largest);
  DefPool<Pool1DAttrsObj, 1>("relax.nn.avg_pool1d", "(1,)", "True", mean,
                             &InferMeanPool<Pool1DAttrsObj, 1>);
  DefPool<Pool2DAttrsObj, 2>("relax.nn.avg_pool2d", "(1, 1)", "False", mean,
                             &InferMeanPool<Pool2DAttrsObj, 2>);
  DefPool<Pool3DAttrsObj, 3>("relax.nn.avg_pool3d", "(1, 1, 1)", "True", mean,
                             &InferMeanPool<Pool3DAttrsObj, 3>);
  DefAdaptive<AdaptivePool1DAttrsObj, 1>("relax.nn.adaptive_avg_pool1d");
  DefAdaptive<AdaptivePool2DAttrsObj, 2>("relax.nn.adaptive_avg_pool2d");
  DefAdaptive<AdaptivePool3DAttrsObj, 3>("relax.nn.adaptive_avg_pool3d");
}

}  // namespace

void Pool1DAttrsObj::Init() { InitPool(this, 1); }
void Pool2DAttrsObj::Init() { InitPool(this, 2); }
void Pool3DAttrsObj::Init() { InitPool(this, 3); }
void AdaptivePool1DAttrsObj::Init() { InitAdaptive(this, 1); }
void AdaptivePool2DAttrsObj::Init() { InitAdaptive(this, 2); }
void AdaptivePool3DAttrsObj::Init() { InitAdaptive(this, 3); }

}  // namespace tvm::relax
