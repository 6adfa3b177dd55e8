// SPDX-License-Identifier: Apache-2.0
// Linear equations over the integers by the Smith normal form; nodes of the solver.
#include "tvm/arith/int_solver.h"

#include "arith/impl.h"
#include "tvm/arith/pattern.h"

namespace tvm::arith {

IntGroupBounds::IntGroupBounds(PrimExpr coef, Array<PrimExpr> lower, Array<PrimExpr> equal,
                               Array<PrimExpr> upper) {
  *this = New<IntGroupBounds>([&](IntGroupBoundsObj* n) {
    n->coef = coef;
    n->lower = lower;
    n->equal = equal;
    n->upper = upper;
  });
}
void IntGroupBoundsObj::Init() {
  auto c = AsConstInt(coef);
  if (c && *c <= 0)
    TVM_FFI_THROW(ValueError) << "IntGroupBounds: expected a positive coefficient, got " << *c;
}
IntGroupBounds IntGroupBounds::FromRange(const Range& range) {
  PrimExpr one = MakeConst(range->min.dtype(), 1);
  if (IsOne(range->extent)) return IntGroupBounds(one, {}, {range->min}, {});
  return IntGroupBounds(one, {range->min}, {},
                        {Analyzer().Simplify(range->min + range->extent - one)});
}
Optional<Range> IntGroupBoundsObj::FindBestRange(const Map<Var, Range>& ranges) const {
  Analyzer analyzer;
  analyzer.Bind(ranges, true);
  Array<PrimExpr> lows = equal, highs = equal;
  for (const PrimExpr& e : lower) lows.push_back(e);
  for (const PrimExpr& e : upper) highs.push_back(e);
  Optional<Range> best;
  int64_t best_extent = ConstIntBoundObj::kPosInf;
  for (const PrimExpr& low : lows) {
    for (const PrimExpr& high : highs) {
      PrimExpr min = analyzer.Simplify(ceildiv(low, coef)),
               max = analyzer.Simplify(floordiv(high, coef));
      PrimExpr extent = analyzer.Simplify(max - min + MakeConst(min.dtype(), 1), 4);
      int64_t most = analyzer.const_int_bound(extent)->max_value;
      if (best.has_value() && most >= best_extent) continue;
      best = Range::FromMinExtent(min, extent);
      best_extent = most;
    }
  }
  return best;
}
IntConstraints::IntConstraints(Array<Var> variables, Map<Var, Range> ranges,
                               Array<PrimExpr> relations) {
  *this = New<IntConstraints>([&](IntConstraintsObj* n) {
    n->variables = variables;
    n->ranges = ranges;
    n->relations = relations;
  });
}
void IntConstraintsObj::Init() {
  for (const Var& v : variables) {
    if (!v.dtype().is_index()) {
      TVM_FFI_THROW(TypeError) << "IntConstraints: expected variables of type int32 or int64, got "
                               << v->name_hint << " of type " << v.dtype();
    }
  }
  for (const PrimExpr& r : relations) {
    if (!r.dtype().is_bool())
      TVM_FFI_THROW(TypeError) << "IntConstraints: expected bool relations, got " << r.dtype();
  }
}

// ---- equations --------------------------------------------------------------------------------
namespace {
/// Rows S of S = U A V, the right-hand sides U b, V and its inverse, all kept in step.
class Smith {
 public:
  std::vector<std::vector<int64_t>> s, v, v_inverse;
  std::vector<PrimExpr> rhs;

  Smith(std::vector<std::vector<int64_t>> a, std::vector<PrimExpr> b, size_t columns)
      : s(std::move(a)), rhs(std::move(b)) {
    auto identity = [&] {
      std::vector<std::vector<int64_t>> m(columns, std::vector<int64_t>(columns));
      for (size_t i = 0; i < columns; ++i) m[i][i] = 1;
      return m;
    };
    v = identity();
    v_inverse = identity();
  }
  /// Makes s diagonal; returns its rank.
  size_t Diagonalize() {
    size_t rank = 0;
    while (rank < s.size() && rank < v.size() && Pivot(rank)) {
      for (bool clean = false; !clean;) {
        clean = true;
        for (size_t i = rank + 1; i < s.size(); ++i) {
          if (s[i][rank] == 0) continue;
          int64_t q = FloorDivInt(s[i][rank], s[rank][rank]);
          AddRow(i, rank, -q);
          if (s[i][rank] != 0) {
            SwapRows(i, rank);
            clean = false;
          }
        }
        for (size_t j = rank + 1; j < v.size(); ++j) {
          if (s[rank][j] == 0) continue;
          int64_t q = FloorDivInt(s[rank][j], s[rank][rank]);
          AddColumn(j, rank, -q);
          if (s[rank][j] != 0) {
            SwapColumns(j, rank);
            clean = false;
          }
        }
        for (size_t i = rank + 1; i < s.size(); ++i) clean = clean && s[i][rank] == 0;
      }
      if (s[rank][rank] < 0) {
        for (int64_t& x : s[rank]) x = -x;
        rhs[rank] = -rhs[rank];
      }
      ++rank;
    }
    return rank;
  }

