// SPDX-License-Identifier: Apache-2.0
// Products of tensors: matmul, outer, einsum.
#include <algorithm>
#include <map>

#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

StructInfo InferMatmul(Infer& in) {
  const TensorStructInfoObj *a = in.Tensor(0), *b = in.Tensor(1);
  DataType dtype = in.attrs<MatmulAttrsObj>()->out_dtype;
  if (dtype.is_void()) dtype = in.SameType(a->dtype, b->dtype);
  if (a->ndim == 0 || b->ndim == 0) {
    TVM_RAISE(in) << "expected operands of at least 1 dimension, got " << ShowShape(a) << " and "
                  << ShowShape(b);
  }
  if (a->ndim < 0 || b->ndim < 0) return in.Result(Shape(), dtype);
  // A vector is a matrix of one row, or one column, that the result does not have.
  bool row = a->ndim == 1, column = b->ndim == 1;
  int64_t ndim = std::max(a->ndim - 2, b->ndim - 2);
  ndim = std::max<int64_t>(ndim, 0) + !row + !column;
  if (!DimsOf(a) || !DimsOf(b)) return in.Result(Shape::Rank(ndim), dtype);
  const Dims &x = *DimsOf(a), &y = *DimsOf(b);
  const PrimExpr k = x.back(), l = y[column ? 0 : y.size() - 2];
  if (in.Different(k, l)) {
    TVM_RAISE(in) << "expected the last dimension of " << Show(x) << " and dimension "
                  << (column ? 0 : y.size() - 2) << " of " << Show(y) << " to be equal, got "
                  << TextOf(k) << " and " << TextOf(l);
  }
  Shape batch = in.Broadcast(row ? Dims{} : Dims(x.begin(), x.end() - 2),
                             column ? Dims{} : Dims(y.begin(), y.end() - 2));
  if (!batch.known()) return in.Result(Shape::Rank(ndim), dtype);
  Dims dims = *batch.dims;
  if (!row) dims.push_back(x[x.size() - 2]);
  if (!column) dims.push_back(y.back());
  return in.Result(dims, dtype);
}
StructInfo InferOuter(Infer& in) {
  const TensorStructInfoObj *a = in.Tensor(0), *b = in.Tensor(1);
  DataType dtype = in.SameType(a->dtype, b->dtype);
  in.ExpectRank(a, 1, "x1");
  in.ExpectRank(b, 1, "x2");
  if (!DimsOf(a) || !DimsOf(b)) return in.Result(Shape::Rank(2), dtype);
  return in.Result(Dims{(*DimsOf(a))[0], (*DimsOf(b))[0]}, dtype);
}

