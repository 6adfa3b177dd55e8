// SPDX-License-Identifier: Apache-2.0
// Convolutions on channels in blocks of a vector: one decision for a whole dataflow block.
//
// A tensor (N, C, H, W) in blocks of c channels is (N, C/c, H, W, c), and alike with one or three
// dimensions of an image. Convolutions whose weights are constants begin it; what works element by
// element, on windows, along the image or joins channels follows on what is in blocks already;
// anything else sees the tensors as they were. Where only half a vector divides the channels of a
// convolution, its last vector may be filled up by copies of the last channel.
#include <algorithm>
#include <cmath>

#include "relax/transform/sub_pixel.h"
#include "runtime/host_tensor.h"
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
int64_t RoundUp(int64_t size, int64_t to) { return (size + to - 1) / to * to; }
template <class Obj>
const Obj* AttrsOf(const Call& call) {
  return call->attrs ? call->attrs.value().as<Obj>() : nullptr;
}
bool IsDepthwise(const Sizes& weight, int64_t channels) {
  return weight[1] == 1 && weight[0] == channels;
}
/// How many times the channels of a result may become to fill up vectors: half vectors take nearly
/// twice as long as whole ones, but what is filled up is read by the next convolution, too.
constexpr double kMostFilling = 1.25;

/// Constant weights of more outputs and inputs. Outputs beyond are the last one again: so they have
/// infinities and NaN only where it has, whatever follows. As inputs, they share the weights of the
/// last one by powers of 2, which changes neither their sum nor where it is infinite.
Constant Filled(const Constant& weight, int64_t outputs, int64_t inputs) {
  int64_t had = weight->data.size(0), read = weight->data.size(1);
  if (had == outputs && read == inputs) return weight;
  runtime::Tensor from = runtime::HostTensor(weight->data);
  Sizes sizes(from.shape().begin(), from.shape().end());
  int64_t taps = from.numel() / (had * read);
  sizes[0] = outputs;
  sizes[1] = inputs;
  runtime::Tensor to = runtime::Empty(ffi::Shape(sizes), DataType::Float(32), DLDevice{kDLCPU, 0});
  auto* source = static_cast<const float*>(from.data_ptr());
  auto* target = static_cast<float*>(to.data_ptr());
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      const float* filter = source + (std::min(o, had - 1) * read + std::min(i, read - 1)) * taps;
      int64_t halvings = i < read - 1 ? 0 : std::min(i - read + 2, inputs - read);
      for (int64_t t = 0; t < taps; ++t)
        *target++ = std::ldexp(filter[t], -static_cast<int>(halvings));
    }
  }
  return Constant(to);
}

/// Variables of a block whose channels have to stay as many as they are: they are joined with
/// others, or used by what takes no more. Whatever is no convolution keeps the channels of its
/// operands.
class KeptChannels {
 public:
  void Find(const BindingBlock& block) {
    group_.clear();
    kept_.clear();
    for (const Binding& binding : block->bindings) {
      auto* bound = binding.as<VarBindingObj>();
      auto* node = bound ? bound->value.as<CallObj>() : nullptr;
      if (!node) continue;
      auto call = ffi::GetRef<Call>(node);
      bool joins = AttrsOf<ConcatAttrsObj>(call) || SubPixel::Of(call), begins = BeginsAnew(call);
      auto meet = [&](const Expr& arg) {
        auto* var = arg.as<VarObj>();
        if (!var) return;
        if (joins) kept_.push_back(var->vid.get());
        if (!joins && !begins) group_[Root(var->vid.get())] = Root(bound->var->vid.get());
      };
      for (const Expr& arg : call->args) {
        meet(arg);
        auto* tuple = arg.as<TupleObj>();
        for (size_t i = 0; tuple && i < tuple->fields.size(); ++i) meet(tuple->fields[i]);
      }
    }
    for (const Object*& var : kept_) var = Root(var);
  }
  bool Has(const Var& var) {
    return std::find(kept_.begin(), kept_.end(), Root(var->vid.get())) != kept_.end();
  }

