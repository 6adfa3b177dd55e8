// SPDX-License-Identifier: Apache-2.0
// An evaluator of integer expressions for tests. It shares no code with the simplifier or with
// folding.
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "tvm/expr/builtin.h"

namespace tvm::test {
__extension__ typedef __int128 Big;

/// Values of variables and of elements of memory, by their address and index.
struct Environment {
  std::unordered_map<const Object*, Big> vars;
  std::unordered_map<int64_t, Big> memory;
};

/// Index arithmetic (int32, int64) is exact and `overflow` tells that it left its type; other types
/// wrap. `wrap_all`: int32 and int64 wrap as well.
class Evaluator {
 public:
  explicit Evaluator(const Environment& env, bool wrap_all = false)
      : env_(env), wrap_all_(wrap_all) {}
  bool overflow = false;
  Big operator()(const PrimExpr& e) { return Eval(e); }

 private:
  static Big Wrap(Big v, DataType t) {
    if (t.is_bool()) return v != 0;
    Big modulus = Big{1} << t.bits();
    v = ((v % modulus) + modulus) % modulus;
    return t.is_int() && v >= modulus / 2 ? v - modulus : v;
  }
  Big Result(Big v, DataType t) {
    Big wrapped = Wrap(v, t);
    if (wrapped == v) return v;
    if (!t.is_index() || wrap_all_) return wrapped;
    overflow = true;
    constexpr Big kHuge = Big{1} << 100;
    if (v > kHuge || v < -kHuge) throw std::overflow_error("beyond the evaluator");
    return v;
  }
  static Big Floor(Big a, Big b) {
    Big q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
  }
  Big Eval(const PrimExpr& e);

  const Environment& env_;
  bool wrap_all_;
  std::unordered_map<const Object*, Big> lets_;
};

inline Big Evaluator::Eval(const PrimExpr& e) {
  using namespace tir;  // NOLINT(*)
  DataType t = e.dtype();
  if (auto* n = e.as<IntImmObj>())
    return t.is_uint() ? Big{static_cast<uint64_t>(n->value)} : Big{n->value};
  if (e.as<VarObj>()) {
    auto let = lets_.find(e.get());
    return let != lets_.end() ? let->second : env_.vars.at(e.get());
  }
  if (auto* n = e.as<BufferLoadObj>())
    return env_.memory.at(static_cast<int64_t>(Eval(n->indices[0])));
  if (auto* n = e.as<CastObj>()) return Wrap(Eval(n->value), t);
  if (auto* n = e.as<NotObj>()) return !Eval(n->a);
  if (auto* n = e.as<SelectObj>()) {
    // Both are evaluated: an overflow in either breaks the contract.
    Big c = Eval(n->condition), x = Eval(n->true_value), y = Eval(n->false_value);
    return c ? x : y;
  }
  if (auto* n = e.as<LetObj>()) {
    Big value = Eval(n->value);
    auto old = lets_.find(n->var.get());
    std::optional<Big> saved = old == lets_.end() ? std::nullopt : std::optional<Big>(old->second);
    lets_[n->var.get()] = value;
    Big body = Eval(n->body);
    if (saved)
      lets_[n->var.get()] = *saved;
    else
      lets_.erase(n->var.get());
    return body;
  }
  if (auto* n = e.as<CallObj>()) {
    if (n->Is(builtin::if_then_else()))
      return Eval(n->args[0]) ? Eval(n->args[1]) : Eval(n->args[2]);
    if (n->Is(builtin::likely())) return Eval(n->args[0]);
  }
  if (e->type_index() == AddObj::RuntimeTypeIndex()) {
    auto* n = e.as<AddObj>();
    return Result(Eval(n->a) + Eval(n->b), t);
  }
#define TVM_TEST_BINARY(Node, value)    \
  if (auto* n = e.as<Node##Obj>()) {    \
    Big a = Eval(n->a), b = Eval(n->b); \
    return value;                       \
  }
  TVM_TEST_BINARY(Sub, Result(a - b, t))
  // Without a sign: a product of two uint64 wraps.
  using Unsigned = unsigned __int128;
  TVM_TEST_BINARY(Mul, Result(static_cast<Big>(Unsigned(a) * Unsigned(b)), t))
  TVM_TEST_BINARY(FloorDiv, b == 0 ? Big{0} : Result(Floor(a, b), t))
  TVM_TEST_BINARY(FloorMod, b == 0 ? Big{0} : a - Floor(a, b) * b)
  TVM_TEST_BINARY(Div, b == 0 ? Big{0} : Result(a / b, t))
  TVM_TEST_BINARY(Mod, b == 0 ? Big{0} : a % b)
  TVM_TEST_BINARY(Min, a < b ? a : b)
  TVM_TEST_BINARY(Max, a < b ? b : a)
  TVM_TEST_BINARY(LT, a < b)
  TVM_TEST_BINARY(LE, a <= b)
  TVM_TEST_BINARY(GT, a > b)
  TVM_TEST_BINARY(GE, a >= b)
  TVM_TEST_BINARY(EQ, a == b)
  TVM_TEST_BINARY(NE, a != b)
  TVM_TEST_BINARY(And, (a != 0) & (b != 0))
  TVM_TEST_BINARY(Or, (a != 0) | (b != 0))
#undef TVM_TEST_BINARY
  throw std::logic_error("the evaluator does not know " + std::string(e->GetTypeKey()));
}

}  // namespace tvm::test
