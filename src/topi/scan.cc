// SPDX-License-Identifier: Apache-2.0
// Running sums and products along an axis, and places in sorted sequences.
#include "topi/loops.h"
#include "tvm/topi/reduction.h"
#include "tvm/topi/transform.h"

namespace tvm::topi {
using namespace tir;
namespace {
using CombineFn = std::function<PrimExpr(const PrimExpr&, const PrimExpr&)>;
Tensor Scan(const std::string& name, const Tensor& given, const CombineFn& combine,
            const PrimExpr& identity, const Any& axis, Optional<DataType> dtype,
            Optional<bool> exclusive) {
  Tensor data = axis == nullptr ? reshape(given, {PrimExpr(-1)}) : given;
  size_t at = 0;
  if (axis != nullptr) {
    auto axes = IntList(name.c_str(), axis);
    if (axes.size() != 1)
      TVM_FFI_THROW(ValueError) << name << ": expected one axis, got " << axes.size();
    at = Axis(name.c_str(), axes[0], data->shape.size());
  }
  DataType t = dtype && !dtype.value().is_void() ? dtype.value() : data->dtype;
  bool is_exclusive = exclusive.value_or(false);
  // Along an axis that is not the last one, whole runs of memory are combined with those before.
  auto in_runs = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    Shape outer(data->shape.begin(), data->shape.begin() + static_cast<std::ptrdiff_t>(at)),
        run(data->shape.begin() + static_cast<std::ptrdiff_t>(at) + 1, data->shape.end());
    return Loops(outer, [&](const Index& row) {
      return Loop("k", data->shape[at], [&](const Var& k) {
        auto place = [&](const PrimExpr& number, const Index& inside) {
          Index index = row;
          index.push_back(number);
          index.insert(index.end(), inside.begin(), inside.end());
          return index;
        };
        auto at_once = [&](bool is_first) {
          return Loops(run, [&](const Index& i) {
            PrimExpr before = k - MakeConst(k.dtype(), 1), start = tvm::cast(t, identity);
            PrimExpr sum = is_first ? start : Load(out[0], place(before, i));
            PrimExpr next =
                tvm::cast(t, Load(in[0], place(is_exclusive ? before : PrimExpr(k), i)));
            return Store(out[0], place(k, i),
                         is_exclusive && is_first ? start : combine(sum, next));
          });
        };
        return Stmt(IfThenElse(equal(k, MakeZero(k.dtype())), at_once(true), at_once(false)));
      });
    });
  };
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) -> Stmt {
    // (The runs before are results, which small floats would round.)
    if (at + 1 < data->shape.size() && SumType(t) == t) return in_runs(in, out);
    Scalar running("running", SumType(t));
    Stmt rows = Loops(Without(data->shape, at), [&](const Index& row) {
      Stmt loop = Loop("k", data->shape[at], [&](const Var& k) {
        Index place = Inserted(row, at, k);
        PrimExpr value = tvm::cast(SumType(t), tvm::cast(t, Load(in[0], place)));
        Stmt add = running.Set(combine(running.Get(), value));
        Stmt store = Store(out[0], place, tvm::cast(t, running.Get()));
        return is_exclusive ? Steps({store, add}) : Steps({add, store});
      });
      return Steps({running.Set(tvm::cast(SumType(t), identity)), loop});
    });
    return WithBuffer(running.buffer, rows);
  };
  return Extern(name, {data}, {{data->shape, t}}, body)[0];
}
Tensor CumSum(const Tensor& data, const Any& axis, Optional<DataType> dtype,
              Optional<bool> exclusive) {
  auto add = [](const PrimExpr& a, const PrimExpr& b) { return a + b; };
  return Scan("cumsum_generic", data, add, PrimExpr(0), axis, dtype, exclusive);
}
Tensor CumProd(const Tensor& data, const Any& axis, Optional<DataType> dtype,
               Optional<bool> exclusive) {
  auto multiply = [](const PrimExpr& a, const PrimExpr& b) { return a * b; };
  return Scan("cumprod_generic", data, multiply, PrimExpr(1), axis, dtype, exclusive);
}
Tensor ScanOp(const Tensor& data, const Function& binop, const PrimExpr& identity_value,
              String op_name, const Any& axis, Optional<DataType> dtype, Optional<bool> exclusive) {
  auto combine = [&](const PrimExpr& a, const PrimExpr& b) { return binop(a, b).cast<PrimExpr>(); };
  return Scan(op_name, data, combine, identity_value, axis, dtype, exclusive);
}

