// SPDX-License-Identifier: Apache-2.0
// Symbolic variables of parameters matched with arguments.
#include "relax/analysis/match.h"

#include "tvm/relax/analysis.h"
#include "tvm/relax/distributed.h"

namespace tvm::relax {
namespace {
using Bindings = Map<tir::Var, PrimExpr>;

class Matcher {
 public:
  explicit Matcher(Bindings* bindings) : bindings_(bindings) {}
  void Match(const StructInfo& param, const StructInfo& arg) {
    if (StackIsLow()) return Recurse([&] { Match(param, arg); });
    if (param->type_index() != arg->type_index()) return;
    if (auto* p = param.as<TensorStructInfoObj>()) {
      Optional<Array<PrimExpr>> dims = p->Dims(), given = arg.as<TensorStructInfoObj>()->Dims();
      if (dims && given) MatchDims(dims.value(), given.value());
    } else if (auto* p = param.as<ShapeStructInfoObj>()) {
      auto* a = arg.as<ShapeStructInfoObj>();
      if (p->values && a->values) MatchDims(p->values.value(), a->values.value());
    } else if (auto* p = param.as<PrimStructInfoObj>()) {
      auto* a = arg.as<PrimStructInfoObj>();
      if (p->value && a->value) MatchOne(p->value.value(), a->value.value());
    } else if (auto* p = param.as<TupleStructInfoObj>()) {
      auto* a = arg.as<TupleStructInfoObj>();
      for (size_t i = 0; i < std::min(p->fields.size(), a->fields.size()); ++i)
        Match(p->fields[i], a->fields[i]);
    } else if (auto* p = param.as<distributed::DTensorStructInfoObj>()) {
      Match(p->tensor_sinfo, arg.as<distributed::DTensorStructInfoObj>()->tensor_sinfo);
    }
  }

 private:
  void MatchDims(const Array<PrimExpr>& param, const Array<PrimExpr>& arg) {
    if (param.size() != arg.size()) return;
    for (size_t i = 0; i < param.size(); ++i) MatchOne(param[i], arg[i]);
  }
  void MatchOne(const PrimExpr& param, const PrimExpr& arg) {
    auto* var = param.as<tir::VarObj>();
    if (!var || var->dtype != arg.dtype()) return;
    auto ref = ffi::GetRef<tir::Var>(var);
    if (!bindings_->count(ref)) bindings_->Set(ref, arg);
  }
  Bindings* bindings_;
};
}  // namespace

void BindSymbolic(const StructInfo& param, const StructInfo& arg,
                  Map<tir::Var, PrimExpr>* bindings) {
  Matcher(bindings).Match(param, arg);
}

}  // namespace tvm::relax
