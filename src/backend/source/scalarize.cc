// SPDX-License-Identifier: Apache-2.0
// Vectors, which C does not have, become loops over their lanes.
//
//   B[ramp(8*j, 1, 8)] = A[ramp(8*j, 1, 8)] * broadcast(x, 8)
//     ->  for lane in range(8): B[8*j + lane] = A[8*j + lane] * x
//
// All lanes of a value are read before the first one is stored: a store that changes what its value
// reads goes through a temporary. A vector that is bound by a statement is kept in memory. Where
// whole vectors can be moved, the lanes are computed between moves from and to such temporaries.
// Statements that a language can write with vectors stay as they are: compilers keep such vectors
// in registers from one iteration to the next, the results of loops over lanes go through memory.
#include <bit>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "backend/source/function.h"
#include "tir/any_stmt.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::codegen::source {
namespace {
constexpr DataType kInt32 = DataType::Int(32);

bool IsVector(const PrimExpr& e) { return e.dtype().is_vector(); }

/// Whether an expression moves values between lanes: then lanes are written out one by one, since
/// the lane that a value comes from must be known.
bool MovesLanes(const ObjectRef& node) {
  bool found = false;
  PostOrderVisit(node, [&](const ObjectRef& n) {
    if (n.as<ShuffleObj>()) found = true;
    auto* call = n.as<CallObj>();
    if (!call) return;
    if (call->Is(builtin::vectorlow()) || call->Is(builtin::vectorhigh()) ||
        call->Is(builtin::vectorcombine())) {
      found = true;
    }
    if (call->Is(builtin::reinterpret()) && call->args[0].dtype().lanes() != call->dtype.lanes())
      found = true;
  });
  return found;
}
bool Loads(const ObjectRef& node, const Var& data) {
  bool found = false;
  PostOrderVisit(node, [&](const ObjectRef& n) {
    auto* load = n.as<BufferLoadObj>();
    found |= load && load->buffer->data.same_as(data);
  });
  return found;
}

/// The memory that a vector access touches is one run of elements: their byte alignment, else 0.
int64_t AlignmentOf(arith::Analyzer& analyzer, const Buffer& buffer,
                    const Array<PrimExpr>& indices) {
  auto* ramp = indices.size() == 1 ? indices[0].as<RampObj>() : nullptr;
  int64_t bits = buffer->dtype.bits();
  if (!ramp || !IsConstInt(ramp->stride, 1) || !buffer->dtype.is_scalar() || bits % 8 != 0 ||
      ramp->dtype.is_scalable() || !IsZero(buffer->elem_offset)) {
    return 0;
  }
  auto multiple = analyzer.modular_set(ramp->base);
  int64_t elements = std::gcd(multiple->coeff, multiple->base);
  int64_t bytes = elements == 0 ? buffer->data_alignment : elements * (bits / 8);
  return std::gcd(bytes, buffer->data_alignment);
}

struct Scalarizer
    : Mutator<Scalarizer, LetObj, ShuffleObj, CallObj, RampObj, BroadcastObj, VarObj, BufferObj,
              BufferLoadObj, BufferStoreObj, LetStmtObj, EvaluateObj, AllocateObj> {
  /// A vector variable: where its lanes are.
  struct Bound {
    PrimExpr value;  // recomputed for a lane, unless
    PrimExpr lane;   // it is this one,
    PrimExpr held;   // which is held here, or
    Buffer memory;   // all lanes are in memory.
  };
  const FileWriter& file;
  bool keep_moves;
  int vector_bits;
  Scalarizer(const FileWriter& file, Vectors vectors)
      : file(file), keep_moves(vectors.moves), vector_bits(vectors.bits) {}
  [[noreturn]] void Unsupported(const std::string& what, const Optional<Span>& span = {}) const {
    file.Unsupported(what, span);
  }
  arith::Analyzer analyzer;  // knows the bound variables
  std::unordered_map<const Object*, Bound> bound;
  std::vector<std::pair<Var, PrimExpr>> once;  // scalars with effects: computed before the lanes

  // ---- expressions ------------------------------------------------------------------------------
  /// The value of lane `lane` (int32) of `e`; of a scalar, the scalar.
  PrimExpr Lane(const PrimExpr& e, const PrimExpr& lane) {
    if (!IsVector(e)) return Mutate(e);
    DataType t = e.dtype().element();
    if (e.dtype().is_scalable()) Unsupported("vectors of a length that only the run knows");
    if (auto* v = e.as<VarObj>()) return LaneOfVar(v, lane);
    if (auto* r = e.as<RampObj>()) {
      PrimExpr stride = Mutate(r->stride);
      return Mutate(r->base) + (IsConstInt(stride, 1) ? cast(t, lane) : cast(t, lane) * stride);
    }
    if (auto* b = e.as<BroadcastObj>()) return LaneOfBroadcast(b);
    if (auto* c = e.as<CastObj>()) return Cast(t, Lane(c->value, lane), c->span);
    if (auto* s = e.as<SelectObj>()) {
      PrimExpr cond = Lane(s->condition, lane), yes = Lane(s->true_value, lane);
      return Select(cond, yes, Lane(s->false_value, lane), s->span);
    }
    if (auto* n = e.as<NotObj>()) return Not(Lane(n->a, lane), n->span);
    if (auto* l = e.as<LetObj>()) return LaneOfLet(l, lane);
    if (auto* l = e.as<BufferLoadObj>()) return LaneOfLoad(l, lane);
    if (auto* s = e.as<ShuffleObj>()) return LaneOfShuffle(s, Constant(lane));
    if (auto* c = e.as<CallObj>()) return LaneOfCall(c, lane);
#define BINARY(Name, ...) \
  if (auto* n = e.as<Name##Obj>()) return Name(Lane(n->a, lane), Lane(n->b, lane), n->span)
    TVM_BINARY_NODES(BINARY);
#undef BINARY
    Unsupported("a vector of the form " + std::string(String(e->GetTypeKey())), e->span);
  }
  int64_t Constant(const PrimExpr& lane) {
    auto value = AsConstInt(lane);
    if (!value) Unsupported("expected a constant lane of a shuffled vector");
    return *value;
  }
  PrimExpr LaneOfVar(const VarObj* v, const PrimExpr& lane) {
    auto it = bound.find(v);
    if (it == bound.end()) {
      Unsupported("the vector " + std::string(v->name_hint) + " as a parameter of a function");
    }
    Bound b = it->second;
    if (b.memory.defined()) return BufferLoad(b.memory, {lane});
    if (b.held.defined() && ExprDeepEqual(b.lane, lane)) return b.held;
    return Lane(b.value, lane);
  }
  PrimExpr LaneOfBroadcast(const BroadcastObj* b) {
    PrimExpr value = Mutate(b->value);
    if (SideEffect(value) <= CallEffectKind::kReadState) return value;
    once.emplace_back(Var("scalar", value.dtype()), value);
    return once.back().first;
  }
  PrimExpr LaneOfLet(const LetObj* op, const PrimExpr& lane) {
    if (!IsVector(op->value)) return Let(op->var, Mutate(op->value), Lane(op->body, lane));
    PrimExpr value = Lane(op->value, lane);
    Var held(op->var->name_hint, value.dtype());
    bound[op->var.get()] = {op->value, lane, held, {}};
    return Let(held, value, Lane(op->body, lane), op->span);
  }
  PrimExpr LaneOfLoad(const BufferLoadObj* op, const PrimExpr& lane) {
    PrimExpr load =
        BufferLoad(Mutate(op->buffer), {ElementIndex(op->buffer, op->indices, lane)}, {}, op->span);
    if (!op->predicate) return load;
    return if_then_else(Lane(*op->predicate, lane), load, MakeZero(load.dtype()));
  }
  /// Where lane `lane` of a vector access is in the buffer of scalars.
  PrimExpr ElementIndex(const Buffer& buffer, const Array<PrimExpr>& indices,
                        const PrimExpr& lane) {
    if (indices.size() != 1) {
      Unsupported("expected FlattenBuffer to leave one index of " + std::string(buffer->name) +
                  ", got " + std::to_string(indices.size()));
    }
    int width = buffer->dtype.lanes();
    if (width == 1) return Lane(indices[0], lane);
    PrimExpr element = floordiv(lane, PrimExpr(width)), part = floormod(lane, PrimExpr(width));
    PrimExpr index = Lane(indices[0], element);
    return index * MakeConst(index.dtype(), width) + cast(index.dtype(), part);
  }
  PrimExpr LaneOfShuffle(const ShuffleObj* op, int64_t lane) {
    auto index = AsConstInt(op->indices[static_cast<size_t>(lane)]);
    if (!index) Unsupported("expected constant indices of a shuffle", op->span);
    for (const PrimExpr& v : op->vectors) {
      int64_t lanes = v.dtype().lanes();
      if (*index < lanes) return Lane(v, PrimExpr(static_cast<int>(*index)));
      *index -= lanes;
    }
    Unsupported("a shuffle index out of range", op->span);
  }
  PrimExpr LaneOfCall(const CallObj* op, const PrimExpr& lane) {
    DataType t = op->dtype.element();
    auto moved = [&](int64_t offset) {
      int64_t from = Constant(lane) + offset;
      int64_t lanes = op->args[0].dtype().lanes();
      size_t part = static_cast<size_t>(from / lanes);
      return Lane(op->args[part], PrimExpr(static_cast<int>(from % lanes)));
    };
    if (op->Is(builtin::vectorlow()) || op->Is(builtin::vectorcombine())) return moved(0);
    if (op->Is(builtin::vectorhigh())) return moved(op->dtype.lanes());
    if (op->Is(builtin::get_active_lane_mask())) {
      // base + lane < limit without overflow: the difference of what is in order fits 64 bits
      Var base("base", op->args[0].dtype()), limit("limit", op->args[1].dtype());
      DataType wide = DataType::UInt(64);
      PrimExpr count = cast(wide, limit) - cast(wide, base);
      PrimExpr active = logical_and(less(base, limit), less(cast(wide, lane), count));
      return Let(base, Mutate(op->args[0]), Let(limit, Mutate(op->args[1]), active));
    }
    if (op->Is(builtin::reinterpret()) && op->args[0].dtype().lanes() != op->dtype.lanes())
      return Regroup(op->args[0], t, Constant(lane));
    if (!IsLaneWise(op->op) && !op->Is(builtin::if_then_else())) {
      auto* named = op->op.as<OpObj>();
      Unsupported(
          "the call of " + std::string(named ? named->name : String("a function")) + " on vectors",
          op->span);
    }
    Array<PrimExpr> args = op->args.Map([&](const PrimExpr& a) { return Lane(a, lane); });
    return Call(t, op->op, args, op->span);
  }
  /// Element `i` of type `t` of the bits of vector (or scalar) `v`, lowest first.
  PrimExpr Regroup(const PrimExpr& v, DataType t, int64_t i) {
    int from = v.dtype().bits(), to = t.bits();
    auto bits = [&](int64_t lane) {
      return reinterpret(DataType::UInt(from), Lane(v, PrimExpr(static_cast<int>(lane))));
    };
    DataType word = DataType::UInt(to);
    if (from >= to) {
      PrimExpr shift = MakeConst(DataType::UInt(from), i * to % from);
      return reinterpret(t, cast(word, shift_right(bits(i * to / from), shift)));
    }
    PrimExpr all = MakeZero(word);
    for (int64_t k = 0; k < to / from; ++k) {
      PrimExpr part = cast(word, bits(i * (to / from) + k));
      all = bitwise_or(all, shift_left(part, MakeConst(word, k * from)));
    }
    return reinterpret(t, all);
  }

  // ---- scalars that come from vectors -----------------------------------------------------------
  ObjectRef Rewrite(const VarObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const RampObj* op) { return Stray(op); }
  ObjectRef Rewrite(const BroadcastObj* op) { return Stray(op); }
  ObjectRef Stray(const PrimExprObj* op) {
    Unsupported("a vector where " + file.language() + " needs a scalar", op->span);
  }
  ObjectRef Rewrite(const LetObj* op) {
    if (!IsVector(op->value)) return MapChildren(op, *this);
    bound[op->var.get()] = {op->value, {}, {}, {}};
    return Mutate(op->body);
  }
  ObjectRef Rewrite(const ShuffleObj* op) { return LaneOfShuffle(op, 0); }
  ObjectRef Rewrite(const CallObj* op) {
    if (op->Is(builtin::reinterpret()) && IsVector(op->args[0]))
      return Regroup(op->args[0], op->dtype, 0);
    if (op->Is(builtin::address_of())) {
      // The address of a vector is that of its first lane.
      auto* load = op->args[0].as<BufferLoadObj>();
      if (load && IsVector(op->args[0])) {
        PrimExpr index = ElementIndex(load->buffer, load->indices, PrimExpr(0));
        return Call(op->dtype, op->op, {BufferLoad(Mutate(load->buffer), {index})}, op->span);
      }
    }
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    BufferLoad load = Below<BufferLoad>(op);
    if (op->predicate) Unsupported("a predicate on a scalar load", op->span);
    return load;
  }
  /// Buffers hold scalars.
  ObjectRef Rewrite(const BufferObj* op) {
    int lanes = op->dtype.lanes();
    Buffer buffer = ffi::GetRef<Buffer>(op);
    if (lanes == 1) return buffer;
    auto* n = Edit(&buffer);
    n->dtype = op->dtype.element();
    n->elem_offset = op->elem_offset * MakeConst(op->elem_offset.dtype(), lanes);
    n->shape = op->shape.Map([&](const PrimExpr& e) { return e * MakeConst(e.dtype(), lanes); });
    return buffer;
  }

  // ---- statements -------------------------------------------------------------------------------
  /// `body(lane)` for every lane.
  template <class F>
  Stmt ForLanes(int lanes, bool unroll, F&& body) {
    if (unroll) {
      Array<Stmt> seq;
      for (int i = 0; i < lanes; ++i) seq.push_back(body(PrimExpr(i)));
      return SeqStmt::Flatten(seq);
    }
    Var lane("lane", kInt32);
    Stmt each = body(lane);
    return For(lane, 0, lanes, keep_moves ? ForKind::kUnrolled : ForKind::kSerial, each);
  }
  static Buffer Temporary(const std::string& name, DataType vector) {
    return Buffer::Decl({PrimExpr(vector.lanes())}, vector.element(), name, "local");
  }
  /// `body` with memory for a vector, which is filled first.
  Stmt WithMemory(const Buffer& memory, const PrimExpr& value, const Stmt& body) {
    return WithMoves(value, [&](const PrimExpr& moved) {
      Stmt fill;
      if (auto* load = IsMove(moved)) {
        fill = BufferStore(memory, ffi::GetRef<PrimExpr>(load), {WholeOf(memory)});
      } else if (PrimExpr whole = Whole(moved); whole.defined()) {
        fill = BufferStore(memory, whole, {WholeOf(memory)});
      } else {
        fill = ForLanes(moved.dtype().lanes(), MovesLanes(moved), [&](const PrimExpr& lane) {
          return BufferStore(memory, Lane(moved, lane), {lane});
        });
      }
      return With(memory, SeqStmt::Flatten({fill, body}));
    });
  }
  static Stmt With(const Buffer& memory, const Stmt& body) {
    return Allocate(memory->data, memory->dtype, memory->shape, PrimExpr(IntImm::Bool(true)), body);
  }

  // ---- arithmetic on whole vectors --------------------------------------------------------------
  /// Whether the language has vectors of the type.
  bool HasVectors(DataType t) const {
    bool is_number = t.is_float() ? t.bits() >= 32 : t.is_integer() && std::has_single_bit(Bits(t));
    return is_number && !t.is_scalable() && t.bits() >= 8 && t.bits() * t.lanes() <= vector_bits &&
           std::has_single_bit(static_cast<unsigned>(t.lanes()));
  }
  static unsigned Bits(DataType t) { return static_cast<unsigned>(t.bits()); }
  /// Whether an access of a vector is one run of memory.
  bool IsRun(const Buffer& buffer, const Array<PrimExpr>& indices) const {
    auto* ramp = indices.size() == 1 ? indices[0].as<RampObj>() : nullptr;
    return ramp && IsConstInt(ramp->stride, 1) && buffer->dtype.is_scalar() &&
           HasVectors(buffer->dtype.with_lanes(ramp->dtype.lanes()));
  }
  Array<PrimExpr> RunOf(const Array<PrimExpr>& indices) {
    auto* ramp = indices[0].as<RampObj>();
    return {Ramp(Mutate(ramp->base), ramp->stride, ramp->lanes, ramp->span)};
  }
  /// The value as the language writes it, or undefined where it goes lane by lane.
  PrimExpr Whole(const PrimExpr& e) {
    size_t before = once.size();
    PrimExpr whole = HasVectors(e.dtype()) ? WholeValue(e) : PrimExpr();
    if (!whole.defined()) once.resize(before);
    return whole;
  }
  PrimExpr WholeValue(const PrimExpr& e) {
    if (auto* v = e.as<VarObj>()) {
      auto it = bound.find(v);
      if (it == bound.end() || !it->second.memory.defined()) return {};
      return BufferLoad(it->second.memory, {WholeOf(it->second.memory)});
    }
    if (auto* b = e.as<BroadcastObj>()) return Broadcast(LaneOfBroadcast(b), b->lanes, b->span);
    if (auto* l = e.as<BufferLoadObj>()) {
      if (l->predicate || !IsRun(l->buffer, l->indices)) return Apart(e);
      return BufferLoad(l->buffer, RunOf(l->indices), {}, l->span);
    }
    auto binary = [&](auto make, const BinaryOpFields* op) -> PrimExpr {
      PrimExpr a = WholeValue(op->a);
      PrimExpr b = a.defined() ? WholeValue(op->b) : PrimExpr();
      return b.defined() ? PrimExpr(make(a, b, op->span)) : PrimExpr();
    };
#define WHOLE(Name) \
  if (auto* op = e.as<Name##Obj>()) return binary([](auto... x) { return Name(x...); }, op)
    WHOLE(Add);
    WHOLE(Sub);
    WHOLE(Mul);
    if (!e.dtype().is_float()) return Apart(e);
    WHOLE(Div);
    WHOLE(Min);
    WHOLE(Max);
#undef WHOLE
    return Apart(e);
  }
  /// A part of a value that is computed lane by lane, in memory of its own before the statement.
  PrimExpr Apart(const PrimExpr& e) {
    if (!parts || !HasVectors(e.dtype())) return {};
    Buffer memory = Temporary("part", e.dtype());
    parts->emplace_back(memory, e);
    return BufferLoad(memory, {WholeOf(memory)});
  }
  std::vector<std::pair<Buffer, PrimExpr>>* parts = nullptr;  // where values may have such
  /// Lanes of a vector from `begin` on, or undefined where it does not consist of such.
  PrimExpr Slice(const PrimExpr& e, int begin, int count) {
    if (auto* r = e.as<RampObj>()) {
      PrimExpr base = r->base + r->stride * MakeConst(r->stride.dtype(), begin);
      return count == 1 ? base : PrimExpr(Ramp(base, r->stride, PrimExpr(count), r->span));
    }
    if (auto* b = e.as<BroadcastObj>()) {
      if (SideEffect(b->value) > CallEffectKind::kReadState) return {};
      return count == 1 ? b->value : PrimExpr(Broadcast(b->value, PrimExpr(count), b->span));
    }
    if (auto* l = e.as<BufferLoadObj>()) {
      if (l->predicate || l->indices.size() != 1 || !l->buffer->dtype.is_scalar()) return {};
      PrimExpr index = Slice(l->indices[0], begin, count);
      return index.defined() ? PrimExpr(BufferLoad(l->buffer, {index}, {}, l->span)) : index;
    }
    auto binary = [&](auto make, const BinaryOpFields* op) -> PrimExpr {
      PrimExpr a = Slice(op->a, begin, count);
      PrimExpr b = a.defined() ? Slice(op->b, begin, count) : PrimExpr();
      return b.defined() ? PrimExpr(make(a, b, op->span)) : PrimExpr();
    };
#define SLICE(Name, ...) \
  if (auto* op = e.as<Name##Obj>()) return binary([](auto... x) { return Name(x...); }, op)
    TVM_BINARY_NODES(SLICE);
#undef SLICE
    return {};
  }
  /// A store of lanes that are no power of two, or more than the language has, as several.
  Stmt InPieces(const BufferStoreObj* op) {
    DataType t = op->value.dtype();
    Array<Stmt> pieces;
    for (int begin = 0, count; begin < t.lanes(); begin += count) {
      count = static_cast<int>(std::bit_floor(static_cast<unsigned>(t.lanes() - begin)));
      while (count > 1 && !HasVectors(t.with_lanes(count))) count /= 2;
      if (begin == 0 && count == 1) return {};
      PrimExpr value = Slice(op->value, begin, count), index = Slice(op->indices[0], begin, count);
      if (!value.defined() || !index.defined()) return {};
      pieces.push_back(BufferStore(op->buffer, value, {index}, {}, op->span));
    }
    return Mutate(SeqStmt::Flatten(pieces));
  }
  /// The store of a run of memory as the language writes it, or undefined.
  Stmt WholeStore(const BufferStoreObj* op, const Buffer& buffer) {
    auto* ramp = op->indices.size() == 1 ? op->indices[0].as<RampObj>() : nullptr;
    if (vector_bits == 0 || op->predicate || !ramp || !IsConstInt(ramp->stride, 1) ||
        !op->buffer->dtype.is_scalar() || ramp->dtype.is_scalable()) {
      return {};
    }
    bool reads = Loads(op->value, op->buffer->data), accumulates = reads && IsOwnElement(op);
    if (!HasVectors(op->value.dtype())) return !reads || accumulates ? InPieces(op) : Stmt();
    // Sums stay in registers, whatever is added to them.
    std::vector<std::pair<Buffer, PrimExpr>> apart;
    auto outer = std::exchange(parts, accumulates ? &apart : nullptr);
    PrimExpr whole = Whole(op->value);
    parts = outer;
    if (!whole.defined()) return {};
    Stmt store = BufferStore(buffer, whole, RunOf(op->indices), {}, op->span);
    for (auto it = apart.rbegin(); it != apart.rend(); ++it)
      store = WithMemory(it->first, it->second, store);
    return store;
  }

  // ---- vectors that are moved as a whole --------------------------------------------------------
  static PrimExpr WholeOf(const Buffer& memory) {
    return Ramp(PrimExpr(0), PrimExpr(1), memory->shape[0]);
  }
  bool CanMove(const Buffer& buffer, const Array<PrimExpr>& indices) {
    return keep_moves && indices[0].dtype().is_vector() &&
           MoveBytes(analyzer, buffer, indices) > buffer->dtype.bits() / 8;
  }
  const BufferLoadObj* IsMove(const PrimExpr& e) {
    auto* load = e.as<BufferLoadObj>();
    return load && !load->predicate && CanMove(load->buffer, load->indices) ? load : nullptr;
  }
  /// Replaces loads that can be moved, and that are evaluated whatever happens, by variables.
  struct MoveFinder : Mutator<MoveFinder, BufferLoadObj, CallObj, LetObj, AndObj, OrObj> {
    Scalarizer* self;
    std::vector<std::pair<Buffer, PrimExpr>> found;
    ObjectRef Rewrite(const BufferLoadObj* op) {
      bool is_early = UsesVar(op->indices[0], [&](const VarObj* v) { return lets.count(v) > 0; });
      if (is_early || !self->IsMove(ffi::GetRef<PrimExpr>(op))) return ffi::GetRef<ObjectRef>(op);
      for (const auto& [memory, load] : found) {
        if (ExprDeepEqual(load, ffi::GetRef<PrimExpr>(op))) return held[memory.get()];
      }
      Buffer memory = Temporary(std::string(op->buffer->name), op->dtype);
      Var var(op->buffer->name, op->dtype);
      self->bound[var.get()] = {{}, {}, {}, memory};
      held[memory.get()] = var;
      found.emplace_back(memory, ffi::GetRef<PrimExpr>(op));
      return var;
    }
    ObjectRef Rewrite(const CallObj* op) {
      // Only one side is evaluated; the arguments of others than functions of lanes are addresses.
      return IsLaneWise(op->op) ? MapChildren(op, *this) : ffi::GetRef<ObjectRef>(op);
    }
    ObjectRef Rewrite(const LetObj* op) {
      lets.insert(op->var.get());
      return MapChildren(op, *this);
    }
    ObjectRef Rewrite(const AndObj* op) { return ffi::GetRef<ObjectRef>(op); }
    ObjectRef Rewrite(const OrObj* op) { return ffi::GetRef<ObjectRef>(op); }
    std::unordered_map<const Object*, Var> held;
    std::unordered_set<const Object*> lets;  // variables that are defined inside of the value
  };
  /// `body(value)`, where loads in the value that can be moved as a whole are, before it.
  template <class F>
  Stmt WithMoves(const PrimExpr& value, F&& body) {
    if (!keep_moves || IsMove(value)) return body(value);
    MoveFinder finder;
    finder.self = this;
    PrimExpr changed = finder.Mutate(value);
    Stmt result = body(changed);
    for (auto it = finder.found.rbegin(); it != finder.found.rend(); ++it)
      result = WithMemory(it->first, it->second, result);
    return result;
  }
  /// `make()` after the scalars it needs.
  template <class F>
  Stmt AfterOnce(F&& make) {
    auto outer = std::exchange(once, {});
    Stmt stmt = make();
    for (auto it = once.rbegin(); it != once.rend(); ++it)
      stmt = LetStmt(it->first, it->second, stmt);
    once = std::move(outer);
    return stmt;
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    int lanes = op->value.dtype().lanes();
    if (!IsVector(op->value)) {
      if (op->predicate) Unsupported("a predicate on a scalar store", op->span);
      return MapChildren(op, *this);
    }
    if (auto* call = op->value.as<CallObj>();
        keep_moves && call && call->Is(builtin::if_then_else()) && !IsVector(call->args[0])) {
      auto store = [&](const PrimExpr& value) {
        return BufferStore(op->buffer, value, op->indices, op->predicate, op->span);
      };
      return Mutate(IfThenElse(call->args[0], store(call->args[1]), store(call->args[2])));
    }
    Buffer buffer = Mutate(op->buffer);
    bool unroll = MovesLanes(op->value);
    return AfterOnce([&]() -> Stmt {
      if (Stmt store = WholeStore(op, buffer); store.defined()) return store;
      // What the store itself would change is kept first.
      std::vector<std::pair<Buffer, PrimExpr>> kept;
      auto keep = [&](const PrimExpr& e, const char* name) -> PrimExpr {
        if (!IsVector(e) || !Loads(e, op->buffer->data)) return e;
        Buffer memory = Temporary(name, e.dtype());
        Var held(name, e.dtype());
        bound[held.get()] = {{}, {}, {}, memory};
        kept.emplace_back(memory, e);
        return held;
      };
      // An element that only its own new value depends on needs no copy.
      bool same_place = !unroll && op->buffer->dtype.is_scalar() && IsOwnElement(op);
      PrimExpr whole = same_place ? op->value : keep(op->value, "value");
      Array<PrimExpr> indices{keep(op->indices[0], "index")};
      Optional<PrimExpr> predicate;
      if (op->predicate) predicate = keep(*op->predicate, "predicate");
      // A vector that goes to one run of memory is put together first.
      bool moves_out = !predicate && CanMove(op->buffer, op->indices);
      if (moves_out && IsMove(whole)) return BufferStore(buffer, whole, op->indices, {}, op->span);
      Stmt store = WithMoves(whole, [&](const PrimExpr& value) -> Stmt {
        bool moves = MovesLanes(value) || MovesLanes(indices[0]);
        Buffer result = Temporary("result", value.dtype());
        Stmt each = ForLanes(lanes, moves, [&](const PrimExpr& lane) -> Stmt {
          PrimExpr one_value = Lane(value, lane);
          if (moves_out) return BufferStore(result, one_value, {lane}, {}, op->span);
          PrimExpr index = ElementIndex(op->buffer, indices, lane);
          Stmt one = BufferStore(buffer, one_value, {index}, {}, op->span);
          return predicate ? Stmt(IfThenElse(Lane(*predicate, lane), one)) : one;
        });
        if (!moves_out) return each;
        PrimExpr all = BufferLoad(result, {WholeOf(result)});
        return With(result, SeqStmt::Flatten({each, BufferStore(buffer, all, op->indices)}));
      });
      for (auto it = kept.rbegin(); it != kept.rend(); ++it)
        store = WithMemory(it->first, it->second, store);
      return store;
    });
  }
  /// Whether all reads of the stored buffer are of the element that is written, and the elements of
  /// the lanes differ.
  static bool IsOwnElement(const BufferStoreObj* op) {
    auto* ramp = op->indices[0].as<RampObj>();
    if (!ramp || !AsConstInt(ramp->stride) || IsConstInt(ramp->stride, 0)) return false;
    if (Loads(op->indices[0], op->buffer->data)) return false;
    bool same = true;
    PostOrderVisit(op->value, [&](const ObjectRef& n) {
      auto* load = n.as<BufferLoadObj>();
      if (load && load->buffer->data.same_as(op->buffer->data)) {
        same &= load->buffer.same_as(op->buffer) && ExprDeepEqual(load->indices[0], op->indices[0]);
      }
    });
    return same;
  }
  ObjectRef Rewrite(const LetStmtObj* op) {
    return AfterOnce([&]() -> Stmt {
      if (!IsVector(op->value)) {
        if (op->var.dtype().is_index()) analyzer.Bind(op->var, op->value);
        return Below<LetStmt>(op);
      }
      Buffer memory = Temporary(std::string(op->var->name_hint), op->value.dtype());
      bound[op->var.get()] = {{}, {}, {}, memory};
      auto outer = std::exchange(once, {});
      Stmt body = Mutate(op->body);
      once = std::move(outer);
      return WithMemory(memory, op->value, body);
    });
  }
  ObjectRef Rewrite(const EvaluateObj* op) {
    if (!IsVector(op->value)) return MapChildren(op, *this);
    if (SideEffect(op->value) <= CallEffectKind::kReadState) return Evaluate::Nothing();
    return AfterOnce([&] {
      return ForLanes(op->value.dtype().lanes(), MovesLanes(op->value), [&](const PrimExpr& lane) {
        return Evaluate(Lane(op->value, lane), op->span);
      });
    });
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    Allocate allocate = Below<Allocate>(op);
    int lanes = op->dtype.lanes();
    if (lanes == 1) return allocate;
    auto* n = Edit(&allocate);
    n->dtype = op->dtype.element();
    PrimExpr first = n->extents[0];
    n->extents.Set(0, first * MakeConst(first.dtype(), lanes));
    return allocate;
  }
};
}  // namespace

int64_t MoveBytes(arith::Analyzer& analyzer, const Buffer& buffer, const Array<PrimExpr>& indices) {
  int64_t size = indices[0].dtype().lanes() * int64_t{buffer->dtype.bits()} / 8;
  int64_t alignment = AlignmentOf(analyzer, buffer, indices);
  return alignment == 0 ? 0 : std::gcd(std::gcd(alignment, size), kMoveBytes);
}
PrimFunc Scalarize(PrimFunc func, const FileWriter& file, Vectors vectors) {
  if (tir::HasAttr(func->body, tir::attr::kVolatile)) vectors.bits = 0;
  Scalarizer scalarize(file, vectors);
  func = RewriteBody(std::move(func), scalarize);
  if (!scalarize.once.empty())
    file.Unsupported("a call with effects inside of a vector expression");
  return func;
}

}  // namespace tvm::codegen::source
