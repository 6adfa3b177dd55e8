// SPDX-License-Identifier: Apache-2.0
// Tensors and operations: their invariants, their inputs, and how to build them.
#include <set>

#include "ir/once.h"
#include "tvm/expr/substitute.h"
#include "tvm/te/te.h"

namespace tvm::te {
using namespace tir;
namespace {

/// Shapes may be symbolic, but they are integers and not negative.
void CheckShape(const Array<PrimExpr>& shape, const String& name) {
  for (const PrimExpr& extent : shape) {
    if (!extent.dtype().is_integer() || !extent.dtype().is_scalar()) {
      TVM_FFI_THROW(TypeError) << name << ": expected integers as shape, got " << extent.dtype();
    }
    if (auto value = AsConstInt(extent); value && *value < 0) {
      TVM_FFI_THROW(ValueError) << name << ": expected a shape that is not negative, got "
                                << *value;
    }
  }
}

struct LoadVisitor : Visitor<LoadVisitor, ProducerLoadObj, PrimExprObj> {
  const std::function<void(const Tensor&)>& visit;
  Once once;
  explicit LoadVisitor(const std::function<void(const Tensor&)>& visit) : visit(visit) {}
  void Visit(const ProducerLoadObj* load) {
    if (auto tensor = load->producer.as<Tensor>()) visit(*tensor);
    VisitChildren(load, *this);
  }
  void Visit(const PrimExprObj* e) {
    if (once(e)) VisitChildren(e, *this);
  }
};

struct ReductionFinder : Visitor<ReductionFinder, ReduceObj, PrimExprObj> {
  bool found = false;
  Once once;
  void Visit(const ReduceObj*) { found = true; }
  void Visit(const PrimExprObj* e) {
    if (!found && once(e)) VisitChildren(e, *this);
  }
};

bool HasReduction(const ObjectRef& node) {
  ReductionFinder finder;
  finder(node);
  return finder.found;
}

template <class T>
bool SameElements(const Array<T>& a, const Array<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return x.same_as(y); });
}

void CheckReductions(const ComputeOpObj* op) {
  const auto* first = op->body[0].as<ReduceObj>();
  for (size_t i = 0; i < op->body.size(); ++i) {
    const auto* reduce = op->body[i].as<ReduceObj>();
    bool nested = false;
    if (!reduce) {
      nested = HasReduction(op->body[i]);
    } else {
      for (const PrimExpr& e : reduce->source) nested = nested || HasReduction(e);
      nested = nested || HasReduction(reduce->condition);
    }
    if (nested) {
      TVM_FFI_THROW(ValueError)
          << op->name << ": expected a reduction to be the whole value of an element, got one "
          << "inside another expression; give the reduction a te.compute of its own and use that "
          << "tensor here";
    }
    bool same = reduce && first && reduce->combiner.same_as(first->combiner) &&
                SameElements(reduce->source, first->source) &&
                SameElements(reduce->axis, first->axis) &&
                reduce->value_index == static_cast<int64_t>(i);
    if (op->body.size() > 1 && (reduce || first) && !same) {
      TVM_FFI_THROW(ValueError)
          << op->name << ": expected all outputs to be the values of one reduction in their order, "
          << "got a different expression for output " << i;
    }
  }
}

/// A tensor that gives values of a state: its type, and its dimensions from `first` on.
void CheckState(const String& name, const Tensor& state, const Tensor& t, size_t first) {
  if (t->dtype != state->dtype) {
    TVM_FFI_THROW(TypeError) << name << ": expected " << t->GetNameHint() << " of type "
                             << state->dtype << " as the state has, got " << t->dtype;
  }
  if (t->shape.size() != state->shape.size() || state->shape.empty()) {
    TVM_FFI_THROW(ValueError) << name << ": expected " << t->GetNameHint()
                              << " with time and the dimensions of the state ("
                              << state->shape.size() << " in all), got " << t->shape.size();
  }
  for (size_t d = first; d < state->shape.size(); ++d) {
    auto got = AsConstInt(t->shape[d]), want = AsConstInt(state->shape[d]);
    if (got && want && *got != *want) {
      TVM_FFI_THROW(ValueError) << name << ": expected " << t->GetNameHint() << " to have " << *want
                                << " elements in dimension " << d << " as the state has, got "
                                << *got;
    }
  }
}

