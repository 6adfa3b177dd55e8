// SPDX-License-Identifier: Apache-2.0
// Persistent fork-join pool: one mailbox per worker, task i preferably on worker i, the caller
// works too.
#include "tvm/runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/hooks.h"
#include "tvm/runtime/def.h"

namespace tvm::runtime {
namespace {
constexpr int kMaxThreads = 1024;
constexpr auto kSpin = std::chrono::microseconds(50);

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
/// Spins until `done()`, by the clock: the length of a pause differs by an order of magnitude
/// between CPUs. False when the time is over.
template <class F>
bool SpinUntil(F&& done) {
  auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

/// Where a worker runs. A scheduler may wake a worker on the CPU of its caller, where it gets no
/// turn before the caller has done all the work alone, call after call, while other CPUs idle. So
/// the caller sends a worker that it knows on its own CPU, or that came too late lately, to another
/// one; the worker, once it runs, may go anywhere again.
class Place {
 public:
#ifdef __linux__
  void Arrive() {
    if (sched_getaffinity(0, sizeof(allowed_), &allowed_) != 0) return;
    thread_.store(static_cast<pid_t>(syscall(SYS_gettid)));
  }
  void Note() { cpu_.store(sched_getcpu(), std::memory_order_relaxed); }
  /// The worker came too late: its next jobs begin with sending it elsewhere.
  void Missed() { doubts_.store(64, std::memory_order_relaxed); }
  /// By a caller that has the worker to itself.
  void LeaveTo() {
    int here = sched_getcpu();
    pid_t thread = thread_.load();
    int doubts = doubts_.load(std::memory_order_relaxed);
    bool doubtful = doubts > 0;
    if (doubtful) doubts_.store(doubts - 1, std::memory_order_relaxed);
    if (here < 0 || thread == 0) return;
    if (!doubtful && cpu_.load(std::memory_order_relaxed) != here) return;
    cpu_set_t others = allowed_;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) == 0) return;
    if (sched_setaffinity(thread, sizeof(others), &others) == 0) moved_.store(true);
  }
  bool IsMoved() const { return moved_.load(); }
  /// By the worker, while no caller can have it.
  void Settle() {
    if (!moved_.load()) return;
    sched_setaffinity(0, sizeof(allowed_), &allowed_);
    moved_.store(false);
  }

