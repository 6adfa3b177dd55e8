// SPDX-License-Identifier: Apache-2.0
// Bindings that are plain digits of loops: what splitting and fusing by constants leaves.
// Arithmetic on numbers decides in a microsecond what an iterator map decides for all bindings.
#include <algorithm>

#include "schedule/analysis.h"
#include "tvm/expr/op.h"

namespace tvm::tir {
namespace {

/// (var // low) % size, times scale.
struct Digit {
  const VarObj* var;
  int64_t low, size, scale;
};
struct Loop {
  const VarObj* var;
  int64_t min, extent;
};

const Loop* Find(const std::vector<Loop>& loops, const VarObj* var) {
  for (const Loop& loop : loops) {
    if (loop.var == var) return &loop;
  }
  return nullptr;
}

/// One digit; false for any other expression.
bool ReadDigit(const PrimExpr& e, const std::vector<Loop>& loops, int64_t scale,
               std::vector<Digit>* out, int64_t* base) {
  PrimExpr source = e;
  int64_t low = 1, modulus = 0;
  if (auto* mod = source.as<FloorModObj>()) {
    auto value = AsConstInt(mod->b);
    if (!value || *value <= 0) return false;
    modulus = *value;
    source = mod->a;
  }
  if (auto* div = source.as<FloorDivObj>()) {
    auto value = AsConstInt(div->b);
    if (!value || *value <= 0) return false;
    low = *value;
    source = div->a;
  }
  auto* var = source.as<VarObj>();
  const Loop* loop = var ? Find(loops, var) : nullptr;
  if (!loop || (loop->min && (modulus || low > 1))) return false;
  // A digit that divides evenly takes all of its values.
  if (loop->extent % low || (modulus && (loop->extent / low) % modulus)) return false;
  int64_t size = modulus ? modulus : loop->extent / low;
  *base += scale * loop->min;
  if (size > 1) out->push_back({var, low, size, scale});
  return true;
}

/// The digits of a sum; false for any other expression.
bool ReadSum(const PrimExpr& e, const std::vector<Loop>& loops, std::vector<Digit>* out,
             int64_t* base) {
  if (auto* sum = e.as<AddObj>()) {
    return Recurse(
        [&] { return ReadSum(sum->a, loops, out, base) && ReadSum(sum->b, loops, out, base); });
  }
  if (auto value = AsConstInt(e)) {
    *base += *value;
    return true;
  }
  if (auto* product = e.as<MulObj>()) {
    auto scale = AsConstInt(product->b);
    return scale && *scale > 0 && ReadDigit(product->a, loops, *scale, out, base);
  }
  return ReadDigit(e, loops, 1, out, base);
}

/// Whether `next` is where the digit before it ends, from 1 on.
template <class Start>
bool Continue(std::vector<Digit>* digits, Start&& start) {
  std::sort(digits->begin(), digits->end(),
            [&](const Digit& a, const Digit& b) { return start(a) < start(b); });
  int64_t next = 1;
  for (const Digit& d : *digits) {
    if (start(d) != next) return false;
    next *= d.size;
  }
  return true;
}

}  // namespace

bool AreDigits(const Array<PrimExpr>& values, const Map<Var, Range>& domains,
               std::vector<std::pair<int64_t, int64_t>>* ranges) {
  std::vector<Loop> loops;
  for (const auto& [var, range] : domains) {
    auto min = AsConstInt(range->min), extent = AsConstInt(range->extent);
    if (!min || !extent || *extent < 1) return false;
    loops.push_back({var.get(), *min, *extent});
  }
  std::vector<Digit> all, one;
  for (const PrimExpr& value : values) {
    one.clear();
    int64_t base = 0, size = 1;
    if (!ReadSum(value, loops, &one, &base)) return false;
    all.insert(all.end(), one.begin(), one.end());
    if (!Continue(&one, [](const Digit& d) { return d.scale; })) return false;
    for (const Digit& d : one) size *= d.size;
    if (ranges) ranges->push_back({base, size});
  }
  for (const Loop& loop : loops) {
    one.clear();
    int64_t product = 1;
    for (const Digit& d : all) {
      if (d.var == loop.var) {
        one.push_back(d);
        product *= d.size;
      }
    }
    if (product != loop.extent || !Continue(&one, [](const Digit& d) { return d.low; })) {
      return false;
    }
  }
  return true;
}

}  // namespace tvm::tir
