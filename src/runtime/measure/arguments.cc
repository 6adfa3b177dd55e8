// SPDX-License-Identifier: Apache-2.0
// Inputs for candidates, and the comparison of their outputs.
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>

#include "runtime/measure/measure.h"

namespace tvm::runtime::measure {
namespace {
/// A binary floating-point format of at most 16 bits.
struct SmallFloat {
  int exponent, mantissa;
  bool finite_only;  // no infinities; NaN is all ones
  double Decode(uint32_t bits) const {
    uint32_t m = bits & ((1u << mantissa) - 1), e = (bits >> mantissa) & ((1u << exponent) - 1);
    int bias = (1 << (exponent - 1)) - 1;
    double sign = bits >> (exponent + mantissa) & 1 ? -1 : 1;
    bool all_ones = e == (1u << exponent) - 1;
    if (all_ones && !finite_only) return m ? NAN : sign * INFINITY;
    if (all_ones && m == (1u << mantissa) - 1) return NAN;
    if (e == 0) return sign * std::ldexp(m, 1 - bias - mantissa);
    return sign * std::ldexp(m + (1u << mantissa), static_cast<int>(e) - bias - mantissa);
  }
  /// A value in [1/8, 1).
  uint32_t Random(std::mt19937_64& rng) const {
    uint32_t bias = (1u << (exponent - 1)) - 1;
    return (bias - 1 - rng() % 3) << mantissa | (rng() & ((1u << mantissa) - 1));
  }
};
std::optional<SmallFloat> SmallFloatOf(DLDataType t) {
  if (t.code == kDLFloat && t.bits == 16) return SmallFloat{5, 10, false};
  if (t.code == kDLBfloat) return SmallFloat{8, 7, false};
  if (t.code == kDLFloat8_e4m3fn) return SmallFloat{4, 3, true};
  if (t.code == kDLFloat8_e5m2) return SmallFloat{5, 2, false};
  return std::nullopt;
}
/// Relative to the value and to the size of the values around it: the order of a reduction is
/// free. 0: bit for bit.
double Tolerance(DLDataType t) {
  if (t.code == kDLFloat && t.bits == 64) return 1e-9;
  if (t.code == kDLFloat && t.bits == 32) return 1e-3;
  if (auto small = SmallFloatOf(t)) return 8 * std::ldexp(1.0, -small->mantissa);
  return 0;
}
/// Calls `use` with a function from (data, index) to the value there: the type is looked at once,
/// not for every element.
template <class F>
auto WithValues(DLDataType t, F&& use) {
  auto plain = []<class T>(T*) {
    return [](const void* data, uint64_t i) -> double { return static_cast<const T*>(data)[i]; };
  };
  if (t.code == kDLFloat && t.bits == 64) return use(plain(static_cast<double*>(nullptr)));
  if (t.code == kDLFloat && t.bits == 32) return use(plain(static_cast<float*>(nullptr)));
  return use([small = *SmallFloatOf(t), wide = t.bits == 16](const void* data, uint64_t i) {
    return small.Decode(wide ? static_cast<const uint16_t*>(data)[i]
                             : static_cast<const uint8_t*>(data)[i]);
  });
}
/// Values that keep programs well behaved: positive and at most one for floats (no NaN from roots
/// and logarithms, no cancellation in sums), small for integers (they may be indices).
void Fill(const Argument& a, uint64_t seed) {
  std::mt19937_64 rng(seed);
  DLDataType t = a.dtype;
  uint64_t n = a.bytes * 8 / t.bits;
  auto fill = [&]<class T>(T*, auto&& next) {
    auto* p = reinterpret_cast<T*>(a.initial);
    for (uint64_t i = 0; i < n; ++i) p[i] = static_cast<T>(next());
  };
  auto unit = [&] { return static_cast<double>(rng() >> 11) * 0x1p-53; };
  auto integer = [&] { return rng() % 8; };
  if (t.code == kDLFloat && t.bits == 64) return fill(static_cast<double*>(nullptr), unit);
  if (t.code == kDLFloat && t.bits == 32) return fill(static_cast<float*>(nullptr), unit);
  if (auto small = SmallFloatOf(t)) {
    auto next = [&] { return small->Random(rng); };
    return t.bits == 8 ? fill(static_cast<uint8_t*>(nullptr), next)
                       : fill(static_cast<uint16_t*>(nullptr), next);
  }
  if (t.code == kDLBool) return fill(static_cast<uint8_t*>(nullptr), [&] { return rng() & 1; });
  switch (t.bits) {
    case 64:
      return fill(static_cast<uint64_t*>(nullptr), integer);
    case 32:
      return fill(static_cast<uint32_t*>(nullptr), integer);
    case 16:
      return fill(static_cast<uint16_t*>(nullptr), integer);
    case 8:
      return fill(static_cast<uint8_t*>(nullptr), integer);
    default:
      std::memset(a.initial, 0x11, a.bytes);  // several elements in a byte
  }
}
uint64_t Aligned(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }
}  // namespace

Arguments::Arguments(const ffi::json::Array& specs, uint64_t seed) {
  for (const Any& item : specs) {
    auto spec = item.cast<ffi::json::Array>();
    Argument a;
    a.dtype = ffi::StringToDLDataType(spec[0].cast<String>());
    for (const Any& extent : spec[1].cast<ffi::json::Array>())
      a.shape.push_back(extent.cast<int64_t>());
    a.bytes = DataSize(ShapeView(a.shape.data(), a.shape.size()), a.dtype);
    total_ += 2 * Aligned(a.bytes);
    list_.push_back(a);
  }
  if (total_ == 0) return;
  void* p = mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    TVM_FFI_THROW(MemoryError) << "measure: no memory for arguments of " << total_ << " bytes";
  }
  memory_ = static_cast<char*>(p);
  char* at = memory_;
  for (Argument& a : list_) {
    a.initial = at;
    at += Aligned(a.bytes);
    a.expected = at;
    at += Aligned(a.bytes);
    Fill(a, seed++);
  }
}
Arguments::~Arguments() {
  if (memory_) munmap(memory_, total_);
}

std::string Difference(const Argument& a, const void* got) {
  if (std::memcmp(a.expected, got, a.bytes) == 0) return "";
  double tolerance = Tolerance(a.dtype);
  std::ostringstream os;
  if (tolerance == 0) {
    auto [p, q] = std::mismatch(a.expected, a.expected + a.bytes, static_cast<const char*>(got));
    os << "element " << static_cast<uint64_t>(p - a.expected) * 8 / a.dtype.bits;
    return os.str();
  }
  return WithValues(a.dtype, [&](auto value) -> std::string {
    uint64_t n = a.bytes * 8 / a.dtype.bits, finite = 0;
    double squares = 0;
    for (uint64_t i = 0; i < n; ++i) {
      if (double v = value(a.expected, i); std::isfinite(v)) {
        squares += v * v;
        ++finite;
      }
    }
    double scale = finite ? std::sqrt(squares / static_cast<double>(finite)) : 0;
    for (uint64_t i = 0; i < n; ++i) {
      double want = value(a.expected, i), have = value(got, i);
      if (want == have || (std::isnan(want) && std::isnan(have))) continue;
      if (std::abs(want - have) <= tolerance * (std::abs(want) + scale)) continue;
      os << "element " << i << ": expected " << want << ", got " << have;
      return os.str();
    }
    return "";
  });
}

}  // namespace tvm::runtime::measure
