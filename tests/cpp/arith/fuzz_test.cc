// SPDX-License-Identifier: Apache-2.0
// Random integer expressions, simplified and analysed, against an independent evaluator. The
// variable TVM_FUZZ_COUNT sets how many (a million takes minutes), TVM_FUZZ_SEED where to begin.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "evaluate.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/ir/structural.h"

namespace tvm::test {
namespace {
using namespace tir;  // NOLINT(*)
using arith::Analyzer;

const std::vector<DataType>& Types() {
  static const std::vector<DataType> types = {
      DataType::Int(32), DataType::Int(32), DataType::Int(32),  DataType::Int(64), DataType::Int(8),
      DataType::UInt(8), DataType::Int(16), DataType::UInt(32), DataType::UInt(64)};
  return types;
}

class Generator {
 public:
  Generator(uint64_t seed, DataType t)
      : rng_(seed), type_(t), buffer_(Buffer::Decl({PrimExpr(4)}, t, "A")) {
    for (int i = 0; i < 4; ++i) vars.emplace_back(std::string(1, static_cast<char>('i' + i)), t);
  }
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<uint64_t>(n)); }

  /// Ranges for some of the variables, as the analyzer is told.
  void BindRanges(Analyzer* analyzer) {
    for (size_t i = 0; i < vars.size(); ++i) {
      if (Pick(2)) continue;
      int64_t min = type_.is_uint() ? Pick(8) : Pick(3) ? 0 : Pick(17) - 8, extent = 1 + Pick(12);
      ranges[i] = {min, min + extent - 1};
      analyzer->Bind(vars[i],
                     Range::FromMinExtent(MakeConst(type_, min), MakeConst(type_, extent)));
    }
  }
  Environment Point() {
    Environment env;
    Big lowest = type_.is_uint() ? Big{0} : -(Big{1} << (type_.bits() - 1));
    Big highest = type_.is_uint() ? (Big{1} << type_.bits()) - 1 : -lowest - 1;
    auto any = [&] {
      switch (Pick(8)) {
        case 0:
          return lowest + Pick(3);
        case 1:
          return highest - Pick(3);
        default:
          return type_.is_uint() ? Big{Pick(20)} : Big{Pick(41) - 20};
      }
    };
    for (size_t i = 0; i < vars.size(); ++i) {
      auto it = ranges.find(i);
      env.vars[vars[i].get()] =
          it == ranges.end()
              ? any()
              : it->second.first + Pick(static_cast<int>(it->second.second - it->second.first + 1));
    }
    for (int i = 0; i < 4; ++i) env.memory[i] = any();
    return env;
  }

  PrimExpr Number(int depth) {
    if (depth <= 0 || Pick(8) == 0) return Leaf();
    auto a = [&] { return Number(depth - 1); };
    switch (Pick(16)) {
      case 0:
      case 1:
      case 2:
        return Add(a(), a());
      case 3:
      case 4:
        return Sub(a(), a());
      case 5:
        return Mul(a(), Pick(3) ? Const() : a());
      case 6:
        return Mul(a(), Const());
      case 7:
      case 8:
        return FloorDiv(a(), Pick(4) ? Const() : a());
      case 9:
      case 10:
        return FloorMod(a(), Pick(4) ? Const() : a());
      case 11:
        return Pick(2) ? PrimExpr(Div(a(), Pick(4) ? Const() : a()))
                       : PrimExpr(Mod(a(), Pick(4) ? Const() : a()));
      case 12:
        return Min(a(), a());
      case 13:
        return Max(a(), a());
      case 14:
        return Pick(3) ? PrimExpr(Select(Condition(depth - 1), a(), a()))
                       : if_then_else(Condition(depth - 1), a(), a());
      default:
        return Special(depth);
    }
  }
  PrimExpr Condition(int depth) {
    if (depth <= 0) return Compare(0);
    switch (Pick(8)) {
      case 0:
      case 1:
        return And(Condition(depth - 1), Condition(depth - 1));
      case 2:
        return Or(Condition(depth - 1), Condition(depth - 1));
      case 3:
        return Not(Condition(depth - 1));
      default:
        return Compare(depth - 1);
    }
  }

  std::vector<Var> vars;
  std::unordered_map<size_t, std::pair<int64_t, int64_t>> ranges;

