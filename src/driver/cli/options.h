// SPDX-License-Identifier: Apache-2.0
// Words of a command line: options by name, the rest in order.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tvm::cli {

struct OptionRow {
  const char* name;   // "--target"
  const char* value;  // what the word behind it is, "" for a flag
  const char* doc;
};
/// An integer in the words of the option `name`. ValueError for what is none, or below `least`.
int64_t NumberOf(const std::string& name, const std::string& text, int64_t least);

/// What a command was given. ValueError for an unknown option, with the nearest one.
class Options {
 public:
  Options(const std::vector<OptionRow>& rows, const std::vector<std::string>& words);
  bool Has(const std::string& name) const { return values_.count(name) > 0; }
  /// The last one given.
  std::string Get(const std::string& name, std::string fallback = "") const;
  /// ValueError for what is no integer of at least 1.
  int64_t Count(const std::string& name, int64_t fallback) const;
  /// All "key=value" given, by key. ValueError where there is no "=".
  std::map<std::string, std::string> Pairs(const std::string& name) const;
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> rest_;
};

}  // namespace tvm::cli
