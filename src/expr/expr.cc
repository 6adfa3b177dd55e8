// SPDX-License-Identifier: Apache-2.0
// Expression nodes: constructors and invariants.
#include "tvm/expr/expr.h"

#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {
/// Lanes of a Ramp or Broadcast as DataType stores them: n, or -n for vscale() * n. Brings them
/// into that form.
int LanesOf(PrimExpr& lanes, const char* node) {
  if (auto n = AsConstInt(lanes)) {
    if (*n < 1 || *n > 32767)
      TVM_FFI_THROW(ValueError) << node << ": expected between 1 and 32767 lanes, got " << *n;
    if (lanes.dtype() != DataType::Int(32)) lanes = IntImm::Int32(*n);
    return static_cast<int>(*n);
  }
  if (auto* mul = lanes.as<MulObj>()) {
    auto is_vscale = [](const PrimExpr& e) {
      auto* call = e.as<CallObj>();
      return call && call->Is(builtin::vscale());
    };
    auto factor = is_vscale(mul->a)   ? AsConstInt(mul->b)
                  : is_vscale(mul->b) ? AsConstInt(mul->a)
                                      : std::nullopt;
    if (factor && *factor > 1 && *factor <= 32767) {
      if (!is_vscale(mul->a)) lanes = Mul(mul->b, mul->a);
      return -static_cast<int>(*factor);
    }
  }
  TVM_FFI_THROW(TVMError) << node << ": expected a constant or vscale() * constant as lanes";
  TVM_FFI_UNREACHABLE();
}
void CheckScalar(const PrimExpr& e, const char* what) {
  if (!e.dtype().is_scalar())
    TVM_FFI_THROW(TypeError) << what << ": expected a scalar, got " << e.dtype();
}
void CheckBool(const PrimExpr& e, const char* what) {
  if (!e.dtype().is_bool())
    TVM_FFI_THROW(TypeError) << what << ": expected a bool condition, got " << e.dtype();
}
}  // namespace

StringImm::StringImm(String value, Optional<Span> span) {
  *this = New<StringImm>([&](StringImmObj* n) { n->value = value, n->span = span; });
}

Cast::Cast(DataType dtype, PrimExpr value, Optional<Span> span) {
  *this = New<Cast>([&](CastObj* n) { n->dtype = dtype, n->value = value, n->span = span; });
}
void CastObj::Init() {
  if (dtype.raw_lanes() != value.dtype().raw_lanes()) {
    TVM_FFI_THROW(TypeError) << "Cast: expected a type with the lanes of " << value.dtype()
                             << ", got " << dtype;
  }
}

void CheckBinaryOperands(const BinaryOpFields* n, const char* name, bool logical) {
  DataType a = n->a.dtype(), b = n->b.dtype();
  if (a != b)
    TVM_FFI_THROW(TypeError) << name << ": expected operands of one type, got " << a << " and "
                             << b;
  if (logical && !a.is_bool())
    TVM_FFI_THROW(TypeError) << name << ": expected bool operands, got " << a;
}

Not::Not(PrimExpr a, Optional<Span> span) {
  *this = New<Not>([&](NotObj* n) { n->a = a, n->span = span; });
}
void NotObj::Init() {
  if (!a.dtype().is_bool()) TVM_FFI_THROW(TypeError) << "Not: expected a bool, got " << a.dtype();
  dtype = a.dtype();
}

Select::Select(PrimExpr condition, PrimExpr true_value, PrimExpr false_value, Optional<Span> span) {
  *this = New<Select>([&](SelectObj* n) {
    n->condition = condition;
    n->true_value = true_value;
    n->false_value = false_value;
    n->span = span;
  });
}
void SelectObj::Init() {
  CheckBool(condition, "Select");
  if (true_value.dtype() != false_value.dtype()) {
    TVM_FFI_THROW(TypeError) << "Select: expected values of one type, got " << true_value.dtype()
                             << " and " << false_value.dtype();
  }
  dtype = true_value.dtype();
  if (!condition.dtype().is_scalar() && condition.dtype().raw_lanes() != dtype.raw_lanes()) {
    TVM_FFI_THROW(TypeError) << "Select: expected a condition with the lanes of " << dtype
                             << ", got " << condition.dtype();
  }
}