/// Whether the value differs from element to element: it uses an axis or reads a tensor.
bool IsPerElement(const PrimExpr& e, const Array<IterVar>& axis) {
  bool found = false;
  Once once;
  PreOrderVisit(e, [&](const ObjectRef& node) {
    found = found || node.as<ProducerLoadObj>() ||
            std::any_of(axis.begin(), axis.end(),
                        [&](const IterVar& iv) { return iv->var.same_as(node); });
    return !found && once(node.get());
  });
  return found;
}

/// The variables in the body that are neither axes nor bound by a reduction in it.
Array<Var> FreeVars(const Array<PrimExpr>& body, const Array<IterVar>& axis) {
  std::set<const Object*> seen;
  for (const IterVar& iv : axis) seen.insert(iv->var.get());
  Array<Var> free;
  Once once;
  for (const PrimExpr& e : body) {
    Array<ObjectRef> parts;
    if (const auto* reduce = e.as<ReduceObj>()) {
      for (const IterVar& iv : reduce->axis) seen.insert(iv->var.get());
      // Not the combiner, whose variables are its own.
      for (const PrimExpr& source : reduce->source) parts.push_back(source);
      for (const PrimExpr& start : reduce->init) parts.push_back(start);
      parts.push_back(reduce->condition);
    } else {
      parts.push_back(e);
    }
    for (const ObjectRef& part : parts) {
      PreOrderVisit(part, [&](const ObjectRef& node) {
        if (const auto* let = node.as<LetObj>()) seen.insert(let->var.get());
        if (const auto* var = node.as<VarObj>(); var && seen.insert(var).second) {
          free.push_back(ffi::GetRef<Var>(var));
        }
        return once(node.get());
      });
    }
  }
  return free;
}

Array<Tensor> Outputs(const Operation& op) {
  Array<Tensor> outputs;
  for (int64_t i = 0; i < op->NumOutputs(); ++i) outputs.push_back(op.output(i));
  return outputs;
}

}  // namespace

// ---- tensors ----------------------------------------------------------------------------------
Tensor Operation::output(int64_t i) const {
  if (i < 0 || i >= get()->NumOutputs()) {
    TVM_FFI_THROW(IndexError) << get()->name << ": expected the number of an output below "
                              << get()->NumOutputs() << ", got " << i;
  }
  return New<Tensor>([&](TensorObj* n) {
    n->shape = get()->OutputShape(i);
    n->dtype = get()->OutputType(i);
    n->op = *this;
    n->value_index = i;
  });
}

String TensorObj::GetNameHint() const {
  return op->NumOutputs() == 1 ? op->name
                               : String(std::string(op->name) + ".v" + std::to_string(value_index));
}

PrimExpr Tensor::operator()(const Array<PrimExpr>& indices) const {
  const TensorObj* self = get();
  String name = self->GetNameHint();
  if (indices.size() != self->shape.size()) {
    TVM_FFI_THROW(ValueError) << name << ": expected " << self->shape.size()
                              << (self->shape.size() == 1 ? " index" : " indices") << ", got "
                              << indices.size();
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    DataType t = indices[i].dtype();
    if (!t.is_integer() && !t.is_bool()) {
      TVM_FFI_THROW(TypeError) << name << ": expected an integer as index " << i << ", got " << t
                               << "; write .astype(\"int32\") to round towards zero";
    }
    auto index = AsConstInt(indices[i]), extent = AsConstInt(self->shape[i]);
    if (index && *index < 0) {
      TVM_FFI_THROW(IndexError) << name << ": expected an index from 0 in dimension " << i
                                << ", got " << *index << "; counting from the end is written "
                                << "extent - " << -*index;
    }
    if (index && extent && *index >= *extent) {
      TVM_FFI_THROW(IndexError) << name << ": expected an index below " << *extent
                                << " in dimension " << i << ", got " << *index;
    }
  }
  return ProducerLoad(*this, indices);
}

