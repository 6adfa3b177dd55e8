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
// ---- bags of rows -------------------------------------------------------------------------------
/// Which bag each position belongs to, and (bags, positions) whether it counts there.
struct Bags {
  Expr bag, member;
};
Bags BagsOf(Conversion& c, const Expr& indices, const Expr& offsets, const PrimExpr& bags,
            const Any& padding) {
  DataType place = TypeOf(offsets);
  PrimExpr one = IntImm::Int64(1);
  Expr begun = c.Emit("less_equal", c.Reshape(offsets, {ShapeOf(offsets)[0], one}),
                      c.Arange(ShapeOf(indices)[0], place));
  Expr bag = c.Emit("sum", c.Cast(begun, place), Array<Any>{0});
  bag = c.Emit("subtract", bag, c.Const(1.0, place));
  Expr member = c.Emit("equal", c.Reshape(c.Arange(bags, place), {bags, one}), bag);
  if (padding.cast<int64_t>() >= 0) {
    Expr counted = c.Emit("not_equal", indices, c.As(padding, TypeOf(indices)));
    member = c.Emit("logical_and", member, counted);
  }
  return {bag, member};
}
/// The number of members of each bag, as a column.
Expr BagSizes(Conversion& c, const Expr& member, DataType t) {
  return c.Emit("sum", c.Cast(member, t), Array<Any>{1}, true);
}
/// The item of the result that a gradient uses, in the type and the size that PyTorch gives it:
/// one without elements is not used.
Any BagItem(Conversion& c, size_t i, const std::function<Expr()>& value) {
  if (!c.Used(i)) return nullptr;
  auto metas = ListOf(c.meta());
  auto* meta = metas ? (*metas)[i].as<TensorMetaObj>() : nullptr;
  if (!meta) return c.Cast(value(), TypeOf(c.Tensor(1)));
  DataType t = ParseType(meta->dtype);
  for (const Any& size : meta->sizes) {
    auto n = size.try_cast<int64_t>();
    if (n && *n == 0) return c.Emit("zeros", meta->sizes, t);
  }
  return c.Cast(value(), t);
}
/// Sums, means or maxima over the rows between offsets.
Any EmbeddingBag(Conversion& c) {
  Expr weight = c.Tensor(0), indices = c.Tensor(1), offsets = c.Tensor(2);
  DataType t = TypeOf(weight);
  int64_t mode = c.Int(4);
  PrimExpr bags = ShapeOf(offsets)[0];
  if (c.Flag(7)) {
    bags = c.Simplify(bags - IntImm::Int64(1));
    offsets = c.Slice(offsets, 0, IntImm::Int64(0), bags);
  }
  Bags in = BagsOf(c, indices, offsets, bags, c[8]);
  Expr rows = c.Emit("take", weight, indices, 0);
  if (c.Given(6)) {
    rows = c.Emit("multiply", rows, c.Emit("expand_dims", c.Tensor(6), 1));
  }
  Expr sizes = BagSizes(c, in.member, t), result, masked;
  if (mode == 2) {
    Expr inside = c.Emit("expand_dims", in.member, 2);
    masked = c.Emit("where", inside, rows, c.Const(-std::numeric_limits<double>::infinity(), t));
    Expr empty = c.Emit("equal", sizes, c.Const(0.0, t));
    result = c.Emit("where", empty, c.Const(0.0, t), c.Emit("max", masked, Array<Any>{1}));
  } else {
    result = MatMul(c, c.Cast(in.member, t), rows);
    if (mode == 1) {
      result = c.Emit("divide", result, c.Emit("maximum", sizes, c.Const(1.0, t)));
    }
  }
  return Array<Any>{result, BagItem(c, 1, [&] { return in.bag; }),
                    BagItem(c, 2, [&] { return c.Reshape(sizes, {bags}); }), BagItem(c, 3, [&] {
                      if (mode != 2) return c.Reshape(sizes, {bags});
                      return c.Emit("take", indices, c.Emit("argmax", masked, 1, false), 0);
                    })};
}
/// The gradient in the table: each row gets that of the bags it was in.
Any EmbeddingBagBackward(Conversion& c) {
  Expr grad = c.Tensor(0), indices = c.Tensor(1), offsets = c.Tensor(2);
  DataType t = TypeOf(grad);
  int64_t mode = c.Int(8);
  if (c.Flag(9)) TVM_REFUSE(c, NotImplementedError) << "sparse: expected False";
  PrimExpr bags = ShapeOf(grad)[0], length = ShapeOf(indices)[0], width = ShapeOf(grad)[1];
  Bags in = BagsOf(c, indices, offsets, bags, c[11]);
  Expr sizes = BagSizes(c, in.member, t);
  Expr table = c.Emit("zeros", Dims{AsSize(c[6]), width}, t);
  if (mode == 2) {
    Expr counted = c.Emit("greater", sizes, c.Const(0.0, t));
    grad = c.Emit("where", counted, grad, c.Const(0.0, t));
    return c.Emit("scatter_elements", table, c.Tensor(5), grad, 0, String("add"));
  }
  if (mode == 1) grad = c.Emit("divide", grad, c.Emit("maximum", sizes, c.Const(1.0, t)));
  Expr rows = MatMul(c, c.Emit("permute_dims", c.Cast(in.member, t)), grad);
  if (c.Given(10)) rows = c.Emit("multiply", rows, c.Emit("expand_dims", c.Tensor(10), 1));
  if (c.Flag(7)) {  // by how often each row was taken
    Expr equal = c.Emit("equal", c.Emit("expand_dims", indices, 1), indices);
    rows = c.Emit("divide", rows, c.Emit("sum", c.Cast(equal, t), Array<Any>{1}, true));
  }
  Expr at = c.BroadcastTo(c.Reshape(indices, {length, IntImm::Int64(1)}), {length, width});
  return c.Emit("scatter_elements", table, at, rows, 0, String("add"));
}
/// The gradient in the weights of a sum: the product of each row with its bag's gradient.
Any BagWeightsBackward(Conversion& c) {
  Expr grad = c.Tensor(0), weight = c.Tensor(1), indices = c.Tensor(2);
  Bags in = BagsOf(c, indices, c.Tensor(3), ShapeOf(grad)[0], c[6]);
  Expr of_row = MatMul(c, c.Emit("permute_dims", c.Cast(in.member, TypeOf(grad))), grad);
  Expr product = c.Emit("multiply", of_row, c.Emit("take", weight, indices, 0));
  return c.Emit("sum", product, Array<Any>{1});
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
  Converter("_embedding_bag_backward.default",
            "grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, "
            "scale_grad_by_freq, mode, sparse, per_sample_weights, padding_idx=-1",
            &EmbeddingBagBackward);
  Converter("_embedding_bag_per_sample_weights_backward.default",
            "grad, weight, indices, offsets, offset2bag, mode, padding_idx=-1",
            &BagWeightsBackward);
  Converter("col2im.default", "self, output_size, kernel_size, dilation, padding, stride", &Col2Im);
  Converter("native_dropout.default", "input, p, train", &NativeDropout);
}

}  // namespace
}  // namespace tvm::frontend::torch
