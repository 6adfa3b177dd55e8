// SPDX-License-Identifier: Apache-2.0
// Values of JSON as the types that an archive must have.
#include "archive_json.h"

#include <algorithm>

#include "runtime/utf8.h"

namespace tvm::frontend::torch {

[[noreturn]] void Unexpected(const std::string& what, const char* expected) {
  TVM_FFI_THROW(ValueError) << "archive: " << what << ": expected " << expected;
  TVM_FFI_UNREACHABLE();
}
json::Object AsObject(const Any& value, const std::string& what) {
  auto object = value == nullptr ? std::nullopt : value.try_cast<json::Object>();
  if (!object) Unexpected(what, "an object");
  return *object;
}
json::Array AsList(const Any& value, const std::string& what) {
  auto list = value == nullptr ? std::nullopt : value.try_cast<json::Array>();
  if (!list) Unexpected(what, "a list");
  return *list;
}
std::string AsText(const Any& value, const std::string& what) {
  auto text = value == nullptr ? std::nullopt : value.try_cast<String>();
  if (!text) Unexpected(what, "a text");
  return *text;
}
int64_t AsInt(const Any& value, const std::string& what) {
  if (value.type_index() != kTVMFFIInt) Unexpected(what, "an integer");
  return value.cast<int64_t>();
}
Any Get(const json::Object& object, const char* key) {
  auto it = object.find(String(key));
  return it == object.end() ? Any(nullptr) : (*it).second;
}
std::pair<std::string, Any> Choice(const Any& value, const std::string& what) {
  json::Object object = AsObject(value, what);
  if (object.size() != 1) Unexpected(what, "an object of one entry");
  return {AsText((*object.begin()).first, what), (*object.begin()).second};
}
namespace {
/// The parser recurses: what is nested deeper than any program is refused before.
void CheckDepth(std::string_view text) {
  constexpr int kMaxDepth = 400;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) Unexpected("JSON", "less depth");
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}
}  // namespace
json::Object ParseObject(std::string_view text, const std::string& what) {
  CheckDepth(text);
  bool is_plain = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
  if (!is_plain && runtime::EncodeUtf8(runtime::DecodeUtf8(text)) != text) {
    Unexpected(what, "text in UTF-8");
  }
  String error;
  Any value = json::Parse(String(text.data(), text.size()), &error);
  if (!error.empty()) Unexpected(what + " (" + std::string(error) + ")", "JSON");
  return AsObject(value, what);
}

}  // namespace tvm::frontend::torch