Array<Tensor> InputTensors(const Operation& op) {
  Array<Tensor> inputs;
  std::set<std::pair<const Object*, int64_t>> seen;
  op->VisitInputs([&](const Tensor& t) {
    if (seen.emplace(t->op.get(), t->value_index).second) inputs.push_back(t);
  });
  return inputs;
}

// ---- operations -------------------------------------------------------------------------------
void PlaceholderOpObj::Init() {
  CheckShape(shape, name);
  if (dtype.is_void())
    TVM_FFI_THROW(TypeError) << name << ": expected a type of elements, got void";
}

Array<PrimExpr> BaseComputeOpObj::OutputShape(int64_t) const {
  return axis.Map([](const IterVar& iv) { return iv->dom.value()->extent; });
}

ComputeOp::ComputeOp(String name, String tag, Map<String, Any> attrs, Array<IterVar> axis,
                     Array<PrimExpr> body) {
  *this = New<ComputeOp>([&](ComputeOpObj* n) {
    n->name = std::move(name);
    n->tag = std::move(tag);
    n->attrs = std::move(attrs);
    n->axis = std::move(axis);
    n->body = std::move(body);
  });
}
void ComputeOpObj::Init() {
  for (const IterVar& iv : axis) {
    if (!iv->dom.has_value() || !IsZero(iv->dom.value()->min)) {
      TVM_FFI_THROW(ValueError) << name << ": expected axes that begin at 0, got "
                                << iv->var->name_hint;
    }
  }
  CheckShape(OutputShape(0), name);
  if (body.empty()) TVM_FFI_THROW(ValueError) << name << ": expected at least one output, got none";
  for (const PrimExpr& value : body) {
    if (!value.dtype().is_numeric()) {
      TVM_FFI_THROW(TypeError) << name << ": expected a number as the value of an element, got "
                               << value.dtype();
    }
  }
  CheckReductions(this);
  reduce_axis = {};
  if (const auto* reduce = body[0].as<ReduceObj>()) reduce_axis = reduce->axis;
}
void ComputeOpObj::VisitInputs(const std::function<void(const Tensor&)>& visit) const {
  LoadVisitor visitor(visit);
  for (const PrimExpr& value : body) visitor(value);
}

void ScanOpObj::Init() {
  if (init.empty() || init.size() != update.size() || init.size() != state_placeholder.size()) {
    TVM_FFI_THROW(ValueError) << name << ": expected as many init, update and state tensors, got "
                              << init.size() << ", " << update.size() << " and "
                              << state_placeholder.size();
  }
  spatial_axis_ = {};
  for (size_t i = 0; i < init.size(); ++i) {
    const Tensor& state = state_placeholder[i];
    if (!state->op.as<PlaceholderOpObj>()) {
      TVM_FFI_THROW(TypeError) << name << ": expected a placeholder as state " << i << ", got "
                               << state->GetNameHint();
    }
    // The init tensor holds the first steps only: its time may differ.
    for (const auto& [t, first] :
         {std::pair(init[i], size_t{1}), std::pair(update[i], size_t{0})}) {
      CheckState(name, state, t, first);
    }
    for (size_t d = 1; d < state->shape.size(); ++d) {
      DataType t = state->shape[d].dtype();
      spatial_axis_.push_back(
          IterVar(Range::FromMinExtent(MakeZero(t), state->shape[d]),
                  Var(std::string(name) + ".i" + std::to_string(spatial_axis_.size()), t),
                  IterVarType::kOpaque));
    }
  }
}
void ScanOpObj::VisitInputs(const std::function<void(const Tensor&)>& visit) const {
  for (const Array<Tensor>& tensors : {init, update, inputs}) {
    for (const Tensor& t : tensors) visit(t);
  }
}

