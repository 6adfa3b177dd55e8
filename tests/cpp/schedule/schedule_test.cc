// SPDX-License-Identifier: Apache-2.0
// Schedules from C++: a product in tiles gives the right numbers; a refused step changes nothing.
#include "tvm/schedule/schedule.h"

#include <gtest/gtest.h>

#include "tvm/driver/build.h"
#include "tvm/ir/backend.h"
#include "tvm/ir/structural.h"
#include "tvm/runtime/module.h"
#include "tvm/runtime/tensor.h"
#include "tvm/te/te.h"

namespace tvm {
namespace {
constexpr int kSize = 48;

IRModule Product() {
  te::Tensor a = te::placeholder({kSize, kSize}, DataType::Float(32), "A");
  te::Tensor b = te::placeholder({kSize, kSize}, DataType::Float(32), "B");
  tir::IterVar k = te::reduce_axis(Range::FromMinExtent(0, kSize), "k");
  te::Tensor c = te::compute(
      {kSize, kSize},
      [&](const Array<tir::Var>& i) { return te::sum(a(i[0], k->var) * b(k->var, i[1]), {k}); },
      "C");
  return IRModule::FromFunc(te::CreatePrimFunc({a, b, c}));
}
tir::Schedule InTiles() {
  tir::Schedule sch(Product());
  tir::BlockRV block = sch.GetBlock("C");
  auto loops = sch.GetLoops(block);
  auto columns = sch.Split(loops[1], {std::nullopt, PrimExpr(16)});
  sch.Reorder({columns[0], loops[2], columns[1]});
  sch.Vectorize(columns[1]);
  sch.Parallel(loops[0]);
  sch.DecomposeReduction(block, loops[2]);
  return sch;
}
}  // namespace

TEST(Schedule, TiledProduct) {
  if (!Backend::Find("llvm")->Load()) GTEST_SKIP() << "libtvm_llvm is not built";
  ffi::Module mod = Build(InTiles().mod(), Target("llvm"));
  auto tensor = [] {
    return runtime::Empty({kSize, kSize}, DLDataType{kDLFloat, 32, 1}, {kDLCPU, 0});
  };
  runtime::Tensor x = tensor(), y = tensor(), z = tensor();
  auto* a = static_cast<float*>(x.data_ptr());
  auto* b = static_cast<float*>(y.data_ptr());
  auto* c = static_cast<float*>(z.data_ptr());
  for (int i = 0; i < kSize * kSize; ++i) a[i] = i % 7 - 3, b[i] = i % 5 - 2;
  runtime::EntryFunction(mod)(x, y, z);
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      float expected = 0;
      for (int k = 0; k < kSize; ++k) expected += a[i * kSize + k] * b[k * kSize + j];
      ASSERT_EQ(c[i * kSize + j], expected) << "at " << i << ", " << j;
    }
  }
}

TEST(Schedule, TraceGivesTheSameProgram) {
  tir::Schedule sch = InTiles(), again(Product());
  sch.trace().ApplyToSchedule(again, false);
  EXPECT_TRUE(StructuralEqual(sch.mod(), again.mod()));
}

TEST(Schedule, RefusedStepChangesNothing) {
  tir::Schedule sch(Product());
  IRModule before = sch.mod();
  auto loops = sch.GetLoops(sch.GetBlock("C"));
  try {
    sch.Vectorize(loops[2]);
    FAIL() << "a reduction was vectorised";
  } catch (const ffi::Error& e) {
    std::string message(e.message());
    EXPECT_NE(message.find("schedule primitive 'vectorize'"), std::string::npos) << message;
    EXPECT_NE(message.find("expected a loop over independent"), std::string::npos) << message;
  }
  EXPECT_TRUE(sch.mod().same_as(before));
}
}  // namespace tvm
