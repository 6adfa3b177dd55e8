// SPDX-License-Identifier: Apache-2.0
// The schedule object: construction, random variables, copies, random numbers, errors.
#include "schedule.h"

#include <algorithm>
#include <atomic>
#include <random>

#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {

constexpr int64_t kMaxSeed = (int64_t{1} << 31) - 1;

Optional<GlobalVar> DefaultFunction(const IRModule& mod) {
  GlobalVar only, main;
  int count = 0;
  for (const auto& [name, func] : mod->functions) {
    if (!func->IsInstance<PrimFuncObj>()) continue;
    only = name;
    ++count;
    if (name->name_hint == "main") main = name;
  }
  if (main.defined()) return main;
  if (count == 1) return only;
  return {};
}

}  // namespace

uint64_t NextRandom(uint64_t* state) {  // SplitMix64: every state is a good one
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

namespace {
/// Asking the system costs more than many a primitive: once per process is enough.
uint64_t OtherEveryTime() {
  static const uint64_t start = uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  static std::atomic<uint64_t> count{0};
  uint64_t state = start + count++;
  return NextRandom(&state);
}
}  // namespace

void ScheduleStateObj::Init() {
  TVM_FFI_THROW(TypeError) << "ScheduleState: expected to be that of a Schedule, not to be loaded";
}
void StmtSRefObj::Init() {
  if (!state.defined())
    TVM_FFI_THROW(TypeError) << "StmtSRef: expected to be one of a ScheduleState, not to be loaded";
}
void ScheduleObj::Init() {
  TVM_FFI_THROW(TypeError) << "Schedule: expected to be made from a module, not to be loaded; keep "
                              "its module and its trace";
}
Schedule::Schedule(IRModule mod, int64_t seed, int64_t debug_mask, ErrorRenderLevel level,
                   bool enable_check) {
  auto n = NewObject<ScheduleObj>();
  n->state = ScheduleState(NewObject<ScheduleStateObj>());
  n->working_on = DefaultFunction(mod);
  try {
    n->state->value = State(std::move(mod));
  } catch (const Refusal& refusal) {
    TVM_FFI_THROW(ValueError) << "Schedule: " << refusal.reason;
  }
  n->state->value.is_trusted = !enable_check;
  n->state->debug_mask = debug_mask;
  n->state->enable_check = enable_check;
  n->error_render_level = level;
  data_ = std::move(n);
  Seed(seed);
}

Trace Schedule::trace() const { return Trace(get()->insts, get()->decisions); }

Schedule Schedule::Copy() const {
  auto n = NewObject<ScheduleObj>(*get());
  n->state = ScheduleState(NewObject<ScheduleStateObj>(*get()->state.get()));
  n->random = NextRandom(&get()->random);
  return Schedule(std::move(n));
}

void Schedule::Seed(int64_t seed) const {
  if (seed < -1 || seed > kMaxSeed) {
    TVM_FFI_THROW(ValueError) << "Schedule.seed: expected -1 or a number in [0, " << kMaxSeed
                              << "], got " << seed;
  }
  get()->random = seed == -1 ? OtherEveryTime() : static_cast<uint64_t>(seed);
}
int64_t Schedule::ForkSeed() const {
  return static_cast<int64_t>(NextRandom(&get()->random) % kMaxSeed) + 1;
}
void Schedule::WorkOn(const String& func_name) const {
  get()->working_on = mod()->GetGlobalVar(func_name);
}

// ---- random variables ---------------------------------------------------------------------------
NodeId ResolveNode(const ScheduleObj* self, const ObjectRef& rv) {
  const char* what = rv->IsInstance<BlockRVObj>() ? "block" : "loop";
  const Symbol* symbol = self->symbols.Find(SymbolKey(rv));
  if (!symbol) {
    TVM_FFI_THROW(IndexError) << "expected a " << what
                              << " of this schedule, got a random variable it does not know: it "
                                 "belongs to another schedule, or was removed";
  }
  if (symbol->node <= kInlineMark || self->state->value.Has(symbol->node)) return symbol->node;
  RVNames names;
  for (const Instruction& inst : self->insts) names.Define(inst->outputs);
  Refuse(Text("expected a ", what, " that is still in the program, got ", names.Of(rv),
              ", which an earlier primitive replaced"));
}

PrimExpr OwnVar(const ScheduleObj* self, const Var& var) {
  PrimExpr found;
  bool in_working_on = false;
  for (const auto& [name, base] : self->state->value.mod()->functions) {
    auto* func = base.as<PrimFuncObj>();
    if (!func) continue;
    bool first = self->working_on && name.same_as(*self->working_on);
    auto look = [&](const ObjectRef& node) {
      auto* known = node.as<VarObj>();
      if (!known || known->name_hint != var->name_hint || known->dtype != var->dtype) return false;
      if (known != var.get() && (!found.defined() || (first && !in_working_on))) {
        found = ffi::GetRef<Var>(known);
        in_working_on = first;
      }
      return known == var.get();
    };
    bool own = false;
    auto visit = [&](const ObjectRef& node) { own |= look(node); };
    for (const Var& param : func->params) {
      visit(param);
      if (auto it = func->buffer_map.find(param); it != func->buffer_map.end()) {
        for (const PrimExpr& e : (*it).second->shape) PostOrderVisit(e, visit);
        for (const PrimExpr& e : (*it).second->strides) PostOrderVisit(e, visit);
      }
    }
    if (own) return {};
  }
  return found;
}

PrimExpr ResolveExpr(const ScheduleObj* self, const PrimExpr& expr) {
  if (expr->IsInstance<IntImmObj>()) return expr;
  bool changed = false;
  PrimExpr value = Substitute(expr, [&](const Var& var) -> PrimExpr {
    const Symbol* symbol = self->symbols.Find(SymbolKey(var));
    if (!symbol) return OwnVar(self, var);
    changed = true;
    return symbol->value;
  });
  return changed ? arith::Analyzer().Simplify(value) : value;
}

NodeId Schedule::IdOf(const ObjectRef& rv) const {
  try {
    return ResolveNode(get(), rv);
  } catch (const Refusal& refusal) {
    TVM_FFI_THROW(ScheduleError) << refusal.reason;
  }
}
Block Schedule::Get(const BlockRV& rv) const { return state().realize({IdOf(rv)})->block; }
For Schedule::Get(const LoopRV& rv) const {
  NodeId id = IdOf(rv);
  if (id < kNoNode) TVM_FFI_THROW(ScheduleError) << "expected a loop, got a compute location";
  return ffi::GetRef<For>(state().loop({id}));
}
PrimExpr Schedule::Get(const ExprRV& rv) const { return ResolveExpr(get(), rv); }
void Schedule::RemoveRV(const ObjectRef& rv) const {
  if (!get()->symbols.Has(SymbolKey(rv))) {
    TVM_FFI_THROW(IndexError) << "remove_rv: expected a random variable of this schedule";
  }
  get()->symbols.Erase(SymbolKey(rv));
}
BlockRV Schedule::NewBlockRV(BlockId id) const {
  BlockRV rv(NewObject<BlockRVObj>());
  get()->symbols.Set(SymbolKey(rv), Symbol{rv, id, {}});
  return rv;
}
LoopRV Schedule::NewLoopRV(NodeId id) const {
  LoopRV rv(NewObject<LoopRVObj>());
  get()->symbols.Set(SymbolKey(rv), Symbol{rv, id, {}});
  return rv;
}

Any Schedule::ApplyPacked(const char* kind, const AnyView* args, int count) const {
  const Primitive* primitive = FindPrimitive(kind);
  if (!primitive) TVM_FFI_THROW(InternalError) << "there is no primitive " << kind;
  CheckCount(primitive, static_cast<int>(primitive->args.size()), count + 1);
  return CallPrimitive(get(), *primitive, args);
}

// ---- checks and errors --------------------------------------------------------------------------
void Verify(const ScheduleState& state) {
  if (!(state->debug_mask & kVerifySRefTree)) return;
  std::string problem = state->value.FindInconsistency();
  if (!problem.empty()) TVM_FFI_THROW(InternalError) << "ScheduleState: " << problem;
}

void ThrowScheduleError(const ScheduleObj* self, const Primitive& primitive,
                        const Refusal& refusal) {
  std::string name(primitive.method());
  std::replace(name.begin(), name.end(), '_', '-');
  std::string message = "An error occurred in the schedule primitive '" + name + "'.";
  auto print = self->error_render_level == ErrorRenderLevel::kDetail
                   ? Function::GetGlobal("script._print_underlined")
                   : std::nullopt;
  if (print) {  // the program first: what is said last is seen
    Array<ObjectRef> about(refusal.about.begin(), refusal.about.end());
    message += "\n\nThe IR with diagnostic is:\n" +
               std::string((*print)(self->state->value.mod(), about).cast<String>()) + "\n";
  }
  message += self->error_render_level == ErrorRenderLevel::kNone
                 ? " (not rendered)"
                 : (print ? "\nError message: " : " Error message: ") + refusal.reason;
  // Without a backtrace, which is that of this function: the first one of a process reads the
  // symbols of all libraries, 0.8 s where PyTorch is one, and rules attempt what may be refused.
  throw ffi::Error("ScheduleError", message, "");
}

}  // namespace tvm::tir
