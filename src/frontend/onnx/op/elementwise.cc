// SPDX-License-Identifier: Apache-2.0
// Operators that work element by element.
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
template <Text op>
Outputs Binary(Node& n) {
  return n(op.value, n.In(0), n.In(1));
}
template <Text op>
Outputs Variadic(Node& n) {
  auto all = n.All();
  Expr result = all[0];
  for (size_t i = 1; i < all.size(); ++i) result = n(op.value, result, all[i]);
  return result;
}
Outputs ConvertMean(Node& n) {
  Expr sum = Variadic<"add">(n)[0].expr;
  return n("divide", sum, n.Scalar(static_cast<double>(n.NumInputs()), Node::TypeOf(sum)));
}
Outputs ConvertMod(Node& n) {
  return n.Int("fmod", 0) ? n("mod", n.In(0), n.In(1)) : n("floor_mod", n.In(0), n.In(1));
}
/// The result has the type of the base, whatever the exponent is.
Outputs ConvertPow(Node& n) {
  Expr x = n.In(0), y = n.In(1);
  DataType base = Node::TypeOf(x), exponent = Node::TypeOf(y);
  if (base.is_float() || exponent.is_integer()) return n("power", x, n.Cast(y, base));
  return n.Cast(n("power", n.Cast(x, exponent), y), base);
}
Outputs ConvertBitShift(Node& n) {
  std::string direction = n.Str("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    n.Fail("direction to be LEFT or RIGHT", direction);
  return n(direction == "LEFT" ? "left_shift" : "right_shift", n.In(0), n.In(1));
}
Outputs ConvertClip(Node& n) {
  Expr x = n.In(0);
  if (n.Has(1) && n.Has(2)) {
    auto low = n.ScalarOf(1), high = n.ScalarOf(2);
    if (low && high && !Node::TypeOf(x).is_bool()) {
      DataType t = Node::TypeOf(x);
      bool crossed = IsTrue(n.Simplify(*high < *low));
      if (!crossed)
        return n("clip", x, relax::PrimValue(tvm::cast(t, *low)),
                 relax::PrimValue(tvm::cast(t, *high)));
    }
  }
  if (n.Has(1)) x = n("maximum", x, n.Reshape(n.In(1), {}));
  if (n.Has(2)) x = n("minimum", x, n.Reshape(n.In(2), {}));
  return x;
}
/// Numbers beyond the range of a type of 8 bits become infinite, or NaN where it has no infinity.
Expr CastWithoutSaturation(Node& n, const Expr& x, DataType to) {
  struct Range {
    int code;
    double beyond;      // from here on, by rounding to even
    int special;        // the bits of what is beyond
    bool is_exclusive;  // `beyond` itself is still rounded down
  };
  constexpr Range kRanges[] = {{kDLFloat8_e4m3fn, 464, 0x7f, true},
                               {kDLFloat8_e4m3fnuz, 248, 0x80, false},
                               {kDLFloat8_e5m2, 61440, 0x7c, false},
                               {kDLFloat8_e5m2fnuz, 61440, 0x80, false}};
  const Range* range = std::find_if(std::begin(kRanges), std::end(kRanges),
                                    [&](const Range& r) { return r.code == to.code(); });
  if (range == std::end(kRanges)) n.Unsupported("a cast to " + to.str() + " without saturation");
  Te te(n);
  te::Tensor t = te(n.Cast(x, DataType::Float(32)));
  return ComputeElements(n, "cast", te, t->shape, [&](const Index& i) -> PrimExpr {
    PrimExpr e = topi::At(t, i), size = tvm::abs(e), limit = Num(e.dtype(), range->beyond);
    PrimExpr bits = MakeConst(DataType::UInt(8), range->special);
    if (range->special == 0x7c)  // infinities have a sign
      bits = tir::Select(e < MakeZero(e.dtype()), MakeConst(DataType::UInt(8), 0xfc), bits);
    PrimExpr is_beyond = range->is_exclusive ? size > limit : size >= limit;
    return tir::Select(is_beyond, reinterpret(to, bits), tvm::cast(to, e));
  });
}
/// Powers of two: the exponent of a float32, rounded as asked for.
Expr CastToPowers(Node& n, const Expr& x, DataType to, bool saturate, const std::string& mode) {
  if (mode != "up" && mode != "down" && mode != "nearest")
    n.Fail("round_mode to be up, down or nearest", mode);
  DataType word = DataType::UInt(32);
  Te te(n);
  te::Tensor t = te(n.Cast(x, DataType::Float(32)));
  return ComputeElements(n, "cast", te, t->shape, [&](const Index& i) -> PrimExpr {
    PrimExpr e = topi::At(t, i), bits = reinterpret(word, tvm::abs(e));
    auto num = [&](int64_t value) { return MakeConst(word, value); };
    PrimExpr exponent = shift_right(bits, num(23)), rest = bitwise_and(bits, num(0x7fffff));
    if (mode == "up") exponent = exponent + tir::Select(rest > num(0), num(1), num(0));
    if (mode == "nearest") exponent = exponent + tir::Select(rest >= num(0x400000), num(1), num(0));
    if (saturate) exponent = min(exponent, num(0xfe));
    exponent = tir::Select(isnan(e), num(0xff), min(exponent, num(0xff)));
    return reinterpret(to, tvm::cast(DataType::UInt(8), exponent));
  });
}
Expr CastTo(Node& n, DataType to) {
  bool saturate = n.Int("saturate", 1) != 0;
  std::string mode = n.Str("round_mode", "up");
  Expr x = n.In(0);
  DataType from = Node::TypeOf(x);
  if (to.code() == kDLFloat8_e8m0fnu && from.is_float() && from != to)
    return CastToPowers(n, x, to, saturate, mode);
  if (to.is_float8() && from != to) {
    if (!saturate) return CastWithoutSaturation(n, x, to);
    // Infinities are brought into the range, too.
    PrimExpr most = tvm::cast(DataType::Float(32), max_value(to));
    x = n("clip", n.Cast(x, DataType::Float(32)), relax::PrimValue(neg(most)),
          relax::PrimValue(most));
  }
  // Without a NaN of its own the type gets -0 for it.
  if (to.code() == kDLFloat4_e2m1fn && from.is_float() && from != to) {
    Expr wide = n.Cast(x, DataType::Float(32));
    x = n("where", n("isnan", wide), n.Scalar(-0.0, DataType::Float(32)), wide);
  }
  // Everything but 0 is true, NaN included.
  if (to.is_bool() && !from.is_bool()) return n("not_equal", x, n.Scalar(0, from));
  // Integers of less than a byte keep the low bits of what is beyond them.
  if (to.is_integer() && to.bits() < 8 && from.is_float()) x = n.Cast(x, DataType::Int(32));
  return n.Cast(x, to);
}
/// Numbers as texts.
Outputs CastToStrings(Node& n) {
  Expr x = n.In(0);
  DataType t = Node::TypeOf(x), wide = t.is_float() ? DataType::Float(32) : DataType::Int(64);
  if (t != DataType::Float(64)) x = n.Cast(x, wide);
  return n.importer.StringsInOrder(n.importer.CallRuntime("strings.format", {x}), Node::Shape(x));
}
Outputs ConvertCast(Node& n) {
  return n.Int("to") == kString ? CastToStrings(n) : CastTo(n, n.Type("to"));
}
Outputs ConvertCastLike(Node& n) { return CastTo(n, Node::TypeOf(n.In(1))); }
Outputs ConvertBitCast(Node& n) {
  DataType to = n.Type("to");
  if (to.bits() != Node::TypeOf(n.In(0)).bits()) n.Unsupported("a type of another width");
  Te te(n);
  te::Tensor t = te(n.In(0));
  return ComputeElements(n, "bitcast", te, t->shape,
                         [&](const Index& i) { return reinterpret(to, topi::At(t, i)); });
}
Outputs ConvertWhere(Node& n) { return n("where", n.In(0), n.In(1), n.In(2)); }

// ---- activations --------------------------------------------------------------------------------
Outputs ConvertLeakyRelu(Node& n) { return n("nn.leakyrelu", n.In(0), n.Float("alpha", 0.01)); }
Outputs ConvertPRelu(Node& n) {
  Expr x = n.In(0), zero = n.Scalar(0, Node::TypeOf(x));
  return n("where", n("less", x, zero), n("multiply", x, n.In(1)), x);
}
Outputs ConvertGelu(Node& n) {
  std::string form = n.Str("approximate", "none");
  if (form != "none" && form != "tanh") n.Fail("approximate to be none or tanh", form);
  return n(form == "tanh" ? "nn.gelu_tanh" : "nn.gelu", n.In(0));
}
Outputs ConvertSwish(Node& n) {
  Expr x = n.In(0);
  double alpha = n.Float("alpha", 1.0);
  if (alpha == 1) return n("nn.silu", x);
  return n("multiply", x, n("sigmoid", n("multiply", x, n.Scalar(alpha, Node::TypeOf(x)))));
}
Outputs ConvertSwiGLU(Node& n) {
  Expr gate = ConvertSwish(n)[0].expr;
  return n("multiply", gate, n.In(1));
}
Outputs ConvertReciprocal(Node& n) {
  Expr x = n.In(0);
  return n("divide", n.Scalar(1, Node::TypeOf(x)), x);
}
/// `element` of a tensor in operators of the graph, which fuse and keep layouts as a kernel of
/// their own does not. Floating-point types of 16 bits and less are computed in float32.
template <class F>
Outputs InOperators(Node& n, F element) {
  Expr x = n.In(0);
  DataType t = Node::TypeOf(x), wide = t.is_float() && t.bits() <= 16 ? DataType::Float(32) : t;
  auto number = [&n, wide](double value) { return n.Scalar(value, wide); };
  return n.Cast(element(n.Cast(x, wide), number), t);
}
Outputs ConvertElu(Node& n) {
  double alpha = n.Float("alpha", 1.0);
  return InOperators(n, [&](const Expr& x, auto number) {
    Expr below = n("multiply", number(alpha), n("subtract", n("exp", x), number(1)));
    return n("where", n("less", x, number(0)), below, x);
  });
}
Outputs ConvertCelu(Node& n) {
  double alpha = n.Float("alpha", 1.0);
  return InOperators(n, [&](const Expr& x, auto number) {
    Expr power = n("exp", alpha == 1 ? x : n("divide", x, number(alpha)));
    Expr below = n("multiply", number(alpha), n("subtract", power, number(1)));
    return n("where", n("less", x, number(0)), below, x);
  });
}
Outputs ConvertSelu(Node& n) {
  constexpr float kAlpha = 1.67326319217681884765625F, kGamma = 1.05070102214813232421875F;
  double alpha = n.Float("alpha", kAlpha), gamma = n.Float("gamma", kGamma);
  if (alpha == kAlpha && gamma == kGamma) return n("nn.selu", n.In(0));
  return InOperators(n, [&](const Expr& x, auto number) {
    Expr below = n("subtract", n("multiply", number(alpha), n("exp", x)), number(alpha));
    Expr above = n("greater", x, number(0));
    return n("multiply", number(gamma), n("where", above, x, below));
  });
}
/// max(0, min(1, x + shift))
Expr Ramp(Node& n, const Expr& x, double shift) {
  return n("clip", n("add", x, n.Scalar(shift, Node::TypeOf(x))), 0.0, 1.0);
}
Outputs ConvertHardSigmoid(Node& n) {
  Expr x = n.In(0), alpha = n.Scalar(n.Float("alpha", 0.2F), Node::TypeOf(x));
  return Ramp(n, n("multiply", alpha, x), n.Float("beta", 0.5));
}
Outputs ConvertHardSwish(Node& n) {
  Expr x = n.In(0);
  return n("multiply", x, Ramp(n, n("divide", x, n.Scalar(6, Node::TypeOf(x))), 0.5));
}
Outputs ConvertMish(Node& n) {
  return n("multiply", n.In(0), n("tanh", n("nn.softplus", n.In(0))));
}
Outputs ConvertSoftsign(Node& n) {
  return InOperators(n, [&](const Expr& x, auto number) {
    return n("divide", x, n("add", number(1), n("abs", x)));
  });
}
Outputs ConvertThresholdedRelu(Node& n) {
  double alpha = n.Float("alpha", 1.0);
  return InOperators(n, [&](const Expr& x, auto number) {
    return n("where", n("greater", x, number(alpha)), x, number(0));
  });
}
Outputs ConvertShrink(Node& n) {
  double bias = n.Float("bias", 0), lambd = n.Float("lambd", 0.5);
  // Integers are compared with the threshold as real numbers.
  return MapElements(n, "shrink", n.In(0), [&](PrimExpr x) -> PrimExpr {
    DataType t = x.dtype(), real = t.is_float() ? t : DataType::Float(64);
    PrimExpr v = tvm::cast(real, x), b = Num(real, bias), l = Num(real, lambd);
    return tvm::cast(t, tir::Select(v < -l, v + b, tir::Select(v > l, v - b, MakeZero(real))));
  });
}
Outputs ConvertIsInf(Node& n) {
  bool negative = n.Int("detect_negative", 1) != 0, positive = n.Int("detect_positive", 1) != 0;
  if (negative && positive) return n("isinf", n.In(0));
  return MapElements(n, "isinf", n.In(0), [&](PrimExpr x) -> PrimExpr {
    if (!negative && !positive) return const_false();
    PrimExpr inf = infinity(x.dtype());
    return equal(x, positive ? inf : neg(inf));
  });
}
Outputs ConvertIdentity(Node& n) { return n.Input(0); }
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"Abs", &SameOp<"abs">},
      {"Acos", &SameOp<"acos">},
      {"Acosh", &SameOp<"acosh">},
      {"Add", &Binary<"add">},
      {"And", &Binary<"logical_and">},
      {"Asin", &SameOp<"asin">},
      {"Asinh", &SameOp<"asinh">},
      {"Atan", &SameOp<"atan">},
      {"Atanh", &SameOp<"atanh">},
      {"BitCast", &ConvertBitCast},
      {"BitShift", &ConvertBitShift},
      {"BitwiseAnd", &Binary<"bitwise_and">},
      {"BitwiseNot", &SameOp<"bitwise_not">},
      {"BitwiseOr", &Binary<"bitwise_or">},
      {"BitwiseXor", &Binary<"bitwise_xor">},
      {"Cast", &ConvertCast},
      {"CastLike", &ConvertCastLike},
      {"Ceil", &SameOp<"ceil">},
      {"Celu", &ConvertCelu},
      {"Clip", &ConvertClip},
      {"Cos", &SameOp<"cos">},
      {"Cosh", &SameOp<"cosh">},
      {"Div", &Binary<"divide">},
      {"Elu", &ConvertElu},
      {"Equal", &Binary<"equal">},
      {"Erf", &SameOp<"erf">},
      {"Exp", &SameOp<"exp">},
      {"Floor", &SameOp<"floor">},
      {"Gelu", &ConvertGelu},
      {"Greater", &Binary<"greater">},
      {"GreaterOrEqual", &Binary<"greater_equal">},
      {"HardSigmoid", &ConvertHardSigmoid},
      {"HardSwish", &ConvertHardSwish},
      {"Identity", &ConvertIdentity},
      {"IsInf", &ConvertIsInf},
      {"IsNaN", &SameOp<"isnan">},
      {"LeakyRelu", &ConvertLeakyRelu},
      {"Less", &Binary<"less">},
      {"LessOrEqual", &Binary<"less_equal">},
      {"Log", &SameOp<"log">},
      {"Max", &Variadic<"maximum">},
      {"Mean", &ConvertMean},
      {"Min", &Variadic<"minimum">},
      {"Mish", &ConvertMish},
      {"Mod", &ConvertMod},
      {"Mul", &Binary<"multiply">},
      {"Neg", &SameOp<"negative">},
      {"Not", &SameOp<"logical_not">},
      {"Or", &Binary<"logical_or">},
      {"PRelu", &ConvertPRelu},
      {"Pow", &ConvertPow},
      {"Reciprocal", &ConvertReciprocal},
      {"Relu", &SameOp<"nn.relu">},
      {"Round", &SameOp<"round">},
      {"Selu", &ConvertSelu},
      {"Shrink", &ConvertShrink},
      {"Sigmoid", &SameOp<"sigmoid">},
      {"Sign", &SameOp<"sign">},
      {"Sin", &SameOp<"sin">},
      {"Sinh", &SameOp<"sinh">},
      {"Softplus", &SameOp<"nn.softplus">},
      {"Softsign", &ConvertSoftsign},
      {"Sqrt", &SameOp<"sqrt">},
      {"Sub", &Binary<"subtract">},
      {"Sum", &Variadic<"add">},
      {"SwiGLU", &ConvertSwiGLU},
      {"Swish", &ConvertSwish},
      {"Tan", &SameOp<"tan">},
      {"Tanh", &SameOp<"tanh">},
      {"ThresholdedRelu", &ConvertThresholdedRelu},
      {"Where", &ConvertWhere},
      {"Xor", &Binary<"logical_xor">},
  });
}

}  // namespace tvm::frontend::onnx
