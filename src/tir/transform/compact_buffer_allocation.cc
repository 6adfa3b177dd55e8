// SPDX-License-Identifier: Apache-2.0
// Shrinks the buffers that blocks and allocations declare to the regions that are accessed.
#include "../analyzed_mutator.h"
#include "../any_stmt.h"
#include "tvm/expr/index_type.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
using arith::IntSet;

/// What a dimension becomes: indices begin at `min` of the original one.
struct Compact {
  Array<Range> region;
  Buffer buffer;
};
struct Alignment {
  size_t axis;
  int64_t factor, offset;
};

/// The declaration of the buffer that memory is allocated for, right below; null where it is not
/// one buffer of this type and size.
const DeclBufferObj* DeclarationOf(const AllocateObj* op) {
  auto* decl = op->body.as<DeclBufferObj>();
  if (!decl || !IsTrue(op->condition)) return nullptr;
  const Buffer& b = decl->buffer;
  bool fits = b->data.same_as(op->buffer_var) && b->dtype == op->dtype && b->strides.empty() &&
              IsZero(b->elem_offset) && b->shape.size() == op->extents.size();
  for (size_t i = 0; fits && i < op->extents.size(); ++i)
    fits = ExprDeepEqual(b->shape[i], op->extents[i]);
  return fits ? decl : nullptr;
}

