// SPDX-License-Identifier: Apache-2.0
// Space generators, and the rules, postprocessors and mutators of each kind of target.
#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <tuple>

#include "tune/postproc/tensorize.h"
#include "tune/rule/blocks.h"
#include "tvm/expr/op.h"
#include "tvm/ir/backend.h"
#include "tvm/tune/search.h"

namespace tvm::tune {
using namespace tir;

// ---- defaults ----------------------------------------------------------------------------------
namespace {
/// CPUs with instructions that rules have a kind of their own for: its name, what the processor is
/// called to have, and the intrinsics; the better ones first. Those of RISC-V are as long as the
/// registers of the target.
struct SpecialCpu {
  const char *kind, *feature;
  Array<String> intrinsics;
};
const std::vector<SpecialCpu>& SpecialCpus() {
  static const std::vector<SpecialCpu> all = {
      {"vnni", "avx512vnni", {"dot_16x4_vnni"}},
      {"avx512", "avx512bw", {"dot_16x4_avx512"}},
      {"dotprod",
       "dotprod",
       {"dot_4x4_i8i8s32_sdot", "dot_4x4_u8u8u32_udot", "dot_4x4_u8u8i32_hdot"}},
      {"asimd", "neon", {"dot_4x4_i8i8s32_neon"}},
      {"rvv", "v", {}}};
  return all;
}
Array<String> IntrinsicsOf(const SpecialCpu& cpu, const Target& target) {
  if (std::string_view(cpu.kind) != "rvv") return cpu.intrinsics;
  static const Function names = Function::GetGlobalRequired("meta_schedule._rvv_intrinsics");
  return names(target.defined() ? Any(target) : Any(nullptr)).cast<Array<String>>();
}
/// The name of the set for a target: those of processors are all called after LLVM.
String KindOf(const Target& target) {
  const Machine& machine = Machine::Of(target);
  if (machine->has_tensor_cores) return "cuda-tensorcore";
  if (!machine->is_host) return target->kind->name;
  if (Backend::Of(target).takes_llvm_intrinsics) {
    for (const SpecialCpu& special : SpecialCpus())
      if (machine->Has(special.feature)) return special.kind;
  }
  return "llvm";
}
/// A node of a registered class with some of its fields given, the others at their defaults.
template <class R>
R Make(const char* key, const Map<String, Any>& options) {
  TVMFFIByteArray name{key, std::strlen(key)};
  int32_t index;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeKeyToIndex(&name, &index));
  const NodeInfo& info = InfoOf(index);
  ObjectPtr<Object> node = info.create();
  for (const Field* field : info.params) {
    auto it = options.find(field->name);
    if (it == options.end() && !field->HasDefault()) {
      TVM_FFI_THROW(InternalError) << key << ": the field " << field->name << " is not given";
    }
    Any value = it == options.end() ? field->value : (*it).second;
    TVMFFIAny raw = AnyView(value).CopyToTVMFFIAny();
    TVM_FFI_CHECK_SAFE_CALL(
        field->ops->set(reinterpret_cast<char*>(node.get()) + field->offset, &raw));
  }
  if (info.init) info.init(node.get());
  return Any(ObjectRef(std::move(node))).template cast<R>();
}
Map<String, Any> ReuseConfig(const char* req, Array<Any> levels, const char* scope) {
  return {{"req", String(req)}, {"levels", levels}, {"scope", String(scope)}};
}
}  // namespace

