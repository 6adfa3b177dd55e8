// SPDX-License-Identifier: Apache-2.0
// Distances between rows, sums over bags of rows, columns back to images.
#include <cmath>
#include <cstring>

#include "converter.h"
#include "network.h"
#include "tvm/runtime/tensor.h"

namespace tvm::frontend::torch {
namespace {

Expr IndexConstant(const std::vector<int64_t>& values) {
  int64_t n = values.size();
  ffi::Tensor tensor =
      runtime::Empty(ffi::ShapeView(&n, 1), DataType::Int(64), DLDevice{kDLCPU, 0});
  std::memcpy(tensor.data_ptr(), values.data(), n * sizeof(int64_t));
  return Constant(tensor);
}
/// The p-norm of differences along the last axis.
Expr NormOf(Conversion& c, const Expr& difference, double p) {
  DataType t = TypeOf(difference);
  Expr size = c.Emit("abs", difference);
  Array<Any> last = {-1};
  if (p == 0) {
    return c.Emit("sum", c.Cast(c.Emit("not_equal", size, c.Const(0.0, t)), t), last);
  }
  if (p == 1) return c.Emit("sum", size, last);
  if (std::isinf(p)) return c.Emit("max", size, last);
  if (p == 2) return c.Emit("sqrt", c.Emit("sum", c.Emit("multiply", size, size), last));
  Expr sum = c.Emit("sum", c.Emit("power", size, c.Const(p, t)), last);
  return c.Emit("power", sum, c.Const(1 / p, t));
}
Any CDist(Conversion& c) {
  Expr a = c.Emit("expand_dims", c.Tensor(0), -2), b = c.Emit("expand_dims", c.Tensor(1), -3);
  return NormOf(c, c.Emit("subtract", a, b), c.Number(2));
}
Any PDist(Conversion& c) {
  Expr x = c.Tensor(0);
  auto n = AsConstInt(ShapeOf(x)[0]);
  if (!n) TVM_REFUSE(c, NotImplementedError) << "expected a constant number of rows";
  std::vector<int64_t> left, right;
  for (int64_t i = 0; i < *n; ++i) {
    for (int64_t j = i + 1; j < *n; ++j) {
      left.push_back(i);
      right.push_back(j);
    }
  }
  if (left.empty()) return c.Emit("zeros", Array<Any>{0}, TypeOf(x));
  Expr a = c.Emit("take", x, IndexConstant(left), 0),
       b = c.Emit("take", x, IndexConstant(right), 0);
  return NormOf(c, c.Emit("subtract", a, b), c.Number(1));
}
/// Sums, means or maxima over the rows between offsets.
Any EmbeddingBag(Conversion& c) {
  Expr weight = c.Tensor(0), indices = c.Tensor(1), offsets = c.Tensor(2);
  DataType t = TypeOf(weight), index = TypeOf(indices);
  int64_t mode = c.Int(4);
  PrimExpr length = ShapeOf(indices)[0], bags = ShapeOf(offsets)[0];
  if (c.Flag(7)) {
    bags = c.Simplify(bags - IntImm::Int64(1));
    offsets = c.Slice(offsets, 0, IntImm::Int64(0), bags);
  }
  Expr starts = c.Reshape(offsets, {bags, IntImm::Int64(1)});
  Expr positions = c.Arange(length, TypeOf(offsets));
  Expr begun = c.Cast(c.Emit("less_equal", starts, positions), TypeOf(offsets));
  Expr bag = c.Emit("subtract", c.Emit("sum", begun, Array<Any>{0}), c.Const(1.0, TypeOf(offsets)));
  Expr numbers = c.Reshape(c.Arange(bags, TypeOf(offsets)), {bags, IntImm::Int64(1)});
  Expr member = c.Emit("equal", numbers, bag);  // (bags, length)
  if (c.Int(8) >= 0) {
    Expr counted = c.Emit("not_equal", indices, c.As(c[8], index));
    member = c.Emit("logical_and", member, counted);
  }
  Expr rows = c.Emit("take", weight, indices, 0);
  if (c.Given(6)) {
    rows = c.Emit("multiply", rows, c.Emit("expand_dims", c.Tensor(6), 1));
  }
  Expr members = c.Cast(member, t);
  Expr sizes = c.Emit("sum", members, Array<Any>{1}, true);
  Expr result;
  if (mode == 2) {
    Expr inside = c.Emit("expand_dims", member, 2);
    Expr masked =
        c.Emit("where", inside, rows, c.Const(-std::numeric_limits<double>::infinity(), t));
    Expr empty = c.Emit("equal", sizes, c.Const(0.0, t));
    result = c.Emit("where", empty, c.Const(0.0, t), c.Emit("max", masked, Array<Any>{1}));
  } else {
    result = MatMul(c, members, rows);
    if (mode == 1) {
      result = c.Emit("divide", result, c.Emit("maximum", sizes, c.Const(1.0, t)));
    }
  }
  for (size_t i = 1; i < 4; ++i) {
    if (c.Used(i)) TVM_REFUSE(c, NotImplementedError) << "expected no use of item " << i;
  }
  return Array<Any>{result, nullptr, nullptr, nullptr};
}
/// Each element of the image is the sum of all windows that hold it.
Any Col2Im(Conversion& c) {
  Dims out = c.Sizes(1);
  std::vector<int64_t> kernel = c.Ints(2, 2, 1), dilation = c.Ints(3, 2, 1),
                       padding = c.Ints(4, 2, 0), stride = c.Ints(5, 2, 1);
  Expr columns = c.Tensor(0);
  bool is_batch = RankOf(columns) == 3;
  if (!is_batch) columns = c.Emit("expand_dims", columns, 0);
  Expr image =
      c.Compute("col2im", {columns}, [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
        te::Tensor x = in[0];
        auto number = [](int64_t value) { return IntImm::Int64(value); };
        auto wide = [](const PrimExpr& e) { return cast(DataType::Int(64), e); };
        Array<tir::IterVar> window;
        PrimExpr blocks[2];
        for (size_t d = 0; d < 2; ++d) {
          window.push_back(te::reduce_axis(Range::FromMinExtent(number(0), number(kernel[d]))));
          blocks[d] = floordiv(out[d] + number(2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1),
                               number(stride[d])) +
                      number(1);
        }
        PrimExpr channels = floordiv(wide(x->shape[1]), number(kernel[0] * kernel[1]));
        return {te::compute(
            Array<PrimExpr>{x->shape[0], channels, out[0], out[1]},
            [&](const Array<tir::Var>& i) {
              PrimExpr inside = const_true(), row = wide(i[1]), column = number(0);
              for (size_t d = 0; d < 2; ++d) {
                PrimExpr k = wide(window[d]->var);
                PrimExpr p = wide(i[2 + d]) + number(padding[d]) - k * number(dilation[d]);
                PrimExpr block = floordiv(p, number(stride[d]));
                inside = inside && equal(floormod(p, number(stride[d])), number(0)) &&
                         block >= number(0) && block < blocks[d];
                row = row * number(kernel[d]) + k;
                column = column * blocks[d] + block;
              }
              PrimExpr zero = MakeConst(x->dtype, 0);
              return te::sum(if_then_else(inside, x(wide(i[0]), row, column), zero), window);
            },
            "image")};
      });
  return is_batch ? image : c.Emit("squeeze", image, Array<Any>{0});
}
/// Nothing is dropped: what a program in training mode would is its own to say.
Any NativeDropout(Conversion& c) {
  Expr x = c.Tensor(0);
  Any mask = c.Used(1) ? Any(c.Emit("ones_like", x, DataType::Bool())) : Any(nullptr);
  return Array<Any>{x, mask};
}

TVM_REGISTER() {
  Converter("_cdist_forward.default", "x1, x2, p, compute_mode", &CDist);
  Converter("_pdist_forward.default", "self, p=2.0", &PDist);
  Converter("_embedding_bag.default _embedding_bag_forward_only.default",
            "weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, "
            "per_sample_weights=None, include_last_offset=False, padding_idx=-1",
            &EmbeddingBag);
  Converter("col2im.default", "self, output_size, kernel_size, dilation, padding, stride", &Col2Im);
  Converter("native_dropout.default", "input, p, train", &NativeDropout);
}

}  // namespace
}  // namespace tvm::frontend::torch
