// SPDX-License-Identifier: Apache-2.0
// Ctrl-C while LLVM works, which cannot be stopped from outside.
#pragma once
#include <functional>

namespace tvm::codegen {

/// Runs `fn` on a thread of its own while this one waits for its end or for Ctrl-C. After Ctrl-C
/// the caller goes on with Interrupt, and `fn`, which must own all it uses, ends when it gets
/// there; the process does not exit before. Off the first thread, where no signal is handled, `fn`
/// runs here.
void RunInterruptibly(std::function<void()> fn);
/// On the thread of `fn`: nobody waits for the result any more.
bool IsAbandoned();

}  // namespace tvm::codegen
