// SPDX-License-Identifier: Apache-2.0
// Turns all iterations of a vectorized loop into operations on vectors.
//
// The loop variable becomes the vector [min, min + 1, …]; what depends on it becomes a vector too.
// Where a condition differs between lanes, loads and stores get it as their predicate. A statement
// that has no vector form runs lane by lane in a serial loop instead; nothing else of the loop
// does.
#include <unordered_set>

#include "../analyzed_mutator.h"
#include "../any_stmt.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/backend.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
/// vscale() * k as the number of lanes of a scalable vector.
std::optional<int64_t> ScalableFactor(const PrimExpr& e) {
  auto* mul = e.as<MulObj>();
  if (!mul) return std::nullopt;
  auto is_vscale = [](const PrimExpr& x) {
    auto* call = x.as<CallObj>();
    return call && call->Is(builtin::vscale());
  };
  if (is_vscale(mul->a)) return AsConstInt(mul->b);
  if (is_vscale(mul->b)) return AsConstInt(mul->a);
  return std::nullopt;
}

struct Vectorizer
    : Mutator<Vectorizer, VarObj, AddObj, SubObj, MulObj, DivObj, ModObj, FloorDivObj, FloorModObj,
              MinObj, MaxObj, EQObj, NEObj, LTObj, LEObj, GTObj, GEObj, AndObj, OrObj, NotObj,
              SelectObj, CastObj, CallObj, LetObj, BroadcastObj, BufferLoadObj, PrimExprObj,
              BufferStoreObj, IfThenElseObj, ForObj, LetStmtObj, SeqStmtObj, AllocateObj,
              DeclBufferObj, AttrStmtObj, StmtObj> {
  Var var;
  PrimExpr min, lanes;
  int raw_lanes;  // negative for scalable vectors
  bool may_predicate;
  arith::Analyzer* analyzer;
  PrimExpr mask;                                // of the lanes that are active here; undefined: all
  bool failed = false;                          // what was just rewritten has no vector form
  std::unordered_map<const VarObj*, Var> lets;  // scalar -> vector
  std::unordered_map<const VarObj*, bool> private_data;  // memory each lane has its own element of

  // ---- expressions ----------------------------------------------------------------------------
  bool IsVector(const PrimExpr& e) const { return e.dtype().is_vector(); }
  PrimExpr Widen(const PrimExpr& e) {
    if (e.dtype().raw_lanes() == raw_lanes) return e;
    if (e.dtype().is_scalar()) return Broadcast(e, lanes);
    failed = true;  // a vector of another length was there before
    return e;
  }
  bool DependsOnLane(const ObjectRef& node) const {
    return UsesVar(node, [&](const VarObj* v) {
      return v == var.get() || lets.count(v) || private_data.count(v);
    });
  }
  ObjectRef Fail(const Object* op) {
    failed = true;
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const VarObj* op) {
    if (op == var.get()) return Ramp(min, MakeConst(min.dtype(), 1), lanes);
    auto it = lets.find(op);
    return it == lets.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second);
  }
  template <class Ref, class N>
  ObjectRef Binary(const N* op) {
    PrimExpr a = Mutate(op->a), b = Mutate(op->b);
    if (a.same_as(op->a) && b.same_as(op->b)) return ffi::GetRef<ObjectRef>(op);
    if (!IsVector(a) && !IsVector(b)) return Ref(a, b, op->span);
    auto *ra = a.template as<RampObj>(), *rb = b.template as<RampObj>();
    bool a_scalar = !IsVector(a), b_scalar = !IsVector(b);
    if constexpr (std::is_same_v<Ref, Add>) {
      if (ra && rb) return Ramp(ra->base + rb->base, ra->stride + rb->stride, lanes);
      if (ra && b_scalar) return Ramp(ra->base + b, ra->stride, lanes);
      if (a_scalar && rb) return Ramp(a + rb->base, rb->stride, lanes);
    } else if constexpr (std::is_same_v<Ref, Sub>) {
      if (ra && rb) return Ramp(ra->base - rb->base, ra->stride - rb->stride, lanes);
      if (ra && b_scalar) return Ramp(ra->base - b, ra->stride, lanes);
      if (a_scalar && rb) return Ramp(a - rb->base, MakeZero(a.dtype()) - rb->stride, lanes);
    } else if constexpr (std::is_same_v<Ref, Mul>) {
      if (ra && b_scalar) return Ramp(ra->base * b, ra->stride * b, lanes);
      if (a_scalar && rb) return Ramp(a * rb->base, a * rb->stride, lanes);
    } else if constexpr (std::is_same_v<Ref, FloorDiv> || std::is_same_v<Ref, FloorMod>) {
      // No lane leaves the period of the divisor that the first one is in.
      int64_t stride = ra ? AsConstInt(ra->stride).value_or(0) : 0;
      int64_t divisor = b_scalar ? AsConstInt(b).value_or(0) : 0;
      if (raw_lanes > 0 && stride > 0 && divisor > 0) {
        int64_t span = stride * raw_lanes;
        arith::ModularSet base = analyzer->modular_set(ra->base);
        if (divisor % span == 0 && base->coeff % span == 0 && base->base % span < stride) {
          if constexpr (std::is_same_v<Ref, FloorDiv>)
            return Broadcast(floordiv(ra->base, b), lanes);
          else
            return Ramp(floormod(ra->base, b), ra->stride, lanes);
        }
      }
    }
    if constexpr (std::is_same_v<Ref, LT> || std::is_same_v<Ref, LE> || std::is_same_v<Ref, GT> ||
                  std::is_same_v<Ref, GE>) {
      constexpr bool swaps = std::is_same_v<Ref, GT> || std::is_same_v<Ref, GE>;
      constexpr bool is_strict = std::is_same_v<Ref, LT> || std::is_same_v<Ref, GT>;
      if (ra && b_scalar && IsUniform(ra, b, swaps ? !is_strict : is_strict))
        return Ref(ra->base, b, op->span);
      if (a_scalar && rb && IsUniform(rb, a, swaps ? is_strict : !is_strict))
        return Ref(a, rb->base, op->span);
    }
    a = Widen(a);
    b = Widen(b);
    return failed ? ffi::GetRef<ObjectRef>(op) : ObjectRef(Ref(a, b, op->span));
  }
  /// Whether all lanes of a ramp are on the same side of a limit: below it or, if not
  /// `is_below`, at most it.
  bool IsUniform(const RampObj* ramp, const PrimExpr& limit, bool is_below) {
    int64_t stride = AsConstInt(ramp->stride).value_or(0);
    if (raw_lanes <= 0 || stride <= 0 || !limit.dtype().is_index()) return false;
    // Vectors lie one after another from the limit on.
    PrimExpr distance = limit - ramp->base;
    if (!is_below) distance = distance + MakeConst(distance.dtype(), 1);
    arith::ModularSet set = analyzer->modular_set(analyzer->Simplify(distance));
    return set->coeff % (stride * raw_lanes) == 0 && set->base % (stride * raw_lanes) == 0;
  }
