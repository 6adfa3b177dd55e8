// SPDX-License-Identifier: Apache-2.0
// Maxima of windows that cover a tensor evenly, and where they are.
#include "largest_of_window.h"
#include "network.h"

namespace tvm::frontend::torch {
namespace {

struct Windows {
  int64_t size, count, longest = 0;
  Windows(int64_t size, int64_t count) : size(size), count(count) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t begin = i * size / count, end = ((i + 1) * size + count - 1) / count;
      longest = std::max(longest, end - begin);
    }
  }
  PrimExpr Begin(const PrimExpr& i) const {
    return floordiv(i * MakeConst(i.dtype(), size), MakeConst(i.dtype(), count));
  }
  PrimExpr End(const PrimExpr& i) const {
    PrimExpr after = (i + MakeConst(i.dtype(), 1)) * MakeConst(i.dtype(), size);
    return ceildiv(after, MakeConst(i.dtype(), count));
  }
};

/// The largest element of each window, and its place in the row-major order of the window's tensor.
Any AdaptiveMaxPool(Conversion& c) {
  Expr x = c.Tensor(0);
  Dims dims = ShapeOf(x);
  std::vector<int64_t> outputs = c.Ints(1);
  size_t rank = dims.size(), lead = rank - outputs.size();
  std::vector<Windows> windows;
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto size = AsConstInt(dims[lead + i]);
    if (!size) TVM_REFUSE(c, NotImplementedError) << "expected constant sizes, got symbolic ones";
    windows.emplace_back(*size, outputs[i]);
  }
  DataType t = TypeOf(x), index_type = DataType::Int(64);
  return c.Compute("adaptive_max_pool", {x}, [&](const Array<te::Tensor>& in) {
    te::Tensor data = in[0];
    Array<PrimExpr> result = data->shape;
    for (size_t i = 0; i < windows.size(); ++i) {
      result.Set(lead + i, MakeConst(result[lead + i].dtype(), windows[i].count));
    }
    auto element = [&](const Array<tir::Var>& at) {
      WindowElement e;
      e.place = MakeZero(index_type);
      Array<PrimExpr> position(at.begin(), at.end());
      for (size_t i = 0; i < windows.size(); ++i) {
        const Windows& w = windows[i];
        PrimExpr out = at[lead + i];
        tir::IterVar k = te::reduce_axis(
            Range::FromMinExtent(MakeZero(out.dtype()), MakeConst(out.dtype(), w.longest)));
        PrimExpr p = w.Begin(out) + k->var;
        e.is_inside = e.is_inside && p < w.End(out);
        position.Set(lead + i, min(p, MakeConst(p.dtype(), w.size - 1)));
        e.place = e.place * MakeConst(index_type, w.size) + cast(index_type, p);
        e.over.push_back(k);
      }
      e.value = data(position);
      return e;
    };
    return LargestOfWindow(result, t, element);
  });
}

TVM_REGISTER() {
  Converter("adaptive_max_pool2d.default adaptive_max_pool3d.default", "self, output_size",
            &AdaptiveMaxPool);
}

}  // namespace
}  // namespace tvm::frontend::torch
