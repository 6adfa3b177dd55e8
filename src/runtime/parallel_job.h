// SPDX-License-Identifier: Apache-2.0
// A parallel region: its tasks in one range per participant, from which the others take what is
// left.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "tvm/runtime/thread_pool.h"

namespace tvm::runtime {

/// Tells the CPU that a loop only waits.
inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
/// Nanoseconds of a clock that only goes forward.
int64_t NowNs();
/// Spins until `done()`, by the clock: the length of a pause differs by an order of magnitude
/// between CPUs. False when the time is over.
template <class F>
bool SpinUntil(int64_t ns, F&& done) {
  int64_t end = NowNs() + ns;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      Pause();
    }
  } while (NowNs() < end);
  return done();
}

/// Counted references: a participant that comes late, or is interrupted before it begins a task,
/// keeps the job alive and its caller does not wait for it. The closure of the caller is touched by
/// tasks alone.
class Job {
 public:
  /// The job of the calling thread, with one reference more, after an earlier one that nobody looks
  /// at any longer.
  static Job* Begin(TVMParallelTask task, void* data, int num_task, int participants);
  void AddReference() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// Runs the tasks of one participant from the first on, then the last ones of others, until none
  /// is left to begin.
  void Work(int participant);
  /// Whether there is no task left that has not ended.
  bool IsOver() const { return ended_.load(std::memory_order_acquire) == env_.num_task; }
  /// Returns when it is over: the status of the first task that failed, its error raised.
  int Finish();
  /// Numbers from 0 on, one for each call: who wakes whom.
  int NextToWake() { return next_to_wake_.fetch_add(1, std::memory_order_relaxed); }
  /// What the tasks took together, after the end.
  int64_t BusyNs() const { return busy_ns_.load(std::memory_order_relaxed); }

 private:
  /// Tasks that nobody has begun: the first in the upper half, the one after the last in the lower.
  struct alignas(64) Range {
    std::atomic<uint64_t> bounds{0};
  };
  static int Take(Range* range, bool first);
  /// Runs the handlers of Ctrl-C, on the thread that may: what they raise ends the region.
  static int HearInterrupt() noexcept;
  void Run(int id);

  TVMParallelTask task_ = nullptr;
  void* data_ = nullptr;
  TVMParallelGroupEnv env_{nullptr, 0};
  int participants_ = 0;
  uint32_t interrupts_ = 0;  // that came before
  std::vector<Range> ranges_;
  TVMFFIObjectHandle error_ = nullptr;
  std::atomic<int> result_{0};
  std::atomic<int> references_{1};
  alignas(64) std::atomic<int> ended_{0};
  std::atomic<int> is_waited_for_{0};
  std::atomic<int> next_to_wake_{0};
  std::atomic<int64_t> busy_ns_{0};
};

}  // namespace tvm::runtime
