// SPDX-License-Identifier: Apache-2.0
// A pattern becomes a program whose steps are all followed at once (Thompson's construction).
#include "runtime/regex.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "runtime/utf8.h"
#include "tvm/runtime/def.h"

namespace tvm::runtime {
namespace {
constexpr size_t kMaxSteps = 20'000;
constexpr int kMaxRepeats = 1000, kMaxDepth = 250, kMaxWork = 1'000'000;
constexpr char32_t kLastCharacter = 0x10FFFF;

struct NamedClass {
  std::string_view name;
  std::initializer_list<std::pair<char32_t, char32_t>> ranges;
};
const NamedClass kClasses[] = {
    {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
    {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
    {"ascii", {{0, 0x7F}}},
    {"blank", {{'\t', '\t'}, {' ', ' '}}},
    {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
    {"digit", {{'0', '9'}}},
    {"graph", {{'!', '~'}}},
    {"lower", {{'a', 'z'}}},
    {"print", {{' ', '~'}}},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
    {"space", {{'\t', '\r'}, {' ', ' '}}},
    {"upper", {{'A', 'Z'}}},
    {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
};
const NamedClass* FindClass(std::string_view name) {
  auto* found = std::find_if(std::begin(kClasses), std::end(kClasses),
                             [&](const NamedClass& c) { return c.name == name; });
  return found == std::end(kClasses) ? nullptr : found;
}
bool IsWord(char32_t c) { return c < 0x80 && (std::isalnum(static_cast<int>(c)) || c == '_'); }
bool IsLetter(char32_t c) { return c < 0x80 && std::isalpha(static_cast<int>(c)); }
}  // namespace

/// Each part of the pattern is a function that adds its steps in front of those that follow: a
/// repeated part is added several times.
class RegexParser {
 public:
  RegexParser(std::string_view pattern, Regex* regex)
      : pattern_(pattern), text_(DecodeUtf8(pattern)), regex_(regex) {}
  void Run() {
    Part part = Alternatives();
    if (at_ < text_.size()) Fail("no ')' without a '('");
    regex_->begin_ = part(Add({Step::kDone}));
  }

 private:
  using Step = Regex::Step;
  using Range = Regex::Range;
  using Part = std::function<int32_t(int32_t next)>;
  struct Flags {
    bool any_case = false, lines = false, dot_all = false;
  };

  [[noreturn]] void Fail(const std::string& expected) const {
    TVM_FFI_THROW(ValueError) << "regular expression: expected " << expected << ", got '"
                              << pattern_ << "'";
    TVM_FFI_UNREACHABLE();
  }
  int32_t Add(Step step) {
    if (regex_->steps_.size() >= kMaxSteps)
      Fail("a pattern of at most " + std::to_string(kMaxSteps) + " steps");
    regex_->steps_.push_back(std::move(step));
    return static_cast<int32_t>(regex_->steps_.size()) - 1;
  }
  bool More() const { return at_ < text_.size(); }
  char32_t Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0;
  }
  char32_t Next() {
    if (!More()) Fail("a whole pattern");
    return text_[at_++];
  }
  bool Take(std::string_view word) {
    for (size_t i = 0; i < word.size(); ++i) {
      if (at_ + i >= text_.size() || text_[at_ + i] != static_cast<unsigned char>(word[i]))
        return false;
    }
    at_ += word.size();
    return true;
  }

  Part Alternatives() {
    if (++depth_ > kMaxDepth) Fail("groups nested at most " + std::to_string(kMaxDepth) + " deep");
    Flags outer = flags_;
    std::vector<Part> ways{Sequence()};
    while (Take("|")) ways.push_back(Sequence());
    flags_ = outer;
    --depth_;
    if (ways.size() == 1) return ways[0];
    return [this, ways](int32_t next) {
      int32_t first = ways.back()(next);
      for (size_t i = ways.size() - 1; i-- > 0;)
        first = Add({Step::kSplit, false, ways[i](next), first});
      return first;
    };
  }
  Part Sequence() {
    std::vector<Part> parts;
    while (More() && Peek() != '|' && Peek() != ')') parts.push_back(Repeated(Atom()));
    return [parts](int32_t next) {
      for (size_t i = parts.size(); i-- > 0;) next = parts[i](next);
      return next;
    };
  }
  /// Whether a repetition is greedy does not matter to a match of the whole text.
  Part Repeated(Part part) {
    bool repeated = false;
    while (true) {
      int least = 0, most = -1;
      if (Take("*")) {
      } else if (Take("+")) {
        least = 1;
      } else if (Take("?")) {
        most = 1;
      } else if (!Braces(&least, &most)) {
        return part;
      }
      if (repeated) Fail("one repetition at a time");
      repeated = true;
      Take("?");
      part = [this, part, least, most](int32_t next) {
        // Nothing, repeated, adds no step: what is done counts as well.
        if ((work_ += 1 + std::max(least, most)) > kMaxWork) Fail("fewer repetitions");
        int32_t first = next;
        if (most < 0) {
          first = Add({Step::kSplit, false, -1, next});
          int32_t body = part(first);
          regex_->steps_[first].next = body;
        }
        for (int i = least; i < most; ++i) first = Add({Step::kSplit, false, part(first), next});
        for (int i = 0; i < least; ++i) first = part(first);
        return first;
      };
    }
  }
  /// {2}, {2,} or {2,3}; other braces are characters.
  bool Braces(int* least, int* most) {
    size_t begin = at_;
    auto number = [&](int* value) {
      size_t from = at_;
      for (*value = 0; Peek() >= '0' && Peek() <= '9' && *value <= kMaxRepeats; ++at_)
        *value = *value * 10 + static_cast<int>(Peek() - '0');
      return at_ > from;
    };
    bool ok = Take("{") && number(least);
    *most = *least;
    if (ok && Take(",") && !number(most)) *most = -1;
    if (!ok || !Take("}")) {
      at_ = begin;
      return false;
    }
    if (*least > kMaxRepeats || *most > kMaxRepeats || (*most >= 0 && *most < *least))
      Fail("repetitions in order and at most " + std::to_string(kMaxRepeats));
    return true;
  }
  Part OneStep(Step::Kind kind) {
    return [this, kind](int32_t next) { return Add({kind, false, next}); };
  }
  Part Set(std::vector<Range> ranges, bool is_negated = false) {
    if (flags_.any_case) {
      for (size_t i = 0, count = ranges.size(); i < count; ++i) {
        for (char32_t c = 'a'; c <= 'z'; ++c) {
          char32_t upper = c - 'a' + 'A';
          auto has = [&](char32_t x) { return ranges[i].low <= x && x <= ranges[i].high; };
          if (has(c)) ranges.push_back({upper, upper});
          if (has(upper)) ranges.push_back({c, c});
        }
      }
    }
    return [this, ranges, is_negated](int32_t next) {
      return Add({Step::kSet, is_negated, next, -1, ranges});
    };
  }
  Part Atom() {
    char32_t c = Next();
    switch (c) {
      case '(':
        return Group();
      case '[':
        return Class();
      case '\\':
        return Escape();
      case '.':
        return flags_.dot_all ? Set({{0, kLastCharacter}}) : Set({{'\n', '\n'}}, true);
      case '^':
        return OneStep(flags_.lines ? Step::kLineBegin : Step::kTextBegin);
      case '$':
        return OneStep(flags_.lines ? Step::kLineEnd : Step::kTextEnd);
      case '*':
      case '+':
      case '?':
        Fail("something to repeat");
      default:
        return Set({{c, c}});
    }
  }
  Part Group() {
    Flags before = flags_;
    if (Take("?")) {
      if (Take("P<") || Take("<")) {
        if (!IsWord(Peek())) Fail("a name of a group");
        while (IsWord(Peek())) Next();
        if (!Take(">")) Fail("a name of a group");
      } else {
        bool on = true;
        for (; Peek() != ':' && Peek() != ')'; Next()) {
          char32_t flag = Peek();
          if (flag == '-')
            on = false;
          else if (flag == 'i')
            flags_.any_case = on;
          else if (flag == 'm')
            flags_.lines = on;
          else if (flag == 's')
            flags_.dot_all = on;
          else if (flag != 'U')
            Fail("flags of imsU");
        }
        // Flags without a pattern hold until the group around them ends.
        if (Next() == ')') return [](int32_t next) { return next; };
      }
    }
    Part part = Alternatives();
    if (!Take(")")) Fail("a ')' for each '('");
    flags_ = before;
    return part;
  }
  /// \d and the like: its ranges, the others for capital letters.
  std::optional<std::vector<Range>> ShortClass(char32_t c) {
    std::string_view name = (c | 0x20) == 'd' ? "digit" : (c | 0x20) == 'w' ? "word" : "space";
    if (std::string_view("dwsDWS").find(static_cast<char>(c)) == std::string_view::npos || c > 'z')
      return std::nullopt;
    return Ranges(name, c < 'a');
  }
  std::vector<Range> Ranges(std::string_view name, bool is_negated) const {
    const NamedClass* found = FindClass(name);
    if (!found) Fail("a class such as [:alpha:]");
    std::vector<Range> ranges;
    char32_t from = 0;
    for (auto [low, high] : found->ranges) {
      if (!is_negated) ranges.push_back({low, high});
      if (is_negated && low > from) ranges.push_back({from, low - 1});
      from = high + 1;
    }
    if (is_negated) ranges.push_back({from, kLastCharacter});
    if (name == "space" && !is_negated) {  // \s has no vertical tab
      ranges = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
    } else if (name == "space") {
      ranges = {{0, 8}, {11, 11}, {14, 31}, {33, kLastCharacter}};
    }
    return ranges;
  }
  Part Escape() {
    if (Take("b")) return OneStep(Step::kWord);
    if (Take("B")) return OneStep(Step::kNotWord);
    if (Take("A")) return OneStep(Step::kTextBegin);
    if (Take("z")) return OneStep(Step::kTextEnd);
    if (Take("C")) return Set({{0, kLastCharacter}});
    if (Take("Q")) {
      std::vector<Part> parts;
      while (More() && !Take("\\E")) {
        char32_t c = Next();
        parts.push_back(Set({{c, c}}));
      }
      return [parts](int32_t next) {
        for (size_t i = parts.size(); i-- > 0;) next = parts[i](next);
        return next;
      };
    }
    if (auto ranges = ShortClass(Peek())) {
      Next();
      return Set(*ranges);
    }
    char32_t c = EscapedCharacter();
    return Set({{c, c}});
  }
  char32_t EscapedCharacter() {
    char32_t c = Next();
    auto digits = [&](int base, int most) {
      char32_t value = 0;
      int count = 0;
      for (; count < most; ++count, Next()) {
        char32_t d = Peek();
        int digit = d >= '0' && d <= '9' ? static_cast<int>(d - '0')
                    : IsLetter(d)        ? static_cast<int>((d | 0x20) - 'a') + 10
                                         : 99;
        if (digit >= base) break;
        value = value * base + digit;
      }
      if (count == 0 || value > kLastCharacter) Fail("the number of a character");
      return value;
    };
    switch (c) {
      case 'a':
        return '\a';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'v':
        return '\v';
      case 'x': {
        if (!Take("{")) return digits(16, 2);
        char32_t value = digits(16, 6);
        if (!Take("}")) Fail("the number of a character");
        return value;
      }
      case '0':
        --at_;
        return digits(8, 3);
      default:
        // Letters are kept for meanings to come; \p and \1 have one that is not offered here.
        if (IsWord(c) && c != '_') Fail("no escape that has no meaning here");
        return c;
    }
  }
  Part Class() {
    bool is_negated = Take("^");
    std::vector<Range> ranges;
    for (bool first = true; first || Peek() != ']'; first = false) {
      if (!More()) Fail("a ']' for each '['");
      if (Take("[:")) {
        bool other = Take("^");
        std::string name;
        while (IsLetter(Peek())) name += static_cast<char>(Next());
        if (!Take(":]")) Fail("a class such as [:alpha:]");
        for (Range r : Ranges(name, other)) ranges.push_back(r);
        continue;
      }
      if (Peek() == '\\') {
        if (auto named = ShortClass(Peek(1))) {
          at_ += 2;
          ranges.insert(ranges.end(), named->begin(), named->end());
          continue;
        }
      }
      char32_t low = ClassCharacter(), high = low;
      if (Peek() == '-' && Peek(1) != ']' && at_ + 1 < text_.size()) {
        Next();
        high = ClassCharacter();
      }
      if (high < low) Fail("ranges in order");
      ranges.push_back({low, high});
    }
    Next();
    return Set(std::move(ranges), is_negated);
  }
  char32_t ClassCharacter() { return Take("\\") ? EscapedCharacter() : Next(); }

  std::string_view pattern_;
  std::u32string text_;
  Regex* regex_;
  size_t at_ = 0;
  int depth_ = 0, work_ = 0;
  Flags flags_;
};

Regex::Regex(std::string_view pattern) { RegexParser(pattern, this).Run(); }

/// Adds the steps that read a character, or end, and are reached without reading one.
void Regex::Follow(int32_t step, const Place& place, std::vector<int32_t>* active,
                   std::vector<bool>* seen) const {
  std::vector<int32_t> open{step};
  while (!open.empty()) {
    int32_t at = open.back();
    open.pop_back();
    if ((*seen)[at]) continue;
    (*seen)[at] = true;
    const Step& s = steps_[at];
    bool at_word = IsWord(place.before) != IsWord(place.after), goes_on = false;
    switch (s.kind) {
      case Step::kSet:
      case Step::kDone:
        active->push_back(at);
        continue;
      case Step::kSplit:
        open.push_back(s.other);
        goes_on = true;
        break;
      case Step::kTextBegin:
        goes_on = place.at_begin;
        break;
      case Step::kTextEnd:
        goes_on = place.at_end;
        break;
      case Step::kLineBegin:
        goes_on = place.at_begin || place.before == '\n';
        break;
      case Step::kLineEnd:
        goes_on = place.at_end || place.after == '\n';
        break;
      case Step::kWord:
        goes_on = at_word;
        break;
      case Step::kNotWord:
        goes_on = !at_word;
        break;
    }
    if (goes_on) open.push_back(s.next);
  }
}
bool Regex::FullMatch(std::string_view text) const {
  std::u32string characters = DecodeUtf8(text);
  size_t size = characters.size();
  auto place_of = [&](size_t i) {
    return Place{i == 0, i == size, i ? characters[i - 1] : 0, i < size ? characters[i] : 0};
  };
  std::vector<int32_t> active, next;
  std::vector<bool> seen(steps_.size());
  Follow(begin_, place_of(0), &active, &seen);
  for (size_t i = 0; i < size && !active.empty(); ++i) {
    next.clear();
    seen.assign(steps_.size(), false);
    for (int32_t at : active) {
      const Step& s = steps_[at];
      if (s.kind != Step::kSet) continue;
      bool inside = std::any_of(s.ranges.begin(), s.ranges.end(), [&](const Range& r) {
        return r.low <= characters[i] && characters[i] <= r.high;
      });
      if (inside != s.is_negated) Follow(s.next, place_of(i + 1), &next, &seen);
    }
    std::swap(active, next);
  }
  return std::any_of(active.begin(), active.end(),
                     [&](int32_t at) { return steps_[at].kind == Step::kDone; });
}

}  // namespace tvm::runtime
