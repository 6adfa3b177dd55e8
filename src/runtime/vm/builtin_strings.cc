// SPDX-License-Identifier: Apache-2.0
// Builtins about strings. In a graph a tensor of strings is two values: words, an array, and the
// places of its elements there, a tensor of int64. So operators that only move elements are those
// of numbers.
#include <wctype.h>

#include <charconv>
#include <clocale>
#include <map>
#include <set>

#include "runtime/regex.h"
#include "runtime/utf8.h"
#include "tvm/runtime/data_type.h"
#include "tvm/runtime/string_tensor.h"

namespace tvm::runtime {
StringTensor::StringTensor(Shape shape, Array<String> data) {
  if (shape.Product() != static_cast<int64_t>(data.size()))
    TVM_FFI_THROW(ValueError) << "StringTensor: expected " << shape.Product() << " strings for "
                              << shape << ", got " << data.size();
  data_ = ffi::make_object<StringTensorObj>(std::move(shape), std::move(data));
}

namespace vm::strings {
namespace {
using Words = Array<String>;
const DLDevice kHost{kDLCPU, 0};

template <class T>
T* DataOf(const Tensor& t) {
  return reinterpret_cast<T*>(static_cast<char*>(t.data_ptr()) + t.byte_offset());
}
/// A tensor on the CPU, contiguous; a copy where it is not.
Tensor OnHost(const Tensor& t) {
  if (t.device().device_type == kDLCPU && t.is_contiguous()) return t;
  Tensor copy = Empty(t.shape(), t.dtype(), kHost);
  CopyTensor(t, copy);
  return copy;
}
/// The elements of a tensor of strings.
class Elements {
 public:
  Elements(Words words, const Tensor& places) : words_(std::move(words)), places_(OnHost(places)) {
    if (DataType(places_.dtype()) != DataType::Int(64))
      TVM_FFI_THROW(TypeError) << "strings: expected places of int64, got "
                               << DataType(places_.dtype());
  }
  int64_t size() const { return places_.numel(); }
  ShapeView shape() const { return places_.shape(); }
  std::string operator[](int64_t i) const {
    int64_t place = DataOf<int64_t>(places_)[i];
    if (place < 0 || place >= static_cast<int64_t>(words_.size()))
      TVM_FFI_THROW(IndexError) << "strings: expected a place below " << words_.size() << ", got "
                                << place;
    return words_[place];
  }