BufferLoad::BufferLoad(Buffer buffer, Array<PrimExpr> indices, Optional<PrimExpr> predicate,
                       Optional<Span> span) {
  *this = New<BufferLoad>([&](BufferLoadObj* n) {
    n->buffer = buffer;
    n->indices = indices;
    n->predicate = predicate;
    n->span = span;
  });
}
DataType AccessType(const Buffer& buffer, const Array<PrimExpr>& indices, const char* node) {
  if (indices.size() != buffer->shape.size()) {
    TVM_FFI_THROW(ValueError) << node << ": expected " << buffer->shape.size()
                              << " indices for buffer " << buffer->name << ", got "
                              << indices.size();
  }
  int lanes = 1;
  for (size_t i = 0; i < indices.size(); ++i) {
    DataType t = indices[i].dtype();
    if (!t.is_integer() && !t.is_bool()) {
      TVM_FFI_THROW(TypeError) << node << ": expected integers as indices of buffer "
                               << buffer->name << ", got " << t;
    }
    if (t.is_scalar()) continue;
    if (i + 1 < indices.size()) {
      TVM_FFI_THROW(TypeError) << node << ": expected a vector only as the last index of buffer "
                               << buffer->name;
    }
    lanes = t.raw_lanes();
  }
  DataType element = buffer->dtype;
  if (lanes == 1) return element;
  return element.with_lanes(element.raw_lanes() * lanes);
}
void BufferLoadObj::Init() {
  dtype = AccessType(buffer, indices, "BufferLoad");
  DataType mask = predicate.has_value() ? predicate.value().dtype() : dtype;
  bool is_mask = mask.is_bool() || mask.bits() == 1;  // uint1 is the older name of bool
  if (predicate.has_value() && !(is_mask && mask.raw_lanes() == dtype.raw_lanes())) {
    TVM_FFI_THROW(TypeError) << "BufferLoad: expected a bool predicate with the lanes of " << dtype
                             << ", got " << mask;
  }
}

ProducerLoad::ProducerLoad(DataProducer producer, Array<PrimExpr> indices, Optional<Span> span) {
  *this = New<ProducerLoad>(
      [&](ProducerLoadObj* n) { n->producer = producer, n->indices = indices, n->span = span; });
}

Ramp::Ramp(PrimExpr base, PrimExpr stride, PrimExpr lanes, Optional<Span> span) {
  *this = New<Ramp>(
      [&](RampObj* n) { n->base = base, n->stride = stride, n->lanes = lanes, n->span = span; });
}
void RampObj::Init() {
  CheckScalar(base, "Ramp");
  CheckScalar(stride, "Ramp");
  if (stride.dtype() != base.dtype()) stride = cast(base.dtype(), stride);
  dtype = base.dtype().with_lanes(LanesOf(lanes, "Ramp"));
}
Broadcast::Broadcast(PrimExpr value, PrimExpr lanes, Optional<Span> span) {
  *this =
      New<Broadcast>([&](BroadcastObj* n) { n->value = value, n->lanes = lanes, n->span = span; });
}
void BroadcastObj::Init() {
  CheckScalar(value, "Broadcast");
  dtype = value.dtype().with_lanes(LanesOf(lanes, "Broadcast"));
}

Shuffle::Shuffle(Array<PrimExpr> vectors, Array<PrimExpr> indices, Optional<Span> span) {
  *this = New<Shuffle>(
      [&](ShuffleObj* n) { n->vectors = vectors, n->indices = indices, n->span = span; });
}
void ShuffleObj::Init() {
  if (vectors.empty() || indices.empty())
    TVM_FFI_THROW(ValueError) << "Shuffle: expected at least one vector and one index";
  int64_t total = 0;
  for (const PrimExpr& v : vectors) {
    if (v.dtype().element() != vectors[0].dtype().element() || v.dtype().is_scalable())
      TVM_FFI_THROW(TypeError) << "Shuffle: expected fixed-length vectors of "
                               << vectors[0].dtype().element() << ", got " << v.dtype();
    total += v.dtype().lanes();
  }
  for (const PrimExpr& index : indices) {
    auto value = AsConstInt(index);
    if (value && (*value < 0 || *value >= total))
      TVM_FFI_THROW(IndexError) << "Shuffle: expected indices below " << total << ", got "
                                << *value;
  }
  dtype = vectors[0].dtype().with_lanes(static_cast<int>(indices.size()));
}
PrimExpr Shuffle::Concat(Array<PrimExpr> vectors, Optional<Span> span) {
  if (vectors.size() == 1) return vectors[0];
  Array<PrimExpr> indices;
  int n = 0;
  for (const PrimExpr& v : vectors) {
    for (int i = 0; i < v.dtype().lanes(); ++i) indices.push_back(IntImm::Int32(n++));
  }
  return Shuffle(vectors, indices, span);
}
PrimExpr Shuffle::Extract(PrimExpr vector, int64_t index, Optional<Span> span) {
  return Shuffle({vector}, {IntImm::Int32(index)}, span);
}

Call::Call(DataType dtype, RelaxExpr op, Array<PrimExpr> args, Optional<Span> span) {
  *this =
      New<Call>([&](CallObj* n) { n->dtype = dtype, n->op = op, n->args = args, n->span = span; });
}
void CallObj::Init() {
  if (!op.as<OpObj>() && !op.as<GlobalVarObj>()) {
    TVM_FFI_THROW(TypeError) << "Call: expected an operator or a function of the module, got "
                             << op->GetTypeKey();
  }
}

