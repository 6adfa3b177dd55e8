// SPDX-License-Identifier: Apache-2.0
// Convolutions on channels in blocks of a vector: one decision for a whole dataflow block.
//
// A tensor (N, C, H, W) in blocks of c channels is (N, C/c, H, W, c). Convolutions whose weights
// are constants begin it; what works element by element, on windows or along H and W follows on
// what is in blocks already; anything else sees the tensors as they were.
#include <algorithm>

#include "tvm/ir/machine.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/op.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
using Sizes = std::vector<int64_t>;

std::optional<Sizes> StaticShape(const Expr& expr) {
  auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr);
  auto dims = tensor ? tensor->Dims() : Optional<Array<PrimExpr>>();
  if (!dims) return std::nullopt;
  Sizes sizes;
  for (const PrimExpr& dim : dims.value()) {
    auto* size = dim.as<IntImmObj>();
    if (!size) return std::nullopt;
    sizes.push_back(size->value);
  }
  return sizes;
}
bool IsFloat32(const Expr& expr) {
  auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr);
  return tensor && tensor->dtype == DataType::Float(32);
}
ShapeExpr ShapeOf(const Sizes& sizes) {
  Array<PrimExpr> dims;
  for (int64_t size : sizes) dims.push_back(IntImm::Int64(size));
  return ShapeExpr(dims);
}
Ints Axes(std::initializer_list<int> axes) {
  Ints result;
  for (int axis : axes) result.push_back(IntImm::Int32(axis));
  return result;
}

class ChannelBlocker : public ExprMutator {
 public:
  explicit ChannelBlocker(int64_t lanes) : lanes_(lanes) {}

  /// Variables in blocks are seen in their dataflow block only.
  void VisitBindingBlock(const BindingBlock& block) final {
    ExprMutator::VisitBindingBlock(block);
    blocked_.clear();
    plain_.clear();
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    auto* node = binding->value.as<CallObj>();
    if (!node || !builder_->CurrentBlockIsDataflow()) return ExprMutator::VisitBinding_(binding);
    auto call = ffi::GetRef<Call>(node);
    if (auto value = OverImages(call)) return ReEmitBinding(binding, *value);
    std::optional<Expr> value = InBlocks(call);
    if (!value) return ExprMutator::VisitBinding_(binding);
    blocked_[binding->var->vid.get()] = builder_->Emit(*value, binding->var->name_hint());
    if (!binding->var.as<DataflowVarObj>()) ReEmitBinding(binding, Plain(binding->var));
  }
  /// A variable that only exists in blocks is made plain where it is needed so.
  Expr VisitExpr_(const VarObj* op) final {
    auto var = ffi::GetRef<Var>(op);
    if (!blocked_.count(op->vid.get()) || !op->IsInstance<DataflowVarObj>())
      return ExprMutator::VisitExpr_(op);
    auto it = plain_.find(op->vid.get());
    if (it == plain_.end())
      it = plain_.emplace(op->vid.get(), builder_->Emit(Plain(var), op->name_hint())).first;
    return it->second;
  }

 private:
  Expr Make(const char* name, const std::vector<AnyView>& params) {
    return builder_->Emit(CallOperator(name, params));
  }
  Expr Plain(const Var& var) {
    Expr turned = Make("relax.permute_dims", {blocked_.at(var->vid.get()), Axes({0, 1, 4, 2, 3})});
    return CallOperator("relax.reshape", {turned, ShapeOf(*StaticShape(var))});
  }
  bool IsBlocked(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    return var && blocked_.count(var->vid.get());
  }
  /// How many channels are a block: a vector, or half of one; 0: none.
  int64_t BlockOf(int64_t channels) const {
    return channels % lanes_ == 0 ? lanes_ : channels % (lanes_ / 2) == 0 ? lanes_ / 2 : 0;
  }
  static String LayoutOf(int64_t block) { return "NCHW" + std::to_string(block) + "c"; }
  bool Divides(const Expr& expr) const {
    auto shape = StaticShape(expr);
    return shape && shape->size() == 4 && BlockOf((*shape)[1]) > 1 && IsFloat32(expr);
  }
  /// The tensor in blocks, which are made unless they are there.
  Expr Blocked(const Expr& expr) {
    auto* var = expr.as<VarObj>();
    auto it = var ? blocked_.find(var->vid.get()) : blocked_.end();
    if (it != blocked_.end()) return it->second;
    Sizes s = *StaticShape(expr);
    int64_t block = BlockOf(s[1]);
    Expr plain = VisitExpr(expr);
    Expr split = Make("relax.reshape", {plain, ShapeOf({s[0], s[1] / block, block, s[2], s[3]})});
    Expr result = Make("relax.permute_dims", {split, Axes({0, 1, 3, 4, 2})});
    if (var) blocked_.emplace(var->vid.get(), Any(result).cast<Var>());
    if (var) plain_.emplace(var->vid.get(), plain);
    return result;
  }

