// SPDX-License-Identifier: Apache-2.0
// The table of converters, arguments by schema, and what all converters share.
#include "converter.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "relax/op/convert.h"
#include "tvm/relax/operator.h"

namespace tvm::frontend::torch {
namespace {

std::map<std::string, ConverterInfo, std::less<>>& Converters() {
  static auto* table = new std::map<std::string, ConverterInfo, std::less<>>();
  return *table;
}

Any ParseDefault(const std::string& text) {
  if (text == "None") return nullptr;
  if (text == "True" || text == "False") return text == "True";
  if (text == "[]") return Array<Any>();
  if (text[0] == '\'') return String(text.substr(1, text.size() - 2));
  bool is_float = text.find_first_of(".e") != text.npos;
  return is_float ? Any(std::stod(text)) : Any(static_cast<int64_t>(std::stoll(text)));
}

std::vector<std::string> SplitBy(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    size_t begin = part.find_first_not_of(' ');
    if (begin != part.npos) parts.push_back(part.substr(begin));
  }
  return parts;
}

enum Category { kBoolean, kIntegral, kFloating };
Category CategoryOf(DataType t) {
  return t.is_bool() ? kBoolean : t.is_integer() ? kIntegral : kFloating;
}
DataType TypeOfNumber(const Any& number, DataType default_dtype) {
  switch (number.type_index()) {
    case kTVMFFIBool:
      return DataType::Bool();
    case kTVMFFIInt:
      return DataType::Int(64);
    case kTVMFFIFloat:
      return default_dtype;
    default: {
      auto e = number.try_cast<PrimExpr>();
      return e && (*e).dtype().is_float() ? default_dtype : DataType::Int(64);
    }
  }
}

}  // namespace

ConverterInfo MakeConverter(const char* schema, ConvertFn convert, const char* op) {
  ConverterInfo info{{}, {}, convert, op};
  for (const std::string& param : SplitBy(schema, ',')) {
    size_t equals = param.find('=');
    info.params.push_back(param.substr(0, equals));
    if (equals != param.npos) info.defaults.push_back(ParseDefault(param.substr(equals + 1)));
  }
  return info;
}
void Converter(const char* overloads, const char* schema, ConvertFn convert, const char* op) {
  ConverterInfo info = MakeConverter(schema, convert, op);
  for (const std::string& overload : SplitBy(overloads, ' ')) {
    // Operators of other libraries, and functions of Python, are named in full.
    static constexpr const char* kOthers[] = {"_operator.",
                                              "torch.",
                                              "math.",
                                              "fx.",
                                              "higher_order.",
                                              "prims.",
                                              "quantized_decomposed.",
                                              "torch_nn.",
                                              "torchvision.",
                                              "transformers."};
    bool is_aten = std::none_of(std::begin(kOthers), std::end(kOthers),
                                [&](const char* prefix) { return overload.starts_with(prefix); });
    Converters()[is_aten ? "aten." + overload : overload] = info;
  }
}
const ConverterInfo* FindConverter(const std::string& target) {
  auto it = Converters().find(target);
  if (it != Converters().end()) return &it->second;
  std::string functional = FunctionalTarget(target);
  return functional.empty() ? nullptr : FindConverter(functional);
}
std::vector<std::string> ListConverters() {
  std::vector<std::string> names;
  for (const auto& [name, _] : Converters()) names.push_back(name);
  return names;
}

