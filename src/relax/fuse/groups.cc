// SPDX-License-Identifier: Apache-2.0
// Groups of bindings become private functions.
#include "relax/fuse/groups.h"

#include <unordered_set>

#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/expr_functor.h"

namespace tvm::relax {
namespace {
using Ids = std::unordered_set<const Object*>;

/// Makes the function of some bindings: what they use and do not define becomes a parameter.
class GroupFunction : public ExprMutator {
 public:
  GroupFunction(const BindingGroup& group, const std::vector<Binding>& bindings, const Ids& results)
      : group_(group), bindings_(bindings), results_(results) {}

  Function Make() {
    Array<Binding> inside;
    Array<Expr> returned;
    for (const Binding& binding : bindings_) {
      Expr before = ValueOf(binding), value = VisitExpr(before);
      // Parameters are what the arguments were: nothing is known anew.
      if (!value->struct_info_) UpdateStructInfo(value, GetStructInfo(before));
      bool is_result = results_.count(binding->var->vid.get()) > 0;
      StructInfo info = GetStructInfo(binding->var);
      String name = binding->var->name_hint();
      Var var = is_result ? Var(name, info) : DataflowVar(name, info);
      SetVarRemap(binding->var->vid, var);
      defined_.insert(binding->var->vid.get());
      if (is_result) returned.push_back(var);
      if (auto* cast = binding.as<MatchCastObj>()) {
        inside.push_back(MatchCast(var, value, cast->struct_info, binding->span));
      } else {
        inside.push_back(VarBinding(var, value, binding->span));
      }
    }
    Expr result = returned.size() == 1 ? returned[0] : Tuple(returned);
    SeqExpr body({DataflowBlock(inside)}, result);
    UpdateStructInfo(body, GetStructInfo(result));
    DictAttrs attrs(group_.attrs);
    Function func(params_, body, GetStructInfo(result), true, attrs);
    Array<tir::Var> free = FreeSymbolicVars(func);
    if (!free.empty()) {
      ShapeExpr shape(Array<PrimExpr>(free.begin(), free.end()));
      params_.push_back(Var("tir_vars", GetStructInfo(shape)));
      args.push_back(shape);
      func = Function(params_, body, GetStructInfo(result), true, attrs);
    }
    return CopyWithNewVars(func);
  }
  Array<Expr> args;  // what the parameters stand for

 private:
  Expr VisitExpr_(const VarObj* op) final {
    if (defined_.count(op->vid.get())) return ExprMutator::VisitExpr_(op);
    return Param(op->vid.get(), ffi::GetRef<Expr>(op), op->name_hint());
  }
  Expr VisitExpr_(const ConstantObj* op) final {
    auto constant = ffi::GetRef<Expr>(op);
    if (group_.binds_constants) return constant;
    return Param(op, constant, "param_" + std::to_string(constants_++));
  }
  Expr Param(const Object* key, const Expr& arg, const String& name) {
    auto it = param_of_.find(key);
    if (it != param_of_.end()) return it->second;
    Var param(name, GetStructInfo(arg));
    params_.push_back(param);
    args.push_back(arg);
    param_of_.emplace(key, param);
    return param;
  }
  const BindingGroup& group_;
  const std::vector<Binding>& bindings_;
  const Ids& results_;
  Array<Var> params_;
  std::unordered_map<const Object*, Var> param_of_;
  Ids defined_;
  int constants_ = 0;
};

/// The bindings of a block with those of each group next to each other, and the variables that are
/// seen outside of their group.
class GroupOrder {
 public:
  GroupOrder(const DataflowBlock& block, const Grouping& grouping) : grouping_(grouping) {
    size_t singles = grouping.groups.size();
    for (const Binding& binding : block->bindings) {
      auto it = grouping.group_of.find(binding->var->vid.get());
      size_t unit = it == grouping.group_of.end() ? singles++ : it->second;
      units_.resize(std::max(units_.size(), unit + 1));
      units_[unit].bindings.push_back(binding);
      unit_of_[binding->var->vid.get()] = unit;
      order_.push_back(unit);
      if (it != grouping.group_of.end() && !binding->var.as<DataflowVarObj>())
        escaping.insert(binding->var->vid.get());
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      for (const Var& used : UsedVars(ValueOf(block->bindings[i]))) {
        auto it = unit_of_.find(used->vid.get());
        if (it == unit_of_.end() || it->second == order_[i]) continue;
        units_[order_[i]].needs.push_back(it->second);
        escaping.insert(used->vid.get());
      }
    }
    // A group is where its last binding was, unless somebody before needs it.
    std::vector<size_t> left(units_.size());
    for (size_t unit : order_) ++left[unit];
    for (size_t unit : order_) {
      if (--left[unit] == 0) Place(unit);
    }
  }
  Array<Binding> bindings;
  Ids escaping;

