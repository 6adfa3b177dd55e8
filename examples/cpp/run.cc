// SPDX-License-Identifier: Apache-2.0
// Loads an exported kernel and runs it: libtvm_runtime alone, no compiler and no Python.
#include <tvm/runtime/module.h>
#include <tvm/runtime/tensor.h>

#include <cmath>
#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s kernel.so\n", argv[0]);
    return 2;
  }
  tvm::Initialize();
  tvm::runtime::Module kernel = tvm::runtime::LoadModule(argv[1]);
  tvm::Function sigmoid = tvm::runtime::EntryFunction(kernel);

  constexpr int64_t kRows = 1024, kColumns = 1024;
  const DLDataType float32{kDLFloat, 32, 1};
  const DLDevice cpu{kDLCPU, 0};
  tvm::runtime::Tensor a = tvm::runtime::Empty({kRows, kColumns}, float32, cpu);
  tvm::runtime::Tensor c = tvm::runtime::Empty({kRows, kColumns}, float32, cpu);
  auto* input = static_cast<float*>(a.data_ptr());
  auto* output = static_cast<float*>(c.data_ptr());
  for (int64_t i = 0; i < kRows * kColumns; ++i)
    input[i] = static_cast<float>(i % 2001 - 1000) / 100;

  sigmoid(a, c);

  double error = 0;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    error =
        std::fmax(error, std::fabs(output[i] - 1 / (1 + std::exp(-static_cast<double>(input[i])))));
  }
  std::printf("largest error %.1e\n", error);
  return error < 1e-6 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