  /// The call on blocks and with a result in blocks, or nothing where it stays as it is.
  std::optional<Expr> InBlocks(const Call& call) {
    auto* op = call->op.as<OpObj>();
    if (!op || call->args.empty()) return std::nullopt;
    if (auto* conv = call->attrs ? call->attrs.value().as<Conv2DAttrsObj>() : nullptr)
      return Convolution(call, conv);
    if (!Divides(call)) return std::nullopt;
    if (auto* pool = call->attrs ? call->attrs.value().as<Pool2DAttrsObj>() : nullptr) {
      if (pool->layout != "NCHW" || pool->out_layout != "NCHW" || !IsBlocked(call->args[0]))
        return std::nullopt;
      String layout = LayoutOf(BlockOf((*StaticShape(call))[1]));
      return CallOperator(
          std::string(op->name).c_str(),
          {Blocked(call->args[0]), pool->pool_size, pool->strides, pool->padding, pool->dilation,
           pool->ceil_mode, pool->count_include_pad, layout, layout});
    }
    if (auto* pool = call->attrs ? call->attrs.value().as<AdaptivePool2DAttrsObj>() : nullptr) {
      if (pool->layout != "NCHW" || pool->out_layout != "NCHW" || !IsBlocked(call->args[0]))
        return std::nullopt;
      String layout = LayoutOf(BlockOf((*StaticShape(call))[1]));
      return CallOperator(std::string(op->name).c_str(),
                          {Blocked(call->args[0]), pool->output_size, layout, layout});
    }
    return ElementByElement(call);
  }
  /// Reductions over H and W of what is in blocks: the result is small, and as it was.
  std::optional<Expr> OverImages(const Call& call) {
    auto* attrs = call->attrs ? call->attrs.value().as<StatisticalAttrsObj>() : nullptr;
    if (!attrs || !attrs->axis || !IsBlocked(call->args[0])) return std::nullopt;
    int64_t reduced_axes = 0;  // a bit of each
    for (const IntImm& axis : attrs->axis.value())
      reduced_axes |= 1 << (axis->value < 0 ? axis->value + 4 : axis->value);
    bool is_image = reduced_axes == (1 << 2 | 1 << 3);
    auto shape = StaticShape(call);
    if (!is_image || !shape) return std::nullopt;
    Expr reduced = Make(std::string(call->op.as<OpObj>()->name).c_str(),
                        {Blocked(call->args[0]), Axes({2, 3}), false});
    return CallOperator("relax.reshape", {reduced, ShapeOf(*shape)});
  }
  std::optional<Expr> Convolution(const Call& call, const Conv2DAttrsObj* conv) {
    if (conv->data_layout != "NCHW" || conv->kernel_layout != "OIHW" || conv->out_layout != "NCHW")
      return std::nullopt;
    auto data = StaticShape(call->args[0]), kernel = StaticShape(call->args[1]);
    bool is_known = data && kernel && call->args[1].as<ConstantObj>();
    if (!is_known || !Divides(call) || !IsFloat32(call->args[0])) return std::nullopt;
    const Sizes& k = *kernel;
    bool is_depthwise = conv->groups > 1 && conv->groups == (*data)[1] && k[0] == (*data)[1];
    int64_t block = BlockOf(k[0]), data_block = BlockOf((*data)[1]);
    bool in_blocks = data_block > 1;
    if (is_depthwise ? !IsBlocked(call->args[0]) : conv->groups > 1) return std::nullopt;
    int64_t inside = is_depthwise || !in_blocks ? 1 : data_block;
    std::string in = in_blocks ? std::to_string(inside) + "i" : "";
    Sizes split{k[0] / block, block, k[1] / inside, inside, k[2], k[3]};
    Expr weight = Make("relax.reshape", {call->args[1], ShapeOf(split)});
    weight = Make("relax.permute_dims", {weight, Axes({0, 2, 4, 5, 3, 1})});
    if (!in_blocks)
      weight = Make("relax.reshape", {weight, ShapeOf({k[0] / block, k[1], k[2], k[3], block})});
    Expr source = in_blocks ? Blocked(call->args[0]) : VisitExpr(call->args[0]);
    return CallOperator(
        "relax.nn.conv2d",
        {source, weight, conv->strides, conv->padding, conv->dilation, conv->groups,
         in_blocks ? LayoutOf(data_block) : String("NCHW"),
         String("OIHW" + in + std::to_string(block) + "o"), LayoutOf(block), conv->out_dtype});
  }
  /// Operators that compute each element from those at the same place: what is no tensor in blocks
  /// is broadcast.
  std::optional<Expr> ElementByElement(const Call& call) {
    if (TOpPattern.Get(call->op, kOpaque) > kBroadcast) return std::nullopt;
    const Object* attrs = call->attrs ? call->attrs.value().get() : nullptr;
    if (attrs && !attrs->IsInstance<LeakyReluAttrsObj>() && !attrs->IsInstance<SoftplusAttrsObj>())
      return std::nullopt;  // they may name an axis
    Sizes result = *StaticShape(call);
    bool any = false;
    for (const Expr& arg : call->args) {
      if (GetStructInfoAs<PrimStructInfoObj>(arg)) continue;
      auto shape = StaticShape(arg);
      if (!shape) return std::nullopt;
      any |= IsBlocked(arg) && *shape == result;
      size_t missing = 4 - std::min<size_t>(4, shape->size());
      int64_t channels = missing <= 1 ? (*shape)[1 - missing] : 1;
      if (*shape != result && channels != 1 && channels != result[1]) return std::nullopt;
    }
    if (!any) return std::nullopt;
    Array<Expr> args = call->args.Map([&](const Expr& arg) {
      if (GetStructInfoAs<PrimStructInfoObj>(arg)) return VisitExpr(arg);
      Sizes shape = *StaticShape(arg);
      return shape == result || IsBlocked(arg) ? Blocked(arg) : Broadcast(arg, shape);
    });
    return Call(call->op, args, call->attrs, call->sinfo_args, call->span);
  }
  Expr Broadcast(const Expr& arg, Sizes shape) {
    bool has_elements = std::any_of(shape.begin(), shape.end(), [](int64_t s) { return s != 1; });
    if (!has_elements) {
      return shape.empty() ? VisitExpr(arg) : Make("relax.reshape", {VisitExpr(arg), ShapeOf({1})});
    }
    shape.insert(shape.begin(), 4 - shape.size(), 1);
    int64_t inside = shape[1] == 1 ? 1 : BlockOf(shape[1]);
    Sizes parts{shape[0], shape[1] / inside, inside, shape[2], shape[3]};
    Expr split = Make("relax.reshape", {VisitExpr(arg), ShapeOf(parts)});
    return Make("relax.permute_dims", {split, Axes({0, 1, 3, 4, 2})});
  }

