// SPDX-License-Identifier: Apache-2.0
// Losses, padding, and the operators that gradients are made of.
#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

StructInfo InferCrossEntropy(Infer& in) {
  const TensorStructInfoObj *a = in.Tensor(0), *b = in.Tensor(1);
  DataType dtype = in.SameType(a->dtype, b->dtype);
  if (a->ndim >= 0 && b->ndim >= 0 && a->ndim != b->ndim) {
    TVM_RAISE(in) << "expected predictions and labels of one shape, got " << ShowShape(a) << " and "
                  << ShowShape(b);
  }
  for (int64_t i = 0; DimsOf(a) && DimsOf(b) && i < a->ndim; ++i)
    in.ExpectSame((*DimsOf(a))[i], (*DimsOf(b))[i], "the dimensions of predictions and labels");
  return in.Result(Dims{}, dtype);
}

/// The shape of the targets, which is that of the predictions without the classes.
Shape CheckTargets(Infer& in, size_t first) {
  const TensorStructInfoObj *predictions = in.Tensor(first), *targets = in.Tensor(first + 1);
  in.ExpectInteger(targets, "targets");
  if (predictions->ndim == 0)
    TVM_RAISE(in) << "expected predictions of at least 1 dimension, got ()";
  int64_t classes_axis = predictions->ndim == 1 ? 0 : 1;
  if (predictions->ndim >= 0) in.ExpectRank(targets, predictions->ndim - 1, "targets");
  if (in.size() > first + 2) {
    const TensorStructInfoObj* weights = in.Tensor(first + 2);
    in.ExpectRank(weights, 1, "weights");
    if (!weights->dtype.is_void() && !predictions->dtype.is_void() &&
        weights->dtype != predictions->dtype) {
      TVM_RAISE_TYPE(in) << "expected weights of type " << predictions->dtype << ", got "
                         << weights->dtype;
    }
    if (DimsOf(weights) && DimsOf(predictions)) {
      in.ExpectSame((*DimsOf(predictions))[classes_axis], (*DimsOf(weights))[0],
                    "the number of classes and of weights");
    }
  }
  for (int64_t i = 0; DimsOf(predictions) && DimsOf(targets) && i < targets->ndim; ++i) {
    const PrimExpr want = (*DimsOf(predictions))[i < classes_axis ? i : i + 1];
    in.ExpectSame(want, (*DimsOf(targets))[i], "the dimensions of predictions and targets");
  }
  if (targets->ndim >= 0) return Shape(targets);
  return Shape::Rank(predictions->ndim < 0 ? -1 : predictions->ndim - 1);
}
StructInfo InferNLLLoss(Infer& in) {
  Shape targets = CheckTargets(in, 0);
  const String& reduction = in.attrs<NLLLossAttrsObj>()->reduction;
  in.ExpectOneOf(reduction, {"none", "sum", "mean"}, "reduction");
  return in.Result(reduction == "none" ? targets : Shape(Dims{}), in.Tensor(0)->dtype);
}
StructInfo InferNLLLossBackward(Infer& in) {
  CheckTargets(in, 1);
  return in.Of(1);
}
StructInfo InferSecond(Infer& in) { return in.Of(1); }

