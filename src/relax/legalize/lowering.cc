// SPDX-License-Identifier: Apache-2.0
// From a row, or by hand, to the call of a PrimFunc; see the header.
#include "relax/legalize/lowering.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <unordered_map>

#include "tvm/runtime/tensor.h"
#include "tvm/topi/elementwise.h"

namespace tvm::relax {
namespace {
struct ParsedRow {
  String name;
  const char* function;  // looked up when it is called: it may be registered after the row
  std::vector<std::string> arguments;
};
std::unordered_map<const Object*, ParsedRow>& Rows() {
  static auto* rows = new std::unordered_map<const Object*, ParsedRow>();
  return *rows;
}
ParsedRow Parsed(const LoweringRow& row) {
  std::istringstream tokens(row.arguments);
  ParsedRow parsed{row.name, row.function, {}};
  for (std::string token; tokens >> token;) parsed.arguments.push_back(token);
  return parsed;
}
Expr LowerBy(const ParsedRow& row, const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  std::vector<Any> arguments;
  for (const std::string& token : row.arguments) arguments.push_back(lowered.Meaning(token));
  return lowered.Finish(row.name, lowered.Run(row.function, arguments));
}
Expr LowerByOwnRow(const BlockBuilder& builder, const Call& call) {
  return LowerBy(Rows().at(call->op.get()), builder, call);
}
/// An attribute as a function of topi takes it: numbers are numbers.
Any Plain(const Any& value) {
  if (value == nullptr) return value;
  if (auto i = value.as<IntImm>()) return (*i)->value;
  if (auto f = value.as<FloatImm>()) return (*f)->value;
  if (auto prim = value.as<PrimValue>()) return (*prim)->value;
  return value;
}
}  // namespace

void RegisterLowering(const LoweringRow& row) {
  Op op = Op::Register(row.op);
  Rows()[op.get()] = Parsed(row);
  FLegalize.Set(op, &LowerByOwnRow);
}
Expr LowerByRow(const LoweringRow& row, const BlockBuilder& builder, const Call& call) {
  return LowerBy(Parsed(row), builder, call);
}

// ---- arguments ----------------------------------------------------------------------------------
namespace {
/// The number that 16 bits are, of which so many are the fraction; none where it is not finite.
std::optional<double> SmallFloat(uint16_t bits, int fraction_bits) {
  int most = (1 << (15 - fraction_bits)) - 1, exponent = bits >> fraction_bits & most;
  if (exponent == most) return std::nullopt;
  int fraction = bits & ((1 << fraction_bits) - 1), bias = most / 2;
  if (exponent > 0) fraction += 1 << fraction_bits;
  double size = std::ldexp(fraction, std::max(exponent, 1) - bias - fraction_bits);
  return bits >> 15 ? -size : size;
}
}  // namespace

PrimExpr ScalarOf(const Expr& expr) {
  auto* constant = expr.as<ConstantObj>();
  if (!constant || !constant->IsScalar()) return PrimExpr();
  DataType t = constant->data.dtype();
  const void* data = static_cast<const char*>(constant->data.data_ptr());
  auto read = [&]<class T>(T value) {
    std::memcpy(&value, data, sizeof(T));
    return value;
  };
  switch (t.bits()) {
    case 8:
      if (t.is_bool()) return IntImm::Bool(read(uint8_t{}) != 0);
      if (t.is_int()) return MakeConst(t, static_cast<int64_t>(read(int8_t{})));
      if (t.is_uint()) return MakeConst(t, static_cast<int64_t>(read(uint8_t{})));
      break;
    case 16:
      if (t.is_int()) return MakeConst(t, static_cast<int64_t>(read(int16_t{})));
      if (t.is_uint()) return MakeConst(t, static_cast<int64_t>(read(uint16_t{})));
      if (t.is_float16() || t.is_bfloat16()) {
        uint16_t bits = read(uint16_t{});
        if (auto number = SmallFloat(bits, t.is_float16() ? 10 : 7)) return FloatImm(t, *number);
        return reinterpret(t, MakeConst(DataType::UInt(16), static_cast<int64_t>(bits)));
      }
      break;
    case 32:
      if (t.is_int()) return MakeConst(t, static_cast<int64_t>(read(int32_t{})));
      if (t.is_uint()) return MakeConst(t, static_cast<int64_t>(read(uint32_t{})));
      if (t.is_ieee_float()) return MakeConst(t, static_cast<double>(read(float{})));
      break;
    case 64:
      if (t.is_int()) return MakeConst(t, read(int64_t{}));
      if (t.is_ieee_float()) return MakeConst(t, read(double{}));
      break;
    default:
      break;
  }
  return PrimExpr();
}
Array<Expr> Lowered::Fields(const Expr& tuple) {
  if (auto* inlined = tuple.as<TupleObj>()) return inlined->fields;
  auto* info = GetStructInfoAs<TupleStructInfoObj>(tuple);
  Array<Expr> fields;
  for (size_t i = 0; info && i < info->fields.size(); ++i)
    fields.push_back(builder->Emit(TupleGetItem(tuple, static_cast<int64_t>(i))));
  return fields;
}
Variant<te::Tensor, PrimExpr> Lowered::Value(size_t i) {
  const Expr& argument = call->args[i];
  if (PrimExpr value = ScalarOf(argument); value.defined()) return value;
  if (GetStructInfo(argument).as<PrimStructInfoObj>()) return te->Scalar(argument);
  return te->Tensor(argument);
}
Array<te::Tensor> Lowered::Tensors(size_t i) {
  return Fields(call->args[i]).Map([&](const Expr& e) { return te->Tensor(e); });
}
Array<PrimExpr> Lowered::Scalars(size_t i) {
  return Fields(call->args[i]).Map([&](const Expr& e) { return te->Scalar(e); });
}
Any Lowered::Argument(size_t i) {
  if (!Has(i)) return nullptr;
  const Expr& argument = call->args[i];
  StructInfo info = GetStructInfo(argument);
  if (info.as<ShapeStructInfoObj>()) return te->Shape(argument);
  if (info.as<PrimStructInfoObj>()) return te->Scalar(argument);
  if (info.as<TupleStructInfoObj>()) {
    Array<Expr> fields = Fields(argument);
    bool scalars = !fields.empty() && GetStructInfo(fields[0]).as<PrimStructInfoObj>();
    return scalars ? Any(Scalars(i)) : Any(Tensors(i));
  }
  return te->Tensor(argument);
}
Array<PrimExpr> Lowered::ResultShape() {
  auto* info = GetStructInfoAs<TensorStructInfoObj>(call);
  auto dims = info ? info->Dims() : std::nullopt;
  if (!dims)
    TVM_FFI_THROW(OpValueError) << "LegalizeOps: expected a result of known shape of "
                                << call->op.as<OpObj>()->name;
  return dims.value().Map([&](const PrimExpr& e) { return te->Inside(e); });
}
DataType Lowered::ResultType() const { return GetStructInfoAs<TensorStructInfoObj>(call)->dtype; }

Any Lowered::Attr(const std::string& name) const {
  const Object* attrs = call->attrs.value().get();
  if (auto* dict = call->attrs.value().as<DictAttrsObj>()) {
    auto it = dict->dict.find(name);
    return it == dict->dict.end() ? Any(nullptr) : Plain((*it).second);
  }
  for (const Field& field : InfoOf(attrs->type_index()).own) {
    if (name != field.name) continue;
    TVMFFIAny value;
    void* at = reinterpret_cast<char*>(const_cast<Object*>(attrs)) + field.offset;
    TVM_FFI_CHECK_SAFE_CALL(field.ops->get(at, &value));
    return Plain(ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(&value));
  }
  TVM_FFI_THROW(InternalError) << attrs->GetTypeKey() << " has no field " << name;
  TVM_FFI_UNREACHABLE();
}
Any Lowered::Meaning(const std::string& token) {
  if (std::isdigit(static_cast<unsigned char>(token[0]))) {
    size_t condition = token.find('?');
    if (condition != std::string::npos && !Attr(token.substr(condition + 1)).cast<bool>())
      return nullptr;
    return Argument(std::stoul(token));
  }
  if (token == "None") return nullptr;
  if (token == "true" || token == "false") return token == "true";
  if (token == "$shape") return ResultShape();
  if (token == "$dtype") return ResultType();
  if (token[0] == '#') return static_cast<int64_t>(std::stoll(token.substr(1)));
  if (token[0] == '\'') return String(token.substr(1, token.size() - 2));
  if (token[0] == '!') return !Attr(token.substr(1)).cast<bool>();
  size_t fallback = token.find('=');
  Any value = Attr(token.substr(0, fallback));
  if (value == nullptr && fallback != std::string::npos) return Meaning(token.substr(fallback + 1));
  return value;
}
Array<te::Tensor> Lowered::Run(const char* function, const std::vector<Any>& arguments) {
  std::vector<AnyView> views(arguments.begin(), arguments.end());
  Any result;
  ffi::Function::GetGlobalRequired(function).CallPacked(
      views.data(), static_cast<int32_t>(views.size()), &result);
  if (auto tensor = result.as<te::Tensor>()) return {*tensor};
  return result.cast<Array<te::Tensor>>();
}

Expr Lowered::Finish(const String& name, Array<te::Tensor> results) {
  StructInfo info = GetStructInfo(call);
  auto* tuple = info.as<TupleStructInfoObj>();
  // Arithmetic on bool is computed by integers: the result keeps its type.
  for (size_t i = 0; i < results.size(); ++i) {
    bool is_field = tuple && i < tuple->fields.size();
    auto* tensor = (is_field ? tuple->fields[i] : info).as<TensorStructInfoObj>();
    if (tensor && !tensor->dtype.is_void() && tensor->dtype != results[i]->dtype)
      results.Set(i, topi::cast(results[i], tensor->dtype));
  }
  Expr result = te->CallTIR(builder, name, results);
  // A tuple stays one where it has a single field (meshgrid of one vector).
  return tuple && results.size() == 1 ? Tuple({result}) : result;
}

}  // namespace tvm::relax
