// SPDX-License-Identifier: Apache-2.0
// Calls of composite functions of one backend become one function for that backend.
#include <algorithm>
#include <unordered_set>

#include "relax/fuse/groups.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/fusion_pattern.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// The composite function that a value calls, or null.
const FunctionObj* CompositeCallee(const IRModule& mod, const Expr& value, std::string* name) {
  auto* call = value.as<CallObj>();
  auto* callee = call ? call->op.as<GlobalVarObj>() : nullptr;
  GlobalVar var = callee ? mod->FindGlobalVar(callee->name_hint) : GlobalVar();
  auto* func = var.defined() ? mod->Lookup(var).as<FunctionObj>() : nullptr;
  if (!func || !func->attrs.Has("Composite")) return nullptr;
  *name = callee->name_hint;
  return func;
}

/// Groups of a graph without cycles, joined such that there are none between groups either. Levels
/// rise along every use, which keeps the searches short.
class AcyclicGroups {
 public:
  size_t Add(const std::vector<size_t>& uses) {
    size_t self = nodes_.size();
    nodes_.push_back({self, 0, {}});
    for (size_t use : uses) {
      size_t root = Root(use);
      nodes_[root].users.push_back(self);
      nodes_[self].level = std::max(nodes_[self].level, nodes_[root].level + 1);
    }
    return self;
  }
  size_t Root(size_t i) {
    while (nodes_[i].parent != i) i = nodes_[i].parent = nodes_[nodes_[i].parent].parent;
    return i;
  }
  /// Makes both one group unless a way from one to the other leads through a third.
  bool Join(size_t a, size_t b) {
    a = Root(a);
    b = Root(b);
    if (a == b) return true;
    if (LeadsAround(a, b) || LeadsAround(b, a)) return false;
    if (a > b) std::swap(a, b);
    nodes_[b].parent = a;
    auto& users = nodes_[b].users;
    nodes_[a].users.insert(nodes_[a].users.end(), users.begin(), users.end());
    users.clear();
    Raise(a, std::max(nodes_[a].level, nodes_[b].level));
    return true;
  }

 private:
  struct Node {
    size_t parent, level;
    std::vector<size_t> users;
  };
  /// The groups that use this one.
  const std::vector<size_t>& Users(size_t root) {
    std::vector<size_t>& users = nodes_[root].users;
    for (size_t& user : users) user = Root(user);
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    std::erase(users, root);
    return users;
  }
  bool LeadsAround(size_t from, size_t to) {
    std::vector<size_t> open;
    std::unordered_set<size_t> seen{to};
    for (size_t user : Users(from)) {
      if (seen.insert(user).second) open.push_back(user);
    }
    while (!open.empty()) {
      size_t at = open.back();
      open.pop_back();
      if (nodes_[at].level >= nodes_[to].level) continue;
      for (size_t user : Users(at)) {
        if (user == to) return true;
        if (seen.insert(user).second) open.push_back(user);
      }
    }
    return false;
  }
  void Raise(size_t root, size_t level) {
    std::vector<std::pair<size_t, size_t>> open{{root, level}};
    bool is_first = true;
    while (!open.empty()) {
      auto [at, least] = open.back();
      open.pop_back();
      if (!is_first && nodes_[at].level >= least) continue;
      is_first = false;
      nodes_[at].level = least;
      for (size_t user : Users(at)) open.emplace_back(user, least + 1);
    }
  }
  std::vector<Node> nodes_;
};

