// SPDX-License-Identifier: Apache-2.0
// Small functions that tests of the boundary between C++ and other languages call.
#include <chrono>
#include <thread>

#include "tvm/runtime/def.h"
#include "tvm/runtime/thread_pool.h"

namespace tvm::runtime {
namespace {
using Clock = std::chrono::steady_clock;

void Apply(ffi::PackedArgs args, Any* result) {
  if (args.size() == 0) TVM_FFI_THROW(TypeError) << "runtime.testing.apply: expected a function";
  args[0].cast<Function>().CallPacked(args.Slice(1).data(), args.size() - 1, result);
}
/// A long computation that can be interrupted.
void Busy(int64_t ms) {
  auto end = Clock::now() + std::chrono::milliseconds(ms);
  while (Clock::now() < end) CheckSignals();
}
TVM_REGISTER() {
  Function::SetGlobal("runtime.testing.apply", Function::FromPacked(&Apply));
  Def(
      "runtime.testing.sleep_ms",
      [](int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }, "Sleeps.",
      Arg("ms"));
  Def("runtime.testing.busy_ms", &Busy, "Computes until it is interrupted or the time is over.",
      Arg("ms"));
  Def(
      "runtime.testing.parallel_apply",
      [](Function f, int n) { ParallelRun(n, [&](int i, int) { f(i); }); },
      "Calls f(0), …, f(n-1) on the thread pool.", Arg("f"), Arg("n"));
}
}  // namespace
}  // namespace tvm::runtime
