// SPDX-License-Identifier: Apache-2.0
// Products of matrices, of batches of them, along any axes.
#include "tvm/topi/product.h"

#include "topi/reduce.h"
#include "tvm/topi/elementwise.h"
#include "tvm/topi/transform.h"

namespace tvm::topi {
using namespace tir;
namespace {
void CheckCommon(const char* op, const Tensor& a, const PrimExpr& in_a, const Tensor& b,
                 const PrimExpr& in_b) {
  if (DifferentDim(in_a, in_b))
    Complain(op, "factors with a common length", Text(a->shape) + " and " + Text(b->shape));
}
Shape Leading(const Shape& shape, size_t without) {
  return Shape(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(without));
}
}  // namespace

Tensor broadcast_matmul(const Tensor& a, const Tensor& b, Optional<DataType> out_dtype,
                        bool transp_b) {
  constexpr const char* kOp = "matmul";
  bool a_vector = a->shape.size() == 1, b_vector = b->shape.size() == 1;
  if (a->shape.empty() || b->shape.empty()) Complain(kOp, "at least 1 dimension", "a scalar");
  const PrimExpr& k_of_a = a->shape[a->shape.size() - 1];
  size_t rows = b->shape.size() - (transp_b ? 1 : 2),
         columns = b->shape.size() - (transp_b ? 2 : 1);
  const PrimExpr& k_of_b = b->shape[b_vector ? 0 : rows];
  CheckCommon(kOp, a, k_of_a, b, k_of_b);
  Shape a_batch = Leading(a->shape, a_vector ? 1 : 2),
        b_batch = Leading(b->shape, b_vector ? 1 : 2);
  Shape batch = BroadcastShape(kOp, {a_batch, b_batch}), shape = batch;
  if (!a_vector) shape.push_back(a->shape[a->shape.size() - 2]);
  if (!b_vector) shape.push_back(b->shape[columns]);
  IterVar k = Along(k_of_a, "k");
  auto element = [&](const Index& i) {
    Index common(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch.size()));
    Index of_a = BroadcastIndex(a_batch, batch, common),
          of_b = BroadcastIndex(b_batch, batch, common);
    if (!a_vector) of_a.push_back(i[batch.size()]);
    of_a.push_back(k->var);
    of_b.push_back(k->var);
    if (!b_vector) of_b.insert(transp_b ? of_b.end() - 1 : of_b.end(), i.back());
    return te::sum(AsType(out_dtype, At(a, of_a)) * AsType(out_dtype, At(b, of_b)), {k});
  };
  return Compute(shape, element, transp_b ? "NT_matmul" : "matmul", "matmul");
}
Tensor matmul(const Tensor& a, const Tensor& b, bool transp_a, bool transp_b) {
  CheckRank("matmul", "a matrix", a, 2);
  CheckRank("matmul", "a matrix", b, 2);
  const PrimExpr& common = a->shape[transp_a ? 0 : 1];
  CheckCommon("matmul", a, common, b, b->shape[transp_b ? 1 : 0]);
  IterVar k = Along(common, "k");
  auto element = [&](const Index& i) {
    PrimExpr x = transp_a ? a(k->var, i[0]) : a(i[0], k->var);
    PrimExpr y = transp_b ? b(i[1], k->var) : b(k->var, i[1]);
    return te::sum(x * y, {k});
  };
  return Compute({a->shape[transp_a ? 1 : 0], b->shape[transp_b ? 0 : 1]}, element, "T_matmul",
                 "matmul");
}
Tensor tensordot(const Tensor& a, const Tensor& b, const Any& axes) {
  constexpr const char* kOp = "tensordot";
  std::vector<size_t> of_a, of_b;
  if (auto pair = axes.as<Array<Any>>()) {
    if (pair->size() != 2) Complain(kOp, "a pair of lists of axes", std::to_string(pair->size()));
    of_a = Axes(kOp, (*pair)[0], a->shape.size());
    of_b = Axes(kOp, (*pair)[1], b->shape.size());
  } else {
    auto count = static_cast<size_t>(IntList(kOp, axes)[0]);
    if (count > a->shape.size() || count > b->shape.size())
      Complain(kOp, "at most as many axes as the tensors have", std::to_string(count));
    for (size_t i = 0; i < count; ++i) {
      of_a.push_back(a->shape.size() - count + i);
      of_b.push_back(i);
    }
  }
  if (of_a.size() != of_b.size())
    Complain(kOp, "as many axes of both", std::to_string(of_b.size()));
  std::vector<IterVar> a_iters(a->shape.size()), b_iters(b->shape.size());
  Array<IterVar> iters;
  for (size_t i = 0; i < of_a.size(); ++i) {
    CheckCommon(kOp, a, a->shape[of_a[i]], b, b->shape[of_b[i]]);
    IterVar k = Along(a->shape[of_a[i]], "k" + std::to_string(i));
    a_iters[of_a[i]] = b_iters[of_b[i]] = k;
    iters.push_back(k);
  }
  Shape shape;
  for (const auto& [tensor, along] : {std::pair(a, &a_iters), std::pair(b, &b_iters)}) {
    for (size_t d = 0; d < along->size(); ++d) {
      if (!(*along)[d].defined()) shape.push_back(tensor->shape[d]);
    }
  }
  auto element = [&](const Index& i) {
    size_t next = 0;
    auto place = [&](const std::vector<IterVar>& along) {
      Index index;
      for (const IterVar& iter : along) index.push_back(iter.defined() ? iter->var : i[next++]);
      return index;
    };
    Index in_a = place(a_iters), in_b = place(b_iters);
    PrimExpr product = At(a, in_a) * At(b, in_b);
    return iters.empty() ? product : te::sum(product, iters);
  };
  return Compute(shape, element, "T_tensordot", "matmul");
}