 private:
  struct Unit {
    std::vector<Binding> bindings;
    std::vector<size_t> needs;
    enum { kWaits, kOpen, kPlaced } state = kWaits;
  };
  void Place(size_t index) {
    if (StackIsLow()) return Recurse([&] { Place(index); });
    Unit& unit = units_[index];
    if (unit.state == Unit::kPlaced) return;
    if (unit.state == Unit::kOpen) {
      bool is_group = index < grouping_.groups.size();
      TVM_FFI_THROW(ValueError) << "expected groups of operators that do not need each other's "
                                   "results, got a cycle through "
                                << (is_group ? grouping_.groups[index].name
                                             : std::string(unit.bindings[0]->var->name_hint()));
    }
    unit.state = Unit::kOpen;
    for (size_t need : unit.needs) Place(need);
    unit.state = Unit::kPlaced;
    for (const Binding& binding : unit.bindings) bindings.push_back(binding);
  }
  const Grouping& grouping_;
  std::vector<Unit> units_;  // the groups, then what belongs to none
  std::unordered_map<const Object*, size_t> unit_of_;
  std::vector<size_t> order_;  // the unit of each binding
};

class GroupExtractor : public ExprMutator {
 public:
  GroupExtractor(const IRModule& mod, const FindGroups& find) : ExprMutator(mod), find_(find) {}
  Function VisitFunction(const GlobalVar& var, const Function& func) final {
    bool is_done = func->HasNonzeroAttr("Primitive") || func->attrs.Has("Codegen");
    return is_done ? func : ExprMutator::VisitFunction(var, func);
  }
  void VisitBindingBlock(const BindingBlock& block) final {
    auto* flow = block.as<DataflowBlockObj>();
    if (!flow) return ExprMutator::VisitBindingBlock(block);
    grouping_ = find_(ffi::GetRef<DataflowBlock>(flow));
    if (grouping_.groups.empty()) return ExprMutator::VisitBindingBlock(block);
    GroupOrder order(ffi::GetRef<DataflowBlock>(flow), grouping_);
    escaping_ = std::move(order.escaping);
    left_.assign(grouping_.groups.size(), 0);
    for (const auto& [id, group] : grouping_.group_of) ++left_[group];
    ExprMutator::VisitBindingBlock(DataflowBlock(order.bindings));
  }
  void VisitBinding(const Binding& binding) final {
    auto it = grouping_.group_of.find(binding->var->vid.get());
    if (it == grouping_.group_of.end()) return ExprMutator::VisitBinding(binding);
    open_.push_back(binding);
    if (--left_[it->second] == 0) EmitCall(grouping_.groups[it->second]);
  }

 private:
  void EmitCall(const BindingGroup& group) {
    std::vector<Binding> bindings = std::move(open_);
    open_.clear();
    GroupFunction maker(group, bindings, escaping_);
    GlobalVar callee = builder_->AddFunction(maker.Make(), group.name);
    Expr call = Call(callee, VisitExprs(maker.args));
    std::vector<Binding> results;
    for (const Binding& binding : bindings) {
      if (escaping_.count(binding->var->vid.get())) results.push_back(binding);
    }
    if (results.size() != 1) call = builder_->Emit(call);
    for (size_t i = 0; i < results.size(); ++i) {
      VarBinding result(results[i]->var, ValueOf(results[i]), results[i]->span);
      bool is_only = results.size() == 1;
      ReEmitBinding(result.get(), is_only ? call : TupleGetItem(call, static_cast<int64_t>(i)));
    }
  }
  const FindGroups& find_;
  Grouping grouping_;  // of the block that is visited
  Ids escaping_;
  std::vector<size_t> left_;  // bindings of each group that are to come
  std::vector<Binding> open_;
};
}  // namespace

IRModule ExtractGroups(const IRModule& mod, const FindGroups& find) {
  return OnDeepStack([&] { return GroupExtractor(mod, find).VisitFunctions(); });
}

}  // namespace tvm::relax
