// SPDX-License-Identifier: Apache-2.0
// Operators on small tensors whose contents are known: what models compute from shapes is done when
// they are imported.
#include <numeric>

#include "frontend/onnx/importer.h"

namespace tvm::frontend::onnx {
namespace {
constexpr int64_t kMaxFolded = 1024;
using Position = std::vector<int64_t>;
using Folded = std::optional<Known>;

int64_t CountOf(const Position& shape) {
  int64_t count = 1;
  for (int64_t d : shape) {
    if (d < 0 || __builtin_mul_overflow(count, d, &count)) return kMaxFolded + 1;
  }
  return count;
}
Position PositionOf(int64_t flat, const Position& shape) {
  Position index(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) index[i] = flat % shape[i];
  return index;
}
int64_t FlatOf(const Position& index, const Position& shape) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}
/// A tensor of elements of `from`: `source` says where each comes from.
template <class F>
Folded Pick(const Known& from, Position shape, F source) {
  int64_t count = CountOf(shape);
  if (count > kMaxFolded) return std::nullopt;
  Known result{shape, from.dtype, {}};
  for (int64_t i = 0; i < count; ++i)
    result.elements.push_back(from.elements[FlatOf(source(PositionOf(i, shape)), from.shape)]);
  return result;
}
Folded Reshaped(const Known& from, Position shape) {
  if (CountOf(shape) != static_cast<int64_t>(from.elements.size())) return std::nullopt;
  return Known{std::move(shape), from.dtype, from.elements};
}
/// Constants of input `i`, or nothing.
std::optional<Position> ConstantsOf(Node& n, size_t i) {
  const Known* known = n.KnownOf(i);
  if (!known) return std::nullopt;
  Position values;
  for (const PrimExpr& e : known->elements) {
    auto value = AsConstInt(e);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}
std::optional<Position> BroadcastOf(const std::vector<const Known*>& operands) {
  Position shape;
  for (const Known* k : operands) {
    if (shape.size() < k->shape.size())
      shape.insert(shape.begin(), k->shape.size() - shape.size(), 1);
    for (size_t i = 0; i < k->shape.size(); ++i) {
      int64_t& d = shape[shape.size() - k->shape.size() + i];
      if (d != k->shape[i] && d != 1 && k->shape[i] != 1) return std::nullopt;
      d = d == 1 ? k->shape[i] : d;
    }
  }
  return shape;
}
const PrimExpr& Broadcasted(const Known& k, const Position& index) {
  Position own(k.shape.size());
  for (size_t i = 0; i < own.size(); ++i)
    own[i] = k.shape[i] == 1 ? 0 : index[index.size() - own.size() + i];
  return k.elements[FlatOf(own, k.shape)];
}
/// `element` of all inputs, which broadcast.
template <class F>
Folded Elementwise(Node& n, DataType dtype, F element) {
  std::vector<const Known*> operands;
  for (size_t i = 0; i < n.NumInputs(); ++i) operands.push_back(n.KnownOf(i));
  auto shape = BroadcastOf(operands);
  if (!shape || CountOf(*shape) > kMaxFolded) return std::nullopt;
  Known result{*shape, dtype, {}};
  for (int64_t i = 0; i < CountOf(*shape); ++i) {
    std::vector<PrimExpr> values;
    for (const Known* k : operands) values.push_back(Broadcasted(*k, PositionOf(i, *shape)));
    result.elements.push_back(n.Simplify(element(values)));
  }
  return result;
}

// ---- elementwise --------------------------------------------------------------------------------
using Two = PrimExpr (*)(PrimExpr a, PrimExpr b);
template <Two op>
Folded Arithmetic(Node& n) {
  return Elementwise(n, n.KnownOf(0)->dtype, [](const auto& v) {
    PrimExpr result = v[0];
    for (size_t i = 1; i < v.size(); ++i) result = op(result, v[i]);
    return result;
  });
}
template <Two op>
Folded Comparison(Node& n) {
  return Elementwise(n, DataType::Bool(), [](const auto& v) { return op(v[0], v[1]); });
}
#define TVM_ONNX_TWO(name, value) \
  PrimExpr name(PrimExpr a, PrimExpr b) { return value; }
TVM_ONNX_TWO(AddOf, a + b)
TVM_ONNX_TWO(SubOf, a - b)
TVM_ONNX_TWO(MulOf, a* b)
TVM_ONNX_TWO(DivOf, div(a, b))
TVM_ONNX_TWO(FloorModOf, floormod(a, b))
TVM_ONNX_TWO(MaxOf, max(a, b))
TVM_ONNX_TWO(MinOf, min(a, b))
TVM_ONNX_TWO(EqualOf, equal(a, b))
TVM_ONNX_TWO(LessOf, less(a, b))
TVM_ONNX_TWO(LessEqualOf, less_equal(a, b))
TVM_ONNX_TWO(GreaterOf, greater(a, b))
TVM_ONNX_TWO(GreaterEqualOf, greater_equal(a, b))
TVM_ONNX_TWO(AndOf, a&& b)
TVM_ONNX_TWO(OrOf, a || b)
#undef TVM_ONNX_TWO

template <PrimExpr (*op)(PrimExpr, Optional<Span>)>
Folded Unary(Node& n) {
  return Elementwise(n, n.KnownOf(0)->dtype, [](const auto& v) { return op(v[0], {}); });
}
Folded FoldMod(Node& n) {
  if (n.Int("fmod", 0) || n.KnownOf(0)->dtype.is_float()) return std::nullopt;
  return Arithmetic<&FloorModOf>(n);
}
Folded FoldDiv(Node& n) {
  // Division by zero stays in the program: what it gives depends on the type.
  for (const PrimExpr& e : n.KnownOf(1)->elements) {
    if (AsConstInt(e) == 0) return std::nullopt;
  }
  return Arithmetic<&DivOf>(n);
}
Folded FoldWhere(Node& n) {
  return Elementwise(n, n.KnownOf(1)->dtype, [](const auto& v) -> PrimExpr {
    if (IsTrue(v[0])) return v[1];
    if (IsFalse(v[0])) return v[2];
    return tir::Select(v[0], v[1], v[2]);
  });
}
Folded FoldCast(Node& n) {
  n.Ignore("saturate");
  n.Ignore("round_mode");
  auto to = DataTypeOf(n.Int("to"));
  if (!to) return std::nullopt;
  bool kept = to->is_bool() || (to->is_int() && to->bits() >= 32) ||
              (to->is_ieee_float() && to->bits() >= 32);
  if (!kept) return std::nullopt;
  return Elementwise(n, *to, [&](const auto& v) -> PrimExpr {
    if (to->is_bool()) return not_equal(v[0], MakeZero(v[0].dtype()));
    // A size that was a floating-point number for a while is that size again.
    auto* was = v[0].template as<tir::CastObj>();
    if (to->is_int() && was && was->value.dtype().is_int()) return was->value;
    return tvm::cast(to->is_int() ? DataType::Int(64) : *to, v[0]);
  });
}

// ---- shapes -------------------------------------------------------------------------------------
Folded FoldIdentity(Node& n) { return *n.KnownOf(0); }
Folded FoldReshape(Node& n) {
  auto shape = ConstantsOf(n, 1);
  bool allow_zero = n.Int("allowzero", 0) != 0;
  const Known& x = *n.KnownOf(0);
  if (!shape) return std::nullopt;
  int64_t known = 1;
  for (size_t i = 0; i < shape->size(); ++i) {
    if ((*shape)[i] == 0 && !allow_zero && i < x.shape.size()) (*shape)[i] = x.shape[i];
    if ((*shape)[i] > 0) known *= (*shape)[i];
  }
  for (int64_t& d : *shape) {
    if (d == -1) d = static_cast<int64_t>(x.elements.size()) / std::max<int64_t>(known, 1);
  }
  return Reshaped(x, *shape);
}
Folded FoldSqueeze(Node& n) {
  const Known& x = *n.KnownOf(0);
  std::set<int64_t> axes;
  if (n.Has(1)) {
    auto given = ConstantsOf(n, 1);
    if (!given) return std::nullopt;
    for (int64_t a : *given) axes.insert(n.Axis(a, static_cast<int64_t>(x.shape.size()), "axes"));
  }
  Position shape;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    bool removed = n.Has(1) ? axes.count(static_cast<int64_t>(i)) != 0 : x.shape[i] == 1;
    if (!removed) shape.push_back(x.shape[i]);
  }
  return Reshaped(x, shape);
}
Folded FoldUnsqueeze(Node& n) {
  const Known& x = *n.KnownOf(0);
  auto given = ConstantsOf(n, 1);
  if (!given) return std::nullopt;
  int64_t rank = static_cast<int64_t>(x.shape.size() + given->size());
  std::set<int64_t> axes;
  for (int64_t a : *given) axes.insert(n.Axis(a, rank, "axes"));
  Position shape;
  for (int64_t i = 0, from = 0; i < rank; ++i) shape.push_back(axes.count(i) ? 1 : x.shape[from++]);
  return axes.size() == given->size() ? Reshaped(x, shape) : std::nullopt;
}
Folded FoldTranspose(Node& n) {
  const Known& x = *n.KnownOf(0);
  Position order(x.shape.size());
  std::iota(order.rbegin(), order.rend(), 0);
  order = n.Ints("perm", order);
  if (order.size() != x.shape.size()) return std::nullopt;
  Position shape;
  for (int64_t& a : order) {
    a = n.Axis(a, static_cast<int64_t>(x.shape.size()), "perm");
    shape.push_back(x.shape[a]);
  }
  return Pick(x, shape, [&](const Position& to) {
    Position from(to.size());
    for (size_t i = 0; i < to.size(); ++i) from[order[i]] = to[i];
    return from;
  });
}
Folded FoldConcat(Node& n) {
  const Known& first = *n.KnownOf(0);
  int64_t axis = n.Axis(n.Int("axis"), static_cast<int64_t>(first.shape.size()));
  Known result{first.shape, first.dtype, {}};
  int64_t outer = CountOf({first.shape.begin(), first.shape.begin() + axis});
  result.shape[axis] = 0;
  for (size_t i = 0; i < n.NumInputs(); ++i) {
    if (n.KnownOf(i)->shape.size() != first.shape.size()) return std::nullopt;
    result.shape[axis] += n.KnownOf(i)->shape[axis];
  }
  if (CountOf(result.shape) > kMaxFolded) return std::nullopt;
  for (int64_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < n.NumInputs(); ++i) {
      const auto& elements = n.KnownOf(i)->elements;
      auto size = static_cast<int64_t>(elements.size()) / outer;
      result.elements.insert(result.elements.end(), elements.begin() + o * size,
                             elements.begin() + (o + 1) * size);
    }
  }
  return result;
}
Folded FoldGather(Node& n) {
  const Known &x = *n.KnownOf(0), &indices = *n.KnownOf(1);
  int64_t axis = n.Axis(n.Int("axis", 0), static_cast<int64_t>(x.shape.size()));
  auto at = ConstantsOf(n, 1);
  if (!at) return std::nullopt;
  for (int64_t& i : *at) {
    if (i < -x.shape[axis] || i >= x.shape[axis])
      n.Fail("indices into " + std::to_string(x.shape[axis]) + " elements", std::to_string(i));
    if (i < 0) i += x.shape[axis];
  }
  Position shape(x.shape.begin(), x.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  auto rank = static_cast<int64_t>(indices.shape.size());
  return Pick(x, shape, [&](const Position& to) {
    Position from(to.begin(), to.begin() + axis);
    from.push_back((*at)[FlatOf({to.begin() + axis, to.begin() + axis + rank}, indices.shape)]);
    from.insert(from.end(), to.begin() + axis + rank, to.end());
    return from;
  });
}
Folded FoldSlice(Node& n) {
  const Known& x = *n.KnownOf(0);
  auto rank = static_cast<int64_t>(x.shape.size());
  auto starts = ConstantsOf(n, 1), ends = ConstantsOf(n, 2);
  if (!starts || !ends) return std::nullopt;
  Position axes(starts->size()), steps(starts->size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (n.Has(3)) {
    auto given = ConstantsOf(n, 3);
    if (!given) return std::nullopt;
    axes = *given;
  }
  if (n.Has(4)) {
    auto given = ConstantsOf(n, 4);
    if (!given) return std::nullopt;
    steps = *given;
  }
  if (ends->size() != axes.size() || starts->size() != axes.size() || steps.size() != axes.size())
    return std::nullopt;
  Position shape = x.shape, begin(rank, 0), step(rank, 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t a = n.Axis(axes[i], rank, "axes"), d = x.shape[a], s = steps[i];
    if (s == 0) n.Fail("steps other than 0", "0");
    auto clip = [&](int64_t v) {
      v = v < 0 ? v + d : v;
      return s > 0 ? std::clamp<int64_t>(v, 0, d) : std::clamp<int64_t>(v, -1, d - 1);
    };
    int64_t from = clip((*starts)[i]), to = clip((*ends)[i]);
    begin[a] = from;
    step[a] = s;
    shape[a] = std::max<int64_t>(0, (to - from + s - (s > 0 ? 1 : -1)) / s);
  }
  return Pick(x, shape, [&](const Position& to) {
    Position from(to.size());
    for (size_t i = 0; i < to.size(); ++i) from[i] = begin[i] + to[i] * step[i];
    return from;
  });
}
Folded FoldExpand(Node& n) {
  const Known& x = *n.KnownOf(0);
  auto shape = ConstantsOf(n, 1);
  if (!shape) return std::nullopt;
  Known like{*shape, DataType::Bool(), {}};
  auto common = BroadcastOf({&x, &like});
  if (!common || CountOf(*common) > kMaxFolded) return std::nullopt;
  Known result{*common, x.dtype, {}};
  for (int64_t i = 0; i < CountOf(*common); ++i)
    result.elements.push_back(Broadcasted(x, PositionOf(i, *common)));
  return result;
}
Folded FoldConstantOfShape(Node& n) {
  auto shape = ConstantsOf(n, 0);
  PrimExpr fill = MakeConst(DataType::Float(32), 0.0);
  DataType dtype = DataType::Float(32);
  if (const Attribute* value = n.Find("value", Attribute::kTensor)) {
    Value tensor = n.importer.Constant(MakeTensor(n.importer.model(), *value->tensor));
    const Known* known = n.importer.KnownOf(&tensor);
    if (!known || known->elements.size() != 1) return std::nullopt;
    fill = known->elements[0];
    dtype = known->dtype;
  }
  if (!shape || CountOf(*shape) > 64) return std::nullopt;
  return Known{*shape, dtype, std::vector<PrimExpr>(CountOf(*shape), fill)};
}
Folded FoldRange(Node& n) {
  auto start = ConstantsOf(n, 0), limit = ConstantsOf(n, 1), delta = ConstantsOf(n, 2);
  n.Ignore("stash_type");
  DataType dtype = n.KnownOf(0)->dtype;
  if (!start || !limit || !delta || dtype.is_float() || (*delta)[0] == 0) return std::nullopt;
  Known result{{0}, dtype, {}};
  for (int64_t v = (*start)[0]; (*delta)[0] > 0 ? v < (*limit)[0] : v > (*limit)[0];
       v += (*delta)[0]) {
    if (++result.shape[0] > kMaxFolded) return std::nullopt;
    result.elements.push_back(IntImm::Int64(v));
  }
  return result;
}
template <Two op>
Folded ReduceAllOf(Node& n) {
  const Known& x = *n.KnownOf(0);
  bool keep = n.Int("keepdims", 1) != 0, noop = n.Int("noop_with_empty_axes", 0) != 0;
  if (x.shape.size() > 1 || x.elements.empty()) return std::nullopt;
  if (n.Has(1) && (!ConstantsOf(n, 1) || ConstantsOf(n, 1)->size() > 1)) return std::nullopt;
  if (noop && (!n.Has(1) || ConstantsOf(n, 1)->empty())) return x;
  PrimExpr result = x.elements[0];
  for (size_t i = 1; i < x.elements.size(); ++i) result = op(result, x.elements[i]);
  return Known{keep ? Position(x.shape.size(), 1) : Position(), x.dtype, {n.Simplify(result)}};
}

struct Fold {
  Name op;
  Folded (*fold)(Node& n);
};
constexpr Fold kFolds[] = {
    {"Abs", &Unary<&tvm::abs>},
    {"Add", &Arithmetic<&AddOf>},
    {"And", &Comparison<&AndOf>},
    {"Cast", &FoldCast},
    {"Ceil", &Unary<&tvm::ceil>},
    {"Concat", &FoldConcat},
    {"ConstantOfShape", &FoldConstantOfShape},
    {"Div", &FoldDiv},
    {"Equal", &Comparison<&EqualOf>},
    {"Expand", &FoldExpand},
    {"Floor", &Unary<&tvm::floor>},
    {"Gather", &FoldGather},
    {"Greater", &Comparison<&GreaterOf>},
    {"GreaterOrEqual", &Comparison<&GreaterEqualOf>},
    {"Identity", &FoldIdentity},
    {"Less", &Comparison<&LessOf>},
    {"LessOrEqual", &Comparison<&LessEqualOf>},
    {"Max", &Arithmetic<&MaxOf>},
    {"Min", &Arithmetic<&MinOf>},
    {"Mod", &FoldMod},
    {"Mul", &Arithmetic<&MulOf>},
    {"Neg", &Unary<&tvm::neg>},
    {"Not", &Unary<&tvm::logical_not>},
    {"Or", &Comparison<&OrOf>},
    {"Range", &FoldRange},
    {"ReduceMax", &ReduceAllOf<&MaxOf>},
    {"ReduceMin", &ReduceAllOf<&MinOf>},
    {"ReduceProd", &ReduceAllOf<&MulOf>},
    {"ReduceSum", &ReduceAllOf<&AddOf>},
    {"Reshape", &FoldReshape},
    {"Slice", &FoldSlice},
    {"Squeeze", &FoldSqueeze},
    {"Sub", &Arithmetic<&SubOf>},
    {"Sum", &Arithmetic<&AddOf>},
    {"Transpose", &FoldTranspose},
    {"Unsqueeze", &FoldUnsqueeze},
    {"Where", &FoldWhere},
};
}  // namespace

std::optional<Outputs> FoldKnown(Node& n) {
  auto* fold = std::find_if(std::begin(kFolds), std::end(kFolds),
                            [&](const Fold& f) { return f.op == n.op; });
  if (fold == std::end(kFolds) || !n.proto.domain.empty() || n.NumInputs() == 0) return {};
  for (size_t i = 0; i < n.NumInputs(); ++i) {
    bool is_known = !n.inputs[i].IsOpen() && n.importer.KnownOf(&n.inputs[i]);
    if (n.inputs[i].defined() && !is_known) return {};
    if (!n.inputs[i].defined() && i < 2) return {};
  }
  auto folded = fold->fold(n);
  if (!folded) return {};
  return Outputs(Value(*std::move(folded)));
}

}  // namespace tvm::frontend::onnx
