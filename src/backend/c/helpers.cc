// SPDX-License-Identifier: Apache-2.0
// The C functions that talk to other threads and to the runtime.
#include "backend/c/codegen.h"

namespace tvm::codegen::c {

const std::vector<HelperRow>& RuntimeHelpers() {
  static const auto* rows = new std::vector<HelperRow>{
      // ---- other threads ----
      {"atomic_add", 'f', R"(#if !defined(__GNUC__)
#error "atomic_add needs a compiler with the atomic functions of GCC"
#endif
static inline $T $N($T* p, $T x) {
  $T old, sum;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do {
    sum = old + x;
  } while (!__atomic_compare_exchange(p, &old, &sum, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
})"},
      {"atomic_add", '*', R"(#if !defined(__GNUC__)
#error "atomic_add needs a compiler with the atomic functions of GCC"
#endif
static inline $T $N($T* p, $T x) { return __atomic_fetch_add(p, x, __ATOMIC_RELAXED); })"},
      // ---- the runtime: pointers that the loader of the library fills in, or null ----
      {"launch", '*', R"(typedef struct {
  void* sync_handle;
  int32_t num_task;
} tvm_task_group;
typedef int32_t (*tvm_task)(int32_t task_id, tvm_task_group* group, void* closure);
TVM_WEAK int32_t (*__TVMBackendParallelLaunch)(tvm_task, void*, int32_t) = NULL;
/* Runs a loop on the threads of the runtime, which chooses how many tasks it becomes. */
static int32_t $N(tvm_task task, void* closure, int64_t count) {
  tvm_task_group alone;
  if (__TVMBackendParallelLaunch != NULL) {
    return __TVMBackendParallelLaunch(
        task, closure, count < 1 ? 1 : count > INT32_MAX ? -INT32_MAX : -(int32_t)count);
  }
  alone.sync_handle = NULL;
  alone.num_task = 1;
  return task(0, &alone, closure);
}
/* Where the share of a task begins, in iterations: even, the first tasks get the rest. */
static inline int64_t tvm_share(int64_t task, int64_t tasks, int64_t extent, int64_t step) {
  int64_t count = extent <= 0 ? 0 : (extent + step - 1) / step;
  return task * (count / tasks) + (task < count % tasks ? task : count % tasks);
})"},
      {"alloc_workspace", '*',
       R"(TVM_WEAK void* (*__TVMBackendAllocWorkspace)(int32_t, int32_t, uint64_t, int32_t, int32_t) = NULL;
TVM_WEAK int32_t (*__TVMBackendFreeWorkspace)(int32_t, int32_t, void*) = NULL;
/* Temporary memory, aligned to 64 bytes; NULL when there is none. */
static void* $N(uint64_t bytes) {
  char *raw, *p;
  if (__TVMBackendAllocWorkspace != NULL) {
    return __TVMBackendAllocWorkspace(1 /* CPU */, 0, bytes, 1, 8);
  }
  if (bytes > SIZE_MAX - 64 - sizeof(raw)) return NULL;
  raw = (char*)malloc((size_t)bytes + 64 + sizeof(raw));
  if (raw == NULL) return NULL;
  p = raw + sizeof(raw);
  p += (64 - (uintptr_t)p % 64) % 64;
  memcpy(p - sizeof(raw), &raw, sizeof(raw));
  return p;
}
static void tvm_free_workspace(void* p) {
  char* raw;
  if (__TVMBackendFreeWorkspace != NULL) {
    __TVMBackendFreeWorkspace(1 /* CPU */, 0, p);
  } else if (p != NULL) {
    memcpy(&raw, (char*)p - sizeof(raw), sizeof(raw));
    free(raw);
  }
})"},
      {"alloc_device_workspace",
       '*',
       R"(/* The same on another device; freed in the same way. */
static void* $N(int32_t type, int32_t id, uint64_t bytes) {
  return __TVMBackendAllocWorkspace == NULL ? NULL : __TVMBackendAllocWorkspace(type, id, bytes, 1, 8);
})",
       {"alloc_workspace"}},
      {"raise", '*', R"(/* Sets the error of tvm-ffi. */
static int32_t $N(const char* kind, const char* format, ...) {
  char message[1024];
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof(message), format, values);
  va_end(values);
  TVMFFIErrorSetRaisedFromCStr(kind, message);
  return -1;
})"},
      {"find_packed", '*', R"(TVM_WEAK void* __tvm_ffi__library_ctx = NULL;
/* A function of the imported modules or of the registry, looked up once. */
static int32_t $N(void** slot, const char* name, void** result) {
  *result = TVM_ATOMIC_LOAD(slot);
  if (*result != NULL) return 0;
  if (TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, name, result) != 0) return -1;
  TVM_ATOMIC_STORE(slot, *result);
  return 0;
})"},
  };
  return *rows;
}

}  // namespace tvm::codegen::c
