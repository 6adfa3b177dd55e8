// SPDX-License-Identifier: Apache-2.0
// The worker: loads a library, checks what it computes, times it.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>

#include "runtime/measure/measure.h"
#include "tvm/runtime/module.h"
#include "tvm/runtime/thread_pool.h"

namespace tvm::runtime::measure {
namespace {
using Clock = std::chrono::steady_clock;
double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}
/// What the clock of a kernel says, in seconds. One that runs on one thread is timed by what that
/// thread got of its processor: others on a busy machine do not make it look slower.
double KernelClock() {
  static const clockid_t clock = NumThreads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double Quantile(std::vector<double> v, size_t at) {
  std::nth_element(v.begin(), v.begin() + at, v.end());
  return v[at];
}
double Median(const std::vector<double>& v) { return Quantile(v, v.size() / 2); }
/// What a busy machine disturbs less than the median.
double LowEighth(const std::vector<double>& v) { return Quantile(v, v.size() / 8); }
/// A tensor in memory that something else owns.
struct Placed {
  void AllocData(DLTensor* t, char* address) { t->data = address; }
  void FreeData(DLTensor*) {}
};
/// Keeps a candidate that allocates without end from taking the machine along.
void LimitMemory(uint64_t more) {
  if (more == 0) return;
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit;
  limit.rlim_cur = limit.rlim_max = pages * sysconf(_SC_PAGESIZE) + more;
  setrlimit(RLIMIT_AS, &limit);
}

/// Ends the process when the first call of a candidate takes many times as long as the best one
/// so far: waiting for it would tell nothing that matters. The time is that of the processors, all
/// threads together, so that a busy machine does not make a candidate look worse.
class Deadline {
 public:
  explicit Deadline(double best) {
    if (!std::isfinite(best)) return;
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGALRM;
    signal(SIGALRM, [](int) { _exit(kHopelessExit); });
    if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer_) != 0) return;
    set_ = true;
    // Starting threads and touching memory for the first time take their time as well.
    double seconds = kHopeless * best * NumThreads() + 2e-2;
    auto whole = static_cast<time_t>(seconds);
    itimerspec limit = {};
    limit.it_value.tv_sec = whole;
    limit.it_value.tv_nsec = static_cast<int64_t>((seconds - static_cast<double>(whole)) * 1e9);
    timer_settime(timer_, 0, &limit, nullptr);
  }
  ~Deadline() {
    if (set_) timer_delete(timer_);
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  timer_t timer_;
  bool set_ = false;
};

class Worker {
 public:
  Worker(const Arguments& arguments, bool has_expected)
      : arguments_(arguments), has_expected_(has_expected) {
    Place(0);
  }
  Message Answer(const Message& request) {
    auto op = Get<String>(request, "op", "");
    if (op == "reference") return Reference(request);
    if (op == "run") return Run(request);
    if (op == "race") return Race(request);
    return {{"error", "unknown request " + std::string(op)}};
  }