/// The letters of one operand; '.' stands for the dimensions of an ellipsis.
std::string Letters(Infer& in, std::string_view text) {
  std::string letters;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "...") {
      letters += '.';
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      letters += text[i];
    } else {
      TVM_RAISE(in) << "expected letters and '...' in the subscripts, got '" << text << "'";
    }
  }
  if (std::count(letters.begin(), letters.end(), '.') > 1)
    TVM_RAISE(in) << "expected at most one '...' for an operand, got '" << text << "'";
  return letters;
}
StructInfo InferEinsum(Infer& in) {
  auto operands = in.Tensors(0);
  if (operands.empty()) TVM_RAISE(in) << "expected at least one operand, got none";
  DataType dtype = operands[0]->dtype;
  for (const TensorStructInfoObj* x : operands) dtype = in.SameType(dtype, x->dtype);
  std::string text;
  for (char c : std::string(in.attrs<EinsumAttrsObj>()->subscripts)) {
    if (c != ' ') text += c;
  }
  size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  std::vector<std::string> inputs;
  for (size_t begin = 0; begin <= left.size();) {
    size_t end = std::min(left.find(',', begin), left.size());
    inputs.push_back(Letters(in, left.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (inputs.size() != operands.size()) {
    TVM_RAISE(in) << "expected " << inputs.size() << " operands for '" << text << "', got "
                  << operands.size();
  }
  std::map<char, PrimExpr> extents;
  std::map<char, int> counts;
  Shape ellipsis = Dims{};
  bool known = true;
  for (size_t i = 0; i < operands.size(); ++i) {
    const TensorStructInfoObj* x = operands[i];
    bool dots = inputs[i].find('.') != std::string::npos;
    auto letters = static_cast<int64_t>(inputs[i].size()) - dots;
    if (x->ndim >= 0 && (dots ? x->ndim < letters : x->ndim != letters)) {
      TVM_RAISE(in) << "expected " << letters << (dots ? " or more" : "") << " dimensions for '"
                    << inputs[i] << "' in '" << text << "', got " << ShowShape(x);
    }
    for (char c : inputs[i]) ++counts[c];
    if (!DimsOf(x)) {
      known = false;
      if (dots)
        ellipsis = Shape::Rank(x->ndim < 0 ? -1 : std::max(ellipsis.ndim, x->ndim - letters));
      continue;
    }
    int64_t at = 0;
    for (char c : inputs[i]) {
      if (c == '.') {
        int64_t n = x->ndim - letters;
        ellipsis =
            in.Broadcast(ellipsis, Dims(DimsOf(x)->begin() + at, DimsOf(x)->begin() + at + n));
        at += n;
        continue;
      }
      const PrimExpr dim = (*DimsOf(x))[at++];
      auto [it, added] = extents.emplace(c, dim);
      if (added || in.Equal(it->second, dim)) continue;
      if (IsOne(it->second)) {
        it->second = dim;
      } else if (!IsOne(dim) && in.Different(it->second, dim)) {
        TVM_RAISE(in) << "expected one extent for '" << c << "' in '" << text << "', got "
                      << TextOf(it->second) << " and " << TextOf(dim);
      }
    }
  }
  std::string output;
  if (arrow != std::string::npos) {
    output = Letters(in, std::string_view(text).substr(arrow + 2));
    for (char c : output) {
      if (!counts.count(c))
        TVM_RAISE(in) << "expected letters of the operands after '->' in '" << text << "', got '"
                      << c << "'";
      if (std::count(output.begin(), output.end(), c) > 1)
        TVM_RAISE(in) << "expected each letter once after '->' in '" << text << "', got '" << c
                      << "' twice";
    }
  } else {  // what occurs once, in the order of the alphabet, behind the ellipsis
    for (auto [c, count] : counts) {
      if (c == '.' || count == 1) output += c;
    }
  }
  bool dots = output.find('.') != std::string::npos;
  if (dots && ellipsis.ndim < 0) return in.Result(Shape(), dtype);
  int64_t ndim = static_cast<int64_t>(output.size()) + (dots ? ellipsis.ndim - 1 : 0);
  if (!known || !ellipsis.known()) return in.Result(Shape::Rank(ndim), dtype);
  Dims dims;
  for (char c : output) {
    if (c == '.') {
      for (const PrimExpr& dim : *ellipsis.dims) dims.push_back(dim);
    } else {
      dims.push_back(extents.at(c));
    }
  }
  return in.Result(dims, dtype);
}

TVM_REGISTER() {
  Operator("relax.matmul", "x1: Tensor, x2: Tensor, out_dtype=None", &InferMatmul,
           "The product of matrices, for all batches; vectors as in NumPy.")
      .Attrs<MatmulAttrsObj>()
      .Pattern(kOutEWiseFusable)
      .Precision(kAlways);
  Operator("relax.outer", "x1: Tensor, x2: Tensor", &InferOuter, "The products of all pairs.")
      .Pattern(kOutEWiseFusable)
      .Precision(kAlways);
  Operator("relax.einsum", "operands: Tensors, subscripts", &InferEinsum,
           "Sums of products by NumPy's subscripts.")
      .Attrs<EinsumAttrsObj>()
      .Pattern(kOutEWiseFusable)
      .Precision(kFollow);
}

}  // namespace
}  // namespace tvm::relax
