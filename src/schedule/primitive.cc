// SPDX-License-Identifier: Apache-2.0
// Applying a primitive: arguments in, the State changed or left as it was, the trace extended.
#include "tvm/schedule/primitive.h"

#include <deque>
#include <map>

#include "schedule.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/index_map.h"

namespace tvm::tir {
namespace {

std::map<std::string, Primitive*, std::less<>>& Primitives() {
  static auto* all = new std::map<std::string, Primitive*, std::less<>>();
  return *all;
}

int CallFromPython(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  auto* primitive = static_cast<const Primitive*>(static_cast<FnInfo*>(self));
  try {
    CheckCount(primitive, static_cast<int>(primitive->args.size()), count);
    auto sch = Unpack<Schedule>(primitive, args, 0);
    std::vector<AnyView> views;
    views.reserve(count);
    for (int i = 1; i < count; ++i) views.push_back(AnyView::CopyFromTVMFFIAny(args[i]));
    *result = ffi::detail::AnyUnsafe::MoveAnyToTVMFFIAny(
        CallPrimitive(sch.get(), *primitive, views.data()));
    return 0;
  } catch (...) {
    return ReportException();
  }
}

/// An index map with variables of the program in the place of copies of them.
IndexMap WithOwnVars(const ScheduleObj* self, const IndexMap& map) {
  bool changed = false;
  Array<PrimExpr> indices = map->final_indices.Map([&](const PrimExpr& e) {
    return Substitute(e, [&](const Var& var) -> PrimExpr {
      for (const Var& index : map->initial_indices) {
        if (index.same_as(var)) return {};
      }
      PrimExpr own = OwnVar(self, var);
      changed |= own.defined();
      return own;
    });
  });
  IndexMap own = map;
  if (changed) Edit(&own)->final_indices = indices;
  return own;
}

}  // namespace

const Primitive* FindPrimitive(std::string_view kind) {
  auto it = Primitives().find(kind);
  return it == Primitives().end() ? nullptr : it->second;
}
std::vector<const Primitive*> ListPrimitives() {
  std::vector<const Primitive*> all;
  for (const auto& [kind, primitive] : Primitives()) all.push_back(primitive);
  return all;
}

void RegisterPrimitive(Primitive* p, const char* kind, const char* method, bool is_pure) {
  static auto* names = new std::deque<std::string>;  // as long as the process, like the primitives
  p->name = names->emplace_back("tir.Schedule." + std::string(method)).c_str();
  p->kind = New<InstructionKind>([&](InstructionKindObj* n) {
    n->name = kind;
    n->is_pure = is_pure;
    n->primitive = p;
  });
  auto is_input = [](ArgRole r) { return r == ArgRole::kInput || r == ArgRole::kFlatInput; };
  // Only the last input can be told from the others when it is written flat.
  for (size_t i = 0; i < p->roles.size(); ++i) {
    bool last = std::none_of(p->roles.begin() + i + 1, p->roles.end(), is_input);
    if (p->roles[i] == ArgRole::kFlatInput && !last) p->roles[i] = ArgRole::kInput;
  }
  Primitives()[kind] = p;
  RegisterFunction(p, &CallFromPython);
}

InstructionKind InstructionKind::Get(const String& name) {
  if (const Primitive* p = FindPrimitive(View(name))) return p->kind;
  if (name == "GetSBlock") return Get("GetBlock");  // in traces of 0.27
  std::vector<std::string_view> names;
  for (const auto& [kind, p] : Primitives()) names.push_back(kind);
  TVM_FFI_THROW(ValueError) << "InstructionKind: expected the name of a primitive, got '" << name
                            << "'" << DidYouMean(View(name), names);
}

Any CallPrimitive(ScheduleObj* self, const Primitive& primitive, const AnyView* args) {
  ScheduleStateObj* state = self->state.get();
  State before = state->value;
  auto symbols = self->symbols;
  uint64_t random = self->random;
  size_t recorded = self->insts.size();
  auto roll_back = [&] {
    state->value = std::move(before);
    self->symbols = std::move(symbols);
    self->random = random;
    while (self->insts.size() > recorded) self->insts.pop_back();
  };
  try {
    std::vector<AnyView> own;
    Array<Any> keep_alive;
    for (size_t i = 0; i + 1 < primitive.args.size(); ++i) {
      auto* map = args[i].as<IndexMapObj>();
      if (!map) continue;
      if (own.empty()) own.assign(args, args + primitive.args.size() - 1);
      keep_alive.push_back(WithOwnVars(self, ffi::GetRef<IndexMap>(map)));
      own[i] = keep_alive.back();
    }
    PrimitiveCall call{self, &primitive, own.empty() ? args : own.data(), {}, {}, {}};
    Any result = primitive.run(&call);
    if (state->debug_mask) Verify(self->state);
    Record(self, &call);
    return result;
  } catch (const Refusal& refusal) {
    roll_back();
    ThrowScheduleError(self, primitive, refusal);
  } catch (...) {
    roll_back();
    throw;
  }
}

void Record(ScheduleObj* self, PrimitiveCall* call) {
  const auto& roles = call->primitive->roles;
  if (std::find(roles.begin(), roles.end(), ArgRole::kFlatInput) != roles.end()) {
    auto flat = call->inputs.back().cast<Array<Any>>();
    call->inputs.pop_back();
    for (const Any& item : flat) call->inputs.push_back(item);
  }
  auto inst = New<Instruction>([&](InstructionObj* n) {
    n->kind = call->primitive->kind;
    n->inputs = std::move(call->inputs);
    n->attrs = std::move(call->attrs);
    n->outputs = std::move(call->outputs);
  });
  self->insts.push_back(inst);
  if (call->decision != nullptr) self->decisions.Set(inst, std::move(call->decision));
}

uint64_t Sampler::Next() { return NextRandom(random_); }
int64_t Sampler::Below(int64_t n) {
  // Draws that would make some results likelier than others are thrown away.
  auto bound = static_cast<uint64_t>(n);
  uint64_t limit = UINT64_MAX - UINT64_MAX % bound, draw;
  do draw = Next();
  while (draw >= limit);
  return static_cast<int64_t>(draw % bound);
}
double Sampler::Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

namespace primitive_detail {

NodeId DecodeNode(PrimitiveCall* call, int i, const AnyView& view, const char* expected,
                  Any* recorded) {
  std::string_view what = expected;
  ScheduleObj* self = call->self;
  if (what.starts_with("block") && view.try_cast<String>()) {
    AnyView args[2] = {view, nullptr};
    Any block = CallPrimitive(self, *FindPrimitive("GetBlock"), args);
    *recorded = block;
    return self->symbols.Find(SymbolKey(block.cast<ObjectRef>()))->node;
  }
  auto rv = view.try_cast<ObjectRef>();
  bool is_block = rv && rv->defined() && (*rv)->IsInstance<BlockRVObj>();
  bool is_loop = rv && rv->defined() && (*rv)->IsInstance<LoopRVObj>();
  if (!(is_block && what.starts_with("block")) && !(is_loop && what != "block")) {
    ThrowBadArg(call->primitive, i + 1, view, call->primitive->schemas[i + 1]);
  }
  NodeId id = ResolveNode(self, *rv);
  if (id < kNoNode && what != "location") {
    Refuse(Text("expected ", call->primitive->args[i + 1].name, " to be a loop, got the location '",
                id == kInlineMark ? "inline" : "root", "'"));
  }
  return id;
}

PrimExpr DecodeExpr(PrimitiveCall* call, int i, const AnyView& view) {
  auto value = view.try_cast<PrimExpr>();
  if (!value || !value->defined()) {
    ThrowBadArg(call->primitive, i + 1, view, &ffi::detail::TypeSchema<PrimExpr>::v);
  }
  return ResolveExpr(call->self, *value);
}

Any DecodeAnnotation(PrimitiveCall* call, int i, const Any& value) {
  if (auto items = value.try_cast<Array<Any>>()) {
    Array<Any> all;
    for (const Any& item : *items) all.push_back(DecodeAnnotation(call, i, item));
    return all;
  }
  if (auto items = value.try_cast<Map<String, Any>>()) {
    Map<String, Any> all;
    for (const auto& [key, item] : *items) all.Set(key, DecodeAnnotation(call, i, item));
    return all;
  }
  if (auto* expr = value.as<PrimExprObj>()) {
    PrimExpr resolved = ResolveExpr(call->self, ffi::GetRef<PrimExpr>(expr));
    if (auto* text = resolved.as<StringImmObj>()) return text->value;
    if (auto* number = resolved.as<IntImmObj>(); number && !number->dtype.is_bool()) {
      return number->value;
    }
    if (auto* number = resolved.as<FloatImmObj>()) return number->value;
    return resolved;
  }
  return value;
}

Variant<IndexMap, Function> WithoutRVs(PrimitiveCall* call, Variant<IndexMap, Function> map) {
  auto value_of = [self = call->self](const PrimExpr& e) {
    bool changed = false;
    PrimExpr value = Substitute(e, [&](const Var& var) -> PrimExpr {
      const Symbol* symbol = self->symbols.Find(SymbolKey(var));
      changed |= symbol != nullptr;
      return symbol ? cast(var.dtype(), symbol->value) : PrimExpr();
    });
    return changed ? arith::Analyzer().Simplify(value) : e;
  };
  if (auto given = map.as<IndexMap>()) {
    IndexMap resolved = *given;
    Edit(&resolved)->final_indices = (*given)->final_indices.Map(value_of);
    return resolved;
  }
  Function fn = map.get<Function>();
  auto item_of = [value_of](const Any& item) -> Any {
    auto* e = item.as<PrimExprObj>();
    return e ? Any(value_of(ffi::GetRef<PrimExpr>(e))) : item;
  };
  return Function::FromPacked([fn, item_of](const AnyView* args, int32_t n, Any* result) {
    fn.CallPacked(args, n, result);
    auto items = result->try_cast<Array<Any>>();
    *result = items ? Any(items->Map(item_of)) : item_of(*result);
  });
}

Any NewRV(PrimitiveCall* call, NodeId id, bool is_block) {
  ObjectRef rv = is_block ? ObjectRef(BlockRV(NewObject<BlockRVObj>()))
                          : ObjectRef(LoopRV(NewObject<LoopRVObj>()));
  call->self->symbols.Set(SymbolKey(rv), Symbol{rv, id, {}});
  call->outputs.push_back(rv);
  return rv;
}
Any NewExprRV(PrimitiveCall* call, int64_t value) {
  Var rv("v", DataType::Int(32));
  call->self->symbols.Set(SymbolKey(rv), Symbol{rv, kNoNode, MakeConst(DataType::Int(32), value)});
  call->outputs.push_back(rv);
  return rv;
}

}  // namespace primitive_detail
}  // namespace tvm::tir
