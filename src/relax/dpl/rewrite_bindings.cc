// SPDX-License-Identifier: Apache-2.0
// Several bindings of a dataflow block rewritten together.
#include "relax/dpl/block_match.h"
#include "relax/dpl/rewrite.h"
#include "relax/dpl/scope.h"
#include "tir/text.h"
#include "tvm/ir/callback.h"

namespace tvm::relax {
namespace {
/// The bindings in an order in which values come before their uses.
class Sorter {
 public:
  Sorter(const char* name, const BindingBlock& block, const NewValues& changed) : name_(name) {
    for (const auto& [var, value] : changed) changed_[var->vid.get()] = value;
    for (const Binding& binding : block->bindings) waiting_[binding->var->vid.get()] = binding;
    for (const Binding& binding : block->bindings) Add(binding);
  }
  Array<Binding> Sorted() const { return Array<Binding>(sorted_.begin(), sorted_.end()); }

 private:
  enum class State { kWaiting, kOpen, kDone };
  void Add(const Binding& binding) {
    if (StackIsLow()) [[unlikely]]
      return Recurse([&] { Add(binding); });
    const Object* id = binding->var->vid.get();
    State& state = state_[id];
    if (state == State::kDone) return;
    if (state == State::kOpen) {
      TVM_FFI_THROW(ValueError) << name_
                                << ": expected values that do not depend on themselves, got one "
                                   "for '"
                                << binding->var->name_hint() << "'";
    }
    state = State::kOpen;
    auto it = changed_.find(id);
    Expr value = it == changed_.end() ? ValueOf(binding) : it->second;
    for (const Var& used : UsedVars(value)) {
      auto before = waiting_.find(used->vid.get());
      if (before != waiting_.end()) Add(before->second);
    }
    sorted_.push_back(it == changed_.end() ? binding
                                           : VarBinding(binding->var, value, binding->span));
    state_[id] = State::kDone;
  }
  const char* name_;
  std::unordered_map<const Object*, Expr> changed_;
  std::unordered_map<const Object*, Binding> waiting_;
  std::unordered_map<const Object*, State> state_;
  std::vector<Binding> sorted_;
};

class BlockRewriter : public ScopedMutator {
 public:
  BlockRewriter(const char* name, const BlockRule& rule, bool plain_blocks)
      : name_(name), rule_(rule), plain_blocks_(plain_blocks) {}
  bool changed = false;

  void VisitBindingBlock(const BindingBlock& block) final {
    if (!block.as<DataflowBlockObj>() && !(plain_blocks_ && IsPlainAndPure(block)))
      return ScopedMutator::VisitBindingBlock(block);
    BindingBlock current = Normal(block);
    constexpr int kMostRounds = 1000;
    for (int round = 0;; ++round) {
      NewValues values = rule_(current);
      if (values.empty()) break;
      changed = true;
      if (round == kMostRounds) {
        TVM_FFI_THROW(ValueError) << name_ << ": expected the rewriting to come to an end, got "
                                  << kMostRounds << " rounds in one block, the last one with the "
                                  << "value " << tir::TextOf(values.front().second);
      }
      Check(values, current);
      Array<Binding> sorted = Sorter(name_, current, values).Sorted();
      current = Normal(block.as<DataflowBlockObj>() ? DataflowBlock(sorted) : BindingBlock(sorted));
      CheckTypes(values, current);
    }
    builder_->AppendBlock(current);
    for (const Binding& binding : current->bindings) {
      if (!binding->var.as<DataflowVarObj>()) Define(binding->var);
    }
  }