namespace nn {
namespace {
const char* NameOf(bool transpose_a, bool transpose_b) {
  return transpose_a ? (transpose_b ? "TT" : "TN") : (transpose_b ? "NT" : "NN");
}
Tensor WithBias(const Tensor& product, const Optional<Tensor>& bias) {
  if (!bias) return product;
  CheckRank("dense", "a bias", *bias, 1);
  bool same = bias.value()->dtype == product->dtype;
  return add(product, same ? *bias : cast(*bias, product->dtype)).get<Tensor>();
}
Tensor MatmulNamed(const std::string& name, const char* tag, const Tensor& a, const Tensor& b,
                   const Optional<Tensor>& bias, Optional<DataType> out_dtype, bool transpose_a,
                   bool transpose_b) {
  if (a->shape.empty()) Complain("matmul", "at least 1 dimension", "a scalar");
  if (transpose_a) CheckRank("matmul", "a matrix to transpose", a, 2);
  CheckRank("matmul", "a matrix", b, 2);
  size_t rank = a->shape.size();
  const PrimExpr& common = a->shape[transpose_a ? 0 : rank - 1];
  CheckCommon("matmul", a, common, b, b->shape[transpose_b ? 1 : 0]);
  Shape shape = transpose_a ? Shape{a->shape[1]} : Leading(a->shape, 1);
  shape.push_back(b->shape[transpose_b ? 0 : 1]);
  IterVar k = Along(common, "k");
  auto element = [&](const Index& i) {
    Index of_a(i.begin(), i.end() - 1);
    of_a.insert(transpose_a ? of_a.begin() : of_a.end(), k->var);
    PrimExpr y = transpose_b ? b(i.back(), k->var) : b(k->var, i.back());
    return te::sum(AsType(out_dtype, At(a, of_a)) * AsType(out_dtype, y), {k});
  };
  Attrs attrs = {{"layout_free_placeholders", Array<Tensor>{b}}};
  return WithBias(Compute(shape, element, name, tag, attrs), bias);
}
}  // namespace
Tensor matmul(const Tensor& tensor_a, const Tensor& tensor_b, const Optional<Tensor>& bias,
              Optional<DataType> out_dtype, bool transpose_a, bool transpose_b) {
  return MatmulNamed(std::string("T_matmul_") + NameOf(transpose_a, transpose_b), "matmul",
                     tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b);
}
Tensor dense(const Tensor& data, const Tensor& weight, const Optional<Tensor>& bias,
             Optional<DataType> out_dtype) {
  return MatmulNamed("T_matmul_NT", "dense", data, weight, bias, out_dtype, false, true);
}
namespace {
/// dense of a weight whose rows lie in blocks, (units / b, depth, b).
Tensor DensePack(const Tensor& data, const Tensor& weight, const Optional<Tensor>& bias,
                 Optional<DataType> out_dtype) {
  constexpr const char* kOp = "dense_pack";
  CheckRank(kOp, "a matrix", data, 2);
  CheckRank(kOp, "a matrix in blocks", weight, 3);
  CheckCommon(kOp, data, data->shape[1], weight, weight->shape[1]);
  const PrimExpr& block = weight->shape[2];
  IterVar k = Along(data->shape[1], "k");
  auto element = [&](const Index& i) {
    PrimExpr y = weight(floordiv(i[1], block), k->var, floormod(i[1], block));
    return te::sum(AsType(out_dtype, data(i[0], k->var)) * AsType(out_dtype, y), {k});
  };
  Shape shape{data->shape[0], Simplified(weight->shape[0] * block)};
  return WithBias(Compute(shape, element, "T_dense_pack", "dense_pack"), bias);
}
/// A number per channel, added along an axis.
Tensor BiasAdd(const Tensor& data, const Tensor& bias, int64_t axis) {
  CheckRank("bias_add", "a bias", bias, 1);
  size_t behind = data->shape.size() - 1 - Axis("bias_add", axis, data->shape.size());
  return add(data, expand_dims(bias, 1, static_cast<int64_t>(behind))).get<Tensor>();
}
}  // namespace
Tensor batch_matmul(const Tensor& tensor_a, const Tensor& tensor_b, Optional<DataType> out_dtype,
                    bool transpose_a, bool transpose_b) {
  constexpr const char* kOp = "batch_matmul";
  CheckRank(kOp, "a batch of matrices", tensor_a, 3);
  CheckRank(kOp, "a batch of matrices", tensor_b, 3);
  const Shape &a = tensor_a->shape, &b = tensor_b->shape;
  CheckCommon(kOp, tensor_a, a[transpose_a ? 1 : 2], tensor_b, b[transpose_b ? 2 : 1]);
  Shape batch = BroadcastShape(kOp, {{a[0]}, {b[0]}});
  IterVar k = Along(a[transpose_a ? 1 : 2], "k");
  auto element = [&](const Index& i) {
    Index first = {i[0]};
    PrimExpr of_a = BroadcastIndex({a[0]}, batch, first)[0];
    PrimExpr of_b = BroadcastIndex({b[0]}, batch, first)[0];
    PrimExpr x = transpose_a ? tensor_a(of_a, k->var, i[1]) : tensor_a(of_a, i[1], k->var);
    PrimExpr y = transpose_b ? tensor_b(of_b, i[2], k->var) : tensor_b(of_b, k->var, i[2]);
    return te::sum(AsType(out_dtype, x) * AsType(out_dtype, y), {k});
  };
  Attrs attrs = {{"layout_free_placeholders", Array<Tensor>{tensor_b}}};
  return Compute({batch[0], a[transpose_a ? 2 : 1], b[transpose_b ? 1 : 2]}, element,
                 std::string("T_batch_matmul_") + NameOf(transpose_a, transpose_b), "batch_matmul",
                 attrs);
}
}  // namespace nn

