// SPDX-License-Identifier: Apache-2.0
// The whole way in C++: an expression compiled, run, exported, loaded again.
#include "tvm/driver/export.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "tvm/driver/build.h"
#include "tvm/ir/backend.h"
#include "tvm/runtime/module.h"
#include "tvm/runtime/tensor.h"
#include "tvm/te/te.h"

namespace tvm {
namespace {
ffi::Module Sigmoid() {
  te::Tensor a = te::placeholder({16, 100}, DataType::Float(32), "A");
  te::Tensor c =
      te::compute({16, 100}, [&](const Array<tir::Var>& i) { return div(1, 1 + exp(-a(i))); }, "C");
  return Build(IRModule::FromFunc(te::CreatePrimFunc({a, c})), Target("llvm"));
}
double LargestError(const Function& sigmoid) {
  const DLDataType float32{kDLFloat, 32, 1};
  runtime::Tensor x = runtime::Empty({16, 100}, float32, {kDLCPU, 0});
  runtime::Tensor y = runtime::Empty({16, 100}, float32, {kDLCPU, 0});
  auto *input = static_cast<float*>(x.data_ptr()), *output = static_cast<float*>(y.data_ptr());
  for (int i = 0; i < 1600; ++i) input[i] = static_cast<float>(i - 800) / 100;
  sigmoid(x, y);
  double error = 0;
  for (int i = 0; i < 1600; ++i) {
    error = std::fmax(error, std::fabs(output[i] - 1 / (1 + std::exp(-double(input[i])))));
  }
  return error;
}
struct ExportTest : testing::Test {
  std::filesystem::path folder;
  void SetUp() override {
    if (!Backend::Find("llvm")->Load()) GTEST_SKIP() << "libtvm_llvm is not built";
    std::string name = (std::filesystem::temp_directory_path() / "tvm-test-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  void TearDown() override {
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }
};
}  // namespace

TEST_F(ExportTest, LibraryComputesWhatTheModuleComputed) {
  ffi::Module mod = Sigmoid();
  EXPECT_LT(LargestError(runtime::EntryFunction(mod)), 1e-6);
  std::string path = folder / "sigmoid.so";
  ExportLibrary(mod, path);
  EXPECT_LT(LargestError(runtime::EntryFunction(runtime::LoadModule(path))), 1e-6);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(ExportTest, MissingFolderIsNamed) {
  try {
    ExportLibrary(Sigmoid(), folder / "missing/sigmoid.so");
    FAIL() << "expected an error";
  } catch (const ffi::Error& e) {
    EXPECT_EQ(e.kind(), "FileNotFoundError");
    EXPECT_NE(e.message().find("missing/sigmoid.so"), std::string::npos) << e.message();
  }
}
}  // namespace tvm
