// SPDX-License-Identifier: Apache-2.0
// What compile times are compared with (build_cost.py): standard headers and some code of their
// templates. Any change here makes the recorded figure void.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

using Value = std::variant<int, double, std::string, std::vector<int>>;

std::map<std::string, std::vector<std::string>> Words(const std::string& text) {
  std::map<std::string, std::vector<std::string>> found;
  std::regex word("([a-z]+)=([^;]*)");
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) {
    found[(*it)[1]].push_back((*it)[2]);
  }
  return found;
}
std::string Text(const Value& value) {
  std::ostringstream out;
  std::visit(
      [&](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::vector<int>>) {
          for (int i : v) out << i << ' ';
        } else {
          out << v;
        }
      },
      value);
  return out.str();
}
std::vector<std::shared_ptr<Value>> Sorted(std::unordered_map<std::string, Value> values) {
  std::set<std::string> names;
  for (const auto& [name, value] : values) names.insert(name + Text(value));
  std::vector<std::shared_ptr<Value>> result;
  for (const std::string& name : names) result.push_back(std::make_shared<Value>(name));
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return *a < *b; });
  std::function<int(int)> twice = [&](int n) { return n ? twice(n - 1) + 2 : 0; };
  result.push_back(std::make_shared<Value>(twice(static_cast<int>(result.size()))));
  return result;
}
