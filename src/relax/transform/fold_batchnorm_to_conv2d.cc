// SPDX-License-Identifier: Apache-2.0
// A batch normalisation behind a convolution or a product goes into its weights and its bias.
#include <algorithm>
#include <unordered_map>

#include "relax/transform/products.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Where the channels of a product's result are, in its weights and in the result.
struct Channels {
  int64_t in_weights, in_result;
};

template <class Attrs>
std::optional<Channels> OfConv(const CallObj* conv, bool transposed) {
  auto* attrs = static_cast<const Attrs*>(conv->attrs.value().get());
  // Weights of a transposed convolution in groups hold the channels of one group.
  if (transposed && attrs->groups != 1) return std::nullopt;
  auto rank = static_cast<size_t>(RankOf(conv->args[0]));
  size_t out = View(attrs->kernel_layout).find('O'), channel = View(attrs->out_layout).find('C');
  // Channels in blocks have two axes.
  if (attrs->kernel_layout.size() != rank || attrs->out_layout.size() != rank) return std::nullopt;
  return Channels{static_cast<int64_t>(out), static_cast<int64_t>(channel)};
}
std::optional<Channels> OfMatmul(const CallObj* matmul) {
  if (RankOf(matmul->args[1]) != 2 || RankOf(matmul->args[0]) < 1) return std::nullopt;
  return Channels{1, RankOf(matmul->args[0]) - 1};
}
std::optional<Channels> ChannelsOf(const CallObj* product) {
  using Rule = std::optional<Channels> (*)(const CallObj*);
  static const std::pair<Op, Rule> kRules[] = {
      {Op::Get("relax.nn.conv2d"), [](auto* c) { return OfConv<Conv2DAttrsObj>(c, false); }},
      {Op::Get("relax.nn.conv1d"), [](auto* c) { return OfConv<Conv1DAttrsObj>(c, false); }},
      {Op::Get("relax.nn.conv3d"), [](auto* c) { return OfConv<Conv3DAttrsObj>(c, false); }},
      {Op::Get("relax.nn.conv1d_transpose"),
       [](auto* c) { return OfConv<Conv1DTransposeAttrsObj>(c, true); }},
      {Op::Get("relax.nn.conv2d_transpose"),
       [](auto* c) { return OfConv<Conv2DTransposeAttrsObj>(c, true); }},
      {Op::Get("relax.matmul"), &OfMatmul}};
  for (auto& [op, rule] : kRules) {
    if (product->Is(op)) return rule(product);
  }
  return std::nullopt;
}

DataType TypeOf(const Expr& tensor) { return GetStructInfoAs<TensorStructInfoObj>(tensor)->dtype; }
/// A vector as a tensor of so many dimensions that runs along one of them.
Expr Spread(const Expr& vector, int64_t axis, int64_t rank) {
  Ints others;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) others.push_back(IntImm::Int32(i));
  }
  return CallOperator("relax.expand_dims", {vector, others});
}
/// Whether a summand is the same everywhere along all other dimensions of the result.
bool VariesAlong(const Expr& bias, int64_t axis, int64_t rank) {
  Optional<Array<PrimExpr>> dims = DimsOfTensor(bias);
  if (!dims || static_cast<int64_t>(dims.value().size()) > rank) return false;
  int64_t first = rank - static_cast<int64_t>(dims.value().size());
  for (int64_t i = first; i < rank; ++i) {
    if (i != axis && !IsOne(dims.value()[i - first])) return false;
  }
  return true;
}

class BatchNormFolder : public ExprMutator {
 public:
  BatchNormFolder(const Function& func, bool keep_training) : keep_training_(keep_training) {
    PostOrderVisit(func, [&](const Expr& e) {
      if (auto* var = e.as<VarObj>()) ++uses_[var->vid.get()];
    });
  }
  Expr VisitExpr_(const TupleGetItemObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* item = visited.as<TupleGetItemObj>();
    const CallObj* norm = item ? CallBehind(item->tuple_value) : nullptr;
    if (!norm || !norm->Is(batch_norm_) || !AreConstant(norm->args, 1)) return visited;
    auto* attrs = norm->attrs.value().as<BatchNormAttrsObj>();
    if (attrs->training && keep_training_) return visited;
    if (item->index > 0) return norm->args[item->index + 2];  // the moving statistics
    Expr bias;
    const CallObj* product = ProductBehind(norm->args[0], &bias);
    if (!product) return visited;
    return Folded(product, bias, norm, attrs).value_or(visited);
  }