 private:
  static bool IsPlainAndPure(const BindingBlock& block) {
    for (const Binding& binding : block->bindings) {
      auto* bind = binding.as<VarBindingObj>();
      if (!bind || bind->value.as<IfObj>() || FindImpureCall(bind->value)) return false;
    }
    return true;
  }
  BindingBlock Normal(const BindingBlock& block) {
    builder_->BeginSequence();
    ScopedMutator::VisitBindingBlock(block);
    Array<BindingBlock> blocks = builder_->EndSequence();
    return blocks.empty() ? BindingBlock(Array<Binding>()) : blocks[0];
  }
  void Check(const NewValues& values, const BindingBlock& block) const {
    std::unordered_set<const Object*> inside;
    for (const Binding& binding : block->bindings) inside.insert(binding->var->vid.get());
    for (const auto& [var, value] : values) {
      if (!inside.count(var->vid.get())) {
        TVM_FFI_THROW(ValueError) << name_ << ": expected new values of variables of the block, "
                                  << "got one for '" << var->name_hint() << "'";
      }
      for (const Var& used : FreeVars(value)) {
        if (InScope(used) || inside.count(used->vid.get())) continue;
        TVM_FFI_THROW(ValueError) << name_ << ": expected variables that are in scope in the new "
                                  << "value of '" << var->name_hint() << "', got '"
                                  << used->name_hint() << "'";
      }
    }
  }
  /// Raises when a new value cannot be what the one before was.
  void CheckTypes(const NewValues& values, const BindingBlock& after) const {
    std::unordered_map<const Object*, Var> now;
    for (const Binding& binding : after->bindings)
      now.emplace(binding->var->vid.get(), binding->var);
    for (const auto& [var, value] : values) {
      auto it = now.find(var->vid.get());
      if (it == now.end()) continue;
      StructInfo before = GetStructInfo(var), info = GetStructInfo(it->second);
      if (StructInfoBaseCheck(before, info) != BaseCheckResult::kFailL0) continue;
      TVM_FFI_THROW(TypeError) << name_ << ": expected " << tir::TextOf(before)
                               << " as the new value of '" << var->name_hint() << "', got "
                               << tir::TextOf(info) << ", which is " << tir::TextOf(value);
    }
  }
  const char* name_;
  const BlockRule& rule_;
  bool plain_blocks_;
};
}  // namespace

Function RewriteBlocks(const Function& func, const char* name, const BlockRule& rule,
                       bool plain_blocks) {
  return OnDeepStack([&] {
    BlockRewriter mutator(name, rule, plain_blocks);
    auto after = As<Function>(mutator.VisitExpr(func));
    return mutator.changed ? RemoveAllUnused(after) : func;
  });
}
BlockRule RuleOf(const PatternContext& context, const RewriteMatch& rewrite) {
  return [=](const BindingBlock& block) {
    NewValues result;
    std::unordered_set<const Object*> taken;
    Map<Var, Expr> values;
    for (const Binding& binding : block->bindings) values.Set(binding->var, ValueOf(binding));
    BlockMatch search(context, block);
    while (const PatternMatch* match = search.Next(taken)) {
      Map<Var, Expr> replacements = rewrite(*match, values);
      if (replacements.empty()) continue;
      for (const DFPattern& pattern : match->Patterns()) {
        auto* var = (*match)[pattern].as<VarObj>();
        if (var && !pattern.as<WildcardPatternObj>()) taken.insert(var->vid.get());
      }
      for (const auto& [var, value] : replacements) {
        taken.insert(var->vid.get());
        result.emplace_back(var, value);
      }
    }
    return result;
  };
}
Function RewriteBindings(const PatternContext& context, const RewriteBindingsFn& rewriter,
                         const Function& func) {
  auto rewrite = [&](const PatternMatch& match, const Map<Var, Expr>& values) {
    return rewriter(VarsOf(match), values);
  };
  return RewriteBlocks(func, "rewrite_bindings", RuleOf(context, rewrite), false);
}

namespace {
Function RewriteBindingsBy(PatternContext ctx, ffi::Function rewriter, Function func) {
  return RewriteBindings(
      ctx,
      [&](const Map<DFPattern, Var>& matches, const Map<Var, Expr>& values) {
        Any result = CallBack(rewriter, matches, values);
        if (result == nullptr) return Map<Var, Expr>();
        auto replacements = result.try_cast<Map<Var, Expr>>();
        if (!replacements) {
          TVM_FFI_THROW(TypeError) << "rewrite_bindings: expected the rewriter to return a "
                                      "dictionary from variables to expressions, got "
                                   << result.GetTypeKey();
        }
        return *replacements;
      },
      func);
}
TVM_REGISTER() {
  Def("relax.dpl.rewrite_bindings", &RewriteBindingsBy,
      "The function with new values rewriter({pattern: variable}, {variable: value}) of variables "
      "for every match of the context in a dataflow block, until there is none.",
      Arg("ctx"), Arg("rewriter"), Arg("func"));
}
}  // namespace
}  // namespace tvm::relax
