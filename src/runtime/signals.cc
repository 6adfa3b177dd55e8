// SPDX-License-Identifier: Apache-2.0
// Ctrl-C during long calls: Python notes a signal, but runs its handler only when it is entered.
#include "tvm/runtime/signals.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>

#include "tvm/runtime/def.h"

namespace tvm {
namespace {
struct sigaction python_handler;
std::atomic<void (*)()> on_interrupt{nullptr};
std::atomic<uint32_t> interrupts{0};

void HandleInterrupt(int signal, siginfo_t* info, void* context) {
  int saved = errno;
  if (!IsFirstThread()) {
    syscall(SYS_tgkill, getpid(), getpid(), signal);
  } else {
    if (auto alert = on_interrupt.load(std::memory_order_relaxed)) alert();
    if (python_handler.sa_flags & SA_SIGINFO) {
      python_handler.sa_sigaction(signal, info, context);
    } else {
      python_handler.sa_handler(signal);
    }
    interrupts.fetch_add(1, std::memory_order_release);  // after Python has noted it
  }
  errno = saved;
}
/// Puts ours before the handler that is in place on the first call, which is Python's, and again
/// where Python has set that one anew. Other libraries' handlers stay (LLVM's hands on to what it
/// replaced); a program that ignores Ctrl-C, or dies of it, goes on so.
void WatchInterrupts() {
  struct sigaction now;
  if (sigaction(SIGINT, nullptr, &now) != 0) return;
  if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return;
  static const auto known = now.sa_handler;
  if (now.sa_handler != known) return;
  python_handler = now;
  now.sa_sigaction = &HandleInterrupt;
  now.sa_flags |= SA_SIGINFO;
  sigaction(SIGINT, &now, nullptr);
}
}  // namespace

bool IsFirstThread() { return syscall(SYS_gettid) == getpid(); }
uint32_t InterruptCount() { return interrupts.load(std::memory_order_acquire); }
void SetInterruptAlert(void (*alert)()) { on_interrupt = alert; }

void RunSignalHandlers() {
  // Entering Python code runs pending handlers, and gives an error that can be caught and rethrown;
  // TVMFFIEnvCheckSignals leaves it in the interpreter's state. Never destroyed: Python is gone
  // before the statics of this library.
  static const auto* enter_python =
      new std::optional<Function>(Function::GetGlobal("runtime.run_signal_handlers"));
  if (!*enter_python || !IsFirstThread()) return;
  try {
    (**enter_python)();
  } catch (const ffi::Error& error) {
    throw Interrupt(error);
  }
  WatchInterrupts();  // the program may have set another handler
}
void CheckSignals() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point next;  // the interpreter may be busy with other threads
  auto now = Clock::now();
  if (now < next) return;
  next = now + std::chrono::milliseconds(20);
  RunSignalHandlers();
}

namespace {
TVM_REGISTER() {
  Def("runtime.watch_interrupts", &RunSignalHandlers,
      "Lets Ctrl-C stop calls into C++ from now on, after Python's handlers of pending signals "
      "ran.");
}
}  // namespace
}  // namespace tvm
