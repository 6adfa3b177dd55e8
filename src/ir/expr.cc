// SPDX-License-Identifier: Apache-2.0
// Constants, ranges, types, spans and attributes: constructors and invariants.
#include "tvm/ir/expr.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <mutex>

#include "tvm/ir/function.h"

namespace tvm {

// ---- source -----------------------------------------------------------------------------------
SourceName::SourceName(String name) {
  *this = New<SourceName>([&](SourceNameObj* n) { n->name = std::move(name); });
}
void SequentialSpanObj::Init() {
  if (spans.empty())
    TVM_FFI_THROW(ValueError) << "SequentialSpan: expected at least one span, got none";
  const SpanObj* first = spans[0].get();
  source_name = first->source_name;
  line = first->line;
  end_line = first->end_line;
  column = first->column;
  end_column = first->end_column;
}
std::string ShowSpan(const Optional<Span>& span) {
  if (!span.has_value()) return "";
  const SpanObj* s = span.value().get();
  std::string file = s->source_name->name;
  std::string out = file + ":" + std::to_string(s->line) + ": ";
  std::ifstream in(file);
  std::string text;
  for (int64_t i = 0; i < s->line; ++i) {
    if (!std::getline(in, text)) return out;
  }
  int64_t last = s->end_line == s->line ? s->end_column : static_cast<int64_t>(text.size()) + 1;
  out += "\n    " + text + "\n    " + std::string(std::max<int64_t>(0, s->column - 1), ' ');
  return out + std::string(std::max<int64_t>(1, last - s->column), '^') + "\n";
}

// ---- types ------------------------------------------------------------------------------------
PrimType::PrimType(DataType dtype) {
  *this = New<PrimType>([&](PrimTypeObj* n) { n->dtype = dtype; });
}
PointerType::PointerType(Type element_type, String storage_scope) {
  *this = New<PointerType>([&](PointerTypeObj* n) {
    n->element_type = std::move(element_type);
    n->storage_scope = std::move(storage_scope);
  });
}
void PointerTypeObj::Init() {
  if (storage_scope == "") storage_scope = "global";
}
TupleType::TupleType(Array<Type> fields) {
  *this = New<TupleType>([&](TupleTypeObj* n) { n->fields = std::move(fields); });
}
DataType DataTypeOf(const Type& type) {
  if (auto* prim = type.as<PrimTypeObj>()) return prim->dtype;
  if (IsVoidType(type)) return DataType::Void();
  return DataType::Handle();
}

// ---- constants --------------------------------------------------------------------------------
PrimExpr::PrimExpr(int32_t value) : PrimExpr(IntImm::Int32(value)) {}

IntImm::IntImm(DataType dtype, int64_t value, Optional<Span> span) {
  *this = New<IntImm>([&](IntImmObj* n) { n->dtype = dtype, n->value = value, n->span = span; });
}
void IntImmObj::Init() {
  if (!dtype.is_scalar() || !(dtype.is_integer() || dtype.is_bool())) {
    TVM_FFI_THROW(TypeError) << "IntImm: expected a scalar integer or bool type, got " << dtype;
  }
  if (dtype.is_bool()) {
    if (value != 0 && value != 1)
      TVM_FFI_THROW(ValueError) << "IntImm: expected 0 or 1 for bool, got " << value;
    return;
  }
  int bits = dtype.bits();
  if (bits >= 64) return;  // uint64 keeps its bit pattern
  int64_t low = dtype.is_uint() ? 0 : -(int64_t{1} << (bits - 1));
  int64_t high = (int64_t{1} << (dtype.is_uint() ? bits : bits - 1)) - 1;
  if (value < low || value > high) {
    TVM_FFI_THROW(ValueError) << "IntImm: expected a value of " << dtype << ", between " << low
                              << " and " << high << ", got " << value;
  }
}

FloatImm::FloatImm(DataType dtype, double value, Optional<Span> span) {
  *this =
      New<FloatImm>([&](FloatImmObj* n) { n->dtype = dtype, n->value = value, n->span = span; });
}
void FloatImmObj::Init() {
  if (!dtype.is_scalar() || !dtype.is_float()) {
    TVM_FFI_THROW(TypeError) << "FloatImm: expected a scalar floating-point type, got " << dtype;
  }
  value = RoundToFloatType(value, dtype);
}

FloatFormat FormatOf(DataType type) {
  using F = FloatFormat;
  switch (type.code()) {
    case kDLFloat:
      if (type.bits() == 16) return {11, -14, 65504.0, F::kInfinity};
      if (type.bits() == 64) return {53, -1022, 0x1.fffffffffffffp1023, F::kInfinity};
      return {24, -126, 0x1.fffffep127, F::kInfinity};
    case kDLBfloat:
      return {8, -126, 0x1.fep127, F::kInfinity};
    case kDLFloat8_e3m4:
      return {5, -2, 15.5, F::kInfinity};
    case kDLFloat8_e4m3:
      return {4, -6, 240.0, F::kInfinity};
    case kDLFloat8_e4m3fn:
      return {4, -6, 448.0, F::kNaN};
    case kDLFloat8_e4m3b11fnuz:
      return {4, -10, 30.0, F::kNaN, false};
    case kDLFloat8_e4m3fnuz:
      return {4, -7, 240.0, F::kNaN, false};
    case kDLFloat8_e5m2:
      return {3, -14, 57344.0, F::kInfinity};
    case kDLFloat8_e5m2fnuz:
      return {3, -15, 57344.0, F::kNaN, false};
    case kDLFloat8_e8m0fnu:
      return {1, -127, 0x1p127, F::kNaN, false, false};
    case kDLFloat6_e2m3fn:
      return {4, 0, 7.5, F::kSaturate};
    case kDLFloat6_e3m2fn:
      return {3, -2, 28.0, F::kSaturate};
    case kDLFloat4_e2m1fn:
      return {2, 0, 6.0, F::kSaturate};
    default:
      TVM_FFI_THROW(TypeError) << "expected a floating-point type, got " << type;
  }
  TVM_FFI_UNREACHABLE();
}

double LargestFinite(DataType type) { return FormatOf(type).max; }

double RoundToFloatType(double value, DataType type) {
  if (type.code() == kDLFloat && type.bits() == 64) return value;
  FloatFormat f = FormatOf(type);
  if (std::isnan(value)) return f.overflow == FloatFormat::kSaturate ? f.max : value;
  if (!f.is_signed && value <= 0) return NAN;  // powers of two have no zero
  if (value == 0) return f.negative_zero ? value : 0.0;
  double magnitude = std::fabs(value);
  if (std::isfinite(magnitude)) {
    int exponent = std::max(std::ilogb(magnitude), f.min_exponent);
    // The current rounding mode is to nearest even; nearbyint then rounds as the format does.
    int shift = exponent - (f.precision - 1);
    magnitude = std::ldexp(std::nearbyint(std::ldexp(magnitude, -shift)), shift);
  }
  if (magnitude > f.max) {
    magnitude = f.overflow == FloatFormat::kInfinity ? INFINITY
                : f.overflow == FloatFormat::kNaN    ? NAN
                                                     : f.max;
  }
  if (!f.is_signed && magnitude == 0) return std::ldexp(1.0, f.min_exponent);
  if (magnitude == 0 && !f.negative_zero) return 0.0;
  return std::copysign(magnitude, value);
}

// ---- conversions ------------------------------------------------------------------------------
namespace {
std::unordered_map<int32_t, ExprConversion>& Conversions() {
  static auto* table = new std::unordered_map<int32_t, ExprConversion>();
  return *table;
}
}  // namespace
void SetExprConversion(int32_t type_index, ExprConversion convert) {
  Conversions()[type_index] = convert;
}
std::optional<PrimExpr> ConvertToPrimExpr(const TVMFFIAny* value) {
  switch (value->type_index) {
    case kTVMFFIBool:
      return IntImm::Bool(value->v_int64 != 0);
    case kTVMFFIInt: {
      int64_t v = value->v_int64;
      bool fits = v >= INT32_MIN && v <= INT32_MAX;
      return IntImm(DataType::Int(fits ? 32 : 64), v);
    }
    case kTVMFFIFloat:
      return FloatImm(DataType::Float(32), value->v_float64);
    default: {
      bool is_string = value->type_index == kTVMFFISmallStr || value->type_index == kTVMFFIRawStr;
      auto convert = Conversions().find(is_string ? kTVMFFIStr : value->type_index);
      if (convert == Conversions().end()) return std::nullopt;
      return convert->second(AnyView::CopyFromTVMFFIAny(*value));
    }
  }
}

// ---- ranges, names ----------------------------------------------------------------------------
Range Range::FromMinExtent(PrimExpr min, PrimExpr extent, Optional<Span> span) {
  return New<Range>(
      [&](RangeObj* n) { n->min = std::move(min), n->extent = std::move(extent), n->span = span; });
}
GlobalVar::GlobalVar(String name_hint) {
  *this = New<GlobalVar>([&](GlobalVarObj* n) { n->name_hint = std::move(name_hint); });
}

// ---- attributes -------------------------------------------------------------------------------
DictAttrs::DictAttrs(Map<String, Any> dict) {
  *this = New<DictAttrs>([&](DictAttrsObj* n) { n->dict = std::move(dict); });
}
DictAttrs WithAttr(const DictAttrs& attrs, const String& key, Any value) {
  Map<String, Any> dict;
  if (attrs.defined()) dict = attrs->dict;
  dict.Set(key, std::move(value));
  return DictAttrs(dict);
}
DictAttrs WithoutAttr(const DictAttrs& attrs, const String& key) {
  if (!attrs.Has(key)) return attrs;
  Map<String, Any> dict = attrs->dict;
  dict.erase(key);
  return DictAttrs(dict);
}

TVM_REGISTER() {
  RegisterNode<SourceNameObj>("The name of a source text: a file or \"<te>\".");
  RegisterNode<SpanObj>("A part of a source text; lines and columns count from 1.");
  RegisterNode<SequentialSpanObj>("Several spans that one node comes from.");
  RegisterNode<SourceObj>("A source text.");
  RegisterNode<SourceMapObj>("The texts that spans refer to, by name.");
  RegisterBase<TypeObj>("Base of types.");
  RegisterNode<PrimTypeObj>("A value of a DataType.");
  RegisterNode<PointerTypeObj>("A pointer to elements of a type in a memory scope.");
  RegisterNode<TupleTypeObj>("A tuple of types; the empty one is void.");
  RegisterNode<FuncTypeObj>("The type of a function.");
  RegisterNode<TensorMapTypeObj>("A tensor descriptor of CUDA's copy engine.");
  RegisterBase<BaseExprObj>("Base of all expressions.");
  RegisterBase<PrimExprObj>("A scalar or vector value.");
  RegisterNode<IntImmObj>("An integer constant.");
  RegisterNode<FloatImmObj>("A floating-point constant.");
  RegisterNode<RangeObj>("[min, min + extent)");
  RegisterBase<StructInfoObj>("What is known about the values of an expression.");
  RegisterBase<RelaxExprObj>("An expression of the graph level.");
  RegisterNode<GlobalVarObj>("The name of a function in a module.");
  RegisterBase<BaseFuncObj>("Base of functions.");
  RegisterBase<AttrsObj>("Base of attributes.");
  RegisterNode<DictAttrsObj>("Attributes by name.");
  Def("ir.Range_", &Range::FromMinExtent, "[min, min + extent)", Arg("min"), Arg("extent"),
      Arg("span", nullptr));
  Def(
      "ir.BaseFunc._with_attr",
      [](BaseFunc f, String key, Any value) -> BaseFunc { return WithAttr(f, key, value); },
      "A copy with an attribute set.", Arg("self"), Arg("attr_key"), Arg("attr_value"));
  Def(
      "ir.BaseFunc.without_attr",
      [](BaseFunc f, String key) -> BaseFunc { return WithoutAttr(f, key); },
      "A copy without an attribute.", Arg("self"), Arg("attr_key"));
}

}  // namespace tvm