/// Collects, for each buffer that is allocated, the union of its accesses over the loops inside.
struct RegionCollector : AnalyzedMutator<RegionCollector, BlockObj, BufferLoadObj, BufferStoreObj,
                                         VarObj, DeclBufferObj, AllocateObj> {
  using Base::Rewrite;
  bool is_strict;
  struct Allocation {
    size_t depth = 0;  // loops outside
    size_t lets = 0;   // outside
    Array<Array<IntSet>> accesses;
    // What one thread accesses of memory of its own, and the threads' loops inside of the
    // allocation: where they are the same for all accesses, a thread needs no more than that.
    Array<Array<IntSet>> own;
    std::optional<std::vector<const Object*>> threads;
    bool one_thread = true;
    bool is_opaque = false;
  };
  struct Loop {
    Var var;
    Range range;
    const IterVarObj* thread;  // that it launches, or null
  };
  std::vector<Loop> loops;
  std::vector<PrimExpr> conditions;
  std::vector<std::pair<Var, PrimExpr>> lets;  // with the iterators of blocks, and their bindings
  std::unordered_map<const BufferObj*, Allocation> allocations;
  std::unordered_map<const VarObj*, const BufferObj*> owner;  // by data pointer
  std::unordered_map<const BufferObj*, std::vector<Alignment>> alignments;
  std::unordered_map<const Object*, Compact> result;

  ObjectRef Rewrite(const ForObj* op) {
    loops.push_back({op->loop_var, Range::FromMinExtent(op->min, op->extent), LaunchedThread(op)});
    ObjectRef loop = Base::Rewrite(op);
    loops.pop_back();
    return loop;
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    const IterVarObj* iv = LaunchedThread(op);
    if (!iv) return Base::Rewrite(op);
    Range range = Range::FromMinExtent(MakeZero(op->value.dtype()), op->value);
    loops.push_back({iv->var, range, iv});
    ObjectRef stmt = Base::Rewrite(op);
    loops.pop_back();
    return stmt;
  }
  /// Whether the threads of a loop around the allocation see the same memory: what all of them
  /// access belongs to it.
  static bool IsShared(const Loop& loop, const String& scope) {
    if (!loop.thread) return false;
    ThreadTag tag(loop.thread->thread_tag);
    if (scope == "global") return true;
    if (scope == "warp") return tag.kind == ThreadTag::kThread && tag.dim == 0;
    return IsSharedScope(scope) && tag.kind == ThreadTag::kThread;
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    Mutate(op->condition);
    Under(op->condition, op->then_case, StripLikely(op->condition));
    if (op->else_case.has_value()) {
      PrimExpr otherwise = logical_not(StripLikely(op->condition));
      Under(otherwise, op->else_case.value(), otherwise);
    }
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const CallObj* op) {
    if (!op->Is(builtin::if_then_else())) return MapChildren(op, *this);
    Mutate(op->args[0]);
    PrimExpr cond = StripLikely(op->args[0]), otherwise = logical_not(cond);
    Under(cond, op->args[1], cond);
    Under(otherwise, op->args[2], otherwise);
    return ffi::GetRef<ObjectRef>(op);
  }
  template <class T>
  ObjectRef Bind(const T* op) {
    lets.emplace_back(op->var, op->value);
    ObjectRef result = Base::Rewrite(op);
    lets.pop_back();
    return result;
  }
  ObjectRef Rewrite(const LetStmtObj* op) { return Bind(op); }
  ObjectRef Rewrite(const LetObj* op) { return Bind(op); }
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    for (const PrimExpr& value : op->iter_values) Mutate(value);
    Mutate(op->predicate);
    for (size_t i = 0; i < op->iter_values.size(); ++i)
      lets.emplace_back(op->block->iter_vars[i]->var, op->iter_values[i]);
    Under(op->predicate, op->block, op->predicate);
    lets.resize(lets.size() - op->iter_values.size());
    return ffi::GetRef<ObjectRef>(op);
  }
  template <class T>
  void Under(const PrimExpr& cond, const T& node, const PrimExpr& pushed) {
    // What a condition on memory says about indices may end before the body does.
    bool lasts = SideEffect(pushed) <= CallEffectKind::kPure;
    if (lasts) conditions.push_back(pushed);
    Base::Under(cond, node);
    if (lasts) conditions.pop_back();
  }
  /// `e` with the values of lets instead of their variables, which may differ between iterations;
  /// undefined where that reads memory inside the scope of the allocation, where it may change.
  PrimExpr WithoutLets(PrimExpr e, size_t lets_outside) {
    for (size_t i = lets.size(); i > 0; --i) {
      const auto& [var, value] = lets[i - 1];
      bool is_pure = SideEffect(value) <= CallEffectKind::kPure;
      if (i <= lets_outside && !is_pure) continue;
      e = Substitute(e, Map<Var, PrimExpr>{{var, value}});
    }
    return SideEffect(e) <= CallEffectKind::kPure ? e : PrimExpr();
  }
  void Begin(const Buffer& b) {
    allocations[b.get()].depth = loops.size();
    allocations[b.get()].lets = lets.size();
    owner[b->data.get()] = b.get();
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    const DeclBufferObj* decl = DeclarationOf(op);
    if (!decl) return MapChildren(op, *this);
    for (const PrimExpr& extent : op->extents) Mutate(extent);
    Begin(decl->buffer);
    Mutate(decl->body);
    Finish(decl->buffer);
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const BlockObj* op) {
    for (const Buffer& b : op->alloc_buffers) Begin(b);
    if (auto it = op->annotations.find(attr::kStorageAlignment); it != op->annotations.end()) {
      for (const Array<int64_t>& a : (*it).second.cast<Array<Array<int64_t>>>()) {
        const Buffer& b = op->writes[a[0]]->buffer;
        alignments[b.get()].push_back({static_cast<size_t>(a[1]), a[2], a[3]});
      }
    }
    for (const MatchBufferRegion& m : op->match_buffers) {
      // The view may be used in any way: all of its source is.
      Access(m->source->buffer, m->source->region);
      owner[m->buffer->data.get()] = nullptr;
    }
    if (op->init.has_value()) Mutate(op->init.value());
    Mutate(op->body);
    for (const Buffer& b : op->alloc_buffers) Finish(b);
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    Access(op->buffer, BufferRegion::Point(op->buffer, op->indices)->region);
    for (const PrimExpr& i : op->indices) Mutate(i);
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    Access(op->buffer, BufferRegion::Point(op->buffer, op->indices)->region);
    for (const PrimExpr& i : op->indices) Mutate(i);
    Mutate(op->value);
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const DeclBufferObj* op) {
    Mutate(op->buffer->data);
    return MapChildren(op, [&](const ObjectRef& child) {
      return child.same_as(op->buffer) ? child : (*this)(child);
    });
  }
  /// The pointer itself: what happens to it is not known.
  ObjectRef Rewrite(const VarObj* op) {
    if (auto it = owner.find(op); it != owner.end() && it->second)
      allocations[it->second].is_opaque = true;
    return ffi::GetRef<ObjectRef>(op);
  }
  void Access(const Buffer& buffer, const Array<Range>& region) {
    auto it = allocations.find(buffer.get());
    if (it == allocations.end()) {
      auto view = owner.find(buffer->data.get());
      if (view != owner.end() && view->second) allocations[view->second].is_opaque = true;
      return;
    }
    ffi::Map<Var, Range> relaxed, own;
    std::vector<const Object*> threads;
    String scope = ScopeOf(buffer->data.get());
    for (size_t i = 0; i < loops.size(); ++i) {
      bool is_inside = i >= it->second.depth;
      if (!is_inside && !IsShared(loops[i], scope)) continue;
      relaxed.Set(loops[i].var, loops[i].range);
      if (is_inside && loops[i].thread && scope == "local")
        threads.push_back(loops[i].var.get());
      else
        own.Set(loops[i].var, loops[i].range);
    }
    if (!it->second.threads) it->second.threads = threads;
    it->second.one_thread &= *it->second.threads == threads && !threads.empty();
    bool all_threads = relaxed.size() + it->second.depth > loops.size();
    size_t lets_outside = all_threads ? 0 : it->second.lets;
    PrimExpr predicate = const_true();
    for (const PrimExpr& c : conditions) {
      if (PrimExpr plain = WithoutLets(c, lets_outside); plain.defined())
        predicate = predicate && plain;
    }
    Array<Range> known;
    for (size_t i = 0; i < region.size(); ++i) {
      PrimExpr min = WithoutLets(region[i]->min, lets_outside);
      PrimExpr extent = WithoutLets(region[i]->extent, lets_outside);
      const PrimExpr& all = buffer->shape[i];
      // Simple indices show what does not depend on the loops.
      known.push_back(min.defined() && extent.defined()
                          ? Range::FromMinExtent(analyzer.Simplify(min), extent)
                          : Range::FromMinExtent(MakeZero(all.dtype()), all));
    }
    it->second.accesses.push_back(
        arith::EstimateRegionUpperBound(known, relaxed, predicate, &analyzer));
    if (it->second.one_thread) {
      it->second.own.push_back(arith::EstimateRegionUpperBound(known, own, predicate, &analyzer));
    }
  }
  void Finish(const Buffer& buffer) {
    Allocation& a = allocations[buffer.get()];
    std::vector<Alignment> aligned = alignments[buffer.get()];
    if (a.is_opaque || a.accesses.empty() || buffer->shape.empty()) {
      if (!aligned.empty() && !buffer->shape.empty())
        result[buffer.get()] = {{}, WithStrides(buffer, aligned)};
      return;
    }
    Array<IntSet> sets = arith::UnionRegion(a.one_thread ? a.own : a.accesses);
    Array<Range> region;
    Array<PrimExpr> shape;
    bool changed = false;
    for (size_t i = 0; i < buffer->shape.size(); ++i) {
      Range range = Bound(sets[i], buffer->shape[i]);
      region.push_back(range);
      shape.push_back(range->extent);
      changed |= !IsZero(range->min) || !range->extent.same_as(buffer->shape[i]);
    }
    if (!changed && aligned.empty()) return;
    Buffer compact = buffer;
    auto* n = Edit(&compact);
    n->shape = shape;
    if (!n->strides.empty()) return;  // a layout that was chosen stays
    result[buffer.get()] = {region, WithStrides(compact, aligned)};
  }
  /// The range of a dimension that is accessed; all of it where that is not known to be less.
  Range Bound(const IntSet& set, const PrimExpr& extent) {
    Range full = Range::FromMinExtent(MakeZero(extent.dtype()), extent);
    if (set.IsNothing() || !set.HasLowerBound() || !set.HasUpperBound()) return full;
    PrimExpr low = analyzer.Simplify(cast(extent.dtype(), set.min()));
    PrimExpr high = analyzer.Simplify(cast(extent.dtype(), set.max()));
    PrimExpr size = analyzer.Simplify(high - low + 1);
    if (!AsConstInt(size)) {
      // The same amount in each iteration of the loops outside, or at least a bound for it.
      arith::ConstIntBound bound = analyzer.const_int_bound(size);
      auto all = AsConstInt(extent);
      // A dynamic size is bounded by the range of its type, too; no tile is that large.
      constexpr int64_t kLargestTile = 1 << 16;
      if (bound->max_value <= (all ? *all - 1 : kLargestTile))
        size = MakeConst(extent.dtype(), bound->max_value);
      else if (all || !analyzer.CanProve(size <= extent))
        return full;
    }
    if (is_strict) {
      if (analyzer.CanProve(size >= extent)) return full;
      // Accesses outside of the buffer are guarded by conditions: the region begins inside.
      if (!analyzer.CanProve(low >= MakeZero(low.dtype())))
        low = analyzer.Simplify(max(low, MakeZero(low.dtype())));
    }
    if (auto count = AsConstInt(size); count && *count < 1) size = MakeConst(extent.dtype(), 1);
    return Range::FromMinExtent(low, size);
  }
  /// Strides that obey `factor * k + offset` for the axes asked for.
  Buffer WithStrides(Buffer buffer, const std::vector<Alignment>& aligned) {
    if (aligned.empty()) return buffer;
    std::vector<PrimExpr> strides(buffer->shape.size());
    PrimExpr stride = IntImm::Int64(1);
    for (size_t i = buffer->shape.size(); i > 0; --i) {
      for (const Alignment& a : aligned) {
        if (a.axis != i - 1 || a.factor <= 0) continue;
        PrimExpr factor = IntImm::Int64(a.factor), offset = IntImm::Int64(a.offset % a.factor);
        stride = stride + floormod(offset - stride, factor);
      }
      strides[i - 1] = analyzer.Simplify(stride);
      stride = strides[i - 1] * cast(stride.dtype(), buffer->shape[i - 1]);
    }
    // Padding may take the size beyond the type of the indices.
    auto size = AsConstInt(analyzer.Simplify(stride));
    if (!size || *size <= INT32_MAX) {
      for (PrimExpr& s : strides) s = analyzer.Simplify(ToIndexType(s, buffer->IndexType()));
    }
    Edit(&buffer)->strides = Array<PrimExpr>(strides.begin(), strides.end());
    return buffer;
  }
};

