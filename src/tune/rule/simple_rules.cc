// SPDX-License-Identifier: Apache-2.0
// Rules that decide one thing: inlining, splitting reductions, places of computation, annotations
// of the root, functions of the user.
#include "schedule/analysis.h"
#include "tune/rule/blocks.h"
#include "tvm/expr/op.h"
#include "tvm/tir/analysis.h"

namespace tvm::tune {
namespace {
using namespace tir;

// ---- inlining ----------------------------------------------------------------------------------
/// Calls and choices in a block.
struct Contents : Visitor<Contents, CallObj, SelectObj, IfThenElseObj> {
  std::vector<std::string> calls;
  bool choices = false;
  void Visit(const CallObj* op) {
    if (auto* name = op->op.as<OpObj>()) {
      calls.emplace_back(name->name);
      choices |= name->name == "tir.if_then_else";
    }
    VisitChildren(op, *this);
  }
  void Visit(const SelectObj* op) { choices = true, VisitChildren(op, *this); }
  void Visit(const IfThenElseObj* op) { choices = true, VisitChildren(op, *this); }
};
/// Reads at indices that are the block's iterators, each once and in order.
bool ReadsInOrder(const BlockObj* block, bool ordered) {
  for (const BufferRegion& read : block->reads) {
    int last = -1;
    for (const Range& r : read->region) {
      auto* var = r->min.as<VarObj>();
      if (!IsOne(r->extent)) return false;
      if (AsConstInt(r->min)) continue;
      if (!var) return false;
      int at = -1;
      for (size_t i = 0; i < block->iter_vars.size(); ++i)
        if (block->iter_vars[i]->var.get() == var) at = static_cast<int>(i);
      if (at < 0 || (ordered && at <= last)) return false;
      last = at;
    }
  }
  return true;
}
bool WritesOutput(const Schedule& sch, const BlockRV& block) {
  State& state = sch.state();
  BlockId id{sch.IdOf(block)};
  ScopeInfo scope(ffi::GetRef<Block>(state.block(state.ScopeOf(id))));
  const Placed* placed = scope.Find(state.block(id));
  return !placed || IsOutputBlock(scope, *placed);
}

struct AutoInlineObj : ScheduleRuleObj {
  bool into_producer = false, into_consumer = true, inline_const_tensor = true;
  bool disallow_if_then_else = false, require_injective = false, require_ordered = false;
  Optional<Array<String>> disallow_op;
  static void Fields(auto&& def) {
    def("into_producer", &AutoInlineObj::into_producer);
    def("into_consumer", &AutoInlineObj::into_consumer);
    def("inline_const_tensor", &AutoInlineObj::inline_const_tensor);
    def("disallow_if_then_else", &AutoInlineObj::disallow_if_then_else);
    def("require_injective", &AutoInlineObj::require_injective);
    def("require_ordered", &AutoInlineObj::require_ordered);
    def("disallow_op", &AutoInlineObj::disallow_op, Default(nullptr));
  }
  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    BlockView view(sch, block);
    if (view.is_root || view.has_blocks || !view.is_spatial || IsScheduled(view)) return {sch};
    // Who puts a copy into a memory of its own wants it there.
    for (const BufferRegion& write : view.block->writes)
      if (!View(write->buffer.scope()).empty() && View(write->buffer.scope()) != "global")
        return {sch};
    if (inline_const_tensor && view.block->reads.empty() && !WritesOutput(sch, block)) {
      Try([&] { sch.ComputeInline(block); });
      return {sch};
    }
    if (into_consumer && MayInline(sch, block, view)) {
      if (Try([&] { sch.ComputeInline(block); })) return {sch};
    }
    if (into_producer) Try([&] { sch.ReverseComputeInline(block); });
    return {sch};
  }

