// SPDX-License-Identifier: Apache-2.0
// What the program that runs models has put in the place of our own memory and threads.
#pragma once
#include <atomic>

#include "tvm/runtime/model.h"

namespace tvm::runtime {

/// Null: our own. What was set once is never destroyed: somebody may still be using it.
inline std::atomic<const TVMModelAllocator*> allocator_hook{nullptr};
inline std::atomic<const TVMModelThreadPool*> thread_pool_hook{nullptr};

}  // namespace tvm::runtime
