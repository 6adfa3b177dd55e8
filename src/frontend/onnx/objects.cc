// SPDX-License-Identifier: Apache-2.0
// Values that are no tensors of numbers, as objects that the program handles when it runs: arrays
// for sequences, None for what is absent, StringTensor for strings.
#include "frontend/onnx/importer.h"
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
/// The number of a type in TensorProto.DataType.
int64_t NumberOf(DataType dtype) {
  for (int64_t i = 0;; ++i) {
    if (DataTypeOf(i) == dtype) return i;
  }
}
}  // namespace

Expr Importer::CallRuntime(const std::string& name, Array<Expr> args, StructInfo result) {
  args.insert(args.begin(), relax::ExternFunc("vm.builtin." + name));
  return Emit(relax::Call(Op::Get("relax.call_pure_packed"), args, {}, {std::move(result)}));
}
Expr Importer::ObjectOf(Value* value) {
  if (!value->defined()) return Emit(relax::CallOperator("relax.null_value", {}));
  if (value->object) return value->expr;
  if (value->IsStrings()) return CallRuntime("strings.make", {value->words, value->expr});
  if (!value->sequence) return TensorOf(value);
  Array<Expr> items;
  for (Value item : *value->sequence) items.push_back(ObjectOf(&item));
  return CallRuntime("sequence.make", items);
}
Expr Importer::ExprOf(Value* value) {
  if (!value->sequence) return ObjectOf(value);
  Array<Expr> fields;
  for (Value item : *value->sequence) fields.push_back(ExprOf(&item));
  return relax::Tuple(fields);
}
std::shared_ptr<const TypeProto> Importer::ObjectType(const Value& value) {
  if (value.object) return value.object;
  auto type = std::make_shared<TypeProto>();
  if (value.IsStrings()) {
    type->kind = TypeProto::kTensor;
    type->data_type = kString;
    type->shape.emplace(Node::Rank(value.expr));
  } else if (!value.defined()) {
    type->kind = TypeProto::kOptional;
  } else if (value.sequence) {
    type->kind = TypeProto::kSequence;
    if (!value.sequence->empty())
      type->element = std::make_shared<TypeProto>(*ObjectType(value.sequence->front()));
  } else {
    Value copy = value;
    Expr tensor = TensorOf(&copy);
    type->kind = TypeProto::kTensor;
    type->data_type = NumberOf(Node::TypeOf(tensor));
    type->shape.emplace(Node::Rank(tensor));
  }
  return type;
}
bool SaysElements(const TypeProto& type) {
  return type.element && (type.element->kind != TypeProto::kTensor || type.element->shape);
}
std::shared_ptr<const TypeProto> Importer::TypeWithItem(const Value& sequence, const Value& item) {
  auto type = ObjectType(sequence);
  if (SaysElements(*type)) return type;
  auto more = std::make_shared<TypeProto>(*type);
  more->element = std::make_shared<TypeProto>(*ObjectType(item));
  return more;
}
Value Importer::FromObject(const Expr& object, const TypeProto& type, bool is_element) {
  if (type.kind != TypeProto::kTensor)
    return Value::Object(object, std::make_shared<TypeProto>(type));
  if (!type.shape)
    TVM_FFI_THROW(OpValueError) << "expected the rank of a tensor in a sequence, an optional or of "
                                   "strings to be declared, got none";
  Dims dims;
  for (const Dimension& dim : *type.shape) {
    if (dim.value) {
      dims.push_back(IntImm::Int64(*dim.value));
    } else {
      dims.push_back(is_element || dim.param.empty() ? PrimExpr(FreshDim()) : DimOf(dim.param));
    }
  }
  if (type.data_type == kString) {
    Expr shape = CallRuntime("strings.shape", {object},
                             relax::ShapeStructInfo(static_cast<int64_t>(dims.size())));
    builder_->EmitMatchCast(shape, relax::ShapeStructInfo(dims), "lv");
    return StringsInOrder(CallRuntime("strings.words", {object}), dims);
  }
  auto dtype = DataTypeOf(type.data_type);
  if (!dtype) TVM_FFI_THROW(OpValueError) << "expected a known type of elements, got none";
  return Value(builder_->EmitMatchCast(object, relax::TensorStructInfo(dims, *dtype), "lv"));
}

// ---- strings ------------------------------------------------------------------------------------
Value Importer::StringsInOrder(Expr words, const Dims& shape) {
  auto args = relax::TEArguments::Create();
  Dims inside = shape.Map([&](const PrimExpr& d) { return args->Inside(d); });
  auto element = [&](const Array<tir::Var>& index) {
    PrimExpr flat = IntImm::Int64(0);
    for (size_t i = 0; i < index.size(); ++i)
      flat = flat * inside[i] + tvm::cast(DataType::Int(64), index[i]);
    return flat;
  };
  te::Tensor places = te::compute(inside, element, "places");
  return Value::Strings(std::move(words), Emit(args->CallTIR(builder_, "places", {places})));
}
Value Importer::StringConstant(const std::vector<int64_t>& shape,
                               const std::vector<std::string>& strings) {
  Array<Expr> words;
  for (const std::string& text : strings) words.push_back(relax::StringImm(text));
  runtime::ShapeView view(shape.data(), shape.size());
  runtime::Tensor places = runtime::Empty(view, DataType::Int(64), {kDLCPU, 0});
  if (places.numel() != static_cast<int64_t>(strings.size()))
    TVM_FFI_THROW(ValueError) << "onnx: expected " << places.numel() << " strings, got "
                              << strings.size();
  for (int64_t i = 0; i < places.numel(); ++i) static_cast<int64_t*>(places.data_ptr())[i] = i;
  return Value::Strings(relax::Tuple(words), relax::Constant(places));
}
Value Importer::StringConstant(const TensorProto& proto) {
  return StringConstant(proto.dims, {proto.strings.begin(), proto.strings.end()});
}

}  // namespace tvm::frontend::onnx
