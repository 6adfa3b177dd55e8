// SPDX-License-Identifier: Apache-2.0
// Programs node by node: arguments resolved, converters called, the function built.
#include "importer.h"

#include <algorithm>
#include <functional>
#include <map>

#include "complex.h"
#include "converter.h"
#include "runtime/copy_of.h"
#include "tvm/ir/callback.h"
#include "tvm/relax/analysis.h"

namespace tvm::frontend::torch {
using relax::Function, relax::ObjectStructInfo, relax::PrimStructInfo, relax::SeqExpr,
    relax::TensorStructInfo, relax::TupleStructInfo;
namespace {

constexpr const char* kGetItem = "_operator.getitem";
constexpr const char* kImported = "\n  imported from ";
constexpr const char* kOwnConverter =
    "\nA converter of your own can be given by custom_convert_map={\"name.overload\": "
    "f(node, importer)}.";

const ValueRefObj* FirstRef(const GraphNode& node) {
  return node->args.empty() ? nullptr : node->args[0].as<ValueRefObj>();
}
void CollectRefs(const Any& arg, const std::function<void(const std::string&)>& use) {
  if (auto* ref = arg.as<ValueRefObj>()) use(ref->name);
  if (auto list = ListOf(arg)) {
    for (const Any& item : *list) CollectRefs(item, use);
  }
}

/// The arguments by their place in the schema.
std::vector<Any> Arrange(const GraphNodeObj* node, const ConverterInfo& info,
                         const std::function<Any(const Any&)>& resolve) {
  size_t n = info.params.size(), required = n - info.defaults.size();
  std::vector<Any> args(n);
  std::vector<bool> given(n);
  Array<Any> rest;  // what a last parameter *x takes
  bool takes_rest = n > 0 && info.params[n - 1][0] == '*';
  std::string where = std::string(node->target) + " (node " + std::string(node->name) + "): ";
  if (node->args.size() > n && !takes_rest) {
    TVM_FFI_THROW(ValueError) << where << "expected at most " << n << " arguments, got "
                              << node->args.size();
  }
  for (size_t i = 0; i < node->args.size(); ++i) {
    if (takes_rest && i + 1 >= n) {
      rest.push_back(resolve(node->args[i]));
      continue;
    }
    args[i] = resolve(node->args[i]);
    given[i] = true;
  }
  if (takes_rest) {
    args[n - 1] = rest;
    given[n - 1] = true;
  }
  for (const auto& [key, value] : node->kwargs) {
    // Where a tensor is made and how it lies in memory says nothing about its elements.
    static const std::unordered_set<std::string> ignored = {
        "device", "layout", "pin_memory", "memory_format", "non_blocking", "generator"};
    auto at = std::find(info.params.begin(), info.params.end(), std::string(key));
    if (at == info.params.end()) {
      if (ignored.count(key)) continue;
      TVM_FFI_THROW(NotImplementedError)
          << where << "expected no argument '" << key << "', got " << value.GetTypeKey();
    }
    args[at - info.params.begin()] = resolve(value);
    given[at - info.params.begin()] = true;
  }
  for (size_t i = 0; i < n; ++i) {
    if (given[i]) continue;
    if (i < required) {
      TVM_FFI_THROW(ValueError) << where << "missing argument '" << info.params[i] << "'";
    }
    args[i] = info.defaults[i - required];
  }
  return args;
}

/// The text of a struct info, without the lines that declare its variables.
std::string TextWithNames(const StructInfo& info) {
  std::string text = relax::TextOf(info);
  return text.substr(text.rfind('\n') + 1);
}
/// The types and shapes of a node's inputs, each as `text_of` writes it.
std::string TextOfInputs(const GraphNode& node,
                         const std::function<std::string(const std::string&)>& text_of) {
  std::string inputs;
  auto add = [&](const std::string& name) {
    inputs += (inputs.empty() ? "" : ", ") + text_of(name);
  };
  for (const Any& arg : node->args) CollectRefs(arg, add);
  for (const auto& [key, arg] : node->kwargs) CollectRefs(arg, add);
  return inputs.empty() ? "" : " of " + inputs;
}
std::string TextOfValue(const Any& value) {
  if (IsTensor(value)) return TextWithNames(relax::GetStructInfo(value.cast<Expr>()));
  return IsNumber(value) || value.as<PrimExprObj>() ? "a number" : "a value";
}

/// All operators that have no converter, once each, with a place that calls them: the node, what
/// it is called with, the line of the user's program.
void CheckSupported(const Array<GraphNode>& nodes,
                    const std::unordered_map<std::string, Any>& env) {
  std::map<std::string, std::string> missing;
  std::unordered_map<std::string, Any> metas;
  for (const GraphNode& node : nodes) {
    metas[node->name] = node->meta;
    if (node->convert.has_value() || FindConverter(node->target)) continue;
    std::string& place = missing[node->target];
    if (!place.empty()) continue;
    place = "node " + std::string(node->name) + TextOfInputs(node, [&](const std::string& name) {
              auto known = env.find(name);
              bool is_tensor = known != env.end() && IsTensor(known->second);
              return is_tensor ? TextOfValue(known->second) : TextOfMeta(metas[name]);
            });
    if (!node->source.empty()) place += ", " + std::string(node->source);
  }
  if (missing.empty()) return;
  std::string names, places;
  for (const auto& [name, place] : missing) {
    names += (names.empty() ? "'" : ", '") + name + "'";
    places += "\n  " + name + ": " + place;
  }
  TVM_FFI_THROW(AssertionError) << "Unsupported function types [" << names << "]" << places
                                << kOwnConverter;
}

}  // namespace

std::string TextOfMeta(const Any& meta) {
  auto* tensor = meta.as<TensorMetaObj>();
  if (!tensor) return meta.as<ScalarMetaObj>() ? "a number" : "a value";
  std::string text = std::string(tensor->dtype) + "[";
  for (size_t i = 0; i < tensor->sizes.size(); ++i) {
    if (i) text += ", ";
    const Any& size = tensor->sizes[i];
    if (auto known = size.try_cast<int64_t>()) {
      text += std::to_string(*known);
      continue;
    }
    // Of a symbol alone its name, else just that it is symbolic.
    std::string expr = size.try_cast<String>() ? std::string(size.cast<String>()) : "";
    size_t begin = expr.find("Symbol('"), end = expr.find('\'', begin + 8);
    text += begin == 0 ? expr.substr(8, end - 8) : "?";
  }
  return text + "]";
}

Any ImporterObj::Resolve(const Any& arg) {
  if (auto* ref = arg.as<ValueRefObj>()) {
    auto it = env.find(ref->name);
    if (it == env.end()) {
      TVM_FFI_THROW(ValueError) << "expected the value of '" << ref->name
                                << "' to be defined before it is used";
    }
    return it->second;
  }
  if (arg == nullptr) return arg;
  if (auto* scalar = arg.as<ScalarMetaObj>()) return symbols.Size(scalar->expr);
  if (auto tensor = arg.try_cast<ffi::Tensor>()) return Constant(*tensor);
  auto list = ListOf(arg);
  if (!list) return arg;
  Array<Any> values;
  for (const Any& item : *list) values.push_back(Resolve(item));
  return values;
}

bool ImporterObj::Used(const GraphNodeObj* node, size_t item) const {
  auto it = items_.find(node->name);
  if (it == items_.end()) return false;
  return it->second.count(-1) || it->second.count(static_cast<int64_t>(item));
}

StructInfo ImporterObj::StructInfoOf(const Any& meta) {
  if (auto* tensor = meta.as<TensorMetaObj>()) {
    Array<PrimExpr> dims;
    for (const Any& size : tensor->sizes) dims.push_back(symbols.Size(size));
    if (IsComplexMeta(meta)) {  // pairs of numbers
      dims.push_back(IntImm::Int64(2));
      return TensorStructInfo(dims, ParseType(PartTypeOf(tensor->dtype)));
    }
    return TensorStructInfo(dims, ParseType(tensor->dtype));
  }
  if (auto* scalar = meta.as<ScalarMetaObj>(); scalar && scalar->kind == "int") {
    return PrimStructInfo(symbols.Size(scalar->expr));
  }
  if (auto list = ListOf(meta)) {
    Array<StructInfo> fields;
    for (const Any& item : *list) fields.push_back(StructInfoOf(item));
    return TupleStructInfo(fields);
  }
  return ObjectStructInfo::Get();
}

/// A tensor whose sizes only the exporter knows (they depend on data, or on a symbol's range) is
/// said to have them, which is checked when the program runs.
Any ImporterObj::Complete(const GraphNodeObj* node, const Any& value, const Any& meta) {
  if (auto list = ListOf(value)) {
    auto metas = ListOf(meta);
    if (!metas || (*metas).size() != (*list).size()) return value;
    Array<Any> items;
    for (size_t i = 0; i < (*list).size(); ++i) {
      items.push_back(Complete(node, (*list)[i], (*metas)[i]));
    }
    return items;
  }
  if (!IsTensor(value) || !meta.as<TensorMetaObj>()) return value;
  Expr expr = value.cast<Expr>();
  StructInfo known = StructInfoOf(meta);
  auto *ours = InfoOf(expr), *theirs = known.as<TensorStructInfoObj>();
  if (ours->dtype != theirs->dtype || (ours->ndim >= 0 && ours->ndim != theirs->ndim)) {
    TVM_FFI_THROW(InternalError) << node->target << " (node " << node->name << "): expected "
                                 << TextWithNames(known) << ", got "
                                 << TextWithNames(relax::GetStructInfo(expr));
  }
  if (const Dims* dims = DimsOf(ours)) {
    bool is_same = true;
    for (int64_t i = 0; i < ours->ndim; ++i) {
      const PrimExpr &a = (*dims)[i], &b = (*DimsOf(theirs))[i];
      auto m = AsConstInt(a), n = AsConstInt(b);
      if (m && n && *m != *n) {
        TVM_FFI_THROW(InternalError)
            << node->target << " (node " << node->name << "): expected " << TextWithNames(known)
            << ", got " << TextWithNames(relax::GetStructInfo(expr));
      }
      // By what passes will know, too: the ranges of symbols are not among it.
      is_same = is_same && ((m && n) || builder->analyzer()->CanProveEqual(a, b));
    }
    if (is_same) return value;
  }
  return builder->EmitMatchCast(expr, known);
}

Any ImporterObj::Convert(const GraphNodeObj* node) {
  if (node->convert.has_value()) return CallBack(*node->convert);
  const ConverterInfo& info = *FindConverter(node->target);
  std::vector<Any> args = Arrange(node, info, [&](const Any& arg) { return Resolve(arg); });
  if (ComplexTypeOf(args) || std::any_of(args.begin(), args.end(), &HasComplex)) {
    return ConvertComplex(node, info, args);
  }
  Conversion conversion(this, node, info, args);
  return Complete(node, info.convert(conversion), node->meta);
}

/// The imaginary parts of an argument: that of a real value is 0, positions stay.
Any ImporterObj::ImagOf(const Any& arg) {
  if (IsTensor(arg) && TypeOf(arg.cast<Expr>()).is_float()) {
    return Apply("aten.zeros_like.default", {arg});
  }
  auto list = ListOf(arg);
  if (!list) return PartOf(arg, true);
  Array<Any> parts;
  for (const Any& item : *list) parts.push_back(ImagOf(item));
  return parts;
}

Any ImporterObj::ConvertComplex(const GraphNodeObj* node, const ConverterInfo& info,
                                std::vector<Any> args) {
  if (auto place = ComplexTypeOf(args)) {
    // A real value of the parts' type, with an imaginary part of zeros; or both parts in that type.
    args[*place] = PartTypeOf(args[*place].cast<String>());
    bool is_real = std::none_of(args.begin(), args.end(), &HasComplex);
    Conversion conversion(this, node, info, args);
    if (is_real) {
      Any real = info.convert(conversion);
      return IsTensor(real) ? Complex(real.cast<Expr>(), conversion.Emit("zeros_like", real))
                            : real;
    }
  }
  if (const ConverterInfo* own = FindComplexConverter(node->target)) {
    Conversion conversion(this, node, *own, args);
    return own->convert(conversion);
  }
  bool is_list = ListOf(args[0]) && node->target == kGetItem;
  if (!IsPartwise(node->target)) {
    TVM_FFI_THROW(NotImplementedError)
        << node->target << " (node " << node->name << "): expected real tensors, got complex ones";
  }
  if (is_list) {
    Conversion conversion(this, node, info, args);
    return info.convert(conversion);
  }
  Any parts[2];
  for (bool imag : {false, true}) {
    std::vector<Any> part;
    for (const Any& arg : args) part.push_back(imag ? ImagOf(arg) : PartOf(arg, false));
    Conversion conversion(this, node, info, part);
    parts[imag] = info.convert(conversion);
  }
  bool is_real = node->meta.as<TensorMetaObj>() && !IsComplexMeta(node->meta);
  return is_real ? parts[0] : FromParts(parts[0], parts[1]);
}

void ImporterObj::ConvertNodes(const Array<GraphNode>& nodes) {
  CheckSupported(nodes, env);
  for (const GraphNode& node : nodes) {
    for (const Any& arg : node->args) {
      CollectRefs(arg, [&](const std::string& name) {
        bool is_item = node->target == kGetItem && FirstRef(node) && FirstRef(node)->name == name;
        items_[name].insert(is_item ? node->args[1].cast<int64_t>() : -1);
      });
    }
  }
  for (const GraphNode& node : nodes) {
    CheckSignals();
    try {
      env[node->name] = Convert(node.get());
      if (!FunctionalTarget(node->target).empty()) Mutate(node.get());
      NoteView(node.get());
    } catch (const ffi::Error& error) {
      std::string message = error.message(), source = node->source;
      // Of nodes in nodes (the branches of a condition) the innermost is named.
      if (message.find(kImported) != message.npos) throw;
      message += kImported + std::string(node->target) + " (node " + std::string(node->name) + ")" +
                 TextOfInputs(node, [&](const std::string& name) {
                   auto known = env.find(name);
                   return known == env.end() ? "nothing" : TextOfValue(known->second);
                 });
      if (!source.empty()) message += ", " + source;
      if (View(error.kind()) == "NotImplementedError") message += kOwnConverter;
      throw ffi::Error(error.kind(), message, error.backtrace());
    }
  }
}

namespace {

Expr OutputExpr(const Any& value) {
  if (auto* expr = value.as<RelaxExprObj>()) return ffi::GetRef<Expr>(expr);
  if (auto* complex = value.as<ComplexObj>()) {
    return relax::CallOperator("relax.stack", {Tuple({complex->real, complex->imag}), -1});
  }
  if (value == nullptr) return relax::CallOperator("relax.null_value", {});
  if (auto list = ListOf(value)) {
    Array<Expr> fields;
    for (const Any& item : *list) fields.push_back(OutputExpr(item));
    return relax::Tuple(fields);
  }
  if (auto number = value.try_cast<int64_t>()) return PrimValue::Int64(*number);
  if (auto number = value.try_cast<double>())
    return PrimValue(FloatImm(DataType::Float(64), *number));
  if (auto* e = value.as<PrimExprObj>()) return PrimValue(ffi::GetRef<PrimExpr>(e));
  if (auto text = value.try_cast<String>()) return relax::StringImm(*text);
  TVM_FFI_THROW(TypeError) << "expected a result of tensors, numbers or lists of them, got "
                           << value.GetTypeKey();
  TVM_FFI_UNREACHABLE();
}

bool HasControlFlow(const Array<GraphNode>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const GraphNode& node) {
    return View(node->target).starts_with("higher_order.") &&
           !View(node->target).starts_with("higher_order.wrap_with_");
  });
}