struct Compacter : AnalyzedStmtMutator<Compacter, BlockObj, BufferObj, BufferLoadObj,
                                       BufferStoreObj, BufferRegionObj, AllocateObj> {
  using Base::Rewrite;
  std::unordered_map<const Object*, Compact> compact;

  ObjectRef Rewrite(const BufferObj* op) {
    auto it = compact.find(op);
    return it == compact.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second.buffer);
  }
  PrimExpr Shifted(const Compact& c, size_t i, const PrimExpr& index) {
    if (c.region.empty() || IsZero(c.region[i]->min)) return index;
    return analyzer.Simplify(index - cast(index.dtype().element(), c.region[i]->min));
  }
  template <class Ref>
  ObjectRef RewriteAccess(const typename Ref::ContainerType* op) {
    auto it = compact.find(op->buffer.get());
    Ref access = this->template Below<Ref>(op);
    if (it == compact.end()) return access;
    Array<PrimExpr> indices;
    for (size_t i = 0; i < access->indices.size(); ++i)
      indices.push_back(Shifted(it->second, i, access->indices[i]));
    Edit(&access)->indices = indices;
    return access;
  }
  ObjectRef Rewrite(const BufferLoadObj* op) { return RewriteAccess<BufferLoad>(op); }
  ObjectRef Rewrite(const BufferStoreObj* op) { return RewriteAccess<BufferStore>(op); }
  ObjectRef Rewrite(const BufferRegionObj* op) {
    auto it = compact.find(op->buffer.get());
    BufferRegion r = Below<BufferRegion>(op);
    if (it == compact.end()) return r;
    Array<Range> region;
    for (size_t i = 0; i < r->region.size(); ++i) {
      region.push_back(
          Range::FromMinExtent(Shifted(it->second, i, r->region[i]->min), r->region[i]->extent));
    }
    return BufferRegion(r->buffer, region);
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    Allocate allocate = Below<Allocate>(op);
    const DeclBufferObj* decl = DeclarationOf(op);
    if (auto it = compact.find(decl ? decl->buffer.get() : nullptr); it != compact.end())
      Edit(&allocate)->extents = it->second.buffer->shape;
    return allocate;
  }
  ObjectRef Rewrite(const BlockObj* op) {
    Block block = Below<Block>(op);
    if (op->annotations.count(attr::kStorageAlignment)) {
      auto* n = Edit(&block);
      n->annotations.erase(attr::kStorageAlignment);
    }
    return block;
  }
};
}  // namespace

