// SPDX-License-Identifier: Apache-2.0
// Contexts: patterns of several bindings of a dataflow block, and the search for them.
#include <algorithm>

#include "relax/analysis/dims.h"
#include "relax/dpl/block_match.h"
#include "tvm/relax/analysis.h"

namespace tvm::relax {
namespace {
thread_local std::vector<PatternContext> open_contexts;

/// Patterns that stand for a computation, of which there is one per binding.
bool IsComputation(const DFPattern& pattern) {
  if (auto* attr = pattern.as<AttrPatternObj>()) return IsComputation(attr->pattern);
  if (auto* kind = pattern.as<StructInfoPatternObj>()) return IsComputation(kind->pattern);
  return pattern.as<CallPatternObj>() || pattern.as<TupleGetItemPatternObj>();
}
/// What a call works on, tuples taken apart, without the function it calls.
std::vector<Expr> FlatArguments(const Expr& value) {
  std::vector<Expr> flat;
  auto add = [&](auto& self, const Expr& e) -> void {
    if (auto* tuple = e.as<TupleObj>()) {
      for (const Expr& field : tuple->fields) self(self, field);
    } else if (!e.as<GlobalVarObj>() && !e.as<ExternFuncObj>()) {
      flat.push_back(e);
    }
  };
  if (auto* call = value.as<CallObj>()) {
    for (const Expr& arg : call->args) add(add, arg);
  } else if (auto* item = value.as<TupleGetItemObj>()) {
    add(add, item->tuple_value);
  } else if (value.as<TupleObj>()) {
    add(add, value);
  }
  return flat;
}
}  // namespace

UseConstraint::UseConstraint(DFPattern producer, DFPattern consumer, int64_t index, bool only) {
  *this = New<UseConstraint>([&](UseConstraintObj* n) {
    n->producer = std::move(producer);
    n->consumer = std::move(consumer);
    n->index = index;
    n->only = only;
  });
}
void PatternSeqObj::Init() {
  if (patterns.empty()) TVM_FFI_THROW(ValueError) << "PatternSeq: expected patterns, got none";
}
PatternContext PatternContext::Create() {
  return New<PatternContext>([](PatternContextObj*) {});
}
void PatternContext::Add(const DFConstraint& constraint) const {
  const_cast<PatternContextObj*>(get())->constraints.push_back(constraint);
}

// ---- matching ---------------------------------------------------------------------------------
BlockMatch::BlockMatch(const PatternContext& context, const BindingBlock& block)
    : context_(context) {
  for (const DFConstraint& constraint : context->constraints) {
    if (auto* use = constraint.as<UseConstraintObj>()) uses_.push_back(use);
  }
  std::unordered_set<const Object*> seen;
  auto add = [&](const Var& var) {
    if (seen.insert(var->vid.get()).second) vars_.push_back(var);
  };
  for (const Binding& binding : block->bindings) {
    Expr value = ValueOf(binding);
    for (const Var& used : UsedVars(value)) {
      add(used);
      users_[used->vid.get()].push_back(binding->var);
    }
    add(binding->var);
    if (binding.as<VarBindingObj>()) values_[binding->var->vid.get()] = value;
    if (!binding->var.as<DataflowVarObj>()) outputs_.insert(binding->var->vid.get());
  }
  OrderPatterns();
}
void BlockMatch::OrderPatterns() {
  std::vector<DFPattern> nodes;
  std::unordered_set<const Object*> seen;
  auto add = [&](const DFPattern& pattern, std::vector<DFPattern>* to) {
    if (seen.insert(pattern.get()).second) to->push_back(pattern);
  };
  for (const UseConstraintObj* use : uses_) {
    add(use->producer, &nodes);
    add(use->consumer, &nodes);
  }
  std::stable_partition(nodes.begin(), nodes.end(), IsComputation);
  seen.clear();
  for (const DFPattern& root : nodes) {
    add(root, &order_);
    for (size_t done = order_.size() - 1; done < order_.size(); ++done) {
      DFPattern pattern = order_[done];
      for (const UseConstraintObj* use : uses_) {
        if (use->producer.same_as(pattern)) add(use->consumer, &order_);
        if (use->consumer.same_as(pattern)) add(use->producer, &order_);
      }
    }
  }
}

const PatternMatch* BlockMatch::Next(const std::unordered_set<const Object*>& taken) {
  if (order_.empty()) return nullptr;
  taken_ = &taken;
  for (; next_ < vars_.size(); ++next_) {
    match_.emplace([this](const Var& var) -> Optional<Expr> {
      auto it = values_.find(var->vid.get());
      return it == values_.end() ? Optional<Expr>() : it->second;
    });
    auto rest = [&] { return IsFree(0) && Step(1); };
    if (!match_->Find(order_[0], vars_[next_], rest)) continue;
    ++next_;
    return &*match_;
  }
  return nullptr;
}
bool BlockMatch::Step(size_t k) {
  if (k == order_.size()) {
    return std::all_of(uses_.begin(), uses_.end(), [&](auto* use) { return Holds(use); }) &&
           SameShapesHold() && match_->ShapesHold();
  }
  const DFPattern& pattern = order_[k];
  auto rest = [&] {
    if (!IsFree(k)) return false;
    for (const UseConstraintObj* use : uses_) {
      bool concerned = use->producer.same_as(pattern) || use->consumer.same_as(pattern);
      bool known = match_->Has(use->producer) && match_->Has(use->consumer);
      if (concerned && known && !Holds(use)) return false;
    }
    return Step(k + 1);
  };
  if (match_->Has(pattern)) return rest();
  for (const Expr& candidate : Candidates(pattern)) {
    if (match_->Find(pattern, candidate, rest)) return true;
  }
  return false;
}
/// Where the pattern can be, seen from one that has its place already.
std::vector<Expr> BlockMatch::Candidates(const DFPattern& pattern) const {
  for (const UseConstraintObj* use : uses_) {
    if (use->producer.same_as(pattern) && match_->Has(use->consumer))
      return FlatArguments(ValueOfPattern(use->consumer));
    if (!use->consumer.same_as(pattern) || !match_->Has(use->producer)) continue;
    auto* var = (*match_)[use->producer].as<VarObj>();
    auto it = var ? users_.find(var->vid.get()) : users_.end();
    if (it == users_.end()) return {};
    return std::vector<Expr>(it->second.begin(), it->second.end());
  }
  return vars_;
}
/// Two computations are two bindings, and not of those that are taken.
bool BlockMatch::IsFree(size_t k) const {
  if (!IsComputation(order_[k])) return true;
  auto* var = (*match_)[order_[k]].as<VarObj>();
  if (!var) return true;
  if (taken_->count(var->vid.get())) return false;
  for (size_t i = 0; i < k; ++i) {
    if (!IsComputation(order_[i])) continue;
    auto* other = (*match_)[order_[i]].as<VarObj>();
    if (other && other->vid.same_as(var->vid)) return false;
  }
  return true;
}
bool BlockMatch::Holds(const UseConstraintObj* use) const {
  const Expr& producer = (*match_)[use->producer];
  Expr consumer = ValueOfPattern(use->consumer);
  auto is_producer = [&](const Expr& e) { return match_->IsSame(e, producer); };
  std::vector<Expr> flat = FlatArguments(consumer);
  auto* call = consumer.as<CallObj>();
  bool used;
  if (use->index < 0) {
    used = std::any_of(flat.begin(), flat.end(), is_producer) ||
           (call && std::any_of(call->args.begin(), call->args.end(), is_producer));
  } else {
    size_t i = use->index;
    used = (i < flat.size() && is_producer(flat[i])) ||
           (call && i < call->args.size() && is_producer(call->args[i]));
  }
  if (!used || !use->only) return used;
  auto *var = producer.as<VarObj>(), *user = (*match_)[use->consumer].as<VarObj>();
  if (!var || !user || outputs_.count(var->vid.get())) return false;
  const std::vector<Var>& users = users_.at(var->vid.get());
  return std::all_of(users.begin(), users.end(),
                     [&](const Var& other) { return other->vid.same_as(user->vid); });
}
bool BlockMatch::SameShapesHold() const {
  for (const DFConstraint& constraint : context_->constraints) {
    auto* same = constraint.as<SameShapeConstraintObj>();
    if (!same) continue;
    Optional<Array<PrimExpr>> first;
    for (const DFPattern& pattern : same->args) {
      if (!match_->Has(pattern)) return false;
      auto* tensor = GetStructInfoAs<TensorStructInfoObj>((*match_)[pattern]);
      if (!tensor || !tensor->Dims()) return false;
      if (!first) first = tensor->Dims();
      if (DimProver(nullptr).Compare(first.value(), tensor->Dims().value()) != DimsAre::kEqual)
        return false;
    }
  }
  return true;
}

Map<DFPattern, Var> VarsOf(const PatternMatch& match) {
  Map<DFPattern, Var> found;
  for (const DFPattern& pattern : match.Patterns()) {
    if (auto* var = match[pattern].as<VarObj>()) found.Set(pattern, ffi::GetRef<Var>(var));
  }
  return found;
}
Optional<Map<DFPattern, Var>> MatchDataflowBlock(const PatternContext& context,
                                                 const DataflowBlock& block) {
  return OnDeepStack([&]() -> Optional<Map<DFPattern, Var>> {
    BlockMatch search(context, block);
    const PatternMatch* match = search.Next({});
    return match ? VarsOf(*match) : Optional<Map<DFPattern, Var>>();
  });
}

namespace {
TVM_REGISTER() {
  RegisterBase<DFConstraintObj>("A condition on several patterns of a context.");
  RegisterNode<SameShapeConstraintObj>("Tensors of one shape.");
  RegisterNode<UseConstraintObj>("One pattern is used by another, as the argument of that index.");
  RegisterNode<PatternSeqObj>("Patterns of which each is used by the next.");
  RegisterNode<PatternContextObj>("Patterns of several bindings, by the constraints between them.");
  Def(
      "relax.dpl.PatternContext._enter", [](PatternContext c) { open_contexts.push_back(c); }, "",
      Arg("self"));
  Def(
      "relax.dpl.PatternContext._exit",
      [](PatternContext c) {
        if (open_contexts.empty() || !open_contexts.back().same_as(c)) {
          TVM_FFI_THROW(RuntimeError)
              << "PatternContext: expected the innermost context to be left first";
        }
        open_contexts.pop_back();
      },
      "", Arg("self"));
  Def(
      "relax.dpl._current_context",
      []() -> Optional<PatternContext> {
        if (open_contexts.empty()) return std::nullopt;
        return open_contexts.back();
      },
      "");
  Def(
      "relax.dpl.PatternContext.add_constraint",
      [](PatternContext c, DFConstraint constraint) { c.Add(constraint); },
      "Adds a condition on patterns.", Arg("self"), Arg("constraint"));
  Def("relax.dpl.PatternContext.match_dfb", &MatchDataflowBlock,
      "The variables of the block that the patterns stand for, or None.", Arg("self"), Arg("dfb"));
}
}  // namespace
}  // namespace tvm::relax
