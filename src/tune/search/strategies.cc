// SPDX-License-Identifier: Apache-2.0
// Search strategies: evolution guided by the cost model, and plain replay.
#include <tvm/ffi/container/tensor.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tune/parallel.h"
#include "tune/search/replay.h"
#include "tvm/ir/structural.h"

namespace tvm::tune {
namespace {
using namespace tir;

/// What the strategies of this project share.
struct BuiltinStrategyObj : SearchStrategyObj {
  // The context owns the strategy; while a search is under way its state keeps the context.
  ffi::WeakObjectPtr<TuneContextObj> owner;
  std::shared_ptr<SearchState> state;

  void Initialize(const TuneContext& c) override {
    if (!c->mod.has_value() || !c->target.has_value()) {
      TVM_FFI_THROW(ValueError) << "meta_schedule: expected a context with a module and a target";
    }
    owner = ffi::detail::ObjectUnsafe::ObjectPtrFromObjectRef<TuneContextObj>(c);
    state.reset();
  }
  void PreTuning(int64_t max_trials, int64_t per_round, const Array<Schedule>& spaces,
                 const Optional<Database>& database, const Any& cost_model) override {
    auto context = owner.lock();
    if (!context) {
      TVM_FFI_THROW(ValueError) << "SearchStrategy.pre_tuning: expected a tune context first";
    }
    state = std::make_shared<SearchState>(TuneContext(context), max_trials, per_round, spaces,
                                          database, cost_model);
  }
  void PostTuning() override { state.reset(); }
  SearchState& Now() const {
    if (!state) {
      TVM_FFI_THROW(ValueError) << "SearchStrategy: expected pre_tuning to be called first";
    }
    return *state;
  }
  Optional<Array<MeasureCandidate>> Generate() override {
    SearchState& s = Now();
    size_t n = s.RoundSize();
    if (n == 0) return std::nullopt;
    std::vector<Candidate> round;
    // What nobody scheduled is scheduled by the default rules: the first candidate, so that the
    // result is never slower than not tuning.
    if (s.trials == 0 && TriesDefault()) {
      if (auto untouched = s.Replay(Trace({}, {}), false, 0)) round = s.KeepNew({*untouched}, 1);
    }
    auto more = More(&s, n - round.size());
    round.insert(round.end(), more.begin(), more.end());
    if (round.empty()) return std::nullopt;
    return s.Propose(round);
  }
  void Notify(const Array<MeasureCandidate>&, const Array<RunnerResult>&) override {}
  virtual bool TriesDefault() const { return true; }
  virtual std::vector<Candidate> More(SearchState* s, size_t n) = 0;
};

// ---- replay ------------------------------------------------------------------------------------
struct ReplayTraceObj : BuiltinStrategyObj {
  int64_t max_fail_count = 100;
  static void Fields(auto&& def) {
    def("max_fail_count", &ReplayTraceObj::max_fail_count, Default(100));
  }
  std::vector<Candidate> More(SearchState* s, size_t n) final {
    std::vector<Candidate> round;
    for (int64_t failures = 0; round.size() < n && failures < max_fail_count;) {
      auto fresh = s->KeepNew(s->Sample(n - round.size(), 4 * n), n - round.size());
      failures += static_cast<int64_t>(n - round.size() - fresh.size());
      round.insert(round.end(), fresh.begin(), fresh.end());
    }
    return round;
  }
  ObjectRef Clone() const final { return CopyNode(this); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.ReplayTrace", ReplayTraceObj, SearchStrategyObj);
};
/// The space generator runs anew for every candidate.
struct ReplayFuncObj : BuiltinStrategyObj {
  static void Fields(auto&&) {}
  std::vector<Candidate> More(SearchState* s, size_t n) final {
    std::vector<Candidate> round;
    const TuneContext& context = s->context;
    SpaceGenerator generator = context->space_generator.value();
    for (int64_t failures = 0; round.size() < n && failures < 100;) {
      context->rand_state = static_cast<int64_t>(s->random() >> 33);
      generator->Initialize(context);
      Array<Schedule> spaces = generator->Generate(context->mod.value());
      std::vector<Candidate> made;
      for (const Schedule& sch : spaces) {
        if (auto c = s->Replay(sch.trace(), false, 0)) made.push_back(*c);
      }
      auto fresh = s->KeepNew(made, n - round.size());
      if (fresh.empty()) ++failures;
      round.insert(round.end(), fresh.begin(), fresh.end());
    }
    return round;
  }
  ObjectRef Clone() const final { return CopyNode(this); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.ReplayFunc", ReplayFuncObj, SearchStrategyObj);
};

// ---- evolution ---------------------------------------------------------------------------------
struct Scored {
  Candidate candidate;
  uint64_t hash;  // of the scheduled program
  double score = 0;
};
struct EvolutionarySearchObj : BuiltinStrategyObj {
  int64_t population_size = 512, init_min_unmeasured = 50, max_fail_count = 5;
  int64_t genetic_num_iters = 4, genetic_max_fail_count = 10;
  double init_measured_ratio = 0.2, genetic_mutate_prob = 0.85, eps_greedy = 0.05;
  static void Fields(auto&& def) {
    def("population_size", &EvolutionarySearchObj::population_size, Default(512));
    def("init_measured_ratio", &EvolutionarySearchObj::init_measured_ratio, Default(0.2));
    def("init_min_unmeasured", &EvolutionarySearchObj::init_min_unmeasured, Default(50));
    def("max_fail_count", &EvolutionarySearchObj::max_fail_count, Default(5));
    def("genetic_num_iters", &EvolutionarySearchObj::genetic_num_iters, Default(4));
    def("genetic_mutate_prob", &EvolutionarySearchObj::genetic_mutate_prob, Default(0.85));
    def("genetic_max_fail_count", &EvolutionarySearchObj::genetic_max_fail_count, Default(10));
    def("eps_greedy", &EvolutionarySearchObj::eps_greedy, Default(0.05));
  }
  void Init() {
    auto probability = [](const char* name, double value) {
      if (!(value >= 0 && value <= 1)) {
        TVM_FFI_THROW(ValueError) << "EvolutionarySearch." << name
                                  << ": expected a number from 0 to 1, got " << value;
      }
    };
    probability("init_measured_ratio", init_measured_ratio);
    probability("genetic_mutate_prob", genetic_mutate_prob);
    probability("eps_greedy", eps_greedy);
    if (population_size < 1) {
      TVM_FFI_THROW(ValueError) << "EvolutionarySearch.population_size: expected at least 1, got "
                                << population_size;
    }
  }