 private:
  Words words_;
  Tensor places_;
};
/// `f` of each element, as a tensor.
template <class T, class F>
Tensor MapTo(const Elements& x, DataType dtype, F f) {
  Tensor result = Empty(x.shape(), dtype, kHost);
  for (int64_t i = 0; i < x.size(); ++i) DataOf<T>(result)[i] = f(i);
  return result;
}

Words WordsOf(StringTensor x) { return x->data; }
Shape ShapeOf(StringTensor x) { return x->shape; }
StringTensor Make(Words words, Tensor places) {
  Elements x(std::move(words), places);
  Words data;
  for (int64_t i = 0; i < x.size(); ++i) data.push_back(x[i]);
  return StringTensor(Shape(x.shape()), data);
}
Words Concat(Words a, Tensor places_a, Words b, Tensor places_b) {
  Elements x(std::move(a), places_a), y(std::move(b), places_b);
  if (x.size() != y.size())
    TVM_FFI_THROW(ValueError) << "strings: expected as many strings on both sides, got " << x.size()
                              << " and " << y.size();
  Words data;
  for (int64_t i = 0; i < x.size(); ++i) data.push_back(x[i] + y[i]);
  return data;
}
Words Join(Words a, Words b) {
  for (const String& word : b) a.push_back(word);
  return a;
}
Tensor Count(Words words) {
  Tensor count = Empty({}, DataType::Int(64), kHost);
  *DataOf<int64_t>(count) = static_cast<int64_t>(words.size());
  return count;
}
Tensor Equal(Words a, Tensor places_a, Words b, Tensor places_b) {
  Elements x(std::move(a), places_a), y(std::move(b), places_b);
  if (x.size() != y.size())
    TVM_FFI_THROW(ValueError) << "strings: expected as many strings on both sides, got " << x.size()
                              << " and " << y.size();
  return MapTo<bool>(x, DataType::Bool(), [&](int64_t i) { return x[i] == y[i]; });
}
Tensor FullMatch(Words words, Tensor places, String pattern) {
  Regex regex(View(pattern));
  Elements x(std::move(words), places);
  return MapTo<bool>(x, DataType::Bool(), [&](int64_t i) { return regex.FullMatch(x[i]); });
}
Tensor Lookup(Words words, Tensor places, Words keys) {
  std::map<std::string, int64_t> table;
  for (size_t i = 0; i < keys.size(); ++i) table.emplace(keys[i], static_cast<int64_t>(i));
  Elements x(std::move(words), places);
  return MapTo<int64_t>(x, DataType::Int(64), [&](int64_t i) {
    auto it = table.find(x[i]);
    return it == table.end() ? static_cast<int64_t>(keys.size()) : it->second;
  });
}

// ---- pieces -------------------------------------------------------------------------------------
constexpr std::string_view kSpaces = " \t\n\v\f\r";

std::vector<std::string_view> Pieces(std::string_view text, std::string_view delimiter,
                                     int64_t splits) {
  std::vector<std::string_view> pieces;
  if (!delimiter.empty()) {
    size_t from = 0, at;
    while (splits-- != 0 && (at = text.find(delimiter, from)) != std::string_view::npos) {
      pieces.push_back(text.substr(from, at - from));
      from = at + delimiter.size();
    }
    pieces.push_back(text.substr(from));
    return pieces;
  }
  // Runs of spaces separate, and none is part of a piece but of the last when splits run out.
  size_t from = text.find_first_not_of(kSpaces);
  while (from != std::string_view::npos) {
    size_t to = splits-- == 0 ? text.size() : text.find_first_of(kSpaces, from);
    pieces.push_back(text.substr(from, to - from));
    from = to >= text.size() ? std::string_view::npos : text.find_first_not_of(kSpaces, to);
  }
  return pieces;
}
/// [words, places with one axis more, how many pieces each has]; empty strings fill up.
Array<Any> Split(Words words, Tensor places, String delimiter, int64_t splits) {
  Elements x(std::move(words), places);
  std::vector<std::string> texts;
  for (int64_t i = 0; i < x.size(); ++i) texts.push_back(x[i]);
  std::vector<std::vector<std::string_view>> rows;
  size_t width = 0;
  for (const std::string& text : texts) {
    rows.push_back(Pieces(text, View(delimiter), splits));
    width = std::max(width, rows.back().size());
  }
  std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
  shape.push_back(static_cast<int64_t>(width));
  Tensor where = Empty(ShapeView(shape.data(), shape.size()), DataType::Int(64), kHost);
  Words data{String("")};
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < width; ++c) {
      bool has = c < rows[r].size();
      DataOf<int64_t>(where)[r * width + c] = has ? static_cast<int64_t>(data.size()) : 0;
      if (has) data.push_back(String(std::string(rows[r][c])));
    }
  }
  Tensor counts = MapTo<int64_t>(x, DataType::Int(64),
                                 [&](int64_t i) { return static_cast<int64_t>(rows[i].size()); });
  return {data, where, counts};
}

// ---- letters ------------------------------------------------------------------------------------
std::string ChangeCase(std::string_view text, bool upper) {
  static locale_t letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  std::u32string out = DecodeUtf8(text);
  for (char32_t& c : out) {
    if (c < 0x80) {
      c = static_cast<char32_t>(upper ? std::toupper(static_cast<int>(c))
                                      : std::tolower(static_cast<int>(c)));
    } else if (!letters) {
      TVM_FFI_THROW(RuntimeError) << "strings: expected the locale C.UTF-8 for letters beyond "
                                     "ASCII, got none on this machine";
    } else {
      c = static_cast<char32_t>(upper ? towupper_l(c, letters) : towlower_l(c, letters));
    }
  }
  return EncodeUtf8(out);
}
String ChangedCase(std::string_view text, std::string_view change) {
  return change == "NONE" ? std::string(text) : ChangeCase(text, change == "UPPER");
}
/// The words of a row without stop words, in another case: [words, places].
Array<Any> Normalize(Words words, Tensor places, String change, bool is_case_sensitive,
                     Words stop_words) {
  Elements x(std::move(words), places);
  auto plain = [&](std::string_view text) {
    return is_case_sensitive ? std::string(text) : ChangeCase(text, false);
  };
  std::set<std::string> stops;
  for (const String& word : stop_words) stops.insert(plain(View(word)));
  Words data;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (!stops.count(plain(x[i]))) data.push_back(ChangedCase(x[i], View(change)));
  }
  if (data.empty()) data.push_back(String(""));
  std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
  shape.back() = static_cast<int64_t>(data.size());
  Tensor where = Empty(ShapeView(shape.data(), shape.size()), DataType::Int(64), kHost);
  for (int64_t i = 0; i < shape.back(); ++i) DataOf<int64_t>(where)[i] = i;
  return {data, where};
}