namespace {
Tensor Outer(const Tensor& a, const Tensor& b) {
  CheckRank("outer", "a vector", a, 1);
  CheckRank("outer", "a vector", b, 1);
  return Compute(
      {a->shape[0], b->shape[0]}, [&](const Index& i) { return a(i[0]) * b(i[1]); }, "outer",
      kBroadcast);
}
TVM_REGISTER() {
  Def("topi.matmul", &matmul, "The product of matrices, either of them transposed.", Arg("a"),
      Arg("b"), Arg("transp_a", false), Arg("transp_b", false));
  Def(
      "topi.broadcast_matmul",
      [](Tensor a, Tensor b, Optional<DataType> out_dtype) {
        return broadcast_matmul(a, b, out_dtype);
      },
      "The product as NumPy's matmul.", Arg("a"), Arg("b"), Arg("out_dtype", nullptr));
  Def("topi.tensordot", &tensordot, "The product summed along axes of both tensors.", Arg("a"),
      Arg("b"), Arg("axes"));
  Def("topi.outer", &Outer, "All products of the elements of two vectors.", Arg("a"), Arg("b"));
  // The last parameters belong to tuners of other systems, which change layouts; they are ignored.
  Def(
      "topi.nn.matmul",
      [](Tensor a, Tensor b, Optional<Tensor> bias, Optional<DataType> out_dtype, bool transpose_a,
         bool transpose_b, Any,
         Any) { return nn::matmul(a, b, bias, out_dtype, transpose_a, transpose_b); },
      "The product of matrices, and a bias.", Arg("tensor_a"), Arg("tensor_b"),
      Arg("bias", nullptr), Arg("out_dtype", nullptr), Arg("transpose_a", false),
      Arg("transpose_b", false), Arg("auto_scheduler_rewritten_layout", ""),
      Arg("meta_schedule_original_shape", nullptr));
  Def(
      "topi.nn.dense",
      [](Tensor data, Tensor weight, Optional<Tensor> bias, Optional<DataType> out_dtype, Any,
         Any) { return nn::dense(data, weight, bias, out_dtype); },
      "data times the transposed weight, and a bias.", Arg("data"), Arg("weight"),
      Arg("bias", nullptr), Arg("out_dtype", nullptr), Arg("auto_scheduler_rewritten_layout", ""),
      Arg("meta_schedule_original_shape", nullptr));
  Def("topi.nn.dense_pack", &nn::DensePack,
      "data times the transposed weight, whose rows lie in blocks, and a bias.", Arg("data"),
      Arg("weight"), Arg("bias", nullptr), Arg("out_dtype", nullptr));
  Def("topi.nn.bias_add", &nn::BiasAdd, "A number per channel, added along an axis.", Arg("data"),
      Arg("bias"), Arg("axis", 1));
  Def(
      "topi.nn.batch_matmul",
      [](Tensor a, Tensor b, Any, Optional<DataType> out_dtype, bool transpose_a, bool transpose_b,
         Any, Any) { return nn::batch_matmul(a, b, out_dtype, transpose_a, transpose_b); },
      "Products of the matrices of two batches.", Arg("tensor_a"), Arg("tensor_b"),
      Arg("oshape", nullptr), Arg("out_dtype", nullptr), Arg("transpose_a", false),
      Arg("transpose_b", true), Arg("auto_scheduler_rewritten_layout", ""),
      Arg("meta_schedule_original_shape", nullptr));
}
}  // namespace
}  // namespace tvm::topi
