// SPDX-License-Identifier: Apache-2.0
// The regions of buffers that a block reads and writes.
#include <unordered_set>

#include "ir/once.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {
using arith::IntSet;

/// A variable of more than one value or a number: there is nothing to simplify.
bool IsPlainPoint(const IntSet& set, arith::Analyzer* analyzer) {
  if (!set.IsSinglePoint()) return false;
  PrimExpr point = set.PointValue();
  if (point->IsInstance<IntImmObj>()) return true;
  if (!point->IsInstance<VarObj>()) return false;
  arith::ConstIntBound bound = analyzer->const_int_bound(point);
  return bound->min_value != bound->max_value;
}

struct Accesses {
  std::vector<Buffer> order;
  std::unordered_map<const BufferObj*, Array<Array<IntSet>>> regions;
  void Add(const Buffer& buffer, Array<IntSet> region) {
    auto [it, is_new] = regions.try_emplace(buffer.get());
    if (is_new) order.push_back(buffer);
    it->second.push_back(std::move(region));
  }
  /// Whether memory that is `written` decides where an access is: it may be elsewhere by then.
  static bool Moves(const IntSet& set, const Accesses& written) {
    if (!set.IsSinglePoint() || SideEffect(set.PointValue()) <= CallEffectKind::kPure) return false;
    bool found = false;
    Once first;
    PreOrderVisit(set.PointValue(), [&](const ObjectRef& node) {
      auto* load = node.as<BufferLoadObj>();
      for (const Buffer& b : written.order) found |= load && load->buffer->data.same_as(b->data);
      return !found && first(node.get());
    });
    return found;
  }
  Array<BufferRegion> Result(arith::Analyzer* analyzer, const Accesses& written) const {
    Array<BufferRegion> result;
    for (const Buffer& buffer : order) {
      const Array<Array<IntSet>>& all = regions.at(buffer.get());
      Array<IntSet> sets = all.size() == 1 ? all[0] : arith::UnionRegion(all);
      Array<Range> region;
      for (size_t i = 0; i < buffer->shape.size(); ++i) {
        if (IsPlainPoint(sets[i], analyzer)) {
          PrimExpr point = sets[i].PointValue();
          region.push_back(Range::FromMinExtent(point, MakeConst(point.dtype(), 1)));
          continue;
        }
        Range full = Range::FromMinExtent(MakeZero(buffer->shape[i].dtype()), buffer->shape[i]);
        Range range = Moves(sets[i], written) ? full : sets[i].CoverRange(full);
        region.push_back(Range::FromMinExtent(analyzer->Simplify(range->min),
                                              analyzer->Simplify(range->extent)));
      }
      result.push_back(BufferRegion(buffer, region));
    }
    return result;
  }
};

