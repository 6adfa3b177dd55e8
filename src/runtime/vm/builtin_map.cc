// SPDX-License-Identifier: Apache-2.0
// Builtins about maps from numbers or words to numbers or words: their values in the order that
// keys say.
#include <algorithm>
#include <charconv>

#include "runtime/host_tensor.h"
#include "tvm/runtime/data_type.h"

namespace tvm::runtime::vm::map {
namespace {
using Items = ffi::Map<Any, Any>;

int64_t IntegerOf(const Any& value) {
  auto number = value.as<int64_t>();
  if (!number)
    TVM_FFI_THROW(TypeError) << "map: expected an integer as a key, got " << value.GetTypeKey();
  return *number;
}
/// `f` of each value, None where a key has none. The order is that of `keys`: a vector of int64 or
/// an array of words, the numbers below an integer, or None for the map's own keys, from the
/// lowest.
template <class F>
void VisitValues(const Items& map, const Any& keys, F f) {
  auto visit = [&](const Any& key) {
    auto it = map.find(key);
    f(it == map.end() ? Any() : Any((*it).second));
  };
  if (keys == nullptr) {
    std::vector<std::pair<int64_t, Any>> sorted;
    for (const auto& [key, value] : map) sorted.emplace_back(IntegerOf(key), value);
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [key, value] : sorted) f(value);
  } else if (auto count = keys.as<int64_t>()) {
    for (int64_t i = 0; i < *count; ++i) visit(Any(i));
  } else if (auto numbers = keys.as<Tensor>()) {
    Tensor host = HostTensor(*numbers);
    if (DataType(host.dtype()) != DataType::Int(64))
      TVM_FFI_THROW(TypeError) << "map: expected keys of int64, got " << DataType(host.dtype());
    auto* data = static_cast<const int64_t*>(host.data_ptr());
    for (int64_t i = 0; i < host.numel(); ++i) visit(Any(data[i]));
  } else {
    for (const Any& word : keys.cast<Array<Any>>()) visit(word);
  }
}
template <class T>
T NumberOf(const Any& value) {
  if (value == nullptr) return 0;
  if (auto number = value.as<int64_t>()) return static_cast<T>(*number);
  auto number = value.as<double>();
  if (!number)
    TVM_FFI_THROW(TypeError) << "map: expected a number as a value, got " << value.GetTypeKey();
  return static_cast<T>(*number);
}
template <class T>
Tensor RowOf(const Items& map, const Any& keys, DataType dtype) {
  std::vector<T> row;
  VisitValues(map, keys, [&](const Any& value) { row.push_back(NumberOf<T>(value)); });
  int64_t shape[] = {1, static_cast<int64_t>(row.size())};
  Tensor result = Empty({shape, 2}, dtype, {kDLCPU, 0});
  std::copy(row.begin(), row.end(), static_cast<T*>(result.data_ptr()));
  return result;
}
Tensor Numbers(Items map, Any keys, DataType dtype) {
  if (dtype == DataType::Float(32)) return RowOf<float>(map, keys, dtype);
  if (dtype == DataType::Float(64)) return RowOf<double>(map, keys, dtype);
  if (dtype == DataType::Int(64)) return RowOf<int64_t>(map, keys, dtype);
  TVM_FFI_THROW(TypeError) << "map: expected float32, float64 or int64, got " << dtype;
}
/// Numbers have six digits behind the point.
Array<String> Words(Items map, Any keys, String missing) {
  Array<String> words;
  VisitValues(map, keys, [&](const Any& value) {
    if (value == nullptr) return words.push_back(missing);
    if (auto text = value.as<String>()) return words.push_back(*text);
    char digits[400];
    auto end = std::to_chars(digits, digits + sizeof(digits), NumberOf<double>(value),
                             std::chars_format::fixed, 6)
                   .ptr;
    words.push_back(String(std::string(digits, end)));
  });
  return words;
}
Shape ShapeOf(Items map) { return Shape({1, static_cast<int64_t>(map.size())}); }
}  // namespace

TVM_REGISTER() {
  Def("vm.builtin.map.shape", &ShapeOf, "The shape of a row of its values.", Arg("map"));
  Def("vm.builtin.map.numbers", &Numbers,
      "The values at keys as a row, 0 where there is none. Keys are a vector or an array; a number "
      "for all below it; None for those of the map from the lowest on.",
      Arg("map"), Arg("keys"), Arg("dtype"));
  Def("vm.builtin.map.words", &Words, "The same as texts.", Arg("map"), Arg("keys"),
      Arg("missing"));
}
}  // namespace tvm::runtime::vm::map