#define BINARY_HANDLER(Name, ...) \
  ObjectRef Rewrite(const Name##Obj* op) { return Binary<Name>(op); }
  TVM_BINARY_NODES(BINARY_HANDLER)
#undef BINARY_HANDLER
  ObjectRef Rewrite(const NotObj* op) {
    PrimExpr a = Mutate(op->a);
    return a.same_as(op->a) ? ffi::GetRef<ObjectRef>(op) : ObjectRef(Not(a, op->span));
  }
  ObjectRef Rewrite(const CastObj* op) {
    PrimExpr value = Mutate(op->value);
    if (value.same_as(op->value)) return ffi::GetRef<ObjectRef>(op);
    // Also into fewer bits, which the type of an index has only where its values fit.
    if (auto* ramp = value.as<RampObj>(); ramp && op->dtype.is_int() &&
                                          (op->dtype.bits() > value.dtype().bits() ||
                                           (op->dtype.bits() == 32 && value.dtype().is_int()))) {
      return Ramp(cast(op->dtype, ramp->base), cast(op->dtype, ramp->stride), lanes);
    }
    return Cast(op->dtype.with_lanes(value.dtype().raw_lanes()), value, op->span);
  }
  /// Both sides may be evaluated, so loads that are not certainly inside their buffers need a
  /// guard.
  ObjectRef Rewrite(const SelectObj* op) {
    return Conditional(op, op->condition, op->true_value, op->false_value, true);
  }
  ObjectRef Rewrite(const LetObj* op) {
    PrimExpr value = Mutate(op->value);
    if (IsVector(value)) {
      Var wide = op->var.CopyWithDType(value.dtype());
      lets.emplace(op->var.get(), wide);
      PrimExpr body = Mutate(op->body);
      lets.erase(op->var.get());
      return Let(wide, value, body, op->span);
    }
    PrimExpr body = Mutate(op->body);
    if (value.same_as(op->value) && body.same_as(op->body)) return ffi::GetRef<ObjectRef>(op);
    return Let(op->var, value, body, op->span);
  }
  ObjectRef Rewrite(const BroadcastObj* op) {
    return DependsOnLane(ffi::GetRef<ObjectRef>(op)) ? Fail(op) : ffi::GetRef<ObjectRef>(op);
  }
  /// Whatever has no rule: fine as long as it is the same in all lanes.
  ObjectRef Rewrite(const PrimExprObj* op) {
    return DependsOnLane(ffi::GetRef<ObjectRef>(op)) ? Fail(op) : ffi::GetRef<ObjectRef>(op);
  }
  /// Words read from memory as elements next to each other are, in lanes next to each other, a
  /// longer run of these; undefined for anything else.
  PrimExpr Words(const CallObj* op) {
    auto* load = op->args[0].as<BufferLoadObj>();
    auto* word = load ? load->indices.back().as<RampObj>() : nullptr;
    if (!word || !op->dtype.is_scalar() || load->predicate.has_value() || mask.defined() ||
        raw_lanes < 0 || load->indices.size() != 1 || !IsOne(word->stride))
      return PrimExpr();
    int count = load->dtype.lanes();
    PrimExpr base = Mutate(word->base);
    auto* bases = base.as<RampObj>();
    if (!bases || !IsConstInt(bases->stride, count)) return PrimExpr();
    Ramp all(bases->base, word->stride, IntImm::Int32(count * raw_lanes));
    return reinterpret(op->dtype.with_lanes(raw_lanes),
                       BufferLoad(Mutate(load->buffer), {all}, {}, load->span), op->span);
  }
  ObjectRef Rewrite(const CallObj* op) {
    if (op->Is(builtin::if_then_else()))
      return Conditional(op, op->args[0], op->args[1], op->args[2], false);
    if (op->Is(builtin::reinterpret())) {
      if (PrimExpr words = Words(op); words.defined()) return words;
    }
    if (op->Is(builtin::likely()) && DependsOnLane(op->args[0])) return Mutate(op->args[0]);
    CallEffectKind effect = EffectOf(op->op);
    if (effect > CallEffectKind::kReadState) return Fail(op);  // has to happen once for each lane
    bool is_vector = false;
    Array<PrimExpr> args = op->args.Map([&](const PrimExpr& e) {
      PrimExpr arg = Mutate(e);
      is_vector |= IsVector(arg) && !IsVector(e);
      return arg;
    });
    if (args.same_as(op->args)) return ffi::GetRef<ObjectRef>(op);
    if (failed) return ffi::GetRef<ObjectRef>(op);
    if (is_vector && (!IsLaneWise(op->op) || !op->dtype.is_scalar())) return Fail(op);
    if (is_vector) args = args.Map([&](const PrimExpr& e) { return Widen(e); });
    Call call = ffi::GetRef<Call>(op);
    auto* n = Edit(&call);
    n->args = args;
    if (is_vector) n->dtype = op->dtype.with_lanes(raw_lanes);
    return call;
  }
  /// With a vector condition both sides are evaluated: loads that may be outside get the condition.
  ObjectRef Conditional(const PrimExprObj* op, const PrimExpr& condition, const PrimExpr& on_true,
                        const PrimExpr& on_false, bool is_select) {
    PrimExpr cond = Mutate(condition);
    if (!IsVector(cond)) {
      PrimExpr t = Mutate(on_true), f = Mutate(on_false);
      if (cond.same_as(condition) && t.same_as(on_true) && f.same_as(on_false))
        return ffi::GetRef<ObjectRef>(op);
      if (IsVector(t) || IsVector(f)) {
        t = Widen(t);
        f = Widen(f);
      }
      if (failed) return ffi::GetRef<ObjectRef>(op);
      if (is_select && !IsVector(t)) return Select(cond, t, f, op->span);
      return if_then_else(cond, t, f, op->span);
    }
    cond = Widen(cond);
    auto side = [&](const PrimExpr& e, const PrimExpr& when) -> PrimExpr {
      if (SideEffect(e) > CallEffectKind::kReadState) failed = true;
      bool is_safe = !HasLoad(e, [&](const BufferLoadObj* load) { return !IsSafe(load); });
      if (!is_safe && (!may_predicate || HasUniformLoad(e))) failed = true;
      if (failed) return e;
      PrimExpr outer = mask;
      if (!is_safe) mask = mask.defined() ? mask && when : when;
      PrimExpr result = Widen(Mutate(e));
      mask = outer;
      return result;
    };
    PrimExpr t = side(on_true, cond), f = side(on_false, Not(cond));
    if (failed) return ffi::GetRef<ObjectRef>(op);
    return Select(cond, t, f, op->span);
  }
  bool IsSafe(const BufferLoadObj* load) const {
    return IsInBounds(analyzer, load->buffer, load->indices);
  }
  template <class F>
  static bool HasLoad(const ObjectRef& node, F&& pred) {
    bool found = false;
    PostOrderVisit(node, [&](const ObjectRef& n) {
      auto* load = n.as<BufferLoadObj>();
      found = found || (load && pred(load));
    });
    return found;
  }
  /// Whether a load's address is the same in all lanes: such a load would not stay under a vector
  /// condition, and it may be wrong to do it where no lane is active.
  bool HasUniformLoad(const ObjectRef& node) const {
    return HasLoad(node, [&](const BufferLoadObj* load) {
      bool varies = private_data.count(load->buffer->data.get());
      for (const PrimExpr& i : load->indices) varies |= DependsOnLane(i);
      return !varies && !IsSafe(load);
    });
  }
  /// Indices with at most the last one a vector; nothing when that is not so.
  std::optional<Array<PrimExpr>> Indices(const Buffer& buffer, const Array<PrimExpr>& indices) {
    Array<PrimExpr> result = indices.Map([&](const PrimExpr& e) { return Mutate(e); });
    for (size_t i = 0; i + 1 < result.size(); ++i) {
      if (IsVector(result[i])) failed = true;
    }
    if (private_data.count(buffer->data.get())) {
      if (result.size() != 1) failed = true;
      if (failed) return std::nullopt;
      PrimExpr i = result[0];
      if (auto* ramp = i.as<RampObj>()) {
        result.Set(0, Ramp(ramp->base * raw_lanes, ramp->stride * raw_lanes + 1, lanes));
      } else if (!IsVector(i)) {
        result.Set(0, Ramp(i * MakeConst(i.dtype(), raw_lanes), MakeConst(i.dtype(), 1), lanes));
      } else {
        result.Set(
            0, i * MakeConst(i.dtype(), raw_lanes) +
                   Ramp(MakeZero(i.dtype().element()), MakeConst(i.dtype().element(), 1), lanes));
      }
    }
    // A vector that was there before does not mix with this loop.
    for (size_t i = 0; i < result.size(); ++i) {
      if (IsVector(indices[i]) && DependsOnLane(indices[i])) failed = true;
    }
    if (!buffer->dtype.is_scalar() && !result.empty() && IsVector(result.back())) failed = true;
    if (failed) return std::nullopt;
    return result;
  }
  Optional<PrimExpr> Predicate(const Optional<PrimExpr>& own, const Array<PrimExpr>& indices) {
    if (own.has_value() && DependsOnLane(own.value())) failed = true;
    if (!mask.defined() || !IsVector(indices.back())) return own;
    if (own.has_value()) failed = true;
    return mask;
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    auto indices = Indices(op->buffer, op->indices);
    if (!indices) return ffi::GetRef<ObjectRef>(op);
    Optional<PrimExpr> predicate = Predicate(op->predicate, *indices);
    if (failed) return ffi::GetRef<ObjectRef>(op);
    if (!op->predicate.has_value() && predicate.has_value() && IsSafe(op)) predicate = std::nullopt;
    if (indices->same_as(op->indices) && !mask.defined()) return MapChildren(op, *this);
    return BufferLoad(Mutate(op->buffer), *indices, predicate, op->span);
  }

  // ---- statements -----------------------------------------------------------------------------
  /// `stmt`, or the original one in a serial loop over the lanes when there is no vector form. Not
  /// possible where it needs a let or memory that exists only as a vector: then the statement
  /// around it is tried.
  ObjectRef Resolve(const StmtObj* op, const ObjectRef& stmt) {
    if (!failed) return stmt;
    bool needs_vector = UsesVar(ffi::GetRef<ObjectRef>(op), [&](const VarObj* v) {
      return lets.count(v) || private_data.count(v);
    });
    if (mask.defined() || needs_vector) return ffi::GetRef<ObjectRef>(op);
    failed = false;
    Var lane = var.CopyWithSuffix("_s");
    PrimExpr value = min + lane;
    Stmt body = Substitute(ffi::GetRef<Stmt>(op),
                           [&](const Var& v) { return v.same_as(var) ? value : PrimExpr(); });
    return For(lane, MakeZero(var.dtype()), cast(var.dtype(), lanes), ForKind::kSerial, body);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    PrimExpr value = Mutate(op->value);
    auto indices = Indices(op->buffer, op->indices);
    Optional<PrimExpr> predicate = op->predicate;
    if (!failed) {
      predicate = Predicate(op->predicate, *indices);
      bool is_uniform = indices->empty() || !IsVector(indices->back());
      bool reads_itself = false;
      PostOrderVisit(op->value, [&](const ObjectRef& n) {
        auto* load = n.as<BufferLoadObj>();
        reads_itself |= load && load->buffer->data.same_as(op->buffer->data);
      });
      // One place written by all lanes: only their order gives the right result.
      if (is_uniform && (IsVector(value) || reads_itself || mask.defined())) failed = true;
      if (!is_uniform) value = Widen(value);
    }
    if (failed) return Resolve(op, ffi::GetRef<ObjectRef>(op));
    if (indices->same_as(op->indices) && value.same_as(op->value)) return MapChildren(op, *this);
    return BufferStore(Mutate(op->buffer), value, *indices, predicate, op->span);
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    PrimExpr cond = Mutate(op->condition);
    if (!failed && !IsVector(cond)) {
      Stmt then_case = Mutate(op->then_case);
      Optional<Stmt> else_case = op->else_case;
      if (else_case.has_value() && !failed) else_case = Mutate(else_case.value());
      return Resolve(op, failed ? ffi::GetRef<ObjectRef>(op)
                                : ObjectRef(IfThenElse(cond, then_case, else_case, op->span)));
    }
    if (!may_predicate) failed = true;
    Stmt result = ffi::GetRef<Stmt>(op);
    if (!failed) {
      cond = Widen(cond);
      PrimExpr outer = mask;
      auto branch = [&](const Stmt& body, const PrimExpr& when) -> Stmt {
        PrimExpr any;  // holds where a lane is active
        if (HasUniformLoad(body)) {
          any = AnyLane(when);
          if (!any.defined()) failed = true;
        }
        if (failed) return body;
        mask = outer.defined() ? outer && when : when;
        Stmt masked = Mutate(body);
        mask = outer;
        return any.defined() ? IfThenElse(any, masked) : masked;
      };
      Array<Stmt> seq{branch(op->then_case, cond)};
      if (op->else_case.has_value()) seq.push_back(branch(op->else_case.value(), Not(cond)));
      result = SeqStmt::Flatten(seq);
    }
    return Resolve(op, result);
  }
  /// A scalar condition that holds where any lane of `cond` does: for [b, b + s, …] < n that is the
  /// first lane's.
  PrimExpr AnyLane(const PrimExpr& cond) {
    auto* less = cond.as<LTObj>();
    if (!less) return PrimExpr();
    auto* ramp = less->a.as<RampObj>();
    auto* limit = less->b.as<BroadcastObj>();
    auto stride = ramp ? AsConstInt(ramp->stride) : std::nullopt;
    if (!limit || !stride || *stride < 0) return PrimExpr();
    return ramp->base < limit->value;
  }
  ObjectRef Rewrite(const ForObj* op) {
    PrimExpr begin = Mutate(op->min), extent = Mutate(op->extent);
    // A jump would leave the loop over lanes around it: each lane gets the loop for itself.
    if (IsVector(begin) || IsVector(extent) || !op->HasTrivialStep() || HasJumps(op->body))
      failed = true;
    if (failed) return Resolve(op, ffi::GetRef<ObjectRef>(op));
    Stmt body = Mutate(op->body);
    if (failed) return Resolve(op, ffi::GetRef<ObjectRef>(op));
    For loop = ffi::GetRef<For>(op);
    auto* n = Edit(&loop);
    n->min = begin;
    n->extent = extent;
    n->body = body;
    return loop;
  }
  ObjectRef Rewrite(const LetStmtObj* op) {
    PrimExpr value = Mutate(op->value);
    if (failed) return Resolve(op, ffi::GetRef<ObjectRef>(op));
    Var bound = op->var;
    if (IsVector(value) && !IsVector(op->value)) {
      bound = op->var.CopyWithDType(value.dtype());
      lets.emplace(op->var.get(), bound);
    }
    Stmt body = Mutate(op->body);
    lets.erase(op->var.get());
    if (failed) return Resolve(op, ffi::GetRef<ObjectRef>(op));
    return LetStmt(bound, value, body, op->span);
  }
  ObjectRef Rewrite(const SeqStmtObj* op) {
    Array<Stmt> seq = op->seq.Map([&](const Stmt& s) { return failed ? s : Mutate(s); });
    return Resolve(op, failed ? ffi::GetRef<ObjectRef>(op) : ObjectRef(SeqStmt::Flatten(seq)));
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    if (raw_lanes < 0 || op->extents.size() != 1 || DependsOnLane(op->extents[0]) ||
        mask.defined()) {
      failed = true;
      return Resolve(op, ffi::GetRef<ObjectRef>(op));
    }
    private_data[op->buffer_var.get()] = true;
    Stmt body = Mutate(op->body);
    private_data.erase(op->buffer_var.get());
    if (failed) return Resolve(op, ffi::GetRef<ObjectRef>(op));
    PrimExpr extent = op->extents[0] * MakeConst(op->extents[0].dtype(), raw_lanes);
    return Allocate(op->buffer_var, op->dtype, {extent}, op->condition, body, op->annotations,
                    op->span);
  }
  ObjectRef Rewrite(const DeclBufferObj* op) {
    if (private_data.count(op->buffer->data.get())) {
      Buffer expanded = op->buffer;
      auto* n = Edit(&expanded);
      if (n->shape.size() != 1) {
        failed = true;
        return Resolve(op, ffi::GetRef<ObjectRef>(op));
      }
      n->shape = {n->shape[0] * MakeConst(n->shape[0].dtype(), raw_lanes)};
      Remap(op->buffer, expanded);
    }
    Stmt body = Mutate(op->body);
    if (failed) return Resolve(op, ffi::GetRef<ObjectRef>(op));
    return DeclBuffer(Mutate(op->buffer), body, op->span);
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    if (DependsOnLane(op->value)) failed = true;
    Stmt body = failed ? op->body : Mutate(op->body);
    if (failed) return Resolve(op, ffi::GetRef<ObjectRef>(op));
    return AttrStmt(op->node, op->attr_key, op->value, body, op->span);
  }
  /// Calls for their effect, assertions, while loops: lane by lane.
  ObjectRef Rewrite(const StmtObj* op) {
    if (IsNothing(ffi::GetRef<Stmt>(op))) return ffi::GetRef<ObjectRef>(op);
    failed = true;
    return Resolve(op, ffi::GetRef<ObjectRef>(op));
  }
};

