// SPDX-License-Identifier: Apache-2.0
// Reading what exporters spell out: values behind variables, scalars, products in any order.
#pragma once
#include <cmath>
#include <optional>

#include "relax/analysis/dims.h"
#include "relax/transform/products.h"
#include "tvm/relax/dpl.h"

namespace tvm::relax {

/// The operators that are looked for, found once.
struct SpelledOps {
  // clang-format off
#define TVM_SPELLED_OPS(ROW)                                                               \
  ROW(add) ROW(subtract) ROW(multiply) ROW(divide) ROW(negative) ROW(power) ROW(square)    \
  ROW(exp) ROW(log) ROW(erf) ROW(tanh) ROW(sigmoid) ROW(sqrt) ROW(rsqrt) ROW(mean)         \
  ROW(variance) ROW(max) ROW(sum) ROW(where) ROW(astype) ROW(reshape) ROW(permute_dims)   \
  ROW(expand_dims) ROW(broadcast_to) ROW(repeat) ROW(tile) ROW(matmul) ROW(ones) ROW(zeros) \
  ROW(isnan) ROW(equal) ROW(logical_not) ROW(full_like) ROW(einsum)
// clang-format on
#define ROW(name) Op name = Op::Get("relax." #name);
  TVM_SPELLED_OPS(ROW)
#undef ROW
  Op softmax = Op::Get("relax.nn.softmax"), layer_norm = Op::Get("relax.nn.layer_norm"),
     rms_norm = Op::Get("relax.nn.rms_norm"), group_norm = Op::Get("relax.nn.group_norm"),
     instance_norm = Op::Get("relax.nn.instance_norm");
  static const SpelledOps& Get() {
    static const SpelledOps& ops = *new SpelledOps();
    return ops;
  }
};

class Spelled {
 public:
  explicit Spelled(const Bindings& bindings) : match_(bindings) {}
  const SpelledOps& ops = SpelledOps::Get();

  Expr Value(const Expr& expr) const { return match_.LookThrough(expr); }
  bool Same(const Expr& a, const Expr& b) const { return match_.IsSame(a, b); }
  /// The call of the operator that the expression is.
  std::optional<Call> CallOf(const Expr& expr, const Op& op) const {
    Expr value = Value(expr);
    auto* call = value.as<CallObj>();
    return call && call->Is(op) ? std::optional(ffi::GetRef<Call>(call)) : std::nullopt;
  }
  /// The only operand of a call of the operator.
  std::optional<Expr> OperandOf(const Expr& expr, const Op& op) const {
    auto call = CallOf(expr, op);
    return call ? std::optional(Expr((*call)->args[0])) : std::nullopt;
  }
  template <class A>
  static const A* AttrsOf(const Call& call) {
    return static_cast<const A*>(call->attrs.value().get());
  }
  /// The number that a constant of one element is.
  std::optional<double> Scalar(const Expr& expr) const;
  /// A constant of one element as a number, where it adds no axes to what it is beside of.
  Expr WithoutAxes(const Expr& expr, const Expr& beside) const;
  bool IsNumber(const Expr& expr, double number) const {
    auto value = Scalar(expr);
    return value && IsNear(*value, number);
  }
  /// Exporters round constants, to half precision at worst.
  static bool IsNear(double a, double b) { return std::abs(a - b) <= 1e-3 * std::abs(b); }
  /// t of 1 + t.
  std::optional<Expr> PlusOne(const Expr& expr) const;
  /// The operand and the number of an addition.
  std::optional<std::pair<Expr, double>> PlusNumber(const Expr& expr) const;
  /// x of x * x, x ** 2 and square(x).
  std::optional<Expr> SquareOf(const Expr& expr) const;

  /// scale * factors / denominators
  struct Product {
    double scale = 1;
    std::vector<Expr> factors, denominators;
  };
  /// The factors of products and quotients, which `whole` is not taken apart into.
  Product ProductOf(const Expr& expr, const Optional<Expr>& whole = {}) const;

  /// The reduction of an operand along its last axes, whose dimensions it keeps.
  struct Reduction {
    Expr operand;
    int64_t axes;  // how many
  };
  std::optional<Reduction> ReductionOf(const Expr& expr, const Op& op) const;
  /// Whether the dimensions of `expr` are the last ones of `like`.
  static bool HasLastDims(const Expr& expr, const Expr& like, int64_t count);

 private:
  void Multiply(const Expr& expr, const Optional<Expr>& whole, bool inverted, int depth,
                Product* product) const;
  PatternMatch match_;
};

/// What a value becomes, or nothing.
Optional<Expr> RecoverActivation(const Spelled& s, const Call& call);
Optional<Expr> RecoverNorm(const Spelled& s, const Call& call);
Optional<Expr> RecoverAttention(const Spelled& s, const Call& call);
/// The product behind weights of attention that stays spelled out, with the guard of its softmax in
/// the kernel of that softmax.
Optional<Expr> GuardInPlace(const Spelled& s, const Call& call);
/// Two operands of einsum as a product of matrices.
Optional<Expr> RecoverProduct(const Spelled& s, const Call& call);
Optional<Expr> RecoverBetweenReshapes(const Spelled& s, const Call& call);

}  // namespace tvm::relax
