// SPDX-License-Identifier: Apache-2.0
// Symbolic sizes: expressions in the form of sympy's srepr, e.g. Add(Symbol('s0'), Integer(1)).
#include "symbols.h"

#include <charconv>
#include <vector>

#include "tvm/expr/substitute.h"

namespace tvm::frontend::torch {
namespace {

/// A function application f(a, b, key=value), a quoted text or a number.
struct Term {
  std::string name;  // of the function, or the text, or the number
  std::vector<Term> args;
};

class TermParser {
 public:
  explicit TermParser(std::string_view text) : text_(text) {}
  Term Parse() {
    Term term = Next(0);
    if (at_ != text_.size()) Fail("the end");
    return term;
  }

 private:
  static constexpr int kMaxDepth = 200;
  [[noreturn]] void Fail(const char* expected) const {
    TVM_FFI_THROW(ValueError) << "symbolic size: expected " << expected << " at " << at_ << " of '"
                              << text_.substr(0, 200) << "'";
    TVM_FFI_UNREACHABLE();
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void SkipSpace() {
    while (Peek() == ' ') ++at_;
  }
  Term Next(int depth) {
    if (depth > kMaxDepth) Fail("an expression that is not nested as deep");
    SkipSpace();
    Term term;
    if (Peek() == '\'' || Peek() == '"') {
      char quote = text_[at_++];
      size_t end = text_.find(quote, at_);
      if (end == text_.npos) Fail("a closing quote");
      term.name = text_.substr(at_, end - at_);
      at_ = end + 1;
      return term;
    }
    auto is_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    };
    while (is_word(Peek())) term.name += text_[at_++];
    if (term.name.empty()) Fail("a name or a number");
    if (Peek() == '=') {  // a keyword: an assumption about a symbol, which says nothing here
      ++at_;
      Next(depth + 1);
      term.name = "=";
      return term;
    }
    if (Peek() != '(') return term;
    ++at_;
    for (SkipSpace(); Peek() != ')'; SkipSpace()) {
      Term arg = Next(depth + 1);
      if (arg.name != "=") term.args.push_back(std::move(arg));
      SkipSpace();
      if (Peek() == ',') {
        ++at_;
      } else if (Peek() != ')') {
        Fail("',' or ')'");
      }
    }
    ++at_;
    return term;
  }
  std::string_view text_;
  size_t at_ = 0;
};

int64_t ToInt(const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    TVM_FFI_THROW(ValueError) << "symbolic size: expected an integer, got '" << text << "'";
  }
  return value;
}

double ToDouble(const std::string& text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    TVM_FFI_THROW(ValueError) << "symbolic size: expected a number, got '" << text << "'";
  }
  return value;
}
/// a ** b of a small constant exponent.
PrimExpr Power(const PrimExpr& base, const PrimExpr& exponent) {
  auto n = AsConstInt(exponent);
  if (!n || *n < 0 || *n > 64) {
    TVM_FFI_THROW(ValueError) << "symbolic size: expected a small constant exponent";
  }
  PrimExpr result = IntImm::Int64(1);
  for (int64_t i = 0; i < *n; ++i) result = i == 0 ? base : result * base;
  return result;
}
PrimExpr Remainder(const PrimExpr& a, const PrimExpr& b) { return floormod(a, b); }

/// Sizes by way of real numbers, such as trunc(2.0 * float(s)).
PrimExpr AsReal(const PrimExpr& e) { return cast(DataType::Float(64), e); }
PrimExpr AsWhole(const PrimExpr& e) { return cast(DataType::Int(64), e); }