/// The parameters of the function; values of inputs go to the environment.
struct Signature {
  Array<Var> params;
  Array<ffi::Tensor> values;  // of the parameters behind `num_input`
  int64_t num_input = 0;
};
Signature BindInputs(ImporterObj* importer, const Program& program, bool keep_params) {
  Signature signature;
  Array<Var> kept;
  for (const ProgramInput& input : program->inputs) {
    Any& value = importer->env[input->name];
    if (input->kind == "user") {
      if (!input->meta.as<TensorMetaObj>() && !input->meta.as<ScalarMetaObj>()) {
        value = input->value;  // a constant of the program
        continue;
      }
      StructInfo info = importer->StructInfoOf(input->meta);
      Var var(input->name, info);
      if (IsComplexMeta(input->meta)) importer->complex_inputs.push_back({input->name, var});
      auto* prim = info.as<relax::PrimStructInfoObj>();
      value = prim && prim->value.has_value() ? Any(*prim->value) : Any(var);
      signature.params.push_back(var);
    } else if (input->kind == "parameter" && keep_params) {
      Var var(input->name, importer->StructInfoOf(input->meta));
      value = var;
      kept.push_back(var);
      signature.values.push_back(input->value.cast<ffi::Tensor>());
    } else if (input->kind == "parameter" || input->kind == "constant") {
      Constant constant(input->value.cast<ffi::Tensor>());
      if (IsComplexMeta(input->meta)) importer->complex_inputs.push_back({input->name, constant});
      value = constant;
    } else {
      TVM_FFI_THROW(ValueError) << "Unsupported input kind " << input->kind << " of '"
                                << input->name << "'";
    }
  }
  signature.num_input = signature.params.size();
  for (const Var& var : kept) signature.params.push_back(var);
  return signature;
}

