// SPDX-License-Identifier: Apache-2.0
// Times between the marks that start_profile_intrinsic and end_profile_intrinsic leave in code. Not
// part of the runtime: programs that are deployed have no marks.
#include <chrono>
#include <map>
#include <mutex>
#include <vector>

#include "tvm/runtime/def.h"

namespace tvm::tir {
namespace {
using Clock = std::chrono::steady_clock;
struct Total {
  int64_t count = 0;
  double seconds = 0;
};
std::mutex mutex;
std::map<int64_t, Total>& Totals() {
  static auto* totals = new std::map<int64_t, Total>;
  return *totals;
}
/// Of this thread, the innermost last.
thread_local std::vector<std::pair<int64_t, Clock::time_point>> begun;

void Mark(int64_t id, bool begins) {
  Clock::time_point now = Clock::now();
  if (begins) {
    begun.emplace_back(id, now);
    return;
  }
  // What was begun inside and left by a jump has no end.
  while (!begun.empty()) {
    auto [last, since] = begun.back();
    begun.pop_back();
    if (last != id) continue;
    std::lock_guard lock(mutex);
    Total& total = Totals()[id];
    ++total.count;
    total.seconds += std::chrono::duration<double>(now - since).count();
    return;
  }
}
Map<int64_t, Array<double>> MarkedTimes(bool reset) {
  std::lock_guard lock(mutex);
  Map<int64_t, Array<double>> result;
  for (const auto& [id, total] : Totals())
    result.Set(id, {static_cast<double>(total.count), total.seconds});
  if (reset) Totals().clear();
  return result;
}
TVM_REGISTER() {
  Def("tir._profile_mark", &Mark, "A part of a program begins or ends here.", Arg("id"),
      Arg("begins"));
  Def("tir._marked_times", &MarkedTimes, "How often each marked part ran, and its seconds.",
      Arg("reset"));
}
}  // namespace
}  // namespace tvm::tir
