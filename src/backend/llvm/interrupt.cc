// SPDX-License-Identifier: Apache-2.0
// Compilation that Ctrl-C leaves behind, and the wait for it before the process exits.
#include "backend/llvm/interrupt.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>

#include "tvm/ir/stack.h"
#include "tvm/runtime/def.h"
#include "tvm/runtime/signals.h"

namespace tvm::codegen {
namespace {
struct Job {
  std::function<void()> fn;
  std::exception_ptr error;
  bool done = false;
  std::atomic<bool> abandoned{false};
};
thread_local Job* current = nullptr;

/// All jobs. What a job holds may belong to Python: only the first thread destroys one. Never
/// destroyed itself, since threads may end while the process exits.
struct Jobs {
  std::mutex mutex;
  std::condition_variable changed;
  std::list<Job> list;

  Jobs() {
    std::atexit([] { Get().WaitForAll(); });
    // The threads stay behind in the parent.
    pthread_atfork([] { Get().mutex.lock(); }, [] { Get().mutex.unlock(); },
                   [] { new std::list<Job>(std::move(Get().list)), Get().mutex.unlock(); });
  }
  static Jobs& Get() {
    static Jobs& jobs = *new Jobs();
    return jobs;
  }
  /// LLVM's statics must not go while a thread uses them.
  void WaitForAll() {
    std::unique_lock lock(mutex);
    for (Job& job : list) changed.wait(lock, [&] { return job.done; });
  }
  void Run(Job* job) {
    current = job;
    try {
      job->fn();
    } catch (...) {
      job->error = std::current_exception();
    }
    std::lock_guard lock(mutex);
    job->done = true;
    changed.notify_all();
  }
};
}  // namespace

bool IsAbandoned() { return current && current->abandoned; }

void RunInterruptibly(std::function<void()> fn) {
  if (!IsFirstThread()) return fn();
  Jobs& jobs = Jobs::Get();
  std::list<Job> ended;  // destroyed without the lock
  std::unique_lock lock(jobs.mutex);
  for (auto it = jobs.list.begin(); it != jobs.list.end();) {
    auto job = it++;
    if (job->done) ended.splice(ended.end(), jobs.list, job);
  }
  auto job = jobs.list.emplace(jobs.list.end());
  job->fn = std::move(fn);
  try {
    std::thread(&Jobs::Run, &jobs, &*job).detach();
  } catch (const std::system_error&) {  // a limit on threads
    ended.splice(ended.end(), jobs.list, job);
    lock.unlock();
    return job->fn();
  }
  while (!jobs.changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return job->done; })) {
    lock.unlock();
    try {
      OnHomeStack([] { CheckSignals(); });
    } catch (...) {
      job->abandoned = true;
      throw;
    }
    lock.lock();
  }
  ended.splice(ended.end(), jobs.list, job);
  if (job->error) std::rethrow_exception(job->error);
}

}  // namespace tvm::codegen
