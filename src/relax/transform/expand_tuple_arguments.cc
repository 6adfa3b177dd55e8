// SPDX-License-Identifier: Apache-2.0
// Tuples among the parameters of private functions as parameters of their own.
#include "relax/transform/signature.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// The parameter as leaves, which are added to `params`, and tuples of them.
Expr Expanded(const String& name, const StructInfo& info, const Var& param, Array<Var>* params) {
  auto* tuple = info.as<TupleStructInfoObj>();
  if (!tuple) {
    Var leaf = param.defined() ? param : Var(name, info);
    params->push_back(leaf);
    return leaf;
  }
  Array<Expr> fields;
  for (size_t i = 0; i < tuple->fields.size(); ++i)
    fields.push_back(Expanded(name + "_" + std::to_string(i), tuple->fields[i], Var(), params));
  return Tuple(fields);
}
/// The leaves of an argument of that kind.
void AddItems(const StructInfo& info, const Expr& arg, Array<Expr>* args) {
  auto* tuple = info.as<TupleStructInfoObj>();
  if (!tuple) return args->push_back(arg);
  auto* known = arg.as<TupleObj>();
  for (size_t i = 0; i < tuple->fields.size(); ++i)
    AddItems(tuple->fields[i], known ? known->fields[i] : Expr(TupleGetItem(arg, i)), args);
}

IRModule ExpandTupleArguments(IRModule mod) {
  std::unordered_map<std::string, NewSignature> changes;
  for (const auto& [name, func] : PrivateCallees(mod)) {
    Array<Var> params;
    Array<StructInfo> infos;
    VarReplacer replacer;
    for (const Var& param : func->params) {
      infos.push_back(GetStructInfo(param));
      Expr expanded = Expanded(param->name_hint(), infos.back(), param, &params);
      // An unused tuple parameter is expanded as well, but then there is nothing to replace.
      if (!expanded.same_as(param)) replacer.Replace(param, expanded);
    }
    if (params.size() == func->params.size() &&
        std::equal(params.begin(), params.end(), func->params.begin(),
                   [](const Var& a, const Var& b) { return a.same_as(b); }))
      continue;
    Function changed(params, func->body, func->ret_struct_info, func->is_pure, func->attrs,
                     func->span);
    changes[name] = {As<Function>(replacer.VisitExpr(changed)), [infos](const Call& call) {
                       Array<Expr> args;
                       for (size_t i = 0; i < infos.size(); ++i)
                         AddItems(infos[i], call->args[i], &args);
                       return args;
                     }};
  }
  return ChangeSignatures(mod, changes);
}
}  // namespace
TVM_RELAX_PASS(ExpandTupleArguments, 0,
               "private f(t: R.Tuple(A, B)), called as f(t)  ->  f(t_0: A, t_1: B), called as "
               "f(t[0], t[1])");
}  // namespace tvm::relax
