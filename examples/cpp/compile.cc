// SPDX-License-Identifier: Apache-2.0
// Builds a kernel from a tensor expression, compiles it for this machine, runs it and exports it.
#include <tvm/driver/build.h>
#include <tvm/driver/export.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/tensor.h>
#include <tvm/te/te.h>

#include <cmath>
#include <cstdio>

int main(int argc, char** argv) try {
  using namespace tvm;
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s kernel.so\n", argv[0]);
    return 2;
  }
  Initialize();

  // What to compute.
  te::Tensor a = te::placeholder({1024, 1024}, DataType::Float(32), "A");
  te::Tensor c = te::compute(
      {1024, 1024}, [&](const Array<tir::Var>& i) { return div(1, 1 + exp(-a(i))); }, "C");
  tir::PrimFunc func = te::CreatePrimFunc({a, c});

  // Code for this machine.
  ffi::Module mod = Build(IRModule::FromFunc(func), Target("llvm"));

  // Run it where it was compiled.
  const DLDataType float32{kDLFloat, 32, 1};
  const DLDevice cpu{kDLCPU, 0};
  runtime::Tensor x = runtime::Empty({1024, 1024}, float32, cpu);
  runtime::Tensor y = runtime::Empty({1024, 1024}, float32, cpu);
  auto* input = static_cast<float*>(x.data_ptr());
  auto* output = static_cast<float*>(y.data_ptr());
  for (int i = 0; i < 1024 * 1024; ++i) input[i] = static_cast<float>(i % 2001 - 1000) / 100;
  runtime::EntryFunction(mod)(x, y);
  double error = 0;
  for (int i = 0; i < 1024 * 1024; ++i) {
    error = std::fmax(error, std::fabs(output[i] - 1 / (1 + std::exp(-double(input[i])))));
  }
  std::printf("largest error %.1e\n", error);

  // Keep it for programs without a compiler; run.cc is one.
  ExportLibrary(mod, argv[1]);
  return error < 1e-6 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
