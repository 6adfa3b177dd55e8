// SPDX-License-Identifier: Apache-2.0
// How long the values of a function are needed, and which of them share memory.
#include "lifetime.h"

#include <algorithm>
#include <unordered_set>

#include "tvm/relax/expr_functor.h"

namespace tvm::relax {

bool HoldsMemory(const StructInfo& info) {
  if (auto* tuple = info.as<TupleStructInfoObj>()) {
    return Recurse([&] {
      return std::any_of(tuple->fields.begin(), tuple->fields.end(),
                         [](const StructInfo& field) { return HoldsMemory(field); });
    });
  }
  return !info.as<PrimStructInfoObj>() && !info.as<ShapeStructInfoObj>();
}

namespace {
bool HoldsObject(const StructInfo& info) {
  if (auto* tuple = info.as<TupleStructInfoObj>()) {
    return Recurse([&] {
      return std::any_of(tuple->fields.begin(), tuple->fields.end(),
                         [](const StructInfo& field) { return HoldsObject(field); });
    });
  }
  return info.as<ObjectStructInfoObj>() || info.as<FuncStructInfoObj>();
}
/// Operators whose result is in the memory of their first argument.
bool IsView(const OpObj* op) {
  static const auto* views = new std::unordered_set<const Object*>([] {
    std::unordered_set<const Object*> ops;
    for (const char* name :
         {"relax.reshape", "relax.memory.view", "relax.memory.ensure_zero_offset",
          "relax.to_vdevice", "relax.hint_on_device", "relax.builtin.stop_lift_params",
          "relax.memory.alloc_tensor", "relax.vm.alloc_tensor"})
      ops.insert(Op::Get(name).get());
    return ops;
  }());
  return views->count(op);
}
bool IsNewMemory(const OpObj* op) {
  static const OpObj *tensor = Op::Get("relax.builtin.alloc_tensor").get(),
                     *storage = Op::Get("relax.memory.alloc_storage").get(),
                     *vm_storage = Op::Get("relax.vm.alloc_storage").get();
  return op == tensor || op == storage || op == vm_storage;
}
/// Whether a call that gives nothing back may keep what it is given: it was called for some reason.
/// A function that gets a tensor nobody has used yet was called to fill it.
bool MayStore(const CallObj* call, const std::vector<LiveValue*>& given) {
  auto* packed = call->op.as<ExternFuncObj>();
  if (!packed) return false;
  std::string_view name = View(packed->global_symbol);
  if (name.rfind("vm.builtin.", 0) == 0 || name.rfind("relax.run.", 0) == 0) return false;
  return std::none_of(given.begin(), given.end(), [](const LiveValue* value) {
    auto* made = value->value.defined() ? value->value.as<CallObj>() : nullptr;
    auto* op = made ? made->op.as<OpObj>() : nullptr;
    return op && (IsNewMemory(op) || IsView(op)) && !value->IsUsed();
  });
}

class LifetimeFinder : public ExprVisitor {
 public:
  explicit LifetimeFinder(OpaqueCalls opaque) : opaque_(opaque) {}
  Lifetimes Run(const Function& func) {
    open_.push_back({OpenScope(), 0});
    for (const Var& param : func->params) Define(param, Expr(nullptr))->is_leaf = true;
    for (LiveValue* value : VisitSeq(func->body)) value->escapes = true;
    Propagate();
    return std::move(result_);
  }

 private:
  struct Scope {
    int id, position;
  };
  int OpenScope() {
    result_.scopes.emplace_back();
    return static_cast<int>(result_.scopes.size()) - 1;
  }
  LiveValue* Define(const Var& var, const Expr& value) {
    LiveValue& live = result_.values.emplace_back();
    live.var = var;
    live.value = value;
    live.scope = open_.back().id;
    if (value.defined()) live.begin = live.end = open_.back().position;
    depth_of_[live.scope] = open_.size() - 1;
    result_.by_id[var->vid.get()] = &live;
    return &live;
  }
  LiveValue* Find(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    if (!var) return nullptr;
    auto it = result_.by_id.find(var->vid.get());
    return it == result_.by_id.end() ? nullptr : it->second;
  }
  /// The values that an expression's value is made of.
  void CollectLeaves(const Expr& expr, std::vector<LiveValue*>* leaves) const {
    if (LiveValue* value = Find(expr)) leaves->push_back(value);
    if (auto* tuple = expr.as<TupleObj>()) {
      Recurse([&] {
        for (const Expr& field : tuple->fields) CollectLeaves(field, leaves);
      });
    }
  }
  void VisitExpr_(const VarObj* op) final {
    auto it = result_.by_id.find(op->vid.get());
    if (it == result_.by_id.end()) return;
    LiveValue* value = it->second;
    value->end = std::max(value->end, open_[depth_of_[value->scope]].position);
  }
  /// What a local function uses may be kept by it.
  void VisitExpr_(const FunctionObj* op) final {
    for (const Var& used : UsedIn(op)) {
      if (LiveValue* value = Find(used)) {
        VisitExpr(used);
        value->escapes = true;
      }
    }
  }
  static std::vector<Var> UsedIn(const FunctionObj* op) {
    struct Finder : ExprVisitor {
      std::vector<Var> used;
      void VisitExpr_(const VarObj* var) final { used.push_back(ffi::GetRef<Var>(var)); }
    } finder;
    finder.VisitExpr(op->body);
    return finder.used;
  }