 private:
  PrimExpr Const() {
    if (type_.is_uint())
      return MakeConst(
          type_, Pick(12) ? Pick(13) : static_cast<int>((1u << std::min(type_.bits(), 31)) - 1));
    if (Pick(4) == 0) return MakeConst(type_, Pick(5) - 2);
    return MakeConst(type_, Pick(4) ? 1 + Pick(12) : Pick(25) - 12);
  }
  PrimExpr Leaf() {
    if (Pick(4) == 0) return Const();
    if (Pick(6) == 0) return BufferLoad(buffer_, {PrimExpr(Pick(4))});
    return vars[Pick(static_cast<int>(vars.size()))];
  }
  /// Nodes with types or variables of their own.
  PrimExpr Special(int depth) {
    if (Pick(2)) {
      DataType via = Types()[Pick(static_cast<int>(Types().size()))];
      return cast(type_, cast(via, Number(depth - 1)));
    }
    Var v("v", type_);
    PrimExpr value = Number(depth - 1);
    vars.push_back(v);
    PrimExpr body = Number(depth - 1);
    vars.pop_back();
    return Let(v, value, body);
  }
  PrimExpr Compare(int depth) {
    PrimExpr a = Number(depth), b = Pick(2) ? Number(depth) : Const();
    switch (Pick(6)) {
      case 0:
        return LT(a, b);
      case 1:
        return LE(a, b);
      case 2:
        return GT(a, b);
      case 3:
        return GE(a, b);
      case 4:
        return EQ(a, b);
      default:
        return NE(a, b);
    }
  }
  std::mt19937_64 rng_;
  DataType type_;
  Buffer buffer_;
};

std::string Text(Big v) { return std::to_string(static_cast<double>(v)); }

struct Counts {
  int64_t expressions = 0, points = 0, smaller = 0;
};

void CheckOne(uint64_t seed, Counts* counts) {
  DataType t = Types()[seed % Types().size()];
  Generator gen(seed * 0x9e3779b97f4a7c15ull + 1, t);
  Analyzer analyzer;
  gen.BindRanges(&analyzer);
  PrimExpr e = gen.Pick(3) ? gen.Number(2 + gen.Pick(3)) : gen.Condition(2 + gen.Pick(2));
  PrimExpr constraint;
  std::optional<arith::ConstraintScope> scope;
  if (gen.Pick(3) == 0) {
    constraint = gen.Condition(1);
    scope.emplace(&analyzer, constraint);
  }
  int how = gen.Pick(4);
  PrimExpr simple = how == 0   ? analyzer.rewrite_simplify(e)
                    : how == 1 ? analyzer.canonical_simplify(e)
                               : analyzer.Simplify(e, how == 2 ? 2 : 4);
  auto bound = analyzer.const_int_bound(e);
  auto residue = analyzer.modular_set(e);
  bool proved =
      e.dtype().is_bool() && analyzer.CanProve(e, static_cast<arith::ProofStrength>(gen.Pick(2)));
  arith::DomMap domains;
  for (const auto& [index, range] : gen.ranges) {
    domains.Set(gen.vars[index],
                arith::IntSet::Interval(MakeConst(t, range.first), MakeConst(t, range.second)));
  }
  // Constraints say nothing about a set of all values of the variables.
  arith::IntSet set =
      constraint.defined() ? arith::IntSet::Everything() : arith::EvalSet(e, domains);
  ++counts->expressions;
  counts->smaller += simple.same_as(e) ? 0 : 1;
  auto fail = [&](const std::string& what, const Environment& env) {
    std::string point;
    for (const Var& v : gen.vars)
      point += std::string(v->name_hint) + "=" + Text(env.vars.at(v.get())) + " ";
    FAIL() << what << "; TVM_FUZZ_SEED=" << seed << " TVM_FUZZ_COUNT=1\npoint " << point << "\n"
           << SaveJson(e) << "\n"
           << SaveJson(simple);
  };
  for (int i = 0; i < 16; ++i) {
    Environment env = gen.Point();
    try {
      Evaluator original(env);
      if (constraint.defined() && (!original(constraint) || original.overflow)) continue;
      Big expected = original(e);
      if (original.overflow) continue;  // the contract of index arithmetic is broken
      ++counts->points;
      Big got = Evaluator(env)(simple);
      if (got != expected)
        return fail("expected " + Text(expected) + ", simplified gives " + Text(got), env);
      if (proved && !expected) return fail("proved a condition that does not hold", env);
      bool below = bound->min_value != bound->kNegInf && expected < bound->min_value;
      bool above = bound->max_value != bound->kPosInf && expected > bound->max_value;
      if (below || above) return fail("a value outside its bounds", env);
      bool under = set.HasLowerBound() && expected < Evaluator(env)(set.min());
      bool over = set.HasUpperBound() && expected > Evaluator(env)(set.max());
      if (under || over) return fail("a value outside its set", env);
      if (e.dtype().is_integer()) {
        Big off = expected - residue->base;
        if (residue->coeff == 0 ? off != 0 : off % residue->coeff != 0)
          return fail("a value outside its residue class", env);
      }
    } catch (const std::overflow_error&) {
    }
  }
}

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}
}  // namespace

TEST(ArithFuzz, SimplifiedExpressionsHaveTheirValues) {
  Counts counts;
  int64_t first = FromEnvironment("TVM_FUZZ_SEED", 1),
          count = FromEnvironment("TVM_FUZZ_COUNT", 5000);
  for (int64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    try {
      CheckOne(static_cast<uint64_t>(seed), &counts);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what() << "; TVM_FUZZ_SEED=" << seed << " TVM_FUZZ_COUNT=1";
    }
  }
  EXPECT_GT(counts.points, 2 * count);
  if (count > 1000) {
    EXPECT_GT(counts.smaller, count / 2);
  }
}

}  // namespace tvm::test