 private:
  std::atomic<pid_t> thread_{0};
  std::atomic<int> cpu_{-1};
  std::atomic<bool> moved_{false};
  std::atomic<int> doubts_{0};
  cpu_set_t allowed_;  // what the worker may use when it is not moved; set once
#else
  void Arrive() {}
  void Note() {}
  void Missed() {}
  void LeaveTo() {}
  bool IsMoved() const { return false; }
  void Settle() {}
#endif
};

/// A parallel region; lives on the stack of its caller.
class Job {
 public:
  Job(TVMParallelTask task, void* data, int num_task, int num_thread)
      : task_(task), data_(data), env_{nullptr, num_task}, num_thread_(num_thread) {
    int words = (num_task + 63) / 64;
    if (words > kInline) heap_ = std::make_unique<std::atomic<uint64_t>[]>(words);
    taken_ = heap_ ? heap_.get() : inline_;
    for (int i = 0; i < words; ++i) taken_[i].store(0, std::memory_order_relaxed);
  }
  /// Runs the tasks of one participant, then whatever nobody has begun: a participant that got no
  /// CPU must not hold up the others.
  void Work(int participant) {
    for (int i = participant; i < env_.num_task; i += num_thread_) TryRun(i);
    for (int i = 0; i < env_.num_task; ++i) TryRun(i);
  }
  /// Runs a task that nobody has begun.
  void TryRun(int i) {
    std::atomic<uint64_t>& word = taken_[i / 64];
    uint64_t bit = uint64_t{1} << (i % 64);
    if (word.load(std::memory_order_relaxed) & bit) return;
    if (word.fetch_or(bit, std::memory_order_relaxed) & bit) return;
    if (result_.load(std::memory_order_relaxed) != 0) return;
    int rc = task_(i, &env_, data_);
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
  int Finish() {
    if (error_) TVMFFIErrorSetRaised(error_), TVMFFIObjectDecRef(error_);
    return result_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr int kInline = 4;
  TVMParallelTask task_;
  void* data_;
  TVMParallelGroupEnv env_;
  int num_thread_;
  std::atomic<int> result_{0};
  TVMFFIObjectHandle error_ = nullptr;
  std::atomic<uint64_t>* taken_;
  std::atomic<uint64_t> inline_[kInline];
  std::unique_ptr<std::atomic<uint64_t>[]> heap_;
};

thread_local bool in_task = false;

/// One worker and its mailbox. `job_` is null (free), a job (offered), or a job with its lowest bit
/// set (accepted); only its caller withdraws an offer, only the worker ends an accepted job.
class alignas(128) Worker {
 public:
  bool Offer(Job* job) {
    uintptr_t free = 0;
    if (job_.load(std::memory_order_relaxed) != 0) return false;
    if (!job_.compare_exchange_strong(free, reinterpret_cast<uintptr_t>(job))) return false;
    place_.LeaveTo();
    if (asleep_.load() != 0) asleep_.store(0), asleep_.notify_one();
    return true;
  }
  /// Returns when the worker no longer knows the job.
  void Release(Job* job) {
    uintptr_t offered = reinterpret_cast<uintptr_t>(job), accepted = offered | 1;
    if (job_.compare_exchange_strong(offered, 0)) return place_.Missed();
    auto ended = [&] { return job_.load(std::memory_order_acquire) != accepted; };
    if (SpinUntil(ended)) return;
    waiting_.fetch_add(1);
    for (;;) {
      uint32_t count = ended_.load();
      if (job_.load() != accepted) break;
      ended_.wait(count);
    }
    waiting_.fetch_sub(1);
  }
  [[noreturn]] void Loop(int index) {
    in_task = true;  // a region inside a task runs inline
    place_.Arrive();
    for (;;) {
      place_.Note();
      auto offered = [&] { return job_.load(std::memory_order_relaxed) != 0; };
      if (!SpinUntil(offered)) {
        asleep_.store(1);
        if (job_.load() == 0 && !place_.IsMoved()) asleep_.wait(1);
        asleep_.store(0);
      }
      uintptr_t job = job_.load();
      if (job == 0) {
        // Too late for what it was woken for; nobody offers a job while it settles.
        if (place_.IsMoved() && job_.compare_exchange_strong(job, kSettling)) {
          place_.Settle();
          job_.store(0);
        }
        continue;
      }
      if (!job_.compare_exchange_strong(job, job | 1)) continue;
      place_.Settle();
      reinterpret_cast<Job*>(job)->Work(index);
      job_.store(0);
      ended_.fetch_add(1);
      if (waiting_.load() != 0) ended_.notify_all();
    }
  }

 private:
  static constexpr uintptr_t kSettling = 1;  // no job, and none can be offered
  std::atomic<uintptr_t> job_{0};
  std::atomic<uint32_t> asleep_{0};
  std::atomic<uint32_t> ended_{0}, waiting_{0};
  Place place_;
};

/// Never destroyed: workers may still look at their mailboxes while the process exits.
class Pool {
 public:
  static Pool& Get() {
    Pool* pool = instance.load(std::memory_order_acquire);
    if (pool) [[likely]]
      return *pool;
    static std::once_flag once;
    // Only the forking thread lives on in the child: it starts with a pool without workers.
    std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { instance.store(nullptr); }); });
    auto* fresh = new Pool();
    if (instance.compare_exchange_strong(pool, fresh)) return *fresh;
    delete fresh;
    return *pool;
  }
  int Run(TVMParallelTask task, void* data, int num_task, int num_thread) {
    int wanted = std::min(num_task, num_thread) - 1;
    int present = Grow(num_thread - 1);
    Job job(task, data, num_task, num_thread);
    Worker* engaged[kMaxThreads];
    int count = 0;
    for (int i = 0; i < present && count < wanted; ++i) {
      if (workers_[i]->Offer(&job)) engaged[count++] = workers_[i];
    }
    in_task = true;
    job.Work(0);
    in_task = false;
    // No task is left to begin; workers still inside one hold their mailbox.
    for (int i = 0; i < count; ++i) engaged[i]->Release(&job);
    return job.Finish();
  }

