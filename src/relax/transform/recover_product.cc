// SPDX-License-Identifier: Apache-2.0
// Products of matrices re-formed from einsum.
#include <algorithm>
#include <string>

#include "relax/transform/spelled.h"

namespace tvm::relax {
namespace {
/// The axes of an operand by their letters.
struct Lettered {
  std::string letters;
  Array<PrimExpr> dims;

  bool Has(char c) const { return letters.find(c) != std::string::npos; }
  PrimExpr Dim(char c) const { return dims[letters.find(c)]; }
};
/// x with its axes in the order of `wanted`.
Expr InOrder(const Expr& x, const std::string& letters, const std::string& wanted) {
  if (letters == wanted) return x;
  Ints axes;
  for (char c : wanted) axes.push_back(IntImm::Int32(letters.find(c)));
  return CallOperator("relax.permute_dims", {x, axes});
}
PrimExpr SizeOf(const Lettered& operand, const std::string& letters) {
  PrimExpr size = IntImm::Int64(1);
  for (char c : letters) size = size * operand.Dim(c);
  return size;
}
/// The operand as matrices (batch, rows, columns).
Expr AsMatrices(const Expr& x, const Lettered& operand, const std::string& batch,
                const std::string& rows, const std::string& columns) {
  Expr ordered = InOrder(x, operand.letters, batch + rows + columns);
  if (rows.size() == 1 && columns.size() == 1) return ordered;
  Array<PrimExpr> dims;
  for (char c : batch) dims.push_back(operand.Dim(c));
  dims.push_back(SizeOf(operand, rows));
  dims.push_back(SizeOf(operand, columns));
  return CallOperator("relax.reshape", {ordered, ShapeExpr(dims)});
}
bool HasTwice(std::string letters) {
  std::sort(letters.begin(), letters.end());
  return std::adjacent_find(letters.begin(), letters.end()) != letters.end();
}
}  // namespace

// einsum("bhqd,bhkd->bhqk", (q, k))  ->  matmul(q, permute_dims(k, [0, 1, 3, 2]))
// A letter of only one operand has to be in the result, and one has to be summed over.
Optional<Expr> RecoverProduct(const Spelled& s, const Call& call) {
  if (!call->Is(s.ops.einsum)) return std::nullopt;
  Expr operands = s.Value(call->args[0]);
  auto* tuple = operands.as<TupleObj>();
  if (!tuple || tuple->fields.size() != 2) return std::nullopt;
  std::string text = Spelled::AttrsOf<EinsumAttrsObj>(call)->subscripts;
  std::erase(text, ' ');
  size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || text.find('.') < arrow)
    return std::nullopt;
  auto x = DimsOfTensor(tuple->fields[0]), y = DimsOfTensor(tuple->fields[1]);
  if (!x || !y) return std::nullopt;
  Lettered a{text.substr(0, comma), x.value()},
      b{text.substr(comma + 1, arrow - comma - 1), y.value()};
  std::string result = text.substr(arrow + 2), batch, summed, rows, columns;
  if (HasTwice(a.letters) || HasTwice(b.letters)) return std::nullopt;
  DimProver prover(nullptr);
  auto stays = [&](char c) { return result.find(c) != std::string::npos; };
  for (char c : a.letters) {
    if (!b.Has(c) && !stays(c)) return std::nullopt;
    if (b.Has(c) && prover.Compare(a.Dim(c), b.Dim(c)) != DimsAre::kEqual) return std::nullopt;
    (!b.Has(c) ? rows : stays(c) ? batch : summed) += c;
  }
  for (char c : b.letters) {
    if (a.Has(c)) continue;
    if (!stays(c)) return std::nullopt;
    columns += c;
  }
  if (summed.empty() || (rows.empty() && columns.empty())) return std::nullopt;
  Expr product =
      CallOperator("relax.matmul", {AsMatrices(tuple->fields[0], a, batch, rows, summed),
                                    AsMatrices(tuple->fields[1], b, batch, summed, columns)});
  if (rows.size() != 1 || columns.size() != 1) {
    Array<PrimExpr> dims;
    for (char c : batch + rows) dims.push_back(a.Dim(c));
    for (char c : columns) dims.push_back(b.Dim(c));
    product = CallOperator("relax.reshape", {product, ShapeExpr(dims)});
  }
  return InOrder(product, batch + rows + columns, result);
}

}  // namespace tvm::relax
