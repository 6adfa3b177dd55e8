// SPDX-License-Identifier: Apache-2.0
// Convolutions and transposed convolutions of 1 to 3 dimensions.
#include "window.h"

namespace tvm::relax {
namespace {

template <class A>
constexpr bool kTransposed = requires(A* attrs) { attrs->output_padding; };

template <class A>
void InitConv(A* attrs, int64_t d) {
  SpreadOne(&attrs->strides, d, "strides");
  SpreadOne(&attrs->dilation, d, "dilation");
  SpreadPadding(&attrs->padding, d);
  if constexpr (kTransposed<A>) SpreadOne(&attrs->output_padding, d, "output_padding");
  if (attrs->out_layout.empty()) attrs->out_layout = attrs->data_layout;
}
void CheckPositive(Infer& in, const Ints& values, const char* what) {
  for (const IntImm& value : values) {
    if (value->value <= 0)
      TVM_RAISE(in) << "expected positive " << what << ", got " << value->value;
  }
}

template <class A, int64_t d>
StructInfo InferConv(Infer& in) {
  constexpr bool transposed = kTransposed<A>;
  const TensorStructInfoObj *data = in.Tensor(0), *weight = in.Tensor(1);
  auto* attrs = in.attrs<A>();
  CheckPositive(in, attrs->strides, "strides");
  CheckPositive(in, attrs->dilation, "dilation");
  if (attrs->groups <= 0) TVM_RAISE(in) << "expected positive groups, got " << attrs->groups;
  DataType dtype = attrs->out_dtype;
  if (dtype.is_void()) dtype = in.SameType(data->dtype, weight->dtype);
  const std::string layout = CanonicalLayout("NC", d);
  auto x = Canonical(in, data, attrs->data_layout, layout, "data");
  auto w = Canonical(in, weight, attrs->kernel_layout, CanonicalLayout(transposed ? "IO" : "OI", d),
                     "weight");
  if (!x || !w) return InLayout(in, std::nullopt, layout, attrs->out_layout, dtype);
  PrimExpr groups = Dim(attrs->groups);
  if constexpr (transposed) {
    in.ExpectSame((*x)[1], (*w)[0], "the channels of data and weight");
    if (auto c = AsConstInt((*x)[1]); c && *c % attrs->groups != 0) {
      TVM_RAISE(in) << "expected channels that groups = " << attrs->groups << " divides, got "
                    << *c;
    }
  } else {
    in.ExpectSame((*x)[1], in.Simplify((*w)[1] * groups),
                  "the channels of data and those of weight times groups");
    if (auto o = AsConstInt((*w)[0]); o && *o % attrs->groups != 0) {
      TVM_RAISE(in) << "expected output channels that groups = " << attrs->groups
                    << " divides, got " << *o;
    }
  }
  Dims dims{(*x)[0], transposed ? in.Simplify((*w)[1] * groups) : (*w)[0]};
  for (int64_t i = 0; i < d; ++i) {
    int64_t stride = attrs->strides[i]->value;
    PrimExpr pads = Dim(attrs->padding[i]->value + attrs->padding[d + i]->value);
    PrimExpr reach = Dim(attrs->dilation[i]->value) * ((*w)[2 + i] - Dim(1));
    if constexpr (transposed) {
      int64_t extra = attrs->output_padding[i]->value;
      if (extra < 0 || extra >= stride) {
        TVM_RAISE(in) << "expected output_padding below the stride " << stride << ", got " << extra;
      }
      dims.push_back(
          in.Simplify(((*x)[2 + i] - Dim(1)) * Dim(stride) - pads + reach + Dim(extra + 1)));
    } else {
      dims.push_back(
          in.Simplify(floordiv((*x)[2 + i] + pads - reach - Dim(1), Dim(stride)) + Dim(1)));
    }
    if (auto n = AsConstInt(dims.back()); n && *n < 0) {
      TVM_RAISE(in) << "expected a window that fits in the padded data, got " << ShowShape(data)
                    << " and a kernel of " << TextOf((*w)[2 + i]) << " in dimension " << i;
    }
  }
  return InLayout(in, dims, layout, attrs->out_layout, dtype);
}

template <class A, int64_t d>
void DefConv(const char* name, const char* schema, const char* doc) {
  Operator(name, schema, &InferConv<A, d>, doc)
      .Attrs<A>()
      .Pattern(kOutEWiseFusable)
      .Precision(kAlways);
}

TVM_REGISTER() {
  DefConv<Conv1DAttrsObj, 1>(
      "relax.nn.conv1d",
      "data: Tensor, weight: Tensor, strides=1, padding=0, dilation=1, groups=1, "
      "data_layout='NCW', kernel_layout='OIW', out_layout=None, out_dtype=None",
      "A convolution of one dimension.");
  DefConv<Conv2DAttrsObj, 2>(
      "relax.nn.conv2d",
      "data: Tensor, weight: Tensor, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, "
      "data_layout='NCHW', kernel_layout='OIHW', out_layout=None, out_dtype=None",
      "A convolution of two dimensions.");
  DefConv<Conv3DAttrsObj, 3>(
      "relax.nn.conv3d",
      "data: Tensor, weight: Tensor, strides=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), "
      "groups=1, data_layout='NCDHW', kernel_layout='OIDHW', out_layout=None, out_dtype=None",
      "A convolution of three dimensions.");
  DefConv<Conv1DTransposeAttrsObj, 1>(
      "relax.nn.conv1d_transpose",
      "data: Tensor, weight: Tensor, strides=1, padding=0, output_padding=0, dilation=1, "
      "groups=1, data_layout='NCW', kernel_layout='IOW', out_layout=None, out_dtype=None",
      "A transposed convolution of one dimension.");
  DefConv<Conv2DTransposeAttrsObj, 2>(
      "relax.nn.conv2d_transpose",
      "data: Tensor, weight: Tensor, strides=(1, 1), padding=(0, 0), output_padding=(0, 0), "
      "dilation=(1, 1), groups=1, data_layout='NCHW', kernel_layout='IOHW', out_layout=None, "
      "out_dtype=None",
      "A transposed convolution of two dimensions.");
}

}  // namespace

void Conv1DAttrsObj::Init() { InitConv(this, 1); }
void Conv2DAttrsObj::Init() { InitConv(this, 2); }
void Conv3DAttrsObj::Init() { InitConv(this, 3); }
void Conv1DTransposeAttrsObj::Init() { InitConv(this, 1); }
void Conv2DTransposeAttrsObj::Init() { InitConv(this, 2); }

}  // namespace tvm::relax