PrimFunc CompactBufferAllocation(PrimFunc func, bool is_strict) {
  auto allocates = [](const BlockObj* op) { return !op->alloc_buffers.empty(); };
  bool any =
      AnyStmt<BlockObj>(func->body, allocates) ||
      AnyStmt<AllocateObj>(func->body, [](auto* op) { return DeclarationOf(op) != nullptr; });
  if (!any) return func;
  RegionCollector collect;
  collect.is_strict = is_strict;
  collect.LearnParams(func);
  collect.Mutate(func->body);
  if (collect.result.empty()) return func;
  Compacter compact;
  compact.compact = std::move(collect.result);
  compact.LearnParams(func);
  return RewriteBody(std::move(func), compact);
}
TVM_PASS(
    tir, CompactBufferAllocation,
    R"(Shrinks the buffers of blocks, and those of allocations that are declared right below, to what is accessed.

before(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i in range(16):
        with T.block(""):
            T.reads(A[i, 0:16])
            T.writes(C[i, 0:16])
            B = T.alloc_buffer((16, 16))
            for j in range(16):
                B[i, j] = A[i, j] + 1.0
            for j in range(16):
                C[i, j] = B[i, 15 - j]
after:
    # with T.block("root"):
    for i in range(16):
        with T.block(""):
            T.reads(A[i, 0:16])
            T.writes(C[i, 0:16])
            B = T.alloc_buffer((1, 16))
            for j in range(16):
                B[0, j] = A[i, j] + T.float32(1)
            for j in range(16):
                C[i, j] = B[0, 15 - j]

With is_strict no dimension grows. Honours the block annotation buffer_dim_align.)",
    Arg("is_strict", true))
}  // namespace tvm::tir