struct BinaryForm {
  const char* name;
  PrimExpr (*make)(const PrimExpr&, const PrimExpr&);
};
// Sums, products, maxima and minima have any number of operands.
constexpr BinaryForm kForms[] = {
    {"Add", [](const PrimExpr& a, const PrimExpr& b) { return a + b; }},
    {"Mul", [](const PrimExpr& a, const PrimExpr& b) { return a * b; }},
    {"Max", [](const PrimExpr& a, const PrimExpr& b) { return max(a, b); }},
    {"Min", [](const PrimExpr& a, const PrimExpr& b) { return min(a, b); }},
    {"Pow", &Power},
    {"PowByNatural", &Power},
    {"FloorDiv", [](const PrimExpr& a, const PrimExpr& b) { return floordiv(a, b); }},
    {"CleanDiv", [](const PrimExpr& a, const PrimExpr& b) { return floordiv(a, b); }},
    {"CeilDiv", [](const PrimExpr& a, const PrimExpr& b) { return ceildiv(a, b); }},
    {"Mod", &Remainder},
    {"PythonMod", &Remainder},
    {"IntTrueDiv", [](const PrimExpr& a, const PrimExpr& b) { return div(AsReal(a), AsReal(b)); }},
    {"FloatTrueDiv",
     [](const PrimExpr& a, const PrimExpr& b) { return div(AsReal(a), AsReal(b)); }},
    {"FloatPow", [](const PrimExpr& a, const PrimExpr& b) { return pow(AsReal(a), AsReal(b)); }},
    {"LessThan", [](const PrimExpr& a, const PrimExpr& b) { return a <= b; }},
    {"StrictLessThan", [](const PrimExpr& a, const PrimExpr& b) { return a < b; }},
    {"GreaterThan", [](const PrimExpr& a, const PrimExpr& b) { return a >= b; }},
    {"StrictGreaterThan", [](const PrimExpr& a, const PrimExpr& b) { return a > b; }},
    {"Equality", [](const PrimExpr& a, const PrimExpr& b) { return equal(a, b); }},
    {"Unequality", [](const PrimExpr& a, const PrimExpr& b) { return not_equal(a, b); }},
    {"And", [](const PrimExpr& a, const PrimExpr& b) { return a && b; }},
    {"Or", [](const PrimExpr& a, const PrimExpr& b) { return a || b; }},
};

struct UnaryForm {
  const char* name;
  PrimExpr (*make)(const PrimExpr&);
};
constexpr UnaryForm kUnaryForms[] = {
    {"ToFloat", &AsReal},
    {"TruncToFloat", [](const PrimExpr& e) { return trunc(AsReal(e)); }},
    {"TruncToInt", [](const PrimExpr& e) { return AsWhole(trunc(AsReal(e))); }},
    {"FloorToInt", [](const PrimExpr& e) { return AsWhole(floor(AsReal(e))); }},
    {"CeilToInt", [](const PrimExpr& e) { return AsWhole(ceil(AsReal(e))); }},
    {"RoundToInt", [](const PrimExpr& e) { return AsWhole(round(AsReal(e))); }},
    {"OpaqueUnaryFn_sqrt", [](const PrimExpr& e) { return sqrt(AsReal(e)); }},
    {"Not", [](const PrimExpr& e) { return !e; }},
};

using SymbolFn = std::function<PrimExpr(const std::string&)>;
PrimExpr Evaluate(const Term& term, const SymbolFn& symbol);

/// Piecewise(ExprCondPair(value, condition), …, ExprCondPair(value, true))
PrimExpr FirstThatHolds(const Term& term, const SymbolFn& symbol) {
  PrimExpr result;
  for (size_t i = term.args.size(); i-- > 0;) {
    const Term& pair = term.args[i];
    if (pair.name != "ExprCondPair" || pair.args.size() != 2) {
      TVM_FFI_THROW(ValueError) << "symbolic size: expected values with conditions in Piecewise";
    }
    PrimExpr value = Evaluate(pair.args[0], symbol);
    // Without one that always holds the last is it.
    result = result.defined() ? tir::Select(Evaluate(pair.args[1], symbol), value, result) : value;
  }
  if (!result.defined()) {
    TVM_FFI_THROW(ValueError) << "symbolic size: expected more operands of Piecewise";
  }
  return result;
}
PrimExpr Evaluate(const Term& term, const SymbolFn& symbol) {
  auto arg = [&](size_t i) {
    if (i >= term.args.size()) {
      TVM_FFI_THROW(ValueError) << "symbolic size: expected more operands of " << term.name;
    }
    return Evaluate(term.args[i], symbol);
  };
  if (term.name == "Symbol" && !term.args.empty()) return symbol(term.args[0].name);
  if (term.name == "Integer" && term.args.size() == 1) {
    return IntImm::Int64(ToInt(term.args[0].name));
  }
  if (term.name == "true" || term.name == "false") return IntImm::Bool(term.name == "true");
  if (term.args.empty() && !term.name.empty()) return IntImm::Int64(ToInt(term.name));
  if (term.name == "ModularIndexing") return floormod(floordiv(arg(0), arg(1)), arg(2));
  if (term.name == "Float" && !term.args.empty()) {
    return FloatImm(DataType::Float(64), ToDouble(term.args[0].name));
  }
  if (term.name == "Rational" && term.args.size() == 2) return div(AsReal(arg(0)), AsReal(arg(1)));
  if (term.name == "Piecewise") return FirstThatHolds(term, symbol);
  for (const UnaryForm& form : kUnaryForms) {
    if (term.name == form.name) return form.make(arg(0));
  }
  for (const BinaryForm& form : kForms) {
    if (term.name != form.name) continue;
    PrimExpr result = arg(0);
    for (size_t i = 1; i < term.args.size(); ++i) result = form.make(result, arg(i));
    return result;
  }
  TVM_FFI_THROW(ValueError) << "symbolic size: expected arithmetic on sizes, got " << term.name;
  TVM_FFI_UNREACHABLE();
}

