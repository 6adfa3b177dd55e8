// SPDX-License-Identifier: Apache-2.0
// Layouts of convolutions and of operators on images, for which the user chooses them.
#include "relax/layout/rules.h"
#include "tir/text.h"

namespace tvm::relax {
namespace {
using Result = std::optional<LayoutResult>;

Order WantedOrder(const LayoutCall& c, const String& from, const String& to, const char* what) {
  auto order = OrderOf(from, to);
  if (!order) {
    TVM_FFI_THROW(ValueError) << "ConvertLayout: expected the layout of the " << what
                              << " to be a permutation of " << from << ", got " << to << ", for "
                              << tir::TextOf(ffi::GetRef<Call>(c.call));
  }
  return *order;
}
template <class Obj>
Result OfConvolution(LayoutCall& c) {
  auto* attrs = c.attrs<Obj>();
  if (c.desired.empty()) return std::nullopt;
  if (c.desired.size() < 2 || c.desired.size() > 3) {
    TVM_FFI_THROW(ValueError) << "ConvertLayout: expected the layouts of data, weight and maybe "
                                 "the result, got "
                              << c.desired.size() << " layouts";
  }
  String out_layout = attrs->out_layout.empty() ? attrs->data_layout : attrs->out_layout;
  String wanted_out = c.desired.size() == 3 ? c.desired[2] : c.desired[0];
  Order data = WantedOrder(c, attrs->data_layout, c.desired[0], "data");
  Order weight = WantedOrder(c, attrs->kernel_layout, c.desired[1], "weight");
  Order out = WantedOrder(c, out_layout, wanted_out, "result");
  // Channels that blocks do not divide (the colours of an image) stay as they are.
  bool fits = c.fits(c.call->args[0], data, false) && c.fits(c.call->args[1], weight, false) &&
              c.fits(ffi::GetRef<Call>(c.call), out, false);
  if (!fits) return std::nullopt;
  auto changed = ChangedAttrs<Obj>(c, [&](Obj* a) {
    a->data_layout = c.desired[0];
    a->kernel_layout = c.desired[1];
    a->out_layout = wanted_out;
  });
  Array<Expr> args = {c.get(c.call->args[0], data), c.get(c.call->args[1], weight)};
  return LayoutResult{Again(c, args, changed), out};
}
/// On images: in the layout that the user wants, else in that in which the data are.
template <class Obj>
Result OfImages(LayoutCall& c) {
  auto* attrs = c.attrs<Obj>();
  const Expr& data = c.call->args[0];
  Order order = FirstOrder(c, {data});
  if (!c.desired.empty()) {
    if (c.desired.size() > 2 || c.desired[c.desired.size() - 1] != c.desired[0]) {
      TVM_FFI_THROW(ValueError) << "ConvertLayout: expected one layout for data and result of "
                                << c.call->op.as<OpObj>()->name << ", got "
                                << tir::TextOf(c.desired);
    }
    order = WantedOrder(c, attrs->layout, c.desired[0], "data");
    if (!c.fits(data, order, false)) return std::nullopt;
  }
  if (IsIdentity(order)) return std::nullopt;
  if constexpr (requires(Obj a) { a.out_layout; }) {
    if (!attrs->out_layout.empty() && attrs->out_layout != attrs->layout) return std::nullopt;
  }
  auto changed = ChangedAttrs<Obj>(c, [&](Obj* a) {
    a->layout = Reordered(a->layout, order);
    if constexpr (requires { a->out_layout; }) a->out_layout = a->layout;
  });
  Array<Expr> args = c.call->args;
  args.Set(0, c.get(data, order));
  return LayoutResult{Again(c, args, changed), order};
}
Result OfResize(LayoutCall& c) {
  // A resized image in blocks has no kernel of its own.
  if (HasBlocks(FirstOrder(c, {c.call->args[0]}))) return std::nullopt;
  return OfImages<Resize2DAttrsObj>(c);
}

template <class... Names>
void RegisterChoice(LayoutRule rule, Names... names) {
  for (const char* op : {names...}) RegisterLayoutRule(op, rule, true);
}
TVM_REGISTER() {
  RegisterChoice(&OfConvolution<Conv1DAttrsObj>, "relax.nn.conv1d");
  RegisterChoice(&OfConvolution<Conv2DAttrsObj>, "relax.nn.conv2d");
  RegisterChoice(&OfConvolution<Conv3DAttrsObj>, "relax.nn.conv3d");
  RegisterChoice(&OfConvolution<Conv1DTransposeAttrsObj>, "relax.nn.conv1d_transpose");
  RegisterChoice(&OfConvolution<Conv2DTransposeAttrsObj>, "relax.nn.conv2d_transpose");
  RegisterChoice(&OfImages<Pool1DAttrsObj>, "relax.nn.max_pool1d", "relax.nn.avg_pool1d");
  RegisterChoice(&OfImages<Pool2DAttrsObj>, "relax.nn.max_pool2d", "relax.nn.avg_pool2d");
  RegisterChoice(&OfImages<Pool3DAttrsObj>, "relax.nn.max_pool3d", "relax.nn.avg_pool3d");
  RegisterChoice(&OfImages<AdaptivePool1DAttrsObj>, "relax.nn.adaptive_avg_pool1d");
  RegisterChoice(&OfImages<AdaptivePool2DAttrsObj>, "relax.nn.adaptive_avg_pool2d");
  RegisterChoice(&OfImages<AdaptivePool3DAttrsObj>, "relax.nn.adaptive_avg_pool3d");
  RegisterChoice(&OfResize, "relax.image.resize2d");
}
}  // namespace
}  // namespace tvm::relax
