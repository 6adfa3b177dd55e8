// SPDX-License-Identifier: Apache-2.0
// Makes every buffer access one-dimensional (one index per physical axis).
#include "../analyzed_mutator.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
PrimExpr CastIndex(DataType t, const PrimExpr& e) {
  if (auto* ramp = e.as<RampObj>()) {
    return Ramp(cast(t, ramp->base), cast(t, ramp->stride), ramp->lanes, ramp->span);
  }
  return cast(t.with_lanes(e.dtype().raw_lanes()), e);
}

struct Flattener : AnalyzedStmtMutator<Flattener, BufferObj, BufferLoadObj, BufferStoreObj,
                                       AllocateObj, AllocateConstObj, BlockObj> {
  using Base::Rewrite;
  std::unordered_map<const BufferObj*, Buffer> wide;  // with the type that flat indices need

  /// The buffer with 64-bit extents where 32 bits may not be enough for its flat index.
  const Buffer& Wide(const Buffer& buffer) {
    Buffer& result = wide[buffer.get()];
    if (result.defined()) return result;
    result = buffer;
    if (buffer->IndexType().bits() >= 64 || buffer->shape.size() < 2) return result;
    // The extents themselves where they are compact: their product in 32 bits could overflow.
    Array<PrimExpr> extents = buffer->strides.empty() ? buffer->shape : buffer.Flattened()->shape;
    PrimExpr size = IntImm::Int64(1);
    for (const PrimExpr& e : extents) size = size * cast(DataType::Int(64), e);
    if (analyzer.CanProveLess(size, int64_t{1} << 31)) return result;
    auto widen = [](const PrimExpr& e) { return cast(DataType::Int(64), e); };
    auto* n = Edit(&result);
    n->shape = n->shape.Map(widen), n->strides = n->strides.Map(widen),
    n->elem_offset = widen(n->elem_offset);
    return result;
  }
  ObjectRef Rewrite(const BufferObj* op) {
    Buffer buffer = ffi::GetRef<Buffer>(op);
    Buffer flat = Wide(buffer).Flattened();
    if (flat.same_as(buffer) && IsZero(flat->elem_offset)) return buffer;
    auto* n = Edit(&flat);
    // Indices count from where the pointer leads: elements before the offset belong to the buffer.
    n->shape.Set(0, n->shape[0] + cast(n->shape[0].dtype(), n->elem_offset));
    n->shape = n->shape.Map([&](const PrimExpr& e) { return analyzer.Simplify(e); });
    n->elem_offset = MakeZero(flat->shape[0].dtype());
    return flat;
  }
  Array<PrimExpr> FlatIndices(const Buffer& buffer, const Array<PrimExpr>& indices) {
    Array<PrimExpr> mutated = indices.Map([&](const PrimExpr& e) { return Mutate(e); });
    const Buffer& source = Wide(buffer);
    bool has_offset = !IsZero(source->elem_offset);
    if (Mutate(buffer).same_as(buffer) && !has_offset) return mutated;
    if (!source.same_as(buffer)) {
      mutated = mutated.Map([](const PrimExpr& e) { return CastIndex(DataType::Int(64), e); });
    }
    Array<PrimExpr> flat = source->FlatIndices(mutated);
    if (has_offset) flat.Set(0, flat[0] + source->elem_offset);
    return flat.Map([&](const PrimExpr& e) { return analyzer.Simplify(e); });
  }
  /// From the first element of a region to its last one.
  BufferRegion FlatRegion(const BufferRegion& region) {
    Buffer buffer = Mutate(region->buffer);
    if (buffer.same_as(region->buffer)) return Mutate(region);
    Array<PrimExpr> first, last;
    for (const Range& range : region->region) {
      first.push_back(range->min);
      last.push_back(range->min + range->extent - 1);
    }
    first = FlatIndices(region->buffer, first);
    last = FlatIndices(region->buffer, last);
    Array<Range> ranges;
    for (size_t i = 0; i < first.size(); ++i) {
      ranges.push_back(Range::FromMinExtent(first[i], analyzer.Simplify(last[i] - first[i] + 1)));
    }
    return BufferRegion(buffer, ranges);
  }
  ObjectRef Rewrite(const BlockObj* op) {
    if (!op->match_buffers.empty()) {
      TVM_FFI_THROW(ValueError) << "FlattenBuffer: expected blocks without match_buffer, got block "
                                << op->name_hint << ": run LowerMatchBuffer first";
    }
    auto regions = [&](const Array<BufferRegion>& old) {
      return old.Map([&](const BufferRegion& r) { return FlatRegion(r); });
    };
    Array<BufferRegion> reads = regions(op->reads), writes = regions(op->writes);
    Block block = ffi::GetRef<Block>(op);
    auto* n = Edit(&block);
    n->reads = reads;
    n->writes = writes;
    n->alloc_buffers = n->alloc_buffers.Map([&](const Buffer& b) { return Mutate(b); });
    n->body = Mutate(op->body);
    if (op->init.has_value()) n->init = Mutate(op->init.value());
    return block;
  }
  Optional<PrimExpr> Predicate(const Optional<PrimExpr>& predicate) {
    return predicate.has_value() ? Optional<PrimExpr>(Mutate(predicate.value())) : predicate;
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    Array<PrimExpr> indices = FlatIndices(op->buffer, op->indices);
    Buffer buffer = Mutate(op->buffer);
    Optional<PrimExpr> predicate = Predicate(op->predicate);
    if (indices.same_as(op->indices) && buffer.same_as(op->buffer) &&
        predicate.same_as(op->predicate)) {
      return ffi::GetRef<ObjectRef>(op);
    }
    return BufferLoad(buffer, indices, predicate, op->span);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    Array<PrimExpr> indices = FlatIndices(op->buffer, op->indices);
    PrimExpr value = Mutate(op->value);
    Buffer buffer = Mutate(op->buffer);
    Optional<PrimExpr> predicate = Predicate(op->predicate);
    if (indices.same_as(op->indices) && buffer.same_as(op->buffer) && value.same_as(op->value) &&
        predicate.same_as(op->predicate)) {
      return ffi::GetRef<ObjectRef>(op);
    }
    return BufferStore(buffer, value, indices, predicate, op->span);
  }
  Array<PrimExpr> FlatExtents(const Var& data, const Array<PrimExpr>& extents, const Stmt& body) {
    if (auto* decl = body.as<DeclBufferObj>();
        decl && decl->buffer->data.same_as(data) && !decl->buffer->axis_separators.empty()) {
      return Mutate(decl->buffer)->shape;
    }
    if (extents.size() == 1) return extents;
    PrimExpr size = IntImm::Int64(1);
    bool is_wide = false;
    for (const PrimExpr& e : extents) {
      size = size * cast(DataType::Int(64), e);
      is_wide |= e.dtype().bits() > 32;
    }
    bool fits = !is_wide && analyzer.CanProveLess(size, int64_t{1} << 31);
    size = analyzer.Simplify(size);
    if (!fits) return {size};
    PrimExpr narrow = IntImm::Int32(1);
    for (const PrimExpr& e : extents) narrow = narrow * e;
    return {analyzer.Simplify(narrow)};
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    Array<PrimExpr> extents = FlatExtents(op->buffer_var, op->extents, op->body);
    Allocate allocate = Below<Allocate>(op);
    if (!extents.same_as(op->extents)) Edit(&allocate)->extents = extents;
    return allocate;
  }
  ObjectRef Rewrite(const AllocateConstObj* op) {
    Array<PrimExpr> extents = FlatExtents(op->buffer_var, op->extents, op->body);
    AllocateConst allocate = Below<AllocateConst>(op);
    if (!extents.same_as(op->extents)) Edit(&allocate)->extents = extents;
    return allocate;
  }
};
}  // namespace

PrimFunc FlattenBuffer(PrimFunc func) {
  Flattener flatten;
  flatten.LearnParams(func);
  // Before the body: what holds in a branch of it must not shape a buffer of all of it.
  for (const auto& [param, buffer] : func->buffer_map) flatten.Mutate(buffer);
  Stmt body = flatten.Mutate(func->body);
  for (size_t i = func->params.size(); i > 0; --i) {
    Buffer buffer = func.BufferOf(func->params[i - 1]);
    if (!buffer.defined()) continue;
    Buffer flat = flatten.Mutate(buffer);
    if (!flat.same_as(buffer)) body = DeclBuffer(flat, body);
  }
  return WithBody(std::move(func), body);
}
TVM_PASS(tir, FlattenBuffer,
         R"(Gives every access one index; parameters get one-dimensional views.

before(A: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        A[i, j] = 1.0
after:
    A_1 = T.decl_buffer((32,), "float32", data=A.data)
    for i, j in T.grid(4, 8):
        A_1[i * 8 + j] = T.float32(1)

Indices are 64 bits wide where 32 may not be enough.)")
}  // namespace tvm::tir
