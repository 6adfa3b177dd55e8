// SPDX-License-Identifier: Apache-2.0
// Who handles signals, and what their handlers raise. CheckSignals is in def.h.
#pragma once
#include <tvm/ffi/error.h>

#include <cstdint>
#include <exception>
#include <utility>

namespace tvm {

/// What a signal handler of Python raised, KeyboardInterrupt as a rule. No ffi::Error: code that
/// catches those and goes on must not lose it.
struct Interrupt : std::exception {
  ffi::Error error;
  explicit Interrupt(ffi::Error error) : error(std::move(error)) {}
  const char* what() const noexcept override { return error.what(); }
};
/// Python runs signal handlers on the first thread of the process and nowhere else.
bool IsFirstThread();
/// Runs the handlers of signals that came, at once; CheckSignals does so every 20 ms at most.
/// Throws Interrupt.
void RunSignalHandlers();
/// How often Ctrl-C came: a cheap question for loops that cannot afford more.
uint32_t InterruptCount();
/// Has `alert` called on the first thread when Ctrl-C comes, from a signal handler.
void SetInterruptAlert(void (*alert)());

}  // namespace tvm
