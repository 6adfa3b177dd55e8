// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors or speak of shapes.
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
Outputs ConvertConstant(Node& n) {
  auto numbers = [&](auto values, DataType dtype, bool is_scalar) -> Outputs {
    std::vector<int64_t> shape;
    if (!is_scalar) shape = {static_cast<int64_t>(values.size())};
    runtime::Tensor tensor = runtime::Empty({shape.data(), shape.size()}, dtype, {kDLCPU, 0});
    std::copy(values.begin(), values.end(),
              static_cast<typename decltype(values)::value_type*>(tensor.data_ptr()));
    return n.importer.Constant(tensor);
  };
  if (const Attribute* a = n.Find("value", Attribute::kTensor)) {
    if (a->tensor->data_type == kString) return n.importer.StringConstant(*a->tensor);
    return n.importer.Constant(MakeTensor(n.importer.model(), *a->tensor));
  }
  if (const Attribute* a = n.Find("sparse_value", Attribute::kSparse))
    return n.importer.Constant(n.importer.DenseOf(*a->sparse));
  if (const Attribute* a = n.Find("value_int", Attribute::kInt))
    return numbers(std::vector<int64_t>{a->i}, DataType::Int(64), true);
  if (const Attribute* a = n.Find("value_ints", Attribute::kInts))
    return numbers(a->ints, DataType::Int(64), false);
  if (const Attribute* a = n.Find("value_float", Attribute::kFloat))
    return numbers(std::vector<float>{a->f}, DataType::Float(32), true);
  if (const Attribute* a = n.Find("value_floats", Attribute::kFloats))
    return numbers(a->floats, DataType::Float(32), false);
  if (n.HasAttr("value_string")) return n.importer.StringConstant({}, {n.Str("value_string")});
  std::vector<std::string> strings = n.Strs("value_strings");
  if (!n.HasAttr("value_strings")) n.Fail("an attribute with its value", "none");
  return n.importer.StringConstant({static_cast<int64_t>(strings.size())}, strings);
}
Outputs ConvertConstantOfShape(Node& n) {
  Expr fill = n.Scalar(0, DataType::Float(32));
  if (const Attribute* value = n.Find("value", Attribute::kTensor)) {
    fill = n.importer.Constant(MakeTensor(n.importer.model(), *value->tensor)).expr;
    fill = relax::Constant(runtime::CreateView(fill.as<relax::ConstantObj>()->data,
                                               runtime::ShapeView(nullptr, 0), Node::TypeOf(fill)));
  }
  return n("full", relax::ShapeExpr(DimsOf(n.Integers(0, n.DeclaredRank(0)))), fill);
}
Outputs ConvertShape(Node& n) {
  Dims shape = Node::Shape(n.In(0));
  int64_t rank = static_cast<int64_t>(shape.size());
  auto place = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  int64_t start = place(n.Int("start", 0)), end = place(n.Int("end", rank));
  Known known{{std::max<int64_t>(0, end - start)}, DataType::Int(64), {}};
  for (int64_t i = start; i < end; ++i) known.elements.push_back(shape[i]);
  return Value(std::move(known));
}
Outputs ConvertSize(Node& n) {
  PrimExpr size = n.Simplify(ProductOf(Node::Shape(n.In(0))));
  return Value(Known{{}, DataType::Int(64), {size}});
}
Outputs ConvertRange(Node& n) {
  n.Ignore("stash_type");
  DataType t = Node::TypeOf(n.In(0));
  auto scalar = [&](size_t i, Te& te) {
    auto known = n.ScalarOf(i);
    return known ? tvm::cast(t, te(*known)) : te(n.Reshape(n.In(i), {}))(Array<PrimExpr>());
  };
  auto count_of = [&](Te& te) -> PrimExpr {
    PrimExpr start = scalar(0, te), limit = scalar(1, te), delta = scalar(2, te);
    DataType wide = t.is_float() ? DataType::Float(64) : DataType::Int(64);
    PrimExpr span = tvm::cast(wide, limit) - tvm::cast(wide, start), step = tvm::cast(wide, delta);
    PrimExpr count = t.is_float() ? tvm::cast(DataType::Int(64), ceil(div(span, step)))
                                  : Num(0) - floordiv(Num(0) - span, step);
    return max(count, Num(0));
  };
  PrimExpr count;
  bool all_known = n.ScalarOf(0) && n.ScalarOf(1) && n.ScalarOf(2);
  if (all_known && !t.is_float()) {
    PrimExpr start = *n.ScalarOf(0), span = *n.ScalarOf(1) - start, step = *n.ScalarOf(2);
    count = n.Simplify(max(Num(0) - floordiv(Num(0) - span, step), Num(0)));
  } else {
    Te te(n);
    Expr size =
        te.Done("range_size",
                topi::Compute({Num(1)}, [&](const Index&) { return count_of(te); }, "range_size"));
    count = n.RuntimeIntegers(size).at(0);
  }
  Te te(n);
  PrimExpr start = scalar(0, te), delta = scalar(2, te);
  return ComputeElements(n, "range", te, {te(count)},
                         [&](const Index& i) { return start + tvm::cast(t, i[0]) * delta; });
}
Outputs ConvertEyeLike(Node& n) {
  Expr x = n.In(0);
  Dims shape = Node::Shape(x);
  if (shape.size() != 2) n.Fail("a matrix", "rank " + std::to_string(shape.size()));
  DataType t = n.Type("dtype", Node::TypeOf(x));
  int64_t k = n.Int("k", 0);
  return n("eye", relax::PrimValue(shape[0]), relax::PrimValue(shape[1]), k, t);
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"Constant", &ConvertConstant},
      {"ConstantOfShape", &ConvertConstantOfShape},
      {"EyeLike", &ConvertEyeLike},
      {"Range", &ConvertRange},
      {"Shape", &ConvertShape},
      {"Size", &ConvertSize},
  });
}

}  // namespace tvm::frontend::onnx
