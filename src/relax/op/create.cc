// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors.
#include <cmath>

#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

DataType TypeOr(Infer& in, DataType fallback) {
  DataType dtype = in.attrs<InitAttrsObj>()->dtype;
  return dtype.is_void() ? fallback : dtype;
}
const TensorStructInfoObj* Scalar(Infer& in, size_t i) {
  const TensorStructInfoObj* fill = in.Tensor(i);
  if (fill->ndim > 0) TVM_RAISE(in) << "expected a scalar to fill with, got " << ShowShape(fill);
  return fill;
}
StructInfo InferFull(Infer& in) { return in.OfShape(0, TypeOr(in, Scalar(in, 1)->dtype)); }
StructInfo InferInit(Infer& in) {
  DataType dtype = in.attrs<InitAttrsObj>()->dtype;
  if (dtype.is_void()) TVM_RAISE_TYPE(in) << "expected a dtype, got void";
  return in.OfShape(0, dtype);
}
StructInfo InferLike(Infer& in) {
  if (in.size() > 1 && in.AsTensor(1)) Scalar(in, 1);
  return in.WithType(0, TypeOr(in, in.Tensor(0)->dtype));
}
void CheckInteger(Infer& in, size_t i) {
  DataType dtype = in.Of(i).as<PrimStructInfoObj>()->dtype;
  if (!dtype.is_integer()) {
    TVM_RAISE_TYPE(in) << "argument '" << in.info->Param(i) << "': expected an integer, got "
                       << dtype;
  }
}
StructInfo InferEye(Infer& in) {
  for (size_t i = 0; i < 3; ++i) CheckInteger(in, i);
  auto n = in.Prim(0), m = in.Prim(1);
  auto as_dim = [](const PrimExpr& e) { return cast(DataType::Int(64), e); };
  return in.Result(n && m ? Shape(Dims{as_dim(*n), as_dim(*m)}) : Shape::Rank(2),
                   in.attrs<InitAttrsObj>()->dtype);
}
StructInfo InferEyeLike(Infer& in) {
  CheckInteger(in, 1);
  in.ExpectRank(in.Tensor(0), 2, "the tensor");
  return InferLike(in);
}
StructInfo InferArange(Infer& in) {
  auto start = in.Prim(0), end = in.Prim(1), step = in.Prim(2);
  DataType dtype = in.attrs<InitAttrsObj>()->dtype;
  if (!start || !end || !step) return in.Result(Shape::Rank(1), dtype);
  if (AsConstInt(*step) == 0) TVM_RAISE(in) << "expected a step other than 0, got 0";
  PrimExpr count;
  if (start->dtype().is_int() && end->dtype().is_int() && step->dtype().is_int()) {
    auto s = AsConstInt(*step);
    PrimExpr round = s && *s < 0 ? *step + Dim(1) : *step - Dim(1);
    count = floordiv(*end - *start + round, *step);
  } else {
    DataType f = DataType::Float(32);
    PrimExpr quotient = div(cast(f, *end - *start), cast(f, *step));
    count = cast(DataType::Int(64), ceil(quotient));
  }
  count = in.Simplify(cast(DataType::Int(64), count));
  if (auto n = AsConstInt(count); n && *n < 0) count = Dim(0);
  return in.Result(Dims{count}, dtype);
}
/// arange(end): from 0; without a dtype: int64 for integers, else float32.
Expr FinishArange(Call call) {
  Array<Expr> args = call->args;
  auto* attrs = static_cast<const InitAttrsObj*>((*call->attrs).get());
  if (auto* end = args[1].as<TupleObj>(); end && end->fields.empty()) {
    args = {PrimValue::Int64(0), args[0], args[2]};
  }
  DataType dtype = attrs->dtype;
  if (dtype.is_void()) {
    dtype = DataType::Int(64);
    for (const Expr& arg : args) {
      auto* prim = GetStructInfoAs<PrimStructInfoObj>(arg);
      if (prim && !prim->dtype.is_int()) dtype = DataType::Float(32);
    }
  }
  return Call(call->op, args, InitAttrs(dtype));
}
StructInfo InferWindow(Infer& in) {
  DataType dtype = in.attrs<InitAttrsObj>()->dtype;
  if (!dtype.is_float()) TVM_RAISE_TYPE(in) << "expected a floating-point dtype, got " << dtype;
  CheckInteger(in, 0);
  auto size = in.Prim(0);
  if (auto n = in.ConstPrim(0); n && *n <= 0)
    TVM_RAISE(in) << "expected a positive window_size, got " << *n;
  return in.Result(size ? Shape(Dims{cast(DataType::Int(64), *size)}) : Shape::Rank(1), dtype);
}
StructInfo InferTriangle(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  if (x->ndim >= 0 && x->ndim < 2)
    TVM_RAISE(in) << "expected at least 2 dimensions, got " << ShowShape(x);
  return in.Of(0);
}

TVM_REGISTER() {
  RegisterNode<TriluAttrsObj>("Attributes of operators.");
  auto init = [](const char* name, const char* schema, InferFn infer, const char* doc) {
    return Operator(name, schema, infer, doc)
        .Attrs<InitAttrsObj>()
        .Pattern(kInjective)
        .Precision(kFollow);
  };
  init("relax.full", "shape: Shape, fill_value: Tensor, dtype=None", &InferFull,
       "A tensor filled with a scalar.");
  init("relax.full_like", "x: Tensor, fill_value: Tensor, dtype=None", &InferLike,
       "A tensor of the shape of x filled with a scalar.");
  init("relax.ones", "shape: Shape, dtype", &InferInit, "A tensor of ones.");
  init("relax.ones_like", "x: Tensor, dtype=None", &InferLike, "Ones in the shape of x.");
  init("relax.zeros", "shape: Shape, dtype", &InferInit, "A tensor of zeros.");
  init("relax.zeros_like", "x: Tensor, dtype=None", &InferLike, "Zeros in the shape of x.");
  init("relax.eye", "n: Prim, m: Prim = n, k: Prim = 0, dtype='float32'", &InferEye,
       "An n x m matrix with ones on diagonal k.");
  init("relax.eye_like", "x: Tensor, k: Prim = 0, dtype=None", &InferEyeLike,
       "A matrix of the shape of x with ones on diagonal k.");
  init("relax.arange", "start: Prim, end: Prim = (), step: Prim = 1, dtype=None", &InferArange,
       "start, start + step, … up to but without end; with one number, it is the end.")
      .Finish(&FinishArange);
  init("relax.hamming_window", "window_size: Prim, periodic: Prim, alpha: Prim, beta: Prim, dtype",
       &InferWindow, "The Hamming window alpha - beta * cos(2 * pi * i / n).");
  auto triangle = [](const char* name, const char* doc) {
    Operator(name, "x: Tensor, k: Prim = 0", &InferTriangle, doc)
        .Pattern(kInjective)
        .Precision(kFollow);
  };
  triangle("relax.tril", "The part on and below diagonal k, 0 elsewhere.");
  triangle("relax.triu", "The part on and above diagonal k, 0 elsewhere.");
}

}  // namespace
}  // namespace tvm::relax