 private:
  int Grow(int wanted) {
    int present = size_.load(std::memory_order_acquire);
    if (present >= wanted) [[likely]]
      return wanted;
    std::lock_guard lock(mutex_);
    present = size_.load();
    // Signals belong to the threads of the program (Ctrl-C to Python's main thread).
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (; present < wanted; ++present) {
      auto worker = std::make_unique<Worker>();
      try {
        std::thread([w = worker.get(), i = present + 1] { w->Loop(i); }).detach();
      } catch (const std::system_error&) {
        break;  // a limit on threads: those that exist take over the tasks
      }
      workers_[present] = worker.release();
      size_.store(present + 1, std::memory_order_release);
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    return present;
  }

  static std::atomic<Pool*> instance;
  std::mutex mutex_;
  std::atomic<int> size_{0};
  Worker* workers_[kMaxThreads] = {};
};
std::atomic<Pool*> Pool::instance{nullptr};

/// On the threads of the program that runs us.
int RunOn(const TVMModelThreadPool& pool, TVMParallelTask task, void* data, int num_task) {
  Job job(task, data, num_task, /*num_thread=*/1);
  auto run = [](void* job, int32_t i) {
    bool outer = std::exchange(in_task, true);
    static_cast<Job*>(job)->TryRun(i);
    in_task = outer;
  };
  pool.run(pool.self, run, &job, num_task);
  for (int i = 0; i < num_task; ++i) run(&job, i);  // those the pool has left out, if any
  return job.Finish();
}

int DefaultNumThreads() {
  const char* text = std::getenv("TVM_NUM_THREADS");
  if (!text || !*text) return std::min(AvailableCpus(), kMaxThreads);
  char* end;
  long n = std::strtol(text, &end, 10);
  if (*end || n < 1 || n > kMaxThreads) {
    TVM_FFI_THROW(ValueError) << "TVM_NUM_THREADS: expected a number from 1 to " << kMaxThreads
                              << ", got '" << text << "'";
  }
  return static_cast<int>(n);
}
std::atomic<int> num_threads{0};
}  // namespace

int NumThreads() {
  int n = num_threads.load(std::memory_order_relaxed);
  if (n == 0) {
    int expected = 0;
    n = DefaultNumThreads();
    if (!num_threads.compare_exchange_strong(expected, n)) n = expected;
  }
  return n;
}
void SetNumThreads(int n) {
  if (n < 0 || n > kMaxThreads) {
    TVM_FFI_THROW(ValueError) << "set_num_threads: expected a number from 0 (default) to "
                              << kMaxThreads << ", got " << n;
  }
  num_threads.store(n == 0 ? DefaultNumThreads() : n);
}

int ReportTaskException() noexcept { return ReportException(); }
void ThrowRaised() {
  TVMFFIObjectHandle error = nullptr;
  TVMFFIErrorMoveFromRaised(&error);
  if (!error) TVM_FFI_THROW(RuntimeError) << "a parallel task failed without saying why";
  throw ffi::detail::ObjectUnsafe::ObjectRefFromObjectPtr<ffi::Error>(
      ffi::detail::ObjectUnsafe::ObjectPtrFromOwned<Object>(static_cast<TVMFFIObject*>(error)));
}

extern "C" int TVMBackendParallelLaunch(TVMParallelTask task, void* cdata, int num_task) {
  try {
    int num_thread = NumThreads();
    if (num_task <= 0) num_task = num_thread;
    if (num_task > 1 && num_thread > 1 && !in_task) {
      if (auto* hook = thread_pool_hook.load(std::memory_order_acquire)) [[unlikely]]
        return RunOn(*hook, task, cdata, num_task);
      return Pool::Get().Run(task, cdata, num_task, num_thread);
    }
    TVMParallelGroupEnv env{nullptr, num_task};
    for (int i = 0; i < num_task; ++i) {
      if (int rc = task(i, &env, cdata)) return rc;
    }
    return 0;
  } catch (...) {
    return ReportException();
  }
}

namespace {
/// Threads are placed by the operating system; 1 (fast cores first) is what it does anyway.
void ConfigThreadPool(int mode, int nthreads) {
  if (mode != 0 && mode != 1) {
    TVM_FFI_THROW(ValueError) << "config_threadpool: expected mode 0 or 1 (the operating system "
                                 "places the threads), got "
                              << mode;
  }
  SetNumThreads(nthreads);
}
TVM_REGISTER() {
  Def("runtime.NumThreads", &NumThreads, "Threads a parallel loop uses, the caller included.");
  Def("runtime.available_cpus", &AvailableCpus,
      "CPUs this process may use: its affinity mask, limited by the cgroup's quota.");
  Def("runtime.set_num_threads", &SetNumThreads,
      "Sets how many threads parallel loops use from now on; 0 goes back to the default.",
      Arg("n", 0));
  Def("runtime.config_threadpool", &ConfigThreadPool,
      "Sets how many threads parallel loops use (0: the default).", Arg("mode", 1),
      Arg("nthreads", 0));
}
}  // namespace
}  // namespace tvm::runtime
