// SPDX-License-Identifier: Apache-2.0
// Simplification of vectors: Ramp and Broadcast through arithmetic.
#include "arith/rewrite/vector.h"

#include "arith/rewrite/match.h"

namespace tvm::arith {
namespace {
/// ramp // c and ramp % c where all lanes have one quotient, or every step is a multiple of c. A
/// truncated quotient is that of the floor where no lane is negative, or nothing is left over.
PrimExpr DivideRamp(const PrimExpr& e, const RampObj* ramp, const BroadcastObj* by,
                    Analyzer::Impl* facts) {
  bool truncates = e.as<DivObj>() || e.as<ModObj>();
  bool is_div = e.as<FloorDivObj>() || e.as<DivObj>();
  if (!truncates && !is_div && !e.as<FloorModObj>()) return PrimExpr();
  auto c = AsConstInt(by->value), stride = AsConstInt(ramp->stride),
       lanes = AsConstInt(ramp->lanes);
  if (!c || *c <= 0 || !stride || !lanes || !facts->IsIndex(ramp->base)) return PrimExpr();
  DataType t = ramp->base.dtype();
  if (truncates) {
    Residue r = facts->ResidueOf(ramp->base);
    bool exact = *stride % *c == 0 && r.coeff % *c == 0 && r.base % *c == 0;
    if (!exact && (*stride < 0 || !(facts->BoundOf(ramp->base).lo >= 0))) return PrimExpr();
  }
  if (*stride % *c == 0) {
    if (is_div)
      return Ramp(floordiv(ramp->base, by->value), MakeConst(t, *stride / *c), ramp->lanes);
    return Broadcast(floormod(ramp->base, by->value), ramp->lanes);
  }
  // All lanes lie between two multiples of c.
  Residue r = facts->ResidueOf(ramp->base);
  if (r.coeff == 0 || r.coeff % *c == 0) {
    int64_t first = FloorModInt(r.base, *c);
    Wide last = Wide{first} + Wide{*stride} * (*lanes - 1);
    if (last >= 0 && last < *c) {
      if (is_div) return Broadcast(floordiv(ramp->base, by->value), ramp->lanes);
      return Ramp(floormod(ramp->base, by->value), ramp->stride, ramp->lanes);
    }
  }
  return PrimExpr();
}
/// min(min(v, broadcast(x)), broadcast(y)) as min(v, broadcast(min(x, y))).
template <class N>
PrimExpr JoinBroadcasts(const PrimExpr& e) {
  auto* n = e.as<N>();
  auto* inner = n ? n->a.template as<N>() : nullptr;
  auto* y = n ? n->b.template as<BroadcastObj>() : nullptr;
  auto* x = inner ? inner->b.template as<BroadcastObj>() : nullptr;
  if (!x || !y || inner->a.template as<BroadcastObj>() || !ExprDeepEqual(x->lanes, y->lanes))
    return PrimExpr();
  PrimExpr joined = MakeBinaryNode(e->type_index(), x->value, y->value);
  return MakeBinaryNode(e->type_index(), inner->a, Broadcast(joined, x->lanes));
}
}  // namespace

PrimExpr SimplifyVector(const PrimExpr& e, Analyzer::Impl* facts) {
  auto* n = AsBinary(e);
  if (auto* select = e.as<SelectObj>()) {
    auto *c = select->condition.as<BroadcastObj>(), *t = select->true_value.as<BroadcastObj>(),
         *f = select->false_value.as<BroadcastObj>();
    return c && t && f ? PrimExpr(Broadcast(Select(c->value, t->value, f->value), c->lanes))
                       : PrimExpr();
  }
  if (auto* inner = e.as<NotObj>()) {
    auto* b = inner->a.as<BroadcastObj>();
    return b ? PrimExpr(Broadcast(!b->value, b->lanes)) : PrimExpr();
  }
  if (auto* cast_node = e.as<CastObj>()) {
    DataType from = cast_node->value.dtype(), to = e.dtype();
    if (auto* b = cast_node->value.as<BroadcastObj>())
      return Broadcast(cast(to.element(), b->value), b->lanes);
    // In more bits lanes count on where the narrow ones would wrap around: indices do not.
    auto* ramp = cast_node->value.as<RampObj>();
    bool widens = ramp && from.is_int() && to.is_int() && to.bits() >= from.bits();
    if (!widens || !facts->IsIndex(ramp->base)) return PrimExpr();
    return Ramp(cast(to.element(), ramp->base), cast(to.element(), ramp->stride), ramp->lanes);
  }
  if (auto* ramp = e.as<RampObj>()) {
    return IsZero(ramp->stride) ? PrimExpr(Broadcast(ramp->base, ramp->lanes)) : PrimExpr();
  }
  if (!n) return PrimExpr();
  auto *ba = n->a.as<BroadcastObj>(), *bb = n->b.as<BroadcastObj>();
  auto *ra = n->a.as<RampObj>(), *rb = n->b.as<RampObj>();
  auto same_lanes = [](auto* x, auto* y) { return ExprDeepEqual(x->lanes, y->lanes); };
  if (ba && bb && same_lanes(ba, bb)) {
    return Broadcast(MakeBinaryNode(e->type_index(), ba->value, bb->value), ba->lanes);
  }
  if (PrimExpr chain = JoinBroadcasts<MinObj>(e); chain.defined()) return chain;
  if (PrimExpr chain = JoinBroadcasts<MaxObj>(e); chain.defined()) return chain;
  // The rest is arithmetic modulo 2^n, lane by lane.
  if (e.as<AddObj>()) {
    if (ra && bb) return Ramp(ra->base + bb->value, ra->stride, ra->lanes);
    if (ba && rb) return Ramp(ba->value + rb->base, rb->stride, rb->lanes);
    if (ra && rb && same_lanes(ra, rb))
      return Ramp(ra->base + rb->base, ra->stride + rb->stride, ra->lanes);
  } else if (e.as<SubObj>()) {
    if (ra && bb) return Ramp(ra->base - bb->value, ra->stride, ra->lanes);
    if (ba && rb) return Ramp(ba->value - rb->base, -rb->stride, rb->lanes);
    if (ra && rb && same_lanes(ra, rb))
      return Ramp(ra->base - rb->base, ra->stride - rb->stride, ra->lanes);
  } else if (e.as<MulObj>()) {
    if (ra && bb) return Ramp(ra->base * bb->value, ra->stride * bb->value, ra->lanes);
    if (ba && rb) return Ramp(rb->base * ba->value, rb->stride * ba->value, rb->lanes);
  } else if (ra && bb) {
    return DivideRamp(e, ra, bb, facts);
  }
  return PrimExpr();
}

}  // namespace tvm::arith