namespace {
using Options = Map<String, Any>;
/// Class and options of each part of a set.
using Parts = std::vector<std::pair<const char*, Options>>;

Options Inlining(bool into_producer, bool careful) {
  Options options = {{"into_producer", into_producer}, {"into_consumer", true},
                     {"inline_const_tensor", true},    {"disallow_if_then_else", careful},
                     {"require_injective", careful},   {"require_ordered", careful}};
  if (careful) options.Set("disallow_op", Array<String>{"tir.exp"});
  return options;
}
Parts::iterator FindPart(Parts* parts, std::string_view name) {
  return std::find_if(parts->begin(), parts->end(),
                      [&](const auto& part) { return part.first == name; });
}
/// Whose lists: what tuning uses, or the documented ones that scripts build on.
enum class ListOf { kTuning, kScripts };
void Erase(Parts* parts, std::initializer_list<const char*> names) {
  for (const char* name : names) parts->erase(FindPart(parts, name));
}
Parts CpuRules(const Array<String>& intrinsics, ListOf whose) {
  Parts rules = {{"AroundDefault", {}},
                 {"ApplyCustomRule", {}},
                 {"InlineConstantScalars", {}},
                 {"AutoInline", Inlining(false, true)},
                 {"AddRFactor", {{"max_jobs_per_core", 16}, {"max_innermost_factor", 64}}},
                 {"RegisterTiling", {}},
                 {"MultiLevelTiling",
                  {{"structure", String("SSRSRS")},
                   {"max_innermost_factor", 64},
                   {"reuse_write", ReuseConfig("may", {1, 2}, "global")}}},
                 {"SpatialTiling", {}},
                 {"ParallelizeVectorizeUnroll",
                  {{"max_jobs_per_core", 16},
                   {"max_vectorize_extent", 64},
                   {"unroll_max_steps", Array<int64_t>{0, 16, 64}},
                   {"unroll_explicit", true}}},
                 {"RandomComputeLocation", {}}};
  auto tiling = FindPart(&rules, "RegisterTiling");
  for (auto it = intrinsics.rbegin(); it != intrinsics.rend(); ++it) {
    tiling = rules.insert(tiling, {"MultiLevelTilingWithIntrin",
                                   {{"intrin_name", *it},
                                    {"structure", String("SSRSRS")},
                                    {"max_innermost_factor", 64},
                                    {"reuse_write", ReuseConfig("may", {1, 2}, "global")}}});
  }
  if (whose == ListOf::kScripts) {
    Erase(&rules, {"AroundDefault", "RegisterTiling", "SpatialTiling"});
    FindPart(&rules, "ParallelizeVectorizeUnroll")
        ->second.Set("unroll_max_steps", Array<int64_t>{0, 16, 64, 512});
  }
  return rules;
}
/// The rules that threads are bound by; with matrix units, products that they fit go there.
Parts GpuRules(bool tensor_cores, ListOf whose) {
  Parts rules = {
      {"ApplyCustomRule", {}},
      {"InlineConstantScalars", {}},
      {"AutoInline", Inlining(true, false)},
      {"CrossThreadReduction", {{"thread_extents", Array<int64_t>{8, 16, 32, 64, 128, 256, 512}}}},
      {"MultiLevelTiling",
       {{"structure", String("SSSRRSRS")},
        {"tile_binds", Array<String>{"blockIdx.x", "vthread.x", "threadIdx.x"}},
        {"max_innermost_factor", 64},
        {"vector_load_lens", Array<int64_t>{1, 2, 4}},
        {"reuse_read", ReuseConfig("must", {4}, "shared")},
        {"reuse_write", ReuseConfig("must", {3}, "local")}}},
      {"ParallelizeVectorizeUnroll",
       {{"max_jobs_per_core", -1},
        {"max_vectorize_extent", -1},
        {"unroll_max_steps", Array<int64_t>{0, 16, 64, 512}},
        {"unroll_explicit", true}}},
      {"AutoBind", {{"max_threadblocks", 256}}}};
  if (whose == ListOf::kScripts) {
    auto tiling = FindPart(&rules, "MultiLevelTiling");
    tiling->second.Set("vector_load_lens", Array<int64_t>{1, 2, 3, 4, 8, 16});
    std::rotate(rules.begin() + 1, tiling, tiling + 1);
    auto set = [&](const char* name, const char* option, Array<int64_t> value) {
      FindPart(&rules, name)->second.Set(option, value);
    };
    set("CrossThreadReduction", "thread_extents", {4, 8, 16, 32, 64, 128, 256, 512});
    set("ParallelizeVectorizeUnroll", "unroll_max_steps", {0, 16, 64, 512, 1024});
    set("AutoBind", "thread_extents", {32, 64, 128, 256, 512, 1024});
  }
  if (!tensor_cores) return rules;
  static const Function groups = Function::GetGlobalRequired("meta_schedule._tensor_core_groups");
  rules.insert(FindPart(&rules, "MultiLevelTiling"),
               {"MultiLevelTilingTensorCore",
                {{"intrin_groups", groups()},
                 {"structure", String("SSSRRSRS")},
                 {"tile_binds", Array<String>{"blockIdx.y", "blockIdx.x", "threadIdx.y"}},
                 {"max_innermost_factor", 4},
                 {"vector_load_lens", Array<int64_t>{1, 2, 4, 8}},
                 {"reuse_read", ReuseConfig("must", {4}, "shared")},
                 {"reuse_write", ReuseConfig("must", {2}, "shared")}}});
  return rules;
}
Parts HexagonRules() {
  return {{"ApplyCustomRule", {}},
          {"InlineConstantScalars", {}},
          {"AutoInline", Inlining(false, true)},
          {"MultiLevelTilingWideVector",
           {{"structure", String("SRSRS")},
            {"vector_length_in_bits", 1024},
            {"max_innermost_factor", 64},
            {"reuse_write", ReuseConfig("may", {1, 2}, "global")}}},
          {"ParallelizeVectorizeUnroll",
           {{"max_jobs_per_core", 16},
            {"max_vectorize_extent", 128},
            {"unroll_max_steps", Array<int64_t>{0, 16, 64}},
            {"unroll_explicit", true}}}};
}
/// What is searched, and how, for a kind of target.
struct Defaults {
  std::function<Parts(const Target&, ListOf)> rules;  // the target may be none
  Parts postprocs;
  std::vector<std::tuple<const char*, Options, double>> mutators;
};
const Defaults& DefaultsFor(const String& kind, const char* what) {
  static const Defaults cpu = {[](const Target&, ListOf whose) { return CpuRules({}, whose); },
                               {{"DisallowDynamicLoop", {}},
                                {"RewriteTensorize", {}},
                                {"RewriteParallelVectorizeUnroll", {}},
                                {"RewriteReductionBlock", {}}},
                               {{"MutateTileSize", {}, 0.9},
                                {"MutateComputeLocation", {}, 0.05},
                                {"MutateUnroll", {}, 0.03},
                                {"MutateParallel", {{"max_jobs_per_core", 16}}, 0.02}}};
  static const Defaults gpu = {
      [](const Target&, ListOf whose) { return GpuRules(false, whose); },
      {{"DisallowDynamicLoop", {}},
       {"RewriteCooperativeFetch", {}},
       {"RewriteUnboundBlock", {}},
       {"RewriteParallelVectorizeUnroll", {}},
       {"RewriteReductionBlock", {}},
       {"VerifyGPUCode", {}}},
      {{"MutateTileSize", {}, 0.9}, {"MutateUnroll", {}, 0.08}, {"MutateThreadBinding", {}, 0.02}}};
  static const Defaults tensor_core = [] {
    Defaults set = gpu;
    set.rules = [](const Target&, ListOf whose) { return GpuRules(true, whose); };
    // Before reductions are taken apart: the intrinsics have their own way to begin one.
    set.postprocs.insert(FindPart(&set.postprocs, "RewriteUnboundBlock"), {"RewriteTensorize", {}});
    return set;
  }();
  static const Defaults hexagon = {[](const Target&, ListOf) { return HexagonRules(); },
                                   {{"DisallowDynamicLoop", {}},
                                    {"RewriteParallelVectorizeUnroll", {}},
                                    {"RewriteReductionBlock", {}},
                                    {"DisallowAsyncStridedMemCopy", {}},
                                    {"VerifyVTCMLimit", {}}},
                                   {{"MutateTileSize", {}, 0.9},
                                    {"MutateUnroll", {}, 0.08},
                                    {"MutateComputeLocation", {}, 0.02}}};
  static const std::vector<Defaults> special_cpus = [] {
    std::vector<Defaults> sets;
    for (const SpecialCpu& special : SpecialCpus()) {
      sets.push_back(cpu);
      sets.back().rules = [&special](const Target& target, ListOf whose) {
        return CpuRules(IntrinsicsOf(special, target), whose);
      };
    }
    return sets;
  }();
  static const std::map<std::string, const Defaults*> all = [] {
    std::map<std::string, const Defaults*> sets = {
        {"llvm", &cpu},   {"cuda", &gpu}, {"hexagon", &hexagon}, {"metal", &gpu},
        {"opencl", &gpu}, {"rocm", &gpu}, {"vulkan", &gpu},      {"cuda-tensorcore", &tensor_core}};
    for (size_t i = 0; i < special_cpus.size(); ++i) sets[SpecialCpus()[i].kind] = &special_cpus[i];
    return sets;
  }();
  auto it = all.find(std::string(kind));
  if (it == all.end()) {
    std::string names;
    for (const auto& [name, set] : all) names += (names.empty() ? "" : ", ") + name;
    TVM_FFI_THROW(ValueError) << "meta_schedule: expected a kind of target with default " << what
                              << ", got '" << kind << "'; there are some for: " << names
                              << "; give the space generator a list of its own";
  }
  return *it->second;
}
template <class R>
R MakePart(const char* name, const Options& options) {
  return Make<R>(("meta_schedule." + std::string(name)).c_str(), options);
}
template <class R>
Array<R> MakeAll(const Parts& parts) {
  Array<R> result;
  for (const auto& [name, options] : parts) result.push_back(MakePart<R>(name, options));
  return result;
}
}  // namespace

