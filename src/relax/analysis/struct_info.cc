// SPDX-License-Identifier: Apache-2.0
// Struct info compared, joined, erased.
#include "relax/analysis/dims.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/distributed.h"

namespace tvm::relax {
namespace {
using distributed::DTensorStructInfo, distributed::DTensorStructInfoObj;
using Result = BaseCheckResult;

// ---- base check -------------------------------------------------------------------------------
class BaseChecker {
 public:
  explicit BaseChecker(arith::Analyzer* analyzer) : prover_(analyzer) {}

  Result Check(const StructInfo& base, const StructInfo& derived) {
    if (base.same_as(derived) || base.as<ObjectStructInfoObj>()) return Result::kPass;
    if (derived.as<ObjectStructInfoObj>()) return Result::kFailL1;
    if (base->type_index() != derived->type_index()) return Result::kFailL0;
    if (auto* b = base.as<TensorStructInfoObj>())
      return Tensor(b, derived.as<TensorStructInfoObj>());
    if (auto* b = base.as<ShapeStructInfoObj>()) return Shape(b, derived.as<ShapeStructInfoObj>());
    if (auto* b = base.as<PrimStructInfoObj>()) return Prim(b, derived.as<PrimStructInfoObj>());
    if (auto* b = base.as<TupleStructInfoObj>()) {
      return All(b->fields, derived.as<TupleStructInfoObj>()->fields);
    }
    if (auto* b = base.as<FuncStructInfoObj>()) return Func(b, derived.as<FuncStructInfoObj>());
    if (auto* b = base.as<DTensorStructInfoObj>()) {
      auto* d = derived.as<DTensorStructInfoObj>();
      bool same_place = StructuralEqual(b->device_mesh, d->device_mesh) &&
                        StructuralEqual(b->placement, d->placement);
      return same_place ? Check(b->tensor_sinfo, d->tensor_sinfo) : Result::kFailL0;
    }
    return StructuralEqual(base, derived) ? Result::kPass : Result::kFailL2;
  }

 private:
  /// Values that are known, unknown or not alike in base and derived.
  static Result Known(bool base_known, bool derived_known, bool equal) {
    if (!base_known) return Result::kPass;
    if (!derived_known) return Result::kFailL1;
    return equal ? Result::kPass : Result::kFailL0;
  }
  static Result OfDims(DimsAre dims) {
    return dims == DimsAre::kEqual     ? Result::kPass
           : dims == DimsAre::kUnknown ? Result::kFailL2
                                       : Result::kFailL0;
  }
  static Result Ndim(int64_t base, int64_t derived) {
    return Known(base >= 0, derived >= 0, base == derived);
  }
  Result Prim(const PrimStructInfoObj* base, const PrimStructInfoObj* derived) {
    if (base->dtype != derived->dtype) return Result::kFailL0;
    if (!base->value) return Result::kPass;
    if (!derived->value) return Result::kFailL2;
    return OfDims(prover_.Compare(base->value.value(), derived->value.value()));
  }
  Result Shape(const ShapeStructInfoObj* base, const ShapeStructInfoObj* derived) {
    Result result = Ndim(base->ndim, derived->ndim);
    if (result == Result::kFailL0 || !base->values) return result;
    if (!derived->values) return std::min(result, Result::kFailL2);
    return std::min(result, OfDims(prover_.Compare(base->values.value(), derived->values.value())));
  }
  Result Tensor(const TensorStructInfoObj* base, const TensorStructInfoObj* derived) {
    Result result =
        Known(!base->IsUnknownDtype(), !derived->IsUnknownDtype(), base->dtype == derived->dtype);
    result = std::min(result, Ndim(base->ndim, derived->ndim));
    if (base->vdevice.has_value()) {
      bool known = derived->vdevice.has_value();
      bool equal = known && StructuralEqual(base->vdevice.value(), derived->vdevice.value());
      result = std::min(result, Known(true, known, equal));
    }
    if (result == Result::kFailL0 || !base->shape) return result;
    if (derived->shape && base->shape.value().same_as(derived->shape.value())) return result;
    Optional<Array<PrimExpr>> b = base->Dims(), d = derived->Dims();
    bool known = b && d;
    return std::min(result,
                    known ? OfDims(prover_.Compare(b.value(), d.value())) : Result::kFailL2);
  }
  Result Func(const FuncStructInfoObj* base, const FuncStructInfoObj* derived) {
    if (base->purity && !derived->purity) return Result::kFailL0;
    if (base->IsOpaque()) {
      if (!base->derive_func) return Check(base->ret, derived->ret);
      return SameDerivation(base, derived) ? Result::kPass : Result::kFailL2;
    }
    if (derived->IsOpaque()) return Result::kFailL2;
    const auto &b = base->params.value(), &d = derived->params.value();
    if (b.size() != d.size()) return Result::kFailL0;
    if (StructuralEqual(ffi::GetRef<FuncStructInfo>(base), ffi::GetRef<FuncStructInfo>(derived)))
      return Result::kPass;
    Result result = Check(base->ret, derived->ret);
    // The derived function has to take what the base takes.
    for (size_t i = 0; i < b.size(); ++i) {
      Result param = Check(d[i], b[i]);
      result = std::min(result, param == Result::kFailL1 ? Result::kFailL2 : param);
    }
    return result;
  }
  Result All(const Array<StructInfo>& base, const Array<StructInfo>& derived) {
    if (base.size() != derived.size()) return Result::kFailL0;
    return Recurse([&] {
      Result result = Result::kPass;
      for (size_t i = 0; i < base.size() && result != Result::kFailL0; ++i) {
        result = std::min(result, Check(base[i], derived[i]));
      }
      return result;
    });
  }

