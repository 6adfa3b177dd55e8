// SPDX-License-Identifier: Apache-2.0
// Reading the words of a command line.
#include "driver/cli/options.h"

#include <algorithm>
#include <charconv>

#include "tvm/runtime/def.h"

namespace tvm::cli {

Options::Options(const std::vector<OptionRow>& rows, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i], value;
    if (word.rfind("-", 0) != 0 || word == "-") {
      rest_.push_back(word);
      continue;
    }
    if (word == "-o") word = "--output";
    size_t equals = word.find('=');
    bool inside = equals != std::string::npos;
    if (inside) {
      value = word.substr(equals + 1);
      word.resize(equals);
    }
    auto row =
        std::find_if(rows.begin(), rows.end(), [&](const OptionRow& r) { return word == r.name; });
    if (row == rows.end()) {
      std::vector<std::string_view> names;
      for (const OptionRow& r : rows) names.emplace_back(r.name);
      TVM_FFI_THROW(ValueError) << "unknown option '" << word << "'" << DidYouMean(word, names);
    }
    bool is_flag = *row->value == '\0';
    if (is_flag && inside) TVM_FFI_THROW(ValueError) << word << ": expected no value";
    if (!is_flag && !inside) {
      if (++i == words.size()) TVM_FFI_THROW(ValueError) << word << ": expected " << row->value;
      value = words[i];
    }
    values_[word].push_back(value);
  }
}
std::string Options::Get(const std::string& name, std::string fallback) const {
  auto it = values_.find(name);
  return it == values_.end() ? fallback : it->second.back();
}
int64_t NumberOf(const std::string& name, const std::string& text, int64_t least) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least)
    TVM_FFI_THROW(ValueError) << name << ": expected a number of at least " << least << ", got '"
                              << text << "'";
  return value;
}
int64_t Options::Count(const std::string& name, int64_t fallback) const {
  return Has(name) ? NumberOf(name, Get(name), 1) : fallback;
}
std::map<std::string, std::string> Options::Pairs(const std::string& name) const {
  std::map<std::string, std::string> pairs;
  auto it = values_.find(name);
  if (it == values_.end()) return pairs;
  for (const std::string& text : it->second) {
    size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      TVM_FFI_THROW(ValueError) << name << ": expected name=value, got '" << text << "'";
    pairs[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return pairs;
}
}  // namespace tvm::cli
