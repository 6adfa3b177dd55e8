// SPDX-License-Identifier: Apache-2.0
// The walks over expressions.
#include "tvm/expr/substitute.h"

#include <gtest/gtest.h>

#include "tvm/expr/op.h"

namespace tvm::test {
namespace {
using namespace tir;  // NOLINT(*)

TEST(Substitute, VariablesAreFoundInTheElementsOfAnArray) {
  Var i("i", DataType::Int(32)), j("j", DataType::Int(32));
  Array<PrimExpr> indices{PrimExpr(4), i + 1};
  EXPECT_TRUE(UsesVar(indices, [&](const VarObj* v) { return v == i.get(); }));
  EXPECT_FALSE(UsesVar(indices, [&](const VarObj* v) { return v == j.get(); }));
}

}  // namespace
}  // namespace tvm::test