 public:
  static bool SameDerivation(const FuncStructInfoObj* a, const FuncStructInfoObj* b) {
    return a->derive_func && b->derive_func &&
           a->derive_func.value()->name == b->derive_func.value()->name;
  }

 private:
  DimProver prover_;
};

// ---- least common base ------------------------------------------------------------------------
class Joiner {
 public:
  explicit Joiner(arith::Analyzer* analyzer) : prover_(analyzer) {}

  StructInfo Join(const StructInfo& a, const StructInfo& b) {
    if (a.same_as(b)) return a;
    if (a->type_index() != b->type_index()) return ObjectStructInfo::Get();
    if (auto* x = a.as<TensorStructInfoObj>()) return Tensor(a, x, b.as<TensorStructInfoObj>());
    if (auto* x = a.as<ShapeStructInfoObj>()) {
      auto* y = b.as<ShapeStructInfoObj>();
      if (Equal(x->values, y->values)) return a;
      return ShapeStructInfo(x->ndim == y->ndim ? x->ndim : -1);
    }
    if (auto* x = a.as<PrimStructInfoObj>()) {
      auto* y = b.as<PrimStructInfoObj>();
      if (x->dtype != y->dtype) return ObjectStructInfo::Get();
      bool equal = x->value && y->value &&
                   prover_.Compare(x->value.value(), y->value.value()) == DimsAre::kEqual;
      return equal || !x->value ? a : PrimStructInfo(x->dtype);
    }
    if (auto* x = a.as<TupleStructInfoObj>()) {
      auto* y = b.as<TupleStructInfoObj>();
      if (x->fields.size() != y->fields.size()) return ObjectStructInfo::Get();
      return Recurse([&]() -> StructInfo {
        Array<StructInfo> fields;
        bool changed = false;
        for (size_t i = 0; i < x->fields.size(); ++i) {
          fields.push_back(Join(x->fields[i], y->fields[i]));
          changed |= !fields.back().same_as(x->fields[i]);
        }
        return changed ? TupleStructInfo(fields) : a;
      });
    }
    if (auto* x = a.as<FuncStructInfoObj>()) return Func(a, x, b.as<FuncStructInfoObj>());
    return StructuralEqual(a, b) ? a : ObjectStructInfo::Get();
  }

