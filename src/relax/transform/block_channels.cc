// SPDX-License-Identifier: Apache-2.0
// Convolutions on channels in blocks of a vector: one decision for a whole dataflow block.
//
// A tensor (N, C, H, W) in blocks of c channels is (N, C/c, H, W, c), and alike with one or three
// dimensions of an image. Convolutions whose weights are constants begin it; what works element by
// element, on windows, along the image or joins channels follows on what is in blocks already;
// anything else sees the tensors as they were.
#include <algorithm>

#include "relax/transform/sub_pixel.h"
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
Ints Axes(const Sizes& axes) {
  Ints result;
  for (int64_t axis : axes) result.push_back(IntImm::Int32(static_cast<int32_t>(axis)));
  return result;
}
/// The dimensions of an image: 2, 3, … below `rank`.
Sizes ImageAxes(size_t rank) {
  Sizes axes;
  for (size_t i = 2; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}
/// The letters of the image of a tensor.
std::string Image(size_t rank) { return std::string("DHW").substr(5 - rank); }
bool IsImages(size_t rank) { return rank >= 3 && rank <= 5; }

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
    Sizes shape = *StaticShape(var), order = ImageAxes(shape.size());
    order.insert(order.begin(), {0, 1, static_cast<int64_t>(shape.size())});
    Expr turned = Make("relax.permute_dims", {blocked_.at(var->vid.get()), Axes(order)});
    return CallOperator("relax.reshape", {turned, ShapeOf(shape)});
  }
  bool IsBlocked(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    return var && blocked_.count(var->vid.get());
  }
  /// How many channels are a block: a vector, or half of one; 0: none.
  int64_t BlockOf(int64_t channels) const {
    return channels % lanes_ == 0 ? lanes_ : channels % (lanes_ / 2) == 0 ? lanes_ / 2 : 0;
  }
  static String LayoutOf(int64_t block, size_t rank) {
    return "NC" + Image(rank) + std::to_string(block) + "c";
  }
  bool Divides(const Expr& expr) const {
    auto shape = StaticShape(expr);
    return shape && IsImages(shape->size()) && BlockOf((*shape)[1]) > 1 && IsFloat32(expr);
  }
  /// A tensor with its channels split into blocks, which are last.
  Expr Split(const Expr& plain, Sizes shape, int64_t block) {
    Sizes order = ImageAxes(shape.size());
    for (int64_t& axis : order) ++axis;
    order.insert(order.begin(), {0, 1});
    order.push_back(2);
    shape[1] /= block;
    shape.insert(shape.begin() + 2, block);
    Expr split = Make("relax.reshape", {plain, ShapeOf(shape)});
    return Make("relax.permute_dims", {split, Axes(order)});
  }
  /// The tensor in blocks, which are made unless they are there.
  Expr Blocked(const Expr& expr) {
    auto* var = expr.as<VarObj>();
    auto it = var ? blocked_.find(var->vid.get()) : blocked_.end();
    if (it != blocked_.end()) return it->second;
    Sizes shape = *StaticShape(expr);
    Expr plain = VisitExpr(expr);
    Expr result = Split(plain, shape, BlockOf(shape[1]));
    if (var) blocked_.emplace(var->vid.get(), Any(result).cast<Var>());
    if (var) plain_.emplace(var->vid.get(), plain);
    return result;
  }

  /// The call on blocks and with a result in blocks, or nothing where it stays as it is.
  std::optional<Expr> InBlocks(const Call& call) {
    if (!call->op.as<OpObj>() || call->args.empty()) return std::nullopt;
    std::optional<Expr> result;
    bool is_known =
        Convolution<Conv1DAttrsObj>(call, &result) || Convolution<Conv2DAttrsObj>(call, &result) ||
        Convolution<Conv3DAttrsObj>(call, &result) || Pool<Pool1DAttrsObj>(call, &result) ||
        Pool<Pool2DAttrsObj>(call, &result) || Pool<Pool3DAttrsObj>(call, &result) ||
        Pool<AdaptivePool1DAttrsObj>(call, &result) ||
        Pool<AdaptivePool2DAttrsObj>(call, &result) || Pool<AdaptivePool3DAttrsObj>(call, &result);
    if (is_known) return result;
    if (auto sub = SubPixel::Of(call)) return Transposed(call, *sub);
    if (!Divides(call)) return std::nullopt;
    if (auto* concat = AttrsOf<ConcatAttrsObj>(call)) return Joined(call, concat);
    return ElementByElement(call);
  }
  template <class Obj>
  static const Obj* AttrsOf(const Call& call) {
    return call->attrs ? call->attrs.value().as<Obj>() : nullptr;
  }
  /// Whether the call has these attributes; the result stays empty where it is left as it is.
  template <class Obj>
  bool Pool(const Call& call, std::optional<Expr>* result) {
    auto* pool = AttrsOf<Obj>(call);
    if (!pool) return false;
    auto shape = StaticShape(call);
    if (!Divides(call) || !IsBlocked(call->args[0])) return true;
    String plain = "NC" + Image(shape->size());
    if (pool->layout != plain || pool->out_layout != plain) return true;
    String layout = LayoutOf(BlockOf((*shape)[1]), shape->size());
    std::string name = call->op.as<OpObj>()->name;
    Expr data = Blocked(call->args[0]);
    if constexpr (requires { pool->output_size; }) {
      *result = CallOperator(name.c_str(), {data, pool->output_size, layout, layout});
    } else {
      *result = CallOperator(name.c_str(),
                             {data, pool->pool_size, pool->strides, pool->padding, pool->dilation,
                              pool->ceil_mode, pool->count_include_pad, layout, layout});
    }
    return true;
  }
  /// Channels of several tensors behind each other: as many blocks.
  std::optional<Expr> Joined(const Call& call, const ConcatAttrsObj* concat) {
    auto* tuple = call->args[0].as<TupleObj>();
    Sizes shape = *StaticShape(call);
    auto rank = static_cast<int64_t>(shape.size());
    int64_t axis = concat->axis.value_or(0);
    if (!tuple || (axis < 0 ? axis + rank : axis) != 1) return std::nullopt;
    int64_t block = BlockOf(shape[1]);
    bool any = false;
    for (const Expr& field : tuple->fields) {
      if (!Divides(field) || BlockOf((*StaticShape(field))[1]) != block) return std::nullopt;
      any |= IsBlocked(field);
    }
    if (!any) return std::nullopt;
    Array<Expr> fields = tuple->fields.Map([&](const Expr& field) { return Blocked(field); });
    return CallOperator("relax.concat", {Tuple(fields), int64_t{1}});
  }
  /// Reductions over the image of what is in blocks: the result is small, and as it was.
  std::optional<Expr> OverImages(const Call& call) {
    auto* attrs = AttrsOf<StatisticalAttrsObj>(call);
    if (!attrs || !attrs->axis || !IsBlocked(call->args[0])) return std::nullopt;
    Sizes image = ImageAxes(StaticShape(call->args[0])->size()), reduced;
    auto rank = static_cast<int64_t>(image.size()) + 2;
    for (const IntImm& axis : attrs->axis.value())
      reduced.push_back(axis->value < 0 ? axis->value + rank : axis->value);
    std::sort(reduced.begin(), reduced.end());
    auto shape = StaticShape(call);
    if (reduced != image || !shape) return std::nullopt;
    Expr result = Make(std::string(call->op.as<OpObj>()->name).c_str(),
                       {Blocked(call->args[0]), Axes(image), false});
    return CallOperator("relax.reshape", {result, ShapeOf(*shape)});
  }
  /// Constant weights (outputs, inputs of a group, taps…) of a convolution in blocks.
  struct Weights {
    Expr plain;
    Sizes shape;
    int64_t block, inside;  // of outputs; of inputs, 0: they are in none
  };
  Expr InBlocks(const Weights& w) {
    const Sizes& k = w.shape;
    int64_t inside = std::max<int64_t>(1, w.inside);
    auto taps = static_cast<int64_t>(k.size()) - 2;
    Sizes split{k[0] / w.block, w.block, k[1] / inside, inside}, order{0, 2};
    split.insert(split.end(), k.begin() + 2, k.end());
    for (int64_t i = 0; i < taps; ++i) order.push_back(4 + i);
    order.insert(order.end(), {3, 1});
    Expr weight = Make("relax.reshape", {w.plain, ShapeOf(split)});
    weight = Make("relax.permute_dims", {weight, Axes(order)});
    if (w.inside > 0) return weight;
    Sizes plain{k[0] / w.block, k[1]};
    plain.insert(plain.end(), k.begin() + 2, k.end());
    plain.push_back(w.block);
    return Make("relax.reshape", {weight, ShapeOf(plain)});
  }
  /// A convolution of the data, made to be in blocks if they can be.
  Expr Convolved(const Expr& data, Weights w, const std::vector<AnyView>& windows) {
    size_t rank = w.shape.size();
    int64_t channels = (*StaticShape(data))[1], data_block = BlockOf(channels);
    bool in_blocks = data_block > 1, is_depthwise = w.shape[1] == 1 && channels == w.shape[0];
    w.inside = !in_blocks ? 0 : is_depthwise ? 1 : data_block;
    Expr weight = InBlocks(w), source = in_blocks ? Blocked(data) : VisitExpr(data);
    std::string inside = in_blocks ? std::to_string(w.inside) + "i" : "";
    String layout = in_blocks ? LayoutOf(data_block, rank) : String("NC" + Image(rank));
    String kernel = "OI" + Image(rank) + inside + std::to_string(w.block) + "o";
    String out = LayoutOf(w.block, rank);
    std::vector<AnyView> params{source, weight};
    params.insert(params.end(), windows.begin(), windows.end());
    for (const String* name : {&layout, &kernel, &out}) params.push_back(*name);
    std::string name = "relax.nn.conv" + std::to_string(rank - 2) + "d";
    return CallOperator(name.c_str(), params);
  }
  template <class Obj>
  bool Convolution(const Call& call, std::optional<Expr>* result) {
    auto* conv = AttrsOf<Obj>(call);
    if (!conv) return false;
    auto data = StaticShape(call->args[0]), kernel = StaticShape(call->args[1]);
    if (!data || !kernel || !call->args[1].as<ConstantObj>() || !Divides(call) ||
        !IsFloat32(call->args[0]))
      return true;
    String plain = "NC" + Image(data->size());
    if (conv->data_layout != plain || conv->out_layout != plain ||
        conv->kernel_layout != "OI" + Image(data->size()))
      return true;
    const Sizes& k = *kernel;
    bool is_depthwise = conv->groups > 1 && conv->groups == (*data)[1] && k[0] == (*data)[1];
    if (is_depthwise ? !IsBlocked(call->args[0]) : conv->groups > 1) return true;
    *result = Convolved(call->args[0], {call->args[1], k, BlockOf(k[0]), 0},
                        {conv->strides, conv->padding, conv->dilation, conv->groups});
    return true;
  }
  /// A transposed convolution as a plain one, whose blocks are put in their places.
  std::optional<Expr> Transposed(const Call& call, const SubPixel& sub) {
    auto data = StaticShape(call->args[0]);
    if (!data || !call->args[1].as<ConstantObj>() || !Divides(call) || sub.groups() > 1 ||
        !IsFloat32(call->args[0]))
      return std::nullopt;
    int64_t block = BlockOf(sub.outputs());
    Expr filters = sub.Filters(builder_);
    Ints ones;
    for (size_t i = 0; i < sub.dims(); ++i) ones.push_back(IntImm::Int64(1));
    Ints padding = sub.Padding();
    Expr plain = builder_->Emit(Convolved(call->args[0], {filters, *StaticShape(filters), block, 0},
                                          {ones, padding, ones, 1}));
    return sub.Shuffled(builder_, plain, block);
  }
  /// Operators that compute each element from those at the same place: what is no tensor in blocks
  /// is broadcast.
  std::optional<Expr> ElementByElement(const Call& call) {
    if (TOpPattern.Get(call->op, kOpaque) > kBroadcast) return std::nullopt;
    const Object* attrs = call->attrs ? call->attrs.value().get() : nullptr;
    if (attrs && !attrs->IsInstance<LeakyReluAttrsObj>() && !attrs->IsInstance<SoftplusAttrsObj>())
      return std::nullopt;  // they may name an axis
    Sizes result = *StaticShape(call);
    size_t rank = result.size();
    bool any = false;
    for (const Expr& arg : call->args) {
      if (GetStructInfoAs<PrimStructInfoObj>(arg)) continue;
      auto shape = StaticShape(arg);
      if (!shape) return std::nullopt;
      any |= IsBlocked(arg) && *shape == result;
      size_t missing = rank - std::min(rank, shape->size());
      int64_t channels = missing <= 1 ? (*shape)[1 - missing] : 1;
      if (*shape != result && channels != 1 && channels != result[1]) return std::nullopt;
    }
    if (!any) return std::nullopt;
    Array<Expr> args = call->args.Map([&](const Expr& arg) {
      if (GetStructInfoAs<PrimStructInfoObj>(arg)) return VisitExpr(arg);
      Sizes shape = *StaticShape(arg);
      return shape == result || IsBlocked(arg) ? Blocked(arg) : Broadcast(arg, shape, rank);
    });
    return Call(call->op, args, call->attrs, call->sinfo_args, call->span);
  }
  Expr Broadcast(const Expr& arg, Sizes shape, size_t rank) {
    bool has_elements = std::any_of(shape.begin(), shape.end(), [](int64_t s) { return s != 1; });
    if (!has_elements) {
      return shape.empty() ? VisitExpr(arg) : Make("relax.reshape", {VisitExpr(arg), ShapeOf({1})});
    }
    shape.insert(shape.begin(), rank - shape.size(), 1);
    return Split(VisitExpr(arg), shape, shape[1] == 1 ? 1 : BlockOf(shape[1]));
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
processor. What follows works on blocks as far as it can. Transposed ones become plain ones, as
ApplySubPixel does. Weights are put into order by operators
that FoldConstant computes.

y = R.nn.conv2d(x, w)  # (1, 64, 56, 56)
z = R.nn.relu(y)
->
y = R.nn.conv2d(x_blocks, w_blocks, data_layout="NCHW8c", kernel_layout="OIHW8i8o", out_layout="NCHW8c")
z = R.nn.relu(y)       # (1, 8, 56, 56, 8))",
    Arg("lanes", nullptr));
}  // namespace tvm::relax
