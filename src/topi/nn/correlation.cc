// SPDX-License-Identifier: Apache-2.0
// The correlation of two images: how alike patches of one are to displaced patches of the other,
// as networks of optical flow compute it.
#include "topi/nn/spatial.h"
#include "tvm/topi/elementwise.h"

namespace tvm::topi::nn {
using namespace tir;
namespace {
/// result(n, d, y, x) is the mean over a patch of kernel_size by kernel_size and the channels of
/// products, or of absolute differences, of data1 at (y, x) and data2 displaced by d.
Tensor Correlation(const Tensor& data1, const Tensor& data2, int64_t kernel_size,
                   int64_t max_displacement, int64_t stride1, int64_t stride2, const Any& padding,
                   bool is_multiply) {
  constexpr const char* kOp = "correlation_nchw";
  for (const Tensor& data : {data1, data2}) CheckRank(kOp, "images", data, 4);
  for (size_t d = 0; d < 4; ++d) {
    if (DifferentDim(data1->shape[d], data2->shape[d]))
      Complain(kOp, "images of one shape", Text(data1->shape) + " and " + Text(data2->shape));
  }
  constexpr int64_t kMost = 1 << 15;  // its square is an index
  auto check = [&](const char* name, int64_t value, int64_t least) {
    if (value >= least && value < kMost) return;
    Complain(kOp, std::string(name) + " in [" + std::to_string(least) + ", 2^15)",
             std::to_string(value));
  };
  check("kernel_size", kernel_size, 1);
  check("max_displacement", max_displacement, 0);
  check("stride1", stride1, 1);
  check("stride2", stride2, 1);
  DataType t = IndexType(data1->shape);
  auto index = [&](int64_t value) { return MakeConst(t, value); };
  SpatialAxes axes(kOp, "NCHW", "NC", data1);
  Padding pads(kOp, padding, {index(kernel_size), index(kernel_size)});
  Tensor first = PadSpatial(data1, axes, pads, MakeZero(data1->dtype));
  Tensor second = PadSpatial(data2, axes, pads, MakeZero(data2->dtype));
  int64_t radius = max_displacement / stride2, across = 2 * radius + 1;
  int64_t border = 2 * (max_displacement + (kernel_size - 1) / 2);
  auto count = [&](const PrimExpr& extent) {  // rounded up
    return Simplified(floordiv(extent - index(border - stride1 + 1), index(stride1)));
  };
  const Shape& s = first->shape;
  Shape shape{s[0], index(across * across), count(s[2]), count(s[3])};
  IterVar c = Along(s[1], "c"), y = Along(index(kernel_size), "y"),
          x = Along(index(kernel_size), "x");
  auto element = [&](const Index& i) {
    PrimExpr row = i[2] * index(stride1) + index(max_displacement) + y->var;
    PrimExpr column = i[3] * index(stride1) + index(max_displacement) + x->var;
    PrimExpr down = (floordiv(i[1], index(across)) - index(radius)) * index(stride2);
    PrimExpr right = (floormod(i[1], index(across)) - index(radius)) * index(stride2);
    PrimExpr a = first(i[0], c->var, row, column);
    PrimExpr b = second(i[0], c->var, row + down, column + right);
    return te::sum(is_multiply ? a * b : tvm::abs(a - b), {c, y, x});
  };
  Tensor sum = Compute(shape, element, "correlation", "correlation_nchw");
  PrimExpr patch = tvm::cast(sum->dtype, s[1] * index(kernel_size * kernel_size));
  return divide(sum, patch).get<Tensor>();
}

TVM_REGISTER() {
  Def("topi.nn.correlation_nchw", &Correlation,
      "How alike patches of an image are to displaced patches of another.", Arg("data1"),
      Arg("data2"), Arg("kernel_size"), Arg("max_displacement"), Arg("stride1"), Arg("stride2"),
      Arg("padding"), Arg("is_multiply"));
}
}  // namespace
}  // namespace tvm::topi::nn