 private:
  bool Equal(const Optional<Array<PrimExpr>>& a, const Optional<Array<PrimExpr>>& b) {
    return a && b && prover_.Compare(a.value(), b.value()) == DimsAre::kEqual;
  }
  StructInfo Tensor(const StructInfo& a, const TensorStructInfoObj* x,
                    const TensorStructInfoObj* y) {
    DataType dtype = x->dtype == y->dtype ? x->dtype : DataType::Void();
    Optional<VDevice> vdevice;
    if (x->vdevice && y->vdevice && StructuralEqual(x->vdevice.value(), y->vdevice.value()))
      vdevice = x->vdevice;
    bool same_shape = (x->shape && y->shape && x->shape.value().same_as(y->shape.value())) ||
                      Equal(x->Dims(), y->Dims());
    if (same_shape && dtype == x->dtype && vdevice.has_value() == x->vdevice.has_value()) return a;
    if (same_shape) return TensorStructInfo(x->shape.value(), dtype, vdevice);
    return TensorStructInfo(dtype, x->ndim == y->ndim ? x->ndim : -1, vdevice);
  }
  StructInfo Func(const StructInfo& a, const FuncStructInfoObj* x, const FuncStructInfoObj* y) {
    if (StructuralEqual(a, ffi::GetRef<StructInfo>(y))) return a;
    bool purity = x->purity && y->purity;
    if (BaseChecker::SameDerivation(x, y))
      return FuncStructInfo::Opaque(x->ret, purity, x->derive_func);
    StructInfo ret = Join(x->ret, y->ret);
    bool same_params = x->params && y->params && StructuralEqual(x->params, y->params);
    if (same_params) return FuncStructInfo(x->params.value(), ret, purity);
    return FuncStructInfo::Opaque(ret, purity);
  }
  DimProver prover_;
};

// ---- erasure ----------------------------------------------------------------------------------
class Eraser {
 public:
  Eraser(const ShapeVarMap& shape_var, const VarMap& var, bool into_functions)
      : shape_var_(shape_var), var_(var), into_functions_(into_functions) {}

  StructInfo Erase(const StructInfo& info) {
    if (auto* tensor = info.as<TensorStructInfoObj>()) return Tensor(info, tensor);
    if (auto* shape = info.as<ShapeStructInfoObj>()) {
      if (!shape->values) return info;
      auto dims = Dims(shape->values.value());
      if (!dims) return ShapeStructInfo(shape->ndim, shape->span);
      if (dims->same_as(shape->values.value())) return info;
      return ShapeStructInfo(*dims, shape->span);
    }
    if (auto* prim = info.as<PrimStructInfoObj>()) {
      if (!prim->value) return info;
      auto value = Value(prim->value.value());
      if (!value) return PrimStructInfo(prim->dtype, prim->span);
      return value->same_as(prim->value.value()) ? info : PrimStructInfo(*value, prim->span);
    }
    if (auto* tuple = info.as<TupleStructInfoObj>()) {
      Array<StructInfo> fields = All(tuple->fields);
      return fields.same_as(tuple->fields) ? info : TupleStructInfo(fields, tuple->span);
    }
    if (auto* func = info.as<FuncStructInfoObj>(); func && into_functions_) {
      StructInfo ret = Erase(func->ret);
      Array<StructInfo> params = All(func->params.value_or({}));
      bool same = ret.same_as(func->ret) && params.same_as(func->params.value_or(params));
      if (same || func->derive_func) return info;
      if (func->IsOpaque())
        return FuncStructInfo::Opaque(ret, func->purity, func->derive_func, func->span);
      return FuncStructInfo(params, ret, func->purity, func->span);
    }
    if (auto* spread = info.as<DTensorStructInfoObj>()) {
      auto tensor = As<TensorStructInfo>(Erase(spread->tensor_sinfo));
      if (tensor.same_as(spread->tensor_sinfo)) return info;
      return DTensorStructInfo(tensor, spread->device_mesh, spread->placement, spread->span);
    }
    return info;
  }

 private:
  Array<StructInfo> All(const Array<StructInfo>& infos) {
    return Recurse([&] { return infos.Map([&](const StructInfo& f) { return Erase(f); }); });
  }
  std::optional<PrimExpr> Value(const PrimExpr& e) {
    if (e.as<IntImmObj>() || e.as<FloatImmObj>()) return e;
    bool known = true;
    PrimExpr result = SubstituteDim(e, [&](const tir::Var& v) -> PrimExpr {
      PrimExpr now = shape_var_ ? shape_var_(v) : PrimExpr();
      known = known && now.defined();
      return now.same_as(v) ? PrimExpr() : now;
    });
    return known ? std::optional(result) : std::nullopt;
  }
  std::optional<Array<PrimExpr>> Dims(const Array<PrimExpr>& dims) {
    Array<PrimExpr> result = dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      auto value = Value(dims[i]);
      if (!value) return std::nullopt;
      if (!value->same_as(dims[i])) result.Set(i, *value);
    }
    return result;
  }
  StructInfo Tensor(const StructInfo& info, const TensorStructInfoObj* tensor) {
    if (!tensor->shape) return info;
    if (auto* shape = tensor->shape.value().as<ShapeExprObj>()) {
      auto dims = Dims(shape->values);
      if (dims && dims->same_as(shape->values)) return info;
      if (dims) return TensorStructInfo(*dims, tensor->dtype, tensor->vdevice, tensor->span);
    } else if (var_) {
      Optional<Expr> shape_now = var_(As<Var>(tensor->shape.value()));
      if (shape_now && shape_now.value().same_as(tensor->shape.value())) return info;
      if (shape_now)
        return TensorStructInfo(shape_now.value(), tensor->dtype, tensor->vdevice, tensor->span);
    }
    return TensorStructInfo(tensor->dtype, tensor->ndim, tensor->vdevice, tensor->span);
  }
  const ShapeVarMap& shape_var_;
  const VarMap& var_;
  bool into_functions_;
};
}  // namespace