void ExternOpObj::Init() {
  if (inputs.size() != input_placeholders.size()) {
    TVM_FFI_THROW(ValueError) << name << ": expected one buffer per input (" << inputs.size()
                              << "), got " << input_placeholders.size();
  }
  if (output_placeholders.empty()) {
    TVM_FFI_THROW(ValueError) << name << ": expected at least one output, got none";
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = inputs[i];
    const Buffer& buffer = input_placeholders[i];
    if (buffer->dtype != input->dtype) {
      TVM_FFI_THROW(TypeError) << name << ": expected a buffer of type " << input->dtype << " for "
                               << input->GetNameHint() << ", got " << buffer->dtype;
    }
    if (buffer->shape.size() != input->shape.size()) {
      TVM_FFI_THROW(ValueError) << name << ": expected a buffer with " << input->shape.size()
                                << " dimensions for " << input->GetNameHint() << ", got "
                                << buffer->shape.size();
    }
  }
}
void ExternOpObj::VisitInputs(const std::function<void(const Tensor&)>& visit) const {
  for (const Tensor& t : inputs) visit(t);
}

// ---- building ---------------------------------------------------------------------------------
Tensor placeholder(Array<PrimExpr> shape, DataType dtype, String name) {
  return New<PlaceholderOp>([&](PlaceholderOpObj* n) {
           n->name = std::move(name);
           n->shape = std::move(shape);
           n->dtype = dtype;
         })
      .output(0);
}

Array<Tensor> compute_tuple(Array<PrimExpr> shape, const ElementsFn& elements, String name,
                            String tag, Map<String, Any> attrs, const Array<String>& axis_names) {
  CheckShape(shape, name);
  Array<IterVar> axis;
  Array<Var> vars;
  for (size_t i = 0; i < shape.size(); ++i) {
    DataType t = shape[i].dtype();
    Var var(i < axis_names.size() ? axis_names[i] : String("i" + std::to_string(i)), t);
    axis.push_back(
        IterVar(Range::FromMinExtent(MakeZero(t), shape[i]), var, IterVarType::kDataPar));
    vars.push_back(var);
  }
  return Outputs(
      ComputeOp(std::move(name), std::move(tag), std::move(attrs), axis, elements(vars)));
}
Tensor compute(Array<PrimExpr> shape, const ElementFn& element, String name, String tag,
               Map<String, Any> attrs, const Array<String>& axis_names) {
  return compute_tuple(
      std::move(shape), [&](const Array<Var>& i) { return Array<PrimExpr>{element(i)}; },
      std::move(name), std::move(tag), std::move(attrs), axis_names)[0];
}

IterVar reduce_axis(Range dom, String name) {
  Var var(std::move(name), dom->extent.dtype());
  return IterVar(std::move(dom), std::move(var), IterVarType::kCommReduce);
}

namespace {
using BinaryFn = PrimExpr (*)(PrimExpr, PrimExpr, Optional<Span>);
/// Bools have no sum and no order: `of_bools` is what stays a bool.
PrimExpr ReduceWith(BinaryFn combine, BinaryFn of_bools, PrimExpr identity, PrimExpr source,
                    Array<IterVar> axis, Array<PrimExpr> init) {
  if (source.dtype().is_bool()) combine = of_bools;
  Var x("x", source.dtype()), y("y", source.dtype());
  CommReducer combiner({x}, {y}, {combine(x, y, {})}, {std::move(identity)});
  return Reduce(combiner, {source}, std::move(axis), const_true(), 0, std::move(init));
}
}  // namespace
PrimExpr sum(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init) {
  return ReduceWith(&add, &logical_or, MakeZero(source.dtype()), source, axis, init);
}
PrimExpr prod(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init) {
  return ReduceWith(&mul, &logical_and, MakeConst(source.dtype(), 1), source, axis, init);
}
PrimExpr min(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init) {
  return ReduceWith(&tvm::min, &logical_and, max_value(source.dtype()), source, axis, init);
}
PrimExpr max(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init) {
  return ReduceWith(&tvm::max, &logical_or, min_value(source.dtype()), source, axis, init);
}

