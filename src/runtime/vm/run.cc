// SPDX-License-Identifier: Apache-2.0
// What operators without a kernel of their own call when they run: printing, assertions, results
// whose size depends on the data.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "runtime/vm/program.h"
#include "tvm/runtime/data_type.h"

namespace tvm::runtime::vm {
namespace {
constexpr DLDevice kHost{kDLCPU, 0};

float HalfToFloat(uint16_t half) {
  int exponent = half >> 10 & 31, mantissa = half & 1023;
  float value = exponent == 31  ? (mantissa ? NAN : INFINITY)
                : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return half >> 15 ? -value : value;
}
float BFloat16ToFloat(uint16_t bits) {
  uint32_t word = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}
template <class T>
T LoadAs(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
/// Calls `f` with one element as bool, int64, uint64 or double.
template <class F>
auto WithElement(DataType t, const char* at, F f) {
  if (t.is_bool()) return f(*at != 0);
  if (t.is_int() && t.bits() == 8) return f(int64_t{LoadAs<int8_t>(at)});
  if (t.is_int() && t.bits() == 16) return f(int64_t{LoadAs<int16_t>(at)});
  if (t.is_int() && t.bits() == 32) return f(int64_t{LoadAs<int32_t>(at)});
  if (t.is_int() && t.bits() == 64) return f(LoadAs<int64_t>(at));
  if (t.is_uint() && t.bits() == 8) return f(uint64_t{LoadAs<uint8_t>(at)});
  if (t.is_uint() && t.bits() == 16) return f(uint64_t{LoadAs<uint16_t>(at)});
  if (t.is_uint() && t.bits() == 32) return f(uint64_t{LoadAs<uint32_t>(at)});
  if (t.is_uint() && t.bits() == 64) return f(LoadAs<uint64_t>(at));
  if (t.is_float16()) return f(double{HalfToFloat(LoadAs<uint16_t>(at))});
  if (t.is_bfloat16()) return f(double{BFloat16ToFloat(LoadAs<uint16_t>(at))});
  if (t == DataType::Float(32)) return f(double{LoadAs<float>(at)});
  if (t == DataType::Float(64)) return f(LoadAs<double>(at));
  TVM_FFI_THROW(TypeError) << "relax.run: elements of " << t << " are not supported";
  TVM_FFI_UNREACHABLE();
}
Tensor HostCopy(const Tensor& t) {
  if (t.device().device_type == kDLCPU && t.is_contiguous() && t.byte_offset() == 0) return t;
  Tensor host = Empty(t.shape(), t.dtype(), kHost);
  CopyTensor(t, host);
  return host;
}

// ---- text -------------------------------------------------------------------------------------
/// The shortest text that reads back as the number; `dtype` says how many digits count.
std::string NumberText(double value, DataType dtype) {
  char text[40];
  char* end = dtype.bits() <= 32 ? std::to_chars(text, text + 40, static_cast<float>(value)).ptr
                                 : std::to_chars(text, text + 40, value).ptr;
  std::string s(text, end);
  bool plain = s.find_first_not_of("-0123456789") == std::string::npos;
  return plain ? s + "." : s;
}
std::string ElementText(DataType dtype, const char* at) {
  return WithElement(dtype, at, [&](auto value) -> std::string {
    using T = decltype(value);
    if constexpr (std::is_same_v<T, bool>) return value ? "True" : "False";
    if constexpr (std::is_same_v<T, double>) return NumberText(value, dtype);
    return std::to_string(value);
  });
}
/// As NumPy prints: nested brackets, long axes cut in the middle.
std::string TensorText(const Tensor& t, int axis, const char* data, int64_t limit) {
  DataType dtype(t.dtype());
  if (axis == t.ndim()) return ElementText(dtype, data);
  int64_t extent = t.shape()[axis], step = t.strides()[axis] * dtype.bytes();
  bool last = axis + 1 == t.ndim();
  std::string separator = last ? " " : std::string(t.ndim() - axis - 1, '\n') +
                                           std::string(axis + 1, ' ');
  std::string text = "[";
  for (int64_t i = 0; i < extent; ++i) {
    if (i > 0) text += separator;
    if (limit >= 0 && i == limit && extent > 2 * limit) {
      text += "..." + separator;
      i = extent - limit;
    }
    text += TensorText(t, axis + 1, data + i * step, limit);
  }
  return text + "]";
}
std::string ValueText(const Any& value) {
  if (value == nullptr) return "None";
  if (auto tensor = As<Tensor>(value)) {
    Tensor host = HostCopy(*tensor);
    return TensorText(host, 0, static_cast<const char*>(host.data_ptr()),
                      host.numel() > 1000 ? 3 : -1);
  }
  if (auto text = value.as<String>()) return std::string(View(*text));
  if (auto flag = value.as<bool>()) return *flag ? "True" : "False";
  if (auto number = value.as<int64_t>()) return std::to_string(*number);
  if (auto number = value.as<double>()) {
    std::string text = NumberText(*number, DataType::Float(64));
    return text.back() == '.' ? text + "0" : text;
  }
  if (auto dtype = value.as<DLDataType>()) return ffi::DLDataTypeToString(*dtype);
  auto list = [](const auto& items, auto&& item_text) {
    std::string text = "(";
    for (size_t i = 0; i < items.size(); ++i) text += (i ? ", " : "") + item_text(items[i]);
    return text + (items.size() == 1 ? ",)" : ")");
  };
  if (auto shape = value.as<Shape>()) {
    return list(*shape, [](int64_t extent) { return std::to_string(extent); });
  }
  if (auto tuple = value.as<Array<Any>>()) {
    return list(*tuple, [](const Any& item) { return ValueText(item); });
  }
  return "<" + AnyView(value).GetTypeKey() + ">";
}
/// Python's format with `{}`, `{0}`, `{{` and `}}`. Without a format the values stand side by side.
std::string Formatted(std::string_view format, const std::vector<std::string>& values,
                      const char* separator) {
  std::string text;
  if (format.empty()) {
    for (size_t i = 0; i < values.size(); ++i) text += (i ? separator : "") + values[i];
    return text;
  }
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    char c = format[i];
    bool doubled = i + 1 < format.size() && format[i + 1] == c;
    if ((c == '{' || c == '}') && doubled) {
      text += c;
      ++i;
    } else if (c != '{') {
      text += c;
    } else {
      size_t close = std::min(format.find('}', i), format.size());
      std::string_view field = format.substr(i + 1, close - i - 1);
      size_t index = next++;
      auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), index);
      bool whole = field.empty() || (error == std::errc() && end == field.data() + field.size());
      if (close == format.size() || !whole || index >= values.size()) {
        TVM_FFI_THROW(ValueError) << "format: expected '{}' or '{number}' for one of "
                                  << values.size() << " values in '" << format << "'";
      }
      text += values[index];
      i = close;
    }
  }
  return text;
}
std::vector<std::string> Texts(ffi::PackedArgs args) {
  std::vector<std::string> texts;
  for (int i = 0; i < args.size(); ++i) texts.push_back(ValueText(Any(args[i])));
  return texts;
}
/// format, values…
void Print(ffi::PackedArgs args, Any*) {
  String format = args.size() ? args[0].cast<String>() : String("");
  std::string text =
      Formatted(View(format), Texts(args.size() ? args.Slice(1) : args), " ") + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}
