// SPDX-License-Identifier: Apache-2.0
// What people write where an expression, a shape, a scalar or an attribute is meant.
#include "convert.h"

#include <cstring>

#include "../../tir/transform/small_float.h"
#include "tvm/runtime/tensor.h"
#include "tvm/runtime/type_of.h"

namespace tvm::relax {
namespace {

bool IsNumber(const AnyView& value) {
  int32_t t = value.type_index();
  return t == kTVMFFIInt || t == kTVMFFIFloat || t == kTVMFFIBool;
}
[[noreturn]] void Refuse(const OperatorInfo& info, int param, const char* expected,
                         const AnyView& got) {
  TVM_FFI_THROW(OpTypeError) << info.ShortName() << ": parameter '" << info.args[param].name
                             << "': expected " << expected << ", got " << TypeOf(got);
  TVM_FFI_UNREACHABLE();
}
/// A number or a PrimExpr as a scalar; integers are int64, floating-point numbers float64.
std::optional<PrimExpr> ToPrimExpr(const AnyView& value) {
  switch (value.type_index()) {
    case kTVMFFIInt:
    case kTVMFFIBool:
      return IntImm::Int64(value.cast<int64_t>());
    case kTVMFFIFloat:
      return FloatImm(DataType::Float(64), value.cast<double>());
    default:
      if (auto* prim = value.as<PrimValueObj>()) return prim->value;
      if (value.as<RelaxExprObj>() || value.type_index() < kTVMFFIStaticObjectBegin) return {};
      auto e = value.try_cast<PrimExpr>();
      if (!e || (*e).as<tir::StringImmObj>()) return {};
      return *e;
  }
}
std::optional<Expr> ToExpr(const AnyView& value);
std::optional<Tuple> ToTuple(const AnyView& value, std::optional<Expr> (*convert)(const AnyView&)) {
  auto items = value.try_cast<Array<Any>>();
  if (!items) return std::nullopt;
  Array<Expr> fields;
  for (const Any& item : *items) {
    auto field = convert(item);
    if (!field) return std::nullopt;
    fields.push_back(*field);
  }
  return Tuple(fields);
}
/// What convert_to_expr takes.
std::optional<Expr> ToExpr(const AnyView& value) {
  if (auto e = AsExpr(value)) return *e;
  if (auto s = value.try_cast<String>()) return StringImm(*s);
  if (auto p = ToPrimExpr(value)) return PrimValue(*p);
  if (auto t = value.try_cast<ffi::Tensor>(); t && t->defined()) return Constant(*t);
  if (auto t = ToTuple(value, &ToExpr)) return *t;
  return std::nullopt;
}
std::optional<Expr> ToTensor(const AnyView& value) {
  if (auto e = AsExpr(value)) return *e;
  if (IsNumber(value)) return ScalarConstant(Any(value), DataType::Void());
  if (auto t = value.try_cast<ffi::Tensor>(); t && t->defined()) return Constant(*t);
  return std::nullopt;
}
std::optional<Expr> ToPrimValue(const AnyView& value) {
  if (auto e = AsExpr(value)) return *e;
  if (auto p = ToPrimExpr(value)) return PrimValue(*p);
  return std::nullopt;
}
/// Indices and dims: int64 whatever the constant was.
std::optional<Expr> ToIndex(const AnyView& value) {
  if (auto e = AsExpr(value)) return *e;
  auto p = ToPrimExpr(value);
  if (!p) return std::nullopt;
  return PrimValue((*p).as<IntImmObj>() ? PrimExpr(IntImm::Int64(*AsConstInt(*p))) : *p);
}
std::optional<Expr> ToShape(const AnyView& value) {
  if (auto e = AsExpr(value)) return *e;
  if (auto shape = value.try_cast<ffi::Shape>()) {
    Array<PrimExpr> dims;
    for (int64_t d : *shape) dims.push_back(IntImm::Int64(d));
    return ShapeExpr(dims);
  }
  if (auto one = ToPrimExpr(value)) return ShapeExpr({*one});
  auto items = value.try_cast<Array<Any>>();
  if (!items) return std::nullopt;
  Array<PrimExpr> dims;
  for (const Any& item : *items) {
    auto dim = ToPrimExpr(item);
    if (!dim) return std::nullopt;
    dims.push_back(*dim);
  }
  return ShapeExpr(dims);
}

}  // namespace

std::optional<Expr> AsExpr(const AnyView& value) {
  if (auto* expr = value.as<RelaxExprObj>()) return ffi::GetRef<Expr>(expr);
  return std::nullopt;
}
Constant ScalarConstant(const Any& number, DataType dtype) {
  bool is_float = number.type_index() == kTVMFFIFloat;
  if (dtype.is_void()) {
    dtype = is_float                             ? DataType::Float(32)
            : number.type_index() == kTVMFFIBool ? DataType::Bool()
                                                 : DataType::Int(32);
  }
  int64_t bits = dtype.is_float() ? tir::ConstantBits(number.cast<double>(), dtype)
                 : is_float       ? *AsConstInt(MakeConst(dtype, number.cast<double>()))
                                  : *AsConstInt(MakeConst(dtype, number.cast<int64_t>()));
  const int64_t* no_dims = nullptr;
  ffi::Tensor tensor = runtime::Empty(ffi::ShapeView(no_dims, 0), dtype, DLDevice{kDLCPU, 0});
  std::memcpy(tensor.data_ptr(), &bits, dtype.bytes());  // little-endian, as all targets
  return Constant(tensor);
}

Expr ConvertArgument(const OperatorInfo& info, int param, const AnyView& value,
                     DataType neighbour) {
  std::optional<Expr> result;
  const char* expected = "an expression";
  switch (info.params[param].kind) {
    case ParamKind::kTensor:
      result = ToTensor(value);
      expected = "a tensor";
      break;
    case ParamKind::kValue:
      expected = "a tensor or a number";
      if (IsNumber(value)) return ScalarConstant(Any(value), neighbour);
      result = ToTensor(value);
      if (!result) result = ToPrimValue(value);
      break;
    case ParamKind::kTensors:
      expected = "a tuple or a list of tensors";
      result = AsExpr(value);
      if (!result) result = ToTuple(value, &ToTensor);
      break;
    case ParamKind::kShape:
      result = ToShape(value);
      expected = "a shape";
      break;
    case ParamKind::kPrim:
      result = ToPrimValue(value);
      expected = "a number or a scalar";
      break;
    case ParamKind::kPrims:
      expected = "a tuple or a list of integers";
      result = AsExpr(value);
      if (!result) result = ToTuple(value, &ToIndex);
      if (!result) {
        if (auto one = ToIndex(value)) result = Tuple({*one});
      }
      break;
    case ParamKind::kStr:
      expected = "a text";
      result = AsExpr(value);
      if (auto text = value.try_cast<String>(); text && !result) result = StringImm(*text);
      break;
    case ParamKind::kDType:
      expected = "a dtype";
      result = AsExpr(value);
      if (!result) {
        if (auto dtype = value.try_cast<DataType>()) result = DataTypeImm(*dtype);
      }
      break;
    case ParamKind::kFunc:
      expected = "a function or the name of one";
      result = AsExpr(value);
      if (auto name = value.try_cast<String>(); name && !result) result = ExternFunc(*name);
      break;
    case ParamKind::kArgs:
      expected = "a tuple or a list of expressions";
      result = ToExpr(value);
      // One expression stands for a tuple of it; a variable may be a tuple already.
      if (result && !(*result).as<TupleObj>()) {
        auto known = (*result)->struct_info_;
        if (!known.has_value() || !(*known).as<TupleStructInfoObj>()) result = Tuple({*result});
      }
      break;
    default:
      result = ToExpr(value);
  }
  if (!result || !result->defined()) Refuse(info, param, expected, value);
  return *result;
}

Array<StructInfo> ConvertInfo(const OperatorInfo& info, int param, const AnyView& value) {
  Array<StructInfo> all;
  if (auto* one = value.as<StructInfoObj>()) {
    all.push_back(ffi::GetRef<StructInfo>(one));
  } else if (auto many = value.try_cast<Array<StructInfo>>()) {
    all = *many;
  } else {
    Refuse(info, param, "struct info or a list of it", value);
  }
  if (info.params[param].kind == ParamKind::kOutInfo && all.size() != 1) {
    return {TupleStructInfo(all)};
  }
  return all;
}

namespace {
/// Numbers as IntImm and FloatImm where the field holds those, one number as a list of it where
/// the field is a list, an IntImm as a number where the field is one.
Any ConvertAttr(const std::string& type, Any value) {
  if (value == nullptr) return value;
  auto is = [&](const char* word) { return type.find(word) != type.npos; };
  if (is("Array") && value.type_index() != kTVMFFIArray) value = Array<Any>{value};
  if (value.type_index() == kTVMFFIArray) {
    Array<Any> items;
    std::string element = is("IntImm") || is("ObjectRef") ? "ir.IntImm"
                          : is("FloatImm")                ? "ir.FloatImm"
                                                          : "";
    for (const Any& item : value.cast<Array<Any>>()) items.push_back(ConvertAttr(element, item));
    return items;
  }
  bool is_int = value.type_index() == kTVMFFIInt, is_float = value.type_index() == kTVMFFIFloat;
  if (is_int && (is("IntImm") || is("Object"))) {
    int64_t v = value.cast<int64_t>();
    return IntImm(DataType::Int(v == static_cast<int32_t>(v) ? 32 : 64), v);
  }
  if ((is_int || is_float) && is("FloatImm"))
    return FloatImm(DataType::Float(64), value.cast<double>());
  if ((is_int || is_float) && is("PrimValue")) return PrimValue(*ToPrimExpr(value));
  if (auto* imm = value.as<IntImmObj>(); imm && !is("Imm") && !is("Object") && !is("Expr"))
    return imm->dtype.is_bool() ? Any(imm->value != 0) : Any(imm->value);
  if (auto* imm = value.as<FloatImmObj>(); imm && !is("Imm")) return imm->value;
  return value;
}
}  // namespace

Attrs MakeAttrs(const OperatorInfo& info, const std::vector<AnyView>& params) {
  if (info.attrs_type == 0) {
    if (info.call_args.size() == info.params.size()) return Attrs(nullptr);
    Map<String, Any> dict;
    for (size_t i = 0; i < params.size(); ++i) {
      if (info.params[i].kind == ParamKind::kAttr) dict.Set(info.args[i].name, Any(params[i]));
    }
    return dict.empty() ? Attrs(nullptr) : Attrs(DictAttrs(dict));
  }
  const NodeInfo& type = InfoOf(info.attrs_type);
  ObjectPtr<Object> node = type.create();
  for (size_t i = 0; i < params.size(); ++i) {
    if (info.params[i].kind != ParamKind::kAttr) continue;
    // None where it is the default: the field keeps its initial value.
    if (params[i] == nullptr && info.args[i].has_default && info.args[i].value == nullptr) continue;
    for (const Field& field : type.own) {
      if (std::strcmp(field.name, info.args[i].name) != 0) continue;
      Any value = ConvertAttr(PrettyType(field.ops->schema()), Any(params[i]));
      TVMFFIAny raw = AnyView(value).CopyToTVMFFIAny();
      if (field.ops->set(reinterpret_cast<char*>(node.get()) + field.offset, &raw) != 0) {
        ffi::Error error = ffi::detail::MoveFromSafeCallRaised();
        TVM_FFI_THROW(OpTypeError)
            << info.ShortName() << ": parameter '" << field.name << "': " << error.message();
      }
    }
  }
  if (type.init) type.init(node.get());
  return Attrs(ObjectRef(std::move(node)).as<Attrs>().value());
}

}  // namespace tvm::relax