// ---- numbers ------------------------------------------------------------------------------------
/// Texts such as 1.5, 1e3, inf, NaN as float64; integers as int64.
template <class T>
T ParseNumber(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty() && kSpaces.find(rest.front()) != std::string_view::npos)
    rest.remove_prefix(1);
  while (!rest.empty() && kSpaces.find(rest.back()) != std::string_view::npos)
    rest.remove_suffix(1);
  if (!rest.empty() && rest.front() == '+') rest.remove_prefix(1);
  T value{};
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  bool overflows = error == std::errc::result_out_of_range && std::is_floating_point_v<T>;
  if (overflows) value = static_cast<T>(std::strtod(std::string(rest).c_str(), nullptr));
  if (rest.empty() || (error != std::errc() && !overflows) || end != rest.data() + rest.size())
    TVM_FFI_THROW(ValueError) << "strings: expected a number, got '" << text << "'";
  return value;
}
Tensor Parse(Words words, Tensor places, bool is_float) {
  Elements x(std::move(words), places);
  if (!is_float)
    return MapTo<int64_t>(x, DataType::Int(64),
                          [&](int64_t i) { return ParseNumber<int64_t>(x[i]); });
  return MapTo<double>(x, DataType::Float(64),
                       [&](int64_t i) { return ParseNumber<double>(x[i]); });
}
/// The shortest text that reads as the same number.
Words Format(Tensor numbers) {
  Tensor x = OnHost(numbers);
  DataType dtype(x.dtype());
  Words words;
  auto add = [&](auto value) {
    char text[64];
    if (value != value || value - value != 0)  // as the format spells them
      return words.push_back(String(value != value ? "NaN" : value > 0 ? "INF" : "-INF"));
    auto end = std::to_chars(text, text + sizeof(text), value).ptr;
    words.push_back(String(std::string(text, end)));
  };
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (dtype == DataType::Float(32)) {
      add(DataOf<float>(x)[i]);
    } else if (dtype == DataType::Float(64)) {
      add(DataOf<double>(x)[i]);
    } else if (dtype == DataType::Int(64)) {
      add(DataOf<int64_t>(x)[i]);
    } else {
      TVM_FFI_THROW(TypeError) << "strings: expected numbers of float32, float64 or int64, got "
                               << dtype;
    }
  }
  return words;
}
}  // namespace

TVM_REGISTER() {
  StringTensorObj::RuntimeTypeIndex();
  Def(
      "runtime.string_tensor", [](Shape s, Words d) { return StringTensor(s, d); },
      "A tensor of strings.", Arg("shape"), Arg("data"));
  Def("vm.builtin.strings.words", &WordsOf, "The elements.", Arg("x"));
  Def("vm.builtin.strings.shape", &ShapeOf, "The shape.", Arg("x"));
  Def("vm.builtin.strings.make", &Make, "A tensor of strings.", Arg("words"), Arg("places"));
  Def("vm.builtin.strings.concat", &Concat, "Pairs as one string each.", Arg("a"), Arg("places_a"),
      Arg("b"), Arg("places_b"));
  Def("vm.builtin.strings.join", &Join, "The words of both.", Arg("a"), Arg("b"));
  Def("vm.builtin.strings.count", &Count, "How many words there are.", Arg("words"));
  Def("vm.builtin.strings.equal", &Equal, "Whether pairs are equal.", Arg("a"), Arg("places_a"),
      Arg("b"), Arg("places_b"));
  Def("vm.builtin.strings.full_match", &FullMatch, "Whether all of a string matches.", Arg("words"),
      Arg("places"), Arg("pattern"));
  Def("vm.builtin.strings.lookup", &Lookup,
      "The number of the key that a string equals; the number of keys when there is none.",
      Arg("words"), Arg("places"), Arg("keys"));
  Def("vm.builtin.strings.split", &Split, "Pieces of each string.", Arg("words"), Arg("places"),
      Arg("delimiter"), Arg("splits"));
  Def("vm.builtin.strings.normalize", &Normalize, "Without stop words, in another case.",
      Arg("words"), Arg("places"), Arg("change"), Arg("is_case_sensitive"), Arg("stop_words"));
  Def("vm.builtin.strings.parse", &Parse, "Texts as numbers.", Arg("words"), Arg("places"),
      Arg("is_float"));
  Def("vm.builtin.strings.format", &Format, "Numbers as texts.", Arg("numbers"));
}
}  // namespace vm::strings
}  // namespace tvm::runtime
