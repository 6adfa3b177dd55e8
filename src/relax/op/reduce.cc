// SPDX-License-Identifier: Apache-2.0
// Reductions, scans, searching and sorting.
#include <algorithm>

#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

/// Without the axes, or with 1 in their place; no axes: all of them.
Shape Reduced(Infer& in, const TensorStructInfoObj* x, const Optional<Ints>& axes, bool keepdims) {
  if (!axes.has_value() && !keepdims) return Dims{};
  if (x->ndim < 0) {
    if (axes.has_value() && (*axes).empty()) return Shape(x);
    return {};
  }
  std::vector<bool> reduced(x->ndim, !axes.has_value());
  if (axes.has_value()) {
    for (int64_t axis : in.Axes(*axes, x->ndim)) reduced[axis] = true;
  }
  int64_t kept = std::count(reduced.begin(), reduced.end(), false);
  if (keepdims && kept == 0) return Dims(x->ndim, Dim(1));
  if (!DimsOf(x)) return Shape::Rank(keepdims ? x->ndim : kept);
  Dims dims;
  for (int64_t i = 0; i < x->ndim; ++i) {
    if (!reduced[i]) {
      dims.push_back((*DimsOf(x))[i]);
    } else if (keepdims) {
      dims.push_back(Dim(1));
    }
  }
  return dims;
}
Optional<Ints> OneAxis(const Optional<int64_t>& axis) {
  if (!axis.has_value()) return std::nullopt;
  return Ints{IntImm::Int64(*axis)};
}
StructInfo InferReduce(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<StatisticalAttrsObj>();
  return in.Result(Reduced(in, x, attrs->axis, attrs->keepdims), x->dtype);
}
StructInfo InferMoment(Infer& in) {
  in.ExpectNoBool(in.Tensor(0), "x");
  return InferReduce(in);
}
StructInfo InferMedian(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<StatisticalAttrsObj>();
  Shape shape = Reduced(in, x, attrs->axis, attrs->keepdims);
  StructInfo values = in.Result(shape, x->dtype);
  if (!attrs->axis.has_value() || (*attrs->axis).size() != 1) return values;
  return TupleStructInfo({values, in.Result(shape, DataType::Int(64))});
}
StructInfo InferArgReduce(Infer& in) {
  auto* attrs = in.attrs<ArgmaxArgminAttrsObj>();
  return in.Result(Reduced(in, in.Tensor(0), OneAxis(attrs->axis), attrs->keepdims),
                   DataType::Int(64));
}
StructInfo InferScan(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<ScanopAttrsObj>();
  DataType dtype = attrs->dtype.is_void() ? x->dtype : attrs->dtype;
  if (!attrs->axis.has_value()) {
    return in.Result(DimsOf(x) ? Shape(Dims{in.Product(*DimsOf(x))}) : Shape::Rank(1), dtype);
  }
  if (x->ndim >= 0) in.Axis(*attrs->axis, x->ndim);
  return in.WithType(0, dtype);
}

StructInfo InferSort(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  if (x->ndim >= 0) in.Axis(in.attrs<SortAttrsObj>()->axis, x->ndim);
  return in.Of(0);
}
StructInfo InferArgsort(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<ArgsortAttrsObj>();
  if (x->ndim >= 0) in.Axis(attrs->axis, x->ndim);
  return in.WithType(0, attrs->dtype);
}
StructInfo InferTopK(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<TopKAttrsObj>();
  in.ExpectOneOf(attrs->ret_type, {"both", "values", "indices"}, "ret_type");
  Shape shape = Shape::Rank(x->ndim);
  if (x->ndim >= 0) {
    int64_t axis = in.Axis(attrs->axis, x->ndim);
    if (DimsOf(x)) {
      Dims dims = *DimsOf(x);
      if (attrs->k > 0) {
        if (auto n = AsConstInt(dims[axis]); n && attrs->k > *n) {
          TVM_RAISE(in) << "expected k of at most the dimension " << *n << ", got " << attrs->k;
        }
        dims.Set(axis, Dim(attrs->k));
      }
      shape = dims;
    }
  }
  StructInfo values = in.Result(shape, x->dtype), indices = in.Result(shape, attrs->dtype);
  if (attrs->ret_type == "values") return values;
  if (attrs->ret_type == "indices") return indices;
  return TupleStructInfo({values, indices});
}
StructInfo InferBucketize(Infer& in) {
  in.ExpectRank(in.Tensor(1), 1, "boundaries");
  return in.WithType(0, DataType::Int(in.attrs<BucketizeAttrsObj>()->out_int32 ? 32 : 64));
}
StructInfo InferUnique(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  std::vector<bool> flags;
  for (size_t i = 1; i < 5; ++i) {
    auto flag = in.ConstPrim(i);
    if (!flag) TVM_RAISE(in) << "expected a constant for '" << in.info->Param(i) << "'";
    flags.push_back(*flag != 0);
  }
  bool has_axis = in.size() > 5;
  if (has_axis && x->ndim >= 0) {
    auto axis = in.ConstPrim(5);
    if (!axis) TVM_RAISE(in) << "expected a constant axis";
    in.Axis(*axis, x->ndim);
  }
  Array<StructInfo> fields{in.Result(Shape::Rank(has_axis ? x->ndim : 1), x->dtype)};
  for (size_t i = 1; i < 4; ++i) {
    if (flags[i]) fields.push_back(in.Result(Shape::Rank(1), DataType::Int(64)));
  }
  if (fields.size() == 1) return fields[0];
  return TupleStructInfo(fields);
}
StructInfo InferNonzero(Infer& in) { return in.Result(Shape::Rank(2), DataType::Int(64)); }