// ---- facts --------------------------------------------------------------------------------------
bool IsTensor(const Any& value) {
  auto* expr = value.as<RelaxExprObj>();
  return expr && expr->struct_info_.has_value() &&
         expr->struct_info_.value().as<TensorStructInfoObj>();
}
bool IsNumber(const Any& value) {
  int32_t t = value.type_index();
  return t == kTVMFFIInt || t == kTVMFFIFloat || t == kTVMFFIBool || value.as<PrimExprObj>();
}
const TensorStructInfoObj* InfoOf(const Expr& tensor) {
  return relax::GetStructInfo(tensor).as<TensorStructInfoObj>();
}
DataType TypeOf(const Expr& tensor) { return InfoOf(tensor)->dtype; }
int64_t RankOf(const Expr& tensor) { return InfoOf(tensor)->ndim; }
Dims ShapeOf(const Expr& tensor) {
  const Dims* dims = DimsOf(InfoOf(tensor));
  if (!dims) {
    TVM_FFI_THROW(ValueError) << "expected a tensor of known sizes, got "
                              << relax::ShowShape(InfoOf(tensor));
  }
  return *dims;
}
PrimExpr Count(const Dims& dims) {
  PrimExpr count = IntImm::Int64(1);
  for (const PrimExpr& dim : dims) count = count * dim;
  return count;
}
PrimExpr AsSize(const Any& value) {
  if (auto number = value.try_cast<int64_t>()) return IntImm::Int64(*number);
  if (auto* prim = value.as<relax::PrimValueObj>()) return prim->value;
  if (auto* e = value.as<PrimExprObj>()) return cast(DataType::Int(64), ffi::GetRef<PrimExpr>(e));
  TVM_FFI_THROW(TypeError) << "expected a size, got " << value.GetTypeKey();
  TVM_FFI_UNREACHABLE();
}
DataType Promote(DataType a, DataType b) {
  Category ca = CategoryOf(a), cb = CategoryOf(b);
  if (ca != cb) return ca > cb ? a : b;
  if (a == b) return a;
  if (ca == kFloating) {
    if (a.bits() == b.bits()) return DataType::Float(32);  // float16 and bfloat16
    return a.bits() > b.bits() ? a : b;
  }
  if (a.is_uint() == b.is_uint()) return a.bits() > b.bits() ? a : b;
  DataType u = a.is_uint() ? a : b, i = a.is_uint() ? b : a;
  return i.bits() > u.bits() ? i : DataType::Int(std::min(2 * u.bits(), 64));
}
DataType ParseType(const String& name) {
  DataType type(name);
  // Complex numbers have no code among the types of expressions.
  if (type.code() == kDLComplex) {
    TVM_FFI_THROW(NotImplementedError) << "expected a real dtype, got " << name;
  }
  return type;
}
std::vector<int64_t> Axes(int64_t n) {
  std::vector<int64_t> axes(n);
  for (int64_t i = 0; i < n; ++i) axes[i] = i;
  return axes;
}
Array<Any> AnyArray(const std::vector<int64_t>& values) {
  return Array<Any>(values.begin(), values.end());
}

namespace {
/// A list, or the dimensions of a shape.
std::optional<Array<Any>> SizesOf(const Any& value) {
  if (auto* shape = value.as<relax::ShapeExprObj>()) {
    return Array<Any>(shape->values.begin(), shape->values.end());
  }
  return ListOf(value);
}
}  // namespace

// ---- arguments ----------------------------------------------------------------------------------
Conversion::Conversion(ImporterObj* importer, const GraphNodeObj* node, const ConverterInfo& info,
                       std::vector<Any> args)
    : bb(importer->builder),
      op(info.op),
      importer_(importer),
      node_(node),
      info_(info),
      args_(std::move(args)) {}