BaseCheckResult StructInfoBaseCheck(const StructInfo& base, const StructInfo& derived,
                                    arith::Analyzer* analyzer) {
  return BaseChecker(analyzer).Check(base, derived);
}
StructInfo StructInfoLCA(const StructInfo& lhs, const StructInfo& rhs, arith::Analyzer* analyzer) {
  return Joiner(analyzer).Join(lhs, rhs);
}
StructInfo EraseToWellDefined(const StructInfo& info, const ShapeVarMap& shape_var,
                              const VarMap& var) {
  return Eraser(shape_var, var, false).Erase(info);
}
StructInfo SubstituteStructInfo(const StructInfo& info, const Map<tir::Var, PrimExpr>& map) {
  if (map.empty()) return info;
  ShapeVarMap shape_var = [&](const tir::Var& var) { return map.Get(var).value_or(var); };
  VarMap same = [](const Var& var) -> Optional<Expr> { return Expr(var); };
  return Eraser(shape_var, same, true).Erase(info);
}

Type GetStaticType(const StructInfo& info) {
  if (auto* prim = info.as<PrimStructInfoObj>()) return PrimType(prim->dtype);
  if (auto* shape = info.as<ShapeStructInfoObj>())
    return New<ShapeType>([&](ShapeTypeObj* n) { n->ndim = shape->ndim; });
  if (auto* spread = info.as<DTensorStructInfoObj>()) return GetStaticType(spread->tensor_sinfo);
  if (auto* tensor = info.as<TensorStructInfoObj>()) {
    return New<TensorType>(
        [&](TensorTypeObj* n) { n->ndim = tensor->ndim, n->dtype = tensor->dtype; });
  }
  auto all = [](const Array<StructInfo>& infos) {
    return Recurse([&] { return infos.Map([](const StructInfo& f) { return GetStaticType(f); }); });
  };
  if (auto* tuple = info.as<TupleStructInfoObj>()) return TupleType(all(tuple->fields));
  if (auto* func = info.as<FuncStructInfoObj>()) {
    if (func->IsOpaque()) return New<PackedFuncType>([](PackedFuncTypeObj*) {});
    return New<FuncType>([&](FuncTypeObj* n) {
      n->arg_types = all(func->params.value());
      n->ret_type = GetStaticType(func->ret);
    });
  }
  return New<ObjectType>([](ObjectTypeObj*) {});
}

namespace {
TVM_REGISTER() {
  Def(
      "relax.analysis._struct_info_base_check",
      [](StructInfo base, StructInfo derived) {
        return static_cast<int>(StructInfoBaseCheck(base, derived));
      },
      "Whether everything of the derived kind is of the base kind.", Arg("base"), Arg("derived"));
  Def(
      "relax.analysis.struct_info_lca",
      [](StructInfo lhs, StructInfo rhs) { return StructInfoLCA(lhs, rhs); },
      "The least struct info that is a base of both.", Arg("lhs"), Arg("rhs"));
  Def("relax.analysis.get_static_type", &GetStaticType, "The static type of values of that kind.",
      Arg("sinfo"));
  Def(
      "relax.analysis.erase_to_well_defined",
      [](StructInfo info, Optional<Map<tir::Var, PrimExpr>> shape_vars,
         Optional<Map<Var, Expr>> vars) {
        return EraseToWellDefined(
            info,
            [&](const tir::Var& v) {
              return shape_vars ? shape_vars.value().Get(v).value_or(PrimExpr()) : PrimExpr();
            },
            [&](const Var& v) { return vars ? vars.value().Get(v) : Optional<Expr>(); });
      },
      "With variables replaced as the maps say; what depends on others becomes unknown.",
      Arg("sinfo"), Arg("shape_var_map", nullptr), Arg("var_map", nullptr));
}
}  // namespace
}  // namespace tvm::relax
