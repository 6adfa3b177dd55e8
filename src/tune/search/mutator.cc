// SPDX-License-Identifier: Apache-2.0
// Mutators: one decision of a trace changed.
#include <algorithm>
#include <numeric>

#include "tvm/expr/op.h"
#include "tvm/ir/machine.h"
#include "tvm/tune/search.h"

namespace tvm::tune {
namespace {
using namespace tir;

int64_t Below(Random* random, size_t n) { return static_cast<int64_t>((*random)() % n); }
/// The instructions of a kind that decided something and satisfy `accept`.
template <class F>
std::vector<Instruction> Find(const Trace& trace, std::string_view kind, F&& accept) {
  std::vector<Instruction> found;
  for (const Instruction& inst : trace->insts) {
    if (View(inst->kind->name) == kind && trace->GetDecision(inst) != nullptr && accept(inst))
      found.push_back(inst);
  }
  return found;
}
Array<int64_t> Numbers(const Any& list) {
  Array<int64_t> result;
  for (const Any& item : list.cast<Array<Any>>()) {
    if (auto n = item.as<int64_t>()) {
      result.push_back(*n);
    } else {
      result.push_back(item.cast<IntImm>()->value);
    }
  }
  return result;
}
/// Whether the result of a sampling instruction annotates something under a key that begins so.
bool Annotates(const Trace& trace, const Instruction& sample, std::string_view key) {
  for (const Instruction& inst : trace->insts) {
    if (View(inst->kind->name) != "Annotate") continue;
    bool uses = false;
    for (const Any& input : inst->inputs)
      uses |= input.as<ObjectRef>() &&
              input.as<ObjectRef>()->same_as(sample->outputs[0].cast<ObjectRef>());
    for (const Any& a : inst->attrs) {
      auto text = a.as<String>();
      if (uses && text && View(*text).substr(0, key.size()) == key) return true;
    }
  }
  return false;
}
/// Another value of a categorical decision.
Optional<Trace> Redraw(const Trace& trace, const std::vector<Instruction>& from, Random* random) {
  if (from.empty()) return std::nullopt;
  const Instruction& inst = from[Below(random, from.size())];
  size_t n = inst->attrs[0].cast<Array<Any>>().size();
  if (n < 2) return std::nullopt;
  int64_t old = trace->GetDecision(inst).cast<int64_t>();
  int64_t next = Below(random, n - 1);
  return trace.WithDecision(inst, next + (next >= old), true);
}

// ---- tile sizes --------------------------------------------------------------------------------
/// Moves a factor of one part of a tile to another part; or draws a vector width anew.
struct MutateTileSizeObj : MutatorObj {
  static void Fields(auto&&) {}
  Optional<Trace> Apply(const Trace& trace, Random* random) final {
    auto tiles = Find(trace, "SamplePerfectTile", [&](const Instruction& inst) {
      auto parts = Numbers(trace->GetDecision(inst));
      return parts.size() > 1 &&
             std::accumulate(parts.begin(), parts.end(), int64_t{1}, std::multiplies<>()) > 1;
    });
    auto widths = Find(trace, "SampleCategorical", [&](const Instruction& inst) {
      return !Annotates(trace, inst, "meta_schedule.unroll") &&
             inst->attrs[0].cast<Array<Any>>().size() > 1;
    });
    size_t total = tiles.size() + widths.size();
    if (total == 0) return std::nullopt;
    size_t pick = Below(random, total);
    if (pick >= tiles.size()) return Redraw(trace, {widths[pick - tiles.size()]}, random);
    const Instruction& inst = tiles[pick];
    auto parts = Numbers(trace->GetDecision(inst));
    int64_t most_innermost = inst->attrs.size() > 1 ? inst->attrs[1].cast<int64_t>() : INT64_MAX;
    for (int attempt = 0; attempt < 16; ++attempt) {
      size_t from = Below(random, parts.size()), to = Below(random, parts.size());
      if (from == to || parts[from] == 1) continue;
      std::vector<int64_t> factors;
      for (int64_t f = 2; f <= parts[from]; ++f)
        if (parts[from] % f == 0) factors.push_back(f);
      int64_t factor = factors[Below(random, factors.size())];
      if (to + 1 == parts.size() && parts[to] * factor > most_innermost) continue;
      Array<int64_t> next = parts;
      next.Set(from, parts[from] / factor);
      next.Set(to, parts[to] * factor);
      return trace.WithDecision(inst, next, true);
    }
    return std::nullopt;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.MutateTileSize", MutateTileSizeObj, MutatorObj);
};

// ---- other decisions ---------------------------------------------------------------------------
struct MutateUnrollObj : MutatorObj {
  static void Fields(auto&&) {}
  Optional<Trace> Apply(const Trace& trace, Random* random) final {
    return Redraw(trace,
                  Find(trace, "SampleCategorical",
                       [&](const Instruction& inst) {
                         return Annotates(trace, inst, "meta_schedule.unroll");
                       }),
                  random);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.MutateUnroll", MutateUnrollObj, MutatorObj);
};
struct MutateComputeLocationObj : MutatorObj {
  static void Fields(auto&&) {}
  Optional<Trace> Apply(const Trace& trace, Random* random) final {
    auto places = Find(trace, "SampleComputeLocation", [](const Instruction&) { return true; });
    if (places.empty()) return std::nullopt;
    const Instruction& inst = places[Below(random, places.size())];
    // -2: inline, -1: at the root, then the loops; replay takes the nearest place that is possible.
    int64_t old = trace->GetDecision(inst).cast<int64_t>();
    int64_t next = Below(random, 8) - 2;
    if (next == old) return std::nullopt;
    return trace.WithDecision(inst, next, true);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.MutateComputeLocation", MutateComputeLocationObj,
                                    MutatorObj);
};
/// Another number of jobs for RewriteParallelVectorizeUnroll.
struct MutateParallelObj : MutatorObj {
  int64_t max_jobs_per_core = 16;
  int64_t cores = 1;
  static void Fields(auto&& def) {
    def("max_jobs_per_core", &MutateParallelObj::max_jobs_per_core);
  }
  void Initialize(const TuneContext& context) final {
    if (context->target.has_value()) cores = Machine::Of(context->target.value())->cores;
  }
  Optional<Trace> Apply(const Trace& trace, Random* random) final {
    for (size_t i = 0; i < trace->insts.size(); ++i) {
      const Instruction& inst = trace->insts[i];
      if (View(inst->kind->name) != "Annotate" || inst->attrs.empty()) continue;
      auto key = inst->attrs[0].as<String>();
      if (!key || *key != "meta_schedule.parallel" || inst->inputs.size() < 2) continue;
      int64_t jobs = cores << Below(random, 5);
      jobs = std::min(jobs, cores * max_jobs_per_core);
      auto changed = New<Instruction>([&](InstructionObj* n) {
        n->kind = inst->kind;
        n->inputs = inst->inputs;
        n->inputs.Set(1, jobs);
        n->attrs = inst->attrs;
        n->outputs = inst->outputs;
      });
      Array<Instruction> insts = trace->insts;
      insts.Set(static_cast<int64_t>(i), changed);
      return Trace(insts, trace->decisions);
    }
    return std::nullopt;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.MutateParallel", MutateParallelObj, MutatorObj);
};
struct MutateThreadBindingObj : MutatorObj {
  static void Fields(auto&&) {}
  Optional<Trace> Apply(const Trace& trace, Random* random) final {
    // Extents of threads are sampled values that a Split takes and a Bind follows.
    auto samples = Find(trace, "SampleCategorical", [&](const Instruction& sample) {
      for (const Instruction& inst : trace->insts) {
        if (View(inst->kind->name) != "Split") continue;
        for (const Any& input : inst->inputs) {
          auto ref = input.as<ObjectRef>();
          if (ref && ref->same_as(sample->outputs[0].cast<ObjectRef>())) return true;
        }
      }
      return false;
    });
    return Redraw(trace, samples, random);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.MutateThreadBinding", MutateThreadBindingObj,
                                    MutatorObj);
};
struct PyMutatorObj : MutatorObj {
  TVM_USER_DEFINED_PART(PyMutatorObj, Mutator)
  Optional<Trace> Apply(const Trace& trace, Random* random) final {
    return CallUser<Optional<Trace>>("apply", trace, static_cast<int64_t>((*random)() >> 33));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.PyMutator", PyMutatorObj, MutatorObj);
};

TVM_REGISTER() {
  RegisterBase<MutatorObj>("Changes one decision of a trace.");
  RegisterNode<MutateTileSizeObj>("Moves factors between the parts of a tile.");
  RegisterNode<MutateUnrollObj>("Draws another limit for unrolling.");
  RegisterNode<MutateComputeLocationObj>("Draws another place to compute a block at.");
  RegisterNode<MutateParallelObj>("Changes how many parallel jobs there are.");
  RegisterNode<MutateThreadBindingObj>("Draws other extents of thread axes.");
  RegisterNode<PyMutatorObj>("A mutator defined by a user.");
  Def(
      "meta_schedule.Mutator.apply",
      [](Mutator self, Trace trace, Optional<int64_t> seed) {
        Random random(seed.has_value() ? static_cast<uint64_t>(seed.value())
                                       : std::random_device()());
        return self->Apply(trace, &random);
      },
      "The changed trace, or None when there is nothing to change.", Arg("self"), Arg("trace"),
      Arg("seed", nullptr));
  DefPart<Mutator>("meta_schedule.Mutator.clone",
                   "meta_schedule.Mutator._initialize_with_tune_context");
}
}  // namespace
}  // namespace tvm::tune
