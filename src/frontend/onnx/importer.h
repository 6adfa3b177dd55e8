// SPDX-License-Identifier: Apache-2.0
// Importing a graph: values, what is known of them, and the node that is being converted.
//
// Every tensor has a known rank, type and shape; dimensions that only running the program tells are
// variables that a match_cast defines. Contents of small tensors of numbers are kept as expressions
// beside them: what models compute from shapes disappears, and operands such as the shape of a
// Reshape need not be constants.
#pragma once
#include <functional>
#include <set>
#include <unordered_map>

#include "frontend/onnx/model.h"
#include "tvm/frontend/onnx.h"
#include "tvm/relax/call_te.h"
#include "tvm/relax/operator.h"

namespace tvm::frontend::onnx {
using relax::Expr;
using Dims = Array<PrimExpr>;

/// The elements of a small tensor in row-major order: integers as int64, others in their type.
struct Known {
  std::vector<int64_t> shape;
  DataType dtype;
  std::vector<PrimExpr> elements;
};

/// A value of the graph: a tensor of numbers or strings, a sequence, a map, or an optional that is
/// absent.
struct Value {
  Expr expr;   // undefined while nothing but `known` is needed of a tensor
  Expr words;  // of a tensor of strings: an array; `expr` has the places of its elements there
  /// Of a sequence of a length that only running tells, a map or an optional: `expr` is an object.
  std::shared_ptr<const TypeProto> object;
  std::shared_ptr<const Known> known;
  std::optional<runtime::Tensor>
      constant;  // the contents of a weight, also where it is a parameter
  std::shared_ptr<const std::vector<Value>> sequence;
  bool is_kept = false;  // a weight that is a parameter: the user may replace its contents
  Value() = default;
  Value(Expr expr) : expr(std::move(expr)) {}                               // NOLINT(*)
  Value(Known known) : known(std::make_shared<Known>(std::move(known))) {}  // NOLINT(*)
  static Value Sequence(std::vector<Value> values) {
    Value value;
    value.sequence = std::make_shared<std::vector<Value>>(std::move(values));
    return value;
  }
  static Value Object(Expr expr, std::shared_ptr<const TypeProto> type) {
    Value value(std::move(expr));
    value.object = std::move(type);
    return value;
  }
  static Value Strings(Expr words, Expr places) {
    Value value(std::move(places));
    value.words = std::move(words);
    return value;
  }
  bool defined() const { return expr.defined() || known || sequence; }
  bool IsStrings() const { return words.defined(); }
  /// What it is, where it is no tensor of numbers; nullptr where it is.
  const char* Otherwise() const {
    if (!defined()) return "an absent value";
    if (sequence || (object && object->kind == TypeProto::kSequence)) return "a sequence";
    if (object) return object->kind == TypeProto::kMap ? "a map" : "an optional";
    return IsStrings() ? "strings" : nullptr;
  }
  /// Whether numbers computed from it must not be computed now. Integers say how a program looks.
  bool IsOpen() const { return is_kept && DataType(constant->dtype()).is_float(); }
};
/// Whether the type of a sequence says how its elements look.
bool SaysElements(const TypeProto& type);
struct Outputs : std::vector<Value> {
  Outputs(Expr expr) : vector{Value(std::move(expr))} {}                           // NOLINT(*)
  Outputs(Value value) : vector{std::move(value)} {}                               // NOLINT(*)
  Outputs(std::vector<Value> values) : vector(std::move(values)) {}                // NOLINT(*)
  Outputs(const std::vector<Expr>& exprs) : vector(exprs.begin(), exprs.end()) {}  // NOLINT(*)
};

class Node;
/// A branch of an If, or what follows one behind its branch, while that is imported.
struct BranchState {
  const Node* of = nullptr;       // the If whose results the nodes lead to, if any
  bool is_main = false;           // they are those of the program
  PrimExpr holds;                 // undefined where only running tells
  const Node* reached = nullptr;  // the node to the end of whose graph the branch goes on,
  std::vector<Value> values;      // and what is wanted there
};
/// Names that nodes see: those of their graph and of the graphs around it.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<Name, Value> values;
  // The nodes that are being imported, the place of the one whose turn it is, the names that are
  // wanted of them all, and whether that one gave them: a branch may take in what follows it.
  const std::vector<NodeProto>* nodes = nullptr;
  size_t at = 0;
  std::vector<Name> wanted;
  bool is_done = false;
  BranchState* branch = nullptr;  // that the nodes are in
  const Value* Find(Name name) const {
    for (const Scope* s = this; s; s = s->outer) {
      if (auto it = s->values.find(name); it != s->values.end()) return &it->second;
    }
    return nullptr;
  }
};
/// What a graph is imported with.
struct Context {
  const Opsets* opsets;
  std::map<Name, Attribute> attributes;  // of the call of the function that is inlined
};

