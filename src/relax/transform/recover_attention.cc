// SPDX-License-Identifier: Apache-2.0
// Attention re-formed from two products with a softmax between them.
#include <algorithm>
#include <limits>

#include "relax/legalize/lowering.h"
#include "relax/transform/spelled.h"
#include "runtime/host_tensor.h"

namespace tvm::relax {
namespace {
Expr Permuted(const Expr& expr, std::initializer_list<int64_t> order) {
  Ints axes;
  for (int64_t i : order) axes.push_back(IntImm::Int32(i));
  return CallOperator("relax.permute_dims", {expr, axes});
}
/// The operand of a cast, or the expression.
Expr WithoutCast(const Spelled& s, const Expr& expr) {
  return s.OperandOf(expr, s.ops.astype).value_or(expr);
}
/// A number so low that nothing of what it is added to is left.
bool IsMinusInfinity(double number) { return number <= -1e9; }

/// What is added to the scores, or which of them count.
struct Mask {
  Optional<Expr> bias;
  Optional<String> causal;
};
/// Which of the elements of a constant (…, S, S') are masked: "TopLeft" or "BottomRight" when those
/// above a diagonal are in all of its matrices.
Optional<String> CausalKind(const ConstantObj* constant,
                            const std::function<bool(int64_t)>& masked) {
  int64_t ndim = constant->data.ndim();
  if (ndim < 2) return std::nullopt;
  int64_t rows = constant->data.size(ndim - 2), columns = constant->data.size(ndim - 1);
  for (int64_t offset : {int64_t{0}, columns - rows}) {
    bool fits = rows > 1 && offset >= 0;  // of a query that sees nothing numbers as low may count
    for (int64_t i = 0; fits && i < constant->data.numel(); ++i) {
      int64_t column = i % columns, row = i / columns % rows;
      fits = masked(i) == (column > row + offset);
    }
    if (fits) return String(offset == 0 ? "TopLeft" : "BottomRight");
  }
  return std::nullopt;
}
Optional<String> CausalBias(const Spelled& s, const Expr& bias) {
  Expr value = s.Value(bias);
  auto* constant = value.as<ConstantObj>();
  if (!constant || DataType(constant->data.dtype()) != DataType::Float(32)) return std::nullopt;
  runtime::Tensor host = runtime::HostTensor(constant->data);
  auto* data = static_cast<const float*>(host.data_ptr());
  for (int64_t i = 0; i < host.numel(); ++i) {
    if (data[i] != 0 && !IsMinusInfinity(data[i])) return std::nullopt;
  }
  return CausalKind(constant, [data](int64_t i) { return data[i] != 0; });
}
Optional<String> CausalCondition(const Spelled& s, const Expr& condition, bool keeps) {
  Expr value = s.Value(condition);
  auto* constant = value.as<ConstantObj>();
  if (!constant || DataType(constant->data.dtype()) != DataType::Bool()) return std::nullopt;
  auto* data = static_cast<const uint8_t*>(constant->data.data_ptr());
  return CausalKind(constant, [data, keeps](int64_t i) { return (data[i] != 0) != keeps; });
}

DataType ElementTypeOf(const Expr& expr) {
  return GetStructInfoAs<TensorStructInfoObj>(expr)->dtype;
}

constexpr double kLowest = -std::numeric_limits<double>::infinity();
/// `scores == -inf` of a condition that all scores of a row are, of which a softmax is made:
/// PyTorch's not any(not (scores == -inf)).
Optional<Expr> TestedScores(const Spelled& s, const Expr& condition, const Expr& softmax) {
  auto made = s.CallOf(softmax, s.ops.softmax);
  auto some = s.OperandOf(condition, s.ops.logical_not);
  auto seen = some ? s.ReductionOf(WithoutCast(s, *some), s.ops.max) : std::nullopt;
  if (!made || !seen || seen->axes != 1) return std::nullopt;
  auto hidden = s.OperandOf(WithoutCast(s, seen->operand), s.ops.logical_not);
  auto test = hidden ? s.CallOf(*hidden, s.ops.equal) : std::nullopt;
  bool is_of_all =
      test && s.Same((*test)->args[0], (*made)->args[0]) && s.Scalar((*test)->args[1]) == kLowest;
  return is_of_all ? Optional<Expr>(*test) : std::nullopt;
}
/// Whether what is chosen in the place of weights is 0.
bool IsZero(const Spelled& s, const Expr& expr, const Expr& weights) {
  auto zeros = s.CallOf(expr, s.ops.full_like);
  return s.Scalar(zeros ? (*zeros)->args[1] : s.WithoutAxes(expr, weights)) == 0;
}

class AttentionFinder {
 public:
  /// `call` is the last product, whose result is wanted as `type`.
  AttentionFinder(const Spelled& s, const Call& call, DataType type)
      : s_(s), call_(call), type_(type) {}
  Optional<Expr> Find() {
    int64_t rank = RankOf(call_->args[1]);
    if ((rank != 3 && rank != 4) || RankOf(call_->args[0]) != rank) return std::nullopt;
    Expr weights = WithoutCast(s_, call_->args[0]);
    Optional<Expr> watched = TakeGuard(&weights);
    auto softmax = s_.CallOf(weights, s_.ops.softmax);
    if (!softmax) return std::nullopt;
    int64_t axis = Spelled::AttrsOf<SoftmaxAttrsObj>(*softmax)->axis;
    if (axis != -1 && axis != rank - 1) return std::nullopt;
    Expr scores = WithoutCast(s_, (*softmax)->args[0]);
    TakeMask(&scores);
    if (watched && (!mask_.bias || !s_.Same(watched.value(), mask_.bias.value())))
      return std::nullopt;
    if (!TakeProduct(scores)) return std::nullopt;
    auto q = DimsOfTensor(query_), k = DimsOfTensor(key_), v = DimsOfTensor(call_->args[1]);
    if (!q || !k || !v || RankOf(query_) != rank || RankOf(key_) != rank) return std::nullopt;
    for (const Expr& operand : {query_, key_, Expr(call_->args[1])}) {
      if (ElementTypeOf(operand) != type_) return std::nullopt;
    }
    return rank == 4 ? Multi(q.value(), k.value()) : Single(q.value(), k.value());
  }

