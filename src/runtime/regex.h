// SPDX-License-Identifier: Apache-2.0
// Regular expressions in RE2's syntax that match whole texts, in time linear in the text: no
// pattern can make matching run away.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace tvm::runtime {

class Regex {
 public:
  /// ValueError for a pattern that is not one, or that grows beyond a limit.
  explicit Regex(std::string_view pattern);
  /// Whether all of the text (UTF-8) matches.
  bool FullMatch(std::string_view text) const;

 private:
  friend class RegexParser;
  /// Characters from `low` to `high`.
  struct Range {
    char32_t low, high;
  };
  struct Step {
    enum Kind : uint8_t {
      kSet,
      kSplit,
      kTextBegin,
      kTextEnd,
      kLineBegin,
      kLineEnd,
      kWord,
      kNotWord,
      kDone
    };
    Kind kind;
    bool is_negated = false;        // of kSet
    int32_t next = -1, other = -1;  // other: the second way of kSplit
    std::vector<Range> ranges = {};
  };
  struct Place {
    bool at_begin, at_end;
    char32_t before, after;
  };
  void Follow(int32_t step, const Place& place, std::vector<int32_t>* active,
              std::vector<bool>* seen) const;
  std::vector<Step> steps_;
  int32_t begin_ = 0;
};

}  // namespace tvm::runtime