class Importer;
/// A node being converted. What the converter reads is counted: an input or attribute that nobody
/// read is an error, since its meaning would be lost.
class Node {
 public:
  Node(Importer& importer, const NodeProto& proto, const Context& context, Scope* scope,
       int64_t opset);
  Importer& importer;
  const NodeProto& proto;
  const Context& context;
  Scope* const scope;
  const int64_t opset;
  Name op;  // the newest name of the operator
  std::vector<Value> inputs;
  std::map<Name, Attribute> attributes;

  // ---- inputs ----------------------------------------------------------------------------------
  size_t NumInputs() const { return inputs.size(); }
  bool Has(size_t i) const { return i < inputs.size() && inputs[i].defined(); }
  const Value& Input(size_t i);
  /// A tensor; ValueError when it is absent.
  Expr In(size_t i);
  std::vector<Expr> All();
  /// A tensor of strings; ValueError for another value.
  const Value& StringsIn(size_t i);
  /// The contents of a small tensor of numbers, or nullptr.
  const Known* KnownOf(size_t i);
  /// The contents of a vector (or scalar) of integers, also where only running tells them. A length
  /// that the model does not say is `length`, which running checks.
  std::vector<PrimExpr> Integers(size_t i, std::optional<int64_t> length = {});
  /// The same; of a length that only running tells there are `count`, the last of them `fill`.
  std::vector<PrimExpr> IntegersUpTo(size_t i, int64_t count, int64_t fill);
  /// The only one.
  PrimExpr Integer(size_t i);
  /// The length of a vector, 1 for a scalar; nothing when only running tells.
  std::optional<int64_t> LengthOf(size_t i);
  /// The same when they are constants.
  std::optional<std::vector<int64_t>> TryConstInts(size_t i);
  /// The same where constants are needed: OpNotImplemented for others.
  std::vector<int64_t> ConstInts(size_t i);
  std::vector<double> ConstFloats(size_t i);
  /// A scalar as an expression; nothing when only running tells it, or the user may change it.
  std::optional<PrimExpr> ScalarOf(size_t i);
  /// Whether output `i` is wanted by somebody.
  bool Wants(size_t i) const { return i < proto.outputs.size() && !proto.outputs[i].empty(); }
  /// The rank that the model declares for output `i`.
  std::optional<int64_t> DeclaredRank(size_t i) const;

  // ---- attributes ------------------------------------------------------------------------------
  bool HasAttr(Name name) const { return attributes.count(name) != 0; }
  int64_t Int(Name name, std::optional<int64_t> fallback = {});
  double Float(Name name, std::optional<double> fallback = {});
  std::string Str(Name name, std::optional<std::string> fallback = {});
  std::vector<int64_t> Ints(Name name, std::vector<int64_t> fallback = {});
  std::vector<double> Floats(Name name, std::vector<double> fallback = {});
  std::vector<std::string> Strs(Name name, std::vector<std::string> fallback = {});
  const Attribute* Find(Name name, Attribute::Type type);
  /// A type of elements.
  DataType Type(Name name, std::optional<DataType> fallback = {});
  /// For attributes that cannot change the result.
  void Ignore(Name name) { read_attributes_.insert(name); }
  /// An axis in [0, rank).
  int64_t Axis(int64_t axis, int64_t rank, const char* name = "axis") const;

  // ---- tensors ---------------------------------------------------------------------------------
  static DataType TypeOf(const Expr& e);
  static Dims Shape(const Expr& e);
  static int64_t Rank(const Expr& e) { return static_cast<int64_t>(Shape(e).size()); }
  /// A dimension that must be known now.
  int64_t StaticDim(const Expr& e, int64_t axis) const;