 private:
  bool MayInline(const Schedule& sch, const BlockRV& block, const BlockView& view) const {
    if (WritesOutput(sch, block) || sch.state()
                                        .scope(BlockId{sch.state().ScopeOf(sch.IdOf(block))})
                                        .From(BlockId{sch.IdOf(block)})
                                        .empty())
      return false;
    Contents contents;
    contents(view.block->body);
    if (disallow_if_then_else && contents.choices) return false;
    if (disallow_op.has_value()) {
      for (const String& op : disallow_op.value()) {
        for (const std::string& call : contents.calls)
          if (call == View(op)) return false;
      }
    }
    return !require_injective || ReadsInOrder(view.block.get(), require_ordered);
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.AutoInline", AutoInlineObj, ScheduleRuleObj);
};

struct InlineConstantScalarsObj : ScheduleRuleObj {
  static void Fields(auto&&) {}
  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    BlockView view(sch, block);
    bool scalar = view.block->reads.empty() && view.block->writes.size() == 1;
    if (scalar) {
      for (const PrimExpr& e : view.block->writes[0]->buffer->shape) scalar &= IsOne(e);
    }
    if (scalar && !view.is_root && !WritesOutput(sch, block))
      Try([&] { sch.ComputeInline(block); });
    return {sch};
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.InlineConstantScalars", InlineConstantScalarsObj,
                                    ScheduleRuleObj);
};

// ---- reductions --------------------------------------------------------------------------------
struct AddRFactorObj : ScheduleRuleObj {
  int64_t max_jobs_per_core = 16;
  Optional<int64_t> max_innermost_factor;
  Optional<Target> target;
  static void Fields(auto&& def) {
    def("max_jobs_per_core", &AddRFactorObj::max_jobs_per_core, Default(16));
    def("max_innermost_factor", &AddRFactorObj::max_innermost_factor, Default(nullptr));
  }
  void Initialize(const TuneContext& context) final { target = context->target; }
  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    BlockView view(sch, block);
    if (view.is_root || view.has_blocks || !view.has_reduction || !view.HasConstantExtents() ||
        IsScheduled(view) || !view.IsAlone(sch) || !target.has_value())
      return {sch};
    // Too few results to keep the cores busy, and long sums for each of them.
    double spatial = view.Iterations(LoopUse::kSpatial);
    auto jobs = static_cast<double>(Machine::Of(target.value())->cores * max_jobs_per_core);
    if (spatial >= jobs || view.Iterations(LoopUse::kReduce) < 8 * spatial) return {sch};
    Array<Schedule> result = {sch};
    for (bool inner : {false, true}) {
      Schedule copy = sch.Copy();
      if (Try([&] { Factor(copy, block, view, inner); })) result.push_back(copy);
    }
    return result;
  }

 private:
  void Factor(const Schedule& sch, const BlockRV& block, const BlockView& view, bool inner) {
    Array<LoopRV> loops = sch.GetLoops(block), spatial, reduce;
    for (size_t i = 0; i < loops.size(); ++i)
      (view.axes[i].use == LoopUse::kReduce ? reduce : spatial).push_back(loops[i]);
    Array<LoopRV> order = spatial;
    for (const LoopRV& l : reduce) order.push_back(l);
    sch.Reorder(order);
    LoopRV fused = sch.Fuse(reduce);
    auto tile = sch.SamplePerfectTile(fused, 2, max_innermost_factor.value_or(64));
    Array<LoopRV> split = sch.Split(fused, {PrimExpr(tile[0]), PrimExpr(tile[1])});
    BlockRV partial = sch.RFactor(split[inner ? 1 : 0], static_cast<int64_t>(spatial.size()));
    if (inner) sch.Annotate(partial, "meta_schedule.random_compute_producer", int64_t{1});
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.AddRFactor", AddRFactorObj, ScheduleRuleObj);
};

// ---- places ------------------------------------------------------------------------------------
struct RandomComputeLocationObj : ScheduleRuleObj {
  static void Fields(auto&&) {}
  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    BlockView view(sch, block);
    if (view.is_root || view.has_blocks || WritesOutput(sch, block) || !view.IsAlone(sch))
      return {sch};
    if (IsScheduled(view) &&
        AnnotationOf(sch, block, "meta_schedule.random_compute_producer") == nullptr)
      return {sch};
    Schedule copy = sch.Copy();
    bool done = Try([&] {
      LoopRV place = copy.SampleComputeLocation(block);
      copy.ComputeAt(block, place, true);
    });
    return {done ? copy : sch};
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.RandomComputeLocation", RandomComputeLocationObj,
                                    ScheduleRuleObj);
};