std::string Conversion::Where() const {
  return std::string(node_->target) + " (node " + std::string(node_->name) + "): ";
}
Expr Conversion::Tensor(size_t i) const {
  if (IsTensor(args_[i])) return args_[i].cast<Expr>();
  TVM_REFUSE(*this, TypeError) << "argument '" << info_.params[i] << "': expected a tensor, got "
                               << args_[i].GetTypeKey();
  TVM_FFI_UNREACHABLE();
}
Optional<Expr> Conversion::OptionalTensor(size_t i) const {
  return Given(i) ? Optional<Expr>(Tensor(i)) : std::nullopt;
}
Array<Expr> Conversion::Tensors(size_t i) const {
  Array<Expr> tensors;
  if (auto list = ListOf(args_[i])) {
    for (const Any& item : *list) {
      if (!IsTensor(item)) {
        TVM_REFUSE(*this, TypeError)
            << "argument '" << info_.params[i] << "': expected tensors, got " << item.GetTypeKey();
      }
      tensors.push_back(item.cast<Expr>());
    }
    return tensors;
  }
  return {Tensor(i)};
}
int64_t Conversion::Int(size_t i) const {
  if (auto value = args_[i].try_cast<int64_t>()) return *value;
  if (auto* e = args_[i].as<PrimExprObj>()) {
    if (auto value = AsConstInt(Simplify(ffi::GetRef<PrimExpr>(e)))) return *value;
  }
  TVM_REFUSE(*this, TypeError) << "argument '" << info_.params[i] << "': expected an integer, got "
                               << args_[i].GetTypeKey();
  TVM_FFI_UNREACHABLE();
}
double Conversion::Number(size_t i) const {
  if (auto value = args_[i].try_cast<double>()) return *value;
  return static_cast<double>(Int(i));
}
std::string Conversion::Text(size_t i) const {
  if (auto text = args_[i].try_cast<String>()) return *text;
  TVM_REFUSE(*this, TypeError) << "argument '" << info_.params[i] << "': expected a text, got "
                               << args_[i].GetTypeKey();
  TVM_FFI_UNREACHABLE();
}
std::vector<int64_t> Conversion::Ints(size_t i) const {
  std::vector<int64_t> values;
  if (!Given(i)) return values;
  auto list = SizesOf(args_[i]);
  if (!list) return {Int(i)};
  for (const Any& item : *list) {
    auto value = AsConstInt(Simplify(AsSize(item)));
    if (!value) {
      TVM_REFUSE(*this, NotImplementedError)
          << "argument '" << info_.params[i] << "': expected constant integers, got "
          << item.GetTypeKey();
    }
    values.push_back(*value);
  }
  return values;
}
std::vector<int64_t> Conversion::Ints(size_t i, size_t n, int64_t otherwise) const {
  std::vector<int64_t> values = Ints(i);
  if (values.empty()) values.push_back(otherwise);
  if (values.size() == 1) values.resize(n, values[0]);
  return values;
}
Dims Conversion::Sizes(size_t i) const {
  Dims sizes;
  auto list = SizesOf(args_[i]);
  if (!list) return {AsSize(args_[i])};
  for (const Any& item : *list) sizes.push_back(AsSize(item));
  return sizes;
}
DataType Conversion::Type(size_t i, DataType otherwise) const {
  return Given(i) ? ParseType(Text(i)) : otherwise;
}
int64_t Conversion::NormalAxis(int64_t axis, int64_t rank) const {
  int64_t n = std::max<int64_t>(rank, 1);
  if (axis < -n || axis >= n) {
    TVM_REFUSE(*this, ValueError) << "expected an axis in [" << -n << ", " << n << "), got "
                                  << axis;
  }
  return axis < 0 ? axis + n : axis;
}
std::vector<int64_t> Conversion::NormalAxes(std::vector<int64_t> axes, int64_t rank) const {
  for (int64_t& axis : axes) axis = NormalAxis(axis, rank);
  return axes;
}

