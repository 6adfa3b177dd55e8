// SPDX-License-Identifier: Apache-2.0
// Products of one left operand with several matrices as one product.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "relax/analysis/dims.h"
#include "relax/dpl/rewrite.h"
#include "relax/transform/products.h"
#include "tvm/ir/callback.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// A product of the block, and what follows it alone: a bias that is added, an activation.
struct Branch {
  const CallObj* product;
  Optional<Expr> bias;
  const OpObj* activation = nullptr;
  Var end;  // the variable of the last of them
};

class ParallelMatmuls {
 public:
  ParallelMatmuls(const BindingBlock& block, const Optional<ffi::Function>& check) : check_(check) {
    for (const Binding& binding : block->bindings) {
      auto* bind = binding.as<VarBindingObj>();
      if (!bind) continue;
      for (const Var& used : UsedVars(bind->value)) users_[used->vid.get()].push_back(bind);
      values_.Set(bind->var, bind->value);
      bindings_.push_back(bind);
    }
  }
  NewValues Combine() {
    std::vector<std::vector<Branch>> groups;
    std::unordered_map<const Object*, std::vector<size_t>> by_input;
    for (const VarBindingObj* bind : bindings_) {
      auto* call = bind->value.as<CallObj>();
      auto* input = call && call->Is(matmul_) ? call->args[0].as<VarObj>() : nullptr;
      if (!input || !DimsOfTensor(call->args[1]) || RankOf(call->args[1]) < 2) continue;
      Branch branch = Follow(call, bind->var);
      std::vector<size_t>& candidates = by_input[input->vid.get()];
      auto fits = std::find_if(candidates.begin(), candidates.end(),
                               [&](size_t i) { return AreAlike(groups[i][0], branch); });
      if (fits != candidates.end()) {
        groups[*fits].push_back(branch);
      } else {
        candidates.push_back(groups.size());
        groups.push_back({branch});
      }
    }
    NewValues result;
    for (auto& group : groups) {
      if (group.size() > 1) Join(group, &result);
    }
    return result;
  }