StructInfo InferPad(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<PadAttrsObj>();
  in.ExpectOneOf(attrs->pad_mode, {"constant", "reflect", "replicate", "circular", "edge"},
                 "pad_mode");
  auto count = static_cast<int64_t>(attrs->pad_width.size());
  if (x->ndim >= 0 && count != 2 * x->ndim) {
    TVM_RAISE(in) << "expected " << 2 * x->ndim << " numbers in pad_width for the shape "
                  << ShowShape(x) << ", got " << count;
  }
  if (count % 2 != 0) TVM_RAISE(in) << "expected an even number of pad_width, got " << count;
  if (!DimsOf(x)) return in.Result(Shape::Rank(count / 2), x->dtype);
  Dims dims;
  for (int64_t i = 0; i < x->ndim; ++i) {
    int64_t extra = attrs->pad_width[2 * i]->value + attrs->pad_width[2 * i + 1]->value;
    dims.push_back(in.Simplify((*DimsOf(x))[i] + Dim(extra)));
    if (auto n = AsConstInt(dims.back()); n && *n < 0) {
      TVM_RAISE(in) << "expected dimensions of at least 0 after padding, got " << *n
                    << " in dimension " << i;
    }
  }
  return in.Result(dims, x->dtype);
}
StructInfo InferPixelShuffle(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  int64_t r = in.attrs<PixelShuffleAttrsObj>()->upscale_factor;
  if (r <= 0) TVM_RAISE(in) << "expected a positive upscale_factor, got " << r;
  if (x->ndim >= 0 && x->ndim < 3)
    TVM_RAISE(in) << "expected at least 3 dimensions, got " << ShowShape(x);
  if (!DimsOf(x)) return in.Result(Shape::Rank(x->ndim), x->dtype);
  Dims dims = *DimsOf(x);
  size_t c = dims.size() - 3;
  if (auto channels = AsConstInt(dims[c]); channels && *channels % (r * r) != 0) {
    TVM_RAISE(in) << "expected channels that the square of upscale_factor = " << r
                  << " divides, got " << *channels;
  }
  dims.Set(c, in.Simplify(floordiv(dims[c], Dim(r * r))));
  for (size_t i : {c + 1, c + 2}) dims.Set(i, in.Simplify(dims[i] * Dim(r)));
  return in.Result(dims, x->dtype);
}

TVM_REGISTER() {
  auto opaque = [](const char* name, const char* schema, InferFn infer, const char* doc) {
    return Operator(name, schema, infer, doc).Pattern(kOpaque).Precision(kNever);
  };
  opaque("relax.nn.cross_entropy_with_logits", "predictions: Tensor, labels: Tensor",
         &InferCrossEntropy, "-sum(predictions * labels), divided by the batch.");
  opaque("relax.nn.nll_loss",
         "predictions: Tensor, targets: Tensor, weights: Tensor = None, reduction='mean', "
         "ignore_index=-100",
         &InferNLLLoss, "The negative log likelihood of the target classes.")
      .Attrs<NLLLossAttrsObj>();
  Operator("relax.nn.pad", "data: Tensor, pad_width, pad_mode='constant', pad_value=0.0", &InferPad,
           "More elements around: (begin, end) for each dimension in turn.")
      .Attrs<PadAttrsObj>()
      .Pattern(kInjective)
      .Precision(kFollow);
  Operator("relax.nn.pixel_shuffle", "data: Tensor, upscale_factor", &InferPixelShuffle,
           "Blocks of channels as blocks of pixels: (C, H, W) to (C / r², H r, W r).")
      .Attrs<PixelShuffleAttrsObj>()
      .Pattern(kInjective)
      .Precision(kFollow);

  auto same = [](const char* name, const char* doc) {
    Operator(name, "input: Expr", &InferSame, doc).Pattern(kOpaque).Precision(kNever);
  };
  same("relax.grad.no_grad", "The input, through which no gradient flows.");
  same("relax.grad.start_checkpoint", "Begins what is computed again for the gradient.");
  same("relax.grad.end_checkpoint", "Ends what is computed again for the gradient.");
  opaque("relax.grad.nll_loss_backward",
         "output_grad: Tensor, predictions: Tensor, targets: Tensor, weights: Tensor = None, "
         "reduction='mean', ignore_index=-100",
         &InferNLLLossBackward, "The gradient of nll_loss in its predictions.")
      .Attrs<NLLLossAttrsObj>();
  const char* pool =
      "output_grad: Tensor, data: Tensor, pool_size=(1, 1), strides=(1, 1), "
      "padding=(0, 0, 0, 0), dilation=(1, 1), ceil_mode=False, count_include_pad=False, "
      "layout='NCHW', out_layout=None";
  opaque("relax.grad.max_pool2d_backward", pool, &InferSecond, "The gradient of max_pool2d.")
      .Attrs<Pool2DAttrsObj>();
  opaque("relax.grad.avg_pool2d_backward", pool, &InferSecond, "The gradient of avg_pool2d.")
      .Attrs<Pool2DAttrsObj>();
  opaque("relax.grad.take_backward", "output_grad: Tensor, x: Tensor, indices: Tensor, axis=None",
         &InferSecond, "The gradient of take in x.")
      .Attrs<TakeAttrsObj>();
}

}  // namespace
}  // namespace tvm::relax