// ---- state --------------------------------------------------------------------------------------
// What a program changes outlives the call: buffers are kept by the machine that runs it, inputs
// are written to. The graph itself works on values that nothing changes, so that no result shares
// the memory of an input that is written to.
Expr CallOf(const char* name, const Array<Expr>& args, const StructInfo& result) {
  return relax::Call(relax::ExternFunc(std::string("vm.builtin.state.") + name), args, {},
                     {result});
}
Expr CallWithMachine(const char* name, const Array<Expr>& args, const StructInfo& result) {
  static const Op& op = *new Op(Op::Get("relax.call_builtin_with_ctx"));
  relax::ExternFunc function(std::string("vm.builtin.state.") + name);
  return relax::Call(op, {function, relax::Tuple(args)}, {}, {result});
}
/// The state at the beginning of a call, in the place of the inputs that will be changed.
void ReadState(ImporterObj* importer, const Program& program,
               const std::unordered_set<std::string>& changed) {
  for (const ProgramInput& input : program->inputs) {
    Any& value = importer->env[input->name];
    auto* expr = value.as<RelaxExprObj>();
    if (!expr || !changed.count(input->name)) continue;
    Expr given = ffi::GetRef<Expr>(expr);
    StructInfo info = relax::GetStructInfo(given);
    Expr read = CallOf("copy", {given}, info);
    if (auto* constant = given.as<relax::ConstantObj>()) {
      // The model that the program was made from goes on changing its own.
      Constant initial(runtime::CopyOf(constant->data));
      read = CallWithMachine("read", {relax::StringImm(input->name), initial}, info);
    }
    Var var = importer->builder->Emit(read, input->name);
    value = var;
    for (auto& [name, pair] : importer->complex_inputs) {
      if (name == input->name) pair = var;
    }
  }
}
/// The values that remain, by input.
std::vector<std::pair<ProgramInput, Any>> Changes(ImporterObj* importer, const Program& program) {
  std::vector<std::pair<ProgramInput, Any>> changes;
  for (const ProgramInput& input : program->inputs) {
    if (auto value = program->mutations.Get(input->name)) {
      changes.emplace_back(input, importer->Resolve(*value));
    } else if (importer->mutated().count(input->name)) {
      changes.emplace_back(input, importer->env.at(input->name));
    }
  }
  return changes;
}
void WriteState(ImporterObj* importer, const ProgramInput& input, const Array<Var>& params,
                const Expr& value) {
  StructInfo none = TupleStructInfo::Void();
  for (const Var& param : params) {
    if (param->name_hint() != input->name) continue;
    importer->builder->Emit(CallOf("assign", {param, value}, none), "_");
    return;
  }
  Array<Expr> args = {relax::StringImm(input->name), value};
  importer->builder->Emit(CallWithMachine("write", args, none), "_");
}

