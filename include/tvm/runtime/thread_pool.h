// SPDX-License-Identifier: Apache-2.0
// The process's thread pool: parallel loops of generated code and of the runtime itself.
#pragma once
#include <tvm/ffi/c_api.h>

#include <cstdint>
#include <exception>
#include <type_traits>

extern "C" {
struct TVMParallelGroupEnv {
  void* sync_handle;  ///< reserved, null
  int32_t num_task;
};
/// One task of a parallel region; non-zero means failure, with the tvm-ffi error set.
typedef int (*TVMParallelTask)(int task_id, TVMParallelGroupEnv* env, void* cdata);

/// Runs `task` for task ids 0 .. num_task-1 (0: as many as there are threads; -n: a loop of n
/// iterations, of which the pool chooses the number of tasks, at most n) on the pool and the
/// calling thread, and returns when all have ended. Tasks must not wait for each other: any number
/// of them may run on one thread. Inside a task it runs inline. The first failure is returned, its
/// error raised in the calling thread; tasks that have not begun by then are left out.
TVM_FFI_DLL_EXPORT int TVMBackendParallelLaunch(TVMParallelTask task, void* cdata, int num_task);

/// Scratch memory of the calling thread, 64-byte aligned, reused by later requests; null with the
/// error set when there is none. The hints (dtype code and bits) are for devices with typed memory.
TVM_FFI_DLL_EXPORT void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes,
                                                  int dtype_code_hint, int dtype_bits_hint);
/// Gives back what TVMBackendAllocWorkspace returned in the same thread.
TVM_FFI_DLL_EXPORT int TVMBackendFreeWorkspace(int device_type, int device_id, void* ptr);
}

namespace tvm::runtime {

/// CPUs this process may use: its affinity mask, limited by the cgroup's quota (v1 and v2).
int AvailableCpus();
/// Threads a parallel region uses, the caller included: SetNumThreads, else TVM_NUM_THREADS, else
/// AvailableCpus().
int NumThreads();
/// Takes effect for the regions that start afterwards; 0 goes back to the default.
void SetNumThreads(int n);

/// Calls `body(task_id, num_task)` on the pool; an exception of a task is rethrown here.
template <class F>
void ParallelRun(int num_task, F&& body);

int ReportTaskException() noexcept;
[[noreturn]] void ThrowRaised();

template <class F>
void ParallelRun(int num_task, F&& body) {
  using Body = std::remove_reference_t<F>;
  TVMParallelTask task = [](int id, TVMParallelGroupEnv* env, void* data) -> int {
    try {
      (*static_cast<Body*>(data))(id, env->num_task);
      return 0;
    } catch (...) {
      return ReportTaskException();
    }
  };
  if (TVMBackendParallelLaunch(task, const_cast<void*>(static_cast<const void*>(&body)),
                               num_task) != 0) {
    ThrowRaised();
  }
}

}  // namespace tvm::runtime
