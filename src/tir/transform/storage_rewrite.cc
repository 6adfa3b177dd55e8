// SPDX-License-Identifier: Apache-2.0
// Lets allocations whose lives do not overlap share memory.
#include <algorithm>

#include "../analysis/lifetime.h"
#include "../analyzed_mutator.h"
#include "../contents.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
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
        if (!CanFollow(*s, *a, lives) ||
            !CanShare(*a, lives.allocations.at(s->owner->buffer_var.get())))
          continue;
        // The memory that fits best: least growth, then least waste, then the same type.
        auto cost = [&](const Shared& c) {
          return std::tuple(std::max<int64_t>(0, a->bytes - c.bytes),
                            std::max<int64_t>(0, c.bytes - a->bytes),
                            c.owner->dtype != a->op->dtype);
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
  /// Whether an allocation may begin where the memory ends: after its last use, or in place, when
  /// each element is read for the last time where it is written.
  static bool CanFollow(const Shared& s, const Allocation& a, const LifetimeFinder& lives) {
    if (s.last < a.first) return true;
    const AllocateObj* previous = s.members.back();
    const Allocation& before = lives.allocations.at(previous->buffer_var.get());
    if (s.last != before.last || previous->dtype != a.op->dtype) return false;
    auto in_place = lives.in_place.find(a.op->buffer_var.get());
    return in_place != lives.in_place.end() &&
           in_place->second.source == previous->buffer_var.get() &&
           in_place->second.at == before.last_use && in_place->second.at == a.first_use;
  }
  static bool CanShare(const Allocation& a, const Allocation& b) {
    auto scope = [](const Allocation& x) {
      return x.op->buffer_var->type_annotation.as<PointerTypeObj>()->storage_scope;
    };
    // Elements of another type see the same bytes through a view of their own. Types below a byte
    // stay among themselves: their elements are numbered in bits.
    auto has_bytes = [](DataType t) { return t.bits() % 8 == 0; };
    bool same_type =
        a.op->dtype == b.op->dtype || (has_bytes(a.op->dtype) && has_bytes(b.op->dtype));
    return a.region == b.region && scope(a) == scope(b) && same_type && scope(a) != "local" &&
           a.op->annotations.empty() && b.op->annotations.empty();
  }
};

/// Moves allocations that share memory to the beginning of their region, one for each group.
struct Rewriter : Mutator<Rewriter, AllocateObj, DeclBufferObj, ForObj, AttrStmtObj, VarObj> {
  const Planner& planner;
  std::unordered_set<const VarObj*> unused;  // memory that nobody touches
  std::unordered_map<const VarObj*, Var> pointers;
  std::unordered_map<const StmtObj*, std::vector<const Shared*>> at;  // by the region's statement

  Rewriter(const Planner& planner, const LifetimeFinder& lives) : planner(planner) {
    for (const auto& s : planner.shared) {
      if (s->members.size() < 2) continue;
      at[lives.allocations.at(s->owner->buffer_var.get()).region->stmt].push_back(s.get());
      for (const AllocateObj* member : s->members)
        pointers.emplace(member->buffer_var.get(), s->owner->buffer_var);
    }
    for (const auto& [var, a] : lives.allocations) {
      if (a.last < 0 && !a.is_exposed && a.op->annotations.empty()) unused.insert(var);
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
    bool gone = pointers.count(op->buffer_var.get()) || unused.count(op->buffer_var.get());
    return gone ? ObjectRef(Mutate(op->body)) : MapChildren(op, *this);
  }
  ObjectRef Rewrite(const DeclBufferObj* op) {
    bool gone = unused.count(op->buffer->data.get());
    return gone ? ObjectRef(Mutate(op->body)) : MapChildren(op, *this);
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
  if (!ContentsOf(func->body).Has<AllocateObj>()) return func;
  LifetimeFinder lives;
  lives(func->body);
  Planner planner(lives);
  Rewriter rewrite(planner, lives);
  if (rewrite.pointers.empty() && rewrite.unused.empty()) return func;
  Stmt body = rewrite.WithAllocations(nullptr, rewrite.Mutate(func->body));
  return WithBody(std::move(func), body);
}
TVM_PASS(
    tir, StorageRewrite,
    R"(Lets allocations of one scope share memory when their lives do not overlap, or when one is computed from the other element by element. Those that nobody uses are gone.

before(A: T.Buffer((1024,), "float32"), E: T.Buffer((1024,), "float32")):
    B = T.decl_buffer((1024,))
    C = T.decl_buffer((1024,))
    D = T.decl_buffer((1024,))
    for i in range(1024):
        B[i] = A[1023 - i]
    for i in range(1024):
        C[i] = B[1023 - i]
    for i in range(1024):
        D[i] = C[1023 - i]
    for i in range(1024):
        E[i] = D[1023 - i]
after:
    B = T.decl_buffer((1024,), "float32")
    C = T.decl_buffer((1024,), "float32")
    D = T.decl_buffer((1024,), "float32", data=B.data)
    for i in range(1024):
        B[i] = A[1023 - i]
    for i in range(1024):
        C[i] = B[1023 - i]
    for i in range(1024):
        D[i] = C[1023 - i]
    for i in range(1024):
        E[i] = D[1023 - i])")
}  // namespace tvm::tir
