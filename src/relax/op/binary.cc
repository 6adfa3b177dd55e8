// SPDX-License-Identifier: Apache-2.0
// Operators on the elements of two or three tensors that broadcast: a row each.
#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

/// The result of `dtype`; a scalar broadcasts to any tensor, two scalars give a scalar.
StructInfo BroadcastTo(Infer& in, DataType dtype) {
  const TensorStructInfoObj *a = in.AsTensor(0), *b = in.AsTensor(1);
  if (!a && !b) return PrimStructInfo(dtype);
  if (!a || !b ||
      (a->shape.has_value() && b->shape.has_value() && (*a->shape).same_as(*b->shape))) {
    // The shape is that of one operand, also where it is a variable.
    const TensorStructInfoObj* x = a ? a : b;
    auto device = in.Device();
    if (x->dtype == dtype && (x->vdevice.has_value() || !device.has_value()))
      return in.Of(a ? 0 : 1);
    if (x->shape.has_value()) return TensorStructInfo(*x->shape, dtype, device);
    return TensorStructInfo(dtype, x->ndim, device);
  }
  Shape shape = in.Broadcast(Shape(a), Shape(b));
  // One operand has the shape of the result: the object is shared.
  for (const TensorStructInfoObj* x : {a, b}) {
    if (shape.known() && x->shape.has_value() && DimsOf(x)->same_as(*shape.dims))
      return TensorStructInfo(*x->shape, dtype, in.Device());
  }
  return in.Result(std::move(shape), dtype);
}
StructInfo InferArithmetic(Infer& in) {
  return BroadcastTo(in, in.SameType(in.TypeOf(0), in.TypeOf(1)));
}
StructInfo InferComparison(Infer& in) {
  in.SameType(in.TypeOf(0), in.TypeOf(1));
  return BroadcastTo(in, DataType::Bool());
}

struct BinaryRow {
  const char* name;
  InferFn infer;
  const char* doc;
};
constexpr BinaryRow kBinary[] = {
    {"relax.add", &InferArithmetic, "x1 + x2"},
    {"relax.divide", &InferArithmetic, "x1 / x2; integers round towards zero."},
    {"relax.floor_divide", &InferArithmetic, "The quotient rounded down."},
    {"relax.log_add_exp", &InferArithmetic, "log(exp(x1) + exp(x2)) without overflow."},
    {"relax.multiply", &InferArithmetic, "x1 * x2"},
    {"relax.power", &InferArithmetic, "x1 to the power x2."},
    {"relax.subtract", &InferArithmetic, "x1 - x2"},
    {"relax.mod", &InferArithmetic, "The remainder with the sign of x1."},
    {"relax.floor_mod", &InferArithmetic, "The remainder with the sign of x2."},
    {"relax.maximum", &InferArithmetic, "The larger one; NaN if either is."},
    {"relax.minimum", &InferArithmetic, "The smaller one; NaN if either is."},
    {"relax.logical_and", &InferArithmetic, "Whether both are true."},
    {"relax.logical_or", &InferArithmetic, "Whether one is true."},
    {"relax.logical_xor", &InferArithmetic, "Whether exactly one is true."},
    {"relax.bitwise_and", &InferArithmetic, "x1 & x2"},
    {"relax.bitwise_or", &InferArithmetic, "x1 | x2"},
    {"relax.bitwise_xor", &InferArithmetic, "x1 ^ x2"},
    {"relax.left_shift", &InferArithmetic, "x1 << x2; 0 from the width on."},
    {"relax.right_shift", &InferArithmetic, "x1 >> x2; 0 or the sign from the width on."},
    {"relax.equal", &InferComparison, "x1 == x2"},
    {"relax.greater", &InferComparison, "x1 > x2"},
    {"relax.greater_equal", &InferComparison, "x1 >= x2"},
    {"relax.less", &InferComparison, "x1 < x2"},
    {"relax.less_equal", &InferComparison, "x1 <= x2"},
    {"relax.not_equal", &InferComparison, "x1 != x2"},
};

StructInfo InferFma(Infer& in) {
  const TensorStructInfoObj *a = in.Tensor(0), *b = in.Tensor(1), *c = in.Tensor(2);
  DataType dtype = in.SameType(in.SameType(a->dtype, b->dtype), c->dtype);
  for (const TensorStructInfoObj* other : {b, c}) {
    if (a->ndim >= 0 && other->ndim >= 0 && a->ndim != other->ndim) {
      TVM_RAISE(in) << "expected tensors of one rank, got " << ShowShape(a) << " and "
                    << ShowShape(other);
    }
    if (!DimsOf(a) || !DimsOf(other)) continue;
    for (int64_t i = 0; i < a->ndim; ++i)
      in.ExpectSame((*DimsOf(a))[i], (*DimsOf(other))[i], "the dimensions of the tensors");
  }
  bool same = DimsOf(a) && DimsOf(b) && DimsOf(c);
  for (int64_t i = 0; same && i < a->ndim; ++i) {
    const PrimExpr dim = (*DimsOf(a))[i];
    same = in.Equal(dim, (*DimsOf(b))[i]) && in.Equal(dim, (*DimsOf(c))[i]);
  }
  int64_t ndim = std::max({a->ndim, b->ndim, c->ndim});
  return in.Result(same ? Shape(a) : Shape::Rank(ndim), dtype);
}

StructInfo InferWhere(Infer& in) {
  const TensorStructInfoObj *condition = in.Tensor(0), *a = in.Tensor(1), *b = in.Tensor(2);
  if (!condition->dtype.is_void() && !condition->dtype.is_bool()) {
    TVM_RAISE_TYPE(in) << "expected a condition of type bool, got " << condition->dtype;
  }
  DataType dtype = a->dtype.is_void() || b->dtype.is_void() ? DataType::Void() : a->dtype;
  if (!dtype.is_void() && a->dtype != b->dtype) {
    TVM_RAISE_TYPE(in) << "expected operands of one type, got " << a->dtype << " and " << b->dtype;
  }
  Shape values = in.Broadcast(Shape(a), Shape(b));
  return in.Result(in.Broadcast(Shape(condition), values), dtype);
}

TVM_REGISTER() {
  for (const BinaryRow& row : kBinary) {
    Operator(row.name, "x1: Value, x2: Value", row.infer, row.doc)
        .Pattern(kBroadcast)
        .Precision(kFollow);
  }
  Operator("relax.ewise_fma", "x1: Tensor, x2: Tensor, x3: Tensor", &InferFma,
           "x1 * x2 + x3, element by element.")
      .Pattern(kElemWise)
      .Precision(kFollow);
  Operator("relax.where", "condition: Tensor, x1: Value, x2: Value", &InferWhere,
           "x1 where the condition holds, else x2.")
      .Pattern(kBroadcast)
      .Precision(kFollow);
}

}  // namespace
}  // namespace tvm::relax
