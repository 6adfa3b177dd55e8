// SPDX-License-Identifier: Apache-2.0
// The thread pool: every task once, many callers, nesting, errors, fork.
#include "tvm/runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/cpu_count.h"
#include "tvm/runtime/def.h"

namespace tvm::runtime {
namespace {
/// Restores the number of threads.
struct Threads {
  explicit Threads(int n) { SetNumThreads(n); }
  ~Threads() { SetNumThreads(0); }
};

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 3, 8}) {
    Threads scope(threads);
    for (int num_task : {1, 2, 7, 63, 64, 65, 1000}) {
      std::vector<std::atomic<int>> ran(num_task);
      ParallelRun(num_task, [&](int id, int n) {
        EXPECT_EQ(n, num_task);
        ++ran[id];
      });
      for (auto& count : ran) EXPECT_EQ(count, 1);
    }
  }
}
TEST(ThreadPool, ZeroTasksMeansOnePerThread) {
  Threads scope(5);
  std::atomic<int> ran{0};
  ParallelRun(0, [&](int, int n) {
    EXPECT_EQ(n, 5);
    ++ran;
  });
  EXPECT_EQ(ran, 5);
}
TEST(ThreadPool, LoopsRunEveryIterationOnce) {
  // The number of tasks is the pool's choice, and follows the time that the loop took before.
  struct Loop {
    std::vector<std::atomic<int>> ran;
    int us;
  };
  TVMParallelTask task = [](int id, TVMParallelGroupEnv* env, void* data) {
    auto* loop = static_cast<Loop*>(data);
    auto n = static_cast<int64_t>(loop->ran.size());
    auto start = [&](int64_t i) { return i * n / env->num_task; };
    for (int64_t i = start(id); i < start(id + 1); ++i) ++loop->ran[i];
    std::this_thread::sleep_for(std::chrono::microseconds(loop->us));
    return 0;
  };
  for (int threads : {1, 2, 7}) {
    Threads scope(threads);
    for (int count : {1, 2, 15, 16, 17, 1000}) {
      for (int us : {0, 0, 0, 100, 0}) {
        Loop loop{std::vector<std::atomic<int>>(count), us};
        ASSERT_EQ(TVMBackendParallelLaunch(task, &loop, -count), 0);
        for (auto& n : loop.ran) EXPECT_EQ(n, 1);
      }
    }
  }
}
TEST(ThreadPool, TasksOfALateThreadAreTaken) {
  Threads scope(2);
  // One task does not end before all others have: whoever is in it cannot run them.
  for (int blocked : {0, 1, 5, 9}) {
    std::atomic<int> others{0};
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    ParallelRun(10, [&](int id, int) {
      if (id != blocked) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        ++others;
        return;
      }
      while (others < 9 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    });
    EXPECT_EQ(others, 9);
  }
}
TEST(ThreadPool, UsesSeveralThreads) {
  Threads scope(4);
  // Tasks that wait for each other end only where they run at the same time.
  std::atomic<int> arrived{0};
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  ParallelRun(4, [&](int, int) {
    ++arrived;
    while (arrived < 4 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 4);
}
TEST(ThreadPool, ManyCallersAtOnce) {
  Threads scope(4);
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        std::atomic<int> sum{0};
        ParallelRun(9, [&](int id, int) { sum += id; });
        total += sum;
      }
    });
  }
  for (auto& t : callers) t.join();
  EXPECT_EQ(total, 6 * 300 * 36);
}
TEST(ThreadPool, NestedRegionsRunInline) {
  Threads scope(4);
  std::atomic<int> ran{0};
  ParallelRun(4, [&](int, int) {
    auto outer = std::this_thread::get_id();
    ParallelRun(3, [&](int, int) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      ++ran;
    });
  });
  EXPECT_EQ(ran, 12);
}
TEST(ThreadPool, AfterSleepAndWhileSpinning) {
  Threads scope(3);
  std::atomic<int> ran{0};
  for (int pause_us : {0, 10, 60, 2000}) {
    for (int i = 0; i < 50; ++i) {
      ParallelRun(3, [&](int, int) { ++ran; });
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    }
  }
  EXPECT_EQ(ran, 4 * 50 * 3);
}
TEST(ThreadPool, FirstErrorReachesTheCaller) {
  Threads scope(4);
  for (int i = 0; i < 50; ++i) {
    try {
      ParallelRun(16, [&](int id, int) {
        if (id % 3 == 1) TVM_FFI_THROW(IndexError) << "task " << id;
      });
      FAIL() << "no error";
    } catch (const ffi::Error& e) {
      EXPECT_EQ(e.kind(), "IndexError");
      EXPECT_EQ(std::string(e.message()).rfind("task ", 0), 0);
    }
  }
  std::atomic<int> ran{0};
  ParallelRun(16, [&](int, int) { ++ran; });
  EXPECT_EQ(ran, 16);
}
TEST(ThreadPool, WorksInAForkedChild) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not allow threads after fork";
#endif
  Threads scope(4);
  ParallelRun(4, [](int, int) {});
  pid_t child = fork();
  if (child == 0) {
    std::atomic<int> ran{0};
    ParallelRun(8, [&](int, int) { ++ran; });
    _exit(ran == 8 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
TEST(ThreadPool, RejectsBadSizes) {
  EXPECT_THROW(SetNumThreads(-1), ffi::Error);
  EXPECT_THROW(SetNumThreads(1 << 20), ffi::Error);
  setenv("TVM_NUM_THREADS", "many", 1);
  EXPECT_THROW(SetNumThreads(0), ffi::Error);
  setenv("TVM_NUM_THREADS", "3", 1);
  SetNumThreads(0);
  EXPECT_EQ(NumThreads(), 3);
  unsetenv("TVM_NUM_THREADS");
  SetNumThreads(0);
  EXPECT_EQ(NumThreads(), AvailableCpus());
}

class Cgroup : public testing::Test {
 protected:
  void SetUp() override { root_ = testing::TempDir() + "cgroup" + std::to_string(getpid()); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  int Quota() { return CgroupQuota(root_, root_ + "/self"); }
  std::string root_;
};
TEST_F(Cgroup, V2TakesTheTightestAncestor) {
  Write("/self", "0::/a/b\n");
  EXPECT_EQ(Quota(), 0);
  Write("/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota(), 0);
  Write("/a/cpu.max", "350000 100000\n");
  EXPECT_EQ(Quota(), 4);
  Write("/cpu.max", "150000 100000\n");
  EXPECT_EQ(Quota(), 2);
}
TEST_F(Cgroup, V1) {
  Write("/self", "5:memory:/x\n4:cpu,cpuacct:/docker/1\n");
  Write("/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  Write("/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 0);
  Write("/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(Quota(), 1);
}
TEST_F(Cgroup, Nonsense) {
  Write("/self", "0\n::\n0::relative\n0::/\n");
  Write("/cpu.max", "lots of it");
  EXPECT_EQ(Quota(), 0);
}

TEST(Workspace, IsAlignedAndReused) {
  void* a = TVMBackendAllocWorkspace(kDLCPU, 0, 100, 2, 32);
  void* b = TVMBackendAllocWorkspace(kDLCPU, 0, 100000, 2, 32);
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 64, 0u);
  EXPECT_NE(a, b);
  EXPECT_EQ(TVMBackendFreeWorkspace(kDLCPU, 0, b), 0);
  EXPECT_EQ(TVMBackendFreeWorkspace(kDLCPU, 0, a), 0);
  EXPECT_EQ(TVMBackendAllocWorkspace(kDLCPU, 0, 90000, 2, 32), b);
  EXPECT_EQ(TVMBackendFreeWorkspace(kDLCPU, 0, b), 0);
}
void ExpectRaised(const char* kind) {
  try {
    ThrowRaised();
  } catch (const ffi::Error& e) {
    EXPECT_EQ(e.kind(), kind);
  }
}
TEST(Workspace, Errors) {
  EXPECT_EQ(TVMBackendAllocWorkspace(kDLCPU, 0, ~uint64_t{0}, 2, 32), nullptr);
  ExpectRaised("MemoryError");
  EXPECT_EQ(TVMBackendAllocWorkspace(kDLTrn, 0, 8, 2, 32), nullptr);
  ExpectRaised("RuntimeError");
  int local;
  EXPECT_EQ(TVMBackendFreeWorkspace(kDLCPU, 0, &local), -1);
  ExpectRaised("ValueError");
}
}  // namespace
}  // namespace tvm::runtime
