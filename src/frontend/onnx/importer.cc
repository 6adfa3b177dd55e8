// SPDX-License-Identifier: Apache-2.0
// Walks through a model: inputs, weights, nodes in order, functions inlined, outputs.
#include "frontend/onnx/importer.h"

#include <cstring>

#include "frontend/onnx/dimension.h"
#include "frontend/onnx/inspect.h"
#include "runtime/host_tensor.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/stack.h"
#include "tvm/relax/infer.h"
#include "tvm/relax/transform.h"
#include "tvm/runtime/signals.h"

namespace tvm::frontend::onnx {
namespace {
// What is read or computed at most, so that a small file cannot take all time and memory.
constexpr int kMaxCalls = 200;        // functions inside of functions
constexpr int64_t kNodeBytes = 4096;  // that a node takes in the graph, about
constexpr int64_t kMaxKnown = 1024;   // elements whose contents are kept
constexpr int64_t kNewestOpset = 28;

std::map<std::pair<Name, Name>, Converter>& Converters() {
  static auto* table = new std::map<std::pair<Name, Name>, Converter>();
  return *table;
}
std::string FullName(Name domain, Name op) {
  return (domain.empty() ? "" : std::string(domain) + ".") + std::string(op);
}
/// Whether the result of a node has the rank of its first input.
bool KeepsRank(const NodeProto& node) {
  static const std::set<Name> ops{"Abs", "Cast", "CastLike", "Exp",  "Identity", "Log",
                                  "Neg", "Relu", "Sigmoid",  "Sqrt", "Tanh"};
  return node.domain.empty() && node.outputs.size() == 1 && ops.count(node.op_type);
}
PrimExpr ReadElement(const char* data, DataType t) {
  auto as = [&]<class T>(T value) {
    std::memcpy(&value, data, sizeof(T));
    return value;
  };
  if (t.is_bool()) return IntImm::Bool(as(uint8_t{}) != 0);
  if (t.is_int()) return IntImm::Int64(t.bits() == 32 ? as(int32_t{}) : as(int64_t{}));
  return MakeConst(t, t.bits() == 32 ? static_cast<double>(as(float{})) : as(double{}));
}
/// Whether a size is divided by a size: what was asked for with a dimension of -1.
bool HasOpenDivision(const PrimExpr& e) {
  bool found = false;
  tir::PostOrderVisit(e, [&](const ObjectRef& part) {
    auto* quotient = part.as<tir::FloorDivObj>();
    found |= quotient && !AsConstInt(quotient->b);
  });
  return found;
}
/// A dimension of an input, which is not negative.
PrimExpr CheckedDim(PrimExpr dim, Name input) {
  if (auto size = AsConstInt(dim); size && *size < 0)
    TVM_FFI_THROW(ValueError) << "onnx: input '" << input
                              << "': expected dimensions of at least 0, got " << *size;
  return dim;
}
std::vector<Name> NamesOf(const std::vector<ValueInfo>& values) {
  std::vector<Name> names;
  for (const ValueInfo& value : values) names.push_back(value.name);
  return names;
}
/// What is wrong with names that a caller gives something for.
template <class Given>
void CheckInputNames(const char* parameter, const Map<String, Given>& given,
                     const std::vector<ValueInfo>& inputs, std::vector<std::string>* warnings) {
  std::vector<std::string_view> names;
  std::string all;
  for (const ValueInfo& input : inputs) {
    names.push_back(input.name);
    all += (all.empty() ? "'" : ", '") + std::string(input.name) + "'";
  }
  for (const auto& [name, value] : given) {
    if (std::find(names.begin(), names.end(), View(name)) == names.end())
      warnings->push_back(std::string(parameter) + ": expected names of inputs (" + all +
                          "), got '" + std::string(name) + "'" + DidYouMean(View(name), names));
  }
}
/// The constant of known elements, or nothing when one is symbolic.
std::optional<runtime::Tensor> TensorOfKnown(const Known& known) {
  runtime::ShapeView shape(known.shape.data(), known.shape.size());
  runtime::Tensor tensor = runtime::Empty(shape, known.dtype, {kDLCPU, 0});
  char* to = static_cast<char*>(tensor.data_ptr());
  for (const PrimExpr& e : known.elements) {
    if (auto i = AsConstInt(e)) {
      std::memcpy(to, &*i, known.dtype.bytes());  // little-endian: the low bytes come first
    } else if (auto* f = e.as<FloatImmObj>(); f && known.dtype.bits() == 32) {
      auto narrow = static_cast<float>(f->value);
      std::memcpy(to, &narrow, sizeof(narrow));
    } else if (f) {
      std::memcpy(to, &f->value, sizeof(f->value));
    } else {
      return std::nullopt;
    }
    to += known.dtype.bytes();
  }
  return tensor;
}
}  // namespace

std::string Called(const NodeProto& node) {
  if (!node.name.empty()) return "'" + std::string(node.name) + "'";
  return node.outputs.empty() ? "without a name" : "of '" + std::string(node.outputs[0]) + "'";
}

void AddConverters(std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    bool is_new =
        Converters().emplace(std::pair(Name(row.domain), Name(row.op)), row.convert).second;
    if (!is_new) TVM_FFI_THROW(InternalError) << "two converters for " << row.op;
  }
}
Converter FindConverter(Name domain, Name op) {
  auto it = Converters().find({domain, op});
  return it == Converters().end() ? nullptr : it->second;
}
std::vector<std::string_view> ListConverters(Name domain) {
  std::vector<std::string_view> names;
  for (const auto& [key, convert] : Converters()) {
    if (key.first == domain) names.push_back(key.second);
  }
  return names;
}

