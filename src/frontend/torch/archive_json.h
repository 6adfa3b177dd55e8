// SPDX-License-Identifier: Apache-2.0
// The JSON of archives, with errors that say what is missing.
#pragma once
#include <tvm/ffi/extra/json.h>

#include <string>
#include <utility>

#include "tvm/ir/node.h"

namespace tvm::frontend::torch {
namespace json = ffi::json;

[[noreturn]] void Unexpected(const std::string& what, const char* expected);
json::Object AsObject(const Any& value, const std::string& what);
json::Array AsList(const Any& value, const std::string& what);
std::string AsText(const Any& value, const std::string& what);
int64_t AsInt(const Any& value, const std::string& what);
/// The entry, or None.
Any Get(const json::Object& object, const char* key);
/// The one entry of a union: {"as_int": 3}.
std::pair<std::string, Any> Choice(const Any& value, const std::string& what);
json::Object ParseObject(std::string_view text, const std::string& what);

}  // namespace tvm::frontend::torch
