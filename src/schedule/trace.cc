// SPDX-License-Identifier: Apache-2.0
// Traces: recording, replay, decisions, simplification.
#include <algorithm>
#include <unordered_set>

#include "schedule.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {

/// `value` with every random variable in it replaced; expressions are rebuilt.
Any MapRVs(const Any& value, const std::unordered_map<const Object*, ObjectRef>& map) {
  if (auto items = value.try_cast<Array<Any>>()) {
    Array<Any> all;
    for (const Any& item : *items) all.push_back(MapRVs(item, map));
    return all;
  }
  auto ref = value.as<ObjectRef>();
  if (!ref) return value;
  if (auto it = map.find(ref->get()); it != map.end()) return it->second;
  if (auto items = value.try_cast<Map<String, Any>>()) {
    Map<String, Any> all;
    for (const auto& [key, item] : *items) all.Set(key, MapRVs(item, map));
    return all;
  }
  if (auto* expr = value.as<PrimExprObj>()) {
    return Substitute(ffi::GetRef<PrimExpr>(expr), [&](const Var& var) -> PrimExpr {
      auto it = map.find(var.get());
      return it == map.end() ? PrimExpr() : Any(it->second).cast<PrimExpr>();
    });
  }
  return value;
}

void VisitRVs(const Any& value, const std::function<void(const Object*)>& visit) {
  if (auto items = value.try_cast<Array<Any>>()) {
    for (const Any& item : *items) VisitRVs(item, visit);
  } else if (auto entries = value.try_cast<Map<String, Any>>()) {
    for (const auto& [key, item] : *entries) VisitRVs(item, visit);
  } else if (auto* expr = value.as<PrimExprObj>()) {
    UsesVar(ffi::GetRef<ObjectRef>(expr), [&](const VarObj* var) { return visit(var), false; });
  } else if (auto* object = value.as<Object>()) {
    visit(object);
  }
}

}  // namespace

Trace::Trace(Array<Instruction> insts, Map<Instruction, Any> decisions) {
  *this = New<Trace>([&](TraceObj* n) {
    n->insts = std::move(insts);
    n->decisions = std::move(decisions);
  });
}
Any TraceObj::GetDecision(const Instruction& inst) const {
  auto it = decisions.find(inst);
  return it == decisions.end() ? Any(nullptr) : (*it).second;
}
void TraceObj::Append(Instruction inst, Any decision) {
  if (decision != nullptr) decisions.Set(inst, std::move(decision));
  insts.push_back(std::move(inst));
}
Instruction TraceObj::Pop() {
  if (insts.empty()) return {};
  Instruction last = insts.back();
  insts.pop_back();
  decisions.erase(last);
  return last;
}

std::vector<Instruction> Selected(const Trace& trace, bool remove_postproc) {
  std::vector<Instruction> selected;
  for (const Instruction& inst : trace->insts) {
    if (remove_postproc && inst->kind->name == "EnterPostproc") break;
    selected.push_back(inst);
  }
  return selected;
}

Array<Any> ApplyInstruction(ScheduleObj* self, const InstructionKind& kind,
                            const Array<Any>& inputs, const Array<Any>& attrs,
                            const Any& decision) {
  const Primitive& primitive = *kind->primitive;
  size_t fixed = 0, flat = 0, attributes = 0;
  for (ArgRole role : primitive.roles) {
    fixed += role == ArgRole::kInput;
    flat += role == ArgRole::kFlatInput;
    attributes += role == ArgRole::kAttr;
  }
  // Attributes that a later version added have defaults; traces written before lack them.
  bool fits = flat ? inputs.size() >= fixed : inputs.size() == fixed;
  if (!fits || attrs.size() > attributes) {
    TVM_FFI_THROW(ValueError) << "Trace: expected " << fixed << (flat ? " or more" : "")
                              << " inputs and " << attributes << " attributes of " << kind->name
                              << ", got " << inputs.size() << " and " << attrs.size();
  }
  std::vector<Any> args;
  size_t input = 0, attr = 0;
  for (size_t i = 0; i < primitive.roles.size(); ++i) {
    switch (primitive.roles[i]) {
      case ArgRole::kInput:
        args.push_back(inputs[input++]);
        break;
      case ArgRole::kFlatInput:
        args.push_back(Array<Any>(inputs.begin() + input, inputs.end()));
        break;
      case ArgRole::kAttr:
        args.push_back(attr < attrs.size() ? attrs[attr] : primitive.args[i + 1].value);
        ++attr;
        break;
      case ArgRole::kDecision:
        args.push_back(decision);
        break;
    }
  }
  std::vector<AnyView> views(args.begin(), args.end());
  Any result = CallPrimitive(self, primitive, views.data());
  if (primitive.returns_list) return result.cast<Array<Any>>();
  return result == nullptr ? Array<Any>() : Array<Any>{result};
}

