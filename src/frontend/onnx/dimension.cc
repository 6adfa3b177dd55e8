// SPDX-License-Identifier: Apache-2.0
// Reads the texts of symbolic dimensions.
#include "frontend/onnx/dimension.h"

#include <cctype>

#include "tvm/expr/op.h"
#include "tvm/ir/stack.h"

namespace tvm::frontend::onnx {
namespace {
bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// sum: product (+|- product)*; product: atom (*|//|% atom)*; atom: number, name, (sum), -atom.
class DimensionParser {
 public:
  DimensionParser(std::string_view text,
                  const std::function<std::optional<PrimExpr>(const std::string&)>& lookup)
      : text_(text), lookup_(lookup) {}
  std::optional<PrimExpr> Run() {
    PrimExpr result = Sum();
    SkipSpace();
    return failed_ || !text_.empty() ? std::nullopt : std::optional(result);
  }

 private:
  void SkipSpace() {
    while (!text_.empty() && text_[0] == ' ') text_.remove_prefix(1);
  }
  bool Accept(std::string_view token) {
    SkipSpace();
    if (text_.substr(0, token.size()) != token) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  PrimExpr Sum() {
    PrimExpr left = Product();
    for (;;) {
      if (Accept("+")) {
        left = left + Product();
      } else if (Accept("-")) {
        left = left - Product();
      } else {
        return left;
      }
    }
  }
  PrimExpr Product() {
    PrimExpr left = Atom();
    for (;;) {
      if (Accept("*")) {
        left = left * Atom();
      } else if (Accept("//")) {
        left = floordiv(left, Atom());
      } else if (Accept("%")) {
        left = floormod(left, Atom());
      } else {
        return left;
      }
    }
  }
  PrimExpr Atom() {
    CheckStack();
    if (Accept("-")) return IntImm::Int64(0) - Atom();
    if (Accept("(")) {
      PrimExpr inner = Sum();
      failed_ |= !Accept(")");
      return inner;
    }
    size_t size = 0;
    while (size < text_.size() && IsNameChar(text_[size])) ++size;
    std::string word(text_.substr(0, size));
    text_.remove_prefix(size);
    bool is_number = !word.empty() && word.size() < 18;
    for (char c : word) is_number &= std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (is_number) return IntImm::Int64(std::stoll(word));
    auto known = IsName(word) ? lookup_(word) : std::nullopt;
    failed_ |= !known;
    return known.value_or(IntImm::Int64(1));
  }
  std::string_view text_;
  const std::function<std::optional<PrimExpr>(const std::string&)>& lookup_;
  bool failed_ = false;
};
}  // namespace

bool IsName(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  for (char c : text) {
    if (!IsNameChar(c)) return false;
  }
  return true;
}
std::optional<PrimExpr> ParseDimension(
    std::string_view text,
    const std::function<std::optional<PrimExpr>(const std::string&)>& lookup) {
  return DimensionParser(text, lookup).Run();
}

}  // namespace tvm::frontend::onnx