Array<ScheduleRule> DefaultScheduleRules(const String& kind, const Target& target) {
  const Defaults& set = DefaultsFor(kind, "schedule rules");
  return MakeAll<ScheduleRule>(set.rules(target, ListOf::kTuning));
}
Array<Postproc> DefaultPostprocs(const String& kind) {
  return MakeAll<Postproc>(DefaultsFor(kind, "postprocessors").postprocs);
}
Map<Mutator, double> DefaultMutators(const String& kind) {
  Map<Mutator, double> result;
  for (const auto& [name, options, probability] : DefaultsFor(kind, "mutators").mutators)
    result.Set(MakePart<Mutator>(name, options), probability);
  return result;
}

// ---- what generators share ---------------------------------------------------------------------
void SpaceGeneratorObj::Initialize(const TuneContext& context) {
  if (!context->target.has_value()) {
    TVM_FFI_THROW(ValueError) << "meta_schedule: expected the context to have a target";
  }
  seed = context->rand_state;
  auto kind = [&] { return KindOf(context->target.value()); };
  if (!sch_rules.has_value()) sch_rules = DefaultScheduleRules(kind(), context->target.value());
  if (!postprocs.has_value()) postprocs = DefaultPostprocs(kind());
  if (!mutator_probs.has_value()) mutator_probs = DefaultMutators(kind());
  for (const ScheduleRule& rule : sch_rules.value()) rule->Initialize(context);
  for (const Postproc& postproc : postprocs.value()) postproc->Initialize(context);
  for (const auto& [mutator, p] : mutator_probs.value()) mutator->Initialize(context);
}
ObjectRef SpaceGeneratorObj::Clone() const {
  SpaceGenerator copy = Any(CopyNode(this)).cast<SpaceGenerator>();
  if (sch_rules.has_value()) {
    Array<ScheduleRule> rules;
    for (const ScheduleRule& r : sch_rules.value())
      rules.push_back(Any(r->Clone()).cast<ScheduleRule>());
    copy->sch_rules = rules;
  }
  if (postprocs.has_value()) {
    Array<Postproc> list;
    for (const Postproc& p : postprocs.value()) list.push_back(Any(p->Clone()).cast<Postproc>());
    copy->postprocs = list;
  }
  if (mutator_probs.has_value()) {
    Map<Mutator, double> map;
    for (const auto& [m, p] : mutator_probs.value()) map.Set(Any(m->Clone()).cast<Mutator>(), p);
    copy->mutator_probs = map;
  }
  return copy;
}