/// The calls of composite functions in a block, joined with those of their backend that they use.
Grouping BackendGroups(const IRModule& mod, const DataflowBlock& block) {
  AcyclicGroups groups;
  struct Member {
    const Object* id;
    std::string backend, callee;
  };
  std::vector<Member> members;
  std::unordered_map<const Object*, size_t> place;
  for (const Binding& binding : block->bindings) {
    Member member{binding->var->vid.get(), "", ""};
    if (auto* func = CompositeCallee(mod, ValueOf(binding), &member.callee))
      member.backend = BackendOf(func->GetAttr<String>("Composite").value());
    std::vector<size_t> uses;
    for (const Var& used : UsedVars(ValueOf(binding))) {
      auto it = place.find(used->vid.get());
      if (it != place.end()) uses.push_back(it->second);
    }
    size_t self = groups.Add(uses);
    place[member.id] = self;
    members.push_back(member);
    for (size_t use : uses) {
      if (!member.backend.empty() && members[use].backend == member.backend) groups.Join(use, self);
    }
  }
  Grouping result;
  std::unordered_map<size_t, size_t> number;
  for (size_t i = 0; i < members.size(); ++i) {
    auto& [id, backend, callee] = members[i];
    if (backend.empty()) continue;
    auto [it, is_new] = number.try_emplace(groups.Root(i), result.groups.size());
    if (is_new) {
      BindingGroup group;
      group.name = "fused";
      group.attrs = {{"Codegen", String(backend)}};
      group.binds_constants = true;
      result.groups.push_back(group);
    }
    bool is_fused = callee.starts_with("fused_");
    result.groups[it->second].name += "_" + (is_fused ? callee.substr(6) : callee);
    result.group_of[id] = it->second;
  }
  for (BindingGroup& group : result.groups)
    group.name += "_" + std::string(View(Any(group.attrs.at("Codegen")).cast<String>()));
  return result;
}

/// Composite functions that are called become local functions.
class CompositeInliner : public ExprMutator {
 public:
  explicit CompositeInliner(const IRModule& mod) : ExprMutator(mod), mod_(mod) {}
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    std::string name;
    auto* func = CompositeCallee(mod_, visited, &name);
    if (!func) return visited;
    auto it = locals_.find(name);
    if (it == locals_.end()) {
      Function local = CopyWithNewVars(ffi::GetRef<Function>(func));
      local = WithoutAttr(WithoutAttr(local, "Primitive"), tvm::attr::kGlobalSymbol);
      it = locals_.emplace(name, builder_->Emit(local)).first;
    }
    auto* call = visited.as<CallObj>();
    return Call(it->second, call->args, call->attrs, {}, call->span);
  }

 private:
  IRModule mod_;
  std::unordered_map<std::string, Var> locals_;
};

IRModule MergeCompositeFunctions(IRModule mod) {
  std::unordered_set<std::string> before;
  for (const auto& [var, func] : mod->functions) before.insert(var->name_hint);
  IRModule merged =
      ExtractGroups(mod, [&](const DataflowBlock& block) { return BackendGroups(mod, block); });
  Map<GlobalVar, BaseFunc> functions;
  std::unordered_set<std::string> called;
  for (const auto& [var, base] : merged->Sorted()) {
    BaseFunc func = base;
    if (!before.count(var->name_hint)) {
      Expr inlined = CompositeInliner(merged).VisitExpr(As<Function>(func));
      func = WithAttr(As<Function>(inlined), tvm::attr::kGlobalSymbol, var->name_hint);
    }
    functions.Set(var, func);
    if (!func.as<FunctionObj>()) continue;
    for (const GlobalVar& callee : AllGlobalVars(func)) called.insert(callee->name_hint);
  }
  for (const auto& [var, base] : merged->functions) {
    auto* func = base.as<FunctionObj>();
    if (func && func->attrs.Has("Composite") && !called.count(var->name_hint)) functions.erase(var);
  }
  return IRModule(functions, merged->attrs, merged->global_infos);
}
}  // namespace
TVM_RELAX_PASS(
    MergeCompositeFunctions, 0,
    R"(Calls of composite functions of one backend that follow each other become one function
{"Codegen": backend}, in which the composite functions are local.

lv = cls.fused_relax_matmul(x, w)
gv = cls.fused_relax_add(lv, b)
->
gv = cls.fused_relax_matmul_relax_add_backend(x, w, b))");
}  // namespace tvm::relax
