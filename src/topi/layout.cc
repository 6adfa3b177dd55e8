// SPDX-License-Identifier: Apache-2.0
// Tensors in other layouts: by letters, and by index maps.
#include "topi/shape.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/data_layout.h"
#include "tvm/topi/transform.h"

namespace tvm::topi {
using namespace tir;

Tensor layout_transform(const Tensor& array, String src_layout, String dst_layout,
                        String schedule_rule) {
  if (src_layout == dst_layout) return array;
  BijectiveLayout map(Layout(src_layout, DataType::Int(64)), Layout(dst_layout, DataType::Int(64)));
  if (map->src_layout.ndim() != array->shape.size()) {
    Complain("layout_transform", "a tensor in layout " + std::string(src_layout),
             Text(array->shape));
  }
  Shape shape = map.ForwardShape(array->shape);
  Shape back = map.BackwardShape(shape);
  auto element = [&](const Index& i) {
    Array<PrimExpr> source = map.BackwardIndex(Array<PrimExpr>(i.begin(), i.end()));
    PrimExpr inside = const_true();
    for (size_t d = 0; d < source.size(); ++d) {  // blocks that an axis does not fill are zeros
      if (!SameDim(back[d], array->shape[d])) inside = inside && source[d] < array->shape[d];
    }
    PrimExpr value = array(source);
    return IsTrue(inside) ? value : if_then_else(inside, value, MakeZero(array->dtype));
  };
  Attrs attrs = {{"schedule_rule", schedule_rule},
                 {"src_layout", src_layout},
                 {"dst_layout", dst_layout},
                 {"input_shape", array->shape}};
  return Compute(shape, element, "T_layout_trans", kInjective, attrs);
}

Tensor index_map_transform(const Tensor& array, const IndexMap& index_map,
                           const Optional<PrimExpr>& pad_value) {
  if (index_map->initial_indices.size() != array->shape.size()) {
    Complain("layout_transform", "a map of " + std::to_string(array->shape.size()) + " indices",
             std::to_string(index_map->initial_indices.size()));
  }
  arith::Analyzer analyzer;
  Array<Range> ranges = array->shape.Map([](const PrimExpr& extent) {
    return Range::FromMinExtent(MakeZero(extent.dtype()), extent);
  });
  Shape shape = index_map.MapShape(array->shape, &analyzer);
  auto [inverse, in_gap] = index_map.NonSurjectiveInverse(ranges, &analyzer);
  PrimExpr padding = pad_value ? tvm::cast(array->dtype, *pad_value) : MakeZero(array->dtype);
  auto element = [&, inverse = inverse, in_gap = in_gap](const Index& i) {
    Array<PrimExpr> place(i.begin(), i.end());
    PrimExpr value = array(inverse.MapIndices(place, &analyzer));
    if (IsFalse(analyzer.Simplify(in_gap))) return value;
    Map<Var, PrimExpr> here;
    for (size_t d = 0; d < i.size(); ++d) here.Set(inverse->initial_indices[d], i[d]);
    return if_then_else(Substitute(in_gap, here), padding, value);
  };
  return Compute(shape, element, "te_layout_transform");
}

namespace {
TVM_REGISTER() {
  Def("topi.layout_transform", &layout_transform, "The tensor in another layout of its axes.",
      Arg("array"), Arg("src_layout"), Arg("dst_layout"), Arg("schedule_rule", "None"));
  Def("topi.index_map_transform", &index_map_transform,
      "The tensor in the layout that an index map gives; gaps hold pad_value.", Arg("array"),
      Arg("index_map"), Arg("pad_value", nullptr));
}
}  // namespace
}  // namespace tvm::topi
