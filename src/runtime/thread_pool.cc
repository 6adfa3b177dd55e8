// SPDX-License-Identifier: Apache-2.0
// Persistent fork-join pool: one mailbox per worker, the same part of a loop preferably on the same
// worker, the caller works too, and alone where that is faster.
#include "tvm/runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/hooks.h"
#include "runtime/openmp_team.h"
#include "runtime/parallel_job.h"
#include "tvm/runtime/def.h"

namespace tvm::runtime {
namespace {
constexpr int kMaxThreads = 1024;
/// How long an idle worker spins before it sleeps, and the least where others want its CPU; by how
/// much too late it is when somebody else had it.
constexpr int64_t kSpinNs = 50'000, kShortSpinNs = 2'000, kLateNs = 100'000;
/// Work that the caller may be faster with alone, and work of a thread that pays for sending it to
/// another CPU.
constexpr int64_t kLittleNs = 20'000, kPlaceNs = 100'000;
/// A piece of a loop, as long as there are not too many pieces for each thread.
constexpr int64_t kPieceNs = 8'000, kMostPieces = 16, kUsualPieces = 4;

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
    AskForShortSlices();
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
  /// Turns of a tenth of a millisecond instead of some: a scheduler that knows them (Linux 6.12)
  /// lets a thread that wakes go before one with longer turns. Others ignore the wish.
  static void AskForShortSlices() {
    struct {
      uint32_t size = 48, policy = 0;
      uint64_t flags = 0;
      int32_t nice = 0;
      uint32_t priority = 0;
      uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
    } attributes;
    if (syscall(SYS_sched_getattr, 0, &attributes, attributes.size, 0) != 0) return;
    if (attributes.policy != SCHED_OTHER) return;
    attributes.runtime_ns = 100'000;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
  }

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

thread_local bool in_task = false;
/// What it takes to wake a worker, as measured.
std::atomic<int64_t> wake_ns{5'000};

/// One worker and its mailbox. `job_` is null (free), a job (offered), or a job with its lowest bit
/// set (accepted); only its caller withdraws an offer, only the worker ends an accepted job. An
/// offer holds a reference of the job.
class alignas(128) Worker {
 public:
  bool IsAsleep() const { return asleep_.load(std::memory_order_relaxed) != 0; }
  bool Offer(Job* job, bool may_move) {
    uintptr_t free = 0;
    if (job_.load(std::memory_order_relaxed) != 0) return false;
    job->AddReference();
    if (!job_.compare_exchange_strong(free, reinterpret_cast<uintptr_t>(job))) {
      job->Release();
      return false;
    }
    if (may_move) place_.LeaveTo();
    return true;
  }
  /// Wakes the worker if it sleeps beside this offer.
  bool WakeFor(const Job* job) {
    if (job_.load() != reinterpret_cast<uintptr_t>(job) || asleep_.load() == 0) return false;
    int64_t begin = NowNs();
    asleep_.store(0);
    asleep_.notify_one();
    int64_t known = wake_ns.load(std::memory_order_relaxed);
    wake_ns.store((7 * known + NowNs() - begin) / 8, std::memory_order_relaxed);
    return true;
  }
  void Withdraw(Job* job, bool was_long) {
    auto offered = reinterpret_cast<uintptr_t>(job);
    if (!job_.compare_exchange_strong(offered, 0)) return;
    if (was_long) place_.Missed();
    job->Release();
  }
  template <class F>
  [[noreturn]] void Loop(int index, F&& wake_more) {
    in_task = true;  // a region inside a task runs inline
    place_.Arrive();
    for (;;) {
      place_.Note();
      if (!Spin()) {
        asleep_.store(1);
        if (job_.load() == 0 && !place_.IsMoved()) asleep_.wait(1);
        asleep_.store(0);
      }
      uintptr_t offered = job_.load();
      if (offered == 0) {
        // Too late for what it was woken for; nobody offers a job while it settles.
        if (place_.IsMoved() && job_.compare_exchange_strong(offered, kSettling)) {
          place_.Settle();
          job_.store(0);
        }
        continue;
      }
      if (!job_.compare_exchange_strong(offered, offered | 1)) continue;
      place_.Settle();
      auto* job = reinterpret_cast<Job*>(offered);
      wake_more(job);
      job->Work(index);
      job->Release();
      job_.store(0);
    }
  }

 private:
  /// Waits for an offer for a while: for a short one where others wanted the CPU lately.
  bool Spin() {
    int64_t begin = NowNs();
    bool found = SpinUntil(spin_ns_, [&] { return job_.load(std::memory_order_relaxed) != 0; });
    bool was_interrupted = NowNs() - begin > spin_ns_ + kLateNs;
    spin_ns_ = was_interrupted ? kShortSpinNs : found ? std::min(2 * spin_ns_, kSpinNs) : spin_ns_;
    return found;
  }

  static constexpr uintptr_t kSettling = 1;  // no job, and none can be offered
  std::atomic<uintptr_t> job_{0};
  std::atomic<uint32_t> asleep_{0};
  int64_t spin_ns_ = kSpinNs;
  Place place_;
};

/// How long a loop took before, by its function and number of iterations.
class History {
 public:
  static History& Of(TVMParallelTask task, int count) {
    uint64_t key = reinterpret_cast<uintptr_t>(task) * 0x9E3779B97F4A7C15u +
                   static_cast<uint64_t>(count) * 0xD1B54A32D192ED03u;
    History& entry = all[key >> (64 - kBits)];
    if (entry.key_.load(std::memory_order_relaxed) != key) {
      for (auto* ns : {&entry.work_, &entry.alone_, &entry.together_})
        ns->store(-1, std::memory_order_relaxed);
      entry.key_.store(key, std::memory_order_relaxed);
    }
    return entry;
  }
  /// What all threads did, together; -1: not known.
  int64_t WorkNs() const { return work_.load(std::memory_order_relaxed); }
  /// Whether the caller is faster alone: for little work as measured, both ways now and then.
  bool IsForOne() {
    int64_t work = WorkNs(), alone = alone_.load(std::memory_order_relaxed);
    if (work < 0 || work >= kLittleNs) return false;
    if (alone < 0) return true;
    bool is_faster = alone < together_.load(std::memory_order_relaxed);
    bool tries = calls_.fetch_add(1, std::memory_order_relaxed) % kCallsToTry == 0;
    return is_faster != tries;
  }
  void TookAlone(int64_t ns) {
    Add(&alone_, ns);
    Add(&work_, ns);
  }
  void TookTogether(int64_t ns, int64_t work_ns) {
    Add(&together_, ns);
    Add(&work_, work_ns);
  }

 private:
  static void Add(std::atomic<int64_t>* mean, int64_t ns) {
    // What comes between only makes a loop longer: shorter times weigh more.
    int64_t known = mean->load(std::memory_order_relaxed);
    int64_t next = known < 0 ? ns : ns > known ? (3 * known + ns) / 4 : (known + ns) / 2;
    mean->store(next, std::memory_order_relaxed);
  }
  static constexpr int kBits = 11;
  static constexpr uint32_t kCallsToTry = 64;
  std::atomic<uint64_t> key_{0};
  std::atomic<int64_t> work_{-1}, alone_{-1}, together_{-1};
  std::atomic<uint32_t> calls_{1};
  static History all[1 << kBits];
};
History History::all[1 << History::kBits];

/// Whether to wake workers that sleep, for work of some length: not for less than it takes, unless
/// loops follow so closely that those before would have paid for it.
bool PaysToWake(int64_t work_ns) {
  static thread_local int64_t last = 0, missed = 0;
  int64_t now = NowNs();
  if (now - std::exchange(last, now) > kSpinNs) missed = 0;
  missed += work_ns;
  if (work_ns >= 0 && missed < 2 * wake_ns.load(std::memory_order_relaxed)) return false;
  missed = 0;
  return true;
}

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
  /// Works on a job with the workers that are free; `work_ns` is how long it takes, where known.
  void Work(Job* job, int participants, int64_t work_ns) {
    int present = Grow(participants - 1), count = 0;
    Worker* engaged[kMaxThreads];
    bool is_long = work_ns >= participants * kPlaceNs, wakes = false;
    for (int i = 0; i < present; ++i) {
      if (workers_[i]->IsAsleep()) {
        wakes = wakes || PaysToWake(work_ns);
        if (!wakes) continue;
      }
      if (workers_[i]->Offer(job, is_long)) engaged[count++] = workers_[i];
    }
    if (wakes) WakeMore(job);
    in_task = true;
    job->Work(0);
    in_task = false;
    for (int i = 0; i < count; ++i) engaged[i]->Withdraw(job, is_long);
  }

 private:
  /// Wakes two of the workers that sleep beside an offer; those wake two each.
  void WakeMore(Job* job) {
    int present = size_.load(std::memory_order_acquire);
    for (int woken = 0; woken < 2 && !job->IsOver();) {
      int i = job->NextToWake();
      if (i >= present) return;
      woken += workers_[i]->WakeFor(job);
    }
  }
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
        auto wake_more = [this](Job* job) { WakeMore(job); };
        std::thread([=, w = worker.get(), i = present + 1] { w->Loop(i, wake_more); }).detach();
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

namespace {
int RunAlone(TVMParallelTask task, void* data, int num_task) {
  TVMParallelGroupEnv env{nullptr, num_task};
  for (int i = 0; i < num_task; ++i) {
    if (int rc = task(i, &env, data)) return rc;
  }
  return 0;
}
/// Tasks of a loop of known length: as many for each thread, and each long enough to be worth it.
int NumPieces(int count, int threads, int64_t work_ns) {
  int64_t each = work_ns < 0 ? kUsualPieces
                             : std::clamp<int64_t>(work_ns / threads / kPieceNs, 1, kMostPieces);
  return static_cast<int>(std::min<int64_t>(count, each * threads));
}
/// `work_ns`: how long it took before, and now.
int RunTogether(TVMParallelTask task, void* data, int num_task, int threads, int64_t* work_ns) {
  int participants = std::min(num_task, threads);
  Job* job = Job::Begin(task, data, num_task, participants);
  struct Share {
    Job* job;
    int participants;
  } share{job, participants};
  auto work = [](void* data, int thread) {
    auto* share = static_cast<Share*>(data);
    if (thread >= share->participants) return;
    bool outer = std::exchange(in_task, true);
    share->job->Work(thread);
    in_task = outer;
  };
  if (auto* hook = thread_pool_hook.load(std::memory_order_acquire)) [[unlikely]] {
    hook->run(hook->self, work, &share, participants);
    work(&share, 0);  // what the program's threads have left, if anything
  } else if (const OpenMPTeam* team = OpenMPTeam::Find(threads)) {
    team->Run(work, &share);
  } else {
    Pool::Get().Work(job, participants, *work_ns);
  }
  int status = job->Finish();
  *work_ns = job->BusyNs();
  job->Release();
  return status;
}
}  // namespace

extern "C" int TVMBackendParallelLaunch(TVMParallelTask task, void* cdata, int num_task) {
  try {
    int threads = NumThreads();
    bool is_loop = num_task < 0;
    int count = num_task == 0 ? threads : is_loop ? -std::max(num_task, -INT_MAX) : num_task;
    if (count == 1 || threads == 1 || in_task) return RunAlone(task, cdata, is_loop ? 1 : count);
    History& history = History::Of(task, count);
    int64_t begin = NowNs();
    if (history.IsForOne()) {
      int status = RunAlone(task, cdata, is_loop ? 1 : count);
      history.TookAlone(NowNs() - begin);
      return status;
    }
    int64_t work_ns = history.WorkNs();
    int tasks = is_loop ? NumPieces(count, threads, work_ns) : count;
    int status = RunTogether(task, cdata, tasks, threads, &work_ns);
    history.TookTogether(NowNs() - begin, work_ns);
    return status;
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
