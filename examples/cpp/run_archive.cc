// SPDX-License-Identifier: Apache-2.0
// Imports what torch.export.save wrote, compiles it for this machine and runs it on ones.
#include <tvm/driver/relax_build.h>
#include <tvm/frontend/torch.h>
#include <tvm/runtime/tensor.h>
#include <tvm/runtime/vm.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s model.pt2 sizes of the input…\n", argv[0]);
    return 2;
  }
  tvm::Initialize();
  tvm::frontend::TorchOptions options;
  options.unwrap_result = true;
  tvm::IRModule mod = tvm::frontend::ImportTorchArchive(argv[1], options);
  tvm::runtime::vm::VirtualMachine vm(tvm::relax::Build(mod, tvm::Target("llvm")));
  std::printf("%s\n", vm.info("main").signature.c_str());

  std::vector<int64_t> shape;
  int64_t count = 1;
  for (int i = 2; i < argc; ++i) {
    shape.push_back(std::atoll(argv[i]));
    count *= shape.back();
  }
  tvm::ffi::ShapeView sizes(shape.data(), shape.size());
  tvm::runtime::Tensor x = tvm::runtime::Empty(sizes, {kDLFloat, 32, 1}, {kDLCPU, 0});
  std::fill_n(static_cast<float*>(x.data_ptr()), count, 1.0f);
  auto y = vm["main"](x).cast<tvm::runtime::Tensor>();
  std::printf("first element %.6f\n", static_cast<const float*>(y.data_ptr())[0]);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
