// SPDX-License-Identifier: Apache-2.0
// Replaying traces, and telling the programs they give apart.
#include "tune/search/replay.h"

#include "tune/parallel.h"
#include "tune/rule/blocks.h"
#include "tvm/ir/structural.h"

namespace tvm::tune {
using namespace tir;

SearchState::SearchState(const TuneContext& context, int64_t max_trials, int64_t per_round,
                         const Array<Schedule>& spaces, const Optional<Database>& database,
                         const Any& cost_model)
    : context(context),
      max_trials(max_trials),
      per_round(per_round),
      database(database),
      cost_model(cost_model),
      random(static_cast<uint64_t>(context->rand_state)) {
  if (per_round < 1) {
    TVM_FFI_THROW(ValueError) << "meta_schedule: expected num_trials_per_iter of at least 1, got "
                              << per_round;
  }
  for (const Schedule& sch : spaces) {
    if (IsComplete(sch)) likely.push_back(this->spaces.size());
    this->spaces.push_back(sch.trace().Simplified(true));
  }
  args_info = ArgsOf(EntryFunc(context->mod.value()));
  postprocs = context->space_generator.has_value() &&
                      context->space_generator.value()->postprocs.has_value()
                  ? context->space_generator.value()->postprocs.value()
                  : Array<Postproc>();
  if (database.has_value()) {
    workload = database.value()->CommitWorkload(context->mod.value());
    LearnKnown();
  }
}
namespace {
/// What is no refusal of a primitive is an error of a rule, a postprocessor or the compiler: it
/// ends the search, and shows the program it happened with.
[[noreturn]] void Rethrow(const ffi::Error& error, const Trace& trace) {
  if (error.kind() == "KeyboardInterrupt") throw error;
  std::string program;
  for (const String& line : trace.AsPython(false)) program += "\n  " + std::string(line);
  throw ffi::Error(error.kind(), error.message() + "\nwhile the search tried" + program,
                   error.backtrace());
}
}  // namespace

/// Programs measured by an earlier run are known, by their hashes or by lowering them again.
void SearchState::LearnKnown() {
  bool all_said = true;
  for (const RecordOutline& outline : database.value()->Outlines(workload.value())) {
    all_said &= outline.program != 0;
    known.insert(outline.program);
  }
  if (all_said) return;
  std::vector<Candidate> earlier;
  for (const TuningRecord& record : database.value()->GetAllTuningRecords()) {
    if (!record->workload->mod.same_as(workload.value()->mod)) continue;
    Schedule sch(context->mod.value());
    try {
      record->trace.ApplyToSchedule(sch, false);
    } catch (const ffi::Error&) {
      continue;  // a record of a primitive that has changed since
    }
    earlier.push_back({sch, record->trace});
  }
  KeepNew(earlier, earlier.size());
}

std::optional<Candidate> SearchState::Replay(const Trace& trace, bool new_decisions,
                                             uint64_t seed) const {
  Schedule sch(context->mod.value(), static_cast<int64_t>(seed >> 33), 0, ErrorRenderLevel::kNone);
  try {
    if (new_decisions) {
      trace.ApplyToSchedule(sch, true,
                            [](const Instruction&, const Array<Any>&, const Array<Any>&,
                               const Any&) -> Any { return nullptr; });
    } else {
      trace.ApplyToSchedule(sch, true);
    }
    Trace decided = sch.trace();
    if (!decided->insts.empty()) {
      sch.EnterPostproc();
      for (const Postproc& postproc : postprocs) {
        if (!postproc->Apply(sch)) return std::nullopt;
      }
    }
    return Candidate{sch, decided};
  } catch (const ffi::Error& error) {
    if (error.kind() == "ScheduleError") return std::nullopt;  // these decisions do not go together
    Rethrow(error, trace);
  }
}
std::vector<Candidate> SearchState::Sample(size_t n, size_t attempts) {
  std::vector<Candidate> found;
  if (spaces.empty()) return found;
  std::mutex mutex;
  std::vector<std::pair<size_t, uint64_t>> draws;
  constexpr uint64_t kOftenLikely = 4;  // one of so many, however many other spaces there are
  for (size_t i = 0; i < attempts; ++i) {
    bool is_likely = !likely.empty() && random() % kOftenLikely == 0;
    size_t space = is_likely ? likely[random() % likely.size()] : random() % spaces.size();
    draws.emplace_back(space, random());
  }
  // In batches, so that the result does not depend on which thread was faster.
  for (size_t begin = 0; begin < attempts && found.size() < n;) {
    size_t count = std::min(n - found.size(), attempts - begin);
    std::vector<std::optional<Candidate>> batch(count);
    ParallelFor(count, context->num_threads, [&](size_t i) {
      batch[i] = Replay(spaces[draws[begin + i].first], true, draws[begin + i].second);
    });
    for (auto& candidate : batch)
      if (candidate) found.push_back(std::move(*candidate));
    begin += count;
    CheckSignals();
  }
  return found;
}
std::vector<Candidate> SearchState::KeepNew(const std::vector<Candidate>& candidates, size_t n) {
  std::vector<Candidate> kept;
  const Target& target = context->target.value();
  for (size_t begin = 0; begin < candidates.size() && kept.size() < n;) {
    size_t count = std::min(candidates.size() - begin, n - kept.size());
    std::vector<std::optional<uint64_t>> hashes(count);
    std::vector<uint64_t> schedules(count);
    ParallelFor(count, context->num_threads, [&](size_t i) {
      IRModule mod = candidates[begin + i].sch.mod();
      schedules[i] = StructuralHash(mod);
      if (lowered.count(schedules[i])) return;
      try {
        hashes[i] = StructuralHash(LowerForBuild(mod, target));
      } catch (const ffi::Error& error) {  // it could not be built either
        if (error.kind() == "KeyboardInterrupt") throw;
        if (error.kind() == "InternalError") Rethrow(error, candidates[begin + i].trace);
      }
    });
    lowered.insert(schedules.begin(), schedules.end());
    for (size_t i = 0; i < count; ++i) {
      if (!hashes[i] || !known.insert(*hashes[i]).second) continue;
      kept.push_back(candidates[begin + i]);
      kept.back().program = *hashes[i];
    }
    begin += count;
    CheckSignals();
  }
  return kept;
}
size_t SearchState::RoundSize() const {
  return static_cast<size_t>(std::clamp<int64_t>(max_trials - trials, 0, per_round));
}
Array<MeasureCandidate> SearchState::Propose(const std::vector<Candidate>& candidates) {
  trials += static_cast<int64_t>(candidates.size());
  Array<MeasureCandidate> result;
  for (const Candidate& c : candidates)
    result.push_back(MeasureCandidate(c.sch, args_info, String(HashText(c.program))));
  return result;
}

}  // namespace tvm::tune
