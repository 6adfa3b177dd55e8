// SPDX-License-Identifier: Apache-2.0
// Products of matrices, softmax, determinants.
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
Outputs ConvertMatMul(Node& n) { return n("matmul", n.In(0), n.In(1)); }
Outputs ConvertGemm(Node& n) {
  Expr a = n.In(0), b = n.In(1);
  double alpha = n.Float("alpha", 1), beta = n.Float("beta", 1);
  if (n.Int("transA", 0)) a = Transposed(n, a, {1, 0});
  if (n.Int("transB", 0)) b = Transposed(n, b, {1, 0});
  Expr y = n("matmul", a, b);
  DataType t = Node::TypeOf(y);
  if (alpha != 1) y = n("multiply", y, n.Scalar(alpha, t));
  if (!n.Has(2)) return y;
  Expr c = n.In(2);
  if (beta != 1) c = n("multiply", c, n.Scalar(beta, t));
  return n("add", y, c);
}
Outputs ConvertEinsum(Node& n) {
  auto all = n.All();
  std::string equation = n.Str("equation");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  return n("einsum", relax::Tuple(Array<Expr>(all.begin(), all.end())), equation);
}

// ---- softmax ------------------------------------------------------------------------------------
/// Along an axis; before opset 13 over all axes from that one on.
template <class F>
Outputs AlongAxis(Node& n, F along) {
  Expr x = n.In(0);
  int64_t rank = Node::Rank(x), axis = n.Int("axis", n.opset < 13 ? 1 : -1);
  if (n.opset >= 13) return along(x, n.Axis(axis, std::max<int64_t>(rank, 1)));
  axis = axis == rank ? rank : n.Axis(axis, rank);
  Dims shape = Node::Shape(x);
  PrimExpr outer = Num(1), inner = Num(1);
  for (int64_t i = 0; i < rank; ++i) {
    PrimExpr& part = i < axis ? outer : inner;
    part = part * shape[i];
  }
  if (axis == rank - 1) return along(x, axis);
  return n.Reshape(along(n.Reshape(x, {n.Simplify(outer), n.Simplify(inner)}), 1), shape);
}
template <Text op>
Outputs Softmax(Node& n) {
  return AlongAxis(n, [&](const Expr& x, int64_t axis) {
    if (Node::Rank(x) > 0) return n(op.value, x, axis);
    return n("squeeze", n(op.value, n.Reshape(x, {Num(1)}), 0));
  });
}
/// 1 at the first of the largest elements, 0 elsewhere.
Outputs ConvertHardmax(Node& n) {
  return AlongAxis(n, [&](const Expr& x, int64_t axis) {
    Expr first = n("argmax", x, axis, true);
    Te te(n);
    te::Tensor t = te(x), at = te(first);
    return ComputeElements(n, "hardmax", te, t->shape, [&](const Index& i) -> PrimExpr {
      Index row = i;
      row[axis] = Num(0);
      return tir::Select(equal(topi::At(at, row), i[axis]), Num(t->dtype, 1), Num(t->dtype, 0));
    });
  });
}

// ---- determinants -------------------------------------------------------------------------------
/// By the formula for small matrices, by expansion along the first row for larger ones.
PrimExpr Determinant(const te::Tensor& t, Index at, std::vector<int64_t> columns, int64_t row) {
  size_t rank = t->shape.size();
  PrimExpr sum = MakeZero(t->dtype);
  if (columns.empty()) return Num(t->dtype, 1);
  for (size_t k = 0; k < columns.size(); ++k) {
    at[rank - 2] = Num(row);
    at[rank - 1] = Num(columns[k]);
    std::vector<int64_t> rest = columns;
    rest.erase(rest.begin() + static_cast<int64_t>(k));
    PrimExpr term = topi::At(t, at) * Determinant(t, at, rest, row + 1);
    sum = k % 2 ? sum - term : sum + term;
  }
  return sum;
}
Outputs ConvertDet(Node& n) {
  Expr x = n.In(0);
  int64_t rank = Node::Rank(x);
  if (rank < 2) n.Fail("a matrix", "rank " + std::to_string(rank));
  int64_t size = n.StaticDim(x, rank - 1);
  if (size > 6) n.Unsupported("determinants of more than 6 rows");
  std::vector<int64_t> columns;
  for (int64_t i = 0; i < size; ++i) columns.push_back(i);
  Te te(n);
  te::Tensor t = te(x);
  Dims shape(t->shape.begin(), t->shape.end() - 2);
  return ComputeElements(n, "det", te, shape, [&](Index i) {
    i.resize(rank, Num(0));
    return Determinant(t, i, columns, 0);
  });
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"Det", &ConvertDet},
      {"Einsum", &ConvertEinsum},
      {"Gemm", &ConvertGemm},
      {"Hardmax", &ConvertHardmax},
      {"LogSoftmax", &Softmax<"nn.log_softmax">},
      {"MatMul", &ConvertMatMul},
      {"Softmax", &Softmax<"nn.softmax">},
  });
}

}  // namespace tvm::frontend::onnx
