// SPDX-License-Identifier: Apache-2.0
// What converters of operators share.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "frontend/onnx/importer.h"
#include "topi/shape.h"
#include "tvm/topi/elementwise.h"

namespace tvm::frontend::onnx {
using topi::Index;
constexpr DataType kSingle = DataType::Float(32);

/// A text as the parameter of a template.
template <size_t N>
struct Text {
  char value[N];
  consteval Text(const char (&text)[N]) { std::copy_n(text, N, value); }  // NOLINT(*)
};
/// The operator of the graph that is the same.
template <Text op>
Outputs SameOp(Node& n) {
  return n(op.value, n.In(0));
}
inline Array<int64_t> List(const std::vector<int64_t>& values) {
  return Array<int64_t>(values.begin(), values.end());
}
inline Dims DimsOf(const std::vector<PrimExpr>& values) {
  return Dims(values.begin(), values.end());
}
inline PrimExpr Num(int64_t value) { return IntImm::Int64(value); }
inline PrimExpr Num(DataType dtype, double value) { return MakeConst(dtype, value); }
inline PrimExpr ProductOf(const Dims& dims) {
  PrimExpr product = Num(1);
  for (const PrimExpr& d : dims) product = product * d;
  return product;
}
/// `element` of each element. Floating-point types of 16 bits and less are computed in float32.
template <class F>
Expr MapElements(Node& n, const char* name, const Expr& x, F element) {
  Te te(n);
  te::Tensor t = te(x);
  bool is_small = t->dtype.is_float() && t->dtype.bits() <= 16;
  auto of = [&](const Index& i) {
    PrimExpr e = topi::At(t, i);
    if (!is_small) return element(e);
    PrimExpr value = element(tvm::cast(DataType::Float(32), e));
    return value.dtype() == DataType::Float(32) ? tvm::cast(t->dtype, value) : value;
  };
  return te.Done(name, topi::Compute(t->shape, of, name, topi::kElementWise));
}
/// A tensor of that shape, its elements computed from their places.
template <class F>
Expr ComputeElements(Node& n, const char* name, Te& te, const Dims& shape, F element) {
  return te.Done(name, topi::Compute(shape, element, name));
}
inline Expr Shaped(Node& n, const Expr& e, const std::vector<PrimExpr>& dims) {
  return n.Reshape(e, DimsOf(dims));
}
/// x with axes in another order.
inline Expr Transposed(Node& n, const Expr& x, const std::vector<int64_t>& axes) {
  return n("permute_dims", x, List(axes));
}
/// Tensors with the dimensions of the first, but for one axis; running checks what is not known.
inline Array<Expr> Alike(Node& n, const std::vector<Expr>& all, std::optional<int64_t> but = {}) {
  Array<Expr> fitted;
  for (const Expr& e : all) {
    Dims like = Node::Shape(all[0]);
    if (but && static_cast<int64_t>(like.size()) == Node::Rank(e))
      like.Set(*but, Node::Shape(e)[*but]);
    fitted.push_back(n.Fitted(e, like));
  }
  return fitted;
}
inline Expr Concatenated(Node& n, const std::vector<Expr>& all, int64_t axis) {
  return n("concat", relax::Tuple(Alike(n, all, axis)), axis);
}
/// Indices below 0 count from the end of `dim`.
inline Expr FromEnd(Node& n, const Expr& indices, const PrimExpr& dim) {
  Te te(n);
  te::Tensor t = te(indices);
  PrimExpr size = tvm::cast(t->dtype, te(dim));
  return te.Done("from_end", topi::Compute(
                                 t->shape,
                                 [&](const Index& i) -> PrimExpr {
                                   PrimExpr at = topi::At(t, i);
                                   return tir::Select(at < MakeZero(t->dtype), at + size, at);
                                 },
                                 "from_end", topi::kElementWise));
}

}  // namespace tvm::frontend::onnx