Let::Let(Var var, PrimExpr value, PrimExpr body, Optional<Span> span) {
  *this =
      New<Let>([&](LetObj* n) { n->var = var, n->value = value, n->body = body, n->span = span; });
}
void LetObj::Init() {
  if (var.dtype() != value.dtype()) {
    TVM_FFI_THROW(TypeError) << "Let: expected a value of type " << var.dtype() << " for "
                             << var->name_hint << ", got " << value.dtype();
  }
  dtype = body.dtype();
}

CommReducer::CommReducer(Array<Var> lhs, Array<Var> rhs, Array<PrimExpr> result,
                         Array<PrimExpr> identity_element, Optional<Span> span) {
  *this = New<CommReducer>([&](CommReducerObj* n) {
    n->lhs = lhs;
    n->rhs = rhs;
    n->result = result;
    n->identity_element = identity_element;
    n->span = span;
  });
}
void CommReducerObj::Init() {
  size_t n = result.size();
  if (n == 0 || lhs.size() != n || rhs.size() != n || identity_element.size() != n) {
    TVM_FFI_THROW(ValueError)
        << "CommReducer: expected as many variables and identities as results (" << n << "), got "
        << lhs.size() << ", " << rhs.size() << " and " << identity_element.size();
  }
  for (size_t i = 0; i < n; ++i) {
    if (identity_element[i].dtype() != result[i].dtype())
      TVM_FFI_THROW(TypeError) << "CommReducer: expected an identity of type " << result[i].dtype()
                               << ", got " << identity_element[i].dtype();
  }
}
Array<PrimExpr> CommReducerObj::Combine(const Array<PrimExpr>& a, const Array<PrimExpr>& b) const {
  Map<Var, PrimExpr> map;
  for (size_t i = 0; i < lhs.size(); ++i) {
    map.Set(lhs[i], a[i]);
    map.Set(rhs[i], b[i]);
  }
  return result.Map([&](const PrimExpr& e) { return Substitute(e, map); });
}

Reduce::Reduce(CommReducer combiner, Array<PrimExpr> source, Array<IterVar> axis,
               PrimExpr condition, int64_t value_index, Array<PrimExpr> init, Optional<Span> span) {
  *this = New<Reduce>([&](ReduceObj* n) {
    n->combiner = combiner;
    n->source = source;
    n->axis = axis;
    n->condition = condition;
    n->value_index = value_index;
    n->init = init;
    n->span = span;
  });
}
void ReduceObj::Init() {
  for (const IterVar& iv : axis) {
    if (iv->iter_type != IterVarType::kCommReduce)
      TVM_FFI_THROW(ValueError) << "Reduce: expected axes made by te.reduce_axis, got "
                                << iv->var->name_hint;
  }
  CheckBool(condition, "Reduce");
  if (value_index < 0 || value_index >= static_cast<int64_t>(source.size()))
    TVM_FFI_THROW(IndexError) << "Reduce: expected a value index below " << source.size()
                              << ", got " << value_index;
  if (source.size() != combiner->result.size())
    TVM_FFI_THROW(ValueError) << "Reduce: expected " << combiner->result.size()
                              << " source values for the combiner, got " << source.size();
  if (!init.empty() && init.size() != source.size())
    TVM_FFI_THROW(ValueError) << "Reduce: expected " << source.size() << " initial values, got "
                              << init.size();
  dtype = source[value_index].dtype();
}

namespace {
TVM_REGISTER() {
  RegisterNode<StringImmObj>("A text.");
  RegisterNode<CastObj>("A value in another type.");
#define ROW(Name, ...) RegisterNode<Name##Obj>()
  TVM_BINARY_NODES(ROW);
#undef ROW
  RegisterNode<NotObj>("not a");
  RegisterNode<SelectObj>("condition ? true_value : false_value; both may be evaluated.");
  RegisterNode<BufferLoadObj>("buffer[indices]");
  RegisterNode<ProducerLoadObj>("An element of a tensor.");
  RegisterNode<RampObj>("The vector [base, base + stride, ...].");
  RegisterNode<BroadcastObj>("The vector [value, value, ...].");
  RegisterNode<ShuffleObj>("Elements chosen from the concatenation of vectors.");
  RegisterNode<CallObj>("A call of an operator or of a function of the module.");
  RegisterNode<LetObj>("body with var standing for value.");
  RegisterNode<CommReducerObj>("A commutative, associative combination with an identity.");
  RegisterNode<ReduceObj>("A reduction over axes.");
  SetExprConversion(kTVMFFIStr,
                    [](const AnyView& v) -> PrimExpr { return StringImm(v.cast<String>()); });
}
}  // namespace
}  // namespace tvm::tir