Importer::Importer(std::shared_ptr<const Model> model, OnnxOptions options)
    : model_(std::move(model)),
      options_(std::move(options)),
      builder_(relax::BlockBuilder::Create()) {
  if (options_.memory_limit < 0)
    TVM_FFI_THROW(ValueError) << "from_onnx: expected a memory_limit of at least 0, got "
                              << options_.memory_limit;
}

// ---- what it may take ---------------------------------------------------------------------------
void Importer::Charge(uint64_t bytes, const std::function<std::string()>& what) {
  if (bytes > static_cast<uint64_t>(options_.memory_limit) - charged_)
    TVM_FFI_THROW(MemoryError) << "onnx: expected a model that takes at most "
                               << options_.memory_limit
                               << " bytes beyond its file (memory_limit), got more with " << what();
  charged_ += bytes;
}
runtime::Tensor Importer::DenseOf(const SparseTensorProto& proto) {
  auto dtype = DataTypeOf(proto.values.data_type);
  runtime::ShapeView shape(proto.dims.data(), proto.dims.size());
  if (dtype)
    Charge(runtime::DataSize(shape, *dtype),
           [&] { return "the sparse tensor '" + std::string(proto.values.name) + "'"; });
  return MakeDense(*model_, proto);
}

// ---- values -------------------------------------------------------------------------------------
tir::Var Importer::FreshDim(const std::string& name) {
  return tir::SizeVar(name + "_" + std::to_string(fresh_++), DataType::Int(64));
}
tir::Var Importer::DataVar() {
  tir::Var var = FreshDim("value");
  data_vars_.insert(var.get());
  return var;
}
bool Importer::DependsOnData(const PrimExpr& e) const {
  return tir::UsesVar(e, [&](const tir::VarObj* var) { return data_vars_.count(var) != 0; });
}
std::optional<int64_t> Importer::DeclaredRank(Name value, int steps) const {
  auto rank_of = [](const TypeProto& type) -> std::optional<int64_t> {
    return type.shape ? std::optional<int64_t>(type.shape->size()) : std::nullopt;
  };
  if (auto it = declared_.find(value); it != declared_.end()) return rank_of(*it->second);
  for (const ValueInfo& output : model_->graph.outputs) {
    if (output.name == value) return rank_of(output.type);
  }
  // The next value says it, where an operator does not change it.
  for (const NodeProto& node : model_->graph.nodes) {
    if (!node.inputs.empty() && node.inputs[0] == value && KeepsRank(node))
      return steps > 0 ? DeclaredRank(node.outputs[0], steps - 1) : std::nullopt;
  }
  return std::nullopt;
}
Expr Importer::Emit(Expr e) {
  bool is_bound = relax::IsLeaf(e) && e->struct_info_.has_value();
  Expr var = is_bound ? e : Expr(builder_->Emit(e, "lv"));
  auto* tensor = relax::GetStructInfoAs<relax::TensorStructInfoObj>(var);
  if (!tensor || tensor->Dims()) return var;
  auto call = e.as<relax::Call>();
  bool is_product = call && (*call)->op.same_as(Op::Get("relax.matmul"));
  if (is_product ||
      (call && relax::TOpPattern.Get((*call)->op, relax::kOpaque) == relax::kBroadcast)) {
    if (auto aligned = Aligned(*call, is_product ? 2 : 0)) return Emit(*aligned);
  }
  if (tensor->IsUnknownNdim() || tensor->IsUnknownDtype()) {
    TVM_FFI_THROW(OpValueError) << "expected a tensor whose rank and type are known, got neither "
                                   "from the operator";
  }
  Dims dims;
  for (int64_t i = 0; i < tensor->ndim; ++i) dims.push_back(FreshDim());
  return builder_->EmitMatchCast(var, relax::TensorStructInfo(dims, tensor->dtype), "lv");
}
Value Importer::Constant(runtime::Tensor tensor) {
  Value value{Expr(relax::Constant(tensor))};
  value.constant = std::move(tensor);
  return value;
}
const Known* Importer::KnownOf(Value* value) {
  if (value->known || !value->constant) return value->known.get();
  const runtime::Tensor& tensor = *value->constant;
  DataType t = tensor.dtype();
  bool is_integer = t.is_bool() || (t.is_int() && t.bits() >= 32);
  bool is_float = t.is_ieee_float() && t.bits() >= 32;
  if (tensor.numel() > kMaxKnown || !(is_integer || is_float)) return nullptr;
  Known known{{tensor.shape().begin(), tensor.shape().end()}, t, {}};
  auto* data = static_cast<const char*>(tensor.data_ptr());
  for (int64_t i = 0; i < tensor.numel(); ++i)
    known.elements.push_back(ReadElement(data + i * t.bytes(), t));
  value->known = std::make_shared<Known>(std::move(known));
  return value->known.get();
}
Expr Importer::TensorOf(Value* value) {
  if (const char* what = value->Otherwise())
    TVM_FFI_THROW(OpValueError) << "expected a tensor of numbers, got " << what;
  if (value->expr.defined()) return value->expr;
  const Known& known = *value->known;
  if (auto tensor = TensorOfKnown(known)) {
    value->expr = relax::Constant(*tensor);
    return value->expr;
  }
  auto args = relax::TEArguments::Create();
  std::vector<PrimExpr> elements;
  for (const PrimExpr& e : known.elements) elements.push_back(args->Inside(e));
  Dims shape;
  for (int64_t d : known.shape) shape.push_back(IntImm::Int64(d));
  auto element = [&](const Array<tir::Var>& index) {
    PrimExpr flat = IntImm::Int64(0);
    for (size_t i = 0; i < index.size(); ++i)
      flat = flat * shape[i] + tvm::cast(DataType::Int(64), index[i]);
    PrimExpr result = elements.back();
    for (size_t i = elements.size() - 1; i-- > 0;)
      result = tir::Select(equal(flat, IntImm::Int64(i)), elements[i], result);
    return tvm::cast(known.dtype, result);
  };
  te::Tensor tensor = te::compute(shape, element, "sizes");
  return Emit(args->CallTIR(builder_, "sizes", {tensor}));
}