// ---- types --------------------------------------------------------------------------------------
DataType Conversion::default_dtype() const { return importer_->default_dtype; }
DataType Conversion::ResultType(const std::vector<Any>& operands) const {
  // Tensors with dimensions decide, unless a scalar tensor, or a number, is of a higher category.
  std::optional<DataType> by_level[3];
  for (const Any& operand : operands) {
    if (operand == nullptr) continue;
    bool is_tensor = IsTensor(operand);
    DataType t = is_tensor ? TypeOf(operand.cast<Expr>()) : TypeOfNumber(operand, default_dtype());
    auto& level = by_level[!is_tensor ? 2 : RankOf(operand.cast<Expr>()) == 0 ? 1 : 0];
    level = level ? Promote(*level, t) : t;
  }
  std::optional<DataType> result;
  for (const auto& level : by_level) {
    if (!level) continue;
    if (!result || CategoryOf(*level) > CategoryOf(*result)) result = level;
  }
  return *result;
}
Expr Conversion::Cast(const Expr& tensor, DataType dtype) {
  if (TypeOf(tensor) == dtype) return tensor;
  return Emit("astype", tensor, dtype);
}
Expr Conversion::Real(const Expr& tensor) {
  return IsIntegral(TypeOf(tensor)) ? Cast(tensor, default_dtype()) : tensor;
}
Expr Conversion::As(const Any& operand, DataType dtype) {
  if (IsTensor(operand)) return Cast(operand.cast<Expr>(), dtype);
  if (auto* e = operand.as<PrimExprObj>()) {
    return PrimValue(cast(dtype, ffi::GetRef<PrimExpr>(e)));
  }
  if (!IsNumber(operand)) {
    TVM_REFUSE(*this, TypeError) << "expected a tensor or a number, got " << operand.GetTypeKey();
  }
  return relax::ScalarConstant(operand, dtype);
}

// ---- results ------------------------------------------------------------------------------------
void Conversion::Change(size_t i, const Expr& value) {
  auto* ref = i < node_->args.size() ? node_->args[i].as<ValueRefObj>() : nullptr;
  if (!ref) TVM_REFUSE(*this, ValueError) << "expected an input as '" << info_.params[i] << "'";
  importer_->Assign(ref->name, value, node_);
}
Expr Conversion::EmitCall(const char* name, const std::vector<AnyView>& args) {
  std::string full = std::string("relax.") + name;
  return bb->Emit(relax::CallOperator(full.c_str(), args));
}
Expr Conversion::Const(double value, DataType dtype) const {
  return relax::ScalarConstant(value, dtype);
}
Expr Conversion::Const(int64_t value) const {
  return relax::ScalarConstant(value, DataType::Int(64));
}
Expr Conversion::Reshape(const Expr& x, const Dims& dims) {
  const Dims* known = DimsOf(InfoOf(x));
  return known && Equal(*known, dims) ? x : Emit("reshape", x, dims);
}
Expr Conversion::BroadcastTo(const Expr& x, const Dims& dims) {
  const Dims* known = DimsOf(InfoOf(x));
  return known && Equal(*known, dims) ? x : Emit("broadcast_to", x, dims);
}
Expr Conversion::Permute(const Expr& x, const std::vector<int64_t>& axes) {
  return axes == Axes(RankOf(x)) ? x : Emit("permute_dims", x, AnyArray(axes));
}
Expr Conversion::Slice(const Expr& x, int64_t axis, const PrimExpr& begin, const PrimExpr& end,
                       int64_t stride) {
  return Emit("strided_slice", x, Array<Any>{axis}, Dims{begin}, Dims{end}, Array<Any>{stride});
}
Expr Conversion::Arange(const PrimExpr& n, DataType dtype) {
  return Emit("arange", PrimValue::Int64(0), PrimValue(n), PrimValue::Int64(1), dtype);
}
bool Conversion::Equal(const PrimExpr& a, const PrimExpr& b) const {
  auto x = AsConstInt(a), y = AsConstInt(b);
  return x && y ? *x == *y : a.same_as(b) || importer_->symbols.analyzer()->CanProveEqual(a, b);
}
bool Conversion::Equal(const Dims& a, const Dims& b) const {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Equal(a[i], b[i])) return false;
  }
  return true;
}
Expr Conversion::Compute(
    const char* name, const Array<Expr>& tensors,
    const std::function<Array<te::Tensor>(const Array<te::Tensor>&)>& compute) {
  relax::TEArguments te = relax::TEArguments::Create();
  Array<te::Tensor> inputs;
  for (const Expr& tensor : tensors) inputs.push_back(te->Tensor(tensor));
  return bb->Emit(te->CallTIR(bb, name, compute(inputs)));
}

}  // namespace tvm::frontend::torch