Map<String, Any> AttrsOf(const ImporterObj* importer, const Program& program,
                         const Signature& signature, const ImportOptions& options) {
  Map<String, Any> attrs;
  attrs.Set("global_symbol", String(options.name));
  if (options.keep_params_as_input) {
    attrs.Set("num_input", signature.num_input);
    attrs.Set("params", signature.values);
  }
  Map<String, Any> lower, upper;
  for (const auto& [name, range] : program->ranges) {
    auto var = importer->symbols.input_vars().Get(name);
    if (!var || (*var)->name_hint != name) continue;
    if (range[0] != nullptr) lower.Set(name, range[0]);
    if (range[1] != nullptr) upper.Set(name, range[1]);
  }
  if (!lower.empty()) attrs.Set("tir_var_lower_bound", lower);
  if (!upper.empty()) attrs.Set("tir_var_upper_bound", upper);
  return attrs;
}

}  // namespace

void ImportProgram(const Importer& importer, const Program& program, const ImportOptions& options) {
  ImporterObj* self = importer.get();
  BlockBuilder bb = self->builder;
  self->default_dtype = ParseType(program->default_dtype);
  self->symbols.SetRanges(program->ranges);
  self->symbols.DefineInputs(program->inputs);
  Signature signature = BindInputs(self, program, options.keep_params_as_input);
  bb->BeginScope(signature.params);
  bb->BeginSequence();
  ReadState(self, program, ChangedInputs(program));
  // Branches are no part of dataflow blocks: ConvertToDataflow finds those between them.
  bool is_dataflow = !HasControlFlow(program->nodes);
  if (is_dataflow) bb->BeginDataflowBlock();
  for (const auto& [name, pair] : self->complex_inputs) {
    self->env[name] = self->Apply("aten.view_as_complex.default", {pair});
  }
  self->ConvertNodes(program->nodes);
  Any outputs = self->Resolve(program->outputs);
  auto list = ListOf(outputs);
  if (!list && !options.keep_structure) list = Array<Any>{outputs};
  auto output = [&](const Any& value) {
    Expr expr = OutputExpr(value);
    return is_dataflow ? bb->EmitOutput(expr) : bb->Emit(expr);
  };
  Expr body;
  if (options.no_bind_return_tuple && list) {
    Array<Expr> fields;
    for (const Any& item : *list) fields.push_back(output(item));
    body = relax::Tuple(fields);
  } else if (list && (*list).size() == 1 && options.unwrap_unit_return_tuple) {
    body = output((*list)[0]);
  } else {
    body = output(list ? Any(*list) : outputs);
  }
  std::vector<std::pair<ProgramInput, Expr>> changed;
  for (const auto& [input, value] : Changes(self, program)) {
    changed.emplace_back(input, output(value));
  }
  if (is_dataflow) bb->CloseBlock();
  for (const auto& [input, value] : changed) WriteState(self, input, signature.params, value);
  body = bb->NormalizeArgument(body);
  SeqExpr seq = relax::MakeSeq(SeqExpr::Of(body), bb->EndSequence(), body);
  bb->EndScope();
  Function func(signature.params, seq, {}, changed.empty(),
                DictAttrs(AttrsOf(self, program, signature, options)));
  bb->AddFunction(func, options.name);
}

