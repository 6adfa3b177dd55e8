// SPDX-License-Identifier: Apache-2.0
// Maxima and minima start at infinity, whatever finite number the program starts them with.
#include <unordered_map>
#include <unordered_set>

#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
enum Kind { kMax, kMin, kKinds };

bool IsExtreme(const PrimExpr& e, Kind kind) {
  auto* imm = e.as<FloatImmObj>();
  if (!imm || !(imm->dtype.is_ieee_float() || imm->dtype.is_bfloat16())) return false;
  PrimExpr extreme = kind == kMax ? min_value(imm->dtype) : max_value(imm->dtype);
  return imm->value == extreme.as<FloatImmObj>()->value;
}
bool IsLoadOf(const PrimExpr& e, const Object* data) {
  auto* load = e.as<BufferLoadObj>();
  return load && load->buffer->data.get() == data;
}
/// The branches of a choice between values; empty for anything else.
Array<PrimExpr> Branches(const PrimExpr& e) {
  if (auto* select = e.as<SelectObj>()) return {select->true_value, select->false_value};
  auto* call = e.as<CallObj>();
  if (call && call->Is(builtin::if_then_else())) return {call->args[1], call->args[2]};
  return {};
}
PrimExpr WithBranches(const PrimExpr& e, const Array<PrimExpr>& branches) {
  if (auto* select = e.as<SelectObj>())
    return Select(select->condition, branches[0], branches[1], select->span);
  return if_then_else(e.as<CallObj>()->args[0], branches[0], branches[1]);
}
/// Whether the condition asks for the value in `data` to be beyond another one.
bool AsksBeyond(const PrimExpr& condition, const Object* data, Kind kind) {
  if (auto* op = condition.as<OrObj>())
    return AsksBeyond(op->a, data, kind) || AsksBeyond(op->b, data, kind);
  if (auto* op = condition.as<AndObj>())
    return AsksBeyond(op->a, data, kind) || AsksBeyond(op->b, data, kind);
  auto beyond = [&](const PrimExpr& more, const PrimExpr& less) {
    return IsLoadOf(kind == kMax ? more : less, data);
  };
  if (auto* op = condition.as<GTObj>()) return beyond(op->a, op->b);
  if (auto* op = condition.as<GEObj>()) return beyond(op->a, op->b);
  if (auto* op = condition.as<LTObj>()) return beyond(op->b, op->a);
  if (auto* op = condition.as<LEObj>()) return beyond(op->b, op->a);
  return false;
}
/// What a value is compared with when it replaces an element of `data` by one that is beyond it;
/// undefined when it does something else.
PrimExpr Rival(const PrimExpr& value, const Object* data, Kind kind) {
  auto other = [&](const PrimExpr& a, const PrimExpr& b) {
    return IsLoadOf(a, data) ? b : IsLoadOf(b, data) ? a : PrimExpr();
  };
  if (auto* op = value.as<MaxObj>()) return kind == kMax ? other(op->a, op->b) : PrimExpr();
  if (auto* op = value.as<MinObj>()) return kind == kMin ? other(op->a, op->b) : PrimExpr();
  auto* select = value.as<SelectObj>();
  if (!select || !IsLoadOf(select->true_value, data)) return PrimExpr();
  return AsksBeyond(select->condition, data, kind) ? select->false_value : PrimExpr();
}

/// How the program uses the buffers that begin at a data pointer.
struct Use {
  bool holds[kKinds] = {};      // some store takes the maximum (minimum) of the element and another
  bool otherwise[kKinds] = {};  // some store does neither that nor set an extreme
  int64_t loads = 0;
  int64_t rivals[kKinds] = {};  // loads whose value only enters a maximum (minimum)
  bool IsHolder(Kind kind) const { return holds[kind] && !otherwise[kind]; }
  bool OnlyEnters(Kind kind) const { return loads > 0 && loads == rivals[kind]; }
};

/// Variables bound to what a reduction of several values stores.
using Lets = std::unordered_map<const Object*, PrimExpr>;
PrimExpr ValueOf(const PrimExpr& value, const Lets& lets) {
  auto it = lets.find(value.get());
  return it == lets.end() ? value : it->second;
}