  // ---- new values ------------------------------------------------------------------------------
  /// Binds the expression; unknown dimensions become variables.
  Expr Emit(Expr e);
  /// A call of the operator "relax.<name>" with the parameters of its Python function.
  template <class... A>
  Expr operator()(const char* name, const A&... args) {
    return Emit(relax::CallOperator((std::string("relax.") + name).c_str(), {AnyView(args)...}));
  }
  Expr Item(const Expr& tuple, int64_t i);
  Expr Scalar(double value, DataType dtype);
  /// A vector of integers.
  Expr IntVector(const std::vector<int64_t>& values, DataType dtype = DataType::Int(64));
  Expr Cast(const Expr& e, DataType dtype);
  Expr Reshape(const Expr& e, const Dims& shape);
  /// The tensor as one of that shape, which running checks where it is not known.
  Expr Fitted(const Expr& e, const Dims& shape);
  PrimExpr Simplify(const PrimExpr& e) const;
  /// A vector of integers that is computed when the program runs, as expressions.
  std::vector<PrimExpr> RuntimeIntegers(const Expr& e);

  [[noreturn]] void Fail(const std::string& expected, const std::string& got) const;
  /// OpNotImplemented.
  [[noreturn]] void Unsupported(const std::string& what) const;
  /// Raises for what was not read.
  void CheckAllRead() const;

 private:
  double Real(Name name, std::optional<double> fallback);
  std::set<size_t> read_inputs_;
  std::set<Name> read_attributes_;
};

/// A tensor expression over tensors and sizes of the graph.
class Te {
 public:
  explicit Te(Node& node) : node_(node), args_(relax::TEArguments::Create()) {}
  te::Tensor operator()(const Expr& e);
  PrimExpr operator()(const PrimExpr& e) { return args_->Inside(e); }
  Dims operator()(const Dims& dims) {
    return dims.Map([&](const PrimExpr& e) { return args_->Inside(e); });
  }
  std::vector<PrimExpr> operator()(const std::vector<PrimExpr>& exprs);
  /// The call that computes the tensor, bound.
  Expr Done(const char* name, const te::Tensor& result);
  std::vector<Expr> Done(const char* name, const Array<te::Tensor>& results);

 private:
  Node& node_;
  relax::TEArguments args_;
  std::unordered_map<const Object*, te::Tensor> tensors_;
};

// ---- tables -------------------------------------------------------------------------------------
using Converter = Outputs (*)(Node& n);
struct Row {
  const char* op;
  Converter convert;
  const char* domain = "";
};
/// Converters for the newest form of operators.
void AddConverters(std::initializer_list<Row> rows);
Converter FindConverter(Name domain, Name op);
/// All names of a domain's operators.
std::vector<std::string_view> ListConverters(Name domain);

/// How errors call a node: by its name, or by that of its first result.
std::string Called(const NodeProto& node);
/// Inputs, outputs, weights and operators of a model, and what is not supported, as text.
std::string InspectModel(const Model& model);
/// The outputs of a node one of whose inputs is a tensor of strings.
Outputs ConvertOnStrings(Node& n);
/// Brings a node of an older opset into the newest form.
void ModernizeNode(Node& n);
/// The result when all inputs are small and known.
std::optional<Outputs> FoldKnown(Node& n);

class Importer {
 public:
  Importer(std::shared_ptr<const Model> model, OnnxOptions options);
  IRModule Run();
  std::vector<std::string> warnings;

  // ---- for converters --------------------------------------------------------------------------
  const Model& model() const { return *model_; }
  relax::BlockBuilder builder() const { return builder_; }
  Expr Emit(Expr e);
  /// The tensor of a value.
  Expr TensorOf(Value* value);
  /// The same of any value: a sequence is a tuple or an array, strings are a StringTensor, an
  /// absent value is None.
  Expr ExprOf(Value* value);