  int64_t lanes_;
  std::unordered_map<const Object*, Var> blocked_;  // by id: the variable in blocks
  std::unordered_map<const Object*, Expr> plain_;   // … made plain again
};

Function BlockChannels(Function func, IRModule, Optional<int64_t> lanes_given) {
  int64_t lanes = lanes_given.value_or(0);
  if (!lanes_given) {
    Target target = func->GetAttr<Target>(tvm::attr::kTarget).value_or(Target::Current());
    if (!target.defined()) return func;
    Machine machine = Machine::Of(target);
    if (machine->is_host) lanes = machine->Lanes(32);
  }
  if (lanes < 2 || lanes % 2 != 0) return func;
  return OnDeepStack([&] { return As<Function>(ChannelBlocker(lanes).VisitExpr(func)); });
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    BlockChannels, 0,
    R"(Convolutions of float32 with constant weights work on channels in blocks: of a vector, or of
half of one where that divides the channels. A vector has `lanes`, or is that of the target's
processor. What follows works on blocks as far as it can. Weights are put into order by operators
that FoldConstant computes.

y = R.nn.conv2d(x, w)  # (1, 64, 56, 56)
z = R.nn.relu(y)
->
y = R.nn.conv2d(x_blocks, w_blocks, data_layout="NCHW8c", kernel_layout="OIHW8i8o", out_layout="NCHW8c")
z = R.nn.relu(y)       # (1, 8, 56, 56, 8))",
    Arg("lanes", nullptr));
}  // namespace tvm::relax