// ---- inputs and weights -------------------------------------------------------------------------
String Importer::NameOf(Name name) {
  std::string clean(name);
  if (options_.sanitize_names) {
    std::replace(clean.begin(), clean.end(), '.', '_');
    if (clean.empty() || !std::isalpha(static_cast<unsigned char>(clean[0])))
      clean = "input_" + clean;
    std::string base = clean;
    for (int i = 1; names_.count(clean); ++i) clean = base + "_" + std::to_string(i);
  }
  if (clean != name) {
    warnings.push_back("renamed input '" + std::string(name) + "' to '" + clean + "'");
  }
  names_.insert(clean);
  return clean;
}
std::optional<PrimExpr> Importer::FindDim(Name text) const {
  if (auto it = dims_.find(std::string(text)); it != dims_.end()) return it->second;
  auto lookup = [&](const std::string& name) -> std::optional<PrimExpr> {
    auto it = dims_.find(name);
    return it == dims_.end() ? std::nullopt : std::optional<PrimExpr>(it->second);
  };
  auto parsed = ParseDimension(text, lookup);
  return parsed ? std::optional(builder_->analyzer()->Simplify(*parsed)) : std::nullopt;
}
PrimExpr Importer::DimOf(Name text) {
  if (auto known = FindDim(text)) return *known;
  tir::SizeVar var{String(std::string(text)), DataType::Int(64)};
  dims_.emplace(std::string(text), var);
  return var;
}
Dims Importer::ShapeOfInput(const ValueInfo& input) {
  Dims dims;
  if (auto given = options_.shapes.Get(String(std::string(input.name)))) {
    for (const Any& dim : *given) {
      auto e = dim.try_cast<PrimExpr>();
      if (auto text = dim.try_cast<String>()) {
        dims.push_back(DimOf(View(*text)));
      } else if (e && e->defined() && (*e)->dtype.is_integer()) {
        dims.push_back(CheckedDim(tvm::cast(DataType::Int(64), *e), input.name));
      } else {
        TVM_FFI_THROW(TypeError) << "from_onnx: shape of '" << input.name
                                 << "': expected numbers, expressions or names, got "
                                 << dim.GetTypeKey();
      }
    }
    return dims;
  }
  if (!input.type.shape) {
    TVM_FFI_THROW(ValueError) << "onnx: input '" << input.name
                              << "': expected a known rank, got none; give its shape in shape_dict";
  }
  for (const Dimension& dim : *input.type.shape) {
    if (dim.value) {
      dims.push_back(CheckedDim(IntImm::Int64(*dim.value), input.name));
    } else {
      dims.push_back(dim.param.empty() ? PrimExpr(FreshDim("dim")) : DimOf(dim.param));
    }
  }
  return dims;
}
Value Importer::WithDeclaredDims(Name name, Value value) {
  auto it = declared_.find(name);
  if (it == declared_.end() || !value.expr.defined() || value.Otherwise()) return value;
  Dims dims = Node::Shape(value.expr);
  const auto& declared = it->second->shape;
  if (!declared || declared->size() != dims.size()) return value;
  bool changes = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (AsConstInt(dims[i]) || dims[i].as<tir::VarObj>()) continue;
    const Dimension& dim = (*declared)[i];
    // Numbers in files are sometimes those of an example: only where ours say nothing.
    if (dim.value && !HasOpenDivision(dims[i])) continue;
    auto said = dim.value ? std::optional<PrimExpr>(IntImm::Int64(*dim.value)) : FindDim(dim.param);
    if (!said || builder_->analyzer()->CanProveEqual(*said, dims[i])) continue;
    dims.Set(i, *said);
    changes = true;
  }
  if (changes)
    value.expr = builder_->EmitMatchCast(
        value.expr, relax::TensorStructInfo(dims, Node::TypeOf(value.expr)), "lv");
  return value;
}
void Importer::AddInitializers(const Graph& graph, Scope* scope) {
  std::set<Name> seen;
  auto check = [&](Name name) {
    if (!seen.insert(name).second)
      TVM_FFI_THROW(ValueError) << "onnx: expected weights of different names, got '" << name
                                << "' twice";
  };
  auto add = [&](Name name, const runtime::Tensor& tensor) {
    Value value = Constant(tensor);
    // Weights of subgraphs are constants of their bodies.
    if (options_.keep_params && !scope->outer) {
      relax::Var param(NameOf(name), value.expr->struct_info_);
      value.expr = param;
      value.is_kept = true;
      params_.push_back(param);
      kept_.push_back(runtime::HostTensor(tensor));
    }
    scope->values[name] = std::move(value);
  };
  for (const TensorProto& tensor : graph.initializers) {
    check(tensor.name);
    if (tensor.data_type == kString) {
      scope->values[tensor.name] = StringConstant(tensor);
    } else {
      add(tensor.name, MakeTensor(*model_, tensor));
    }
  }
  for (const SparseTensorProto& sparse : graph.sparse_initializers) {
    check(sparse.values.name);
    add(sparse.values.name, DenseOf(sparse));
  }
}