  // ---- objects that the program handles when it runs -------------------------------------------
  /// A call of "vm.builtin.<name>".
  Expr CallRuntime(const std::string& name, Array<Expr> args, StructInfo result);
  Expr CallRuntime(const std::string& name, Array<Expr> args) {
    return CallRuntime(name, std::move(args), relax::ObjectStructInfo::Get());
  }
  /// A value as one object, a sequence as an array.
  Expr ObjectOf(Value* value);
  /// The type of a sequence or an optional, as an object.
  std::shared_ptr<const TypeProto> ObjectType(const Value& value);
  /// The same of a sequence into which an item goes: it says how elements look where the sequence
  /// does not.
  std::shared_ptr<const TypeProto> TypeWithItem(const Value& sequence, const Value& item);
  /// The value of a type that an object holds. Dimensions are new but for constants where the
  /// object is an element of a sequence, and those of the graph's inputs otherwise.
  Value FromObject(const Expr& object, const TypeProto& type, bool is_element);
  Value StringConstant(const std::vector<int64_t>& shape, const std::vector<std::string>& strings);
  Value StringConstant(const TensorProto& proto);
  /// Strings in the order of the array, in that shape.
  Value StringsInOrder(Expr words, const Dims& shape);
  const Known* KnownOf(Value* value);
  /// Another number with every call.
  int64_t NextSerial() { return fresh_++; }
  tir::Var FreshDim(const std::string& name = "n");
  /// The rank that the model declares for a value, or for what follows from it in a few steps.
  std::optional<int64_t> DeclaredRank(Name value, int steps = 8) const;
  /// A variable for a number that is computed when the program runs, and may be negative.
  tir::Var DataVar();
  bool DependsOnData(const PrimExpr& e) const;
  /// Imports the nodes; what is wanted of their outputs is in the scope afterwards.
  void RunNodes(const std::vector<NodeProto>& nodes, const Context& context, Scope* scope,
                std::vector<Name> wanted);
  /// Whether the results of the nodes are those of the program.
  bool IsMain(const Scope* scope) const {
    return scope == main_scope_ || (scope->branch && scope->branch->is_main);
  }
  void AddInitializers(const Graph& graph, Scope* scope);
  /// A graph inside of another: its outputs for the inputs.
  std::vector<Value> RunGraph(const Graph& graph, const std::vector<Value>& inputs,
                              const Context& context, const Scope* outer,
                              BranchState* branch = nullptr);
  Value Constant(runtime::Tensor tensor);
  /// The tensor with the values of a sparse one.
  runtime::Tensor DenseOf(const SparseTensorProto& proto);

 private:
  /// Notes memory that the model takes; MemoryError beyond the limit.
  void Charge(uint64_t bytes, const std::function<std::string()>& what);
  /// Opset, file and inputs of a node, for errors.
  std::string Circumstances(const NodeProto& node, const Context& context,
                            const Scope& scope) const;
  /// A call of a broadcasting operator with operands that fit each other once they run; nothing
  /// where they are known to. The last `own` axes of operands do not broadcast.
  std::optional<relax::Call> Aligned(const relax::Call& call, size_t own);
  void CheckSupported() const;
  Dims ShapeOfInput(const ValueInfo& input);
  PrimExpr DimOf(Name text);
  /// The same where its names are known.
  std::optional<PrimExpr> FindDim(Name text) const;
  /// A value of the graph with the dimensions that the model declares for it, where what was found
  /// out of them is more than a name: exporters know what the texts of their models do not say.
  Value WithDeclaredDims(Name name, Value value);
  String NameOf(Name name);
  void RunNode(const NodeProto& proto, const Context& context, Scope* scope);
  const FunctionProto* FindFunction(const NodeProto& node) const;
  void RunFunction(const FunctionProto& function, Node& call);
  int64_t OpsetOf(const Context& context, Name domain) const;

  std::shared_ptr<const Model> model_;
  OnnxOptions options_;
  relax::BlockBuilder builder_;
  std::map<std::string, tir::Var> dims_;
  std::set<const tir::VarObj*> data_vars_;
  std::unordered_map<Name, const TypeProto*> declared_;  // of values of the graph itself
  const Scope* main_scope_ = nullptr;
  std::set<std::string> names_;
  Array<relax::Var> params_;
  Array<runtime::Tensor> kept_;
  int64_t num_inputs_ = 0;
  int call_depth_ = 0, num_nodes_ = 0, fresh_ = 0;
  uint64_t charged_ = 0;
};

}  // namespace tvm::frontend::onnx