void Trace::ApplyToSchedule(const Schedule& sch, bool remove_postproc,
                            const DecisionProvider& decide) const {
  std::unordered_map<const Object*, ObjectRef> rvs;
  for (const Instruction& inst : Selected(*this, remove_postproc)) {
    auto inputs = inst->inputs.Map([&](const Any& input) { return MapRVs(input, rvs); });
    Any decision = get()->GetDecision(inst);
    if (decide) decision = decide(inst, inputs, inst->attrs, decision);
    Array<Any> outputs = ApplyInstruction(sch.get(), inst->kind, inputs, inst->attrs, decision);
    if (outputs.size() != inst->outputs.size()) {
      TVM_FFI_THROW(ValueError) << "Trace: expected " << inst->outputs.size() << " results of "
                                << inst->kind->name << ", got " << outputs.size();
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      rvs[inst->outputs[i].as<Object>()] = outputs[i].cast<ObjectRef>();
    }
  }
}

Trace Trace::WithDecision(const Instruction& inst, Any decision, bool remove_postproc) const {
  auto selected = Selected(*this, remove_postproc);
  Map<Instruction, Any> decisions = get()->decisions;
  decisions.Set(inst, std::move(decision));
  return Trace(Array<Instruction>(selected.begin(), selected.end()), std::move(decisions));
}

Trace Trace::Simplified(bool remove_postproc) const {
  auto selected = Selected(*this, remove_postproc);
  std::vector<Instruction> kept;
  std::unordered_set<const Object*> used;
  Map<Instruction, Any> decisions;
  for (auto it = selected.rbegin(); it != selected.rend(); ++it) {
    const Instruction& inst = *it;
    bool needed = std::any_of(inst->outputs.begin(), inst->outputs.end(),
                              [&](const Any& out) { return used.count(out.as<Object>()); });
    if (inst->kind->is_pure && !needed) continue;
    for (const Any& input : inst->inputs) {
      VisitRVs(input, [&](const Object* rv) { used.insert(rv); });
    }
    kept.push_back(inst);
    Any decision = get()->GetDecision(inst);
    if (decision != nullptr) decisions.Set(inst, decision);
  }
  return Trace(Array<Instruction>(kept.rbegin(), kept.rend()), std::move(decisions));
}

void RVNames::Define(const Array<Any>& outputs) {
  for (const Any& out : outputs) {
    auto rv = out.cast<ObjectRef>();
    char letter = rv->IsInstance<BlockRVObj>() ? 'b' : rv->IsInstance<LoopRVObj>() ? 'l' : 'v';
    names_[rv.get()] = letter + std::to_string(names_.size());
  }
}
std::string RVNames::Of(const ObjectRef& rv) const {
  auto it = names_.find(rv.get());
  if (it != names_.end()) return it->second;
  bool is_rv =
      rv->IsInstance<BlockRVObj>() || rv->IsInstance<LoopRVObj>() || rv->IsInstance<VarObj>();
  return is_rv ? every_ : "";
}

}  // namespace tvm::tir
