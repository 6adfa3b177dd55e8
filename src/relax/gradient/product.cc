// SPDX-License-Identifier: Apache-2.0
// Gradients of products of matrices and of sums of products.
#include <algorithm>

#include "relax/gradient/gradient.h"

namespace tvm::relax {
namespace {
/// With vectors as matrices: a row on the left, a column on the right.
Values OfMatmul(Grad& r) {
  Value a = r.x(0), b = r.x(1), g = r.g();
  bool row = a.ndim() == 1, column = b.ndim() == 1;
  Value left = row ? r.F("expand_dims", a, 0) : a;
  Value right = column ? r.F("expand_dims", b, 1) : b;
  if (column) g = r.F("expand_dims", g, -1);
  if (row) g = r.F("expand_dims", g, -2);
  if (g.dtype() != a.dtype()) g = r.F("astype", g, a.dtype());
  Value of_a = r.F("matmul", g, r.Transposed(right)), of_b = r.F("matmul", r.Transposed(left), g);
  // A vector that met a batch got the batch's dimensions; they are summed as broadcast ones are.
  if (row) of_a = r.F("squeeze", of_a, -2);
  if (column) of_b = r.F("squeeze", of_b, -1);
  return {r.CollapseTo(of_a, a), r.CollapseTo(of_b, b)};
}
Values OfOuter(Grad& r) { return {r.F("matmul", r.g(), r.x(1)), r.F("matmul", r.x(0), r.g())}; }

/// "ab,bc->ac" as the subscripts of the operands and of the result.
struct Subscripts {
  std::vector<std::string> operands;
  std::string result;
};
std::optional<Subscripts> Parse(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  size_t arrow = text.find("->");
  if (text.find('.') != text.npos) return std::nullopt;
  Subscripts parsed;
  std::string left = text.substr(0, arrow), word;
  for (char c : left + ",") {
    if (c != ',') {
      word += c;
      continue;
    }
    parsed.operands.push_back(word);
    word.clear();
  }
  if (arrow != text.npos) {
    parsed.result = text.substr(arrow + 2);
    return parsed;
  }
  // Without an arrow: the letters that come once, in order.
  std::string letters = left;
  letters.erase(std::remove(letters.begin(), letters.end(), ','), letters.end());
  std::sort(letters.begin(), letters.end());
  for (char c : letters) {
    if (std::count(letters.begin(), letters.end(), c) == 1) parsed.result += c;
  }
  return parsed;
}
Values OfEinsum(Grad& r) {
  auto parsed = Parse(r.attrs<EinsumAttrsObj>()->subscripts);
  if (!parsed) r.Refuse("subscripts with an ellipsis");
  size_t count = parsed->operands.size();
  Values operands, parts;
  for (size_t i = 0; i < count; ++i) operands.push_back(r.Item(r.x(0), static_cast<int64_t>(i)));
  for (size_t i = 0; i < count; ++i) {
    const std::string& own = parsed->operands[i];
    for (char c : own) {
      if (std::count(own.begin(), own.end(), c) > 1) r.Refuse("a diagonal");
    }
    Array<Expr> tensors = {r.g().expr};
    std::string text = parsed->result, known = parsed->result;
    for (size_t k = 0; k < count; ++k) {
      if (k == i) continue;
      tensors.push_back(operands[k].leaf());
      text += "," + parsed->operands[k];
      known += parsed->operands[k];
    }
    // Letters that nobody else has were summed: they are broadcast.
    std::string found;
    Dims dims;
    for (size_t axis = 0; axis < own.size(); ++axis) {
      bool is_known = known.find(own[axis]) != known.npos;
      if (is_known) found += own[axis];
      dims.push_back(is_known ? r.DimsOf(operands[i])[axis] : Dim(1));
    }
    Value part = r.F("einsum", Tuple(tensors), String(text + "->" + found));
    if (found.size() < own.size()) part = r.BroadcastLike(r.Reshaped(part, dims), operands[i]);
    parts.push_back(part);
  }
  return {r.MakeTuple(parts)};
}

TVM_REGISTER() {
  for (const GradientRow& row : {GradientRow{"relax.matmul", &OfMatmul},
                                 {"relax.outer", &OfOuter},
                                 {"relax.einsum", &OfEinsum}})
    RegisterGradient(row);
}
}  // namespace
}  // namespace tvm::relax
