// SPDX-License-Identifier: Apache-2.0
// The names that Python sees beside the primitives.
#include "schedule.h"

namespace tvm::tir {

void InstructionKindObj::Init() {
  if (!primitive) primitive = InstructionKind::Get(name)->primitive;
}

namespace {

StmtSRef MakeSRef(const ScheduleState& state, NodeId id) {
  return New<StmtSRef>([&](StmtSRefObj* n) { n->state = state, n->id = id; });
}
Optional<StmtSRef> SRefOrNone(const ScheduleState& state, NodeId id) {
  if (id == kNoNode) return {};
  return MakeSRef(state, id);
}
IRModule ModuleOf(const Variant<PrimFunc, IRModule>& mod) {
  if (auto func = mod.as<PrimFunc>()) return IRModule({{GlobalVar("main"), *func}});
  return mod.get<IRModule>();
}

Schedule Make(const Variant<PrimFunc, IRModule>& mod, Optional<int64_t> seed, int64_t debug_mask,
              int64_t error_render_level, bool enable_check) {
  return Schedule(ModuleOf(mod), seed.value_or(-1), debug_mask,
                  static_cast<ErrorRenderLevel>(error_render_level), enable_check);
}

/// A block, loop or value for a random variable or a reference.
Any Get(const Schedule& sch, const ObjectRef& rv) {
  if (auto sref = rv.as<StmtSRef>()) {
    const State& state = (*sref)->state->value;
    if (!state.Has((*sref)->id)) return nullptr;
    return state.inner_stmt((*sref)->id);
  }
  if (auto block = rv.as<BlockRV>()) return sch.Get(*block);
  if (auto loop = rv.as<LoopRV>()) {
    NodeId id = sch.IdOf(*loop);
    if (id < kNoNode) return nullptr;  // inline or root: no loop
    return sch.Get(*loop);
  }
  if (auto* expr = rv.as<PrimExprObj>()) {
    PrimExpr value = sch.Get(ffi::GetRef<PrimExpr>(expr));
    if (auto* number = value.as<IntImmObj>()) return number->value;
    return value;
  }
  TVM_FFI_THROW(TypeError) << "Schedule.get: expected a random variable or a StmtSRef, got "
                           << rv->GetTypeKey();
}

NodeId FindStmt(const State& state, const ObjectRef& stmt) {
  if (auto* block = stmt.as<BlockObj>()) return state.Find(block);
  if (auto* loop = stmt.as<ForObj>()) {
    LoopId id = state.Find(loop);
    return id != kNoNode && state.loop(id) == loop ? id.id : kNoNode;
  }
  TVM_FFI_THROW(TypeError) << "get_sref: expected a random variable, a Block or a For, got "
                           << stmt->GetTypeKey();
}
Optional<StmtSRef> GetSRef(const Schedule& sch, const ObjectRef& what) {
  if (what->IsInstance<BlockRVObj>() || what->IsInstance<LoopRVObj>()) {
    return MakeSRef(sch->state, sch.IdOf(what));
  }
  return SRefOrNone(sch->state, FindStmt(sch.state(), what));
}

int64_t SeqIndex(const StmtSRef& self) {
  if (self->id < 0) return -1;
  const State& state = self->state->value;
  if (!state.Has(self->id) || state.parent(self->id) == kNoNode) return -1;
  NodeId up = state.parent(self->id);
  const Stmt& body = state.IsBlock(up) ? state.block({up})->body : state.loop({up})->body;
  auto* seq = body.as<SeqStmtObj>();
  for (size_t i = 0; seq && i < seq->seq.size(); ++i) {
    if (seq->seq[i].same_as(state.stmt(self->id))) return static_cast<int64_t>(i);
  }
  return -1;
}

// ---- scopes ------------------------------------------------------------------------------------
struct DependencyObj : NodeObj {
  StmtSRef src, dst;
  int64_t kind = 0;
  static void Fields(auto&& def) {
    def("src", &DependencyObj::src);
    def("dst", &DependencyObj::dst);
    def("kind", &DependencyObj::kind);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Dependency", DependencyObj, NodeObj);
};
TVM_NODE_REF(Dependency, ObjectRef, DependencyObj);

struct BlockScopeObj : NodeObj {
  ScheduleState state;
  NodeId block = kNoNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.BlockScope", BlockScopeObj, NodeObj);
};
TVM_NODE_REF(BlockScope, ObjectRef, BlockScopeObj);

Array<Dependency> Deps(const BlockScope& scope, const StmtSRef& block, bool by_src) {
  if (!scope->state.defined()) TVM_FFI_THROW(ValueError) << "BlockScope: expected one of a state";
  const State& state = scope->state->value;
  if (!state.Has(scope->block)) TVM_FFI_THROW(ValueError) << "BlockScope: the block is gone";
  const Scope& known = state.scope({scope->block});
  Array<Dependency> deps;
  for (const DepEdge& edge : by_src ? known.From({block->id}) : known.To({block->id})) {
    deps.push_back(New<Dependency>([&](DependencyObj* n) {
      n->src = MakeSRef(scope->state, edge.src);
      n->dst = MakeSRef(scope->state, edge.dst);
      n->kind = static_cast<int64_t>(edge.kind);
    }));
  }
  return deps;
}

BlockScope GetBlockScope(const ScheduleState& state, const StmtSRef& block) {
  if (!state->value.Has(block->id) || !state->value.IsBlock(block->id)) {
    TVM_FFI_THROW(ValueError) << "get_block_scope: expected a block of this state";
  }
  return New<BlockScope>([&](BlockScopeObj* n) { n->state = state, n->block = block->id; });
}

void Replace(const ScheduleState& state, const StmtSRef& src, const Stmt& tgt,
             const Optional<Map<Block, Block>>& block_sref_reuse) {
  if (!state->value.Has(src->id)) {
    TVM_FFI_THROW(ValueError) << "ScheduleState.replace: expected a block or loop of this state";
  }
  State::BlockReuse reuse;
  if (block_sref_reuse) {
    for (const auto& [old, now] : *block_sref_reuse) reuse[now.get()] = old;
  }
  State before = state->value;
  try {
    if (auto block = tgt.as<Block>()) {
      if (!state->value.IsBlock(src->id)) {
        TVM_FFI_THROW(ValueError) << "ScheduleState.replace: expected a loop or a BlockRealize in "
                                     "place of a loop, got a Block";
      }
      BlockRealize realize = ffi::GetRef<BlockRealize>(state->value.realize({src->id}));
      Edit(&realize)->block = *block;
      state->value.Replace(src->id, realize, reuse);
    } else {
      state->value.Replace(src->id, tgt, reuse);
    }
    std::string problem = state->value.FindInconsistency();
    if (!problem.empty()) Refuse("expected each loop and block once in the program: " + problem);
  } catch (const Refusal& refusal) {
    state->value = before;
    TVM_FFI_THROW(ValueError) << "ScheduleState.replace: " << refusal.reason;
  } catch (...) {
    state->value = before;
    throw;
  }
}

/// [kind, method, documentation, program, calls] of every primitive, for the documentation.
Array<Array<String>> Examples() {
  Array<Array<String>> all;
  for (const Primitive* p : ListPrimitives()) {
    all.push_back(
        {p->kind->name, std::string(p->method()), p->doc, p->example_before, p->example_call});
  }
  return all;
}

TVM_REGISTER() {
  Def("tir.schedule._examples", &Examples, "");
  RegisterNode<BlockRVObj>("Stands for a block of a schedule's program.");
  RegisterNode<LoopRVObj>("Stands for a loop of a schedule's program.");
  RegisterNode<InstructionKindObj>("The name of a primitive in traces.");
  RegisterNode<InstructionObj>("One primitive that was applied.");
  RegisterNode<TraceObj>("The primitives that were applied, in order, and what was decided.");
  RegisterNode<ScheduleStateObj>("The program of a schedule with its tree of blocks and loops.");
  RegisterNode<StmtSRefObj>("One block or loop of a ScheduleState.");
  RegisterNode<DependencyObj>("`dst` depends on `src`.");
  RegisterNode<BlockScopeObj>("The dependences between the child blocks of a block.");
  RegisterNode<ScheduleObj>("A program being transformed, and the trace of how.");

  Def("tir.schedule._make", &Make, "", Arg("mod"), Arg("seed"), Arg("debug_mask"),
      Arg("error_render_level"), Arg("enable_check"));
  Def("tir.schedule._mod", [](Schedule self) { return self.mod(); }, "", Arg("self"));
  Def("tir.schedule._state", [](Schedule self) { return self->state; }, "", Arg("self"));
  Def("tir.schedule._trace", [](Schedule self) { return self.trace(); }, "", Arg("self"));
  Def("tir.schedule._working_on", [](Schedule self) { return self->working_on; }, "", Arg("self"));
  Def(
      "tir.Schedule.work_on", [](Schedule self, String name) { self.WorkOn(name); },
      "Makes get_block look in another function of the module.", Arg("self"), Arg("func_name"));
  Def(
      "tir.Schedule.copy", [](Schedule self) { return self.Copy(); },
      "A schedule that goes its own way from here. Random variables stand for the same in both.",
      Arg("self"));
  Def(
      "tir.Schedule.seed", [](Schedule self, int64_t seed) { self.Seed(seed); },
      "Sets the random numbers: one seed gives one sequence everywhere; -1 another every time.",
      Arg("self"), Arg("seed"));
  Def(
      "tir.Schedule.fork_seed", [](Schedule self) { return self.ForkSeed(); },
      "A seed for another generator, from this one.", Arg("self"));
  Def("tir.Schedule.get", &Get,
      "The Block, For or int that a random variable or a StmtSRef stands for now.", Arg("self"),
      Arg("rand_var_or_sref"));
  Def("tir.Schedule.get_sref", &GetSRef,
      "The StmtSRef of a random variable, a Block or a For; None if it is not in the program.",
      Arg("self"), Arg("rand_var_or_stmt"));
  Def(
      "tir.Schedule.remove_rv", [](Schedule self, ObjectRef rv) { self.RemoveRV(rv); },
      "Forgets a random variable.", Arg("self"), Arg("rand_var"));

  Def(
      "tir.schedule._make_state",
      [](Variant<PrimFunc, IRModule> mod, int64_t debug_mask, bool enable_check) {
        return Schedule(ModuleOf(mod), 0, debug_mask, ErrorRenderLevel::kDetail, enable_check)
            ->state;
      },
      "", Arg("mod"), Arg("debug_mask"), Arg("enable_check"));
  Def(
      "tir.schedule._state_mod", [](ScheduleState self) { return self->value.mod(); }, "",
      Arg("self"));
  Def(
      "tir.schedule._debug_mask", [](ScheduleState self) { return self->debug_mask; }, "",
      Arg("self"));
  Def(
      "tir.ScheduleState.get_sref",
      [](ScheduleState self, Stmt stmt) { return SRefOrNone(self, FindStmt(self->value, stmt)); },
      "The StmtSRef of a Block or For; None if it is not in the program.", Arg("self"),
      Arg("stmt"));
  Def("tir.ScheduleState.get_block_scope", &GetBlockScope,
      "The dependences between the child blocks of a block.", Arg("self"), Arg("block_sref"));
  Def("tir.ScheduleState.replace", &Replace,
      "Puts another statement in the place of a block or loop. Loops are the same as long as their "
      "variable is; `block_sref_reuse` maps old blocks to the new ones that continue them.",
      Arg("self"), Arg("src_sref"), Arg("tgt_stmt"), Arg("block_sref_reuse", nullptr));
  Def(
      "tir.schedule._sref_stmt",
      [](StmtSRef self) -> Optional<Stmt> {
        if (self->id < 0 || !self->state->value.Has(self->id)) return {};
        return self->state->value.inner_stmt(self->id);
      },
      "", Arg("self"));
  Def(
      "tir.schedule._sref_parent",
      [](StmtSRef self) -> Optional<StmtSRef> {
        if (self->id < 0 || !self->state->value.Has(self->id)) return {};
        return SRefOrNone(self->state, self->state->value.parent(self->id));
      },
      "", Arg("self"));
  Def(
      "tir.schedule._sref_id", [](StmtSRef self) { return static_cast<int64_t>(self->id); }, "",
      Arg("self"));
  Def("tir.schedule._sref_state", [](StmtSRef self) { return self->state; }, "", Arg("self"));
  Def("tir.schedule._sref_seq_index", &SeqIndex, "", Arg("self"));
  Def(
      "tir.schedule._sref_mark",
      [](int64_t id) { return MakeSRef(ScheduleState(), static_cast<NodeId>(id)); }, "", Arg("id"));
  Def(
      "tir.BlockScope.get_deps_by_src",
      [](BlockScope self, StmtSRef block) { return Deps(self, block, true); },
      "The dependences of later blocks on `block`.", Arg("self"), Arg("block"));
  Def(
      "tir.BlockScope.get_deps_by_dst",
      [](BlockScope self, StmtSRef block) { return Deps(self, block, false); },
      "The dependences of `block` on earlier ones.", Arg("self"), Arg("block"));

  Def(
      "tir.InstructionKind.get", [](String name) { return InstructionKind::Get(name); },
      "The kind of a name.", Arg("name"));
  Def(
      "tir.Trace.get_decision",
      [](Trace self, Instruction inst) { return self->GetDecision(inst); },
      "What a sampling instruction decided, or None.", Arg("self"), Arg("inst"));
  Def(
      "tir.Trace.append",
      [](Trace self, Instruction inst, Any decision) { self->Append(inst, decision); },
      "Adds an instruction at the end.", Arg("self"), Arg("inst"), Arg("decision", nullptr));
  Def(
      "tir.Trace.pop",
      [](Trace self) -> Optional<Instruction> {
        Instruction last = self->Pop();
        if (!last.defined()) return {};
        return last;
      },
      "Removes the last instruction and returns it; None when there is none.", Arg("self"));
  Def(
      "tir.Trace.apply_to_schedule",
      [](Trace self, Schedule sch, bool remove_postproc, Optional<Function> decision_provider) {
        if (!decision_provider) return self.ApplyToSchedule(sch, remove_postproc);
        self.ApplyToSchedule(sch, remove_postproc,
                             [&](const Instruction& inst, const Array<Any>& inputs,
                                 const Array<Any>& attrs, const Any& decision) {
                               return OnHomeStack([&] {
                                 return (*decision_provider)(inst, inputs, attrs, decision);
                               });
                             });
      },
      "Applies the instructions to a schedule. `decision_provider(inst, inputs, attrs, decision)` "
      "may change what is decided.",
      Arg("self"), Arg("sch"), Arg("remove_postproc"), Arg("decision_provider", nullptr));
  Def(
      "tir.Trace.as_json", [](Trace self, bool remove) { return self.AsJson(remove); },
      "[instructions, decisions] as plain data.", Arg("self"), Arg("remove_postproc", false));
  Def(
      "tir.Trace.as_python", [](Trace self, bool remove) { return self.AsPython(remove); },
      "One Python call per instruction, on a schedule named `sch`.", Arg("self"),
      Arg("remove_postproc", false));
  Def(
      "tir.Trace.with_decision",
      [](Trace self, Instruction inst, Any decision, bool remove) {
        return self.WithDecision(inst, decision, remove);
      },
      "The trace with another decision of one instruction.", Arg("self"), Arg("inst"),
      Arg("decision"), Arg("remove_postproc"));
  Def(
      "tir.Trace.simplified", [](Trace self, bool remove) { return self.Simplified(remove); },
      "The trace without instructions that change nothing and whose results nobody uses.",
      Arg("self"), Arg("remove_postproc"));
  Def(
      "tir.Trace.apply_json_to_schedule",
      [](Array<Any> json_obj, Schedule sch) { Trace::ApplyJsonToSchedule(json_obj, sch); },
      "Applies what as_json() gave.", Arg("json_obj"), Arg("sch"));
}

}  // namespace
}  // namespace tvm::tir