StructInfo InferMultinomial(Infer& in) {
  const TensorStructInfoObj *prob = in.Tensor(0), *sample = in.Tensor(1), *indices = in.Tensor(2);
  in.ExpectFloat(prob, "prob");
  in.ExpectFloat(sample, "uniform_sample");
  in.ExpectInteger(indices, "sample_indices");
  in.ExpectRank(prob, 2, "prob");
  in.ExpectRank(sample, 2, "uniform_sample");
  in.ExpectRank(indices, 2, "sample_indices");
  DataType dtype = in.attrs<MultinomialFromUniformAttrsObj>()->dtype;
  if (!DimsOf(sample) || !DimsOf(indices)) return in.Result(Shape::Rank(2), dtype);
  for (const TensorStructInfoObj* x : {sample, indices})
    in.ExpectSame((*DimsOf(x))[1], Dim(1), "the number of samples of a row and 1");
  in.ExpectSame((*DimsOf(sample))[0], (*DimsOf(indices))[0],
                "the lengths of uniform_sample and sample_indices");
  return in.Result(*DimsOf(indices), dtype);
}

TVM_REGISTER() {
  struct Row {
    const char *name, *doc;
    StructInfo (*infer)(Infer&) = &InferReduce;
  };
  for (Row row : {Row{"relax.max", "The largest element; of bools whether one is true."},
                  Row{"relax.mean", "The mean.", &InferMoment},
                  Row{"relax.min", "The smallest element; of bools whether all are true."},
                  Row{"relax.prod", "The product; of bools whether all are true."},
                  Row{"relax.std", "The standard deviation, divided by the count.", &InferMoment},
                  Row{"relax.sum", "The sum; of bools whether one is true."},
                  Row{"relax.variance", "The variance, divided by the count.", &InferMoment}}) {
    Operator(row.name, "x: Tensor, axis=None, keepdims=False", row.infer, row.doc)
        .Attrs<StatisticalAttrsObj>()
        .Pattern(kCommReduce)
        .Precision(kNever);
  }
  Operator("relax.median", "x: Tensor, axis=None, keepdims=False", &InferMedian,
           "The median; along one axis also its index.")
      .Attrs<StatisticalAttrsObj>()
      .Pattern(kOpaque)
      .Precision(kNever);
  for (Row row :
       {Row{"relax.argmax", "The index of the largest element, the first of equal ones."},
        Row{"relax.argmin", "The index of the smallest element, the first of equal ones."}}) {
    Operator(row.name, "x: Tensor, axis=None, keepdims=False", &InferArgReduce, row.doc)
        .Attrs<ArgmaxArgminAttrsObj>()
        .Pattern(kCommReduce)
        .Precision(kNever);
  }
  for (Row row :
       {Row{"relax.cumsum", "The running sum."}, Row{"relax.cumprod", "The running product."}}) {
    Operator(row.name, "data: Tensor, axis=None, dtype=None, exclusive=False", &InferScan, row.doc)
        .Attrs<ScanopAttrsObj>()
        .Pattern(kOpaque)
        .Precision(kNever);
  }
  auto opaque = [](const char* name, const char* schema, InferFn infer, const char* doc) {
    return Operator(name, schema, infer, doc).Pattern(kOpaque).Precision(kNever);
  };
  opaque("relax.sort", "x: Tensor, axis=-1, descending=False", &InferSort, "The elements in order.")
      .Attrs<SortAttrsObj>();
  opaque("relax.argsort", "data: Tensor, axis=-1, descending=False, dtype='int32'", &InferArgsort,
         "The indices that would sort the elements.")
      .Attrs<ArgsortAttrsObj>();
  opaque("relax.topk", "data: Tensor, k=1, axis=-1, ret_type='both', largest=True, dtype='int32'",
         &InferTopK, "The k largest (smallest) elements and their indices; all for k = 0.")
      .Attrs<TopKAttrsObj>();
  opaque("relax.bucketize",
         "input_tensor: Tensor, boundaries: Tensor, out_int32=False, right=False", &InferBucketize,
         "The index of the bucket each element falls into.")
      .Attrs<BucketizeAttrsObj>();
  opaque("relax.unique",
         "x: Tensor, sorted: Prim = True, return_index: Prim = False, "
         "return_inverse: Prim = False, return_counts: Prim = False, axis: Prim = None",
         &InferUnique, "The different elements, and where they are.")
      .Set("FDataDependent", true)
      .Set("FCallPacked", String("relax.run.unique"));
  opaque("relax.nonzero", "x: Tensor", &InferNonzero, "The indices of the elements that are not 0.")
      .Set("FDataDependent", true)
      .Set("FCallPacked", String("relax.run.nonzero"));
  opaque("relax.multinomial_from_uniform",
         "prob: Tensor, uniform_sample: Tensor, sample_indices: Tensor, dtype='int64'",
         &InferMultinomial, "Draws from the distributions in the rows of prob.")
      .Attrs<MultinomialFromUniformAttrsObj>();
}

}  // namespace
}  // namespace tvm::relax