// ---- nodes --------------------------------------------------------------------------------------
int64_t Importer::OpsetOf(const Context& context, Name domain) const {
  if (domain.empty() && options_.opset) return *options_.opset;
  auto it = context.opsets->find(domain);
  return it == context.opsets->end() ? (domain.empty() ? kNewestOpset : 1) : it->second;
}
const FunctionProto* Importer::FindFunction(const NodeProto& node) const {
  for (const FunctionProto& f : model_->functions) {
    if (f.name == node.op_type && f.domain == node.domain && f.overload == node.overload) return &f;
  }
  return nullptr;
}
void Importer::CheckSupported() const {
  OperatorUses missing = CountOperators(*model_, [&](const NodeProto& node) {
    return !FindFunction(node) && !FindConverter(node.domain, node.op_type);
  });
  if (missing.empty()) return;
  std::string text;
  for (const auto& [key, uses] : missing) {
    const auto& [domain, op] = key;
    text += "\n  " + FullName(domain, op) + " (" + std::to_string(uses.count) +
            (uses.count == 1 ? " node" : " nodes") + DidYouMean(op, ListConverters(domain)) +
            "), " +
            (uses.opset ? "opset " + std::to_string(*uses.opset) : "a domain without an opset") +
            ": node " + uses.nodes;
  }
  TVM_FFI_THROW(OpNotImplemented) << "onnx: operators that are not supported:" << text;
}
void Importer::RunFunction(const FunctionProto& function, Node& call) {
  if (++call_depth_ > kMaxCalls)
    TVM_FFI_THROW(RecursionError) << "onnx: expected functions nested at most " << kMaxCalls
                                  << " deep, got more in '" << function.name << "'";
  Context context{&function.opsets, {}};
  for (const Attribute& attr : function.defaults) context.attributes[attr.name] = attr;
  for (const auto& [name, attr] : call.attributes) {
    context.attributes[name] = attr;
    call.Ignore(name);
  }
  Scope scope;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    scope.values[function.inputs[i]] = i < call.NumInputs() ? call.Input(i) : Value();
  }
  RunNodes(function.nodes, context, &scope, function.outputs);
  for (size_t i = 0; i < function.outputs.size() && i < call.proto.outputs.size(); ++i) {
    const Value* value = scope.Find(function.outputs[i]);
    if (!value)
      call.Fail("an output '" + std::string(function.outputs[i]) + "' of the function", "none");
    call.scope->values[call.proto.outputs[i]] = *value;
  }
  --call_depth_;
}
void Importer::RunNode(const NodeProto& proto, const Context& context, Scope* scope) {
  Charge(kNodeBytes, [&] { return "its " + std::to_string(num_nodes_) + " nodes"; });
  if (++num_nodes_ % 64 == 0) CheckSignals();
  Node node(*this, proto, context, scope, OpsetOf(context, proto.domain));
  if (const FunctionProto* function = FindFunction(proto)) {
    Recurse([&] { RunFunction(*function, node); });
    return;
  }
  ModernizeNode(node);
  auto of_strings = [](const Value& value) { return value.IsStrings(); };
  bool is_text = std::any_of(node.inputs.begin(), node.inputs.end(), of_strings);
  auto folded = is_text ? std::nullopt : FoldKnown(node);
  Outputs outputs = folded    ? *std::move(folded)
                    : is_text ? ConvertOnStrings(node)
                              : FindConverter(proto.domain, node.op)(node);
  node.CheckAllRead();
  if (scope->is_done) return;
  for (size_t i = 0; i < proto.outputs.size(); ++i) {
    if (proto.outputs[i].empty()) continue;
    if (i >= outputs.size()) node.Unsupported("its output number " + std::to_string(i));
    Value value = outputs[i];
    if (scope == main_scope_) value = WithDeclaredDims(proto.outputs[i], std::move(value));
    if (!scope->values.emplace(proto.outputs[i], std::move(value)).second)
      node.Fail("a new name of its output", "'" + std::string(proto.outputs[i]) + "' again");
  }
}
std::string Importer::Circumstances(const NodeProto& node, const Context& context,
                                    const Scope& scope) const {
  std::string text = "  opset " + std::to_string(OpsetOf(context, node.domain));
  for (Name input : node.inputs) {
    const Value* value = scope.Find(input);
    if (!value) continue;
    text += "\n  input '" + std::string(input) + "': ";
    const char* other = value->Otherwise();
    if (other || !value->expr.defined()) {
      text += other ? other : "small, known " + value->known->dtype.str();
    } else {
      text += Node::TypeOf(value->expr).str() + relax::Show(Node::Shape(value->expr));
    }
  }
  return text;
}
void Importer::RunNodes(const std::vector<NodeProto>& nodes, const Context& context, Scope* scope,
                        std::vector<Name> wanted) {
  scope->nodes = &nodes;
  scope->wanted = std::move(wanted);
  for (scope->at = 0; scope->at < nodes.size() && !scope->is_done; ++scope->at) {
    const NodeProto& node = nodes[scope->at];
    try {
      RunNode(node, context, scope);
    } catch (const ffi::Error& error) {
      std::string message = error.message();
      if (message.rfind("onnx", 0) == 0) throw;
      throw ffi::Error(error.kind(),
                       "onnx: node " + Called(node) + " (" + FullName(node.domain, node.op_type) +
                           "): " + message + "\n" + Circumstances(node, context, *scope),
                       error.backtrace());
    }
  }
}
std::vector<Value> Importer::RunGraph(const Graph& graph, const std::vector<Value>& inputs,
                                      const Context& context, const Scope* outer,
                                      BranchState* branch) {
  Scope scope;
  scope.outer = outer;
  scope.branch = branch;
  AddInitializers(graph, &scope);
  if (inputs.size() > graph.inputs.size())
    TVM_FFI_THROW(ValueError) << "subgraph: expected " << graph.inputs.size() << " inputs, got "
                              << inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) scope.values[graph.inputs[i].name] = inputs[i];
  Recurse([&] { RunNodes(graph.nodes, context, &scope, NamesOf(graph.outputs)); });
  std::vector<Value> outputs;
  for (const ValueInfo& output : graph.outputs) {
    const Value* value = scope.Find(output.name);
    if (!value)
      TVM_FFI_THROW(ValueError) << "subgraph: expected a value for its output '" << output.name
                                << "', got none";
    outputs.push_back(*value);
  }
  return outputs;
}

