// SPDX-License-Identifier: Apache-2.0
// The deep stack: an mmap'd region entered with swapcontext, so thread-local state stays valid.
#include "tvm/ir/stack.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <tvm/ffi/error.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include "tvm/runtime/def.h"
#include "tvm/runtime/signals.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace tvm {
namespace {

#ifdef __SANITIZE_ADDRESS__
/// The address sanitizer has to know which stack is in use: before and after each switch.
void LeaveStack(void** state, const void* low, size_t size) {
  __sanitizer_start_switch_fiber(state, low, size);
}
void EnterStack(void* state, const void** low, size_t* size) {
  __sanitizer_finish_switch_fiber(state, low, size);
}
#else
void LeaveStack(void**, const void*, size_t) {}
void EnterStack(void*, const void**, size_t*) {}
#endif

constexpr size_t kPage = 4096, kMargin = 512 << 10, kKeep = 1 << 20;

/// One deep stack. `fn` is what the other side shall run next; null means finished.
struct DeepStack {
  char* low = nullptr;
  size_t size = 256 << 20;  // 50,000 levels of JSON; using it up takes 2-4 s, 1 GiB 10-16 s
  ucontext_t home, deep;
  StackState home_state;
  void (*fn)(void*) = nullptr;
  void* arg = nullptr;
  std::exception_ptr error;
  DeepStack* outer = nullptr;
  bool used = false;  // went below the soft limit: give the memory back afterwards
  // What a sanitizer keeps of either stack, and where the home stack lies.
  void *home_kept = nullptr, *deep_kept = nullptr;
  const void* home_low = nullptr;
  size_t home_size = 0;

  DeepStack() {
    if (const char* mib = getenv("TVM_DEEP_STACK_MIB"))
      size = std::max<size_t>(16, atoi(mib)) << 20;
    // Strict overcommit or `ulimit -v` may refuse that much address space: take what there is.
    for (; size >= (16 << 20); size /= 2) {
      void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
      if (p == MAP_FAILED) continue;
      low = static_cast<char*>(p);
      madvise(low, size, MADV_NOHUGEPAGE);  // else the first touch commits and clears 2 MiB
      mprotect(low, kPage, PROT_NONE);
      return;
    }
    TVM_FFI_THROW(MemoryError) << "expected 16 MiB of address space for a deep stack";
  }
  ~DeepStack() { munmap(low, size); }

  void ToDeep() {
    LeaveStack(&home_kept, low, size);
    swapcontext(&home, &deep);
    EnterStack(home_kept, nullptr, nullptr);
  }
  void ToHome() {
    LeaveStack(&deep_kept, home_low, home_size);
    swapcontext(&deep, &home);
    EnterStack(deep_kept, &home_low, &home_size);
  }
  uintptr_t hard_limit() const { return reinterpret_cast<uintptr_t>(low) + kMargin; }
  uintptr_t soft_limit() const { return reinterpret_cast<uintptr_t>(low) + size - kKeep; }
  void RunRequest() noexcept {
    auto* request = std::exchange(fn, nullptr);
    try {
      request(arg);
    } catch (...) {
      error = std::current_exception();
    }
  }
  void Rethrow() {
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
  }
};

thread_local DeepStack* current = nullptr;
thread_local std::vector<std::unique_ptr<DeepStack>> idle;

void Entry() {
  EnterStack(nullptr, &current->home_low, &current->home_size);
  current->RunRequest();
  current->fn = nullptr;  // finished; uc_link resumes `home`
  LeaveStack(nullptr, current->home_low, current->home_size);
}

}  // namespace

thread_local constinit StackState stack_state;

namespace {
/// Traversals of any kind check the stack at each level, so this is where Ctrl-C stops them: the
/// signal's handler takes the limit away, and the next check comes to ask why.
volatile sig_atomic_t interrupted = 0;
void RunInterruptHandlers() {
  interrupted = 0;
  if (stack_state.deep) {
    stack_state.limit = current->used ? current->hard_limit() : current->soft_limit();
  }
  OnHomeStack([] { RunSignalHandlers(); });
}
TVM_REGISTER() {
  SetInterruptAlert([] {
    interrupted = 1;
    stack_state.limit = UINTPTR_MAX;
  });
}
}  // namespace

bool StackIsLowSlow(uintptr_t here) {
  if (interrupted && IsFirstThread()) {
    RunInterruptHandlers();
    if (here >= stack_state.limit) return false;
  }
  if (stack_state.deep && stack_state.limit != current->hard_limit()) {
    current->used = true;
    stack_state.limit = current->hard_limit();
    return here < stack_state.limit;
  }
  if (stack_state.limit != UINTPTR_MAX) return true;
  pthread_attr_t attr;
  void* low = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attr) == 0) {
    pthread_attr_getstack(&attr, &low, &size);
    pthread_attr_destroy(&attr);
  }
  stack_state.limit = reinterpret_cast<uintptr_t>(low) + std::min(kMargin, size / 4);
  return here < stack_state.limit;
}

void ThrowRecursionError() {
  TVM_FFI_THROW(RecursionError) << "program nested too deeply: the stack is used up";
  TVM_FFI_UNREACHABLE();
}

void RunOnDeepStack(void (*fn)(void*), void* arg) {
  std::unique_ptr<DeepStack> s;
  if (idle.empty()) {
    s = std::make_unique<DeepStack>();
  } else {
    s = std::move(idle.back());
    idle.pop_back();
  }
  getcontext(&s->deep);
  s->deep.uc_stack.ss_sp = s->low;
  s->deep.uc_stack.ss_size = s->size;
  s->deep.uc_link = &s->home;
  makecontext(&s->deep, Entry, 0);
  s->fn = fn;
  s->arg = arg;
  s->outer = std::exchange(current, s.get());
  s->home_state = stack_state;
  for (;;) {
    stack_state = {s->used ? s->hard_limit() : s->soft_limit(), true};
    s->ToDeep();
    stack_state = s->home_state;
    if (!s->fn) break;
    current = s->outer;  // a request to run something here; it may nest
    s->RunRequest();
    current = s.get();
  }
  current = s->outer;
  if (std::exchange(s->used, false))
    madvise(s->low + kPage, s->size - kKeep - kPage, MADV_DONTNEED);
  std::exception_ptr error = std::exchange(s->error, nullptr);
  idle.push_back(std::move(s));
  if (error) std::rethrow_exception(error);
}

void RunOnHomeStack(void (*fn)(void*), void* arg) {
  DeepStack* s = current;
  s->fn = fn;
  s->arg = arg;
  s->ToHome();
  s->Rethrow();
}

}  // namespace tvm
