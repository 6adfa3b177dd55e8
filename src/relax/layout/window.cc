// SPDX-License-Identifier: Apache-2.0
// Layouts of convolutions, which begin a change of layouts, and of pools.
#include "relax/layout/rules.h"

namespace tvm::relax {
namespace {
using Result = std::optional<LayoutResult>;

Order WantedOrder(const String& from, const String& to, const char* what) {
  auto order = OrderOf(from, to);
  if (!order) {
    TVM_FFI_THROW(ValueError) << "ConvertLayout: expected the layout of the " << what
                              << " to be a permutation of " << from << ", got " << to;
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
  Order data = WantedOrder(attrs->data_layout, c.desired[0], "data");
  Order weight = WantedOrder(attrs->kernel_layout, c.desired[1], "weight");
  Order out = WantedOrder(out_layout, wanted_out, "result");
  auto changed = ChangedAttrs<Obj>(c, [&](Obj* a) {
    a->data_layout = c.desired[0];
    a->kernel_layout = c.desired[1];
    a->out_layout = wanted_out;
  });
  Array<Expr> args = {c.get(c.call->args[0], data), c.get(c.call->args[1], weight)};
  return LayoutResult{Again(c, args, changed), out};
}
/// A pool works in the layout in which its data are.
template <class Obj>
Result OfPool(LayoutCall& c) {
  Order order = c.call->args[0].as<VarObj>() ? c.order_of(c.call->args[0]) : Order();
  auto* attrs = c.attrs<Obj>();
  bool same = attrs->out_layout.empty() || attrs->out_layout == attrs->layout;
  if (IsIdentity(order) || !same) return std::nullopt;
  auto changed = ChangedAttrs<Obj>(c, [&](Obj* a) {
    a->layout = Reordered(a->layout, order);
    a->out_layout = a->layout;
  });
  return LayoutResult{Again(c, {c.get(c.call->args[0], order)}, changed), order};
}

TVM_REGISTER() {
  RegisterLayoutRule("relax.nn.conv1d", &OfConvolution<Conv1DAttrsObj>);
  RegisterLayoutRule("relax.nn.conv2d", &OfConvolution<Conv2DAttrsObj>);
  RegisterLayoutRule("relax.nn.conv3d", &OfConvolution<Conv3DAttrsObj>);
  RegisterLayoutRule("relax.nn.conv1d_transpose", &OfConvolution<Conv1DTransposeAttrsObj>);
  RegisterLayoutRule("relax.nn.conv2d_transpose", &OfConvolution<Conv2DTransposeAttrsObj>);
  for (const char* op : {"relax.nn.max_pool1d", "relax.nn.avg_pool1d"})
    RegisterLayoutRule(op, &OfPool<Pool1DAttrsObj>);
  for (const char* op : {"relax.nn.max_pool2d", "relax.nn.avg_pool2d"})
    RegisterLayoutRule(op, &OfPool<Pool2DAttrsObj>);
  for (const char* op : {"relax.nn.max_pool3d", "relax.nn.avg_pool3d"})
    RegisterLayoutRule(op, &OfPool<Pool3DAttrsObj>);
  RegisterLayoutRule("relax.nn.adaptive_avg_pool1d", &OfPool<AdaptivePool1DAttrsObj>);
  RegisterLayoutRule("relax.nn.adaptive_avg_pool2d", &OfPool<AdaptivePool2DAttrsObj>);
  RegisterLayoutRule("relax.nn.adaptive_avg_pool3d", &OfPool<AdaptivePool3DAttrsObj>);
}
}  // namespace
}  // namespace tvm::relax
