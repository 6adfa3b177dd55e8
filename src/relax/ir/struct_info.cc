// SPDX-License-Identifier: Apache-2.0
// Struct info and static types: constructors and invariants.
#include "tvm/relax/struct_info.h"

#include "tir/text.h"
#include "tvm/expr/op.h"
#include "tvm/relax/expr.h"

namespace tvm::relax {

Array<PrimExpr> AsDims(Array<PrimExpr> values, const char* what) {
  for (size_t i = 0; i < values.size(); ++i) {
    const PrimExpr value = values[i];
    if (value.dtype() == DataType::Int(64)) continue;
    auto* constant = value.as<IntImmObj>();
    if (!constant || !value.dtype().is_integer()) {
      TVM_FFI_THROW(TypeError) << what << ": expected dimensions of type int64, got "
                               << tir::TextOf(value) << " of type " << value.dtype()
                               << (value.as<tir::StringImmObj>()
                                       ? "; a name stands for a variable in TVMScript only: write "
                                         "tvm.tir.Var(name, 'int64')"
                                       : "");
    }
    values.Set(i, IntImm::Int64(constant->value));
  }
  return values;
}
namespace {
void CheckNdim(int64_t ndim, const char* what) {
  if (ndim < -1) {
    TVM_FFI_THROW(ValueError) << what << ": expected ndim of at least -1 (unknown), got " << ndim;
  }
}
/// The number of dimensions as given or as the values say: both at once must agree.
void MatchNdim(int64_t* ndim, int64_t known, const char* what) {
  CheckNdim(*ndim, what);
  if (known < 0) return;
  if (*ndim >= 0 && *ndim != known) {
    TVM_FFI_THROW(ValueError) << what << ": expected ndim to be that of the shape, " << known
                              << ", got " << *ndim;
  }
  *ndim = known;
}
}  // namespace

ObjectStructInfo::ObjectStructInfo(Optional<Span> span) {
  *this = New<ObjectStructInfo>([&](ObjectStructInfoObj* n) { n->span = std::move(span); });
}
ObjectStructInfo ObjectStructInfo::Get() {
  static const auto* object = new ObjectStructInfo(Optional<Span>());
  return *object;
}

PrimStructInfo::PrimStructInfo(DataType dtype, Optional<Span> span) {
  *this = New<PrimStructInfo>(
      [&](PrimStructInfoObj* n) { n->dtype = dtype, n->span = std::move(span); });
}
PrimStructInfo::PrimStructInfo(PrimExpr value, Optional<Span> span) {
  *this = New<PrimStructInfo>(
      [&](PrimStructInfoObj* n) { n->value = std::move(value), n->span = std::move(span); });
}
void PrimStructInfoObj::Init() {
  if (!value.has_value()) return;
  if (dtype.is_void()) dtype = value.value().dtype();
  if (dtype == value.value().dtype()) return;
  if (!value.value().as<IntImmObj>() && !value.value().as<FloatImmObj>()) {
    TVM_FFI_THROW(TypeError) << "PrimStructInfo: expected a value of type " << dtype << ", got "
                             << tir::TextOf(value.value()) << " of type " << value.value().dtype();
  }
  value = cast(dtype, value.value());
}

ShapeStructInfo::ShapeStructInfo(Array<PrimExpr> values, Optional<Span> span) {
  *this = New<ShapeStructInfo>(
      [&](ShapeStructInfoObj* n) { n->values = std::move(values), n->span = std::move(span); });
}
ShapeStructInfo::ShapeStructInfo(int64_t ndim, Optional<Span> span) {
  *this = New<ShapeStructInfo>(
      [&](ShapeStructInfoObj* n) { n->ndim = ndim, n->span = std::move(span); });
}
void ShapeStructInfoObj::Init() {
  if (values.has_value()) values = AsDims(values.value(), "ShapeStructInfo");
  MatchNdim(&ndim, values ? static_cast<int64_t>(values.value().size()) : -1, "ShapeStructInfo");
}

TensorStructInfo::TensorStructInfo(Expr shape, DataType dtype, Optional<VDevice> vdevice,
                                   Optional<Span> span) {
  *this = New<TensorStructInfo>([&](TensorStructInfoObj* n) {
    n->shape = std::move(shape);
    n->dtype = dtype;
    n->vdevice = std::move(vdevice);
    n->span = std::move(span);
  });
}
TensorStructInfo::TensorStructInfo(Array<PrimExpr> dims, DataType dtype, Optional<VDevice> vdevice,
                                   Optional<Span> span)
    : TensorStructInfo(ShapeExpr(std::move(dims)), dtype, std::move(vdevice), std::move(span)) {}
TensorStructInfo::TensorStructInfo(DataType dtype, int64_t ndim, Optional<VDevice> vdevice,
                                   Optional<Span> span) {
  *this = New<TensorStructInfo>([&](TensorStructInfoObj* n) {
    n->dtype = dtype;
    n->ndim = ndim;
    n->vdevice = std::move(vdevice);
    n->span = std::move(span);
  });
}
void TensorStructInfoObj::Init() {
  int64_t known = -1;
  if (shape.has_value()) {
    const Expr& expr = shape.value();
    if (auto* given = expr.as<ShapeExprObj>()) {
      known = static_cast<int64_t>(given->values.size());
    } else if (auto* info = GetStructInfoAs<ShapeStructInfoObj>(expr); info && expr.as<VarObj>()) {
      known = info->ndim;
    } else {
      TVM_FFI_THROW(TypeError) << "TensorStructInfo: expected a shape that is a ShapeExpr or a "
                                  "variable that is a shape, got "
                               << tir::TextOf(expr);
    }
  }
  MatchNdim(&ndim, known, "TensorStructInfo");
}
Optional<Array<PrimExpr>> TensorStructInfoObj::Dims() const {
  if (!shape.has_value()) return std::nullopt;
  if (auto* given = shape.value().as<ShapeExprObj>()) return given->values;
  auto* info = GetStructInfoAs<ShapeStructInfoObj>(shape.value());
  return info ? info->values : std::nullopt;
}

TupleStructInfo::TupleStructInfo(Array<StructInfo> fields, Optional<Span> span) {
  *this = New<TupleStructInfo>(
      [&](TupleStructInfoObj* n) { n->fields = std::move(fields), n->span = std::move(span); });
}
TupleStructInfo TupleStructInfo::Void() {
  static const auto* none = new TupleStructInfo(Array<StructInfo>());
  return *none;
}

FuncStructInfo::FuncStructInfo(Array<StructInfo> params, StructInfo ret, bool purity,
                               Optional<Span> span) {
  *this = New<FuncStructInfo>([&](FuncStructInfoObj* n) {
    n->params = std::move(params);
    n->ret = std::move(ret);
    n->purity = purity;
    n->span = std::move(span);
  });
}
FuncStructInfo FuncStructInfo::Opaque(StructInfo ret, bool purity, Optional<EnvFunc> derive_func,
                                      Optional<Span> span) {
  return New<FuncStructInfo>([&](FuncStructInfoObj* n) {
    n->ret = std::move(ret);
    n->purity = purity;
    n->derive_func = std::move(derive_func);
    n->span = std::move(span);
  });
}
void FuncStructInfoObj::Init() {
  if (derive_func.has_value() && params.has_value()) {
    TVM_FFI_THROW(ValueError)
        << "FuncStructInfo: expected derive_func for an opaque function only, "
           "got one beside parameters";
  }
}

namespace {
TVM_REGISTER() {
  RegisterNode<ShapeTypeObj>("A shape of a number of dimensions; -1: unknown.");
  RegisterNode<TensorTypeObj>("A tensor of a number of dimensions and a dtype.");
  RegisterNode<ObjectTypeObj>("Any value.");
  RegisterNode<PackedFuncTypeObj>("A function whose parameters are not known.");
  RegisterNode<ObjectStructInfoObj>("Any value.");
  RegisterNode<PrimStructInfoObj>("A scalar, maybe of a known value.");
  RegisterNode<ShapeStructInfoObj>("A shape.");
  RegisterNode<TensorStructInfoObj>("A tensor.");
  RegisterNode<TupleStructInfoObj>("A tuple; the empty one is void.");
  RegisterNode<FuncStructInfoObj>("A function.");
  Def(
      "relax.FuncStructInfo._opaque",
      [](Optional<StructInfo> ret, Optional<EnvFunc> derive_func, bool purity,
         Optional<Span> span) -> FuncStructInfo {
        StructInfo result = ret.value_or(ObjectStructInfo::Get());
        return FuncStructInfo::Opaque(result, purity, derive_func, span);
      },
      "A function that takes anything.", Arg("ret", nullptr), Arg("derive_func", nullptr),
      Arg("purity", false), Arg("span", nullptr));
}
}  // namespace
}  // namespace tvm::relax