struct LoopVectorizer : AnalyzedStmtMutator<LoopVectorizer> {
  using Base::Rewrite;
  bool enable, may_predicate = false;

  ObjectRef Rewrite(const ForObj* op) {
    For loop = Any(Base::Rewrite(op)).cast<For>();
    if (op->kind != ForKind::kVectorized) return loop;
    if (!enable || HasJumps(loop->body)) {
      Edit(&loop)->kind = ForKind::kSerial;
      return loop;
    }
    auto extent = AsConstInt(loop->extent);
    auto factor = ScalableFactor(loop->extent);
    if ((!extent && !factor) || !loop->HasTrivialStep()) {
      TVM_FFI_THROW(ValueError)
          << "VectorizeLoop: expected a constant extent (or one of vscale) of the vectorized loop "
          << loop->loop_var->name_hint << ", got " << loop->extent.GetTypeKey();
    }
    if (extent && *extent < 2) {
      if (*extent < 1) return Evaluate::Nothing();
      return Substitute(loop->body, [&](const Var& v) {
        return v.same_as(loop->loop_var) ? loop->min : PrimExpr();
      });
    }
    int64_t count = extent ? *extent : *factor;
    if (count > INT16_MAX || (factor && count < 2)) {
      TVM_FFI_THROW(ValueError) << "VectorizeLoop: expected at most " << INT16_MAX
                                << " lanes for the loop " << loop->loop_var->name_hint << ", got "
                                << count;
    }
    Vectorizer vectorize;
    vectorize.var = loop->loop_var;
    vectorize.min = loop->min;
    vectorize.lanes = extent ? PrimExpr(static_cast<int32_t>(count)) : loop->extent;
    vectorize.raw_lanes = static_cast<int>(extent ? count : -count);
    vectorize.may_predicate = may_predicate;
    vectorize.analyzer = &analyzer;
    return vectorize.Mutate(loop->body);
  }
};
}  // namespace

PrimFunc VectorizeLoop(PrimFunc func, bool enable_vectorize) {
  LoopVectorizer vectorize;
  vectorize.LearnParams(func);
  vectorize.enable = enable_vectorize;
  auto config = ::tvm::transform::PassContext::Current()->GetConfig<Optional<bool>>(
      "tir.enable_buffer_level_predication");
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  vectorize.may_predicate =
      config.value_or(target.has_value() && Backend::Of(target.value()).takes_predicates);
  return RewriteBody(std::move(func), vectorize);
}
TVM_PASS(tir, VectorizeLoop,
         R"(Makes all iterations of vectorized loops operations on vectors.

before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.vectorized(16):
        B[i] = A[i] * 2.0
after:
    B[0:16] = A[0:16] * T.Broadcast(T.float32(2), 16)

With tir.enable_buffer_level_predication, a condition that differs between lanes becomes the predicate of loads and stores; otherwise such a statement runs lane by lane. Without enable_vectorize the loops become serial.)",
         Arg("enable_vectorize", true))
}  // namespace tvm::tir