// ---- annotations of the root -------------------------------------------------------------------
struct ParallelizeVectorizeUnrollObj : ScheduleRuleObj {
  int64_t max_jobs_per_core = 16, max_vectorize_extent = 16;
  Optional<Array<int64_t>> unroll_max_steps;
  bool unroll_explicit = true;
  Optional<Target> target;
  static void Fields(auto&& def) {
    def("max_jobs_per_core", &ParallelizeVectorizeUnrollObj::max_jobs_per_core, Default(16));
    def("max_vectorize_extent", &ParallelizeVectorizeUnrollObj::max_vectorize_extent, Default(16));
    def("unroll_max_steps", &ParallelizeVectorizeUnrollObj::unroll_max_steps, Default(nullptr));
    def("unroll_explicit", &ParallelizeVectorizeUnrollObj::unroll_explicit, Default(true));
  }
  void Initialize(const TuneContext& context) final { target = context->target; }
  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    BlockView view(sch, block);
    if (!view.is_root) return {sch};
    if (max_jobs_per_core != -1 && target.has_value()) {
      sch.Annotate(block, "meta_schedule.parallel",
                   Machine::Of(target.value())->cores * max_jobs_per_core);
    }
    if (max_vectorize_extent != -1)
      sch.Annotate(block, "meta_schedule.vectorize", max_vectorize_extent);
    if (unroll_max_steps.has_value() && !unroll_max_steps.value().empty()) {
      auto steps = unroll_max_steps.value();
      Array<double> even(steps.size(), 1.0 / static_cast<double>(steps.size()));
      Var step = sch.SampleCategorical(steps, even);
      sch.Annotate(
          block,
          unroll_explicit ? "meta_schedule.unroll_explicit" : "meta_schedule.unroll_implicit",
          step);
    }
    return {sch};
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.ParallelizeVectorizeUnroll",
                                    ParallelizeVectorizeUnrollObj, ScheduleRuleObj);
};

// ---- the user's --------------------------------------------------------------------------------
/// A block annotated with "schedule_rule" is scheduled by the function of that name: one for a key
/// of the target, "meta_schedule.<key>.<name>" or "<name>.<key>", goes before one for all.
struct ApplyCustomRuleObj : ScheduleRuleObj {
  Optional<Target> target;
  static void Fields(auto&&) {}
  void Initialize(const TuneContext& context) final { target = context->target; }
  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    auto name = AnnotationOf(sch, block, "schedule_rule").as<String>();
    if (!name || *name == "None") return {sch};
    std::vector<std::string> looked;
    if (target.has_value()) {
      for (const String& key : target.value()->keys) {
        std::string own(*name), of(key);
        for (const std::string& full : {"meta_schedule." + of + "." + own, own + "." + of}) {
          if (auto fn = Function::GetGlobal(full)) return Call(*fn, sch, block);
          looked.push_back(full);
        }
      }
    }
    if (auto fn = Function::GetGlobal(*name)) return Call(*fn, sch, block);
    std::string tried = std::string(*name);
    for (const std::string& l : looked) tried += ", " + l;
    TVM_FFI_THROW(ValueError) << "ApplyCustomRule: block " << sch.Get(block)->name_hint
                              << " asks for a rule that is not registered; looked for " << tried;
    TVM_FFI_UNREACHABLE();
  }

 private:
  static Array<Schedule> Call(const Function& fn, const Schedule& sch, const BlockRV& block) {
    Any result = fn(sch, block);
    if (auto one = result.as<Schedule>()) return {*one};
    return result.cast<Array<Schedule>>();
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.ApplyCustomRule", ApplyCustomRuleObj,
                                    ScheduleRuleObj);
};
struct PyScheduleRuleObj : ScheduleRuleObj {
  TVM_USER_DEFINED_PART(PyScheduleRuleObj, ScheduleRule)
  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    return CallUser<Array<Schedule>>("apply", sch, block);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.PyScheduleRule", PyScheduleRuleObj,
                                    ScheduleRuleObj);
};

TVM_REGISTER() {
  RegisterBase<ScheduleRuleObj>("Offers ways to schedule a block.");
  RegisterNode<AutoInlineObj>("Inlines blocks that are cheap to compute where they are used.");
  RegisterNode<InlineConstantScalarsObj>("Inlines blocks that hold one constant.");
  RegisterNode<AddRFactorObj>("Splits a long reduction so that parts of it run in parallel.");
  RegisterNode<RandomComputeLocationObj>("Samples the loop of a consumer to compute a block at.");
  RegisterNode<ParallelizeVectorizeUnrollObj>(
      "Annotates the root with what RewriteParallelVectorizeUnroll shall do.");
  RegisterNode<ApplyCustomRuleObj>(
      "Calls the function that a block's annotation `schedule_rule` names.");
  RegisterNode<PyScheduleRuleObj>("A schedule rule defined by a user.");
  Def(
      "meta_schedule.ScheduleRule.apply",
      [](ScheduleRule self, Schedule sch, BlockRV block) { return self->Apply(sch, block); },
      "The schedules that follow from `sch`.", Arg("self"), Arg("sch"), Arg("block"));
  DefPart<ScheduleRule>("meta_schedule.ScheduleRule.clone",
                        "meta_schedule.ScheduleRule._initialize_with_tune_context");
}
}  // namespace
}  // namespace tvm::tune