/// condition, [format, values…]
void AssertOp(ffi::PackedArgs args, Any*) {
  if (args.size() == 0) TVM_FFI_THROW(TypeError) << "assert_op: expected a condition";
  auto tensor = As<Tensor>(args[0]);
  bool boolean = tensor ? DataType(tensor->dtype()).is_bool() && tensor->ndim() == 0
                        : args[0].as<bool>().has_value() || args[0].as<int64_t>().has_value();
  if (!boolean) {
    TVM_FFI_THROW(ValueError) << "assert_op: expected a boolean scalar as condition, got "
                              << (tensor ? "a tensor of " + DataType(tensor->dtype()).str() +
                                               " with " + std::to_string(tensor->ndim()) + " axes"
                                         : args[0].GetTypeKey());
  }
  if (ReadCondition(args[0])) return;
  String format = args.size() > 1 ? args[1].cast<String>() : String("");
  std::string text =
      args.size() > 1 ? Formatted(View(format), Texts(args.Slice(2)), ", ") : std::string();
  TVM_FFI_THROW(AssertionError) << "Assertion Failed" << (text.empty() ? "" : ": ") << text;
}

// ---- sizes that depend on the data ------------------------------------------------------------
/// One row of indices per axis, as numpy.nonzero.
Tensor Nonzero(Tensor t) {
  Tensor host = HostCopy(t);
  DataType dtype(host.dtype());
  auto* data = static_cast<const char*>(host.data_ptr());
  std::vector<int64_t> found;
  for (int64_t i = 0, n = host.numel(); i < n; ++i) {
    if (WithElement(dtype, data + i * dtype.bytes(), [](auto v) { return v != decltype(v){0}; })) {
      found.push_back(i);
    }
  }
  int64_t rows = host.ndim(), count = static_cast<int64_t>(found.size());
  Tensor out = Empty({rows, count}, DataType::Int(64), kHost);
  auto* indices = static_cast<int64_t*>(out.data_ptr());
  for (int64_t j = 0; j < count; ++j) {
    int64_t rest = found[j];
    for (int64_t axis = rows - 1; axis >= 0; --axis) {
      indices[axis * count + j] = rest % host.shape()[axis];
      rest /= host.shape()[axis];
    }
  }
  return out;
}

/// The distinct items of a tensor, in order; an item is an element, or what an index of the first
/// axis selects.
struct UniqueItems {
  Tensor host;
  int64_t count, width;       // items, elements of each
  std::vector<int64_t> order;  // items sorted, equal ones together, the first occurrence first
  std::vector<int64_t> group;  // of each place in `order`

