// SPDX-License-Identifier: Apache-2.0
// Tensor expressions from C++.
#include "tvm/te/te.h"

#include <gtest/gtest.h>

#include "tvm/expr/substitute.h"
#include "tvm/ir/structural.h"

namespace tvm::te {
namespace {

tir::Block FindBlock(const tir::PrimFunc& func, const std::string& name) {
  tir::Block found;
  tir::PostOrderVisit(func->body, [&](const ObjectRef& node) {
    if (auto block = node.as<tir::Block>(); block && (*block)->name_hint == name) found = *block;
  });
  return found;
}

TEST(Te, Sigmoid) {
  Tensor a = placeholder({4, 5}, DataType::Float(32), "A");
  Tensor c =
      compute({4, 5}, [&](const Array<Var>& i) { return div(1, 1 + exp(-a(i[0], i[1]))); }, "C");
  tir::PrimFunc func = CreatePrimFunc({a, c});
  ASSERT_EQ(func->params.size(), 2u);
  tir::Buffer in = func.BufferOf(func->params[0]), out = func.BufferOf(func->params[1]);
  tir::Block block = FindBlock(func, "C");
  ASSERT_TRUE(block.defined());
  Var i = block->iter_vars[0]->var, j = block->iter_vars[1]->var;
  tir::Stmt expected = tir::BufferStore(out, div(1, 1 + exp(-tir::BufferLoad(in, {i, j}))), {i, j});
  EXPECT_TRUE(StructuralEqual(block->body, expected));
}

TEST(Te, Matmul) {
  tir::SizeVar n("n");
  Tensor a = placeholder({n, 8}, DataType::Float(32), "A");
  Tensor b = placeholder({8, n}, DataType::Float(32), "B");
  IterVar k = reduce_axis(Range::FromMinExtent(0, 8), "k");
  Tensor c = compute(
      {n, n}, [&](const Array<Var>& i) { return sum(a(i[0], k->var) * b(k->var, i[1]), {k}); },
      "C");
  tir::Block block = FindBlock(CreatePrimFunc({a, b, c}), "C");
  ASSERT_TRUE(block.defined());
  EXPECT_TRUE(block->init.has_value());
  ASSERT_EQ(block->iter_vars.size(), 3u);
  EXPECT_EQ(block->iter_vars[2]->iter_type, IterVarType::kCommReduce);
  EXPECT_EQ(block->reads.size(), 2u);
}

TEST(Te, InputsAreListedOnce) {
  Tensor a = placeholder({4}), b = placeholder({4});
  Tensor c = compute({4}, [&](const Array<Var>& i) { return a(i[0]) + b(i[0]) * a(i[0]); });
  Array<Tensor> inputs = InputTensors(c->op);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_TRUE(inputs[0] == a && inputs[1] == b);
}

TEST(Te, ErrorsAreExceptions) {
  Tensor a = placeholder({4}, DataType::Float(32), "A");
  EXPECT_THROW(a(4), ffi::Error);
  EXPECT_THROW(a(0, 0), ffi::Error);
  EXPECT_THROW(placeholder({-1}), ffi::Error);
  EXPECT_THROW(CreatePrimFunc({compute({4}, [&](const Array<Var>& i) { return a(i[0]); })}),
               ffi::Error);
}

}  // namespace
}  // namespace tvm::te