 private:
  const CallObj* CallBehind(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    Optional<Expr> value = var ? LookupBinding(ffi::GetRef<Var>(var)) : std::nullopt;
    return value ? value.value().as<CallObj>() : nullptr;
  }
  /// What a value that nothing else uses was computed by; a constant that is added goes to `bias`.
  const CallObj* ProductBehind(const Expr& value, Expr* bias) const {
    const CallObj* call = IsUsedOnce(value) ? CallBehind(value) : nullptr;
    if (!call || !call->Is(add_)) return call;
    size_t constant = IsKnown(call->args[1]) ? 1 : 0;
    if (!IsKnown(call->args[constant])) return nullptr;
    *bias = call->args[constant];
    const Expr& product = call->args[1 - constant];
    return IsUsedOnce(product) ? CallBehind(product) : nullptr;
  }
  static bool AreConstant(const Array<Expr>& args, size_t first) {
    return std::all_of(args.begin() + first, args.end(),
                       [](const Expr& e) { return e.as<ConstantObj>() != nullptr; });
  }
  /// A constant, or one in another shape.
  bool IsKnown(const Expr& expr) const {
    if (expr.as<ConstantObj>()) return true;
    const CallObj* call = CallBehind(expr);
    return call && (call->Is(permute_) || call->Is(reshape_) || call->Is(expand_)) &&
           IsKnown(call->args[0]);
  }
  /// By its definition and by one use.
  bool IsUsedOnce(const Expr& value) const {
    auto* var = value.as<VarObj>();
    auto it = var ? uses_.find(var->vid.get()) : uses_.end();
    return it == uses_.end() || it->second <= 2;
  }
  Expr Make(const char* name, const std::vector<AnyView>& params) {
    return builder_->Emit(CallOperator(name, params));
  }
  Optional<Expr> Folded(const CallObj* product, const Expr& bias, const CallObj* norm,
                        const BatchNormAttrsObj* attrs) {
    std::optional<Channels> channels = ChannelsOf(product);
    int64_t rank = RankOf(norm->args[0]);
    int64_t axis = attrs->axis < 0 ? attrs->axis + rank : attrs->axis;
    if (!channels || rank < 0 || axis != channels->in_result || !IsKnown(product->args[1]) ||
        TypeOf(product->args[1]) != TypeOf(norm->args[1]) ||
        (bias.defined() && !VariesAlong(bias, axis, rank)))
      return std::nullopt;
    // (y + bias) * scale + (beta - mean * scale)
    Expr gamma = norm->args[1], beta = norm->args[2], mean = norm->args[3], var = norm->args[4];
    Expr deviation = Make("relax.sqrt", {Make("relax.add", {var, attrs->epsilon})});
    Expr scale = attrs->scale ? Make("relax.divide", {gamma, deviation})
                              : Make("relax.divide", {Make("relax.ones_like", {var}), deviation});
    Expr shift = Make("relax.multiply", {mean, scale});
    shift = attrs->center ? Make("relax.subtract", {beta, shift}) : Make("relax.negative", {shift});
    shift = Spread(shift, axis, rank);
    if (bias.defined())
      shift = Make("relax.add", {Make("relax.multiply", {bias, Spread(scale, axis, rank)}), shift});
    const Expr& weight = product->args[1];
    Expr scaled =
        Make("relax.multiply", {weight, Spread(scale, channels->in_weights, RankOf(weight))});
    Expr result = builder_->Emit(Call(product->op, {product->args[0], scaled}, product->attrs));
    return CallOperator("relax.add", {result, shift});
  }
  const Op batch_norm_ = Op::Get("relax.nn.batch_norm"), add_ = Op::Get("relax.add"),
           permute_ = Op::Get("relax.permute_dims"), reshape_ = Op::Get("relax.reshape"),
           expand_ = Op::Get("relax.expand_dims");
  std::unordered_map<const Object*, int> uses_;
  bool keep_training_;
};

Function FoldBatchnormToConv2D(Function func, IRModule, bool keep_training) {
  return OnDeepStack([&] {
    Expr changed = BatchNormFolder(func, keep_training).VisitExpr(func);
    return changed.same_as(func) ? func : RemoveAllUnused(As<Function>(changed));
  });
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    FoldBatchnormToConv2D, 0,
    "R.nn.batch_norm(R.nn.conv2d(x, w) + bias, …)[0] with constant parameters becomes a "
    "convolution with scaled weights and an addition, and likewise behind every convolution and "
    "behind R.matmul. FoldConstant computes the weights. With keep_training, normalisation by the "
    "statistics of the batch stays what it is.",
    Arg("keep_training", false));
}  // namespace tvm::relax