struct AccessVisitor : Visitor<AccessVisitor, ForObj, LetStmtObj, LetObj, BlockRealizeObj,
                               BufferLoadObj, BufferStoreObj, VarObj, DeclBufferObj, AllocateObj,
                               AllocateConstObj, BufferRealizeObj, AttrStmtObj, PrimExprObj> {
  const Map<Var, Buffer>& buffer_of_data;
  Accesses reads, writes, opaque;
  arith::DomMap doms;
  Map<Var, PrimExpr> lets;
  std::unordered_set<const VarObj*> own_memory;    // allocated below: not seen from outside
  std::unordered_set<const BufferObj*> own_views;  // declared below, of memory from outside
  std::unordered_set<const BufferObj*> of_block;   // allocations and views of the block itself
  Once once;  // expressions, as long as variables have the same values

  explicit AccessVisitor(const Block& block, const Map<Var, Buffer>& buffers)
      : buffer_of_data(buffers) {
    for (const Buffer& b : block->alloc_buffers) of_block.insert(b.get());
    for (const MatchBufferRegion& m : block->match_buffers) of_block.insert(m->buffer.get());
  }

  /// Whether what is seen from outside cannot say the value: it has a variable or reads memory that
  /// exists only below.
  bool IsInner(const ObjectRef& e) const {
    bool found = false;
    Once first;
    PreOrderVisit(e, [&](const ObjectRef& n) {
      auto* load = n.as<BufferLoadObj>();
      found |= n.as<LetObj>() || (load && (own_memory.count(load->buffer->data.get()) ||
                                           own_views.count(load->buffer.get()) ||
                                           of_block.count(load->buffer.get())));
      return !found && first(n.get());
    });
    return found;
  }
  IntSet Relax(const PrimExpr& index) {
    if (index->IsInstance<IntImmObj>()) return IntSet::SinglePoint(index);
    if (auto var = index.as<Var>(); var && !doms.count(*var) && !lets.count(*var)) {
      return IntSet::SinglePoint(index);
    }
    if (IsInner(index)) return IntSet::Everything();
    PrimExpr e = Substitute(index, lets);
    if (!e.dtype().is_scalar()) {
      if (auto* ramp = e.as<RampObj>(); ramp && !e.dtype().is_scalable()) {
        return arith::Union(
            {arith::EvalSet(ramp->base, doms),
             arith::EvalSet(ramp->base + ramp->stride * (e.dtype().lanes() - 1), doms)});
      }
      return IntSet::Everything();
    }
    return arith::EvalSet(e, doms);
  }
  static Array<IntSet> Everywhere(const Buffer& buffer) {
    return Array<IntSet>(buffer->shape.size(), IntSet::Everything());
  }
  void Add(Accesses* to, const Buffer& buffer, const Array<IntSet>& region) {
    if (own_memory.count(buffer->data.get())) return;
    if (!own_views.count(buffer.get())) return to->Add(buffer, region);
    // Outside, the memory is known by another buffer, of which any part may be meant.
    auto it = buffer_of_data.find(buffer->data);
    if (it != buffer_of_data.end()) to->Add((*it).second, Everywhere((*it).second));
  }
  void Access(Accesses* to, const Buffer& buffer, const Array<PrimExpr>& indices) {
    Array<IntSet> region;
    for (const PrimExpr& i : indices) region.push_back(Relax(i));
    Add(to, buffer, region);
  }
  void Visit(const ForObj* op) {
    (*this)(op->min);
    (*this)(op->extent);
    IntSet set = arith::EvalSet(Range::FromMinExtent(op->min, op->extent), doms);
    doms.Set(op->loop_var, set);
    once = {};
    (*this)(op->body);
    once = {};
    doms.erase(op->loop_var);
  }
  template <class T>
  void VisitLet(const T* op) {
    (*this)(op->value);
    bool is_index = op->var.dtype().is_index() && SideEffect(op->value) <= CallEffectKind::kPure;
    if (is_index)
      lets.Set(op->var, Substitute(op->value, lets));
    else if (op->var.dtype().is_index())
      doms.Set(op->var, IntSet::Everything());  // its value is known only inside
    once = {};
    (*this)(op->body);
    once = {};
    lets.erase(op->var);
    doms.erase(op->var);
  }
  void Visit(const LetStmtObj* op) { VisitLet(op); }
  void Visit(const LetObj* op) { VisitLet(op); }
  void Visit(const BlockRealizeObj* op) {
    Map<Var, PrimExpr> values;
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      (*this)(op->iter_values[i]);
      values.Set(op->block->iter_vars[i]->var, op->iter_values[i]);
    }
    auto add = [&](Accesses* to, const Array<BufferRegion>& regions) {
      for (const BufferRegion& r : regions) {
        Array<IntSet> sets;
        for (const Range& range : r->region) {
          Range bound = Substitute(Substitute(range, values), lets);
          sets.push_back(IsInner(bound) ? IntSet::Everything() : arith::EvalSet(bound, doms));
        }
        Add(to, r->buffer, sets);
      }
    };
    add(&reads, op->block->reads);
    add(&writes, op->block->writes);
  }
  void Visit(const PrimExprObj* op) {
    if (once(op)) VisitChildren(op, *this);
  }
  void Visit(const BufferLoadObj* op) {
    if (!once(op)) return;
    Access(&reads, op->buffer, op->indices);
    for (const PrimExpr& i : op->indices) (*this)(i);
    if (op->predicate.has_value()) (*this)(op->predicate.value());
  }
  void Visit(const BufferStoreObj* op) {
    Access(&writes, op->buffer, op->indices);
    (*this)(op->value);
    for (const PrimExpr& i : op->indices) (*this)(i);
    if (op->predicate.has_value()) (*this)(op->predicate.value());
  }
  void Visit(const AllocateObj* op) {
    own_memory.insert(op->buffer_var.get());
    VisitChildren(op, *this);
  }
  void Visit(const AllocateConstObj* op) {
    own_memory.insert(op->buffer_var.get());
    (*this)(op->body);
  }
  void Visit(const BufferRealizeObj* op) {
    own_memory.insert(op->buffer->data.get());
    for (const Range& r : op->bounds) (*this)(r);
    (*this)(op->body);
  }
  void Visit(const AttrStmtObj* op) {
    (*this)(op->value);
    auto iv = op->node.as<IterVar>();
    bool is_thread =
        iv && (op->attr_key == attr::kThreadExtent || op->attr_key == attr::kVirtualThread);
    if (is_thread) {
      Range range = Range::FromMinExtent(MakeZero((*iv)->var.dtype()), op->value);
      doms.Set((*iv)->var, arith::EvalSet(range, doms));
      once = {};
    }
    (*this)(op->body);
    if (is_thread) once = {};
    if (is_thread) doms.erase((*iv)->var);
  }
  void Visit(const DeclBufferObj* op) {
    own_views.insert(op->buffer.get());
    (*this)(op->body);
  }
  void Visit(const VarObj* op) {
    auto it = buffer_of_data.find(ffi::GetRef<Var>(op));
    if (it == buffer_of_data.end()) return;
    opaque.Add((*it).second, Everywhere((*it).second));
  }
};
}  // namespace

