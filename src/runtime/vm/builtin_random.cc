// SPDX-License-Identifier: Apache-2.0
// Builtins that make random numbers: a seed always gives the same ones; without a seed they are
// others with every call.
#include <atomic>
#include <cmath>
#include <random>

#include "tvm/runtime/data_type.h"
#include "tvm/runtime/tensor.h"

namespace tvm::runtime::vm::random {
namespace {
/// 64 random bits of a seed and a counter (the mixing of SplitMix64).
uint64_t Mix(uint64_t seed, uint64_t counter) {
  uint64_t z = seed + counter * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}
uint64_t SeedOf(const Any& seed) {
  if (seed != nullptr) return Mix(static_cast<uint64_t>(seed.cast<int64_t>()), 1);
  static std::atomic<uint64_t> calls{[] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }()};
  return Mix(calls.fetch_add(1), 1);
}
/// In [0, 1): all values are multiples of the distance between the largest ones.
double Unit(uint64_t bits, bool is_double) {
  return is_double ? static_cast<double>(bits >> 11) * 0x1p-53
                   : static_cast<double>(bits >> 40) * 0x1p-24;
}
template <class F>
Tensor Fill(const Shape& shape, bool is_double, F value) {
  Tensor t = Empty(shape, DataType::Float(is_double ? 64 : 32), {kDLCPU, 0});
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (is_double) {
      static_cast<double*>(t.data_ptr())[i] = value(i);
    } else {
      static_cast<float*>(t.data_ptr())[i] = static_cast<float>(value(i));
    }
  }
  return t;
}
/// `serial` tells calls apart: two equal ones would be taken for one.
Tensor Uniform(Shape shape, bool is_double, Any seed, int64_t) {
  uint64_t from = SeedOf(seed);
  return Fill(shape, is_double, [&](int64_t i) { return Unit(Mix(from, i), is_double); });
}
/// Of mean 0 and deviation 1 (Box and Muller's way).
Tensor Normal(Shape shape, bool is_double, Any seed, int64_t) {
  uint64_t from = SeedOf(seed);
  return Fill(shape, is_double, [&](int64_t i) {
    double radius = std::sqrt(-2 * std::log(1 - Unit(Mix(from, 2 * i), true)));
    return radius * std::cos(2 * 3.14159265358979323846 * Unit(Mix(from, 2 * i + 1), true));
  });
}
}  // namespace

TVM_REGISTER() {
  Def("vm.builtin.random.uniform", &Uniform, "Numbers in [0, 1), in float32 or float64.",
      Arg("shape"), Arg("is_double"), Arg("seed"), Arg("serial"));
  Def("vm.builtin.random.normal", &Normal, "Normally distributed numbers.", Arg("shape"),
      Arg("is_double"), Arg("seed"), Arg("serial"));
}
}  // namespace tvm::runtime::vm::random