 private:
  /// w of where(isnan(w), 0, w), and of where(all scores of the row are -inf, 0, w): exporters
  /// write it for queries that see nothing, of which attention is 0. Where not the scores but their
  /// mask is looked at, max(mask) == -inf, it is returned.
  Optional<Expr> TakeGuard(Expr* weights) {
    auto choice = s_.CallOf(*weights, s_.ops.where);
    if (!choice) return std::nullopt;
    const Expr &condition = (*choice)->args[0], &zero = (*choice)->args[1],
               &inside = (*choice)->args[2];
    if (!IsZero(s_, zero, inside)) return std::nullopt;
    auto tested = s_.OperandOf(condition, s_.ops.isnan);
    zero_nan_ = tested && s_.Same(*tested, inside);
    auto test = s_.CallOf(condition, s_.ops.equal);
    auto top = test ? s_.ReductionOf((*test)->args[0], s_.ops.max) : std::nullopt;
    bool is_of_mask = top && top->axes == 1 && s_.Scalar((*test)->args[1]) == kLowest;
    if (zero_nan_ || is_of_mask || TestedScores(s_, condition, inside)) *weights = inside;
    return is_of_mask ? Optional<Expr>(top->operand) : std::nullopt;
  }
  void TakeMask(Expr* scores) {
    if (auto sum = s_.CallOf(*scores, s_.ops.add)) {
      for (int i = 0; i < 2; ++i) {
        if (!LeadsToProduct((*sum)->args[i])) continue;
        mask_.bias = (*sum)->args[1 - i];
        mask_.causal = CausalBias(s_, mask_.bias.value());
        *scores = (*sum)->args[i];
        return;
      }
    }
    auto choice = s_.CallOf(*scores, s_.ops.where);
    for (int i = 1; choice && i < 3; ++i) {
      auto low = s_.Scalar(s_.WithoutAxes((*choice)->args[3 - i], (*choice)->args[i]));
      if (!low || !IsMinusInfinity(*low)) continue;
      bool keeps = i == 1;  // where the condition holds the score counts
      const Expr& condition = (*choice)->args[0];
      mask_.causal = CausalCondition(s_, condition, keeps);
      Expr zero = MakeScalar(0, (*choice)->args[i]), lowest = MakeScalar(*low, (*choice)->args[i]);
      mask_.bias =
          CallOperator("relax.where", {condition, keeps ? zero : lowest, keeps ? lowest : zero});
      mask_dims_ = DimsOfTensor(condition);
      *scores = (*choice)->args[i];
      return;
    }
  }
  bool LeadsToProduct(const Expr& expr) const {
    Spelled::Product p = s_.ProductOf(expr);
    return p.factors.size() == 1 && p.denominators.empty() &&
           s_.CallOf(WithoutCast(s_, p.factors[0]), s_.ops.matmul);
  }
  static Expr MakeScalar(double value, const Expr& like) {
    return MakeConstant({value}, {}, ElementTypeOf(like));
  }
  /// scale · query · keyᵀ, where the scale may stand anywhere.
  bool TakeProduct(const Expr& scores) {
    Spelled::Product p = s_.ProductOf(scores);
    if (p.factors.size() != 1 || !p.denominators.empty()) return false;
    auto product = s_.CallOf(WithoutCast(s_, p.factors[0]), s_.ops.matmul);
    if (!product) return false;
    scale_ = p.scale;
    query_ = TakeScale((*product)->args[0]);
    key_ = TakeScale((*product)->args[1]);
    return true;
  }
  Expr TakeScale(const Expr& expr) {
    Spelled::Product p = s_.ProductOf(expr);
    if (p.factors.size() != 1 || !p.denominators.empty()) return expr;
    // keys may be scaled before they are transposed
    if (auto permute = s_.CallOf(p.factors[0], s_.ops.permute_dims)) {
      Spelled::Product inner = s_.ProductOf((*permute)->args[0]);
      if (inner.factors.size() == 1 && inner.denominators.empty() && inner.scale != 1) {
        scale_ *= p.scale * inner.scale;
        Call turned((*permute)->op, {inner.factors[0]}, (*permute)->attrs);
        UpdateStructInfo(turned, GetStructInfo(p.factors[0]));
        return turned;
      }
    }
    scale_ *= p.scale;
    return p.factors[0];
  }
  /// The tensor (B, n, S, d) of which each head was repeated to make (B, N, S, d), or itself.
  Expr WithoutRepeats(const Expr& expr) const {
    if (auto repeat = s_.CallOf(expr, s_.ops.repeat)) {
      auto axis = Spelled::AttrsOf<RepeatAttrsObj>(*repeat)->axis;
      if (axis && (axis.value() == 1 || axis.value() == -3) && RankOf((*repeat)->args[0]) == 4)
        return (*repeat)->args[0];
    }
    // (B, n, S, d) -> (B, n, 1, S, d) -> (B, n, r, S, d) -> (B, N, S, d)
    auto joined = s_.CallOf(expr, s_.ops.reshape);
    auto spread = joined ? s_.CallOf((*joined)->args[0], s_.ops.broadcast_to) : std::nullopt;
    if (joined && !spread) spread = s_.CallOf((*joined)->args[0], s_.ops.tile);
    if (!spread || RankOf((*spread)->args[0]) != 5) return expr;
    auto source = s_.CallOf((*spread)->args[0], s_.ops.expand_dims);
    if (!source) source = s_.CallOf((*spread)->args[0], s_.ops.reshape);
    if (!source || RankOf((*source)->args[0]) != 4) return expr;
    auto before = DimsOfTensor((*source)->args[0]), middle = DimsOfTensor((*spread)->args[0]),
         wide = DimsOfTensor(*spread), after = DimsOfTensor(expr);
    if (!before || !middle || !wide || !after) return expr;
    const auto &b = before.value(), &m = middle.value(), &w = wide.value(), &a = after.value();
    DimProver prover(nullptr);
    auto* one = m[2].as<IntImmObj>();
    bool fits = one && one->value == 1 &&
                prover.Compare(Array<PrimExpr>{m[0], m[1], m[3], m[4]}, b) == DimsAre::kEqual &&
                prover.Compare(Array<PrimExpr>{w[0], w[1], w[3], w[4]}, b) == DimsAre::kEqual &&
                prover.Compare(Array<PrimExpr>{a[0], a[2], a[3]},
                               Array<PrimExpr>{b[0], b[2], b[3]}) == DimsAre::kEqual;
    return fits ? Expr((*source)->args[0]) : expr;
  }
  /// The mask as a bias (b or 1, h or 1, s or 1, s'): false when it has another form.
  bool ShapeBias(const Array<PrimExpr>& wanted) {
    if (mask_.causal) {
      mask_.bias = std::nullopt;
      return true;
    }
    if (!mask_.bias) return true;
    auto known = mask_dims_ ? mask_dims_ : DimsOfTensor(mask_.bias.value());
    if (!known || known.value().size() > wanted.size()) return false;
    Array<PrimExpr> dims = known.value();
    size_t missing = wanted.size() - dims.size();
    DimProver prover(nullptr);
    for (size_t i = 0; i < dims.size(); ++i) {
      auto* number = dims[i].as<IntImmObj>();
      bool is_one = number && number->value == 1 && i + 1 < dims.size();
      if (!is_one && prover.Compare(dims[i], wanted[i + missing]) != DimsAre::kEqual) return false;
    }
    Array<PrimExpr> full;
    for (size_t i = 0; i < missing; ++i) full.push_back(IntImm::Int64(1));
    for (const PrimExpr& dim : dims) full.push_back(dim);
    if (wanted.size() == 3) full.insert(full.begin() + 1, IntImm::Int64(1));
    if (full.size() != dims.size())
      mask_.bias = CallOperator("relax.reshape", {mask_.bias.value(), ShapeExpr(full)});
    return true;
  }
  Expr Attention(const Expr& q, const Expr& k, const Expr& v, const PrimExpr& size) const {
    Any scale;
    auto* number = size.as<IntImmObj>();
    bool is_default =
        number && Spelled::IsNear(scale_, 1 / std::sqrt(static_cast<double>(number->value)));
    if (!is_default) scale = FloatImm(DataType::Float(32), scale_);
    return CallOperator("relax.nn.attention",
                        {q, k, v, mask_.bias, scale, mask_.causal, nullptr, zero_nan_});
  }
  /// query (B, N, S, d), key transposed (B, N, d, S'), value (B, N, S', e)
  Optional<Expr> Multi(const Array<PrimExpr>& q, const Array<PrimExpr>& k) {
    if (!ShapeBias({q[0], q[1], q[2], k[3]})) return std::nullopt;
    // Transposed to (B, S, N, d) and back, which is part of what computed it before or nothing next
    // to the scores of many queries.
    auto value = WithoutRepeats(call_->args[1]);
    Expr key = Permuted(key_, {0, 3, 1, 2});
    if (auto turned = s_.CallOf(key_, s_.ops.permute_dims); turned && SwapsLastTwo(turned->get())) {
      Expr source = WithoutRepeats((*turned)->args[0]);
      key = Permuted(source, {0, 2, 1, 3});
      bool repeated = !source.same_as((*turned)->args[0]);
      if (repeated != !value.same_as(call_->args[1])) return std::nullopt;
    } else if (!value.same_as(call_->args[1])) {
      return std::nullopt;
    }
    Expr result =
        Attention(Permuted(query_, {0, 2, 1, 3}), key, Permuted(value, {0, 2, 1, 3}), q[3]);
    return Permuted(result, {0, 2, 1, 3});
  }
  /// The same without heads.
  Optional<Expr> Single(const Array<PrimExpr>& q, const Array<PrimExpr>& k) {
    if (!ShapeBias({q[0], q[1], k[2]})) return std::nullopt;
    auto with_head = [](const Expr& e) { return CallOperator("relax.expand_dims", {e, 2}); };
    Expr result = Attention(with_head(query_), with_head(Permuted(key_, {0, 2, 1})),
                            with_head(call_->args[1]), q[2]);
    return CallOperator("relax.squeeze", {result, Ints{IntImm::Int32(2)}});
  }
  const Spelled& s_;
  const Call call_;
  DataType type_;
  Expr query_, key_;
  double scale_ = 1;
  Mask mask_;
  bool zero_nan_ = false;
  Optional<Array<PrimExpr>> mask_dims_;
};
}  // namespace

// where(not any(not (s == -inf)), 0, p) @ v  ->  where(isnan(p) and s == -inf, 0, p) @ v
// In rows that are -inf everywhere both are 0. Other rows with NaN among their weights keep one,
// which makes all of the product NaN.
Optional<Expr> GuardInPlace(const Spelled& s, const Call& call) {
  if (!call->Is(s.ops.matmul)) return std::nullopt;
  auto choice = s.CallOf(call->args[0], s.ops.where);
  if (!choice || !IsZero(s, (*choice)->args[1], (*choice)->args[2])) return std::nullopt;
  const Expr& weights = (*choice)->args[2];
  Optional<Expr> hidden = TestedScores(s, (*choice)->args[0], weights);
  if (!hidden) return std::nullopt;
  Expr both =
      CallOperator("relax.logical_and", {CallOperator("relax.isnan", {weights}), hidden.value()});
  Expr zero = MakeConstant({0.0}, {}, ElementTypeOf(weights));
  return Call(call->op, {CallOperator("relax.where", {both, zero, weights}), call->args[1]},
              call->attrs);
}

Optional<Expr> RecoverAttention(const Spelled& s, const Call& call) {
  // Of small floats the last product is often a sum in float32 that is rounded at its end.
  bool rounds = call->Is(s.ops.astype);
  auto product = s.CallOf(rounds ? call->args[0] : Expr(call), s.ops.matmul);
  if (!product) return std::nullopt;
  return AttentionFinder(s, *product, ElementTypeOf(call)).Find();
}

}  // namespace tvm::relax
