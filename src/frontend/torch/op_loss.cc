// SPDX-License-Identifier: Apache-2.0
// Losses whose gradient is theirs to compute.
#include "converter.h"
#include "elementwise.h"
#include "network.h"

namespace tvm::frontend::torch {
namespace {

/// -target * sigmoid(-target * x): PyTorch's decomposition loses small values in sigmoid - 1.
Any SoftMarginBackward(Conversion& c) {
  Expr x = c.Tensor(1), target = c.Cast(c.Tensor(2), TypeOf(x));
  Expr opposite = c.Emit("negative", target);
  Expr slope = c.Emit("multiply", opposite, c.Emit("sigmoid", c.Emit("multiply", opposite, x)));
  if (c.Int(3) == 1) {  // the mean
    Expr count = SizeTensor(c, c.Simplify(Count(ShapeOf(x))));
    slope = c.Emit("divide", slope, c.Cast(count, TypeOf(x)));
  }
  return c.Emit("multiply", slope, c.Tensor(0));
}

// ---- cross entropy of a linear layer ------------------------------------------------------------
/// What PyTorch computes by parts of the batch to save memory.
struct LinearCrossEntropy {
  Expr x, weight, logits;  // in the type of sums
  Expr is_target;          // (rows, classes)
  Expr row_weight;         // (rows): that of the class, 0 where it is ignored
};
LinearCrossEntropy LinearCrossEntropyOf(Conversion& c, int64_t ignore_index, DataType t) {
  Expr x = c.Cast(c.Tensor(0), t), weight = c.Cast(c.Tensor(1), t), target = c.Tensor(2);
  Expr logits = MatMul(c, x, c.Permute(weight, {1, 0}));
  if (c.Given(3)) logits = c.Emit("add", logits, c.Cast(c.Tensor(3), t));
  Expr classes = c.Arange(ShapeOf(weight)[0], TypeOf(target));
  Expr is_target = c.Emit("equal", c.Emit("expand_dims", target, 1), classes);
  Expr counted = c.Emit("not_equal", target, c.As(ignore_index, TypeOf(target)));
  Expr row_weight = c.Cast(counted, t);
  if (c.Given(4)) {
    Expr inside = c.Emit("where", counted, target, c.As(0, TypeOf(target)));
    Expr of_class = c.Emit("take", c.Cast(c.Tensor(4), t), inside, 0);
    row_weight = c.Emit("multiply", row_weight, of_class);
  }
  return {x, weight, logits, is_target, row_weight};
}
/// The loss of each row.
Expr RowLoss(Conversion& c, const LinearCrossEntropy& in) {
  DataType t = TypeOf(in.logits);
  Expr logs = c.Emit("nn.log_softmax", in.logits, -1);
  Expr picked = c.Emit("where", in.is_target, logs, c.Const(0.0, t));
  picked = c.Emit("sum", picked, Array<Any>{1});
  return c.Emit("negative", c.Emit("multiply", in.row_weight, picked));
}
/// The loss with the gradients that are asked for; those that are not have no elements.
Any LinearLossAndGradients(Conversion& c) {
  DataType result = TypeOf(c.Tensor(0)), t = c.Type(10, result);
  std::string reduction = c.Text(5);
  if (c.Number(7) != 0) TVM_REFUSE(c, NotImplementedError) << "expected no label smoothing";
  if (reduction != "mean" && reduction != "sum") {
    TVM_REFUSE(c, ValueError) << "reduction: expected mean or sum, got " << reduction;
  }
  LinearCrossEntropy in = LinearCrossEntropyOf(c, c.Int(6), t);
  Expr loss = c.Emit("sum", RowLoss(c, in)), row_weight = in.row_weight;
  if (reduction == "mean") {
    Expr total = c.Emit("sum", row_weight);
    loss = c.Emit("divide", loss, total);
    row_weight = c.Emit("divide", row_weight, total);
  }
  Expr slope = c.Emit("subtract", c.Emit("nn.softmax", in.logits, -1), c.Cast(in.is_target, t));
  slope = c.Emit("multiply", slope, c.Emit("expand_dims", row_weight, 1));
  PrimExpr none = IntImm::Int64(0);
  auto nothing = [&](const Dims& dims) { return c.Emit("zeros", dims, result); };
  return Array<Any>{
      c.Cast(loss, result),
      c.Flag(12) ? c.Cast(MatMul(c, slope, in.weight), result) : nothing({none, none}),
      c.Flag(13) ? c.Cast(MatMul(c, c.Permute(slope, {1, 0}), in.x), result)
                 : nothing({none, none}),
      c.Flag(14) ? c.Cast(c.Emit("sum", slope, Array<Any>{0}), result) : nothing({none})};
}
Any LinearLossByRow(Conversion& c) {
  DataType result = TypeOf(c.Tensor(0));
  LinearCrossEntropy in = LinearCrossEntropyOf(c, c.Int(5), c.Type(8, result));
  return c.Cast(RowLoss(c, in), result);
}

TVM_REGISTER() {
  Converter("soft_margin_loss_backward.default", "grad_output, self, target, reduction",
            &SoftMarginBackward);
  Converter("torch_nn._linear_cross_entropy_batch_chunked.default",
            "input, linear_weight, target, linear_bias, weight, reduction, ignore_index, "
            "label_smoothing, batch_chunk_size, acc_policy, acc_dtype, allow_retain_graph, "
            "compute_input_grad, compute_linear_weight_grad, compute_linear_bias_grad",
            &LinearLossAndGradients);
  Converter("torch_nn._linear_cross_entropy_batch_chunked_no_reduction.default",
            "input, linear_weight, target, linear_bias, weight, ignore_index, batch_chunk_size, "
            "acc_policy, acc_dtype",
            &LinearLossByRow);
}

}  // namespace
}  // namespace tvm::frontend::torch
