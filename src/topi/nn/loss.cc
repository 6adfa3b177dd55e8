// SPDX-License-Identifier: Apache-2.0
// Losses and their gradients; gradients of pools.
#include "topi/loops.h"
#include "topi/nn/spatial.h"
#include "topi/reduce.h"
#include "tvm/topi/elementwise.h"
#include "tvm/topi/nn.h"
#include "tvm/topi/reduction.h"

namespace tvm::topi::nn {
using namespace tir;
namespace {
/// predictions are (C,), (N, C) or (N, C, d…); targets the same without C.
struct Nll {
  const Tensor &predictions, &targets;
  const Optional<Tensor>& weights;
  int64_t ignore_index;
  size_t channel() const { return predictions->shape.size() == 1 ? 0 : 1; }
  void Check(const char* op) const {
    if (predictions->shape.empty()) Complain(op, "predictions with a dimension", "a scalar");
    CheckRank(op, "targets", targets, predictions->shape.size() - 1);
    if (weights) CheckRank(op, "weights", *weights, 1);
  }
  PrimExpr Target(const Index& i) const { return At(targets, i); }
  PrimExpr IsIgnored(const PrimExpr& target) const {
    return equal(target, MakeConst(target.dtype(), ignore_index));
  }
  PrimExpr Weight(const PrimExpr& target) const {
    PrimExpr one = MakeConst(predictions->dtype, 1);
    return if_then_else(IsIgnored(target), MakeZero(predictions->dtype),
                        weights ? weights.value()(target) : one);
  }
};
void CheckReduction(const char* op, const String& reduction) {
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    Complain(op, "reduction \"none\", \"sum\" or \"mean\"", '"' + std::string(reduction) + '"');
}
Tensor NllLoss(const Tensor& predictions, const Tensor& targets, const Optional<Tensor>& weights,
               String reduction, int64_t ignore_index) {
  Nll nll{predictions, targets, weights, ignore_index};
  nll.Check("nll_loss");
  CheckReduction("nll_loss", reduction);
  Tensor losses = Compute(
      targets->shape,
      [&](const Index& i) {
        PrimExpr target = nll.Target(i);
        Index place = Inserted(i, nll.channel(), target);
        PrimExpr loss = neg(At(predictions, place)) * nll.Weight(target);
        return if_then_else(nll.IsIgnored(target), MakeZero(predictions->dtype), loss);
      },
      "nll_loss");
  if (reduction == "none") return losses;
  auto total = [](const Tensor& t) { return t->shape.empty() ? t : sum(t, nullptr); };
  if (reduction == "sum") return total(losses);
  Tensor used = Compute(
      targets->shape, [&](const Index& i) { return nll.Weight(nll.Target(i)); }, "nll_loss");
  return Of(divide, total(losses), total(used));
}
/// The gradient of nll_loss: only predictions of the targets have one.
Tensor NllLossBackward(const Tensor& output_grad, const Tensor& predictions, const Tensor& targets,
                       const Optional<Tensor>& weights, String reduction, int64_t ignore_index) {
  Nll nll{predictions, targets, weights, ignore_index};
  nll.Check("nll_loss_backward");
  CheckReduction("nll_loss_backward", reduction);
  Optional<Tensor> total;
  if (reduction == "mean") {
    Tensor used = Compute(
        targets->shape, [&](const Index& i) { return nll.Weight(nll.Target(i)); }, "weights");
    total = targets->shape.empty() ? used : sum(used, nullptr);
  }
  auto element = [&](const Index& i) {
    Index place = i;
    place.erase(place.begin() + static_cast<std::ptrdiff_t>(nll.channel()));
    PrimExpr target = nll.Target(place);
    PrimExpr grad = reduction == "none" ? At(output_grad, place) : output_grad();
    if (total) grad = div(grad, total.value()());
    PrimExpr here = equal(target, tvm::cast(target.dtype(), i[nll.channel()]));
    return if_then_else(here, neg(grad) * nll.Weight(target), MakeZero(predictions->dtype));
  };
  return Compute(predictions->shape, element, "nll_loss_backward");
}
/// The mean over the batch of the sums of -prediction * label, which are logarithms already.
Tensor CrossEntropy(const Tensor& predictions, const Tensor& labels) {
  Tensor total = sum(Of(multiply, predictions, labels), nullptr);
  if (predictions->shape.size() <= 1)
    return Of(multiply, total, Operand(MakeConst(predictions->dtype, -1.0)));
  PrimExpr batch = neg(CountAs(predictions->shape[0], predictions->dtype));
  return Of(divide, total, Operand(batch));
}

/// The gradient of a pool: each window's goes to its maximum (the first), or is shared.
Tensor PoolGrad(const Tensor& grads, const Tensor& data, const Any& kernel, const Any& stride,
                const Any& padding, String pool_type, bool ceil_mode, bool count_include_pad,
                String layout, const Any& dilation) {
  constexpr const char* kOp = "pool_grad";
  SpatialAxes axes(kOp, layout, "NC", data);
  CheckRank(kOp, "gradients", grads, data->shape.size());
  Index sizes = Exprs(kOp, "kernel", kernel, axes.size());
  Index strides = Exprs(kOp, "stride", stride, axes.size());
  Index spread = Exprs(kOp, "dilation", dilation, axes.size());
  Padding pads(kOp, padding, sizes);
  bool is_max = pool_type == "max";
  if (!is_max && pool_type != "avg")
    Complain(kOp, "pool_type \"max\" or \"avg\"", '"' + std::string(pool_type) + '"');
  Shape windows;
  for (size_t k = 0; k < axes.size(); ++k) {
    DataType t = data->shape[axes.axes[k]].dtype();
    for (Index* list : {&sizes, &strides, &spread, &pads.before, &pads.after})
      (*list)[k] = tvm::cast(t, (*list)[k]);
    windows.push_back(sizes[k]);
  }
  /// The element under a tap of a window, and whether it is inside of the data.
  auto under = [&](const Index& o, const Index& tap) {
    Index place = o;
    PrimExpr inside = const_true();
    for (size_t k = 0; k < axes.size(); ++k) {
      size_t axis = axes.axes[k];
      place[axis] = o[axis] * strides[k] + tap[k] * spread[k] - pads.before[k];
      inside =
          inside && MakeZero(place[axis].dtype()) <= place[axis] && place[axis] < data->shape[axis];
    }
    return std::pair(place, inside);
  };
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    Stmt zero =
        Loops(data->shape, [&](const Index& i) { return Store(out[0], i, MakeZero(data->dtype)); });
    DataType t = DataType::Int(64);
    Scalar best("best", data->dtype), at("at", t), count("count", t);
    auto each_tap = [&](const std::function<Stmt(const Index& tap)>& f) {
      return Loops(windows, f);
    };
    Stmt spread_out = Loops(grads->shape, [&](const Index& o) {
      PrimExpr grad = Load(in[0], o);
      auto add = [&](const Index& place, const PrimExpr& value) {
        return Store(out[0], place, Load(out[0], place) + value);
      };
      if (is_max) {
        Stmt find = each_tap([&](const Index& tap) {
          auto [place, inside] = under(o, tap);
          PrimExpr value = Load(in[1], place);
          PrimExpr better = at.Get() < MakeZero(t) || value > best.Get();
          if (data->dtype.is_float()) better = better || (isnan(value) && !isnan(best.Get()));
          Stmt take = Steps({best.Set(value), at.Set(tvm::cast(t, Ravel(tap, windows)))});
          return Stmt(IfThenElse(inside, IfThenElse(better, take)));
        });
        Stmt give = each_tap([&](const Index& tap) {
          auto [place, inside] = under(o, tap);
          PrimExpr here = equal(at.Get(), tvm::cast(t, Ravel(tap, windows)));
          return Stmt(IfThenElse(inside, IfThenElse(here, add(place, grad))));
        });
        return Steps({at.Set(MakeConst(t, -1)), find, give});
      }
      Stmt number = each_tap([&](const Index& tap) {
        auto [place, inside] = under(o, tap);
        PrimExpr counts = inside;
        if (count_include_pad) {  // all that is not behind the padding
          counts = const_true();
          for (size_t k = 0; k < axes.size(); ++k)
            counts = counts && place[axes.axes[k]] < data->shape[axes.axes[k]] + pads.after[k];
        }
        return Stmt(IfThenElse(counts, count.Set(count.Get() + MakeConst(t, 1))));
      });
      Stmt give = each_tap([&](const Index& tap) {
        auto [place, inside] = under(o, tap);
        PrimExpr share = div(grad, tvm::cast(data->dtype, tvm::max(count.Get(), MakeConst(t, 1))));
        return Stmt(IfThenElse(inside, add(place, share)));
      });
      return Steps({count.Set(MakeZero(t)), number, give});
    });
    Stmt all = Steps({zero, spread_out});
    return WithBuffer(best.buffer, WithBuffer(at.buffer, WithBuffer(count.buffer, all)));
  };
  (void)ceil_mode;  // the gradients say how many windows there are
  return Extern("T_pool_grad", {grads, data}, {{data->shape, data->dtype}}, body)[0];
}

TVM_REGISTER() {
  Def("topi.nn.nll_loss", &NllLoss, "The negative log likelihood of targets.", Arg("predictions"),
      Arg("targets"), Arg("weights"), Arg("reduction"), Arg("ignore_index"));
  Def("topi.nn.nll_loss_backward", &NllLossBackward, "The gradient of nll_loss.",
      Arg("output_grad"), Arg("predictions"), Arg("targets"), Arg("weights"), Arg("reduction"),
      Arg("ignore_index"));
  Def("topi.nn.cross_entropy_with_logits", &CrossEntropy,
      "The mean over the batch of the sums of -predictions * labels.", Arg("predictions"),
      Arg("labels"));
  Def("topi.nn.pool_grad", &PoolGrad, "The gradient of a pool.", Arg("grads"), Arg("data"),
      Arg("kernel"), Arg("stride"), Arg("padding"), Arg("pool_type"), Arg("ceil_mode", false),
      Arg("count_include_pad", true), Arg("layout", "NCHW"), Arg("dilation", 1));
}
}  // namespace
}  // namespace tvm::topi::nn