/// "2*s0" as part of a variable's name.
std::string NameOf(const Term& term) {
  if (term.name == "Symbol" || term.name == "Integer") return term.args[0].name;
  std::string name;
  if (term.name == "Mul" && term.args.size() == 2) {
    return NameOf(term.args[1]) + "_" + NameOf(term.args[0]);
  }
  for (const Term& arg : term.args) name = NameOf(arg) + (name.empty() ? "" : "___" + name);
  for (char& c : name) {
    if (c == '-') c = 'm';
  }
  return name;
}

}  // namespace

PrimExpr Symbols::NewSymbol(const std::string& name) {
  auto range = ranges_.Get(name);
  auto bound = [&](size_t i, int64_t otherwise) {
    return range && (*range)[i] != nullptr ? (*range)[i].cast<int64_t>() : otherwise;
  };
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  int64_t lower = bound(0, range ? -kAny : 0);
  // A number that depends on data is not always a size.
  tir::Var var =
      lower < 0 ? tir::Var(name, DataType::Int(64)) : tir::SizeVar(name, DataType::Int(64));
  analyzer_->Update(var, arith::ConstIntBound(lower, bound(1, kAny)));
  return var;
}

PrimExpr Symbols::Parse(std::string_view text) {
  Term term = TermParser(text).Parse();
  return analyzer_->Simplify(Evaluate(term, [&](const std::string& name) {
    if (names_) names_->insert(name);
    PrimExpr& value = values_[name];
    if (!value.defined()) value = NewSymbol(name);
    return value;
  }));
}

PrimExpr Symbols::Size(const Any& size) {
  if (auto number = size.try_cast<int64_t>()) return IntImm::Int64(*number);
  if (auto* e = size.as<PrimExprObj>()) return ffi::GetRef<PrimExpr>(e);
  std::string text = size.cast<String>();
  auto known = dims_.find(text);
  if (known != dims_.end()) return known->second;
  PrimExpr value = Parse(text);
  dims_[text] = value;
  return value;
}

void Symbols::DefineDerived(const std::string& text) {
  std::set<std::string> names;
  names_ = &names;
  PrimExpr value = Parse(text);
  names_ = nullptr;
  std::string unknown;
  for (const std::string& name : names) {
    if (input_vars_.count(name)) continue;
    if (!unknown.empty()) return;  // two unknown symbols: another input may show them
    unknown = name;
  }
  if (unknown.empty()) return;
  // value = a * s + b, so that s = (dimension - b) // a.
  arith::Analyzer analyzer;
  auto at = [&](int64_t s) {
    Map<tir::Var, PrimExpr> point;
    point.Set(values_[unknown].as<tir::Var>().value(), IntImm::Int64(s));
    return analyzer.Simplify(Substitute(value, point));
  };
  PrimExpr offset = at(0), factor = analyzer.Simplify(at(1) - offset);
  tir::SizeVar var(NameOf(TermParser(text).Parse()), DataType::Int(64));
  input_vars_.Set(var->name_hint, var);
  auto a = AsConstInt(factor);
  bool is_linear = a && *a > 0 && analyzer.CanProveEqual(at(2) - offset, factor * IntImm::Int64(2));
  dims_[text] = var;
  if (!is_linear) return;  // the symbol stays unknown: using it is an error
  values_[unknown] = analyzer.Simplify(floordiv(var - offset, factor));
  input_vars_.Set(unknown, var);
}

void Symbols::DefineInputs(const Array<ProgramInput>& inputs) {
  std::vector<std::string> derived;
  auto define = [&](const Any& size) {
    if (!size.try_cast<String>()) return;
    std::string text = size.cast<String>();
    PrimExpr value = Parse(text);
    if (auto var = value.as<tir::Var>()) {
      input_vars_.Set((*var)->name_hint, *var);
    } else {
      derived.push_back(text);
    }
  };
  for (const ProgramInput& input : inputs) {
    if (auto* tensor = input->meta.as<TensorMetaObj>()) {
      for (const Any& size : tensor->sizes) define(size);
    } else if (auto* scalar = input->meta.as<ScalarMetaObj>()) {
      define(scalar->expr);
    }
  }
  for (const std::string& text : derived) {
    if (!dims_.count(text)) DefineDerived(text);
  }
}

}  // namespace tvm::frontend::torch
