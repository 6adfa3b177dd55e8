// SPDX-License-Identifier: Apache-2.0
// ExpandMath: which function expands how, for every type.
#include <algorithm>

#include "value.h"

namespace tvm {
using namespace tir;
namespace math {

Value Expansion::operator()(const char* name, const Value& value) {
  const PrimExpr& e = value.expr;
  bool is_constant = e.as<IntImmObj>() || e.as<FloatImmObj>() || e.as<BroadcastObj>();
  if (is_constant || e.as<VarObj>()) return value;
  lets_.emplace_back(Var(name, e.dtype()), e);
  return Value(lets_.back().first);
}
PrimExpr Expansion::Finish(const Value& result) const {
  PrimExpr body = result.expr;
  for (auto it = lets_.rbegin(); it != lets_.rend(); ++it) body = Let(it->first, it->second, body);
  return body;
}
Value Expansion::Polynomial(Table c, const Value& x) {
  Value result(MakeConst(x.dtype(), c.back()));
  for (size_t i = c.size() - 1; i-- > 0;) result = Fma(result, x, c[i]);
  return result;
}
std::pair<Value, Value> Expansion::Either(const Value& condition, Table a, const Value& x, Table b,
                                          const Value& y) {
  if (!ChoosesCheaply() || a.size() != b.size())
    return {(*this)("p", Polynomial(a, x)), (*this)("q", Polynomial(b, y))};
  auto chosen = [&](size_t i) {
    return Choose(condition, Value(MakeConst(x.dtype(), a[i])), b[i]);
  };
  Value variable = (*this)("v", Choose(condition, x, y));
  Value result = chosen(a.size() - 1);
  for (size_t i = a.size() - 1; i-- > 0;) result = Fma(result, variable, chosen(i));
  result = (*this)("p", result);
  return {result, result};
}

namespace {
template <Base base>
Value ExpOf(Expansion& let, const Value& x) {
  return Exp(let, x, base);
}
template <Base base>
Value LogOf(Expansion& let, const Value& x) {
  return Log(let, x, base);
}

template <class Function, size_t n>
Function* Find(const std::pair<Op, Function*> (&table)[n], const RelaxExpr& op) {
  for (const auto& [row, function] : table) {
    if (op.same_as(row)) return function;
  }
  return nullptr;
}
Unary* FindUnary(const RelaxExpr& op) {
  static const std::pair<Op, Unary*> table[] = {
      {builtin::exp(), ExpOf<Base::kE>},
      {builtin::exp2(), ExpOf<Base::k2>},
      {builtin::exp10(), ExpOf<Base::k10>},
      {builtin::log(), LogOf<Base::kE>},
      {builtin::log2(), LogOf<Base::k2>},
      {builtin::log10(), LogOf<Base::k10>},
      {builtin::log1p(), Log1p},
      {builtin::sigmoid(), Sigmoid},
      {builtin::tanh(), Tanh},
      {builtin::sinh(), Sinh},
      {builtin::cosh(), Cosh},
      {builtin::erf(), Erf},
      {builtin::sin(), Sin},
      {builtin::cos(), Cos},
      {builtin::tan(), Tan},
      {builtin::asin(), Asin},
      {builtin::acos(), Acos},
      {builtin::atan(), Atan},
      {builtin::asinh(), Asinh},
      {builtin::acosh(), Acosh},
      {builtin::atanh(), Atanh},
      {builtin::rsqrt(), Rsqrt},
  };
  return Find(table, op);
}
Binary* FindBinary(const RelaxExpr& op) {
  static const std::pair<Op, Binary*> table[] = {
      {builtin::pow(), Pow},     {builtin::atan2(), Atan2},         {builtin::hypot(), Hypot},
      {builtin::ldexp(), Ldexp}, {builtin::nextafter(), NextAfter},
  };
  return Find(table, op);
}
/// Functions of float32 that machines with "float32-functions" have, at most 2 ULP off as ours are.
bool IsNative(const RelaxExpr& op) {
  static const Op ops[] = {builtin::exp(), builtin::log(),  builtin::log2(),
                           builtin::erf(), builtin::tanh(), builtin::sigmoid()};
  return std::any_of(std::begin(ops), std::end(ops), [&](const Op& o) { return op.same_as(o); });
}
}  // namespace
}  // namespace math

PrimExpr ExpandMath(const CallObj* call, const Target& target) {
  if (PrimExpr integer = math::ExpandInteger(call); integer.defined()) return integer;
  auto unary = call->args.size() == 1 ? math::FindUnary(call->op) : nullptr;
  auto binary = call->args.size() == 2 ? math::FindBinary(call->op) : nullptr;
  DataType t = call->dtype;
  if ((!unary && !binary) || !t.is_float()) return ffi::GetRef<PrimExpr>(call);
  // The same number in every lane is computed once.
  bool is_broadcast = t.is_vector();
  for (const PrimExpr& arg : call->args) is_broadcast &= arg.as<BroadcastObj>() != nullptr;
  if (is_broadcast) {
    Array<PrimExpr> args =
        call->args.Map([](const PrimExpr& e) { return e.as<BroadcastObj>()->value; });
    Call scalar(t.element(), call->op, args, call->span);
    return Broadcast(ExpandMath(scalar.get(), target), call->args[0].as<BroadcastObj>()->lanes);
  }
  if (call->op.same_as(builtin::nextafter()) && t.bits() < 32) {
    if (t.bits() < 16) {
      // The formats differ in what lies next to zero and to their ends.
      TVM_FFI_THROW(TypeError) << "nextafter: expected a type of 16 bits or more, got " << t;
    }
    math::Expansion let;
    auto argument = [&](size_t i) { return let("x", math::Value(call->args[i])); };
    return let.Finish(math::NextAfterSmall(let, argument(0), argument(1)));
  }
  bool is_double = t.is_ieee_float() && t.bits() == 64;
  DataType compute = DataType::Float(is_double ? 64 : 32, t.raw_lanes());
  math::Expansion let;
  if (target.defined()) let.machine = Machine::Of(target);
  if (!is_double && math::IsNative(call->op) && let.machine.defined() &&
      let.machine->Has("float32-functions")) {
    if (t == compute) return ffi::GetRef<PrimExpr>(call);
    return cast(t, Call(compute, call->op, {cast(compute, call->args[0])}, call->span));
  }
  auto argument = [&](size_t i) { return let("x", math::Value(cast(compute, call->args[i]))); };
  math::Value result = unary ? unary(let, argument(0)) : binary(let, argument(0), argument(1));
  return let.Finish(math::Value(cast(t, result.expr)));
}

namespace {
TVM_REGISTER() {
  Def(
      "tir.expand_math",
      [](Call call, Optional<Target> target) {
        return ExpandMath(call.get(), target.value_or(Target()));
      },
      "A call of a mathematical function as arithmetic.", Arg("call"), Arg("target", nullptr));
}
}  // namespace
}  // namespace tvm
