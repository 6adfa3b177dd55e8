// SPDX-License-Identifier: Apache-2.0
// Measuring libraries that may crash, hang or be wrong: a server process that forks workers.
//
//   tuner ──JSON lines──► server ──fork──► worker: loads a library, checks its results, times it
//                           └─ shared memory: the inputs, and the results they should give
//
// The server itself never runs generated code, so it survives every candidate; what kills a worker
// (a signal, the time limit, the memory limit) becomes the answer to the request it worked on.
#pragma once
#include <tvm/ffi/extra/json.h>

#include <optional>
#include <string>
#include <vector>

#include "tvm/runtime/tensor.h"

namespace tvm::runtime::measure {

using Message = ffi::json::Object;

template <class T>
T Get(const Message& m, const char* key, T fallback) {
  auto it = m.find(String(key));
  if (it == m.end() || (*it).second == nullptr) return fallback;
  if constexpr (std::is_same_v<T, double>) {
    if (auto integer = (*it).second.template as<int64_t>()) return static_cast<double>(*integer);
  }
  return (*it).second.template cast<T>();
}

// ---- arguments.cc ------------------------------------------------------------------------------
/// One tensor argument: what every candidate starts from, and what it must leave behind. Both lie
/// in memory that the server shares with its workers.
struct Argument {
  DLDataType dtype;
  std::vector<int64_t> shape;
  uint64_t bytes;
  char *initial, *expected;
};
/// The arguments of a task and the memory they live in.
class Arguments {
 public:
  /// `specs` lists [dtype, shape]; values are drawn from `seed`.
  Arguments(const ffi::json::Array& specs, uint64_t seed);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  const std::vector<Argument>& list() const { return list_; }
  uint64_t bytes() const { return total_; }

 private:
  std::vector<Argument> list_;
  char* memory_ = nullptr;
  uint64_t total_ = 0;
};
/// Where and how far `got` is off the expected values; empty when it is within the tolerance of its
/// type.
std::string Difference(const Argument& argument, const void* got);

// ---- worker.cc ---------------------------------------------------------------------------------
/// A first call longer than so many times the best time so far ends the worker, with this code.
inline constexpr double kHopeless = 5;
inline constexpr int kHopelessExit = 75;
/// Answers one request after the other until the pipe closes; never returns.
[[noreturn]] void WorkerMain(int requests, int replies, const Arguments& arguments,
                             bool has_expected, uint64_t memory_limit);

// ---- lines over pipes --------------------------------------------------------------------------
bool WriteLine(int fd, const Message& message);
/// Reads lines from a descriptor; `seconds` < 0 waits for ever.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}
  enum class Status { kLine, kClosed, kTimeout };
  Status Read(std::string* line, double seconds);

 private:
  int fd_;
  std::string pending_;
};

}  // namespace tvm::runtime::measure
