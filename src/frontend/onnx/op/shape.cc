// SPDX-License-Identifier: Apache-2.0
// Operators that move elements.
#include <limits>
#include <numeric>

#include "frontend/onnx/op/axes.h"
#include "relax/analysis/symbolic_vars.h"
#include "tvm/topi/create.h"
#include "tvm/topi/transform.h"

namespace tvm::frontend::onnx {
namespace {
// ---- reshapes -----------------------------------------------------------------------------------
/// The product of `sizes` by that of `others`, where no size is 0 for what is simplified: of an
/// empty tensor any other dimension is as good.
PrimExpr QuotientOfSizes(std::vector<PrimExpr> sizes, std::vector<PrimExpr> others) {
  arith::Analyzer analyzer;
  for (const PrimExpr& size : sizes) {
    relax::VisitVars(size, [&](const tir::VarObj* var) {
      auto ref = ffi::GetRef<tir::Var>(var);
      analyzer.Bind(ref, Range::FromMinExtent(Num(1), Num(int64_t{1} << 40)), true);
    });
  }
  std::erase_if(others, [&](const PrimExpr& other) {
    auto same = std::find_if(sizes.begin(), sizes.end(), [&](const PrimExpr& size) {
      return analyzer.CanProveEqual(size, other);
    });
    if (same == sizes.end()) return false;
    sizes.erase(same);
    return true;
  });
  return analyzer.Simplify(floordiv(ProductOf(DimsOf(sizes)), ProductOf(DimsOf(others))));
}
Outputs ConvertReshape(Node& n) {
  Expr x = n.In(0);
  Dims from = Node::Shape(x), to;
  bool allow_zero = n.Int("allowzero", 0) != 0;
  std::vector<PrimExpr> wanted = n.Integers(1, n.DeclaredRank(0));
  // Numbers from data may be -1 or 0 as well; those from shapes are sizes.
  std::vector<PrimExpr> others;
  for (size_t i = 0; i < wanted.size(); ++i) {
    PrimExpr& d = wanted[i];
    bool is_data = n.importer.DependsOnData(d);
    if (!allow_zero && i < from.size())
      d = IsZero(d) ? from[i] : is_data ? tir::Select(equal(d, Num(0)), from[i], d) : d;
    d = n.Simplify(d);
    if (!IsConstInt(d, -1))
      others.push_back(is_data ? n.Simplify(tir::Select(d < Num(0), Num(1), d)) : d);
  }
  PrimExpr left = QuotientOfSizes({from.begin(), from.end()}, others);
  for (const PrimExpr& d : wanted) {
    bool is_data = n.importer.DependsOnData(d);
    to.push_back(IsConstInt(d, -1) ? left
                 : is_data         ? n.Simplify(tir::Select(d < Num(0), left, d))
                                   : d);
  }
  return n.Reshape(x, to);
}
Outputs ConvertFlatten(Node& n) {
  Expr x = n.In(0);
  Dims shape = Node::Shape(x);
  int64_t rank = static_cast<int64_t>(shape.size()), axis = n.Int("axis", 1);
  if (axis < -rank || axis > rank) n.Fail("axis up to the rank", std::to_string(axis));
  axis = axis < 0 ? axis + rank : axis;
  return n.Reshape(x, {n.Simplify(ProductOf(Dims(shape.begin(), shape.begin() + axis))),
                       n.Simplify(ProductOf(Dims(shape.begin() + axis, shape.end())))});
}
Outputs ConvertSqueeze(Node& n) {
  Expr x = n.In(0);
  Dims shape = Node::Shape(x), to;
  std::set<int64_t> axes;
  for (int64_t i = 0; i < Node::Rank(x) && !n.Has(1); ++i) {
    if (IsOne(shape[i])) axes.insert(i);
  }
  if (n.Has(1)) {
    auto given = n.TryConstInts(1);
    if (!given) {
      std::optional<int64_t> stay = n.DeclaredRank(0);
      if (auto count = n.LengthOf(1)) stay = Node::Rank(x) - *count;
      if (!stay) n.Fail("axes whose number is known", "a vector of any length");
      return n.Reshape(x, DimsThatStay(n, shape, ReadAxes(n, 1, Node::Rank(x)), *stay));
    }
    for (int64_t a : *given) axes.insert(n.Axis(a, Node::Rank(x), "axes"));
  }
  if (axes.empty()) return x;
  return n("squeeze", x, List({axes.begin(), axes.end()}));
}
Outputs ConvertUnsqueeze(Node& n) {
  Expr x = n.In(0);
  auto given = n.TryConstInts(1);
  if (!given) {
    Dims shape = Node::Shape(x), to;
    std::optional<int64_t> declared = n.DeclaredRank(0);
    if (auto count = n.LengthOf(1)) declared = Node::Rank(x) + *count;
    if (!declared) n.Fail("axes whose number is known", "a vector of any length");
    int64_t rank = *declared;
    RuntimeAxes named = ReadAxes(n, 1, rank, rank - Node::Rank(x));
    for (int64_t i = 0; i < rank; ++i) {
      std::vector<PrimExpr> is;
      for (size_t j = 0; j < shape.size(); ++j)
        is.push_back(!named.named[i] && equal(named.place[i], Num(static_cast<int64_t>(j))));
      PrimExpr old = SelectSum(is, {shape.begin(), shape.end()});
      to.push_back(n.Simplify(tir::Select(named.named[i], Num(1), old)));
    }
    return n.Reshape(x, to);
  }
  std::vector<int64_t> axes = *given;
  if (axes.empty()) return x;
  int64_t rank = Node::Rank(x) + static_cast<int64_t>(axes.size());
  for (int64_t& a : axes) a = n.Axis(a, rank, "axes");
  std::sort(axes.begin(), axes.end());
  return n("expand_dims", x, List(axes));
}
Outputs ConvertTranspose(Node& n) {
  Expr x = n.In(0);
  std::vector<int64_t> axes(Node::Rank(x));
  std::iota(axes.rbegin(), axes.rend(), 0);
  return Transposed(n, x, n.Ints("perm", axes));
}
Outputs ConvertDepthToSpace(Node& n) {
  Expr x = n.In(0);
  Dims s = Node::Shape(x);
  PrimExpr b = Num(n.Int("blocksize"));
  std::string mode = n.Str("mode", "DCR");
  PrimExpr c = n.Simplify(floordiv(s[1], b * b));
  bool depth_first = mode == "DCR";
  Expr blocks = Shaped(n, x,
                       depth_first ? std::vector{s[0], b, b, c, s[2], s[3]}
                                   : std::vector{s[0], c, b, b, s[2], s[3]});
  blocks = Transposed(n, blocks,
                      depth_first ? std::vector<int64_t>{0, 3, 4, 1, 5, 2}
                                  : std::vector<int64_t>{0, 1, 4, 2, 5, 3});
  return Shaped(n, blocks, {s[0], c, n.Simplify(s[2] * b), n.Simplify(s[3] * b)});
}
Outputs ConvertSpaceToDepth(Node& n) {
  Expr x = n.In(0);
  Dims s = Node::Shape(x);
  PrimExpr b = Num(n.Int("blocksize"));
  std::string mode = n.Str("mode", "DCR");
  PrimExpr h = n.Simplify(floordiv(s[2], b)), w = n.Simplify(floordiv(s[3], b));
  Expr blocks = Shaped(n, x, {s[0], s[1], h, b, w, b});
  blocks = Transposed(n, blocks,
                      mode == "DCR" ? std::vector<int64_t>{0, 3, 5, 1, 2, 4}
                                    : std::vector<int64_t>{0, 1, 3, 5, 2, 4});
  return Shaped(n, blocks, {s[0], n.Simplify(s[1] * b * b), h, w});
}

// ---- parts --------------------------------------------------------------------------------------
Outputs ConvertConcat(Node& n) {
  auto all = n.All();
  int64_t axis = n.Axis(n.Int("axis"), Node::Rank(all[0]));
  if (all.size() == 1) return all[0];
  return Concatenated(n, all, axis);
}
Outputs ConvertSplit(Node& n) {
  Expr x = n.In(0);
  int64_t axis = n.Axis(n.Int("axis", 0), Node::Rank(x));
  auto parts = static_cast<int64_t>(n.proto.outputs.size());
  int64_t count = n.Int("num_outputs", parts);
  if (parts == 0 || count != parts) n.Fail("num_outputs outputs", std::to_string(parts));
  PrimExpr dim = Node::Shape(x)[axis];
  std::vector<PrimExpr> sizes;
  if (n.Has(1)) {
    sizes = n.Integers(1, parts);
    if (static_cast<int64_t>(sizes.size()) != parts)
      n.Fail("a size for each of " + std::to_string(parts) + " outputs",
             std::to_string(sizes.size()));
  } else {
    PrimExpr each = n.Simplify(floordiv(dim + Num(parts - 1), Num(parts)));
    sizes.assign(parts, each);
  }
  if (parts == 1) return x;
  std::vector<int64_t> ends;
  int64_t end = 0;
  for (const PrimExpr& size : sizes) {
    auto value = AsConstInt(size);
    if (!value) break;
    ends.push_back(end += *value);
  }
  std::vector<Value> results;
  if (static_cast<int64_t>(ends.size()) == parts && AsConstInt(dim)) {
    if (n.Has(1) && ends.back() != *AsConstInt(dim))
      n.Fail("sizes that sum to " + std::to_string(*AsConstInt(dim)), std::to_string(ends.back()));
    ends.pop_back();
    Expr tuple = n("split", x, List(ends), axis);
    for (int64_t i = 0; i < parts; ++i) results.emplace_back(n.Item(tuple, i));
    return results;
  }
  PrimExpr begin = Num(0);
  for (int64_t i = 0; i < parts; ++i) {
    PrimExpr until = i + 1 == parts ? dim : n.Simplify(min(begin + sizes[i], dim));
    results.emplace_back(
        n("strided_slice", x, List({axis}), Dims{begin}, Dims{until}, Dims{Num(1)}, true));
    begin = until;
  }
  return results;
}
/// The place that a slice begins or ends at, as its step and the dimension say.
PrimExpr SlicePlace(const PrimExpr& e, const PrimExpr& dim, const PrimExpr& step) {
  PrimExpr at = tir::Select(e < Num(0), e + dim, e), forward = step > Num(0);
  return tir::Select(forward, max(min(at, dim), Num(0)), max(min(at, dim - Num(1)), Num(-1)));
}
/// A slice whose axes or steps, or the number of them, only running tells: every axis has a start
/// and a step.
Outputs SliceRuntimeAxes(Node& n, const Expr& x, std::optional<int64_t> length) {
  int64_t rank = Node::Rank(x), count = length.value_or(rank);
  auto read = [&](size_t i, int64_t fill) {
    return length ? n.Integers(i, length) : n.IntegersUpTo(i, rank, fill);
  };
  // What fills up is a slice of all.
  std::vector<PrimExpr> starts = read(1, 0), ends = read(2, std::numeric_limits<int64_t>::max());
  std::vector<PrimExpr> axes, steps(count, Num(1));
  for (int64_t i = 0; i < count; ++i) axes.push_back(Num(i));
  if (n.Has(3)) axes = read(3, rank);
  if (n.Has(4)) steps = read(4, 1);
  if (ends.size() != axes.size() || starts.size() != axes.size() || steps.size() != axes.size())
    n.Fail("starts, ends, axes and steps of one length", "different ones");
  Te te(n);
  te::Tensor t = te(x);
  Dims out;
  Index from, by;
  for (int64_t i = 0; i < Node::Rank(x); ++i) {
    std::vector<PrimExpr> is = IsAxis(te(axes), i, Node::Rank(x));
    PrimExpr named = const_false(), dim = t->shape[i];
    for (const PrimExpr& one : is) named = named || one;
    PrimExpr step = tir::Select(named, SelectSum(is, te(steps)), Num(1));
    PrimExpr begin = tir::Select(named, SlicePlace(SelectSum(is, te(starts)), dim, step), Num(0));
    PrimExpr end = tir::Select(named, SlicePlace(SelectSum(is, te(ends)), dim, step), dim);
    PrimExpr rest = tir::Select(step > Num(0), Num(1), Num(-1));
    PrimExpr safe = tir::Select(equal(step, Num(0)), Num(1), step);
    out.push_back(n.Simplify(max(floordiv(end - begin + safe - rest, safe), Num(0))));
    from.push_back(n.Simplify(begin));
    by.push_back(n.Simplify(step));
  }
  return ComputeElements(n, "slice", te, out, [&](Index i) {
    for (size_t d = 0; d < i.size(); ++d) i[d] = from[d] + i[d] * by[d];
    return topi::At(t, i);
  });
}
Outputs ConvertSlice(Node& n) {
  Expr x = n.In(0);
  std::optional<int64_t> length;
  for (size_t i = 1; i < 5 && !length; ++i) {
    if (n.Has(i)) length = n.LengthOf(i);
  }
  if (!length || (n.Has(3) && !n.TryConstInts(3)) || (n.Has(4) && !n.TryConstInts(4)))
    return SliceRuntimeAxes(n, x, length);
  std::vector<PrimExpr> starts = n.Integers(1, length), ends = n.Integers(2, length);
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (n.Has(3)) axes = n.ConstInts(3);
  if (n.Has(4)) steps = n.ConstInts(4);
  if (ends.size() != axes.size() || starts.size() != axes.size() || steps.size() != axes.size())
    n.Fail("starts, ends, axes and steps of one length", "different ones");
  if (axes.empty()) return x;
  Dims shape = Node::Shape(x), begin, end, stride;
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i] = n.Axis(axes[i], Node::Rank(x), "axes");
    if (steps[i] == 0) n.Fail("steps other than 0", "0");
    PrimExpr d = shape[axes[i]];
    // As non-negative places: what counts from the end, and what lies beyond, depends on the step.
    auto place = [&](const PrimExpr& e) {
      PrimExpr low = Num(steps[i] > 0 ? 0 : -1), high = steps[i] > 0 ? d : d - Num(1);
      PrimExpr at = e;
      if (auto value = AsConstInt(e)) {
        if (*value < -(int64_t{1} << 40)) return low;
        if (*value > int64_t{1} << 40) return n.Simplify(high);
        at = *value < 0 ? d + Num(*value) : e;
      } else {
        at = tir::Select(e < Num(0), e + d, e);
      }
      return n.Simplify(max(min(at, high), low));
    };
    begin.push_back(place(starts[i]));
    end.push_back(place(ends[i]));
    stride.push_back(Num(steps[i]));
  }
  // The places are inside already; below 0 they would count from the end again.
  bool forward = std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s > 0; });
  if (forward) {
    for (size_t i = 0; i < axes.size(); ++i) end.Set(i, n.Simplify(max(end[i], begin[i])));
    return n("strided_slice", x, List(axes), begin, end, stride, true);
  }
  Te te(n);
  te::Tensor t = te(x);
  Dims out = t->shape;
  Index from(out.size(), Num(0)), step(out.size(), Num(1));
  for (size_t i = 0; i < axes.size(); ++i) {
    PrimExpr b = te(begin[i]), e = te(end[i]), s = stride[i];
    PrimExpr length = floordiv(e - b + s - Num(steps[i] > 0 ? 1 : -1), s);
    out.Set(axes[i], n.Simplify(max(length, Num(0))));
    from[axes[i]] = b;
    step[axes[i]] = s;
  }
  return ComputeElements(n, "slice", te, out, [&](Index i) {
    for (size_t d = 0; d < i.size(); ++d) i[d] = from[d] + i[d] * step[d];
    return topi::At(t, i);
  });
}
Outputs ConvertTrilu(Node& n) {
  Expr x = n.In(0);
  bool upper = n.Int("upper", 1) != 0;
  PrimExpr k = n.Has(1) ? n.Integer(1) : Num(0);
  Te te(n);
  return te.Done("trilu", topi::trilu(te(x), te(k), upper));
}
Outputs ConvertReverseSequence(Node& n) {
  int64_t batch = n.Int("batch_axis", 1), time = n.Int("time_axis", 0);
  Te te(n);
  return te.Done("reverse_sequence", topi::reverse_sequence(te(n.In(0)), te(n.In(1)), time, batch));
}

