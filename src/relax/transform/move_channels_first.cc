// SPDX-License-Identifier: Apache-2.0
// Convolutions with channels last, or in blocks that somebody chose, as the passes for processors
// take them: these fold what follows into weights and choose blocks by what divides the channels.
//
// A tensor of the program is at hand as another one, with channels first. Transposes only change
// what is known of a tensor; what is between convolutions follows by the rules of layouts.
#include <algorithm>

#include "relax/layout/mutator.h"
#include "relax/transform/canonicalize_bindings.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/op.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
using Result = std::optional<LayoutResult>;

std::optional<Array<PrimExpr>> DimsOf(const Expr& expr) {
  auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr);
  auto dims = tensor ? tensor->Dims() : Optional<Array<PrimExpr>>();
  return dims ? std::optional(dims.value()) : std::nullopt;
}
template <class Obj>
const Obj* AttrsOf(const CallObj* call) {
  return call->attrs ? call->attrs.value().as<Obj>() : nullptr;
}

/// How a convolution of float32 lies, where its channels are not first, in terms of one whose are;
/// nothing for any other call.
struct ConvolutionOrders {
  Order data, weight, result;
};
std::optional<ConvolutionOrders> OrdersOf(const CallObj* call) {
  auto* conv = call ? AttrsOf<Conv2DAttrsObj>(call) : nullptr;
  if (!conv || conv->data_layout == "NCHW") return std::nullopt;
  auto* data = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
  String out = conv->out_layout.empty() ? conv->data_layout : conv->out_layout;
  auto a = OrderOf("NCHW", conv->data_layout), b = OrderOf("OIHW", conv->kernel_layout),
       c = OrderOf("NCHW", out);
  if (!a || !b || !c || !data || data->dtype != DataType::Float(32)) return std::nullopt;
  for (const Expr& arg : call->args) {
    if (!DimsOf(arg)) return std::nullopt;
  }
  return ConvolutionOrders{*a, *b, *c};
}

class ChannelMover : public LayoutMutator {
  bool IsConverted(const DataflowBlock& block) final {
    return std::any_of(block->bindings.begin(), block->bindings.end(), [](const Binding& b) {
      auto* binding = b.as<VarBindingObj>();
      return binding && OrdersOf(binding->value.as<CallObj>());
    });
  }
  Result Converted(LayoutCall& c) final {
    if (auto orders = OrdersOf(c.call)) return Convolution(c, *orders);
    if (auto* attrs = AttrsOf<PermuteDimsAttrsObj>(c.call)) return OfPermuteDims(c, attrs);
    if (auto* attrs = AttrsOf<LayoutTransformAttrsObj>(c.call)) return OfTransform(c, attrs);
    return LayoutMutator::Converted(c);
  }
  Result Convolution(LayoutCall& c, const ConvolutionOrders& orders) {
    auto weight = Weight(c, orders.weight);
    if (!weight) return std::nullopt;
    Array<Expr> args = {c.get(c.call->args[0], Inverse(orders.data)), *weight};
    auto attrs = ChangedAttrs<Conv2DAttrsObj>(c, [](Conv2DAttrsObj* a) {
      a->data_layout = a->out_layout = "NCHW";
      a->kernel_layout = "OIHW";
    });
    return LayoutResult{Again(c, args, attrs), Inverse(orders.result)};
  }
  /// A constant that is in an order as it was before, so that FoldConstant knows it; or nothing.
  std::optional<Expr> Weight(LayoutCall& c, const Order& order) {
    const Expr& given = c.call->args[1];
    auto* found = Find(given);
    Expr value = found ? found->first : given;
    auto* var = given.as<VarObj>();
    auto bound =
        var && !found ? LookupBinding(As<Var>(ExprMutator::VisitExpr_(var))) : Optional<Expr>();
    if (auto* call = bound ? bound.value().as<CallObj>() : nullptr) {
      auto* permuted = AttrsOf<PermuteDimsAttrsObj>(call);
      auto* transformed = AttrsOf<LayoutTransformAttrsObj>(call);
      if (!permuted && !transformed) return std::nullopt;
      value = call->args[0];
      Order before = IdentityOrder(RankBefore(order));
      bool is_same = permuted ? Permuted(before, permuted->axes) == Inverse(order)
                              : IsMap(transformed, before, order, DimsOf(value));
      if (is_same && value.as<ConstantObj>()) return value;
    }
    if (!value.as<ConstantObj>()) return std::nullopt;
    return c.get(given, Inverse(order));
  }
  static bool IsMap(const LayoutTransformAttrsObj* attrs, const Order& from, const Order& to,
                    const std::optional<Array<PrimExpr>>& dims) {
    return !attrs->pad_value && dims && dims->size() == from.size() &&
           StructuralEqual(attrs->index_map, MapBetween(from, to, *dims));
  }
  /// The order in which an argument is at hand, of all its dimensions.
  static Order OrderOfFirst(const LayoutCall& c) {
    Order order = c.order_of(c.call->args[0]);
    return order.empty() ? IdentityOrder(c.ndim(0)) : order;
  }
  Result OfPermuteDims(LayoutCall& c, const PermuteDimsAttrsObj* attrs) {
    static const Order& last = *new Order{{0}, {3}, {1}, {2}};  // what NHWC is at hand as NCHW
    if (!DimsOf(c.call->args[0]) || c.ndim(0) != 4) return std::nullopt;
    Order from = OrderOfFirst(c), to = Permuted(from, attrs->axes);
    if (!IsIdentity(to) && to != last) return std::nullopt;
    return LayoutResult{c.get(c.call->args[0], from), to};
  }
  Result OfTransform(LayoutCall& c, const LayoutTransformAttrsObj* attrs) {
    auto dims = DimsOf(c.call->args[0]), now = DimsOf(ffi::GetRef<Call>(c.call));
    if (!dims || !now) return std::nullopt;
    Order from = OrderOfFirst(c);
    auto rank = static_cast<int64_t>(from.size());
    Order to = IdentityOrder(rank);
    if (static_cast<int64_t>(now->size()) == rank + 1) {
      auto block = AsConstInt((*now)[rank]);
      if (!block || rank < 2 || *block < 1) return std::nullopt;
      to.push_back({1, *block});
    } else if (static_cast<int64_t>(now->size()) != rank) {
      return std::nullopt;
    }
    if (!IsMap(attrs, Inverse(from), to, dims)) return std::nullopt;
    return LayoutResult{c.get(c.call->args[0], from), Inverse(to)};
  }
};

Function MoveChannelsFirst(Function func, IRModule) {
  return OnDeepStack([&] {
    Expr changed = ChannelMover().VisitExpr(func);
    if (changed.same_as(func)) return func;
    // Without other names of outputs, and transposes that nobody reads any more: passes look who
    // uses a value.
    return RemoveAllUnused(CanonicalizeRelaxBindings(As<Function>(changed), IRModule()));
  });
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    MoveChannelsFirst, 0,
    R"(Convolutions of float32 with constant weights whose channels are last, or in blocks, get them
first. What is between them follows, transposes on the way cancel out; weights are put into order by
operators that FoldConstant computes.

y = R.permute_dims(x, axes=[0, 2, 3, 1])
z = R.nn.relu(R.nn.conv2d(y, w, data_layout="NHWC", kernel_layout="OHWI"))
->
z1 = R.nn.relu(R.nn.conv2d(x, R.permute_dims(w, axes=[0, 3, 1, 2])))
z = R.permute_dims(z1, axes=[0, 2, 3, 1]))");
}  // namespace tvm::relax
