// SPDX-License-Identifier: Apache-2.0
// The search: how a program becomes a space of schedules, and how that space is explored.
//
//   module ──space generator──► design spaces (schedules whose traces sample)
//                  │ schedule rules, block by block
//   design spaces ──search strategy──► candidates
//                  │ replay with other decisions, mutators, postprocessors, cost model
#pragma once
#include <random>

#include "tvm/tune/database.h"

namespace tvm::tune {
using tir::BlockRV, tir::LoopRV, tir::Instruction;

/// A source of random numbers that gives the same ones on every machine.
using Random = std::mt19937_64;

struct TuneContext;

/// Offers ways to schedule a block: none of them its own means the program as it is.
struct ScheduleRuleObj : NodeObj {
  static constexpr bool _type_mutable = true;
  static constexpr uint32_t _type_child_slots = 24;
  virtual ~ScheduleRuleObj() = default;
  virtual void Initialize(const TuneContext& context) {}
  /// The schedules that follow from `sch`; [sch] where the rule does not apply to the block.
  virtual Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) = 0;
  virtual ObjectRef Clone() const { return CopyNode(this); }
  TVM_FFI_DECLARE_OBJECT_INFO("meta_schedule.ScheduleRule", ScheduleRuleObj, NodeObj);
};
/// Turns a replayed schedule into one that can be built, or refuses it.
struct PostprocObj : NodeObj {
  static constexpr bool _type_mutable = true;
  static constexpr uint32_t _type_child_slots = 16;
  virtual ~PostprocObj() = default;
  virtual void Initialize(const TuneContext& context) {}
  virtual bool Apply(const Schedule& sch) = 0;
  virtual ObjectRef Clone() const { return CopyNode(this); }
  TVM_FFI_DECLARE_OBJECT_INFO("meta_schedule.Postproc", PostprocObj, NodeObj);
};
/// Changes one decision of a trace.
struct MutatorObj : NodeObj {
  static constexpr bool _type_mutable = true;
  static constexpr uint32_t _type_child_slots = 8;
  virtual ~MutatorObj() = default;
  virtual void Initialize(const TuneContext& context) {}
  /// The changed trace, or none when there is nothing to change.
  virtual Optional<Trace> Apply(const Trace& trace, Random* random) = 0;
  virtual ObjectRef Clone() const { return CopyNode(this); }
  TVM_FFI_DECLARE_OBJECT_INFO("meta_schedule.Mutator", MutatorObj, NodeObj);
};

TVM_NODE_REF(ScheduleRule, ObjectRef, ScheduleRuleObj);
TVM_NODE_REF(Postproc, ObjectRef, PostprocObj);
TVM_NODE_REF(Mutator, ObjectRef, MutatorObj);

/// The rules for a kind of target: "llvm", "cuda", … ValueError for one there are none for.
/// Rules that depend on the target itself (the length of its vectors) need it.
Array<ScheduleRule> DefaultScheduleRules(const String& kind, const Target& target);
Array<Postproc> DefaultPostprocs(const String& kind);
Map<Mutator, double> DefaultMutators(const String& kind);

/// From a module to schedules whose traces sample. Rules, postprocessors and mutators that are not
/// given are those of the target.
struct SpaceGeneratorObj : NodeObj {
  static constexpr bool _type_mutable = true;
  Optional<Array<ScheduleRule>> sch_rules;
  Optional<Array<Postproc>> postprocs;
  Optional<Map<Mutator, double>> mutator_probs;
  int64_t seed = -1;  // of the task
  static constexpr uint32_t _type_child_slots = 8;
  virtual ~SpaceGeneratorObj() = default;
  virtual void Initialize(const TuneContext& context);
  virtual Array<Schedule> Generate(const IRModule& mod) = 0;
  virtual ObjectRef Clone() const;
  static void Fields(auto&& def) {
    def("sch_rules", &SpaceGeneratorObj::sch_rules, Default(nullptr));
    def("postprocs", &SpaceGeneratorObj::postprocs, Default(nullptr));
    def("mutator_probs", &SpaceGeneratorObj::mutator_probs, Default(nullptr));
  }
  TVM_FFI_DECLARE_OBJECT_INFO("meta_schedule.SpaceGenerator", SpaceGeneratorObj, NodeObj);
};
TVM_NODE_REF(SpaceGenerator, ObjectRef, SpaceGeneratorObj);

/// Proposes candidates, round by round.
struct SearchStrategyObj : NodeObj {
  static constexpr bool _type_mutable = true;
  static constexpr uint32_t _type_child_slots = 8;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUniqueInstance;
  virtual ~SearchStrategyObj() = default;
  virtual void Initialize(const TuneContext& context) {}
  /// `cost_model` is an object of Python with predict(context, candidates), or None.
  virtual void PreTuning(int64_t max_trials, int64_t num_trials_per_iter,
                         const Array<Schedule>& design_spaces, const Optional<Database>& database,
                         const Any& cost_model) = 0;
  virtual void PostTuning() = 0;
  /// The next round; none when the search has ended.
  virtual Optional<Array<MeasureCandidate>> Generate() = 0;
  virtual void Notify(const Array<MeasureCandidate>& candidates,
                      const Array<RunnerResult>& results) = 0;
  virtual ObjectRef Clone() const = 0;
  TVM_FFI_DECLARE_OBJECT_INFO("meta_schedule.SearchStrategy", SearchStrategyObj, NodeObj);
};
TVM_NODE_REF(SearchStrategy, ObjectRef, SearchStrategyObj);

/// One task: what is tuned, for which target, and by what means.
struct TuneContextObj : NodeObj {
  static constexpr bool _type_mutable = true;
  Optional<IRModule> mod;
  Optional<Target> target;
  Optional<SpaceGenerator> space_generator;
  Optional<SearchStrategy> search_strategy;
  String task_name = "main";
  int64_t num_threads = 1;
  int64_t rand_state = 0;
  Any logger;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUniqueInstance;
  static void Fields(auto&& def) {
    def("mod", &TuneContextObj::mod);
    def("target", &TuneContextObj::target);
    def("space_generator", &TuneContextObj::space_generator);
    def("search_strategy", &TuneContextObj::search_strategy);
    def("task_name", &TuneContextObj::task_name);
    def("num_threads", &TuneContextObj::num_threads);
    def("rand_state", &TuneContextObj::rand_state);
    def("logger", &TuneContextObj::logger);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.TuneContext", TuneContextObj, NodeObj);
};
TVM_NODE_REF(TuneContext, ObjectRef, TuneContextObj);

/// Registers what the parts of all families have in common.
template <class Part>
void DefPart(const char* clone, const char* initialize) {
  Def(
      clone, [](Part self) { return self->Clone(); }, "One of its own with the same options.",
      Arg("self"));
  Def(
      initialize, [](Part self, TuneContext context) { self->Initialize(context); },
      "Tells it what it is used for.", Arg("self"), Arg("context"));
}

}  // namespace tvm::tune