// ---- copies -------------------------------------------------------------------------------------
/// The sizes that Expand is given, as many as the result has axes where only running tells how many
/// they are: the first of them are 1.
std::vector<PrimExpr> SizesFromLast(Node& n) {
  auto rank = n.DeclaredRank(0);
  if (!rank || n.LengthOf(1)) return n.Integers(1);
  Te te(n);
  te::Tensor t = te(n.Cast(n.In(1), DataType::Int(64)));
  return n.RuntimeIntegers(
      ComputeElements(n, "sizes", te, {Num(*rank)}, [&](const Index& i) -> PrimExpr {
        PrimExpr from = i[0] + t->shape[0] - Num(*rank);
        return if_then_else(from >= Num(0), t(from), Num(1));
      }));
}
Outputs ConvertExpand(Node& n) {
  Expr x = n.In(0);
  Dims from = Node::Shape(x);
  std::vector<PrimExpr> wanted = SizesFromLast(n);
  std::vector<PrimExpr> own(from.begin(), from.end());
  if (own.size() < wanted.size()) own.insert(own.begin(), wanted.size() - own.size(), Num(1));
  if (wanted.size() < own.size()) wanted.insert(wanted.begin(), own.size() - wanted.size(), Num(1));
  Dims to;
  bool decided = true;
  auto* analyzer = n.importer.builder()->analyzer();
  for (size_t i = 0; i < own.size(); ++i) {
    if (IsOne(own[i])) {
      to.push_back(wanted[i]);
    } else if (IsOne(wanted[i]) || analyzer->CanProveEqual(own[i], wanted[i]) ||
               AsConstInt(own[i])) {
      to.push_back(own[i]);
    } else {
      decided &= AsConstInt(wanted[i]).has_value();
      to.push_back(AsConstInt(wanted[i]) ? wanted[i]
                                         : tir::Select(equal(own[i], Num(1)), wanted[i], own[i]));
    }
  }
  bool same = own.size() == from.size();
  for (size_t i = 0; same && i < to.size(); ++i) same = analyzer->CanProveEqual(own[i], to[i]);
  if (same) return x;
  bool plain = decided;
  for (size_t i = 0; plain && i < to.size(); ++i)
    plain = IsOne(own[i]) || analyzer->CanProveEqual(own[i], to[i]);
  if (plain) return n("broadcast_to", x, relax::ShapeExpr(to));
  Te te(n);
  te::Tensor t = te(x);
  return ComputeElements(n, "expand", te, te(to), [&](const Index& i) {
    Index at;
    size_t skip = i.size() - t->shape.size();
    for (size_t d = 0; d < t->shape.size(); ++d)
      at.push_back(tir::Select(equal(t->shape[d], Num(1)), Num(0), i[skip + d]));
    return topi::At(t, at);
  });
}
Outputs ConvertTile(Node& n) {
  Expr x = n.In(0);
  std::vector<PrimExpr> repeats = n.Integers(1, Node::Rank(x));
  if (repeats.size() != Node::Shape(x).size())
    n.Fail(std::to_string(Node::Rank(x)) + " repeats", std::to_string(repeats.size()));
  if (auto known = n.TryConstInts(1)) return n("tile", x, List(*known));
  Te te(n);
  te::Tensor t = te(x);
  Dims shape;
  for (size_t d = 0; d < repeats.size(); ++d)
    shape.push_back(n.Simplify(t->shape[d] * te(repeats[d])));
  return ComputeElements(n, "tile", te, shape, [&](Index i) {
    for (size_t d = 0; d < i.size(); ++d) i[d] = floormod(i[d], t->shape[d]);
    return topi::At(t, i);
  });
}
/// Where the element of a padded axis comes from.
PrimExpr PaddedPlace(const std::string& mode, const PrimExpr& i, const PrimExpr& d) {
  if (mode == "edge") return max(min(i, d - Num(1)), Num(0));
  if (mode == "wrap") return floormod(i, d);
  // reflect: the places repeat with a period of 2 (d - 1).
  PrimExpr period = max((d - Num(1)) * Num(2), Num(1));
  PrimExpr at = floormod(i, period);
  return min(at, period - at);
}
/// Whether padding by what is there, so many elements before and after, reads none twice over: the
/// edge of an axis that has elements, or a reflection within it.
bool ReadsWithin(const std::string& mode, const PrimExpr& dim, const PrimExpr& before,
                 const PrimExpr& after) {
  auto size = AsConstInt(dim);
  int64_t most = std::max(*AsConstInt(before), *AsConstInt(after));
  return most == 0 || (size && (mode == "edge" ? *size > 0 : mode == "reflect" && most < *size));
}
/// Padding before and after every axis, from axes of a number that only running tells.
Expr PadsByAxis(Node& n, int64_t rank) {
  Te te(n);
  Expr axes = n.Cast(n.In(3), DataType::Int(64)), pads = n.Cast(n.In(1), DataType::Int(64));
  PrimExpr count = Node::Shape(axes)[0];
  te::Tensor a = te(axes), p = te(n.Fitted(pads, {n.Simplify(count * Num(2))}));
  auto element = [&](const Index& i) {
    te::IterVar k = topi::Along(a->shape[0], "k");
    PrimExpr axis = floormod(i[0], Num(rank)), named = a(k->var);
    PrimExpr is = equal(named, axis) || equal(named, axis - Num(rank));
    PrimExpr from = k->var + tir::Select(i[0] < Num(rank), Num(0), a->shape[0]);
    return te::sum(if_then_else(is, p(from), Num(0)), {k});
  };
  return te.Done("pads", topi::Compute({Num(2 * rank)}, element, "pads", topi::kCommReduce));
}
Outputs ConvertPad(Node& n) {
  Expr x = n.In(0);
  std::string mode = n.Str("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    n.Fail("mode to be constant, edge, reflect or wrap", mode);
  int64_t rank = Node::Rank(x);
  std::vector<PrimExpr> axes, before, after;
  for (int64_t i = 0; i < rank; ++i) axes.push_back(Num(i));
  std::vector<PrimExpr> pads;
  if (n.Has(3) && !n.LengthOf(1) && !n.LengthOf(3)) {
    pads = n.RuntimeIntegers(PadsByAxis(n, rank));
  } else {
    if (n.Has(3)) {
      std::optional<int64_t> count = n.LengthOf(1);
      axes = n.Integers(3, count ? std::optional(*count / 2) : std::nullopt);
    }
    pads = n.Integers(1, 2 * axes.size());
  }
  if (pads.size() != 2 * axes.size())
    n.Fail(std::to_string(2 * axes.size()) + " pads", std::to_string(pads.size()));
  bool constant = true;
  auto middle = pads.begin() + static_cast<int64_t>(axes.size());
  for (int64_t i = 0; i < rank; ++i) {
    std::vector<PrimExpr> is = IsAxis(axes, i, rank);
    before.push_back(n.Simplify(SelectSum(is, {pads.begin(), middle})));
    after.push_back(n.Simplify(SelectSum(is, {middle, pads.end()})));
    constant &= AsConstInt(before[i]).value_or(-1) >= 0 && AsConstInt(after[i]).value_or(-1) >= 0;
  }
  std::optional<PrimExpr> fill = Num(Node::TypeOf(x), 0);
  if (n.Has(2)) fill = n.ScalarOf(2);
  Array<int64_t> widths;
  bool within = constant;
  for (int64_t a = 0; constant && a < rank; ++a) {
    widths.push_back(*AsConstInt(before[a]));
    widths.push_back(*AsConstInt(after[a]));
    within = within && ReadsWithin(mode, Node::Shape(x)[a], before[a], after[a]);
  }
  if (mode != "constant" && within) return n("nn.pad", x, widths, mode);
  if (mode == "constant" && constant && fill) {
    auto* number = fill->as<FloatImmObj>();
    double value = number ? number->value : static_cast<double>(AsConstInt(*fill).value_or(0));
    return n("nn.pad", x, widths, "constant", value);
  }
  Te te(n);
  te::Tensor t = te(x);
  Dims shape;
  std::vector<PrimExpr> first = te(before), last = te(after);
  for (int64_t a = 0; a < rank; ++a) shape.push_back(n.Simplify(t->shape[a] + first[a] + last[a]));
  PrimExpr value =
      fill ? tvm::cast(t->dtype, *fill) : te(n.Reshape(n.In(2), {}))(Array<PrimExpr>());
  return ComputeElements(n, "pad", te, shape, [&](Index i) -> PrimExpr {
    PrimExpr inside = const_true();
    for (size_t d = 0; d < i.size(); ++d) {
      i[d] = i[d] - first[d];
      if (IsZero(first[d]) && IsZero(last[d])) continue;
      if (mode == "constant") {
        inside = inside && i[d] >= Num(0) && i[d] < t->shape[d];
      } else {
        i[d] = PaddedPlace(mode, i[d], t->shape[d]);
      }
    }
    return IsTrue(inside) ? topi::At(t, i) : if_then_else(inside, topi::At(t, i), value);
  });
}
Outputs ConvertCenterCropPad(Node& n) {
  Expr x = n.In(0);
  int64_t rank = Node::Rank(x);
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  axes = n.Ints("axes", axes);
  std::vector<PrimExpr> wanted = n.Integers(1, axes.size());
  if (wanted.size() != axes.size())
    n.Fail(std::to_string(axes.size()) + " sizes", std::to_string(wanted.size()));
  Te te(n);
  te::Tensor t = te(x);
  Dims shape = t->shape;
  std::vector<PrimExpr> shift(rank, Num(0));  // from a place of the result to one of x
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t a = n.Axis(axes[i], rank, "axes");
    PrimExpr from = t->shape[a], to = te(wanted[i]);
    shape.Set(a, to);
    // Both halves round down: a crop begins early, padding too.
    shift[a] = n.Simplify(
        tir::Select(from > to, floordiv(from - to, Num(2)), Num(0) - floordiv(to - from, Num(2))));
  }
  return ComputeElements(n, "center_crop_pad", te, shape, [&](Index i) -> PrimExpr {
    PrimExpr inside = const_true();
    for (size_t d = 0; d < i.size(); ++d) {
      if (IsZero(shift[d]) && shape[d].same_as(t->shape[d])) continue;
      i[d] = i[d] + shift[d];
      inside = inside && i[d] >= Num(0) && i[d] < t->shape[d];
    }
    return if_then_else(inside, topi::At(t, i), MakeZero(t->dtype));
  });
}

}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"CenterCropPad", &ConvertCenterCropPad},
      {"Concat", &ConvertConcat},
      {"DepthToSpace", &ConvertDepthToSpace},
      {"Expand", &ConvertExpand},
      {"Flatten", &ConvertFlatten},
      {"Pad", &ConvertPad},
      {"Reshape", &ConvertReshape},
      {"ReverseSequence", &ConvertReverseSequence},
      {"Slice", &ConvertSlice},
      {"SpaceToDepth", &ConvertSpaceToDepth},
      {"Split", &ConvertSplit},
      {"Squeeze", &ConvertSqueeze},
      {"Tile", &ConvertTile},
      {"Transpose", &ConvertTranspose},
      {"Trilu", &ConvertTrilu},
      {"Unsqueeze", &ConvertUnsqueeze},
  });
}

}  // namespace tvm::frontend::onnx
