// SPDX-License-Identifier: Apache-2.0
// Reading the schema of an operator.
#include "schema.h"

#include <cstdlib>
#include <cstring>

namespace tvm::relax {
namespace {

constexpr const char* kKinds[] = {"",     "Tensor", "Value",   "Tensors", "Shape",
                                  "Prim", "Prims",  "Str",     "DType",   "Func",
                                  "Args", "Expr",   "OutInfo", "InfoArgs"};

struct Reader {
  std::string_view text;
  OperatorInfo* info;
  size_t at = 0;

  void SkipSpace() {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
  }
  bool Accept(char c) {
    SkipSpace();
    if (at == text.size() || text[at] != c) return false;
    ++at;
    return true;
  }
  [[noreturn]] void Fail(const char* expected) {
    TVM_FFI_THROW(ValueError) << info->name << ": expected " << expected << " in the schema, got '"
                              << text.substr(at) << "'";
    TVM_FFI_UNREACHABLE();
  }
  std::string_view Word() {
    SkipSpace();
    size_t begin = at;
    while (at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'))
      ++at;
    if (begin == at) Fail("a name");
    return text.substr(begin, at - begin);
  }
  ParamKind Kind() {
    std::string_view word = Word();
    for (size_t i = 1; i < std::size(kKinds); ++i) {
      if (word == kKinds[i]) return static_cast<ParamKind>(i);
    }
    at -= word.size();
    Fail("a kind of parameter");
  }
  Any Number() {
    const std::string rest(text.substr(at));
    char* end;
    double value = std::strtod(rest.c_str(), &end);
    if (end == rest.c_str()) Fail("a default");
    std::string_view digits = text.substr(at, end - rest.c_str());
    at += digits.size();
    if (digits.find_first_of(".en") != digits.npos) return value;
    return static_cast<int64_t>(std::strtoll(rest.c_str(), nullptr, 10));
  }
  /// A default that is no other parameter.
  Any Literal() {
    SkipSpace();
    if (Accept('\'')) {
      size_t end = text.find('\'', at);
      if (end == text.npos) Fail("a closing quote");
      String value(std::string(text.substr(at, end - at)));
      at = end + 1;
      return value;
    }
    if (Accept('(')) {
      Array<Any> items;
      while (!Accept(')')) {
        items.push_back(Literal());
        if (!Accept(',') && (SkipSpace(), at == text.size() || text[at] != ')')) Fail("')'");
      }
      return items;
    }
    for (auto [word, value] :
         {std::pair("None", Any(nullptr)), {"True", Any(true)}, {"False", Any(false)}}) {
      if (text.substr(at, std::strlen(word)) == word) {
        at += std::strlen(word);
        return value;
      }
    }
    return Number();
  }
  /// The parameter that a default names, or -1.
  int Earlier() {
    SkipSpace();
    size_t begin = at;
    if (at < text.size() && std::islower(static_cast<unsigned char>(text[at]))) {
      std::string_view word = Word();
      for (size_t i = 0; i < info->args.size(); ++i) {
        if (word == info->args[i].name) return static_cast<int>(i);
      }
    }
    at = begin;
    return -1;
  }
  void Parameter() {
    OperatorParam param{ParamKind::kAttr};
    param.is_variadic = Accept('*');
    std::string name(param.is_variadic ? "*" : "");
    name += Word();
    if (Accept(':')) param.kind = Kind();
    Arg arg(strdup(name.c_str()));  // definitions live as long as the process
    if (Accept('=')) {
      param.same_as = Earlier();
      arg = Arg(arg.name, param.same_as < 0 ? Literal() : Any(nullptr));
      param.is_optional = param.same_as < 0 && arg.value == nullptr;
    }
    info->args.push_back(arg);
    info->params.push_back(param);
  }
};

}  // namespace

const char* KindName(ParamKind kind) { return kKinds[static_cast<size_t>(kind)]; }

void ParseSchema(const std::string& schema, OperatorInfo* info) {
  Reader reader{schema, info};
  for (reader.SkipSpace(); reader.at < schema.size();) {
    reader.Parameter();
    if (!reader.Accept(',') && reader.at != schema.size()) reader.Fail("','");
  }
  for (size_t i = 0; i < info->params.size(); ++i) {
    const OperatorParam& param = info->params[i];
    if (!IsArgument(param.kind)) continue;
    info->call_args.push_back(static_cast<int>(i));
    if (param.is_variadic) {
      info->variadic = true;
    } else if (!param.is_optional) {
      ++info->min_args;
    }
  }
  info->schemas.assign(info->args.size() + 1, &ffi::detail::TypeSchema<Any>::v);
  info->schemas.back() = &ffi::detail::TypeSchema<Expr>::v;
}

}  // namespace tvm::relax