  UniqueItems(const Tensor& t, bool flat) : host(HostCopy(t)) {
    count = flat ? host.numel() : host.shape()[0];
    width = flat ? 1 : count == 0 ? 0 : host.numel() / count;
    order.resize(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return Compare(a, b) < 0; });
    for (int64_t i = 0; i < count; ++i) {
      bool same = i > 0 && Compare(order[i - 1], order[i]) == 0;
      group.push_back(i == 0 ? 0 : group.back() + (same ? 0 : 1));
    }
  }
  /// NaN is one value, behind all others.
  int Compare(int64_t a, int64_t b) const {
    DataType dtype(host.dtype());
    auto* data = static_cast<const char*>(host.data_ptr());
    for (int64_t i = 0; i < width; ++i) {
      const char* y = data + (b * width + i) * dtype.bytes();
      int result = WithElement(dtype, data + (a * width + i) * dtype.bytes(), [&](auto u) {
        return WithElement(dtype, y, [&](auto v) {
          if constexpr (std::is_same_v<decltype(u), double> &&
                        std::is_same_v<decltype(v), double>) {
            if (std::isnan(u) || std::isnan(v)) return int{std::isnan(u)} - int{std::isnan(v)};
          }
          if constexpr (std::is_same_v<decltype(u), decltype(v)>) return int{u > v} - int{u < v};
          return 0;  // one dtype: never
        });
      });
      if (result != 0) return result;
    }
    return 0;
  }
};
/// data, [sorted, return_index, return_inverse, return_counts[, axis]]: as numpy.unique; unsorted,
/// in the order of first occurrence.
void Unique(ffi::PackedArgs args, Any* result) {
  if (args.size() < 1 || args.size() > 6) {
    TVM_FFI_THROW(TypeError) << "relax.run.unique: expected 1 to 6 arguments, got " << args.size();
  }
  auto flag = [&](int i, bool missing) {
    return args.size() > i ? args[i].cast<bool>() : missing;
  };
  auto data = Cast<Tensor>(args[0], "unique");
  bool flat = args.size() < 6 || args[5] == nullptr;
  if (!flat && (args[5].cast<int64_t>() != 0 || data.ndim() == 0)) {
    TVM_FFI_THROW(NotImplementedError) << "unique: expected axis None or 0, got "
                                       << args[5].cast<int64_t>();
  }
  UniqueItems items(data, flat);
  int64_t groups = items.count == 0 ? 0 : items.group.back() + 1;
  std::vector<int64_t> first(groups), counts(groups), inverse(items.count), rank(groups);
  for (int64_t i = items.count - 1; i >= 0; --i) {
    first[items.group[i]] = items.order[i];
    inverse[items.order[i]] = items.group[i];
    ++counts[items.group[i]];
  }
  std::vector<int64_t> shown(groups);
  std::iota(shown.begin(), shown.end(), 0);
  if (!flag(1, true)) {
    std::sort(shown.begin(), shown.end(),
              [&](int64_t a, int64_t b) { return first[a] < first[b]; });
  }
  for (int64_t i = 0; i < groups; ++i) rank[shown[i]] = i;
  std::vector<int64_t> extents(items.host.shape().begin(), items.host.shape().end());
  if (flat) extents.resize(1);
  if (extents.empty()) extents.resize(1);
  extents[0] = groups;
  Tensor values = Empty({extents.data(), extents.size()}, data.dtype(), kHost);
  int64_t bytes = items.width * DataType(data.dtype()).bytes();
  for (int64_t i = 0; i < groups; ++i) {
    std::memcpy(static_cast<char*>(values.data_ptr()) + i * bytes,
                static_cast<const char*>(items.host.data_ptr()) + first[shown[i]] * bytes, bytes);
  }
  auto vector = [](int64_t n, auto&& element) {
    Tensor t = Empty({n}, DataType::Int(64), kHost);
    for (int64_t i = 0; i < n; ++i) static_cast<int64_t*>(t.data_ptr())[i] = element(i);
    return t;
  };
  Array<Any> all{values};
  if (flag(2, false)) all.push_back(vector(groups, [&](int64_t i) { return first[shown[i]]; }));
  if (flag(3, false)) {
    all.push_back(vector(items.count, [&](int64_t i) { return rank[inverse[i]]; }));
  }
  if (flag(4, false)) all.push_back(vector(groups, [&](int64_t i) { return counts[shown[i]]; }));
  *result = all.size() == 1 ? Any(values) : Any(all);
}

TVM_REGISTER() {
  auto packed = [](const char* name, auto fn) {
    Function::SetGlobal(name, Function::FromPacked(fn));
  };
  packed("relax.run.print", &Print);
  packed("relax.run.assert_op", &AssertOp);
  packed("relax.run.unique", &Unique);
  Def("relax.run.nonzero", &Nonzero, "The indices of elements that are not zero.", Arg("data"));
}
}  // namespace
}  // namespace tvm::runtime::vm