namespace {

Importer MakeImporter(BlockBuilder builder) {
  auto node = ffi::make_object<ImporterObj>();
  node->builder = std::move(builder);
  return Importer(node);
}
void Import(Importer importer, Program program, bool keep_params_as_input,
            bool unwrap_unit_return_tuple, bool no_bind_return_tuple, bool keep_structure,
            String name) {
  ImportProgram(
      importer, program,
      {keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple, keep_structure, name});
}
Any GetValue(Importer importer, String name) {
  auto ref = ffi::make_object<ValueRefObj>();
  ref->name = name;
  return importer->Resolve(ValueRef(ref));
}
void SetValue(Importer importer, String name, Any value) { importer->env[name] = std::move(value); }
Array<String> Targets() {
  Array<String> names;
  for (const std::string& name : ListConverters()) names.push_back(name);
  return names;
}
bool IsSupported(String target, bool of_complex) {
  if (of_complex && !FindComplexConverter(target) && !IsPartwise(target)) return false;
  return FindConverter(target) != nullptr;
}
/// (parameter names, defaults of the last ones) of a converter.
Array<Any> SchemaOf(String target) {
  const ConverterInfo* info = FindConverter(target);
  if (!info) TVM_FFI_THROW(KeyError) << "expected an operator with a converter, got " << target;
  Array<Any> names(info->params.begin(), info->params.end());
  return {names, Array<Any>(info->defaults.begin(), info->defaults.end())};
}

TVM_REGISTER() {
  RegisterNode<ValueRefObj>("The result of the node, or the input, of that name.");
  RegisterNode<TensorMetaObj>("A tensor's sizes and type.");
  RegisterNode<ScalarMetaObj>("A symbolic scalar.");
  RegisterNode<GraphNodeObj>("A call of an operator in a graph.");
  RegisterNode<ProgramInputObj>("An input of a program.");
  RegisterNode<ProgramObj>("A PyTorch program as it is imported.");
  RegisterNode<ImporterObj>("Converts programs, node by node.");
  Def("relax.frontend.torch._importer", &MakeImporter, "An importer into a builder's module.",
      Arg("builder"));
  Def("relax.frontend.torch._import", &Import, "Adds the function of a program to the module.",
      Arg("importer"), Arg("program"), Arg("keep_params_as_input", false),
      Arg("unwrap_unit_return_tuple", false), Arg("no_bind_return_tuple", false),
      Arg("keep_structure", false), Arg("name", String("main")));
  Def("relax.frontend.torch._get", &GetValue, "The value of a node.", Arg("importer"), Arg("name"));
  Def("relax.frontend.torch._set", &SetValue, "Sets the value of a node.", Arg("importer"),
      Arg("name"), Arg("value"));
  Def("relax.frontend.torch.supported_operators", &Targets,
      "The names of all operators that have a converter.");
  Def("relax.frontend.torch.is_supported", &IsSupported,
      "Whether an operator has a converter, for complex tensors with `of_complex`.", Arg("target"),
      Arg("of_complex", false));
  Def("relax.frontend.torch._schema", &SchemaOf, "Parameters and defaults of a converter.",
      Arg("target"));
}

}  // namespace
}  // namespace tvm::frontend::torch
