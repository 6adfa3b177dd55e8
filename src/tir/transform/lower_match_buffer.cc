// SPDX-License-Identifier: Apache-2.0
// Replaces views of buffer regions inside blocks by accesses of the buffers themselves.
#include "../analyzed_mutator.h"
#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
struct MatchBufferLowerer : AnalyzedStmtMutator<MatchBufferLowerer, BlockObj, BufferLoadObj,
                                                BufferStoreObj, BufferRegionObj, VarObj> {
  using Base::Rewrite;
  std::unordered_map<const BufferObj*, BufferRegion> views;
  std::unordered_map<const VarObj*, PrimExpr> values;

  ObjectRef Rewrite(const VarObj* op) {
    auto it = values.find(op);
    return it == values.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second);
  }
  ObjectRef Rewrite(const BlockObj* op) {
    if (op->match_buffers.empty()) return MapChildren(op, *this);
    for (const MatchBufferRegion& m : op->match_buffers) Enter(m);
    Block block = ffi::GetRef<Block>(op);
    Edit(&block)->match_buffers = {};
    return MapChildren(block.get(), *this);
  }
  /// `pattern` is a variable that gets `value`, or an expression that must be equal to it.
  void Match(const PrimExpr& pattern, const PrimExpr& value, const Buffer& buffer,
             const char* what) {
    if (auto* var = pattern.as<VarObj>(); var && !values.count(var)) {
      values[var] = cast(pattern.dtype(), value);
      return;
    }
    PrimExpr expected = Mutate(pattern);
    if (analyzer.CanProveEqual(expected, value)) return;
    TVM_FFI_THROW(ValueError)
        << "LowerMatchBuffer: expected the " << what << " of " << buffer->name
        << " to match its source, got an expression that cannot be proved equal";
  }
  void Enter(const MatchBufferRegion& m) {
    const Buffer& view = m->buffer;
    BufferRegion source = Mutate(m->source);
    const Buffer& buffer = source->buffer;
    Array<Range> region = source->region;
    // Leading dimensions of extent 1 may be left out of the view.
    size_t skipped = region.size() - view->shape.size();
    for (size_t i = 0; i < view->shape.size(); ++i) {
      Match(view->shape[i], region[skipped + i]->extent, view, "shape");
    }
    views[view.get()] = source;
    values[view->data.get()] = buffer->data;
    Array<PrimExpr> begin = region.Map([](const Range& r) { return r->min; });
    Array<PrimExpr> flat = buffer->FlatIndices(begin);
    if (flat.size() == 1) {
      PrimExpr offset = analyzer.Simplify(flat[0] + buffer->elem_offset);
      if (!view->elem_offset.as<IntImmObj>()) {
        Match(view->elem_offset, offset, view, "elem_offset");
        auto factor = MakeConst(offset.dtype(), view->offset_factor);
        if (view->offset_factor > 1 &&
            !analyzer.CanProve(equal(floormod(offset, factor), MakeZero(offset.dtype())))) {
          TVM_FFI_THROW(ValueError) << "LowerMatchBuffer: expected the offset of " << view->name
                                    << " to be a multiple of " << view->offset_factor;
        }
      }
    }
    if (!view->strides.empty()) {
      Array<PrimExpr> strides = buffer.ExplicitStrides();
      for (size_t i = 0; i < view->strides.size(); ++i) {
        Match(view->strides[i], strides[skipped + i], view, "strides");
      }
    }
  }
  Array<PrimExpr> Shift(const BufferRegion& source, const Array<PrimExpr>& indices) {
    Array<PrimExpr> result;
    size_t skipped = source->region.size() - indices.size();
    for (size_t i = 0; i < source->region.size(); ++i) {
      PrimExpr min = source->region[i]->min;
      result.push_back(
          i < skipped ? min
                      : min + cast(min.dtype().with_lanes(indices[i - skipped].dtype().raw_lanes()),
                                   indices[i - skipped]));
    }
    return result;
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    BufferLoad load = Any(MapAround(op)).cast<BufferLoad>();
    auto it = views.find(op->buffer.get());
    if (it == views.end()) return load;
    return BufferLoad(it->second->buffer, Shift(it->second, load->indices), load->predicate,
                      op->span);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    BufferStore store = Any(MapAround(op)).cast<BufferStore>();
    auto it = views.find(op->buffer.get());
    if (it == views.end()) return store;
    return BufferStore(it->second->buffer, store->value, Shift(it->second, store->indices),
                       store->predicate, op->span);
  }
  ObjectRef Rewrite(const BufferRegionObj* op) {
    auto it = views.find(op->buffer.get());
    if (it == views.end()) return MapChildren(op, *this);
    Array<PrimExpr> begin;
    for (const Range& r : op->region) begin.push_back(Mutate(r->min));
    begin = Shift(it->second, begin);
    size_t skipped = begin.size() - op->region.size();
    Array<Range> region;
    for (size_t i = 0; i < begin.size(); ++i) {
      region.push_back(
          Range::FromMinExtent(begin[i], i < skipped ? MakeConst(begin[i].dtype(), 1)
                                                     : Mutate(op->region[i - skipped]->extent)));
    }
    return BufferRegion(it->second->buffer, region);
  }

 private:
  /// A view has no node of its own in the result: only what is around it is rewritten.
  template <class T>
  ObjectRef MapAround(const T* op) {
    return MapChildren(op, [&](const ObjectRef& child) -> ObjectRef {
      bool is_view = child.get() == op->buffer.get() && views.count(op->buffer.get());
      return is_view ? child : (*this)(child);
    });
  }
};
}  // namespace

PrimFunc LowerMatchBuffer(PrimFunc func) {
  auto has_views = [](const BlockObj* op) { return !op->match_buffers.empty(); };
  if (!AnyStmt<BlockObj>(func->body, has_views)) return func;
  MatchBufferLowerer lower;
  lower.LearnParams(func);
  return RewriteBody(std::move(func), lower);
}
TVM_PASS(tir, LowerMatchBuffer,
         R"(Replaces views of regions by accesses of the buffers they view.

before(A: T.Buffer((8, 8), "float32")):
    with T.block("root"):
        for i in range(8):
            with T.block("row"):
                T.reads()
                T.writes(A[i, 0:8])
                R = T.match_buffer(A[i, 0:8], (8,), offset_factor=1)
                R[3] = 1.0
after:
    # with T.block("root"):
    for i in range(8):
        with T.block("row"):
            T.reads()
            T.writes(A[i, 0:8])
            A[i, 3] = T.float32(1))")
}  // namespace tvm::tir
