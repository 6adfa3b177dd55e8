// SPDX-License-Identifier: Apache-2.0
// Pooling: maxima and means of windows, and of parts of equal share (adaptive).
#include "topi/nn/spatial.h"
#include "tvm/topi/nn.h"
#include "tvm/topi/reduction.h"

namespace tvm::topi::nn {
using namespace tir;
namespace {
bool IsMax(const char* op, const String& pool_type) {
  if (pool_type != "max" && pool_type != "avg")
    Complain(op, "pool_type \"max\" or \"avg\"", '"' + std::string(pool_type) + '"');
  return pool_type == "max";
}
Attrs RuleOf(const char* name) {
  return {{"schedule_rule", String(std::string("meta_schedule.") + name)}};
}

/// The windows of one pool: sizes by spatial axis, and how many there are.
struct PoolWindows {
  Index kernel, strides, dilation, spans, counts;  // spans: what a window covers
  bool cut_off = false;  // whether some last window reaches behind the padding
  Padding padding;

  PoolWindows(const char* op, const Tensor& data, const SpatialAxes& axes, const Any& kernel_size,
              const Any& stride, const Any& dilate, const Any& pads, bool ceil_mode)
      : kernel(Exprs(op, "kernel", kernel_size, axes.size())),
        strides(Exprs(op, "stride", stride, axes.size())),
        dilation(Exprs(op, "dilation", dilate, axes.size())),
        padding(op, pads, kernel) {
    for (size_t k = 0; k < axes.size(); ++k) {
      const PrimExpr& extent = data->shape[axes.axes[k]];
      DataType t = extent.dtype();
      for (Index* list : {&kernel, &strides, &dilation, &padding.before, &padding.after})
        (*list)[k] = tvm::cast(t, (*list)[k]);
      PrimExpr one = MakeConst(t, 1);
      spans.push_back(Simplified((kernel[k] - one) * dilation[k] + one));
      PrimExpr padded = extent + padding.before[k] + padding.after[k];
      PrimExpr room = padded - spans[k];
      PrimExpr count = (ceil_mode ? ceildiv(room, strides[k]) : floordiv(room, strides[k])) + one;
      if (ceil_mode) {
        // No window begins in the padding behind the data.
        PrimExpr last = (count - one) * strides[k];
        count = Simplified(Select(last >= extent + padding.before[k], count - one, count));
        PrimExpr missing = Simplified((count - one) * strides[k] + spans[k] - padded);
        auto known = AsConstInt(missing);
        if (!known || *known > 0) {
          cut_off = true;
          padding.after[k] = Simplified(padding.after[k] + tvm::max(missing, MakeZero(t)));
        }
      }
      counts.push_back(Simplified(count));
    }
  }
  /// Whether far fewer elements are compared if axes are reduced one after the other, which takes
  /// more passes over them.
  bool IsBetterApart() const {
    double together = 1, apart = 0, results = 1;  // of an axis, for each of the last one
    for (size_t k = kernel.size(); k-- > 0;) {
      auto taps = AsConstInt(kernel[k]), step = AsConstInt(strides[k]);
      if (!taps || !step) return false;
      apart += results * static_cast<double>(*taps);
      results *= static_cast<double>(*step);
      together *= static_cast<double>(*taps);
    }
    return 2 * apart <= together;
  }
};
/// The largest elements of windows, axis by axis.
Tensor MaxPoolApart(Tensor source, const SpatialAxes& axes, const PoolWindows& w) {
  for (size_t k = 0; k < axes.size(); ++k) {
    size_t axis = axes.axes[k];
    bool is_last = k + 1 == axes.size();
    Shape shape = source->shape;
    shape.Set(axis, w.counts[k]);
    IterVar tap = Along(w.kernel[k], "rv" + std::to_string(k));
    auto element = [&](const Index& i) {
      Index at = i;
      at[axis] = i[axis] * w.strides[k] + tap->var * w.dilation[k];
      return te::max(At(source, at), {tap});
    };
    source = is_last ? Compute(shape, element, "pool_max", "pool_max", RuleOf("pool_max"))
                     : Compute(shape, element, "pool_max_lines", kCommReduce);
  }
  return source;
}
}  // namespace

Tensor pool(const Tensor& data, const Any& kernel, const Any& stride, const Any& dilation,
            const Any& padding, String pool_type, bool ceil_mode, String layout,
            bool count_include_pad) {
  SpatialAxes axes("pool", layout, "NC", data, /*may_have_blocks=*/true);
  const std::string op = "pool" + std::to_string(axes.size()) + "d";
  bool is_max = IsMax(op.c_str(), pool_type);
  DataType wide = SumType(data->dtype);
  Padding given(op.c_str(), padding, Exprs(op.c_str(), "kernel", kernel, axes.size()));
  PoolWindows w(op.c_str(), data, axes, kernel, stride, dilation, padding, ceil_mode);
  PrimExpr start = is_max ? min_value(data->dtype) : MakeZero(data->dtype);
  Tensor source = w.padding.IsNone() ? data : PadSpatial(data, axes, w.padding, start);
  if (is_max && w.IsBetterApart()) return MaxPoolApart(source, axes, w);
  Shape shape = data->shape;
  Array<IterVar> iters;
  for (size_t k = 0; k < axes.size(); ++k) {
    shape.Set(axes.axes[k], w.counts[k]);
    iters.push_back(Along(w.kernel[k], "rv" + std::to_string(k)));
  }
  auto element = [&](const Index& i) {
    Index at = i;
    for (size_t k = 0; k < axes.size(); ++k) {
      size_t axis = axes.axes[k];
      at[axis] = i[axis] * w.strides[k] + iters[k]->var * w.dilation[k];
    }
    PrimExpr value = At(source, at);
    return is_max ? te::max(value, iters) : te::sum(tvm::cast(wide, value), iters);
  };
  if (is_max) return Compute(shape, element, "pool_max", "pool_max", RuleOf("pool_max"));
  Tensor total = Compute(shape, element, "pool_sum", "pool_sum");
  auto mean = [&](const Index& i) {
    PrimExpr inside = MakeConst(DataType::Int(32), 1);
    for (size_t k = 0; k < axes.size(); ++k) {
      PrimExpr taps = w.kernel[k];
      if (!count_include_pad || w.cut_off) {
        // Taps from the first to the last that is inside of the data (or of its padding).
        DataType t = taps.dtype();
        PrimExpr zero = MakeZero(t), from = i[axes.axes[k]] * w.strides[k] - w.padding.before[k];
        PrimExpr low = zero, high = data->shape[axes.axes[k]];
        if (count_include_pad) {
          low = neg(w.padding.before[k]);
          high = high + tvm::cast(t, given.after[k]);
        }
        PrimExpr first = tvm::max(ceildiv(low - from, w.dilation[k]), zero);
        PrimExpr last = tvm::min(ceildiv(high - from, w.dilation[k]), taps);
        taps = last - first;
      }
      inside = k == 0 ? taps : inside * taps;
    }
    inside = tvm::max(Simplified(inside), MakeConst(inside.dtype(), 1));
    return tvm::cast(data->dtype, div(At(total, i), tvm::cast(wide, inside)));
  };
  return Compute(shape, mean, "pool_avg", kElementWise, RuleOf("pool_avg"));
}

Tensor adaptive_pool(const Tensor& data, const Any& output_size, String pool_type, String layout) {
  SpatialAxes axes("adaptive_pool", layout, "NC", data, /*may_have_blocks=*/true);
  constexpr const char* kOp = "adaptive_pool";
  bool is_max = IsMax(kOp, pool_type);
  DataType wide = SumType(data->dtype);
  Index sizes;
  for (size_t axis : axes.axes) sizes.push_back(data->shape[axis]);
  auto list = output_size.as<Array<Any>>();
  if (output_size != nullptr && !(list && list->empty()))
    sizes = Exprs(kOp, "output_size", output_size, axes.size());
  Shape shape = data->shape;
  for (size_t k = 0; k < axes.size(); ++k) {
    sizes[k] = tvm::cast(data->shape[axes.axes[k]].dtype(), sizes[k]);
    shape.Set(axes.axes[k], sizes[k]);
  }
  auto begin = [&](size_t k, const PrimExpr& o) {
    return floordiv(o * data->shape[axes.axes[k]], sizes[k]);
  };
  auto count = [&](size_t k, const PrimExpr& o) {
    PrimExpr one = MakeConst(o.dtype(), 1);
    PrimExpr end = ceildiv((o + one) * data->shape[axes.axes[k]], sizes[k]);
    return Simplified(end - begin(k, o));
  };
  auto element = [&](const Index& i) {
    Index at = i;
    Array<IterVar> iters;
    for (size_t k = 0; k < axes.size(); ++k) {
      size_t axis = axes.axes[k];
      iters.push_back(Along(count(k, i[axis]), "rv" + std::to_string(k)));
      at[axis] = begin(k, i[axis]) + iters[k]->var;
    }
    PrimExpr value = At(data, at);
    return is_max ? te::max(value, iters) : te::sum(tvm::cast(wide, value), iters);
  };
  if (is_max) {
    return Compute(shape, element, "adaptive_pool_max", "adaptive_pool_max",
                   RuleOf("adaptive_pool_max"));
  }
  Tensor total = Compute(shape, element, "adaptive_pool_sum", "adaptive_pool_sum");
  auto mean = [&](const Index& i) {
    PrimExpr elements;
    for (size_t k = 0; k < axes.size(); ++k) {
      PrimExpr here = count(k, i[axes.axes[k]]);
      elements = k == 0 ? here : elements * here;
    }
    return tvm::cast(data->dtype, div(At(total, i), tvm::cast(wide, elements)));
  };
  return Compute(shape, mean, "adaptive_pool_avg", kElementWise, RuleOf("adaptive_pool_avg"));
}

namespace {
Tensor GlobalPool(const Tensor& data, String pool_type, String layout) {
  return adaptive_pool(data, Any(1), pool_type, layout);
}
TVM_REGISTER() {
#define POOL(name, adaptive_name, layout)                                                         \
  Def(name, &pool, "The maximum or mean of each window.", Arg("data"), Arg("kernel"),             \
      Arg("stride"), Arg("dilation"), Arg("padding"), Arg("pool_type"), Arg("ceil_mode", false),  \
      Arg("layout", layout), Arg("count_include_pad", true));                                     \
  Def(adaptive_name, &adaptive_pool, "The maximum or mean of parts of equal share.", Arg("data"), \
      Arg("output_size"), Arg("pool_type"), Arg("layout", layout));
  POOL("topi.nn.pool1d", "topi.nn.adaptive_pool1d", "NCW")
  POOL("topi.nn.pool2d", "topi.nn.adaptive_pool", "NCHW")
  POOL("topi.nn.pool3d", "topi.nn.adaptive_pool3d", "NCDHW")
#undef POOL
  Def("topi.nn.global_pool", &GlobalPool, "The maximum or mean of all places of a channel.",
      Arg("data"), Arg("pool_type"), Arg("layout", "NCHW"));
}
}  // namespace
}  // namespace tvm::topi::nn
