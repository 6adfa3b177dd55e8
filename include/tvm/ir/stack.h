// SPDX-License-Identifier: Apache-2.0
// Deep recursion without stack overflow: a large, lazily committed stack per thread, and a limit
// check.
#pragma once
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace tvm {

struct StackState {
  uintptr_t limit = UINTPTR_MAX;  // lowest usable address; UINTPTR_MAX: not known yet
  bool deep = false;              // running on a deep stack
};
// initial-exec: one load instead of a __tls_get_addr call; 16 bytes of the loader's surplus.
extern thread_local constinit StackState stack_state __attribute__((tls_model("initial-exec")));

bool StackIsLowSlow(uintptr_t here);
[[noreturn]] void ThrowRecursionError();
void RunOnDeepStack(void (*fn)(void*), void* arg);
void RunOnHomeStack(void (*fn)(void*), void* arg);

/// True when little of the current stack is left.
inline bool StackIsLow() {
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here < stack_state.limit && StackIsLowSlow(here);
}
/// Raises RecursionError when the current stack is nearly used up.
inline void CheckStack() {
  if (StackIsLow()) [[unlikely]]
    ThrowRecursionError();
}

template <class F, class Run>
auto CallOn(Run run, F& fn) {
  using R = std::invoke_result_t<F&>;
  if constexpr (std::is_void_v<R>) {
    run([](void* f) { (*static_cast<F*>(f))(); }, &fn);
  } else {
    std::pair<F*, std::optional<R>> call{&fn, std::nullopt};
    run(
        [](void* c) {
          auto* p = static_cast<decltype(call)*>(c);
          p->second.emplace((*p->first)());
        },
        &call);
    return *std::move(call.second);
  }
}
/// Runs `fn` on the deep stack (directly when already there). Exceptions pass through.
template <class F>
auto OnDeepStack(F&& fn) {
  if (stack_state.deep) return fn();
  return CallOn(&RunOnDeepStack, fn);
}
/// Runs `fn`, which may call Python, on the stack the thread came with: CPython 3.14 and newer
/// compare stack addresses with the bounds of the thread's own stack.
template <class F>
auto OnHomeStack(F&& fn) {
  if (!stack_state.deep) return fn();
  return CallOn(&RunOnHomeStack, fn);
}
/// For recursive functions: continues on the deep stack when the current one runs low.
template <class F>
auto Recurse(F&& fn) {
  if (!StackIsLow()) [[likely]]
    return fn();
  if (stack_state.deep) ThrowRecursionError();
  return CallOn(&RunOnDeepStack, fn);
}

}  // namespace tvm
