// SPDX-License-Identifier: Apache-2.0
// When allocations are used.
#pragma once
#include <algorithm>
#include <climits>
#include <memory>

#include "tvm/arith/analyzer.h"
#include "tvm/arith/iter_affine_map.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/function.h"

namespace tvm::tir {

/// A place where memory can be allocated: the function, or the body of a loop whose iterations are
/// independent or run at the same time, so that memory inside it must not be shared with outside.
struct Region {
  const StmtObj* stmt = nullptr;  // null: the function
};
struct Allocation {
  const AllocateObj* op = nullptr;
  const Region* region = nullptr;
  int64_t bytes = -1;              // -1: not constant
  int first = INT_MAX, last = -1;  // statements that use it
  bool is_exposed = false;         // its pointer goes where uses cannot be seen
  // The statements themselves, without loops around; the one before the last.
  int first_use = INT_MAX, last_use = -1, prior_use = -1;
};

/// Numbers the statements in the order they run, and finds the first and last one that uses each
/// allocation. A use inside a loop counts as one of the whole loop when the memory lives outside
/// it.
struct LifetimeFinder : Visitor<LifetimeFinder, AllocateObj, ForObj, WhileObj, IfThenElseObj,
                                BufferStoreObj, EvaluateObj, LetStmtObj, AssertStmtObj, AttrStmtObj,
                                DeclBufferObj, VarObj, BufferLoadObj, CallObj> {
  std::vector<std::unique_ptr<Region>> regions;
  std::vector<const AllocateObj*> order;
  std::unordered_map<const VarObj*, Allocation> allocations;
  std::unordered_map<const VarObj*, const VarObj*> alias;  // a pointer bound to another one
  struct Open {
    const StmtObj* stmt;
    int begin;
    size_t known;  // allocations that exist outside
    std::vector<const VarObj*> used;
  };
  /// A barrier, and the begins and ends of the loops and branches around it.
  struct Barrier {
    int at;
    std::vector<std::pair<int, int>> around;
  };
  std::vector<Barrier> barriers;
  std::vector<Open> open;  // loops and branches around
  const Region* region;
  int now = 0;

  LifetimeFinder() { region = NewRegion(nullptr); }
  const Region* NewRegion(const StmtObj* stmt) {
    regions.push_back(std::make_unique<Region>(Region{stmt}));
    return regions.back().get();
  }
  void Use(const VarObj* var) {
    auto it = allocations.find(var);
    if (it == allocations.end()) return;
    it->second.first = std::min(it->second.first, now);
    it->second.last = std::max(it->second.last, now);
    if (now != it->second.last_use) it->second.prior_use = it->second.last_use;
    it->second.first_use = std::min(it->second.first_use, now);
    it->second.last_use = std::max(it->second.last_use, now);
    for (Open& o : open) o.used.push_back(var);
  }
  /// A loop (its body runs again) or a branch (the other side may run): what exists outside and is
  /// used inside lives from its beginning to its end.
  template <class F>
  void Whole(const StmtObj* stmt, F&& body) {
    int begin = ++now;
    open.push_back({stmt, begin, order.size(), {}});
    body();
    Open closed = std::move(open.back());
    open.pop_back();
    int end = ++now;
    for (Barrier& b : barriers) {
      if (b.at > begin) b.around.emplace_back(begin, end);
    }
    for (const VarObj* var : closed.used) {
      Allocation& a = allocations[var];
      auto position = std::find(order.begin(), order.end(), a.op) - order.begin();
      if (static_cast<size_t>(position) >= closed.known) continue;
      a.first = std::min(a.first, begin);
      a.last = std::max(a.last, end);
    }
  }
  void Visit(const AllocateObj* op) {
    Allocation a;
    a.op = op;
    a.region = region;
    int64_t count = op->ConstantSize();
    bool is_constant = true;
    for (const PrimExpr& e : op->extents) is_constant &= AsConstInt(e).has_value();
    if (is_constant) a.bytes = (count * op->dtype.bits() * op->dtype.lanes() + 7) / 8;
    allocations[op->buffer_var.get()] = a;
    order.push_back(op);
    for (const PrimExpr& e : op->extents) (*this)(e);
    (*this)(op->body);
  }
  void Visit(const ForObj* op) {
    (*this)(op->min);
    (*this)(op->extent);
    const Region* outer = region;
    // Threads have memory of their own; lanes and unrolled bodies are handled like serial ones.
    if (op->kind == ForKind::kParallel || op->kind == ForKind::kThreadBinding)
      region = NewRegion(op);
    Whole(op, [&] { (*this)(op->body); });
    region = outer;
  }
  void Visit(const WhileObj* op) {
    Whole(op, [&] { (*this)(op->condition), (*this)(op->body); });
  }
  void Visit(const IfThenElseObj* op) {
    (*this)(op->condition);
    Whole(op, [&] {
      (*this)(op->then_case);
      if (op->else_case.has_value()) (*this)(op->else_case.value());
    });
  }
  void Visit(const AttrStmtObj* op) {
    const Region* outer = region;
    if (op->attr_key == attr::kThreadExtent || op->attr_key == attr::kVirtualThread)
      region = NewRegion(op);
    (*this)(op->value);
    (*this)(op->body);
    region = outer;
  }
  void Visit(const BufferStoreObj* op) {
    ++now;
    VisitChildren(op, *this);
    FindInPlace(op);
  }
  /// A store that reads one other allocation, at the index it writes, once for each element: that
  /// one's memory can hold the result.
  struct InPlace {
    const VarObj* source;
    int at;  // the statement
  };
  std::unordered_map<const VarObj*, InPlace> in_place;  // by what is written
  void FindInPlace(const BufferStoreObj* op) {
    const VarObj* target = op->buffer->data.get();
    if (!allocations.count(target) || op->indices.size() != 1 || op->predicate.has_value()) return;
    const VarObj* source = nullptr;
    bool same_index = true;
    PostOrderVisit(op->value, [&](const ObjectRef& node) {
      auto* load = node.as<BufferLoadObj>();
      if (!load || !allocations.count(load->buffer->data.get())) return;
      same_index &= (!source || source == load->buffer->data.get()) &&
                    load->buffer->dtype == op->buffer->dtype && !load->predicate.has_value() &&
                    ExprDeepEqual(load->indices[0], op->indices[0]);
      source = load->buffer->data.get();
    });
    // The loops inside of which both exist must visit each element once.
    if (!source || source == target || !same_index || !VisitsOnce(op->indices[0], source)) return;
    in_place[target] = {source, now};
  }
  bool VisitsOnce(const PrimExpr& index, const VarObj* source) {
    auto position = std::find(order.begin(), order.end(), allocations[source].op) - order.begin();
    Map<Var, Range> domain;
    for (const Open& o : open) {
      if (static_cast<size_t>(position) >= o.known) continue;  // allocated inside
      auto* loop = o.stmt->IsInstance<ForObj>() ? static_cast<const ForObj*>(o.stmt) : nullptr;
      // Another statement of the loop may read what was overwritten in an earlier iteration.
      if (!loop || allocations[source].prior_use >= o.begin) return false;
      domain.Set(loop->loop_var, Range::FromMinExtent(loop->min, loop->extent));
    }
    arith::Analyzer analyzer;
    PrimExpr scalar = index;
    if (auto* ramp = index.as<RampObj>()) {
      Var lane("lane", ramp->base.dtype());
      domain.Set(lane,
                 Range::FromMinExtent(MakeZero(lane.dtype()), cast(lane.dtype(), ramp->lanes)));
      scalar = ramp->base + lane * ramp->stride;
    }
    if (!scalar.dtype().is_scalar()) return false;
    auto map = arith::DetectIterMap({scalar}, domain, const_true(), arith::IterMapLevel::kBijective,
                                    &analyzer);
    return !map->indices.empty();
  }
  void Visit(const EvaluateObj* op) {
    ++now;
    auto* call = op->value.as<CallObj>();
    if (call && call->Is(builtin::tvm_storage_sync())) barriers.push_back({now, {}});
    VisitChildren(op, *this);
  }
  /// Whether every thread passes a barrier between two moments.
  bool HasBarrier(int from, int to) const {
    for (const Barrier& b : barriers) {
      if (b.at <= from || b.at >= to) continue;
      bool always = true;  // what may not run, or lies between them as a whole, does not count
      for (const auto& [begin, end] : b.around) always &= begin <= from || end >= to;
      if (always) return true;
    }
    return false;
  }
  void Visit(const LetStmtObj* op) {
    ++now;
    // A pointer made from another one: follow the plain case, give up on the rest.
    if (op->var.dtype().is_handle()) Expose(op->value);
    (*this)(op->value);
    (*this)(op->body);
  }
  void Visit(const AssertStmtObj* op) {
    ++now;
    (*this)(op->condition);
    (*this)(op->body);
  }
  void Visit(const DeclBufferObj* op) { (*this)(op->body); }  // no use by itself
  void Visit(const BufferLoadObj* op) {
    Use(op->buffer->data.get());
    for (const PrimExpr& i : op->indices) (*this)(i);
    if (op->predicate.has_value()) (*this)(op->predicate.value());
  }
  void Visit(const CallObj* op) { VisitChildren(op, *this); }
  void Visit(const VarObj* op) { Use(op); }
  void Expose(const PrimExpr& e) {
    PostOrderVisit(e, [&](const ObjectRef& node) {
      if (auto* v = node.as<VarObj>(); v && allocations.count(v)) allocations[v].is_exposed = true;
    });
  }
};

}  // namespace tvm::tir
