// SPDX-License-Identifier: Apache-2.0
// Convolutions with windows of 3 x 3 by Winograd's F(2 x 2, 3 x 3), where it takes less.
#include <algorithm>

#include "tvm/ir/machine.h"
#include "tvm/ir/transform.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/call_te.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"
#include "tvm/topi/nn.h"

namespace tvm::relax {
namespace {
constexpr const char* kOption = "relax.winograd";

/// The sizes of a convolution of tensors in blocks of channels.
struct ConvSizes {
  int64_t images, inputs, outputs, height, width;  // of the result
  int64_t block;                                   // channels of the result
};
std::optional<std::vector<int64_t>> SizesOf(const Expr& expr, size_t rank) {
  auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr);
  auto dims = tensor ? tensor->Dims() : Optional<Array<PrimExpr>>();
  if (!dims || dims.value().size() != rank || tensor->dtype != DataType::Float(32))
    return std::nullopt;
  std::vector<int64_t> sizes;
  for (const PrimExpr& dim : dims.value()) {
    auto* size = dim.as<IntImmObj>();
    if (!size) return std::nullopt;
    sizes.push_back(size->value);
  }
  return sizes;
}
/// Whether tiles take clearly fewer multiply-adds of vectors than windows do. A factor that comes
/// from memory costs as much as the multiply-adds that are done meanwhile; a number that is
/// transformed is computed, stored and read again.
bool Pays(const ConvSizes& c, const Machine& machine) {
  constexpr double kBytesPerCycle = 8, kMultiplyAddsPerCycle = 2, kTransformed = 4, kWorth = 1.25;
  double far = kMultiplyAddsPerCycle * machine->vector_bits / 8 / kBytesPerCycle;
  auto product = [](auto... n) { return (static_cast<double>(n) * ...); };
  double weights = product(c.inputs, c.outputs);
  double results = product(c.images, c.height, c.width);
  double tiles = product(c.images, (c.height + 1) / 2, (c.width + 1) / 2);
  double by_windows = 9 * weights * (results + far);
  double by_tiles = 16 * weights * (tiles + far) +
                    16 * tiles * kTransformed * static_cast<double>(c.inputs + c.outputs);
  return by_windows > kWorth * by_tiles;
}

class WinogradApplier : public ExprMutator {
 public:
  WinogradApplier(const IRModule& mod, Machine machine)
      : ExprMutator(mod), machine_(std::move(machine)) {}
  Function VisitFunction(const GlobalVar& var, const Function& func) final {
    Function changed = ExprMutator::VisitFunction(var, func);
    return changed.same_as(func) ? func : RemoveAllUnused(changed);  // weights in blocks
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* conv = call && call->attrs ? call->attrs.value().as<Conv2DAttrsObj>() : nullptr;
    auto sizes = conv ? Fits(call, conv) : std::nullopt;
    if (!sizes || !Pays(*sizes, machine_)) return visited;
    Optional<Expr> weight = ConstantOf(call->args[1]);
    if (!weight) return visited;
    // Panels as wide as tiles of the products.
    int64_t width = 2 * machine_->Lanes(32);
    if (sizes->outputs % width != 0) width = sizes->block;
    TEArguments before = TEArguments::Create();
    te::Tensor weights = topi::nn::winograd_weights(before->Tensor(weight.value()), width);
    Expr known = builder_->Emit(before->CallTIR(builder_, "winograd_weights", {weights}));
    TEArguments args = TEArguments::Create();
    te::Tensor data = args->Tensor(call->args[0]), factors = args->Tensor(known);
    return args->CallTIR(builder_, "conv2d_winograd",
                         {topi::nn::winograd_conv2d(data, factors, conv->padding, sizes->block)});
  }

 private:
  /// The constant "OIHW" of which BlockChannels made blocks: its transform takes no more memory
  /// than FoldConstant gives, whatever the model.
  Optional<Expr> ConstantOf(const Expr& weight) const {
    static const Op &permute = *new Op(Op::Get("relax.permute_dims")),
                    &reshape = *new Op(Op::Get("relax.reshape"));
    Expr expr = weight;
    for (const Op& op : {permute, reshape}) {
      auto* var = expr.as<VarObj>();
      auto value = var ? LookupBinding(ffi::GetRef<Var>(var)) : Optional<Expr>();
      auto* call = value ? value.value().as<CallObj>() : nullptr;
      if (!call || !call->Is(op)) return {};
      expr = call->args[0];
    }
    auto* constant = expr.as<ConstantObj>();
    return constant && constant->data.ndim() == 4 ? Optional<Expr>(expr) : Optional<Expr>();
  }
  static bool AreAll(const Ints& numbers, int64_t value) {
    return std::all_of(numbers.begin(), numbers.end(),
                       [value](const IntImm& n) { return n->value == value; });
  }
  /// The sizes of a convolution that has the windows, and channels in blocks.
  std::optional<ConvSizes> Fits(const CallObj* call, const Conv2DAttrsObj* conv) const {
    auto data = SizesOf(call->args[0], 5), kernel = SizesOf(call->args[1], 6),
         out = SizesOf(ffi::GetRef<Call>(call), 5);
    if (!data || !kernel || !out || conv->groups != 1 || !AreAll(conv->strides, 1) ||
        !AreAll(conv->dilation, 1))
      return std::nullopt;
    const auto &d = *data, &k = *kernel, &o = *out;
    auto layout = [](const char* dims, int64_t a, const char* b) {
      return std::string(dims) + std::to_string(a) + b;
    };
    bool is_blocked = conv->data_layout == layout("NCHW", d[4], "c") &&
                      conv->out_layout == layout("NCHW", o[4], "c") &&
                      conv->kernel_layout == layout("OIHW", d[4], "i") + std::to_string(o[4]) + "o";
    if (!is_blocked || k[2] != 3 || k[3] != 3) return std::nullopt;
    return ConvSizes{d[0], d[1] * d[4], o[1] * o[4], o[2], o[3], o[4]};
  }
  Machine machine_;
};

IRModule ApplyWinograd(IRModule mod) {
  Target target = Target::Current();
  if (!target.defined() || !transform::PassContext::Current()->GetConfig<bool>(kOption)) return mod;
  Machine machine = Machine::Of(target);
  if (!machine->is_host || !machine->takes_vectors) return mod;
  return OnDeepStack([&] {
    IRModule after = WinogradApplier(mod, machine).VisitFunctions();
    return after->functions.same_as(mod->functions) ? mod : after;
  });
}
TVM_REGISTER() {
  transform::DefConfig<bool>(
      kOption, true,
      "Convolutions with windows of 3 x 3 may be computed by Winograd's F(2 x 2, 3 x 3): where a "
      "window has an infinity its result may be NaN.");
}
}  // namespace
TVM_RELAX_PASS(
    ApplyWinograd, 0,
    R"(Convolutions of float32 in blocks of channels, with constant weights and windows of 3 x 3 that
move by one element, become calls of a kernel that multiplies tiles of 4 x 4 elements, where that
takes less. The weights are transformed by a kernel that FoldConstant calls. The configuration
"relax.winograd" turns it off.

b = R.permute_dims(R.reshape(w, …), axes=[0, 2, 4, 5, 3, 1])
y = R.nn.conv2d(x, b, padding=1, data_layout="NCHW8c", kernel_layout="OIHW8i8o", out_layout="NCHW8c")
->
u = R.call_tir(cls.winograd_weights, (w,), out_sinfo=R.Tensor((4, 4, 4, 64, 16), "float32"))
y = R.call_tir(cls.conv2d_winograd, (x, u), out_sinfo=…))");
}  // namespace tvm::relax