namespace {
/// Schedules from what a function of the user gives: nothing (it changed its argument), one, or
/// several.
Array<Schedule> Schedules(const Schedule& sch, const Any& result) {
  if (result == nullptr) return {sch};
  if (auto one = result.as<Schedule>()) return {*one};
  return result.cast<Array<Schedule>>();
}

// ---- the generators ----------------------------------------------------------------------------
/// Applies each rule to each block, in program order.
struct PostOrderApplyObj : SpaceGeneratorObj {
  Optional<Function> f_block_filter;  // (Block) -> whether rules apply to it
  static void Fields(auto&& def) {
    def("f_block_filter", &PostOrderApplyObj::f_block_filter, Default(nullptr));
    SpaceGeneratorObj::Fields(def);
  }
  Array<Schedule> Generate(const IRModule& mod) final {
    std::vector<Space> spaces = {{Schedule(mod, seed), {}}};
    for (const ScheduleRule& rule : sch_rules.value()) {
      std::vector<Space> next;
      for (const Space& space : spaces) {
        if (IsComplete(space.sch)) {
          next.push_back(space);
        } else {
          ApplyToAll(rule, space, &next);
        }
      }
      spaces = std::move(next);
    }
    Array<Schedule> result;
    for (const Space& space : spaces) result.push_back(space.sch);
    return result;
  }