 private:
  static bool BeginsAnew(const Call& call) {
    if (AttrsOf<StatisticalAttrsObj>(call)) return true;
    auto is_plain = [](auto* conv) { return conv && conv->groups == 1; };
    return is_plain(AttrsOf<Conv1DAttrsObj>(call)) || is_plain(AttrsOf<Conv2DAttrsObj>(call)) ||
           is_plain(AttrsOf<Conv3DAttrsObj>(call));
  }
  const Object* Root(const Object* var) {
    while (true) {
      auto it = group_.find(var);
      if (it == group_.end() || it->second == var) return var;
      if (auto up = group_.find(it->second); up != group_.end()) it->second = up->second;
      var = it->second;  // paths are halved on the way
    }
  }
  std::unordered_map<const Object*, const Object*> group_;
  std::vector<const Object*> kept_;
};

class ChannelBlocker : public ExprMutator {
 public:
  explicit ChannelBlocker(int64_t lanes) : lanes_(lanes) {}

  /// Variables in blocks are seen in their dataflow block only.
  void VisitBindingBlock(const BindingBlock& block) final {
    kept_.Find(block);
    ExprMutator::VisitBindingBlock(block);
    blocked_.clear();
    plain_.clear();
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    auto* node = binding->value.as<CallObj>();
    if (!node || !builder_->CurrentBlockIsDataflow()) return ExprMutator::VisitBinding_(binding);
    auto call = ffi::GetRef<Call>(node);
    may_fill_ = !kept_.Has(binding->var);
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
    const Var& blocked = blocked_.at(var->vid.get());
    Expr turned = Make("relax.permute_dims", {blocked, Axes(order)});
    return Unfilled(turned, BlockIn(var) * (*StaticShape(blocked))[1], shape);
  }
  /// The first of so many channels, in a shape.
  Expr Unfilled(const Expr& filled, int64_t channels, const Sizes& shape) {
    Sizes wide = shape;
    wide[1] = channels;
    Expr all = CallOperator("relax.reshape", {filled, ShapeOf(wide)});
    if (channels == shape[1]) return all;
    return CallOperator("relax.strided_slice",
                        {builder_->Emit(all), Axes({1}), Axes({0}), Axes({shape[1]})});
  }
  bool IsBlocked(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    return var && blocked_.count(var->vid.get());
  }
  /// How many channels are a block: a vector, or half of one; 0: none.
  int64_t BlockOf(int64_t channels) const {
    return channels % lanes_ == 0 ? lanes_ : channels % (lanes_ / 2) == 0 ? lanes_ / 2 : 0;
  }
  /// … where they are the outputs of a convolution, which may be filled up.
  int64_t BlockOfOutputs(int64_t channels) const {
    double filled = static_cast<double>(RoundUp(channels, lanes_));
    bool is_little = filled <= kMostFilling * static_cast<double>(channels);
    return may_fill_ && is_little ? lanes_ : BlockOf(channels);
  }
  /// How many channels are a block of what is in blocks, or will be.
  int64_t BlockIn(const Expr& expr) const {
    return IsBlocked(expr) ? StaticShape(blocked_.at(expr.as<VarObj>()->vid.get()))->back()
                           : BlockOf((*StaticShape(expr))[1]);
  }
  static String LayoutOf(int64_t block, size_t rank) {
    return "NC" + Image(rank) + std::to_string(block) + "c";
  }
  bool Divides(const Expr& expr) const {
    auto shape = StaticShape(expr);
    return shape && IsImages(shape->size()) && BlockOf((*shape)[1]) > 1 && IsFloat32(expr);
  }
  /// A tensor with its channels split into blocks, which are last.
  Expr Split(Expr plain, Sizes shape, int64_t block) {
    if (int64_t more = RoundUp(shape[1], block) - shape[1]) {
      Sizes widths(2 * shape.size());
      widths[3] = more;
      plain = Make("relax.nn.pad", {plain, Axes(widths), String("replicate")});
      shape[1] += more;
    }
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
  Expr Blocked(const Expr& expr, int64_t block) {
    bool is_blocked = IsBlocked(expr);
    auto* var = expr.as<VarObj>();
    if (is_blocked && BlockIn(expr) == block) return blocked_.at(var->vid.get());
    Expr plain = VisitExpr(expr);
    Expr result = Split(plain, *StaticShape(expr), block);
    if (is_blocked || !var) return result;
    blocked_.emplace(var->vid.get(), Any(result).cast<Var>());
    plain_.emplace(var->vid.get(), plain);
    return result;
  }
  Expr Blocked(const Expr& expr) { return Blocked(expr, BlockIn(expr)); }

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
    if (auto* resize = AttrsOf<Resize2DAttrsObj>(call)) return Resized(call, resize);
    if (auto sub = SubPixel::Of(call)) return Transposed(call, *sub);
    if (!Divides(call)) return std::nullopt;
    if (auto* concat = AttrsOf<ConcatAttrsObj>(call)) return Joined(call, concat);
    return ElementByElement(call);
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
    String layout = LayoutOf(BlockIn(call->args[0]), shape->size());
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
  std::optional<Expr> Resized(const Call& call, const Resize2DAttrsObj* a) {
    if (!IsBlocked(call->args[0]) || !Divides(call) || a->layout != "NCHW") return std::nullopt;
    return CallOperator(
        "relax.image.resize2d",
        {Blocked(call->args[0]), call->args[1], a->roi, LayoutOf(BlockIn(call->args[0]), 4),
         a->method, a->coordinate_transformation_mode, a->rounding_method, a->cubic_alpha,
         a->cubic_exclude, a->extrapolation_value, a->out_dtype});
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
    Array<Expr> fields =
        tuple->fields.Map([&](const Expr& field) { return Blocked(field, block); });
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
    Sizes sizes = *StaticShape(result);
    return Unfilled(result, sizes[1] * sizes[2], *shape);
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
    auto* constant = w.plain.as<ConstantObj>();
    int64_t channels = (*StaticShape(data))[1];
    int64_t data_block = constant ? BlockIn(data) : BlockOf(channels);
    bool in_blocks = data_block > 1, is_depthwise = IsDepthwise(w.shape, channels);
    w.inside = !in_blocks ? 0 : is_depthwise ? 1 : data_block;
    w.shape[0] = RoundUp(w.shape[0], w.block);
    if (w.inside > 0) w.shape[1] = RoundUp(w.shape[1], w.inside);
    if (constant) w.plain = Filled(ffi::GetRef<Constant>(constant), w.shape[0], w.shape[1]);
    Expr weight = InBlocks(w), source = in_blocks ? Blocked(data, data_block) : VisitExpr(data);
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
    bool is_depthwise = conv->groups > 1 && IsDepthwise(k, (*data)[1]);
    if (is_depthwise ? !IsBlocked(call->args[0]) : conv->groups > 1) return true;
    int64_t block = is_depthwise ? BlockIn(call->args[0]) : BlockOfOutputs(k[0]);
    int64_t groups = is_depthwise ? RoundUp(k[0], block) : 1;
    *result = Convolved(call->args[0], {call->args[1], k, block, 0},
                        {conv->strides, conv->padding, conv->dilation, groups});
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
    int64_t block = 0;
    for (const Expr& arg : call->args) {
      if (GetStructInfoAs<PrimStructInfoObj>(arg)) continue;
      auto shape = StaticShape(arg);
      if (!shape) return std::nullopt;
      if (IsBlocked(arg) && *shape == result) block = std::max(block, BlockIn(arg));
      size_t missing = rank - std::min(rank, shape->size());
      int64_t channels = missing <= 1 ? (*shape)[1 - missing] : 1;
      if (*shape != result && channels != 1 && channels != result[1]) return std::nullopt;
    }
    if (block == 0) return std::nullopt;
    Array<Expr> args = call->args.Map([&](const Expr& arg) {
      if (GetStructInfoAs<PrimStructInfoObj>(arg)) return VisitExpr(arg);
      Sizes shape = *StaticShape(arg);
      return shape == result || IsBlocked(arg) ? Blocked(arg, block)
                                               : Broadcast(arg, shape, rank, block);
    });
    return Call(call->op, args, call->attrs, call->sinfo_args, call->span);
  }
  Expr Broadcast(const Expr& arg, Sizes shape, size_t rank, int64_t block) {
    bool has_elements = std::any_of(shape.begin(), shape.end(), [](int64_t s) { return s != 1; });
    if (!has_elements) {
      return shape.empty() ? VisitExpr(arg) : Make("relax.reshape", {VisitExpr(arg), ShapeOf({1})});
    }
    shape.insert(shape.begin(), rank - shape.size(), 1);
    return Split(VisitExpr(arg), shape, shape[1] == 1 ? 1 : block);
  }

  int64_t lanes_;
  KeptChannels kept_;
  bool may_fill_ = false;                           // the result of the binding that is visited
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
half of one where that divides the channels; results whose last vector would be half full are filled
up by copies of their last channel where that is little. A vector has `lanes`, or is that of the target's
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
