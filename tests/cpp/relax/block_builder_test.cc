// SPDX-License-Identifier: Apache-2.0
// BlockBuilder from C++: an operator defined here, a chain of calls, a rewriting.
#include "tvm/relax/block_builder.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/op.h"

namespace tvm::relax {
namespace {
StructInfo InferFirst(const Call& call, const BlockBuilder&) {
  if (call->args.size() != 2) {
    TVM_FFI_THROW(OpValueError) << "test.cpp.join: expected 2 arguments, got " << call->args.size();
  }
  return GetStructInfo(call->args[0]);
}
const Op& Join() {
  static const Op op = [] {
    Op op = Op::Register("test.cpp.join");
    FInferStructInfo.Set(op, InferStructInfoFn(&InferFirst));
    FPurity.Set(op, true);
    return op;
  }();
  return op;
}
Var Input() {
  return Var("x", TensorStructInfo({IntImm::Int64(2), IntImm::Int64(3)}, DataType::Float(32)));
}
Function Chain(int length) {
  BlockBuilder bb = BlockBuilder::Create();
  Var x = Input(), y = x;
  bb->BeginScope(Array<Var>{x});
  bb->BeginSequence();
  bb->BeginDataflowBlock();
  for (int i = 0; i < length; ++i) y = bb->Emit(Call(Join(), {y, x}));
  y = bb->EmitOutput(y);
  bb->CloseBlock();
  SeqExpr body = MakeSeq(SeqExpr({}, y), bb->EndSequence(), y);
  bb->EndScope();
  return Function({x}, body);
}

TEST(BlockBuilder, ChainsAreWellFormedAndLinear) {
  auto seconds = [](int length) {
    auto begin = std::chrono::steady_clock::now();
    Function func = Chain(length);
    double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_EQ(func->body->blocks[0]->bindings.size(), length + 1);
    EXPECT_EQ(FindIllFormed(func), "");
    return time;
  };
  seconds(1000);
  RecordProperty("nanoseconds_per_emit", static_cast<int>(seconds(10000) * 1e5));
}

TEST(BlockBuilder, HooksFromCppAreSeenByPythonAndTheOtherWayRound) {
  auto packed = Join().GetAttr("FInferStructInfo").cast<ffi::Function>();
  Var x = Input();
  Call call(Join(), {x, x});
  EXPECT_TRUE(packed(call, BlockBuilder::Create()).cast<StructInfo>().same_as(GetStructInfo(x)));
  EXPECT_THROW(Join().SetAttr("FPurity", String("yes"), 11), ffi::Error);
}

TEST(BlockBuilder, ErrorsLeaveTheBuilderAsItWas) {
  BlockBuilder bb = BlockBuilder::Create();
  Var x = Input();
  bb->BeginBindingBlock();
  bb->Emit(Call(Join(), {x, x}));
  EXPECT_THROW(bb->Emit(Call(Join(), {Call(Join(), {x, x})})), ffi::Error);
  EXPECT_EQ(bb->EndBlock()->bindings.size(), 1);
}

TEST(ExprMutator, KeepsWhatDoesNotChange) {
  Function func = Chain(100);
  EXPECT_TRUE(ExprMutator().VisitExpr(func).same_as(func));
  struct Swap : ExprMutator {
    Expr VisitExpr_(const CallObj* op) final {
      auto call = As<Call>(ExprMutator::VisitExpr_(op));
      return Call(call->op, {call->args[1], call->args[0]});
    }
  };
  auto swapped = As<Function>(Swap().VisitExpr(func));
  EXPECT_EQ(FindIllFormed(swapped), "");
  EXPECT_FALSE(StructuralEqual(swapped, func));
  EXPECT_TRUE(StructuralEqual(Swap().VisitExpr(swapped), func));
}
}  // namespace
}  // namespace tvm::relax
