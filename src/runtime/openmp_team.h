// SPDX-License-Identifier: Apache-2.0
// The threads of an OpenMP runtime that another library brought into the process.
#pragma once

namespace tvm::runtime {

/// The threads of an OpenMP runtime spin on their CPUs for milliseconds after a loop, where threads
/// of ours get no turn: a process that calls two libraries in turns is as fast as one of them only
/// where both use the same threads. So where a library such as PyTorch has loaded an OpenMP
/// runtime, its threads run our loops, too.
class OpenMPTeam {
 public:
  /// The team of the calling thread, of at least `threads` / 2 (whoever counts cores without their
  /// siblings takes half); null where there is none. One thread of the process can have it at a
  /// time, from its first call to its end: a team for each would be more threads than CPUs.
  static const OpenMPTeam* Find(int threads);
  /// Calls `body(data, i)` on each thread i of the team, and returns when all have ended.
  void Run(void (*body)(void* data, int thread), void* data) const;

 private:
  int (*in_parallel_)() = nullptr;
  int (*max_threads_)() = nullptr;
  int (*thread_num_)() = nullptr;
  void (*parallel_)(void (*body)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
  static const OpenMPTeam* Loaded();
};

}  // namespace tvm::runtime