  void VisitBinding_(const VarBindingObj* binding) final {
    std::vector<LiveValue*> bases;
    if (auto* branch = binding->value.as<IfObj>()) {
      VisitExpr(branch->cond);
      for (const SeqExpr& seq : {branch->true_branch, branch->false_branch}) {
        open_.push_back({OpenScope(), 0});
        std::vector<LiveValue*> inner = VisitSeq(seq);
        open_.pop_back();
        AddOuterBases(inner, &bases);
      }
    } else {
      AddBases(binding, &bases);  // asks what was used before
      VisitExpr(binding->value);
    }
    Define(binding->var, binding->value)->bases = std::move(bases);
  }
  void VisitBinding_(const MatchCastObj* binding) final {
    VisitExpr(binding->value);
    LiveValue* value = Define(binding->var, binding->value);
    CollectLeaves(binding->value, &value->bases);
  }
  void VisitBinding(const Binding& binding) final {
    result_.scopes[open_.back().id].push_back(binding.get());
    ExprVisitor::VisitBinding(binding);
    ++open_.back().position;
  }
  /// Returns the values that leave the sequence.
  std::vector<LiveValue*> VisitSeq(const SeqExpr& seq) {
    for (const BindingBlock& block : seq->blocks) VisitBindingBlock(block);
    VisitExpr(seq->body);
    std::vector<LiveValue*> leaving;
    CollectLeaves(seq->body, &leaving);
    for (LiveValue* value : leaving) {
      if (value->scope == open_.back().id) value->end = LiveValue::kForever;
    }
    return leaving;
  }
  /// What a branch gives is made of values of its own, which leave it, and of values around it.
  void AddOuterBases(const std::vector<LiveValue*>& given, std::vector<LiveValue*>* bases) {
    std::vector<LiveValue*> open = given;
    std::unordered_set<LiveValue*> seen;
    while (!open.empty()) {
      LiveValue* value = open.back();
      open.pop_back();
      if (!seen.insert(value).second) continue;
      bool is_outside = depth_of_[value->scope] < open_.size() &&
                        open_[depth_of_[value->scope]].id == value->scope;
      if (is_outside) {
        bases->push_back(value);
      } else {
        open.insert(open.end(), value->bases.begin(), value->bases.end());
      }
    }
  }
  void AddBases(const VarBindingObj* binding, std::vector<LiveValue*>* bases) {
    const Expr& value = binding->value;
    if (value.as<VarObj>() || value.as<TupleObj>()) return CollectLeaves(value, bases);
    if (auto* item = value.as<TupleGetItemObj>()) {
      LiveValue* tuple = Find(item->tuple_value);
      while (tuple && tuple->IsAlias()) tuple = Find(tuple->value);
      auto* known = tuple && tuple->value.defined() ? tuple->value.as<TupleObj>() : nullptr;
      // A known tuple's item is the field, whatever becomes of the tuple.
      return CollectLeaves(known ? Expr(known->fields[item->index]) : item->tuple_value, bases);
    }
    auto* call = value.as<CallObj>();
    if (!call) return;
    auto* op = call->op.as<OpObj>();
    if (op && IsNewMemory(op)) return;
    if (op && IsView(op)) return CollectLeaves(call->args[0], bases);
    if (opaque_ == OpaqueCalls::kKeepNothing) return;
    StructInfo info = GetStructInfo(binding->var);
    std::vector<LiveValue*> given;
    if (LiveValue* callee = Find(call->op)) given.push_back(callee);
    for (const Expr& arg : call->args) CollectLeaves(arg, &given);
    if (!HoldsMemory(info)) {
      if (MayStore(call, given)) {
        for (LiveValue* value : given) value->escapes = true;
      }
      return;
    }
    if (HoldsObject(info)) {
      for (LiveValue* value : given) value->escapes = true;
    }
    bases->insert(bases->end(), given.begin(), given.end());
  }

  /// From what is made to what it is made of: bases are bound before.
  void Propagate() {
    for (auto it = result_.values.rbegin(); it != result_.values.rend(); ++it) {
      for (LiveValue* base : it->bases) {
        base->escapes |= it->escapes;
        if (base->scope == it->scope) base->end = std::max(base->end, it->end);
      }
    }
  }

  OpaqueCalls opaque_;
  Lifetimes result_;
  std::vector<Scope> open_;
  std::unordered_map<int, size_t> depth_of_;  // of a scope that has values: its place in open_
};
}  // namespace

Lifetimes FindLifetimes(const Function& func, OpaqueCalls opaque) {
  return LifetimeFinder(opaque).Run(func);
}

}  // namespace tvm::relax