struct UseCollector
    : Visitor<UseCollector, LetStmtObj, BufferStoreObj, BufferLoadObj, FloatImmObj> {
  std::unordered_map<const Object*, Use> uses;
  Lets lets;
  bool any_extreme = false;
  void Visit(const FloatImmObj* op) {
    PrimExpr e = ffi::GetRef<PrimExpr>(op);
    any_extreme = any_extreme || IsExtreme(e, kMax) || IsExtreme(e, kMin);
  }
  void Visit(const LetStmtObj* op) {
    lets[op->var.get()] = op->value;
    VisitChildren(op, *this);
  }
  void Visit(const BufferLoadObj* op) {
    ++uses[op->buffer->data.get()].loads;
    VisitChildren(op, *this);
  }
  void Visit(const BufferStoreObj* op) {
    const Object* data = op->buffer->data.get();
    PrimExpr value = ValueOf(op->value, lets);
    for (Kind kind : {kMax, kMin}) {
      PrimExpr rival = Rival(value, data, kind);
      if (rival.defined()) {
        uses[data].holds[kind] = true;
        CountRivals(rival, kind);
      } else if (!IsExtreme(value, kind)) {
        uses[data].otherwise[kind] = true;
      }
    }
    VisitChildren(op, *this);
  }
  void CountRivals(const PrimExpr& rival, Kind kind) {
    if (auto* load = rival.as<BufferLoadObj>()) ++uses[load->buffer->data.get()].rivals[kind];
    for (const PrimExpr& branch : Branches(rival)) CountRivals(branch, kind);
  }
};

PrimExpr Infinity(DataType t, Kind kind) { return kind == kMax ? neg(infinity(t)) : infinity(t); }

struct Starter : Mutator<Starter, BufferStoreObj, CommReducerObj> {
  UseCollector found;
  std::unordered_set<const Object*> params;

  ObjectRef Rewrite(const BufferStoreObj* op) {
    const Object* data = op->buffer->data.get();
    const Use& use = found.uses[data];
    PrimExpr value = op->value;
    for (Kind kind : {kMax, kMin}) {
      if (!use.IsHolder(kind) && (params.count(data) || !use.OnlyEnters(kind))) continue;
      value = ToInfinity(value, data, kind);
    }
    if (value.same_as(op->value)) return ffi::GetRef<ObjectRef>(op);
    BufferStore store = ffi::GetRef<BufferStore>(op);
    Edit(&store)->value = value;
    return store;
  }
  /// How threads combine their values.
  ObjectRef Rewrite(const CommReducerObj* op) {
    Array<PrimExpr> start = op->identity_element;
    for (size_t i = 0; i < start.size(); ++i) {
      for (Kind kind : {kMax, kMin}) {
        bool holds = kind == kMax ? op->result[i]->IsInstance<MaxObj>()
                                  : op->result[i]->IsInstance<MinObj>();
        if (holds && IsExtreme(start[i], kind)) start.Set(i, Infinity(start[i].dtype(), kind));
      }
    }
    if (start.same_as(op->identity_element)) return ffi::GetRef<ObjectRef>(op);
    return CommReducer(op->lhs, op->rhs, op->result, start, op->span);
  }

 private:
  /// Extremes that are stored, or chosen for a place outside of what a window slides over.
  PrimExpr ToInfinity(const PrimExpr& value, const Object* data, Kind kind) {
    if (IsExtreme(value, kind)) return Infinity(value.dtype(), kind);
    auto in_branches = [&](const PrimExpr& e) {
      Array<PrimExpr> branches = Branches(e);
      Array<PrimExpr> changed =
          branches.Map([&](const PrimExpr& b) { return ToInfinity(b, data, kind); });
      return changed.same_as(branches) ? e : WithBranches(e, changed);
    };
    PrimExpr rival = Rival(value, data, kind);
    if (!rival.defined()) return in_branches(value);
    if (value.as<SelectObj>()) return value;
    PrimExpr changed = in_branches(rival);
    if (changed.same_as(rival)) return value;
    auto of = [&](const auto* op) {
      bool first = op->a.same_as(rival);
      return std::pair(first ? changed : op->a, first ? op->b : changed);
    };
    auto [a, b] = kind == kMax ? of(value.as<MaxObj>()) : of(value.as<MinObj>());
    return kind == kMax ? max(a, b) : min(a, b);
  }
};
}  // namespace

PrimFunc StartAtInfinity(PrimFunc func) {
  Starter starter;
  starter.found(func->body);
  if (!starter.found.any_extreme) return func;
  for (const auto& [param, buffer] : func->buffer_map) starter.params.insert(buffer->data.get());
  return RewriteBody(std::move(func), starter);
}
TVM_PASS(
    tir, StartAtInfinity,
    R"(Starts maxima and minima at infinity instead of the largest finite number, so that a maximum
over nothing but -inf is -inf. Margins that windows of a maximum slide over follow.

before(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    with T.block("root"):
        for k in range(8):
            with T.block("C"):
                vk = T.axis.reduce(8, k)
                T.reads(A[vk])
                T.writes(C[0])
                with T.init():
                    C[0] = T.min_value("float32")
                C[0] = T.max(C[0], A[vk])
after:
    with T.block("root"):
        for k in range(8):
            with T.block("C"):
                vk = T.axis.reduce(8, k)
                T.reads(A[vk])
                T.writes(C[0])
                with T.init():
                    C[0] = T.float32("-inf")
                C[0] = T.max(C[0], A[vk]))")
}  // namespace tvm::tir
