// SPDX-License-Identifier: Apache-2.0
// What all search strategies need: replaying traces, telling programs apart, counting trials.
#pragma once
#include <mutex>
#include <unordered_set>

#include "tvm/tune/search.h"

namespace tvm::tune {

/// One candidate of a search: a schedule that passed the postprocessors.
struct Candidate {
  Schedule sch;
  Trace trace;           // without what the postprocessors did
  uint64_t program = 0;  // hash of what it lowers to, once that was asked for
};

/// A search that is under way.
class SearchState {
 public:
  SearchState(const TuneContext& context, int64_t max_trials, int64_t per_round,
              const Array<Schedule>& spaces, const Optional<Database>& database,
              const Any& cost_model);

  /// The decisions of the trace, or new random ones; none when a postprocessor refuses.
  std::optional<Candidate> Replay(const Trace& trace, bool new_decisions, uint64_t seed) const;
  /// Replays of random design spaces, `n` of them if that many succeed in `attempts`.
  std::vector<Candidate> Sample(size_t n, size_t attempts);
  /// The candidates whose lowered program is new, at most `n`: lowering runs on threads. What is
  /// returned counts as known from then on.
  std::vector<Candidate> KeepNew(const std::vector<Candidate>& candidates, size_t n);
  /// How many of the next round's trials are left.
  size_t RoundSize() const;
  Array<MeasureCandidate> Propose(const std::vector<Candidate>& candidates);

  TuneContext context;
  int64_t max_trials, per_round;
  std::vector<Trace> spaces;
  std::vector<size_t> likely;  // spaces around the default schedule
  Optional<Database> database;
  Any cost_model;
  Optional<Workload> workload;
  Array<ArgInfo> args_info;
  Array<Postproc> postprocs;
  Random random;
  int64_t trials = 0;                    // proposed so far
  std::unordered_set<uint64_t> known;    // lowered programs
  std::unordered_set<uint64_t> lowered;  // scheduled ones whose lowered form is known

 private:
  void LearnKnown();
};

}  // namespace tvm::tune
