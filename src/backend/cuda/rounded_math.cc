// SPDX-License-Identifier: Apache-2.0
// Functions whose results are rounded to 16 bits, by the instructions that approximate them.
#include "backend/cuda/rounded_math.h"

#include <cmath>

#include "tvm/expr/op.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::codegen::cuda {
using namespace tir;
namespace {
constexpr double kHalfLog2E = 0.7213475204444817;

PrimExpr Constant(const PrimExpr& like, double value) { return MakeConst(like.dtype(), value); }
PrimExpr Approx(const char* instruction, const PrimExpr& x) {
  return Call(x.dtype(), builtin::call_pure_extern(), {StringImm(instruction), x});
}
/// A name for what is used more than once.
template <class F>
PrimExpr Named(const PrimExpr& value, F&& body) {
  Var var("x", value.dtype());
  return Let(var, value, body(PrimExpr(var)));
}
/// e to the power x / 2: its square is no subnormal number before it is one of the result.
PrimExpr RootOfExp(const PrimExpr& x) {
  return Approx("ex2.approx.ftz.f32", x * Constant(x, kHalfLog2E));
}
PrimExpr Exp(const PrimExpr& x) {
  return Named(RootOfExp(x), [](const PrimExpr& root) { return root * root; });
}
/// exp(x) / (1 + exp(x)); beyond 80 it is 1.
PrimExpr Sigmoid(const PrimExpr& x) {
  return Named(RootOfExp(min(x, Constant(x, 80))), [](const PrimExpr& root) {
    return root * Approx("rcp.approx.ftz.f32", root * root + Constant(root, 1)) * root;
  });
}
/// Of x below 0 it is exp(-x^2) times a polynomial of t = 1 / (1 + 0.44 |x|), whose relative error
/// is below 2^-17; above 0, two minus that.
PrimExpr OnePlusErf(const PrimExpr& argument) {
  constexpr double kTerms[] = {-0.14611738664972207, 0.3506851444392794,  0.04069674181552803,
                               0.2636032823813847,   0.24256566715945138, 0.24856134430663407};
  return Named(argument, [&](const PrimExpr& x) {
    PrimExpr size = Call(x.dtype(), builtin::fabs(), {x});
    PrimExpr inverse = Approx("rcp.approx.ftz.f32", size * Constant(x, 0.44) + Constant(x, 1));
    return Named(inverse, [&](const PrimExpr& t) {
      PrimExpr sum = Constant(x, kTerms[0]);
      for (size_t i = 1; i < std::size(kTerms); ++i) sum = sum * t + Constant(x, kTerms[i]);
      return Named(RootOfExp(-(x * x)), [&](const PrimExpr& root) {
        return Named(sum * t * root * root, [&](const PrimExpr& below) {
          return Select(x < Constant(x, 0), below, Constant(x, 2) - below);
        });
      });
    });
  });
}

struct MathRounder : Mutator<MathRounder, CastObj> {
  ObjectRef Rewrite(const CastObj* op) {
    DataType to = op->dtype.element();
    bool is_rounded =
        (to.is_float16() || to.is_bfloat16()) && op->value.dtype().element() == DataType::Float(32);
    if (!is_rounded) return MapChildren(op, *this);
    return Cast(op->dtype, Rough(op->value, to.is_bfloat16()), op->span);
  }

 private:
  /// An expression of which the relative error matters alone.
  PrimExpr Rough(const PrimExpr& e, bool is_bfloat16) {
    if (auto* times = e.as<MulObj>())
      return Mul(Rough(times->a, false), Rough(times->b, false), times->span);
    if (auto* sum = e.as<AddObj>()) {
      for (const auto& [one, other] : {std::pair(sum->a, sum->b), std::pair(sum->b, sum->a)}) {
        if (PrimExpr x = ErfArgument(one, other); x.defined()) return one * OnePlusErf(Mutate(x));
      }
    }
    auto* call = e.as<CallObj>();
    if (call && call->Is(builtin::exp())) return Exp(Mutate(call->args[0]));
    if (call && call->Is(builtin::sigmoid())) return Sigmoid(Mutate(call->args[0]));
    if (call && call->Is(builtin::tanh()) && is_bfloat16)
      return Approx("tanh.approx.f32", Mutate(call->args[0]));
    return Mutate(e);
  }
  static std::optional<double> NumberOf(const PrimExpr& e) {
    if (auto* same = e.as<BroadcastObj>()) return NumberOf(same->value);
    auto* number = e.as<FloatImmObj>();
    return number ? std::optional(number->value) : std::nullopt;
  }
  /// x of c + c * erf(x), where one is c.
  static PrimExpr ErfArgument(const PrimExpr& one, const PrimExpr& other) {
    auto c = NumberOf(one);
    if (!c) return PrimExpr();
    PrimExpr erf = other;
    double factor = 1;
    if (auto* times = other.as<MulObj>()) {
      bool is_first = NumberOf(times->a).has_value();
      auto by = NumberOf(is_first ? times->a : times->b);
      if (!by) return PrimExpr();
      factor = *by;
      erf = is_first ? times->b : times->a;
    }
    auto* call = erf.as<CallObj>();
    return factor == *c && call && call->Is(builtin::erf()) ? call->args[0] : PrimExpr();
  }
};
}  // namespace

PrimFunc WithRoundedMath(PrimFunc func) { return RewriteBody(std::move(func), MathRounder()); }

}  // namespace tvm::codegen::cuda