 private:
  using Place = std::pair<String, String>;  // block, function
  /// A schedule and its variables of blocks: a trace says once which block is meant.
  struct Space {
    Schedule sch;
    std::map<Place, BlockRV> blocks;
    /// The block of a place, or none when there are several, or none any more.
    std::optional<BlockRV> Find(const Place& place) {
      auto found = sch.state().BlocksNamed(place.first, place.second);
      if (found.size() != 1) return std::nullopt;
      auto it = blocks.find(place);
      if (it != blocks.end() && IsStill(it->second, found[0])) return it->second;
      return blocks[place] = sch.GetBlock(place.first, place.second);
    }
    bool IsStill(const BlockRV& rv, BlockId id) const {
      try {
        return sch.IdOf(rv) == NodeId(id);
      } catch (const ffi::Error&) {
        return false;  // it was removed
      }
    }
  };
  void ApplyToAll(const ScheduleRule& rule, const Space& start, std::vector<Space>* out) {
    // Spaces with the blocks that are still to do: a rule may remove and add some.
    std::deque<std::pair<Space, std::vector<Place>>> open;
    open.emplace_back(start, Places(start.sch.mod()));
    while (!open.empty()) {
      auto [space, places] = std::move(open.front());
      open.pop_front();
      if (places.empty()) {
        out->push_back(space);
        continue;
      }
      Place place = places.back();
      places.pop_back();
      std::optional<BlockRV> block = space.Find(place);
      bool wanted = block && !IsInIntrinsic(space.sch, *block) &&
                    (!f_block_filter.has_value() ||
                     f_block_filter.value()(space.sch.Get(*block)).cast<bool>());
      if (!wanted) {
        open.emplace_front(space, std::move(places));
        continue;
      }
      for (const Schedule& sch : rule->Apply(space.sch, *block))
        open.emplace_back(Space{sch, space.blocks}, places);
    }
  }
  /// What is in a tile that an intrinsic will take the place of is the intrinsic's.
  static bool IsInIntrinsic(const Schedule& sch, const BlockRV& block) {
    const State& state = sch.state();
    for (NodeId at = state.ScopeOf(sch.IdOf(block)); at != kNoNode; at = state.ScopeOf(at))
      if (state.block(BlockId{at})->annotations.count(kAutoTensorize)) return true;
    return false;
  }
  /// The first ones last, because the list is worked off from its end.
  static std::vector<Place> Places(const IRModule& mod) {
    struct Names : Visitor<Names, BlockObj> {
      std::vector<String> list;
      void Visit(const BlockObj* op) {
        VisitChildren(op, *this);
        list.push_back(op->name_hint);
      }
    };
    std::vector<Place> places;
    for (const auto& [var, func] : mod->Sorted()) {
      auto* prim = func.as<PrimFuncObj>();
      if (!prim) continue;
      Names names;
      names(prim->body);
      for (auto it = names.list.rbegin(); it != names.list.rend(); ++it)
        places.emplace_back(*it, var->name_hint);
    }
    return places;
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.PostOrderApply", PostOrderApplyObj,
                                    SpaceGeneratorObj);
};

/// What a function of the user makes of the schedule.
struct ScheduleFnObj : SpaceGeneratorObj {
  Function sch_fn;
  static void Fields(auto&& def) {
    def("sch_fn", &ScheduleFnObj::sch_fn);
    SpaceGeneratorObj::Fields(def);
  }
  Array<Schedule> Generate(const IRModule& mod) final {
    Schedule sch(mod, seed);
    return Schedules(sch, sch_fn(sch));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.ScheduleFn", ScheduleFnObj, SpaceGeneratorObj);
};

/// The spaces of several generators together.
struct SpaceGeneratorUnionObj : SpaceGeneratorObj {
  Array<SpaceGenerator> space_generators;
  static void Fields(auto&& def) {
    def("space_generators", &SpaceGeneratorUnionObj::space_generators);
    SpaceGeneratorObj::Fields(def);
  }
  void Initialize(const TuneContext& context) final {
    SpaceGeneratorObj::Initialize(context);
    for (const SpaceGenerator& g : space_generators) g->Initialize(context);
  }
  Array<Schedule> Generate(const IRModule& mod) final {
    Array<Schedule> all;
    for (const SpaceGenerator& g : space_generators)
      for (const Schedule& sch : g->Generate(mod)) all.push_back(sch);
    return all;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.SpaceGeneratorUnion", SpaceGeneratorUnionObj,
                                    SpaceGeneratorObj);
};
struct PySpaceGeneratorObj : SpaceGeneratorObj {
  TVM_USER_DEFINED_PART(PySpaceGeneratorObj, SpaceGenerator)
  Array<Schedule> Generate(const IRModule& mod) final {
    return CallUser<Array<Schedule>>("generate_design_space", mod);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.PySpaceGenerator", PySpaceGeneratorObj,
                                    SpaceGeneratorObj);
};

TVM_REGISTER() {
  RegisterBase<SpaceGeneratorObj>("From a module to schedules whose traces sample.");
  RegisterNode<PostOrderApplyObj>("Applies each rule to each block, in program order.");
  RegisterNode<ScheduleFnObj>("What a function makes of the schedule.");
  RegisterNode<SpaceGeneratorUnionObj>("The spaces of several generators together.");
  RegisterNode<PySpaceGeneratorObj>("A space generator defined by a user.");
  RegisterNode<TuneContextObj>("One task: what is tuned, for which target, and by what means.");
  Def(
      "meta_schedule._default_schedule_rules",
      [](String kind, bool own) {
        const Defaults& set = DefaultsFor(kind, "schedule rules");
        return MakeAll<ScheduleRule>(
            set.rules(Target::Current(), own ? ListOf::kTuning : ListOf::kScripts));
      },
      "Of a kind of target; `own`: those that tuning uses without being told.", Arg("kind"),
      Arg("own", false));
  Def("meta_schedule._default_postprocs", &DefaultPostprocs, "Of a kind of target.", Arg("kind"));
  Def("meta_schedule._default_mutators", &DefaultMutators, "Of a kind of target.", Arg("kind"));
  Def(
      "meta_schedule.SpaceGenerator.generate_design_space",
      [](SpaceGenerator self, IRModule mod) { return self->Generate(mod); },
      "Schedules whose traces sample.", Arg("self"), Arg("mod"));
  DefPart<SpaceGenerator>("meta_schedule.SpaceGenerator.clone",
                          "meta_schedule.SpaceGenerator._initialize_with_tune_context");
}
}  // namespace
}  // namespace tvm::tune
