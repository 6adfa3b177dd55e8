// SPDX-License-Identifier: Apache-2.0
// Tensors as lists of the places of their elements.
#include "topi/shape.h"

namespace tvm::topi {
namespace {
PrimExpr ProductOf(const Index& factors, DataType t) {
  PrimExpr product = MakeConst(t, 1);
  for (const PrimExpr& factor : factors) product = product * factor;
  return product;
}
/// The places of elements when their tensor has another shape, and that shape. Shapes are data.
Array<Tensor> SparseReshape(const Tensor& sparse_indices, const Tensor& prev_shape,
                            const Tensor& new_shape, const Shape& new_sparse_indices_shape,
                            const Shape& new_shape_shape) {
  constexpr const char* kOp = "sparse_reshape";
  CheckRank(kOp, "places (elements, axes)", sparse_indices, 2);
  CheckRank(kOp, "a shape", prev_shape, 1);
  CheckRank(kOp, "a shape", new_shape, 1);
  for (const Tensor& t : {sparse_indices, prev_shape, new_shape}) CheckIsIndex(kOp, t->dtype);
  auto before = AsConstInt(prev_shape->shape[0]), after = AsConstInt(new_shape->shape[0]);
  bool fits = before && after && !DifferentDim(sparse_indices->shape[1], prev_shape->shape[0]) &&
              new_sparse_indices_shape.size() == 2 && new_shape_shape.size() == 1 &&
              !DifferentDim(new_sparse_indices_shape[0], sparse_indices->shape[0]) &&
              !DifferentDim(new_sparse_indices_shape[1], new_shape->shape[0]) &&
              !DifferentDim(new_shape_shape[0], new_shape->shape[0]);
  if (!fits) {
    Complain(kOp, "places with an axis for each of the shapes, whose lengths are known",
             Text(sparse_indices->shape) + ", " + Text(prev_shape->shape) + " and " +
                 Text(new_shape->shape));
  }
  DataType t = sparse_indices->dtype;
  PrimExpr unknown = MakeConst(new_shape->dtype, -1);
  Index old_sizes, known;  // known: 1 for the size that is left open
  for (int64_t d = 0; d < *before; ++d)
    old_sizes.push_back(tvm::cast(t, At(prev_shape, {IntImm::Int64(d)})));
  for (int64_t d = 0; d < *after; ++d) {
    PrimExpr size = At(new_shape, {IntImm::Int64(d)});
    known.push_back(tir::Select(equal(size, unknown), MakeConst(t, 1), tvm::cast(t, size)));
  }
  Tensor sizes = Compute(
      new_shape_shape,
      [&](const Index& i) {
        PrimExpr open = floordiv(ProductOf(old_sizes, t), ProductOf(known, t));
        PrimExpr size = At(new_shape, i);
        return tir::Select(equal(size, unknown), tvm::cast(new_shape->dtype, open), size);
      },
      "new_shape");
  Tensor flat = Compute(
      {sparse_indices->shape[0]},
      [&](const Index& i) {
        PrimExpr place = MakeZero(t);
        for (int64_t d = 0; d < *before; ++d)
          place = place * old_sizes[d] + At(sparse_indices, {i[0], IntImm::Int64(d)});
        return place;
      },
      "flat_indices");
  Tensor places = Compute(
      new_sparse_indices_shape,
      [&](const Index& i) {
        PrimExpr rest = flat(i[0]), place = MakeZero(t);
        for (int64_t d = *after - 1; d >= 0; --d) {
          PrimExpr size = tvm::cast(t, At(sizes, {IntImm::Int64(d)}));
          PrimExpr here = d == 0 ? rest : floormod(rest, size);
          place = tir::Select(equal(i[1], MakeConst(i[1].dtype(), d)), here, place);
          rest = floordiv(rest, size);
        }
        return place;
      },
      "new_sparse_indices");
  return {places, sizes};
}

TVM_REGISTER() {
  Def("topi.sparse_reshape", &SparseReshape,
      "The places of elements when their tensor has another shape, in which one size may be -1, "
      "and "
      "that shape.",
      Arg("sparse_indices"), Arg("prev_shape"), Arg("new_shape"), Arg("new_sparse_indices_shape"),
      Arg("new_shape_shape"));
}
}  // namespace
}  // namespace tvm::topi