  std::vector<Candidate> More(SearchState* s, size_t n) final {
    if (n == 0) return {};
    // A population is worth its time only in proportion to the trials it serves.
    size_t size = std::min<size_t>(population_size, std::max<size_t>(48, n));
    std::vector<Candidate> round;
    auto add = [&](const std::vector<Candidate>& candidates, size_t most) {
      auto fresh = s->KeepNew(candidates, std::min(most, n - round.size()));
      round.insert(round.end(), fresh.begin(), fresh.end());
    };
    auto measured =
        Measured(s, static_cast<size_t>(init_measured_ratio * static_cast<double>(size)));
    size_t random_trials = static_cast<size_t>(std::lround(eps_greedy * static_cast<double>(n)));
    if (measured.size() >= 4) {
      auto population = Sampled(s, size - measured.size());
      population.insert(population.end(), measured.begin(), measured.end());
      Score(s, &population);
      auto best = Evolve(s, std::move(population), size);
      std::vector<Candidate> order;
      for (Scored& b : best) order.push_back(std::move(b.candidate));
      add(order, n - std::min(random_trials, n));
    }
    constexpr size_t kEnough = 16;  // draws that find a program, if any is left, which is not rare
    for (int64_t failures = 0; round.size() < n && failures <= max_fail_count; ++failures) {
      size_t before = round.size();
      add(s->Sample(std::max(n - before, kEnough), 4 * std::max(n, kEnough)), n);
      if (round.size() > before) failures = -1;
    }
    return round;
  }