 private:
  /// A loaded candidate; the module keeps its code.
  struct Candidate {
    Module module;
    Function entry;
    explicit Candidate(const std::string& path)
        : module(LoadModule(path)), entry(EntryFunction(module)) {}
  };
  /// Allocates the arguments: first where they come to lie, then each off by some lines of the
  /// caches.
  void Place(int number) {
    constexpr int64_t kPage = 4096, kLine = 64;
    static_assert(kLine % kAllocAlignment == 0);
    std::minstd_rand random(static_cast<unsigned>(number));
    views_.clear();
    tensors_.clear();
    memory_.clear();
    for (const Argument& a : arguments_.list()) {
      int64_t bytes = static_cast<int64_t>(a.bytes) + (number > 0 ? kPage : 0);
      memory_.push_back(Empty(ShapeView(&bytes, 1), {kDLUInt, 8, 1}, {kDLCPU, 0}));
      char* at = static_cast<char*>(memory_.back().data_ptr());
      if (number > 0) at += static_cast<int64_t>(random() % (kPage / kLine)) * kLine;
      tensors_.push_back(Tensor::FromNDAlloc(Placed{}, ShapeView(a.shape.data(), a.shape.size()),
                                             a.dtype, DLDevice{kDLCPU, 0}, at));
    }
  }
  void Call(const Function& f) {
    Any result;
    f.CallPacked(views_.data(), static_cast<int32_t>(views_.size()), &result);
  }
  double Seconds(const Function& f, int64_t number) {
    double begin = KernelClock();
    for (int64_t i = 0; i < number; ++i) Call(f);
    return (KernelClock() - begin) / static_cast<double>(number);
  }
  void Reset() {
    views_.clear();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      std::memcpy(tensors_[i].data_ptr(), arguments_.list()[i].initial, arguments_.list()[i].bytes);
      views_.emplace_back(tensors_[i]);
    }
  }
  Message Reference(const Message& request) {
    Candidate c(std::string(Get<String>(request, "path", "")));
    Reset();
    Call(c.entry);
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const Argument& a = arguments_.list()[i];
      std::memcpy(a.expected, tensors_[i].data_ptr(), a.bytes);
    }
    return {{"secs", ffi::json::Array{}}};
  }
  /// Runs once and compares; "" when all is right.
  std::string Check(const Function& f, double best, double* first) {
    Reset();
    {
      Deadline deadline(best);
      *first = Seconds(f, 1);
    }
    if (!has_expected_) return "";
    for (size_t i = 0; i < tensors_.size(); ++i) {
      std::string wrong = Difference(arguments_.list()[i], tensors_[i].data_ptr());
      if (!wrong.empty()) {
        return "wrong result: argument " + std::to_string(i) + ", " + wrong;
      }
    }
    return "";
  }
  Message Run(const Message& request) {
    Candidate c(std::string(Get<String>(request, "path", "")));
    double first = 0, best = Get<double>(request, "best", INFINITY);
    if (std::string wrong = Check(c.entry, best, &first); !wrong.empty()) return {{"error", wrong}};
    ffi::json::Array secs;
    if (int64_t number = Get<int64_t>(request, "number", 0); number > 0) {
      bool flush = Get<bool>(request, "flush", false);
      for (int64_t i = Get<int64_t>(request, "repeat", 1); i > 0; --i)
        secs.push_back(Fixed(c.entry, number, Get<double>(request, "min_repeat_ms", 0.), flush));
    } else {
      secs.push_back(Adaptive(c.entry, first, best));
    }
    return {{"secs", secs}};
  }
  /// As the caller's evaluator configuration says.
  double Fixed(const Function& f, int64_t number, double min_repeat_ms, bool flush) {
    for (;;) {
      if (flush) Flush();
      double each = Seconds(f, number), total = each * static_cast<double>(number);
      if (total * 1e3 >= min_repeat_ms) return each;
      auto wanted = static_cast<int64_t>(min_repeat_ms / 1e3 / std::max(each, 1e-9)) + 1;
      number = std::max(wanted, number + number / 2 + 1);
    }
  }
  void Flush() {
    static const Function flush = Function::GetGlobalRequired("cache_flush_cpu_non_first_arg");
    std::vector<AnyView> args = {views_.empty() ? AnyView() : views_[0]};
    args.insert(args.end(), views_.begin(), views_.end());
    Any ignored;
    flush.CallPacked(args.data(), static_cast<int32_t>(args.size()), &ignored);
  }
  /// As long as it takes to tell the candidate from the best one so far: hopeless ones one or two
  /// calls, others until the median of batches is clear or the time for it is over.
  double Adaptive(const Function& f, double first, double best) {
    constexpr double kMuchSlower = 3, kSlower = 1.5, kBatch = 1e-4, kEnough = 2.5e-3, kMost = 2e-2;
    // The first call pays for waking threads and for caches that hold something else.
    constexpr double kStart = 1e-3;
    if (first > kMuchSlower * best + kStart) return first;
    double warm = Seconds(f, 1);
    if (std::min(first, warm) > kSlower * best) return std::min(first, warm);
    auto number = static_cast<int64_t>(std::clamp(kBatch / std::max(warm, 1e-9), 1., 1e5));
    std::vector<double> batches;
    auto begin = Clock::now();
    for (;;) {
      batches.push_back(Seconds(f, number));
      double spent = Since(begin), median = Median(batches);
      if (batches.size() >= 3 && (median > 1.15 * best || spent > kMost)) return median;
      if (batches.size() >= 7 && spent > kEnough) return median;
    }
  }
  /// Candidates take turns, so that a change of the machine's speed hits all of them, with the
  /// arguments in several places: where arrays lie relative to each other decides what collides in
  /// caches, and users have them anywhere. A turn begins with a call that is not timed, because
  /// the candidate before left the caches in another state than this one does. Those that have
  /// clearly lost leave; what they would have taken elsewhere follows from who stays. Where times
  /// scatter, others use the machine: then it takes longer to see who is fast.
  Message Race(const Message& request) {
    constexpr int kPlaces = 3;
    constexpr size_t kLapsToJudge = 4, kFewest = 4;  // the last few take the time of so many
    constexpr double kLost = 1.15, kTurn = 2e-4, kOwnState = 2e-3;
    constexpr double kDisturbed = 1.25, kPatience = 4;  // on a machine that others use, too
    struct Runner {
      Candidate candidate;
      int64_t number;
      bool warms_up;
      std::vector<double> laps, times;  // here; in the places so far
    };
    std::vector<Runner> runners;
    for (const Any& path : Get<ffi::json::Array>(request, "paths", {})) {
      Candidate c(std::string(path.cast<String>()));
      Reset();
      Seconds(c.entry, 1);
      double warm = std::max(Seconds(c.entry, 1), 1e-9);
      auto number = static_cast<int64_t>(std::clamp(kTurn / warm, 1., 1e5));
      runners.push_back({c, number, warm < kOwnState, {}, {}});
    }
    std::vector<Runner*> running;
    for (Runner& r : runners) running.push_back(&r);
    double share =
        Get<double>(request, "budget", 1.) / kPlaces / static_cast<double>(runners.size());
    for (int place = 0; place < kPlaces; ++place) {
      Place(place);
      Reset();
      for (Runner& r : runners) r.laps.clear();
      auto begin = Clock::now();
      bool busy = false;
      auto goes_on = [&] {
        auto shares = static_cast<double>(std::max(running.size(), kFewest));
        return running.size() > 1 && Since(begin) < (busy ? kPatience : 1) * shares * share;
      };
      for (size_t lap = 1; lap <= kLapsToJudge || goes_on(); ++lap) {
        for (Runner* r : running) {
          if (r->warms_up) Call(r->candidate.entry);
          r->laps.push_back(Seconds(r->candidate.entry, r->number));
        }
        if (lap % kLapsToJudge != 0) continue;
        busy = std::any_of(running.begin(), running.end(), [](const Runner* r) {
          return Median(r->laps) > kDisturbed * LowEighth(r->laps);
        });
        if (busy && lap % (4 * kLapsToJudge) != 0) continue;
        double best = INFINITY;
        for (Runner* r : running) best = std::min(best, LowEighth(r->laps));
        std::erase_if(running, [&](Runner* r) { return LowEighth(r->laps) > kLost * best; });
      }
      for (Runner& r : runners) {
        if (!r.laps.empty()) r.times.push_back(LowEighth(r.laps));
      }
    }
    const std::vector<double>& whole = running[0]->times;
    ffi::json::Array secs;
    for (Runner& r : runners) {
      double ratio = std::accumulate(r.times.begin(), r.times.end(), 0.) /
                     std::accumulate(whole.begin(), whole.begin() + r.times.size(), 0.);
      ffi::json::Array each;
      for (size_t i = 0; i < whole.size(); ++i)
        each.push_back(i < r.times.size() ? r.times[i] : ratio * whole[i]);
      secs.push_back(each);
    }
    return {{"secs", secs}};
  }

  const Arguments& arguments_;
  bool has_expected_;
  std::vector<Tensor> memory_, tensors_;  // the second lie in the first
  std::vector<AnyView> views_;
};
}  // namespace

void WorkerMain(int requests, int replies, const Arguments& arguments, bool has_expected,
                uint64_t memory_limit) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // tvm-ffi's handler prints a backtrace, which may hang in a process whose memory is damaged.
  for (int crash : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) signal(crash, SIG_DFL);
  rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  try {
    Worker worker(arguments, has_expected);
    LimitMemory(memory_limit);
    LineReader reader(requests);
    std::string line;
    while (reader.Read(&line, -1) == LineReader::Status::kLine) {
      Message reply;
      try {
        reply = worker.Answer(ffi::json::Parse(line).cast<Message>());
      } catch (const ffi::Error& error) {
        reply.Set("error", error.kind() + ": " + error.message());
      } catch (const std::bad_alloc&) {
        reply.Set("error", "MemoryError: out of memory");
      } catch (const std::exception& error) {
        reply.Set("error", std::string(error.what()));
      }
      if (!WriteLine(replies, reply)) break;
    }
  } catch (...) {
    _exit(1);
  }
  _exit(0);  // no destructors: the server owns what both share
}

}  // namespace tvm::runtime::measure
