// SPDX-License-Identifier: Apache-2.0
// What converters ask of a node, and how they make values.

#include "frontend/onnx/importer.h"
#include "relax/op/convert.h"
#include "tvm/relax/infer.h"

namespace tvm::frontend::onnx {
namespace {
constexpr const char* kAttributeTypes[] = {
    "nothing", "a number",        "an integer",     "a text", "a tensor",
    "a graph", "numbers",         "integers",       "texts",  "tensors",
    "graphs",  "a sparse tensor", "sparse tensors", "a type", "types"};
std::string TypeName(int64_t type) {
  return type >= 0 && type < static_cast<int64_t>(std::size(kAttributeTypes))
             ? kAttributeTypes[type]
             : "type " + std::to_string(type);
}
}  // namespace

Node::Node(Importer& importer, const NodeProto& proto, const Context& context, Scope* scope,
           int64_t opset)
    : importer(importer),
      proto(proto),
      context(context),
      scope(scope),
      opset(opset),
      op(proto.op_type) {
  for (Name name : proto.inputs) {
    Value value;
    if (!name.empty()) {
      const Value* found = scope->Find(name);
      if (!found) Fail("inputs that earlier nodes gave", "'" + std::string(name) + "'");
      value = *found;
    }
    inputs.push_back(std::move(value));
  }
  for (const Attribute& attr : proto.attributes) {
    if (attr.reference.empty()) {
      attributes[attr.name] = attr;
    } else if (auto it = context.attributes.find(attr.reference); it != context.attributes.end()) {
      attributes[attr.name] = it->second;
    }
  }
}

// ---- inputs -------------------------------------------------------------------------------------
const Value& Node::Input(size_t i) {
  read_inputs_.insert(i);
  if (i >= inputs.size())
    Fail("at least " + std::to_string(i + 1) + " inputs", std::to_string(inputs.size()));
  return inputs[i];
}
Expr Node::In(size_t i) {
  if (const char* what = Input(i).Otherwise())
    Fail("a tensor of numbers as input " + std::to_string(i), what);
  return importer.TensorOf(&inputs[i]);
}
const Value& Node::StringsIn(size_t i) {
  const Value& value = Input(i);
  const char* what = value.Otherwise();
  if (!value.IsStrings()) Fail("strings as input " + std::to_string(i), what ? what : "numbers");
  return value;
}
std::vector<Expr> Node::All() {
  std::vector<Expr> all;
  for (size_t i = 0; i < inputs.size(); ++i) all.push_back(In(i));
  if (all.empty()) Fail("at least one input", "none");
  return all;
}
const Known* Node::KnownOf(size_t i) {
  Input(i);
  return importer.KnownOf(&inputs[i]);
}
std::vector<PrimExpr> Node::Integers(size_t i, std::optional<int64_t> length) {
  if (const Known* known = KnownOf(i)) {
    if (known->dtype.is_float()) Fail("integers as input " + std::to_string(i), known->dtype.str());
    return known->elements;
  }
  Expr e = In(i);
  return RuntimeIntegers(length ? Fitted(e, {IntImm::Int64(*length)}) : e);
}
std::vector<PrimExpr> Node::IntegersUpTo(size_t i, int64_t count, int64_t fill) {
  if (LengthOf(i)) return Integers(i);
  Te te(*this);
  te::Tensor t = te(Cast(In(i), DataType::Int(64)));
  auto element = [&](const Array<tir::Var>& at) {
    return if_then_else(at[0] < t->shape[0], t(at[0]), IntImm::Int64(fill));
  };
  return RuntimeIntegers(
      te.Done("fill_up", te::compute({IntImm::Int64(count)}, element, "fill_up")));
}
PrimExpr Node::Integer(size_t i) {
  std::vector<PrimExpr> values = Integers(i, 1);
  if (values.size() != 1)
    Fail("one integer as input " + std::to_string(i), std::to_string(values.size()));
  return values[0];
}
std::optional<int64_t> Node::LengthOf(size_t i) {
  if (const Known* known = KnownOf(i)) return known->elements.size();
  Dims shape = Shape(In(i));
  return shape.empty() ? std::optional<int64_t>(1) : AsConstInt(shape[0]);
}
std::optional<int64_t> Node::DeclaredRank(size_t i) const {
  return Wants(i) ? importer.DeclaredRank(proto.outputs[i]) : std::nullopt;
}
std::vector<PrimExpr> Node::RuntimeIntegers(const Expr& e) {
  // Shapes hold no negative numbers, so they travel with an offset.
  constexpr int64_t kOffset = int64_t{1} << 40;
  Dims shape = Shape(e);
  if (!TypeOf(e).is_integer() || shape.size() > 1 || (shape.size() == 1 && !AsConstInt(shape[0])))
    Fail("a vector of integers whose length is known", TypeOf(e).str() + relax::Show(shape));
  int64_t size = shape.empty() ? 1 : *AsConstInt(shape[0]);
  if (size == 0) return {};
  // What is farther away (the end of a slice, say) is as good as the offset.
  Te te(*this);
  te::Tensor t = te(Reshape(Cast(e, DataType::Int(64)), {IntImm::Int64(size)}));
  PrimExpr offset = IntImm::Int64(kOffset);
  auto element = [&](const Array<tir::Var>& at) {
    return max(min(t(at[0]), offset), neg(offset)) + offset;
  };
  Expr raised = te.Done("raise", te::compute(t->shape, element, "raise"));
  Expr as_shape = importer.builder()->Emit(relax::CallOperator("relax.tensor_to_shape", {raised}));
  Dims fresh;
  std::vector<PrimExpr> result;
  for (int64_t i = 0; i < size; ++i) {
    fresh.push_back(importer.DataVar());
    result.push_back(fresh.back() - IntImm::Int64(kOffset));
  }
  importer.builder()->EmitMatchCast(as_shape, relax::ShapeStructInfo(fresh), "lv");
  return result;
}
std::optional<std::vector<int64_t>> Node::TryConstInts(size_t i) {
  std::vector<int64_t> values;
  const Known* known = KnownOf(i);
  if (!known) {
    Dims shape = Shape(In(i));
    bool is_empty = shape.size() == 1 && IsZero(shape[0]);
    return is_empty ? std::optional(values) : std::nullopt;
  }
  for (const PrimExpr& e : known->elements) {
    auto value = AsConstInt(e);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}
std::vector<int64_t> Node::ConstInts(size_t i) {
  auto values = TryConstInts(i);
  if (!values) Unsupported("an input number " + std::to_string(i) + " that is not constant");
  return *values;
}
std::vector<double> Node::ConstFloats(size_t i) {
  std::vector<double> values;
  const Known* known = KnownOf(i);
  for (size_t k = 0; known && k < known->elements.size(); ++k) {
    if (auto* f = known->elements[k].as<FloatImmObj>()) values.push_back(f->value);
  }
  if (!known || values.size() != known->elements.size())
    Unsupported("an input number " + std::to_string(i) + " that is not constant");
  return values;
}
std::optional<PrimExpr> Node::ScalarOf(size_t i) {
  const Known* known = Input(i).IsOpen() ? nullptr : KnownOf(i);
  return known && known->elements.size() == 1 ? std::optional(known->elements[0]) : std::nullopt;
}

// ---- attributes ---------------------------------------------------------------------------------
const Attribute* Node::Find(Name name, Attribute::Type type) {
  auto it = attributes.find(name);
  if (it == attributes.end()) return nullptr;
  read_attributes_.insert(name);
  const Attribute& attr = it->second;
  // An empty list has no field that says which type it is.
  bool is_empty =
      attr.type == Attribute::kNone &&
      (type == Attribute::kInts || type == Attribute::kFloats || type == Attribute::kStrings);
  bool has_value =
      (type != Attribute::kTensor || attr.tensor) && (type != Attribute::kGraph || attr.graph);
  if ((attr.type != type && !is_empty) || !has_value) {
    Fail("attribute '" + std::string(name) + "' to be " + TypeName(type), TypeName(attr.type));
  }
  return &attr;
}
#define TVM_ONNX_ATTRIBUTE(Function, T, kType, value, kind)                         \
  T Node::Function(Name name, std::optional<T> fallback) {                          \
    if (const Attribute* attr = Find(name, Attribute::kType)) return value;         \
    if (!fallback) Fail("an attribute '" + std::string(name) + "', " kind, "none"); \
    return *fallback;                                                               \
  }
TVM_ONNX_ATTRIBUTE(Int, int64_t, kInt, attr->i, "an integer")
TVM_ONNX_ATTRIBUTE(Real, double, kFloat, attr->f, "a number")
TVM_ONNX_ATTRIBUTE(Str, std::string, kString, std::string(attr->s), "a text")
#undef TVM_ONNX_ATTRIBUTE
double Node::Float(Name name, std::optional<double> fallback) {
  auto it = attributes.find(name);  // an integer is a number, too
  bool is_integer = it != attributes.end() && it->second.type == Attribute::kInt;
  return is_integer ? static_cast<double>(Int(name)) : Real(name, fallback);
}
std::vector<int64_t> Node::Ints(Name name, std::vector<int64_t> fallback) {
  const Attribute* attr = Find(name, Attribute::kInts);
  return attr ? attr->ints : fallback;
}
std::vector<double> Node::Floats(Name name, std::vector<double> fallback) {
  const Attribute* attr = Find(name, Attribute::kFloats);
  return attr ? std::vector<double>(attr->floats.begin(), attr->floats.end()) : fallback;
}
std::vector<std::string> Node::Strs(Name name, std::vector<std::string> fallback) {
  const Attribute* attr = Find(name, Attribute::kStrings);
  return attr ? std::vector<std::string>(attr->strings.begin(), attr->strings.end()) : fallback;
}
DataType Node::Type(Name name, std::optional<DataType> fallback) {
  if (!HasAttr(name) && fallback) return *fallback;
  int64_t number = Int(name);
  auto dtype = DataTypeOf(number);
  if (!dtype) Unsupported("data type " + std::to_string(number));
  return *dtype;
}
int64_t Node::Axis(int64_t axis, int64_t rank, const char* name) const {
  if (axis < -rank || axis >= rank)
    Fail(std::string(name) + " in [" + std::to_string(-rank) + ", " + std::to_string(rank) + ")",
         std::to_string(axis));
  return axis < 0 ? axis + rank : axis;
}

// ---- tensors ------------------------------------------------------------------------------------
DataType Node::TypeOf(const Expr& e) {
  return relax::GetStructInfoAs<relax::TensorStructInfoObj>(e)->dtype;
}
Dims Node::Shape(const Expr& e) {
  return relax::GetStructInfoAs<relax::TensorStructInfoObj>(e)->Dims().value();
}
int64_t Node::StaticDim(const Expr& e, int64_t axis) const {
  PrimExpr dim = Shape(e)[axis];
  auto value = AsConstInt(dim);
  if (!value)
    Unsupported("dimension " + std::to_string(axis) +
                " that is not a number: " + relax::TextOf(dim));
  return *value;
}
Expr Node::Emit(Expr e) { return importer.Emit(std::move(e)); }
Expr Node::Item(const Expr& tuple, int64_t i) { return Emit(relax::TupleGetItem(tuple, i)); }
Expr Node::Scalar(double value, DataType dtype) {
  Any number = dtype.is_float() ? Any(value) : Any(static_cast<int64_t>(value));
  return relax::ScalarConstant(number, dtype);
}
Expr Node::IntVector(const std::vector<int64_t>& values, DataType dtype) {
  Known known{{static_cast<int64_t>(values.size())}, dtype, {}};
  for (int64_t value : values) known.elements.push_back(IntImm::Int64(value));
  Value value{std::move(known)};
  return importer.TensorOf(&value);
}
Expr Node::Cast(const Expr& e, DataType dtype) {
  return TypeOf(e) == dtype ? e : (*this)("astype", e, dtype);
}
Expr Node::Reshape(const Expr& e, const Dims& shape) {
  Dims from = Shape(e);
  bool same = from.size() == shape.size();
  for (size_t i = 0; same && i < from.size(); ++i)
    same = importer.builder()->analyzer()->CanProveEqual(from[i], shape[i]);
  return same ? e : Emit(relax::CallOperator("relax.reshape", {e, relax::ShapeExpr(shape)}));
}
Expr Node::Fitted(const Expr& e, const Dims& shape) {
  Dims own = Shape(e);
  if (own.size() != shape.size()) return e;
  for (size_t i = 0; i < own.size(); ++i) {
    bool is_open = !AsConstInt(own[i]) || !AsConstInt(shape[i]);
    if (is_open && !importer.builder()->analyzer()->CanProveEqual(own[i], shape[i]))
      return importer.builder()->EmitMatchCast(e, relax::TensorStructInfo(shape, TypeOf(e)), "lv");
  }
  return e;
}
PrimExpr Node::Simplify(const PrimExpr& e) const {
  return importer.builder()->analyzer()->Simplify(e);
}

// ---- errors -------------------------------------------------------------------------------------
void Node::Fail(const std::string& expected, const std::string& got) const {
  TVM_FFI_THROW(OpValueError) << "expected " << expected << ", got " << got;
  TVM_FFI_UNREACHABLE();
}
void Node::Unsupported(const std::string& what) const {
  TVM_FFI_THROW(OpNotImplemented) << "not supported: " << what << " (opset " << opset << ")";
  TVM_FFI_UNREACHABLE();
}
void Node::CheckAllRead() const {
  for (const auto& [name, attr] : attributes) {
    if (!read_attributes_.count(name))
      TVM_FFI_THROW(OpAttributeUnImplemented)
          << "attribute '" << name << "' is not known (opset " << opset << ")";
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && !read_inputs_.count(i))
      Unsupported("input number " + std::to_string(i));
  }
}

// ---- tensor expressions -------------------------------------------------------------------------
te::Tensor Te::operator()(const Expr& e) {
  auto it = tensors_.find(e.get());
  return it != tensors_.end() ? it->second
                              : tensors_.emplace(e.get(), args_->Tensor(e)).first->second;
}
std::vector<PrimExpr> Te::operator()(const std::vector<PrimExpr>& exprs) {
  std::vector<PrimExpr> inside;
  for (const PrimExpr& e : exprs) inside.push_back(args_->Inside(e));
  return inside;
}
Expr Te::Done(const char* name, const te::Tensor& result) {
  return node_.Emit(args_->CallTIR(node_.importer.builder(), name, {result}));
}
std::vector<Expr> Te::Done(const char* name, const Array<te::Tensor>& results) {
  if (results.size() == 1) return {Done(name, results[0])};
  Expr tuple = node_.Emit(args_->CallTIR(node_.importer.builder(), name, results));
  std::vector<Expr> items;
  for (size_t i = 0; i < results.size(); ++i) items.push_back(node_.Item(tuple, i));
  return items;
}

}  // namespace tvm::frontend::onnx