/// Where a value belongs in a sorted row: the number of elements before it (with `right`, before or
/// equal to it).
Stmt BinarySearch(const std::function<PrimExpr(const PrimExpr&)>& element, const PrimExpr& count,
                  const PrimExpr& value, bool right,
                  const std::function<Stmt(const PrimExpr&)>& emit) {
  DataType t = count.dtype();
  Scalar low("low", t), high("high", t);
  PrimExpr middle = low.Get() + shift_right(high.Get() - low.Get(), MakeConst(t, 1));
  Stmt step = Let("middle", middle, [&](const Var& m) {
    PrimExpr at = element(m), below = right ? at <= value : at < value;
    if (at.dtype().is_float()) {  // NaN is larger than any number
      PrimExpr value_is_nan = isnan(value), at_is_nan = isnan(at);
      below = below || (right ? value_is_nan : value_is_nan && !at_is_nan);
    }
    return IfThenElse(below, low.Set(m + MakeConst(t, 1)), high.Set(m));
  });
  Stmt search = Steps({low.Set(MakeZero(t)), high.Set(count),
                       tir::While(low.Get() < high.Get(), step), emit(low.Get())});
  return WithBuffer(low.buffer, WithBuffer(high.buffer, search));
}
Tensor SearchSorted(const Tensor& sorted_sequence, const Tensor& values, bool right,
                    DataType out_dtype) {
  constexpr const char* kOp = "searchsorted";
  size_t rank = sorted_sequence->shape.size();
  if (rank == 0) Complain(kOp, "a sequence with at least one dimension", "a scalar");
  if (rank > 1) {
    CheckRank(kOp, "values", values, rank);
    for (size_t d = 0; d + 1 < rank; ++d) {
      if (DifferentDim(values->shape[d], sorted_sequence->shape[d]))
        Complain(kOp, "values for every sequence of " + Text(sorted_sequence->shape),
                 Text(values->shape));
    }
  }
  const PrimExpr& count = sorted_sequence->shape[rank - 1];
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    return Loops(values->shape, [&](const Index& i) {
      auto element = [&](const PrimExpr& at) {
        Index place;
        if (rank > 1) place.assign(i.begin(), i.end() - 1);
        place.push_back(at);
        return Load(in[0], place);
      };
      PrimExpr value = tvm::cast(sorted_sequence->dtype, Load(in[1], i));
      return Let("value", value, [&](const Var& v) {
        return BinarySearch(element, count, v, right,
                            [&](const PrimExpr& found) { return Store(out[0], i, found); });
      });
    });
  };
  return Extern(kOp, {sorted_sequence, values}, {{values->shape, out_dtype}}, body)[0];
}
/// For each sample the first category whose cumulative probability reaches it, in the row of
/// `prob` that `output_indices` names.
Tensor MultinomialFromUniform(const Tensor& prob, const Tensor& uniform_sample,
                              const Tensor& sample_indices, DataType dtype) {
  constexpr const char* kOp = "multinomial_from_uniform";
  CheckRank(kOp, "probabilities", prob, 2);
  CheckRank(kOp, "samples", uniform_sample, 2);
  CheckRank(kOp, "indices of rows", sample_indices, 2);
  const PrimExpr &samples = uniform_sample->shape[0], &count = prob->shape[1];
  PrimExpr one = MakeConst(count.dtype(), 1), zero = MakeZero(count.dtype());
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    Scalar running("running", prob->dtype), found("found", count.dtype());
    Stmt loop = Loop("i", samples, [&](const Var& i) {
      Index first = {i, zero};
      Stmt walk = Loop("k", count, [&](const Var& k) {
        PrimExpr row = tvm::cast(prob->shape[0].dtype(), Load(in[2], first));
        Stmt add = running.Set(running.Get() + Load(in[0], {row, k}));
        Stmt hit =
            IfThenElse(found.Get() >= count && running.Get() > Load(in[1], first), found.Set(k));
        return Steps({add, hit});
      });
      // Rounding may leave the whole sum below the sample: the last category then.
      Stmt store = Store(out[0], first, tvm::min(found.Get(), count - one));
      return Steps({running.Set(MakeZero(prob->dtype)), found.Set(count), walk, store});
    });
    return WithBuffer(running.buffer, WithBuffer(found.buffer, loop));
  };
  return Extern(kOp, {prob, uniform_sample, sample_indices}, {{uniform_sample->shape, dtype}},
                body)[0];
}

TVM_REGISTER() {
  Def("topi.cumsum", &CumSum, "Sums of the elements so far; of those before with exclusive.",
      Arg("data"), Arg("axis", nullptr), Arg("dtype", nullptr), Arg("exclusive", nullptr));
  Def("topi.cumprod", &CumProd, "Products of the elements so far; of those before with exclusive.",
      Arg("data"), Arg("axis", nullptr), Arg("dtype", nullptr), Arg("exclusive", nullptr));
  Def("topi.scanop", &ScanOp, "The elements so far combined by a function.", Arg("data"),
      Arg("binop"), Arg("identity_value"), Arg("op_name"), Arg("axis", nullptr),
      Arg("dtype", nullptr), Arg("exclusive", nullptr));
  Def("topi.searchsorted", &SearchSorted,
      "Where values belong in a sorted sequence: before equal elements, or behind with right.",
      Arg("sorted_sequence"), Arg("values"), Arg("right", false), Arg("out_dtype", "int64"));
  Def("topi.multinomial_from_uniform", &MultinomialFromUniform,
      "Categories for uniform samples, by the probabilities of rows.", Arg("prob"),
      Arg("uniform_sample"), Arg("sample_indices"), Arg("dtype", "int64"));
}
}  // namespace
}  // namespace tvm::topi
