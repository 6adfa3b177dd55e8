// SPDX-License-Identifier: Apache-2.0
// Variables, iterators and buffers.
#include "tvm/expr/var.h"

#include "tvm/expr/buffer.h"
#include "tvm/expr/op.h"

namespace tvm::tir {

Var::Var(String name_hint, DataType dtype, Optional<Span> span)
    : Var(std::move(name_hint), PrimType(dtype), std::move(span)) {}
Var::Var(String name_hint, Type type_annotation, Optional<Span> span) {
  *this = New<Var>([&](VarObj* n) {
    n->name_hint = std::move(name_hint);
    n->type_annotation = std::move(type_annotation);
    n->span = std::move(span);
  });
}
void VarObj::Init() {
  dtype = DataTypeOf(type_annotation);
  bool plain_float = dtype.code() == kDLFloat;
  bool whole = dtype.is_int() || dtype.is_uint();
  bool brain_float = dtype.code() == kDLBfloat;
  bool exists = plain_float   ? dtype.bits() == 16 || dtype.bits() == 32 || dtype.bits() == 64
                : brain_float ? dtype.bits() == 16
                              : !whole || (dtype.bits() >= 1 && dtype.bits() <= 64);
  if (!exists) {
    TVM_FFI_THROW(TypeError) << "Var: expected a type with values for " << name_hint << ", got "
                             << dtype;
  }
}
Var Var::CopyWithSuffix(const String& suffix) const {
  Var copy = Any(CopyNode(get())).cast<Var>();
  const_cast<VarObj*>(copy.get())->name_hint = std::string(get()->name_hint) + std::string(suffix);
  return copy;
}
Var Var::CopyWithDType(DataType dtype) const {
  Var copy = Any(CopyNode(get())).cast<Var>();
  auto* n = const_cast<VarObj*>(copy.get());
  n->type_annotation = PrimType(dtype);
  n->dtype = dtype;
  return copy;
}
SizeVar::SizeVar(String name_hint, DataType dtype, Optional<Span> span) {
  *this = New<SizeVar>([&](SizeVarObj* n) {
    n->name_hint = std::move(name_hint);
    n->type_annotation = PrimType(dtype);
    n->span = std::move(span);
  });
}

IterVar::IterVar(Optional<Range> dom, Var var, IterVarType iter_type, String thread_tag,
                 Optional<Span> span) {
  *this = New<IterVar>([&](IterVarObj* n) {
    n->dom = std::move(dom);
    n->var = std::move(var);
    n->iter_type = iter_type;
    n->thread_tag = std::move(thread_tag);
    n->span = std::move(span);
  });
}
void IterVarObj::Init() {
  if (iter_type < IterVarType::kDataPar || iter_type > IterVarType::kTensorized) {
    TVM_FFI_THROW(ValueError) << "IterVar: expected an iter_type from "
                              << static_cast<int>(IterVarType::kDataPar) << " to "
                              << static_cast<int>(IterVarType::kTensorized) << ", got "
                              << static_cast<int>(iter_type);
  }
  if (dom.has_value() && dom.value()->extent.dtype() != var.dtype()) {
    // A constant range takes the type of the variable; anything else is the user's mistake.
    Range range = dom.value();
    if (!AsConstInt(range->extent)) {
      TVM_FFI_THROW(TypeError) << "IterVar: expected the variable " << var->name_hint << " of type "
                               << range->extent.dtype() << " as its range has, got " << var.dtype();
    }
    dom = Range::FromMinExtent(cast(var.dtype(), range->min), cast(var.dtype(), range->extent));
  }
}

// ---- buffers ----------------------------------------------------------------------------------
Buffer::Buffer(Var data, DataType dtype, Array<PrimExpr> shape, Array<PrimExpr> strides,
               PrimExpr elem_offset, String name, int64_t data_alignment, int64_t offset_factor,
               BufferType buffer_type, Array<IntImm> axis_separators, Optional<Span> span) {
  *this = New<Buffer>([&](BufferObj* n) {
    n->data = std::move(data);
    n->dtype = dtype;
    n->shape = std::move(shape);
    n->strides = std::move(strides);
    n->elem_offset = std::move(elem_offset);
    n->name = std::move(name);
    n->data_alignment = data_alignment;
    n->offset_factor = offset_factor;
    n->buffer_type = buffer_type;
    n->axis_separators = std::move(axis_separators);
    n->span = std::move(span);
  });
}
Buffer Buffer::Decl(Array<PrimExpr> shape, DataType dtype, String name, String scope,
                    Optional<Span> span) {
  // A bool is stored in a byte of its own.
  Var data(name, PointerType(PrimType(dtype), scope), span);
  return Buffer(data, dtype, std::move(shape), {}, PrimExpr(), name, 0, 0, BufferType::kDefault, {},
                span);
}
void BufferObj::Init() {
  if (!data->type_annotation.as<PointerTypeObj>()) {
    TVM_FFI_THROW(TypeError) << "Buffer: expected the data variable of " << name
                             << " to be a pointer, got " << data.dtype();
  }
  if (dtype.is_void() || (dtype.is_scalable())) {
    TVM_FFI_THROW(TypeError) << "Buffer: expected a type with a fixed size for " << name << ", got "
                             << dtype;
  }
  for (const PrimExpr& extent : shape) {
    if (!extent.dtype().is_integer() || !extent.dtype().is_scalar()) {
      TVM_FFI_THROW(TypeError) << "Buffer: expected integers as the shape of " << name << ", got "
                               << extent.dtype();
    }
    if (auto value = AsConstInt(extent); value && *value < 0) {
      TVM_FFI_THROW(ValueError) << "Buffer: expected a shape of " << name
                                << " that is not negative, got " << *value;
    }
  }
  if (!strides.empty() && strides.size() != shape.size()) {
    TVM_FFI_THROW(ValueError) << "Buffer: expected " << shape.size() << " strides for " << name
                              << ", got " << strides.size();
  }
  int64_t previous = 0;
  for (const IntImm& separator : axis_separators) {
    if (separator->value < previous || separator->value > static_cast<int64_t>(shape.size())) {
      TVM_FFI_THROW(ValueError) << "Buffer: expected increasing axis separators between 0 and "
                                << shape.size() << ", got " << separator->value;
    }
    previous = separator->value;
  }
  if (!elem_offset.defined()) elem_offset = MakeConst(IndexType(), 0);
  if (data_alignment <= 0) data_alignment = 64;
  if (offset_factor == 0) offset_factor = 1;
}
DataType BufferObj::IndexType() const {
  if (!shape.empty()) {
    int bits = 32;
    for (const PrimExpr& e : shape) bits = std::max(bits, e.dtype().bits());
    return DataType::Int(bits);
  }
  return DataType::Int(32);
}
String Buffer::scope() const {
  return get()->data->type_annotation.as<PointerTypeObj>()->storage_scope;
}
Array<PrimExpr> Buffer::ExplicitStrides() const {
  if (!get()->strides.empty()) return get()->strides;
  Array<PrimExpr> strides;
  PrimExpr stride = MakeConst(get()->IndexType(), 1);
  for (size_t i = get()->shape.size(); i > 0; --i) {
    strides.insert(strides.begin(), stride);
    stride = stride * get()->shape[i - 1];
  }
  return strides;
}
Array<PrimExpr> BufferObj::FlatIndices(const Array<PrimExpr>& indices) const {
  if (indices.size() != shape.size()) {
    TVM_FFI_THROW(ValueError) << "Buffer: expected " << shape.size() << " indices for " << name
                              << ", got " << indices.size();
  }
  Array<PrimExpr> flat;
  size_t separator = 0;
  PrimExpr index = MakeConst(IndexType(), 0);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (separator < axis_separators.size() &&
        static_cast<size_t>(axis_separators[separator]->value) == i) {
      flat.push_back(index);
      index = MakeConst(IndexType(), 0);
      ++separator;
    }
    index = strides.empty() ? index * shape[i] + indices[i] : index + indices[i] * strides[i];
  }
  flat.push_back(index);
  return flat;
}
Buffer Buffer::Flattened() const {
  const BufferObj* self = get();
  Array<PrimExpr> shape;
  PrimExpr extent = MakeConst(self->IndexType(), 1);
  size_t separator = 0;
  Array<IntImm> separators;
  if (self->strides.empty() || self->shape.empty()) {
    for (size_t i = 0; i < self->shape.size(); ++i) {
      if (separator < self->axis_separators.size() &&
          static_cast<size_t>(self->axis_separators[separator]->value) == i) {
        shape.push_back(extent);
        separators.push_back(IntImm::Int32(static_cast<int64_t>(shape.size())));
        extent = MakeConst(self->IndexType(), 1);
        ++separator;
      }
      extent = extent * self->shape[i];
    }
  } else {
    // The memory a strided view spans: 1 + sum((extent - 1) * stride).
    for (size_t i = 0; i < self->shape.size(); ++i) {
      extent = extent + (self->shape[i] - 1) * self->strides[i];
    }
  }
  shape.push_back(extent);
  if (shape.size() == 1 && self->shape.size() == 1 && self->strides.empty()) return *this;
  Buffer flat = *this;
  auto* n = Edit(&flat);
  n->shape = shape;
  n->strides = {};
  n->axis_separators = separators;
  return flat;
}

namespace {
TVM_REGISTER() {
  RegisterNode<VarObj>("A variable; two are the same only if they are one object or bound alike.");
  RegisterNode<SizeVarObj>("A variable that is not negative.");
  RegisterNode<IterVarObj>("A variable with the range it runs over and what the iteration means.");
  RegisterNode<BufferObj>("A multi-dimensional view of memory.");
  RegisterBase<DataProducerObj>("What a ProducerLoad reads from.");
  SetExprConversion(IterVarObj::RuntimeTypeIndex(),
                    [](const AnyView& v) -> PrimExpr { return v.cast<IterVar>()->var; });
  Def("tir.Buffer.scope", [](Buffer b) { return b.scope(); }, "The memory scope.", Arg("self"));
  Def(
      "tir.Buffer.get_flattened_buffer", [](Buffer b) { return b.Flattened(); },
      "The same memory with one dimension per physical axis.", Arg("self"));
  Def(
      "tir.Buffer.offset_of", [](Buffer b, Array<PrimExpr> i) { return b->FlatIndices(i); },
      "The flat element index of a multi-dimensional one.", Arg("self"), Arg("indices"));
}
}  // namespace
}  // namespace tvm::tir
