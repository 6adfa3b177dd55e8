// SPDX-License-Identifier: Apache-2.0
// Folding of calls: operators a backend has as instructions are computed here, the other functions
// by expanding them, so that both give the bits a run gives.
#include <bit>
#include <cmath>
#include <cstring>

#include "tvm/expr/math.h"

namespace tvm {
using namespace tir;
namespace {

/// The bits of a constant of 8, 16, 32 or 64 bits, if its type has a C++ counterpart.
std::optional<uint64_t> BitsOf(const PrimExpr& e) {
  if (auto* n = e.as<IntImmObj>()) return static_cast<uint64_t>(n->value);
  auto* n = e.as<FloatImmObj>();
  if (!n || !n->dtype.is_ieee_float()) return std::nullopt;
  if (n->dtype.bits() == 64) return std::bit_cast<uint64_t>(n->value);
  if (n->dtype.bits() == 32) return std::bit_cast<uint32_t>(static_cast<float>(n->value));
  return std::nullopt;
}
PrimExpr FromBits(DataType t, uint64_t bits) {
  if (t.is_integer() && t.bits() <= 64) {
    return cast(t, IntImm(DataType::UInt(64), static_cast<int64_t>(bits)));
  }
  if (t.is_ieee_float() && t.bits() == 64) return FloatImm(t, std::bit_cast<double>(bits));
  if (t.is_ieee_float() && t.bits() == 32) {
    return FloatImm(t, std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  return PrimExpr();
}

/// The operators that stay calls, on numbers of type F.
template <class F>
std::optional<F> Compute(const CallObj* call, F x, F y, F z) {
  if (call->Is(builtin::fma())) return std::fma(x, y, z);
  if (call->Is(builtin::sqrt())) return std::sqrt(x);
  if (call->Is(builtin::fabs())) return std::fabs(x);
  if (call->Is(builtin::copysign())) return std::copysign(x, y);
  if (call->Is(builtin::fmod())) return std::fmod(x, y);  // exact
  return std::nullopt;
}
template <class F>
PrimExpr FoldFloats(const CallObj* call) {
  F args[3] = {};
  for (size_t i = 0; i < call->args.size() && i < 3; ++i) {
    auto* n = call->args[i].as<FloatImmObj>();
    if (!n) return PrimExpr();
    args[i] = static_cast<F>(n->value);
  }
  auto result = Compute(call, args[0], args[1], args[2]);
  return result ? PrimExpr(FloatImm(call->dtype, *result)) : PrimExpr();
}
bool IsConstant(const PrimExpr& e) { return e.as<IntImmObj>() || e.as<FloatImmObj>(); }

}  // namespace

PrimExpr FoldMath(const PrimExpr& e) {
  auto* call = e.as<CallObj>();
  if (!call || call->args.empty() || !call->dtype.is_scalar()) return e;
  for (const PrimExpr& arg : call->args) {
    if (!IsConstant(arg)) return e;
  }
  if (call->Is(builtin::reinterpret())) {
    auto bits = BitsOf(call->args[0]);
    PrimExpr folded = bits ? FromBits(call->dtype, *bits) : PrimExpr();
    return folded.defined() ? folded : e;
  }
  if (auto* x = call->args[0].as<IntImmObj>()) {
    int width = x->dtype.bits();
    uint64_t bits = static_cast<uint64_t>(x->value) << (64 - width);
    if (call->Is(builtin::popcount())) return MakeConst(call->dtype, std::popcount(bits));
    if (call->Is(builtin::clz()))
      return MakeConst(call->dtype, std::min(std::countl_zero(bits), width));
  }
  if (!call->dtype.is_float()) return e;
  PrimExpr folded = call->dtype.bits() == 64 ? FoldFloats<double>(call) : FoldFloats<float>(call);
  if (folded.defined()) return folded;
  PrimExpr expanded = ExpandMath(call, Target());
  return IsConstant(expanded) ? expanded : e;
}

namespace {
TVM_REGISTER() {
  Def("tir.fold_math", &FoldMath,
      "The value of a call on constants, bit for bit what running it gives; else the call.",
      Arg("call"));
}
}  // namespace
}  // namespace tvm
