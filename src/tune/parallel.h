// SPDX-License-Identifier: Apache-2.0
// Independent work on threads of its own: the pool belongs to the kernels, and inside one of its
// tasks everything would run inline.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "ir/context_scope.h"

namespace tvm::tune {

/// The caller's options for passes, and some more. Its instruments stay behind: they are not made
/// to be called by several threads at once.
inline transform::PassContext ContextForThreads(const Map<String, Any>& more = {}) {
  auto current = transform::PassContext::Current();
  return New<transform::PassContext>([&](transform::PassContextObj* n) {
    n->opt_level = current->opt_level;
    n->config = current->config;
    n->required_pass = current->required_pass;
    n->disabled_pass = current->disabled_pass;
    for (const auto& [key, value] : more) n->config.Set(key, value);
  });
}
/// body(0) … body(n-1) on up to `threads` threads, the caller among them; the first exception is
/// rethrown when all have ended.
template <class F>
void ParallelFor(size_t n, int64_t threads, F&& body) {
  std::atomic<size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  auto context = ContextForThreads();
  auto work = [&] {
    transform::ContextScope scope(context);
    for (size_t i; (i = next.fetch_add(1)) < n;) {
      try {
        body(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = n;
      }
    }
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min<size_t>(n, std::max<int64_t>(threads, 1)); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread& t : helpers) t.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace tvm::tune
