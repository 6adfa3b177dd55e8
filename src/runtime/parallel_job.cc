// SPDX-License-Identifier: Apache-2.0
// Tasks of a parallel region: taken one by one, stolen from the end of other ranges.
#include "runtime/parallel_job.h"

#include <chrono>

#include "tvm/runtime/def.h"
#include "tvm/runtime/signals.h"

namespace tvm::runtime {
namespace {
/// How long a caller spins for tasks that others are still in. Asleep, it leaves its CPU to one of
/// them that has none.
constexpr int64_t kFinishSpinNs = 50'000;

struct OwnJob {
  Job* job = nullptr;
  ~OwnJob() {
    if (job) job->Release();
  }
};
}  // namespace

int64_t NowNs() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

Job* Job::Begin(TVMParallelTask task, void* data, int num_task, int participants) {
  static thread_local OwnJob own;
  if (own.job && own.job->references_.load(std::memory_order_acquire) != 1) {
    own.job->Release();
    own.job = nullptr;
  }
  if (!own.job) own.job = new Job();
  Job* job = own.job;
  if (static_cast<int>(job->ranges_.size()) < participants)
    job->ranges_ = std::vector<Range>(participants);
  job->task_ = task;
  job->data_ = data;
  job->env_.num_task = num_task;
  job->participants_ = participants;
  job->interrupts_ = InterruptCount();
  job->error_ = nullptr;
  job->result_.store(0, std::memory_order_relaxed);
  job->ended_.store(0, std::memory_order_relaxed);
  job->next_to_wake_.store(0, std::memory_order_relaxed);
  job->busy_ns_.store(0, std::memory_order_relaxed);
  auto start = [&](int64_t p) { return static_cast<uint64_t>(p * num_task / participants); };
  for (int p = 0; p < participants; ++p)
    job->ranges_[p].bounds.store(start(p) << 32 | start(p + 1), std::memory_order_relaxed);
  job->AddReference();
  return job;
}

int Job::Take(Range* range, bool first) {
  uint64_t bounds = range->bounds.load(std::memory_order_relaxed);
  for (;;) {
    auto begin = static_cast<uint32_t>(bounds >> 32), end = static_cast<uint32_t>(bounds);
    if (begin >= end) return -1;
    uint64_t rest = first ? bounds + (uint64_t{1} << 32) : bounds - 1;
    if (range->bounds.compare_exchange_weak(bounds, rest, std::memory_order_relaxed))
      return static_cast<int>(first ? begin : end - 1);
  }
}

void Job::Work(int participant) {
  int64_t begin = NowNs();
  int ended = 0;
  int own = participant % participants_;
  for (int i = 0; i < participants_; ++i) {
    Range* range = &ranges_[(own + i) % participants_];
    for (int id = Take(range, i == 0); id >= 0; id = Take(range, i == 0)) {
      Run(id);
      ++ended;
    }
  }
  if (ended == 0) return;
  busy_ns_.fetch_add(NowNs() - begin, std::memory_order_relaxed);
  if (ended_.fetch_add(ended) + ended == env_.num_task && is_waited_for_.load() != 0)
    ended_.notify_all();
}

int Job::HearInterrupt() noexcept {
  try {
    RunSignalHandlers();
    return 0;
  } catch (...) {
    return ReportException();
  }
}

void Job::Run(int id) {
  if (result_.load(std::memory_order_relaxed) != 0) return;
  int rc = 0;
  if (InterruptCount() != interrupts_) [[unlikely]]
    rc = HearInterrupt();
  if (rc == 0) rc = task_(id, &env_, data_);
  if (rc == 0) return;
  TVMFFIObjectHandle error = nullptr;
  TVMFFIErrorMoveFromRaised(&error);
  int expected = 0;
  if (result_.compare_exchange_strong(expected, rc)) {
    error_ = error;
  } else if (error) {
    TVMFFIObjectDecRef(error);
  }
}

int Job::Finish() {
  if (!SpinUntil(kFinishSpinNs, [&] { return IsOver(); })) {
    is_waited_for_.store(1);
    for (int ended = ended_.load(); ended != env_.num_task; ended = ended_.load())
      ended_.wait(ended);
    is_waited_for_.store(0);
  }
  if (error_) {
    TVMFFIErrorSetRaised(error_);
    TVMFFIObjectDecRef(error_);
  }
  return result_.load(std::memory_order_relaxed);
}

}  // namespace tvm::runtime
