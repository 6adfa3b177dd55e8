// SPDX-License-Identifier: Apache-2.0
// The default schedule with its numbers as choices: what the default rules decide by estimates is
// tried a little smaller and larger.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "schedule/rules/look.h"
#include "tune/rule/blocks.h"
#include "tvm/expr/op.h"

namespace tvm::tune {
namespace {
using namespace tir;

/// The factors of a Split that are numbers; nothing for the one that is left out.
using Factors = std::vector<std::optional<int64_t>>;
Factors FactorsOf(const Instruction& split) {
  Factors factors;
  for (size_t i = 1; i < split->inputs.size(); ++i) {
    const Any& input = split->inputs[static_cast<int64_t>(i)];
    auto expr = input.as<PrimExpr>();
    factors.push_back(expr ? AsConstInt(*expr) : input.as<int64_t>());
  }
  return factors;
}

/// A trace being rewritten.
class Widener {
 public:
  Widener(const Trace& trace, const Schedule& scratch, const String& function)
      : scratch_(scratch), function_(function) {
    std::unordered_map<const Object*, int64_t> extents;
    auto look = [&](const Instruction& inst, const Array<Any>& inputs, const Array<Any>&,
                    const Any& decision) -> Any {
      if (Is(inst, "Split"))
        extents[inst.get()] = ConstantExtent(scratch_.Get(inputs[0].cast<LoopRV>()).get());
      for (int64_t i = 0; i < static_cast<int64_t>(inputs.size()); ++i) {
        if (auto* block = inputs[i].as<BlockRVObj>())
          names_.try_emplace(inst->inputs[i].as<Object>(),
                             scratch_.Get(ffi::GetRef<BlockRV>(block))->name_hint);
      }
      return decision;
    };
    trace.ApplyToSchedule(scratch_, false, look);
    for (const Instruction& inst : trace->insts) {
      if (Is(inst, "GetChildBlocks")) {
        GetByName(inst, trace->insts[0]);
      } else {
        insts_.push_back(Is(inst, "Split") ? Widened(inst, extents[inst.get()]) : inst);
      }
      if (Any decision = trace->GetDecision(inst); decision != nullptr)
        decisions_.Set(inst, decision);
    }
  }
  /// The trace with choices.
  Trace Result() const {
    if (seen_.empty()) TVM_FFI_THROW(ValueError) << "no numbers to choose";
    return Trace(insts_, decisions_);
  }