 private:
  static bool IsActivation(const OpObj* op) {
    static const std::vector<Op>& known =
        *new std::vector<Op>{Op::Get("relax.nn.relu"), Op::Get("relax.nn.gelu"),
                             Op::Get("relax.nn.gelu_tanh"), Op::Get("relax.nn.silu")};
    return std::any_of(known.begin(), known.end(), [&](const Op& o) { return o.get() == op; });
  }
  const VarBindingObj* OnlyUser(const Var& var) const {
    auto it = users_.find(var->vid.get());
    bool is_only = var.as<DataflowVarObj>() && it != users_.end() && it->second.size() == 1;
    return is_only ? it->second[0] : nullptr;
  }
  Branch Follow(const CallObj* product, Var end) const {
    Branch branch{product, {}, nullptr, end};
    const VarBindingObj* next = OnlyUser(end);
    auto* call = next ? next->value.as<CallObj>() : nullptr;
    if (call && call->Is(add_)) {
      Expr bias = call->args[call->args[0].same_as(end) ? 1 : 0];
      auto dims = DimsOfTensor(bias);
      auto last = DimsOfTensor(product->args[1]).value().back();
      bool fits = dims && dims.value().size() == 1 && !bias.same_as(end) &&
                  DimProver(nullptr).Compare(dims.value()[0], last) == DimsAre::kEqual;
      if (!fits) return branch;
      branch.bias = bias;
      branch.end = next->var;
      next = OnlyUser(branch.end);
      call = next ? next->value.as<CallObj>() : nullptr;
    }
    auto* op = call ? call->op.as<OpObj>() : nullptr;
    if (!op || !IsActivation(op)) return branch;
    branch.activation = op;
    branch.end = next->var;
    return branch;
  }
  /// Whether both can be columns of one product.
  static bool AreAlike(const Branch& a, const Branch& b) {
    const Expr &w = a.product->args[1], &v = b.product->args[1];
    auto dims = DimsOfTensor(w).value(), others = DimsOfTensor(v).value();
    if (dims.size() != others.size() || a.bias.has_value() != b.bias.has_value()) return false;
    dims.pop_back();
    others.pop_back();
    auto type = [](const Expr& e) { return GetStructInfoAs<TensorStructInfoObj>(e)->dtype; };
    return a.activation == b.activation && type(w) == type(v) &&
           OutTypeOf(a.product) == OutTypeOf(b.product) &&
           DimProver(nullptr).Compare(dims, others) == DimsAre::kEqual;
  }
  /// Without those whose weights or biases are computed from others of the group.
  void DropDependent(std::vector<Branch>* group) const {
    std::unordered_set<const Object*> products, seen;
    for (const Branch& branch : *group) products.insert(branch.product);
    auto depends = [&](auto& self, const Expr& expr) -> bool {
      if (StackIsLow()) return Recurse([&] { return self(self, expr); });
      if (products.count(expr.get())) return true;
      for (const Var& used : UsedVars(expr)) {
        auto value = values_.Get(used);
        if (value && seen.insert(used->vid.get()).second && self(self, value.value())) {
          seen.erase(used->vid.get());  // others that use it depend as well
          return true;
        }
      }
      return false;
    };
    std::erase_if(*group, [&](const Branch& branch) {
      return depends(depends, branch.product->args[1]) ||
             (branch.bias && depends(depends, branch.bias.value()));
    });
  }
  void Join(std::vector<Branch> group, NewValues* result) const {
    DropDependent(&group);
    auto columns = [](const Branch& b) {
      PrimExpr last = DimsOfTensor(b.product->args[1]).value().back();
      auto* number = last.as<IntImmObj>();
      return number ? number->value : -1;
    };
    // The last part may have any width: it is the rest.
    std::stable_sort(group.begin(), group.end(), [&](const Branch& a, const Branch& b) {
      return columns(a) >= 0 && columns(b) < 0;
    });
    while (group.size() > 1 && columns(group[group.size() - 2]) < 0) group.pop_back();
    if (group.size() < 2) return;
    const CallObj* first = group[0].product;
    Array<Expr> weights, biases;
    Ints places;
    int64_t place = 0;
    for (const Branch& branch : group) {
      weights.push_back(branch.product->args[1]);
      if (branch.bias) biases.push_back(branch.bias.value());
      place += columns(branch);
      if (&branch != &group.back()) places.push_back(IntImm::Int32(place));
    }
    if (check_) {
      Any accepted = CallBack(check_.value(), first->args[0], weights, biases, values_);
      auto is_true = accepted.try_cast<bool>();
      if (!is_true) {
        TVM_FFI_THROW(TypeError) << "CombineParallelMatmul: expected check to return a bool, got "
                                 << accepted.GetTypeKey();
      }
      if (!*is_true) return;
    }
    int64_t axis = RankOf(first->args[1]) - 1;
    Expr whole =
        Product(first->args[0], CallOperator("relax.concat", {weights, axis}), OutTypeOf(first));
    if (!biases.empty())
      whole = CallOperator("relax.add", {whole, CallOperator("relax.concat", {biases, 0})});
    if (group[0].activation) whole = Call(ffi::GetRef<Op>(group[0].activation), {whole});
    int64_t result_axis = std::max(RankOf(first->args[0]), axis + 1) - 1;
    Expr parts = CallOperator("relax.split", {whole, places, result_axis});
    for (size_t i = 0; i < group.size(); ++i)
      result->emplace_back(group[i].end, TupleGetItem(parts, static_cast<int64_t>(i)));
  }
  const Op matmul_ = Op::Get("relax.matmul"), add_ = Op::Get("relax.add");
  const Optional<ffi::Function>& check_;
  std::vector<const VarBindingObj*> bindings_;
  std::unordered_map<const Object*, std::vector<const VarBindingObj*>> users_;
  Map<Var, Expr> values_;
};
Function CombineParallelMatmul(Function func, IRModule, Optional<ffi::Function> check) {
  if (!CallsMatmul(func)) return func;
  return RewriteBlocks(
      func, "CombineParallelMatmul",
      [&](const BindingBlock& block) { return ParallelMatmuls(block, check).Combine(); }, false);
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    CombineParallelMatmul, 0,
    "matmul(x, a), matmul(x, b)  ->  the parts of matmul(x, concat((a, b))), with a bias and an "
    "activation that all of them have. check(x, [matrices], [biases], {variable: value}) may "
    "refuse.",
    Arg("check", nullptr));
}  // namespace tvm::relax