Array<Tensor> scan(Array<Tensor> init, Array<Tensor> update, Array<Tensor> state_placeholder,
                   Array<Tensor> inputs, String name, String tag, Map<String, Any> attrs) {
  if (init.empty() || state_placeholder.empty()) {
    TVM_FFI_THROW(ValueError) << name << ": expected at least one state, got none";
  }
  PrimExpr begin = init[0]->shape[0], end = state_placeholder[0]->shape[0];
  MatchTypes(&begin, &end, "scan");
  return Outputs(New<ScanOp>([&](ScanOpObj* n) {
    n->name = name;
    n->tag = std::move(tag);
    n->attrs = std::move(attrs);
    n->scan_axis = IterVar(Range::FromMinExtent(begin, end - begin),
                           Var(std::string(name) + ".idx", end.dtype()), IterVarType::kOrdered);
    n->init = std::move(init);
    n->update = std::move(update);
    n->inputs = std::move(inputs);
    n->state_placeholder = std::move(state_placeholder);
  }));
}

namespace {
TVM_REGISTER() {
  RegisterBase<OperationObj>("What produces one or more tensors.");
  RegisterNode<TensorObj>("One output of an operation.");
  ffi::reflection::TypeAttrDef<TensorObj>().def(
      "__ffi_repr__", Function::FromTyped([](const TensorObj* t, const Function& repr) {
        std::string shape(repr(t->shape).cast<String>());
        return "Tensor(shape=" + shape + ", op.name=" + std::string(t->op->name) + ")";
      }));
  RegisterNode<PlaceholderOpObj>("An input: its elements come from the caller.");
  RegisterBase<BaseComputeOpObj>("Element by element over `axis`, reducing over `reduce_axis`.");
  RegisterNode<ComputeOpObj>("Each element is given by an expression: one per output.");
  RegisterNode<ScanOpObj>("A recurrence along the first axis.");
  RegisterNode<ExternOpObj>("A statement that fills the outputs.");
  Def(
      "te.Operation.output", [](Operation op, int64_t i) { return op.output(i); },
      "Output number `index`.", Arg("self"), Arg("index"));
  // What Python's classes and functions call.
  Def("te._op.num_outputs", [](Operation op) { return op->NumOutputs(); }, "", Arg("op"));
  Def("te._op.input_tensors", &InputTensors, "", Arg("op"));
  Def(
      "te._op.load", [](Tensor t, Array<PrimExpr> indices) { return t(indices); }, "",
      Arg("tensor"), Arg("indices"));
  Def("te._op.name", [](Tensor t) { return t->GetNameHint(); }, "", Arg("tensor"));
  Def("te._op.same", [](Tensor a, Tensor b) { return a == b; }, "", Arg("a"), Arg("b"));
  Def("te._op.placeholder", &placeholder, "", Arg("shape"), Arg("dtype"), Arg("name"));
  Def("te._op.outputs", &Outputs, "", Arg("op"));
  Def("te._op.scan", &scan, "", Arg("init"), Arg("update"), Arg("state_placeholder"), Arg("inputs"),
      Arg("name"), Arg("tag"), Arg("attrs"));
  Def("te._op.is_per_element", &IsPerElement, "", Arg("e"), Arg("axis"));
  Def("te._op.free_vars", &FreeVars, "", Arg("body"), Arg("axis"));
}
}  // namespace
}  // namespace tvm::te
