// SPDX-License-Identifier: Apache-2.0
// What passes over products of matrices have in common.
#pragma once
#include <optional>

#include "relax/transform/calls_op.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/operator.h"

namespace tvm::relax {

/// The dimensions of a tensor, or nothing.
inline Optional<Array<PrimExpr>> DimsOfTensor(const Expr& expr) {
  auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr);
  return tensor ? tensor->Dims() : Optional<Array<PrimExpr>>();
}
inline int64_t RankOf(const Expr& expr) {
  auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr);
  return tensor ? tensor->ndim : -1;
}
/// The order of dimensions that a call of permute_dims makes of this many.
inline std::vector<int64_t> PermutationOf(const CallObj* permute, int64_t ndim) {
  std::vector<int64_t> order;
  auto* attrs = static_cast<const PermuteDimsAttrsObj*>(permute->attrs.value().get());
  for (int64_t i = 0; i < ndim; ++i) {
    int64_t axis = attrs->axes ? attrs->axes.value()[i]->value : ndim - 1 - i;
    order.push_back(axis < 0 ? axis + ndim : axis);
  }
  return order;
}
/// Whether it exchanges the last two dimensions and nothing else.
inline bool SwapsLastTwo(const CallObj* permute) {
  int64_t ndim = RankOf(permute->args[0]);
  if (ndim < 2) return false;
  std::vector<int64_t> order = PermutationOf(permute, ndim);
  for (int64_t i = 0; i < ndim; ++i) {
    int64_t wanted = i < ndim - 2 ? i : 2 * ndim - 3 - i;
    if (order[i] != wanted) return false;
  }
  return true;
}
/// The matrices of a tensor transposed.
inline Expr Transposed(const Expr& expr) {
  int64_t ndim = RankOf(expr);
  Ints axes;
  for (int64_t i = 0; i < ndim - 2; ++i) axes.push_back(IntImm::Int32(i));
  axes.push_back(IntImm::Int32(ndim - 1));
  axes.push_back(IntImm::Int32(ndim - 2));
  return CallOperator("relax.permute_dims", {expr, axes});
}
/// Whether there is a product at all.
inline bool CallsMatmul(const Function& func) {
  return CallsOp(func, [](const OpObj* op) { return View(op->name) == "relax.matmul"; });
}
inline DataType OutTypeOf(const CallObj* matmul) {
  return static_cast<const MatmulAttrsObj*>(matmul->attrs.value().get())->out_dtype;
}
inline Expr Product(const Expr& a, const Expr& b, DataType out_dtype) {
  static const Op& matmul = *new Op(Op::Get("relax.matmul"));
  return Call(matmul, {a, b}, MatmulAttrs(out_dtype));
}

/// What does not depend on the inputs: weights, and what is computed from them. Nothing for
/// functions that do not say which of their parameters are weights.
class CompileTime {
 public:
  explicit CompileTime(const Function& func);
  bool Knows(const Expr& expr) const;

 private:
  std::vector<const Object*> ids_;  // sorted
};

}  // namespace tvm::relax
