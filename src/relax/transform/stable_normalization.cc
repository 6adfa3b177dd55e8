// SPDX-License-Identifier: Apache-2.0
// Normalisations that keep their digits when the mean is far larger than the deviation.
#include "lowering.h"
#include "relax/legalize/lowering.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
// clang-format off
constexpr LoweringRow kRows[] = {
    {"relax.nn.layer_norm", "layer_norm", "topi.nn.stable_layer_norm", "0 1?scale 2?center axes epsilon"},
    {"relax.nn.instance_norm", "instance_norm", "topi.nn.stable_instance_norm", "0 1?scale 2?center channel_axis axes epsilon"},
    {"relax.nn.group_norm", "group_norm", "topi.nn.stable_group_norm", "0 1?scale 2?center num_groups channel_axis axes epsilon"},
};
// clang-format on
IRModule StableNormalization(IRModule mod) {
  std::vector<Op> ops;
  Map<String, ffi::Function> lowerings;
  for (const LoweringRow& row : kRows) {
    ops.push_back(Op::Get(row.op));
    auto lower = [&row](BlockBuilder builder, Call call) -> Expr {
      auto* data = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
      bool is_known = data && data->Dims() && !data->IsUnknownDtype();
      return is_known ? LowerByRow(row, builder, call) : Expr(call);
    };
    lowerings.Set(row.op, ffi::Function::FromTyped(lower));
  }
  return LegalizeOnly(mod, ops, lowerings);
}
}  // namespace
TVM_RELAX_PASS(StableNormalization, 0,
               "R.nn.layer_norm, instance_norm and group_norm  ->  R.call_tir of kernels that take "
               "the variance from the distances to the mean.");
}  // namespace tvm::relax
