// SPDX-License-Identifier: Apache-2.0
// An operator defined in C++, and calls of operators made there.
#include <gtest/gtest.h>

#include "tvm/ir/structural.h"
#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

/// x with its last dimension doubled.
StructInfo InferDouble(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  if (x->ndim == 0) TVM_RAISE(in) << "expected at least 1 dimension, got ()";
  if (!DimsOf(x)) return in.Result(Shape::Rank(x->ndim), x->dtype);
  Dims dims = *DimsOf(x);
  dims.Set(dims.size() - 1, in.Simplify(dims.back() * Dim(2)));
  return in.Result(dims, x->dtype);
}
TVM_REGISTER() {
  Operator("test.double", "x: Tensor, times=1", &InferDouble, "x twice.").Pattern(kInjective);
}

Var Tensor(Dims dims) { return Var("x", TensorStructInfo(dims, DataType::Float(32))); }

TEST(Operator, DefinedInCpp) {
  tir::Var n("n", DataType::Int(64));
  BlockBuilder builder = BlockBuilder::Create();
  Expr call = builder->Normalize(CallOperator("test.double", {Tensor({Dim(3), n}), 2}));
  EXPECT_TRUE(StructuralEqual(GetStructInfo(call),
                              TensorStructInfo(Dims{Dim(3), n * Dim(2)}, DataType::Float(32))));
  EXPECT_THROW(builder->Normalize(CallOperator("test.double", {Tensor({})})), ffi::Error);
}

TEST(Operator, CallsWithTypedAttributes) {
  BlockBuilder builder = BlockBuilder::Create();
  Var x = Tensor({Dim(2), Dim(3)});
  Expr sum = builder->Normalize(
      Call(Op::Get("relax.sum"), {x}, StatisticalAttrs(Ints{IntImm::Int64(1)}, false)));
  EXPECT_TRUE(
      StructuralEqual(GetStructInfo(sum), TensorStructInfo(Dims{Dim(2)}, DataType::Float(32))));
  EXPECT_EQ(FindOperator(Op::Get("relax.sum").get())->args.size(), 3u);
  EXPECT_GE(ListOperators().size(), 219u);
}

}  // namespace
}  // namespace tvm::relax
