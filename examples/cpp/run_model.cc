// SPDX-License-Identifier: Apache-2.0
// Loads an exported model and runs it from two threads at once: libtvm_runtime alone.
#include <tvm/runtime/tensor.h>
#include <tvm/runtime/vm.h>

#include <algorithm>
#include <cstdio>
#include <thread>

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s model.so\n", argv[0]);
    return 2;
  }
  tvm::Initialize();
  tvm::runtime::vm::VirtualMachine vm(tvm::runtime::LoadModule(argv[1]));
  std::printf("%s\n", vm.info("main").signature.c_str());
  tvm::Function main = vm["main"];

  float results[2] = {};
  auto work = [&](int i) {
    tvm::runtime::Tensor x = tvm::runtime::Empty({2, 64}, {kDLFloat, 32, 1}, {kDLCPU, 0});
    std::fill_n(static_cast<float*>(x.data_ptr()), 2 * 64, 1.0f);
    auto y = main(x).cast<tvm::runtime::Tensor>();
    results[i] = static_cast<const float*>(y.data_ptr())[0];
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  std::printf("first element %.6f %.6f\n", results[0], results[1]);
  return results[0] == results[1] ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