Array<Array<BufferRegion>> GetBlockAccessRegion(const Block& block,
                                                const Map<Var, Buffer>& buffer_var_to_buffer) {
  AccessVisitor visit(block, buffer_var_to_buffer);
  for (const MatchBufferRegion& m : block->match_buffers) visit(m->source);
  if (block->init.has_value()) visit(block->init.value());
  visit(block->body);
  arith::Analyzer analyzer;
  // An iterator of one value stays in the indices: users read the axes of an access from them.
  for (const IterVar& iv : block->iter_vars) {
    if (!IsOne(iv->dom.value()->extent)) analyzer.Bind(iv->var, iv->dom.value());
  }
  // Views and memory of the block's own are not seen from outside.
  auto outside = [&](const Array<BufferRegion>& regions) {
    Array<BufferRegion> result;
    for (const BufferRegion& r : regions) {
      bool is_own = false;
      for (const Buffer& b : block->alloc_buffers) is_own |= b.same_as(r->buffer);
      for (const MatchBufferRegion& m : block->match_buffers)
        is_own |= m->buffer.same_as(r->buffer);
      if (!is_own) result.push_back(r);
    }
    return result;
  };
  // An access through a view is one to what it views.
  for (const MatchBufferRegion& m : block->match_buffers) {
    Array<IntSet> region;
    for (const Range& r : m->source->region) region.push_back(IntSet::FromRange(r));
    for (Accesses* accesses : {&visit.reads, &visit.writes}) {
      if (accesses->regions.count(m->buffer.get())) accesses->Add(m->source->buffer, region);
    }
  }
  Array<BufferRegion> read = outside(visit.reads.Result(&analyzer, visit.writes));
  Array<BufferRegion> written = outside(visit.writes.Result(&analyzer, visit.writes));
  // A reduction only updates its result: what it starts from is its init, nothing from outside.
  if (block->init.has_value()) {
    Array<BufferRegion> others;
    for (const BufferRegion& r : read) {
      bool own = false;
      for (const BufferRegion& w : written) own |= w->buffer.same_as(r->buffer);
      if (!own) others.push_back(r);
    }
    read = others;
  }
  return {read, written, outside(visit.opaque.Result(&analyzer, visit.writes))};
}

Array<Array<BufferRegion>> GetBlockReadWriteRegion(const Block& block,
                                                   const Map<Var, Buffer>& buffer_var_to_buffer) {
  Array<Array<BufferRegion>> access = GetBlockAccessRegion(block, buffer_var_to_buffer);
  auto with_opaque = [&](const Array<BufferRegion>& regions) {
    Array<BufferRegion> result;
    auto is_opaque = [&](const Buffer& b) {
      for (const BufferRegion& o : access[2]) {
        if (o->buffer.same_as(b)) return true;
      }
      return false;
    };
    for (const BufferRegion& r : regions) {
      if (!is_opaque(r->buffer)) result.push_back(r);
    }
    for (const BufferRegion& o : access[2]) result.push_back(o);
    return result;
  };
  return {with_opaque(access[0]), with_opaque(access[1])};
}

namespace {
TVM_REGISTER() {
  Def("tir.analysis.get_block_access_region", &GetBlockAccessRegion,
      "[reads, writes, opaque]: the regions a block touches; opaque ones are used through their "
      "data pointer.",
      Arg("block"), Arg("buffer_var_map"));
  Def("tir.analysis.get_block_read_write_region", &GetBlockReadWriteRegion,
      "[reads, writes] of a block, opaque accesses counted as both.", Arg("block"),
      Arg("buffer_var_map"));
}
}  // namespace
}  // namespace tvm::tir
