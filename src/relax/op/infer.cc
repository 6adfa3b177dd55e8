// SPDX-License-Identifier: Apache-2.0
// What inference functions share.
#include "tvm/relax/infer.h"

#include <algorithm>
#include <sstream>

#include "../../tir/text.h"
#include "tvm/ir/structural.h"

namespace tvm::relax {

std::string TextOf(const ObjectRef& node) {
  if (auto* number = node.as<IntImmObj>()) return std::to_string(number->value);
  return tir::TextOf(node);
}
/// An optional object is the object, or null.
template <class T>
const T& Value(const Optional<T>& known) {
  static_assert(sizeof(Optional<T>) == sizeof(T));
  return reinterpret_cast<const T&>(known);
}
const Dims* DimsOf(const TensorStructInfoObj* info) {
  if (!info->shape.has_value()) return nullptr;
  const Expr& shape = Value(info->shape);
  if (auto* expr = shape.as<ShapeExprObj>()) return &expr->values;
  auto* known = GetStructInfoAs<ShapeStructInfoObj>(shape);
  return known && known->values.has_value() ? &Value(known->values) : nullptr;
}
std::string Show(const Dims& dims) {
  std::ostringstream os;
  os << "(";
  for (size_t i = 0; i < dims.size(); ++i) os << (i ? ", " : "") << TextOf(dims[i]);
  os << (dims.size() == 1 ? ",)" : ")");
  return os.str();
}
std::string ShowShape(const TensorStructInfoObj* info) {
  if (const Dims* dims = DimsOf(info)) return Show(*dims);
  return info->ndim < 0 ? "unknown rank" : "ndim=" + std::to_string(info->ndim);
}

// ---- arguments --------------------------------------------------------------------------------
const StructInfo& Infer::Of(size_t i) const {
  const Optional<StructInfo>& known = call->args[i]->struct_info_;
  if (!known.has_value()) {
    TVM_RAISE(*this) << "argument '" << info->Param(i)
                     << "': expected a normalised expression, got " << call->args[i]->GetTypeKey()
                     << " without struct info";
  }
  return Value(known);
}
const TensorStructInfoObj* Infer::AsTensor(size_t i) const {
  return Of(i).as<TensorStructInfoObj>();
}
const TensorStructInfoObj* Infer::Tensor(size_t i) const {
  const TensorStructInfoObj* tensor = AsTensor(i);
  if (!tensor) {
    TVM_RAISE_TYPE(*this) << "argument '" << info->Param(i) << "': expected a tensor, got "
                          << TextOf(Of(i));
  }
  return tensor;
}
std::vector<const TensorStructInfoObj*> Infer::Tensors(size_t i) const {
  auto* tuple = Of(i).as<TupleStructInfoObj>();
  std::vector<const TensorStructInfoObj*> tensors;
  for (size_t k = 0; tuple && k < tuple->fields.size(); ++k) {
    auto* tensor = tuple->fields[k].as<TensorStructInfoObj>();
    if (!tensor) break;
    tensors.push_back(tensor);
  }
  if (!tuple || tensors.size() != tuple->fields.size()) {
    TVM_RAISE_TYPE(*this) << "argument '" << info->Param(i)
                          << "': expected a tuple of tensors, got " << TextOf(Of(i));
  }
  return tensors;
}
Shape Infer::ShapeOf(size_t i) const {
  auto* shape = Of(i).as<ShapeStructInfoObj>();
  if (!shape) {
    TVM_RAISE_TYPE(*this) << "argument '" << info->Param(i) << "': expected a shape, got "
                          << TextOf(Of(i));
  }
  if (shape->values.has_value()) return *shape->values;
  return Shape::Rank(shape->ndim);
}
DataType Infer::TypeOf(size_t i) const {
  const TensorStructInfoObj* x = AsTensor(i);
  return x ? x->dtype : Of(i).as<PrimStructInfoObj>()->dtype;
}
namespace {
std::optional<PrimExpr> ValueOf(const StructInfo& info) {
  auto* prim = info.as<PrimStructInfoObj>();
  if (!prim || !prim->value.has_value()) return std::nullopt;
  return *prim->value;
}
}  // namespace
std::optional<PrimExpr> Infer::Prim(size_t i) const {
  if (auto* value = call->args[i].as<PrimValueObj>()) return value->value;
  return ValueOf(Of(i));
}
std::optional<int64_t> Infer::ConstPrim(size_t i) const {
  auto value = Prim(i);
  return value ? AsConstInt(*value) : std::nullopt;
}
std::optional<Dims> Infer::Prims(size_t i) const {
  auto* tuple = Of(i).as<TupleStructInfoObj>();
  if (!tuple) return std::nullopt;
  Dims values;
  for (const StructInfo& field : tuple->fields) {
    auto value = ValueOf(field);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}
const Object* Infer::CheckedAttrs(int32_t type_index) const {
  if (!call->attrs.has_value() || (*call->attrs)->type_index() != type_index) {
    TVM_RAISE_TYPE(*this) << "expected attributes of type " << info->op->attrs_type_key << ", got "
                          << (call->attrs.has_value() ? (*call->attrs)->GetTypeKey() : "None");
  }
  return (*call->attrs).get();
}

// ---- dimensions -------------------------------------------------------------------------------
arith::Analyzer& Infer::analyzer() {
  if (builder_->defined()) return *(*builder_)->analyzer();
  thread_local arith::Analyzer alone;  // a call that is inferred outside of any builder
  return alone;
}
bool Infer::Equal(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return true;
  if (IsConst(a) && IsConst(b)) return AsConstInt(a) == AsConstInt(b);
  return analyzer().CanProveEqual(a, b);
}
bool Infer::Different(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return false;
  if (IsConst(a) && IsConst(b)) return AsConstInt(a) != AsConstInt(b);
  return analyzer().CanProve(not_equal(a, b));
}
void Infer::ExpectSame(const PrimExpr& a, const PrimExpr& b, const char* what) {
  if (Different(a, b)) {
    TVM_RAISE(*this) << "expected " << what << " to be equal, got " << TextOf(a) << " and "
                     << TextOf(b);
  }
}
std::optional<PrimExpr> Infer::Same(const PrimExpr& a, const PrimExpr& b, const char* what) {
  if (Equal(a, b)) return a;
  ExpectSame(a, b, what);
  return std::nullopt;
}
PrimExpr Infer::Product(const Dims& dims, size_t begin, size_t end) {
  PrimExpr product = Dim(1);
  for (size_t i = begin; i < std::min(end, dims.size()); ++i) product = product * dims[i];
  return Simplify(product);
}
int64_t Infer::Axis(int64_t axis, int64_t ndim) const {
  if (axis < -ndim || axis >= ndim) {
    TVM_RAISE(*this) << "expected an axis in [" << -ndim << ", " << ndim - 1 << "] for " << ndim
                     << " dimensions, got " << axis;
  }
  return axis < 0 ? axis + ndim : axis;
}
std::vector<int64_t> Infer::Axes(const Ints& axes, int64_t ndim) const {
  std::vector<int64_t> result;
  for (const IntImm& axis : axes) {
    result.push_back(Axis(axis->value, ndim));
    if (std::find(result.begin(), result.end() - 1, result.back()) != result.end() - 1) {
      TVM_RAISE(*this) << "expected axes that differ, got axis " << result.back() << " twice";
    }
  }
  return result;
}
Shape Infer::Broadcast(const Shape& a, const Shape& b) {
  if (a.ndim < 0 || b.ndim < 0) return {};
  int64_t ndim = std::max(a.ndim, b.ndim);
  if (!a.known() || !b.known()) return Shape::Rank(ndim);
  if (a.dims->same_as(*b.dims)) return a;
  bool known = true;
  std::vector<PrimExpr> dims(ndim, PrimExpr(nullptr));
  for (int64_t i = 1; i <= ndim; ++i) {
    if (i > a.ndim || i > b.ndim) {
      dims[ndim - i] = i > a.ndim ? b[b.ndim - i] : a[a.ndim - i];
      continue;
    }
    PrimExpr x = a[a.ndim - i], y = b[b.ndim - i];
    if (IsOne(x) || IsOne(y)) {
      dims[ndim - i] = IsOne(x) ? y : x;
    } else if (Equal(x, y)) {
      dims[ndim - i] = x;
    } else if (IsConst(x) && IsConst(y)) {
      TVM_RAISE(*this) << "expected shapes that broadcast, got " << Show(*a.dims) << " and "
                       << Show(*b.dims) << ": dimension " << ndim - i << " is " << TextOf(x)
                       << " and " << TextOf(y);
    } else {
      known = false;  // one of them may be 1
    }
  }
  return known ? Shape(Dims(dims.begin(), dims.end())) : Shape::Rank(ndim);
}
void Infer::ExpectRank(const TensorStructInfoObj* tensor, int64_t ndim, const char* what) const {
  if (tensor->ndim >= 0 && tensor->ndim != ndim) {
    TVM_RAISE(*this) << "expected " << what << " to have " << ndim << " dimensions, got "
                     << ShowShape(tensor);
  }
}
void Infer::ExpectFloat(const TensorStructInfoObj* tensor, const char* what) const {
  if (!tensor->dtype.is_void() && !tensor->dtype.is_float()) {
    TVM_RAISE_TYPE(*this) << "expected " << what << " of a floating-point type, got "
                          << tensor->dtype;
  }
}
void Infer::ExpectNoBool(const TensorStructInfoObj* tensor, const char* what) const {
  if (tensor->dtype.is_bool()) {
    TVM_RAISE_TYPE(*this) << "expected " << what << " of a type of numbers, got bool; write "
                          << "R.astype(x, \"float32\") for the share of what is true";
  }
}
void Infer::ExpectInteger(const TensorStructInfoObj* tensor, const char* what) const {
  if (!tensor->dtype.is_void() && !tensor->dtype.is_integer()) {
    TVM_RAISE_TYPE(*this) << "expected " << what << " of an integer type, got " << tensor->dtype;
  }
}
void Infer::ExpectOneOf(const String& text, std::initializer_list<const char*> words,
                        const char* what) const {
  std::string all;
  for (const char* word : words) {
    if (text == word) return;
    all += (all.empty() ? "'" : ", '") + std::string(word) + "'";
  }
  TVM_RAISE(*this) << "expected " << what << " to be one of " << all << ", got '" << text << "'";
}

// ---- results ----------------------------------------------------------------------------------
bool SameDevice(const VDevice& a, const VDevice& b) {
  return a.same_as(b) || (a->vdevice_id == b->vdevice_id && a->memory_scope == b->memory_scope &&
                          StructuralEqual(a->target, b->target));
}
Optional<VDevice> Infer::Device() const {
  Optional<VDevice> device;
  for (size_t i = 0; i < call->args.size(); ++i) {
    const TensorStructInfoObj* tensor = AsTensor(i);
    if (!tensor || !tensor->vdevice.has_value()) continue;
    if (!device.has_value()) {
      device = tensor->vdevice;
    } else if (!SameDevice(*device, *tensor->vdevice)) {
      TVM_RAISE(*this) << "expected tensors on one device, got " << TextOf(*device) << " and "
                       << TextOf(*tensor->vdevice);
    }
  }
  return device;
}
Optional<VDevice> Infer::DeviceAt(int64_t index) const {
  if (!builder_->defined()) return std::nullopt;
  const auto& infos = (*builder_)->module()->global_infos;
  auto devices = infos.find("vdevice");
  if (devices == infos.end() || index < 0) return std::nullopt;
  const Array<GlobalInfo> all = (*devices).second;
  if (index >= static_cast<int64_t>(all.size())) return std::nullopt;
  return all[index].as<VDevice>();
}
DataType Infer::SameType(DataType a, DataType b) const {
  if (a.is_void() || b.is_void()) return DataType::Void();
  if (a != b && !a.is_bool() && !b.is_bool()) {
    TVM_RAISE_TYPE(*this) << "expected operands of one type, got " << a << " and " << b;
  }
  return a;
}
StructInfo Infer::Result(Shape shape, DataType dtype, Optional<VDevice> device) const {
  if (shape.known()) return TensorStructInfo(ShapeExpr(*std::move(shape.dims)), dtype, device);
  return TensorStructInfo(dtype, shape.ndim, device);
}

StructInfo Infer::WithType(size_t i, DataType dtype) const {
  const TensorStructInfoObj* x = Tensor(i);
  if (x->dtype == dtype) return Of(i);
  if (x->shape.has_value()) return TensorStructInfo(*x->shape, dtype, x->vdevice);
  return TensorStructInfo(dtype, x->ndim, x->vdevice);
}
StructInfo Infer::OfShape(size_t i, DataType dtype, Optional<VDevice> device) const {
  Shape shape = ShapeOf(i);
  if (!shape.known() && call->args[i].as<VarObj>())
    return TensorStructInfo(call->args[i], dtype, device);
  return Result(std::move(shape), dtype, device);
}

StructInfo InferSame(Infer& in) { return in.Of(0); }
StructInfo InferObject(Infer&) { return ObjectStructInfo::Get(); }
StructInfo InferVoid(Infer&) { return TupleStructInfo::Void(); }

}  // namespace tvm::relax