 private:
  static bool Is(const Instruction& inst, const char* kind) { return inst->kind->name == kind; }
  /// Blocks by their names instead of their places, so that the trace serves programs that have
  /// others around them. `first` gets a block by its name.
  void GetByName(const Instruction& inst, const Instruction& first) {
    for (const Any& output : inst->outputs) {
      auto name = names_.find(output.as<Object>());
      if (name == names_.end()) continue;  // not used
      insts_.push_back(New<Instruction>([&](InstructionObj* n) {
        n->kind = first->kind;
        n->attrs = {name->second, function_};
        n->outputs = {output};
      }));
    }
  }
  /// The same numbers at the end of an earlier split, as for the parts of one tile, are the same
  /// choices.
  const std::vector<Any>* Shared(const Factors& numbers) const {
    for (const auto& [earlier, choices] : seen_) {
      if (earlier.size() < numbers.size()) continue;
      if (std::equal(numbers.rbegin(), numbers.rend(), earlier.rbegin())) return &choices;
    }
    return nullptr;
  }
  Instruction Widened(const Instruction& split, int64_t extent) {
    Factors factors = FactorsOf(split), numbers = factors;
    bool open = !factors.empty() && !factors[0];  // takes what the others leave
    if (open) numbers.erase(numbers.begin());
    if (extent < 1 || !std::all_of(numbers.begin(), numbers.end(), [](auto n) { return !!n; }))
      return split;
    std::vector<Any> choices;
    if (const std::vector<Any>* shared = Shared(numbers)) {
      choices.assign(shared->end() - static_cast<std::ptrdiff_t>(numbers.size()), shared->end());
    } else if (open) {
      choices = Choices(numbers, extent);
      seen_.emplace_back(numbers, choices);
    } else {
      return split;
    }
    return New<Instruction>([&](InstructionObj* n) {
      n->kind = split->kind;
      n->attrs = split->attrs;
      n->outputs = split->outputs;
      n->inputs = {split->inputs[0]};
      if (open) n->inputs.push_back(split->inputs[1]);
      for (const Any& choice : choices) n->inputs.push_back(choice);
    });
  }
  /// A choice for every number, so that what divides the extent still does, whatever is chosen.
  std::vector<Any> Choices(const Factors& numbers, int64_t extent) {
    std::vector<Any> choices(numbers.size());
    int64_t others = 1;  // those that are still to come
    for (const auto& number : numbers) others *= *number;
    for (size_t i = numbers.size(); i-- > 0;) {
      others /= *numbers[i];
      Array<int64_t> near = Near(*numbers[i], extent % others == 0 ? extent / others : 1);
      choices[i] = near.size() > 1 ? Any(Sample(near, *numbers[i])) : Any(PrimExpr(*numbers[i]));
      int64_t common = 1;
      for (int64_t n : near) common = std::lcm(common, n);
      extent = extent % common == 0 ? extent / common : 1;
    }
    return choices;
  }
  /// Divisors of `rest` nearest to a number, its multiples and parts before others; plain multiples
  /// where it is none itself.
  static Array<int64_t> Near(int64_t number, int64_t rest) {
    constexpr size_t kMost = 5;
    constexpr int64_t kDown = 4, kUp = 2;  // much larger ones take long to compile
    bool divides = rest % number == 0;
    std::vector<std::tuple<bool, double, int64_t>> found;
    for (int64_t n = std::max<int64_t>(1, number / kDown);
         n <= std::max<int64_t>(kUp * number, kDown); ++n) {
      bool odd = n % number != 0 && number % n != 0;
      if (n != number && (divides ? rest % n != 0 : odd || n > rest)) continue;
      double ratio = static_cast<double>(n) / static_cast<double>(number);
      found.emplace_back(odd, std::abs(std::log(ratio)), n);
    }
    std::sort(found.begin(), found.end());
    if (found.size() > kMost) found.resize(kMost);
    std::vector<int64_t> near;
    for (const auto& [odd, distance, n] : found) near.push_back(n);
    std::sort(near.begin(), near.end());
    return Array<int64_t>(near.begin(), near.end());
  }
  /// The number of the default schedule half of the time.
  Var Sample(const Array<int64_t>& values, int64_t usual) {
    Array<double> probabilities;
    int64_t decision = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      bool is_usual = values[static_cast<int64_t>(i)] == usual;
      if (is_usual) decision = static_cast<int64_t>(i);
      probabilities.push_back(is_usual ? 0.5 : 0.5 / static_cast<double>(values.size() - 1));
    }
    Var choice = scratch_.SampleCategorical(values, probabilities, decision);
    Trace sampled = scratch_.trace();
    insts_.push_back(sampled->insts.back());
    decisions_.Set(sampled->insts.back(), decision);
    return choice;
  }

  Schedule scratch_;
  String function_;
  std::unordered_map<const Object*, String> names_;  // of blocks, where they are used first
  Array<Instruction> insts_;
  Map<Instruction, Any> decisions_;
  std::vector<std::pair<Factors, std::vector<Any>>> seen_;
};

struct AroundDefaultObj : ScheduleRuleObj {
  Optional<Target> target;
  static void Fields(auto&&) {}
  void Initialize(const TuneContext& context) final { target = context->target; }

  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    if (!target.has_value() || target.value()->DeviceType() != kDLCPU) return {sch};
    for (const auto& [var, func] : sch.mod()->functions) {
      auto prim = func.as<PrimFunc>();
      if (!prim || NodeId(sch.state().Root(var->name_hint)) != sch.IdOf(block)) continue;
      if (IsScheduled(*prim)) return {sch};
      Array<Schedule> result = {sch};
      Try([&] { result.push_back(Around(sch, block, var->name_hint)); });
      return result;
    }
    return {sch};
  }

 private:
  Schedule Around(const Schedule& sch, const BlockRV& block, const String& name) const {
    Schedule usual(sch.mod(), sch.ForkSeed(), 0, ErrorRenderLevel::kNone);
    ApplyDefaultRules(usual, name, target.value());
    Widener widener(usual.trace().Simplified(false), Schedule(sch.mod(), sch.ForkSeed()), name);
    Schedule around(sch.mod(), sch.ForkSeed());
    widener.Result().ApplyToSchedule(around, false);
    around.Annotate(around.GetBlock(sch.Get(block)->name_hint, name), kComplete, int64_t{1});
    return around;
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.AroundDefault", AroundDefaultObj,
                                    ScheduleRuleObj);
};
TVM_REGISTER() {
  RegisterNode<AroundDefaultObj>("The default schedule of a function with its numbers as choices.");
}
}  // namespace
}  // namespace tvm::tune