 private:
  /// The best ones so far.
  std::vector<Scored> Measured(SearchState* s, size_t most) {
    std::vector<Scored> result;
    if (!s->database.has_value()) return result;
    Array<TuningRecord> top = s->database.value()->GetTopK(s->workload.value(), most);
    std::vector<std::optional<Candidate>> replayed(top.size());
    ParallelFor(top.size(), s->context->num_threads,
                [&](size_t i) { replayed[i] = s->Replay(top[i]->trace, false, 0); });
    for (auto& c : replayed)
      if (c && !c->trace->insts.empty()) result.push_back({*c, HashOf(*c)});
    return result;
  }
  std::vector<Scored> Sampled(SearchState* s, size_t n) {
    std::vector<Scored> result;
    for (Candidate& c : s->Sample(n, 2 * n)) result.push_back({c, HashOf(c)});
    return result;
  }
  static uint64_t HashOf(const Candidate& c) { return StructuralHash(c.sch.mod()); }

  /// Asks the cost model; scores are throughputs, larger is better. Without a model all are equal.
  void Score(SearchState* s, std::vector<Scored>* population) {
    if (s->cost_model == nullptr || population->empty()) return;
    static const Function predict = Function::GetGlobalRequired("meta_schedule.predict");
    Array<MeasureCandidate> candidates;
    for (const Scored& p : *population)
      candidates.push_back(MeasureCandidate(p.candidate.sch, s->args_info));
    auto scores = predict(s->cost_model, s->context, candidates).cast<ffi::Tensor>();
    auto* values = static_cast<const double*>(scores.data_ptr());
    for (size_t i = 0; i < population->size(); ++i) (*population)[i].score = values[i];
  }
  /// Generations of mutated candidates; the best of all of them, best first.
  std::vector<Scored> Evolve(SearchState* s, std::vector<Scored> population, size_t size) {
    std::vector<Scored> best;
    std::unordered_set<uint64_t> seen;
    auto collect = [&](const std::vector<Scored>& from) {
      for (const Scored& p : from)
        if (seen.insert(p.hash).second) best.push_back(p);
      std::stable_sort(best.begin(), best.end(),
                       [](const Scored& a, const Scored& b) { return a.score > b.score; });
      if (best.size() > size) best.resize(size);
    };
    collect(population);
    for (int64_t i = 0; i < genetic_num_iters; ++i) {
      population = Generation(s, population);
      if (population.empty()) break;
      Score(s, &population);
      collect(population);
      CheckSignals();
    }
    return best;
  }
  std::vector<Scored> Generation(SearchState* s, const std::vector<Scored>& parents) {
    std::vector<std::pair<Mutator, double>> mutators;
    double total = 0;
    for (const auto& [m, p] : s->context->space_generator.value()->mutator_probs.value())
      mutators.emplace_back(m, total += p);
    // Parents in proportion to their scores above the worst.
    double least = INFINITY;
    for (const Scored& p : parents) least = std::min(least, p.score);
    std::vector<double> sums;
    double sum = 0;
    for (const Scored& p : parents) sums.push_back(sum += p.score - least + 1e-9);
    auto pick = [](const auto& cumulative, double at) {
      return std::lower_bound(cumulative.begin(), cumulative.end(), at) - cumulative.begin();
    };
    size_t n = parents.size();
    std::vector<uint64_t> seeds(n);
    for (uint64_t& seed : seeds) seed = s->random();
    std::vector<std::optional<Candidate>> children(n);
    ParallelFor(n, s->context->num_threads, [&](size_t i) {
      Random random(seeds[i]);
      auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
      for (int64_t attempt = 0; attempt <= genetic_max_fail_count; ++attempt) {
        size_t parent = std::min<size_t>(pick(sums, unit() * sum), n - 1);
        const Candidate& chosen = parents[parent].candidate;
        if (mutators.empty() || unit() >= genetic_mutate_prob) {
          children[i] = chosen;
          return;
        }
        double at = unit() * total;
        size_t m = 0;
        while (m + 1 < mutators.size() && mutators[m].second < at) ++m;
        auto trace = mutators[m].first->Apply(chosen.trace, &random);
        if (!trace.has_value()) continue;
        if ((children[i] = s->Replay(trace.value(), false, random()))) return;
      }
    });
    std::vector<Scored> result;
    for (auto& c : children)
      if (c) result.push_back({*c, HashOf(*c)});
    return result;
  }
  ObjectRef Clone() const final { return CopyNode(this); }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.EvolutionarySearch", EvolutionarySearchObj,
                                    SearchStrategyObj);
};

struct PySearchStrategyObj : SearchStrategyObj {
  TVM_USER_DEFINED_PART(PySearchStrategyObj, SearchStrategy)
  void PreTuning(int64_t max_trials, int64_t per_round, const Array<Schedule>& spaces,
                 const Optional<Database>& database, const Any& cost_model) final {
    CallUser<void>("pre_tuning", max_trials, per_round, spaces, database, cost_model);
  }
  void PostTuning() final { CallUser<void>("post_tuning"); }
  Optional<Array<MeasureCandidate>> Generate() final {
    return CallUser<Optional<Array<MeasureCandidate>>>("generate_measure_candidates");
  }
  void Notify(const Array<MeasureCandidate>& candidates, const Array<RunnerResult>& results) final {
    CallUser<void>("notify_runner_results", candidates, results);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.PySearchStrategy", PySearchStrategyObj,
                                    SearchStrategyObj);
};

TVM_REGISTER() {
  RegisterBase<SearchStrategyObj>("Proposes candidates, round by round.");
  RegisterNode<ReplayTraceObj>("Replays design spaces with random decisions.");
  RegisterNode<ReplayFuncObj>("Generates the design space anew for every candidate.");
  RegisterNode<EvolutionarySearchObj>(
      "Mutates good candidates; the cost model says which are worth measuring.");
  RegisterNode<PySearchStrategyObj>("A search strategy defined by a user.");
  Def(
      "meta_schedule.SearchStrategy.pre_tuning",
      [](SearchStrategy self, int64_t max_trials, int64_t num_trials_per_iter,
         Array<Schedule> design_spaces, Optional<Database> database, Any cost_model) {
        self->PreTuning(max_trials, num_trials_per_iter, design_spaces, database, cost_model);
      },
      "Begins a search.", Arg("self"), Arg("max_trials"), Arg("num_trials_per_iter"),
      Arg("design_spaces"), Arg("database", nullptr), Arg("cost_model", nullptr));
  Def(
      "meta_schedule.SearchStrategy.post_tuning", [](SearchStrategy self) { self->PostTuning(); },
      "Ends a search.", Arg("self"));
  Def(
      "meta_schedule.SearchStrategy.generate_measure_candidates",
      [](SearchStrategy self) { return self->Generate(); },
      "The next round, or None when the search has ended.", Arg("self"));
  Def(
      "meta_schedule.SearchStrategy.notify_runner_results",
      [](SearchStrategy self, Array<MeasureCandidate> measure_candidates,
         Array<RunnerResult> results) { self->Notify(measure_candidates, results); },
      "Tells the strategy what was measured.", Arg("self"), Arg("measure_candidates"),
      Arg("results"));
  DefPart<SearchStrategy>("meta_schedule.SearchStrategy.clone",
                          "meta_schedule.SearchStrategy._initialize_with_tune_context");
}
}  // namespace
}  // namespace tvm::tune