IRModule Importer::Run() {
  CheckSupported();
  const Graph& graph = model_->graph;
  if (OpsetOf({&model_->opsets, {}}, "") > kNewestOpset)
    warnings.push_back("opset " + std::to_string(OpsetOf({&model_->opsets, {}}, "")) +
                       " is newer than the newest known, " + std::to_string(kNewestOpset));
  if (!options_.opset && !model_->opsets.count(""))
    warnings.push_back("the model says no opset of ai.onnx: taken for " +
                       std::to_string(kNewestOpset) + ", give `opset` for another");
  CheckInputNames("shape_dict", options_.shapes, graph.inputs, &warnings);
  CheckInputNames("dtype_dict", options_.dtypes, graph.inputs, &warnings);
  Scope scope;
  main_scope_ = &scope;
  for (const ValueInfo& v : graph.values) declared_[v.name] = &v.type;
  std::set<Name> initialized;
  for (const TensorProto& t : graph.initializers) initialized.insert(t.name);
  for (const SparseTensorProto& t : graph.sparse_initializers) initialized.insert(t.values.name);
  // Dimensions that are names come first: others may be expressions of them.
  for (const ValueInfo& input : graph.inputs) {
    if (initialized.count(input.name) || !input.type.shape) continue;
    if (options_.shapes.count(String(std::string(input.name)))) continue;
    for (const Dimension& dim : *input.type.shape) {
      if (!dim.value && IsName(dim.param)) DimOf(dim.param);
    }
  }
  std::vector<const ValueInfo*> objects;
  for (const ValueInfo& input : graph.inputs) {
    if (initialized.count(input.name)) continue;
    if (scope.values.count(input.name))
      TVM_FFI_THROW(ValueError) << "onnx: expected inputs of different names, got '" << input.name
                                << "' twice";
    String name = NameOf(input.name);
    auto dtype = DataTypeOf(input.type.data_type);
    if (auto given = options_.dtypes.Get(String(std::string(input.name)))) dtype = *given;
    auto kind = input.type.kind;
    bool is_object = kind == TypeProto::kSequence || kind == TypeProto::kOptional ||
                     kind == TypeProto::kMap || input.type.data_type == kString;
    if (!is_object && (kind != TypeProto::kTensor || !dtype))
      TVM_FFI_THROW(OpNotImplemented) << "onnx: input '" << input.name
                                      << "': expected a tensor, a sequence, a map or an optional";
    StructInfo info = relax::ObjectStructInfo::Get();
    if (!is_object) info = relax::TensorStructInfo(ShapeOfInput(input), *dtype);
    relax::Var param(name, info);
    params_.push_back(param);
    scope.values[input.name] = Value(Expr(param));
    if (is_object) objects.push_back(&input);
  }
  num_inputs_ = static_cast<int64_t>(params_.size());
  AddInitializers(graph, &scope);
  builder_->BeginScope(params_);
  builder_->BeginSequence();
  for (const ValueInfo* input : objects) {
    Value& value = scope.values[input->name];
    value = FromObject(value.expr, input->type, false);
  }
  RunNodes(graph.nodes, {&model_->opsets, {}}, &scope, NamesOf(graph.outputs));
  Array<Expr> results;
  for (const ValueInfo& output : graph.outputs) {
    const Value* value = scope.Find(output.name);
    if (!value)
      TVM_FFI_THROW(ValueError) << "onnx: expected a value for the output '" << output.name
                                << "', got none";
    Value copy = *value;
    results.push_back(ExprOf(&copy));
  }
  Expr body = results.size() == 1 ? results[0] : relax::Tuple(results);
  body = builder_->Emit(body, "gv");
  auto blocks = builder_->EndSequence();
  Map<String, Any> attrs{{"global_symbol", String("main")}, {"num_input", num_inputs_}};
  if (options_.keep_params) attrs.Set("params", kept_);
  relax::Function main(params_, relax::MakeSeq(relax::SeqExpr({}, body), blocks, body), {}, true,
                       DictAttrs(attrs));
  builder_->EndScope();
  builder_->AddFunction(main, "main");
  // What was tried and left, and what nobody asked for, goes.
  IRModule mod = transform::GetPass("relax.DeadCodeElimination")(builder_->Finalize());
  return transform::GetPass("relax.ConvertToDataflow", {int64_t{1}})(mod);
}

}  // namespace tvm::frontend::onnx