 private:
  static int64_t Checked(Wide x) {
    if (x > Interval::kPosInf || x < Interval::kNegInf)
      TVM_FFI_THROW(ValueError)
          << "solve_linear_equations: expected a system whose coefficients stay within 64 bits";
    return static_cast<int64_t>(x);
  }
  /// The smallest entry of the rest to the diagonal; false when the rest is 0.
  bool Pivot(size_t at) {
    std::pair<size_t, size_t> best{at, at};
    int64_t least = 0;
    for (size_t i = at; i < s.size(); ++i) {
      for (size_t j = at; j < v.size(); ++j) {
        int64_t x = std::abs(s[i][j]);
        if (x != 0 && (least == 0 || x < least)) {
          least = x;
          best = {i, j};
        }
      }
    }
    if (least == 0) return false;
    SwapRows(best.first, at);
    SwapColumns(best.second, at);
    return true;
  }
  void SwapRows(size_t i, size_t j) { std::swap(s[i], s[j]), std::swap(rhs[i], rhs[j]); }
  void AddRow(size_t to, size_t from, int64_t factor) {
    for (size_t k = 0; k < s[to].size(); ++k)
      s[to][k] = Checked(s[to][k] + Wide{factor} * s[from][k]);
    rhs[to] = rhs[to] + rhs[from] * MakeConst(rhs[from].dtype(), factor);
  }
  void SwapColumns(size_t i, size_t j) {
    for (auto& row : s) std::swap(row[i], row[j]);
    for (auto& row : v) std::swap(row[i], row[j]);
    std::swap(v_inverse[i], v_inverse[j]);
  }
  /// Column `to` += factor * column `from`; the inverse changes by the opposite row operation.
  void AddColumn(size_t to, size_t from, int64_t factor) {
    for (auto& row : s) row[to] = Checked(row[to] + Wide{factor} * row[from]);
    for (auto& row : v) row[to] = Checked(row[to] + Wide{factor} * row[from]);
    for (size_t k = 0; k < v.size(); ++k)
      v_inverse[from][k] = Checked(v_inverse[from][k] - Wide{factor} * v_inverse[to][k]);
  }
};
}  // namespace

namespace {
/// The relations that do not follow from the others.
Array<PrimExpr> WithoutImplied(Array<PrimExpr> relations, Analyzer* analyzer) {
  for (size_t i = 0; i < relations.size();) {
    PrimExpr others = const_true();
    for (size_t j = 0; j < relations.size(); ++j) {
      if (j != i) others = others && relations[j];
    }
    ConstraintScope scope(analyzer, others);
    if (analyzer->CanProve(relations[i]))
      relations.erase(relations.begin() + static_cast<int64_t>(i));
    else
      ++i;
  }
  return relations;
}
}  // namespace

IntConstraintsTransform SolveLinearEquations(const IntConstraints& system) {
  const Array<Var>& vars = system->variables;
  std::vector<std::vector<int64_t>> a;
  std::vector<PrimExpr> b;
  Array<PrimExpr> relations;  // what is no equation with constant coefficients
  for (const PrimExpr& relation : system->relations) {
    auto* eq = relation.as<EQObj>();
    Array<PrimExpr> linear = eq && eq->a.dtype().is_index()
                                 ? DetectLinearEquation(eq->a - eq->b, vars)
                                 : Array<PrimExpr>();
    std::vector<int64_t> row;
    for (size_t i = 0; i < vars.size() && !linear.empty(); ++i) {
      if (auto c = AsConstInt(linear[i])) row.push_back(*c);
    }
    if (linear.empty() || row.size() != vars.size()) {
      relations.push_back(relation);
      continue;
    }
    a.push_back(row);
    b.push_back(-linear[vars.size()]);
  }
  DataType t = vars.empty() ? DataType::Int(32) : vars[0].dtype();
  Smith smith(a, b, vars.size());
  size_t rank = smith.Diagonalize();
  Analyzer analyzer;
  for (const auto& [var, range] : system->ranges) {
    if (std::find_if(vars.begin(), vars.end(),
                     [&, v = var](const Var& o) { return o.same_as(v); }) == vars.end())
      analyzer.Bind(var, range, true);
  }
  // Solutions y of the diagonal system: fixed ones, then free ones with new variables.
  Array<PrimExpr> conditions;
  std::vector<PrimExpr> y;
  Array<Var> free_vars;
  for (size_t i = 0; i < smith.rhs.size(); ++i) {
    PrimExpr value = analyzer.Simplify(smith.rhs[i]);
    if (i >= rank) {
      conditions.push_back(analyzer.Simplify(equal(value, MakeZero(value.dtype()))));
    } else {
      PrimExpr d = MakeConst(value.dtype(), smith.s[i][i]);
      conditions.push_back(analyzer.Simplify(equal(floormod(value, d), MakeZero(value.dtype()))));
      y.push_back(analyzer.Simplify(floordiv(value, d)));
    }
  }
  for (size_t i = rank; i < vars.size(); ++i) {
    Var v("n" + std::to_string(i - rank), t);
    free_vars.push_back(v);
    y.push_back(v);
  }
  auto finish = [&](IntConstraints dst, Map<Var, PrimExpr> to_dst, Map<Var, PrimExpr> to_src) {
    return New<IntConstraintsTransform>([&](IntConstraintsTransformObj* n) {
      n->src = system;
      n->dst = dst;
      n->src_to_dst = to_dst;
      n->dst_to_src = to_src;
    });
  };
  Array<PrimExpr> kept;
  for (const PrimExpr& c : conditions) {
    if (IsFalse(c)) return finish(IntConstraints({}, {}, {const_false()}), {}, {});
    if (!IsTrue(c)) kept.push_back(c);
  }
  Map<Var, PrimExpr> src_to_dst, dst_to_src;
  for (size_t i = 0; i < vars.size(); ++i) {
    PrimExpr x = MakeZero(t);
    for (size_t j = 0; j < vars.size(); ++j) {
      if (smith.v[i][j] != 0) x = x + y[j] * MakeConst(t, smith.v[i][j]);
    }
    src_to_dst.Set(vars[i], analyzer.Simplify(x));
  }
  Map<Var, Range> ranges;
  DomMap domains = AsIntSets(system->ranges);
  for (size_t k = 0; k < free_vars.size(); ++k) {
    PrimExpr x = MakeZero(t);
    for (size_t j = 0; j < vars.size(); ++j) {
      if (smith.v_inverse[rank + k][j] != 0)
        x = x + vars[j] * MakeConst(t, smith.v_inverse[rank + k][j]);
    }
    x = analyzer.Simplify(x);
    dst_to_src.Set(free_vars[k], x);
    IntSet values = EvalSet(x, domains, &analyzer);
    if (values.HasLowerBound() && values.HasUpperBound() &&
        !UsesVar(values.min(),
                 [&](const VarObj* v) { return src_to_dst.count(ffi::GetRef<Var>(v)) != 0; })) {
      ranges.Set(free_vars[k],
                 values.CoverRange(Range::FromMinExtent(values.min(), MakeConst(t, 1))));
    }
  }
  for (const auto& [var, range] : system->ranges) {
    if (!src_to_dst.count(var)) ranges.Set(var, range);
  }
  // The ranges of the old variables are conditions on the new ones where those do not imply them.
  Analyzer local;
  local.Bind(ranges, true);
  for (const Var& var : vars) {
    if (!system->ranges.count(var)) continue;
    Range range = system->ranges.at(var);
    PrimExpr x = src_to_dst.at(var);
    for (PrimExpr c : {range->min <= x, x < range->min + range->extent}) {
      c = local.Simplify(Substitute(c, src_to_dst));
      if (!IsTrue(c)) kept.push_back(c);
    }
  }
  for (const PrimExpr& r : relations) kept.push_back(local.Simplify(Substitute(r, src_to_dst)));
  return finish(IntConstraints(free_vars, ranges, WithoutImplied(kept, &local)), src_to_dst,
                dst_to_src);
}

namespace {
TVM_REGISTER() {
  RegisterNode<IntGroupBoundsObj>(
      "Bounds of one variable: coef * var >= lower, == equal, <= upper.");
  RegisterNode<IntConstraintsObj>("Variables, their ranges, and conditions on them.");
  RegisterNode<IntConstraintsTransformObj>("Two systems with the same solutions.");
  Def(
      "arith.IntGroupBounds.find_best_range", [](IntGroupBounds b) { return b->FindBestRange(); },
      "The smallest range the bounds give, or None.", Arg("self"));
  Def("arith._group_bounds_from_range", &IntGroupBounds::FromRange,
      "The bounds a range stands for.", Arg("rng"));
  Def(
      "arith._variables_of",
      [](Array<PrimExpr> relations) {
        Array<Var> found;
        for (const PrimExpr& e : relations) {
          PostOrderVisit(e, [&](const ObjectRef& node) {
            auto var = node.as<Var>();
            auto same = [&](const Var& v) { return v.same_as(node); };
            if (var && std::none_of(found.begin(), found.end(), same)) found.push_back(*var);
          });
        }
        return found;
      },
      "In the order in which they occur.", Arg("relations"));
  Def("arith._solve_equations", &SolveLinearEquations,
      "The solutions of linear equations in new, independent variables.", Arg("system"));
  Def("arith._solve_inequalities", &SolveInequalitiesToRange,
      "Ranges for the variables, each in terms of those before it.", Arg("system"));
  Def("arith._solve_inequalities_deskew", &SolveInequalitiesDeskewRange,
      "Ranges from 0 for new variables.", Arg("system"));
}
}  // namespace
}  // namespace tvm::arith
