// SPDX-License-Identifier: Apache-2.0
// Lets allocations whose lives do not overlap share memory.
#include <algorithm>

#include "../analyzed_mutator.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
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
    size_t known;  // allocations that exist outside
    std::vector<const VarObj*> used;
  };
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
    for (Open& o : open) o.used.push_back(var);
  }
  /// A loop (its body runs again) or a branch (the other side may run): what exists outside and is
  /// used inside lives from its beginning to its end.
  template <class F>
  void Whole(const StmtObj* stmt, F&& body) {
    int begin = ++now;
    open.push_back({stmt, order.size(), {}});
    body();
    Open closed = std::move(open.back());
    open.pop_back();
    int end = ++now;
    for (const VarObj* var : closed.used) {
      Allocation& a = allocations[var];
      auto position = std::find(order.begin(), order.end(), a.op) - order.begin();
      if (static_cast<size_t>(position) >= closed.known) continue;
      a.first = std::min(a.first, begin), a.last = std::max(a.last, end);
    }
  }
  void Visit(const AllocateObj* op) {
    Allocation a;
    a.op = op, a.region = region;
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
    (*this)(op->min), (*this)(op->extent);
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
  }
  void Visit(const EvaluateObj* op) {
    ++now;
    VisitChildren(op, *this);
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

/// Memory that several allocations use, one after the other.
struct Shared {
  const AllocateObj* owner;  // the one whose pointer stays
  std::vector<const AllocateObj*> members;
  int64_t bytes;
  int last;
};

struct Planner {
  std::unordered_map<const AllocateObj*, const Shared*> plan;
  std::vector<std::unique_ptr<Shared>> shared;

  explicit Planner(const LifetimeFinder& lives) {
    std::vector<const Allocation*> sorted;
    for (const AllocateObj* op : lives.order) {
      const Allocation& a = lives.allocations.at(op->buffer_var.get());
      if (a.last >= 0 && !a.is_exposed && a.bytes > 0 && a.op == op) sorted.push_back(&a);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](auto* a, auto* b) { return a->first < b->first; });
    for (const Allocation* a : sorted) {
      Shared* best = nullptr;
      for (auto& s : shared) {
        if (s->last >= a->first || !CanShare(*a, lives.allocations.at(s->owner->buffer_var.get())))
          continue;
        // The memory that fits best: least growth, then least waste.
        auto cost = [&](const Shared& c) {
          return std::pair(std::max<int64_t>(0, a->bytes - c.bytes),
                           std::max<int64_t>(0, c.bytes - a->bytes));
        };
        if (!best || cost(*s) < cost(*best)) best = s.get();
      }
      // A small buffer in a large one saves nothing worth having; small ones may be registers.
      constexpr int64_t kWorthSharing = 1024;
      if (best && std::min(a->bytes, best->bytes) >= kWorthSharing) {
        best->members.push_back(a->op);
        best->bytes = std::max(best->bytes, a->bytes);
        best->last = a->last;
      } else {
        shared.push_back(std::make_unique<Shared>(Shared{a->op, {a->op}, a->bytes, a->last}));
        best = shared.back().get();
      }
      plan[a->op] = best;
    }
  }
  static bool CanShare(const Allocation& a, const Allocation& b) {
    auto scope = [](const Allocation& x) {
      return x.op->buffer_var->type_annotation.as<PointerTypeObj>()->storage_scope;
    };
    // One element type: another one would need a second view, and alias rules of code generators
    // would no longer hold.
    return a.region == b.region && scope(a) == scope(b) && a.op->dtype == b.op->dtype &&
           scope(a) != "local" && a.op->annotations.empty() && b.op->annotations.empty();
  }
};

/// Moves allocations that share memory to the beginning of their region, one for each group.
struct Rewriter : Mutator<Rewriter, AllocateObj, ForObj, AttrStmtObj, VarObj> {
  const Planner& planner;
  std::unordered_map<const VarObj*, Var> pointers;
  std::unordered_map<const StmtObj*, std::vector<const Shared*>> at;  // by the region's statement

  Rewriter(const Planner& planner, const LifetimeFinder& lives) : planner(planner) {
    for (const auto& s : planner.shared) {
      if (s->members.size() < 2) continue;
      at[lives.allocations.at(s->owner->buffer_var.get()).region->stmt].push_back(s.get());
      for (const AllocateObj* member : s->members)
        pointers.emplace(member->buffer_var.get(), s->owner->buffer_var);
    }
  }
  Stmt WithAllocations(const StmtObj* region, Stmt body) {
    auto it = at.find(region);
    if (it == at.end()) return body;
    for (auto s = it->second.rbegin(); s != it->second.rend(); ++s) {
      const AllocateObj* op = (*s)->owner;
      int64_t element = int64_t{op->dtype.bits()} * op->dtype.lanes();
      int64_t count = ((*s)->bytes * 8 + element - 1) / element;
      body = Allocate(op->buffer_var, op->dtype,
                      {MakeConst(DataType::Int(count > INT32_MAX ? 64 : 32), count)}, const_true(),
                      body, op->annotations, op->span);
    }
    return body;
  }
  ObjectRef Rewrite(const VarObj* op) {
    auto it = pointers.find(op);
    return it == pointers.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second);
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    if (pointers.count(op->buffer_var.get())) return Mutate(op->body);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const ForObj* op) {
    For loop = Below<For>(op);
    Stmt body = WithAllocations(op, loop->body);
    if (!body.same_as(loop->body)) Edit(&loop)->body = body;
    return loop;
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    AttrStmt attr = Below<AttrStmt>(op);
    Stmt body = WithAllocations(op, attr->body);
    if (!body.same_as(attr->body)) Edit(&attr)->body = body;
    return attr;
  }
};
}  // namespace

PrimFunc StorageRewrite(PrimFunc func) {
  LifetimeFinder lives;
  lives(func->body);
  if (lives.order.size() < 2) return func;
  Planner planner(lives);
  Rewriter rewrite(planner, lives);
  if (rewrite.pointers.empty()) return func;
  Stmt body = rewrite.WithAllocations(nullptr, rewrite.Mutate(func->body));
  return WithBody(std::move(func), body);
}
TVM_PASS(tir, StorageRewrite,
         "Lets allocations of one type and scope share memory when their lives do not overlap.\n\n"
         "    B = T.allocate([4096])  # until C is made     B = T.allocate([4096])\n"
         "    C = T.allocate([4096])                        B[..] = A[..]; C[..] = B[..]\n"
         "    D = T.allocate([4096])  # after B         ->  (C, then D in the memory of B)")
}  // namespace tvm::tir
