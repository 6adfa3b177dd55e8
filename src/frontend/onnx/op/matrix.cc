// SPDX-License-Identifier: Apache-2.0
// Products of matrices, softmax, determinants.
#include "frontend/onnx/op/op.h"
#include "topi/loops.h"

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
/// By elimination with the largest element of a column as pivot. `work` holds a copy.
tir::Stmt Eliminate(const tir::Buffer& from, const tir::Buffer& work, const tir::Buffer& to,
                    const Index& batch) {
  using namespace topi;
  DataType t = from->dtype;
  PrimExpr size = from->shape.back();
  DataType whole = size.dtype();
  auto at = [&](const PrimExpr& row, const PrimExpr& column) {
    Index place = batch;
    place.push_back(row);
    place.push_back(column);
    return place;
  };
  Scalar product("det", t), pivot("pivot", whole), kept("kept", t);
  auto w = [&](const PrimExpr& row, const PrimExpr& column) { return Load(work, at(row, column)); };
  PrimExpr one = MakeConst(whole, 1);
  auto step = [&](const tir::Var& k) {
    auto below = [&](const char* name, auto body) {  // rows, or columns, behind k
      return Loop(name, size - k - one, [&](const tir::Var& i) { return body(i + k + one); });
    };
    tir::Stmt choose = below("r", [&](const PrimExpr& r) {
      return tir::IfThenElse(tvm::abs(w(r, k)) > tvm::abs(w(pivot.Get(), k)), pivot.Set(r));
    });
    tir::Stmt exchange = Loop("c", size, [&](const tir::Var& c) {
      return Steps({kept.Set(w(k, c)), Store(work, at(k, c), w(pivot.Get(), c)),
                    Store(work, at(pivot.Get(), c), kept.Get())});
    });
    tir::Stmt swap = tir::IfThenElse(not_equal(pivot.Get(), k),
                                     Steps({exchange, product.Set(neg(product.Get()))}));
    tir::Stmt clear = below("r", [&](const PrimExpr& r) {
      tir::Stmt row = below("c", [&](const PrimExpr& c) {
        return Store(work, at(r, c), w(r, c) - kept.Get() * w(k, c));
      });
      return Steps({kept.Set(div(w(r, k), w(k, k))), row});
    });
    return Steps({pivot.Set(k), choose, swap, product.Set(product.Get() * w(k, k)),
                  tir::IfThenElse(not_equal(w(k, k), MakeZero(t)), clear)});
  };
  tir::Stmt copy = Loop("r", size, [&](const tir::Var& r) {
    return Loop("c", size,
                [&](const tir::Var& c) { return Store(work, at(r, c), Load(from, at(r, c))); });
  });
  tir::Stmt all = Steps(
      {copy, product.Set(MakeConst(t, 1)), Loop("k", size, step), Store(to, batch, product.Get())});
  return WithBuffer(product.buffer, WithBuffer(pivot.buffer, WithBuffer(kept.buffer, all)));
}
Outputs ConvertDet(Node& n) {
  Expr x = n.In(0);
  int64_t rank = Node::Rank(x);
  if (rank < 2) n.Fail("a matrix", "rank " + std::to_string(rank));
  DataType type = Node::TypeOf(x), exact = type.bits() == 16 ? DataType::Float(32) : type;
  Dims square = Node::Shape(x);
  square.Set(rank - 1, square[rank - 2]);
  Te te(n);
  te::Tensor t = te(n.Cast(n.Fitted(x, square), exact));
  Dims shape(t->shape.begin(), t->shape.end() - 2);
  auto body = [&](const Array<tir::Buffer>& in, const Array<tir::Buffer>& out) {
    return topi::Loops(shape, [&](const Index& i) { return Eliminate(in[0], out[1], out[0], i); });
  };
  Array<te::Tensor> both = topi::Extern("det", {t}, {{shape, exact}, {t->shape, exact}}, body);
  return n.Cast(te.Done("det", both)[0], type);
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
