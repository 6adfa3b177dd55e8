// SPDX-License-Identifier: Apache-2.0
// Sums of products by letters: einsum("bij,bjk->bik", a, b).
#include <algorithm>
#include <map>

#include "topi/shape.h"
#include "tvm/topi/product.h"

namespace tvm::topi {
using namespace tir;
namespace {
constexpr const char* kOp = "einsum";

/// The letters of one operand; axes of "..." are digits from the right: '0' is the last of them.
std::string Letters(const std::string& term, size_t rank) {
  size_t dots = term.find("...");
  std::string letters = term;
  if (dots != std::string::npos) {
    if (rank + 3 < term.size())
      Complain(kOp, "at most as many letters as dimensions in \"" + term + '"',
               std::to_string(rank) + " dimensions");
    size_t hidden = rank + 3 - term.size();
    if (hidden > 10) Complain(kOp, "at most 10 dimensions for \"...\"", std::to_string(hidden));
    std::string digits;
    for (size_t i = hidden; i-- > 0;) digits += static_cast<char>('0' + i);
    letters = term.substr(0, dots) + digits + term.substr(dots + 3);
  }
  if (letters.size() != rank) {
    Complain(kOp, "a letter per dimension of an operand with " + std::to_string(rank),
             '"' + term + '"');
  }
  return letters;
}
struct Subscripts {
  std::vector<std::string> inputs;
  std::string output;
};
Subscripts Parse(std::string text, const Array<Tensor>& operands) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Subscripts result;
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',') {
      terms.emplace_back();
    } else if (isalpha(static_cast<unsigned char>(c)) || c == '.') {
      terms.back() += c;
    } else {
      Complain(kOp, "letters, \",\", \"...\" and \"->\"", '"' + text + '"');
    }
  }
  if (terms.size() != operands.size()) {
    Complain(kOp, std::to_string(terms.size()) + " operands for \"" + text + '"',
             std::to_string(operands.size()));
  }
  std::map<char, int> count;
  std::string hidden;
  for (size_t i = 0; i < terms.size(); ++i) {
    result.inputs.push_back(Letters(terms[i], operands[i]->shape.size()));
    std::string digits;
    for (char c : result.inputs.back()) {
      ++count[c];
      if (isdigit(static_cast<unsigned char>(c))) digits += c;
    }
    if (digits.size() > hidden.size()) hidden = digits;
  }
  if (arrow == std::string::npos) {  // letters that occur once, in alphabetical order
    result.output = hidden;
    for (const auto& [letter, times] : count) {
      if (times == 1 && isalpha(static_cast<unsigned char>(letter))) result.output += letter;
    }
    return result;
  }
  std::string output = text.substr(arrow + 2);
  size_t dots = output.find("...");
  if (dots != std::string::npos) output.replace(dots, 3, hidden);
  for (char c : output) {
    if (!count.count(c) || std::count(output.begin(), output.end(), c) > 1)
      Complain(kOp, "letters of the operands, each once, behind \"->\"", '"' + text + '"');
  }
  result.output = output;
  return result;
}
}  // namespace

Tensor einsum(String subscripts, const Array<Tensor>& operands) {
  if (operands.empty()) Complain(kOp, "at least one operand", "none");
  Subscripts letters = Parse(subscripts, operands);
  std::map<char, PrimExpr> extents;
  for (size_t k = 0; k < operands.size(); ++k) {
    for (size_t d = 0; d < letters.inputs[k].size(); ++d) {
      char letter = letters.inputs[k][d];
      const PrimExpr& extent = operands[k]->shape[d];
      auto [it, is_new] = extents.emplace(letter, extent);
      if (!is_new && IsOne(it->second)) it->second = extent;
      if (!IsOne(extent) && DifferentDim(extent, it->second)) {
        Complain(kOp, std::string("one size for ") + letter, Text({it->second, extent}));
      }
    }
  }
  Shape shape;
  for (char c : letters.output) shape.push_back(extents.at(c));
  Array<IterVar> iters;
  std::map<char, PrimExpr> reduced;
  for (const std::string& input : letters.inputs) {
    for (char c : input) {
      if (letters.output.find(c) != std::string::npos || reduced.count(c)) continue;
      IterVar iter = Along(extents.at(c), "k" + std::to_string(iters.size()));
      iters.push_back(iter);
      reduced[c] = iter->var;
    }
  }
  auto element = [&](const Index& i) {
    std::map<char, PrimExpr> at = reduced;
    for (size_t d = 0; d < i.size(); ++d) at[letters.output[d]] = i[d];
    PrimExpr product;
    for (size_t k = 0; k < operands.size(); ++k) {
      Index index;
      for (size_t d = 0; d < letters.inputs[k].size(); ++d) {
        char c = letters.inputs[k][d];
        bool repeats = IsOne(operands[k]->shape[d]) && !IsOne(extents.at(c));
        index.push_back(repeats ? MakeZero(at.at(c).dtype()) : at.at(c));
      }
      PrimExpr factor = At(operands[k], index);
      product = product.defined() ? product * factor : factor;
    }
    return iters.empty() ? product : te::sum(product, iters);
  };
  return Compute(shape, element, "T_einsum", "einsum");
}

namespace {
TVM_REGISTER() {
  Def("topi.einsum", &einsum, "Sums of products by letters, as NumPy's einsum.", Arg("subscripts"),
      Arg("*operand"));
}
}  // namespace
}  // namespace tvm::topi
