// SPDX-License-Identifier: Apache-2.0
// Random numbers for programs: a generator for each thread, all from one seed.
#include <atomic>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>
#include <vector>

#include "tvm/runtime/data_type.h"
#include "tvm/runtime/def.h"
#include "tvm/runtime/tensor.h"

namespace tvm::runtime::special {
namespace {

std::atomic<uint64_t> random_seed{std::random_device()()};
std::atomic<uint64_t> seeding{0};  // how often the seed was set

/// A step of SplitMix64.
uint64_t Mix(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}
/// The generator of this thread, begun anew after the seed was set.
class Generator {
 public:
  static Generator& Get() {
    static std::atomic<uint64_t> threads{0};
    thread_local Generator generator(threads++);
    if (generator.seeding_ != seeding) {
      generator.seeding_ = seeding;
      // The thread that sets a seed gets the same numbers every time.
      generator.state_ = random_seed + (generator.is_setter_ ? 0 : generator.thread_ + 1);
      generator.is_setter_ = false;
    }
    return generator;
  }
  void WillSeed() { is_setter_ = true; }
  uint64_t Bits() { return Mix(state_); }
  /// In [0, 1), with the bits of a float: its largest value does not round to 1.
  double Uniform() { return static_cast<double>(Bits() >> 40) * 0x1p-24; }
  double Normal() {
    double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }
  /// In [0, n)
  uint64_t Below(uint64_t n) { return Bits() % n; }

 private:
  explicit Generator(uint64_t thread) : thread_(thread) {
    state_ = random_seed + thread + 1;
    seeding_ = seeding;
  }
  uint64_t thread_, state_, seeding_;
  bool is_setter_ = false;
};

void Seed(int64_t seed) {
  Generator::Get().WillSeed();
  uint64_t state = static_cast<uint64_t>(seed);
  random_seed = Mix(state);
  ++seeding;
}

template <class Draw>
void Fill(const Tensor& out, Draw draw) {
  if (out.device().device_type != kDLCPU || !out.is_contiguous()) {
    TVM_FFI_THROW(ValueError) << "random: expected a tensor in row-major order on the CPU";
  }
  auto fill = [&](auto* to) {
    using Element = std::remove_pointer_t<decltype(to)>;
    for (int64_t i = 0; i < out.numel(); ++i) to[i] = static_cast<Element>(draw());
  };
  DataType type = out.dtype();
  if (type == DataType::Float(32)) return fill(static_cast<float*>(out.data_ptr()));
  if (type == DataType::Float(64)) return fill(static_cast<double*>(out.data_ptr()));
  if (type == DataType::Int(64)) return fill(static_cast<int64_t*>(out.data_ptr()));
  TVM_FFI_THROW(TypeError) << "random: expected float32, float64 or int64, got " << type;
}
// `call` tells calls of one program apart: equal calls are computed once.
void Uniform(int64_t call, Tensor out) {
  Generator& g = Generator::Get();
  Fill(out, [&] { return g.Uniform(); });
}
void Normal(int64_t call, Tensor out) {
  Generator& g = Generator::Get();
  Fill(out, [&] { return g.Normal(); });
}
void Integers(int64_t call, int64_t low, int64_t high, Tensor out) {
  if (low >= high) {
    TVM_FFI_THROW(ValueError) << "random: expected low below high, got " << low << " and " << high;
  }
  Generator& g = Generator::Get();
  uint64_t count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  Fill(out, [&] { return static_cast<int64_t>(static_cast<uint64_t>(low) + g.Below(count)); });
}
void Permutation(int64_t call, Tensor out) {
  Generator& g = Generator::Get();
  std::vector<int64_t> order(out.numel());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[g.Below(i)]);
  size_t at = 0;
  Fill(out, [&] { return order[at++]; });
}

TVM_REGISTER() {
  Def("relax.run.random.seed", &Seed, "Random numbers of this thread begin anew.", Arg("seed"));
  Def("relax.run.random.uniform", &Uniform, "Numbers in [0, 1).", Arg("call"), Arg("out"));
  Def("relax.run.random.normal", &Normal, "Numbers of the normal distribution.", Arg("call"),
      Arg("out"));
  Def("relax.run.random.integers", &Integers, "Integers in [low, high).", Arg("call"), Arg("low"),
      Arg("high"), Arg("out"));
  Def("relax.run.random.permutation", &Permutation, "The numbers below n in random order.",
      Arg("call"), Arg("out"));
}

}  // namespace
}  // namespace tvm::runtime::special
