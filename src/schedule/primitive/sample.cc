// SPDX-License-Identifier: Apache-2.0
// sample_categorical, sample_perfect_tile, sample_partitioned_tile: random numbers in a trace.
#include <algorithm>
#include <cmath>

#include "tvm/expr/op.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

IntValue SampleCategorical(Sampler& self, Array<int64_t> candidates, Array<double> probs,
                           Decision<int64_t>& decision) {
  auto count = static_cast<int64_t>(candidates.size());
  if (count == 0 || probs.size() != candidates.size()) {
    Refuse(Text("expected as many probabilities as candidates, and some, got ", probs.size(),
                " and ", count));
  }
  double total = 0;
  for (double p : probs) {
    if (!(p >= 0) || !std::isfinite(p)) {
      Refuse(Text("expected probabilities that are not negative, got ", p));
    }
    total += p;
  }
  if (!(total > 0)) Refuse("expected probabilities that are not all 0");
  if (!decision.value) {
    double draw = self.Unit() * total;
    int64_t at = 0;
    while (at < count - 1 && draw >= probs[at]) draw -= probs[at++];
    while (at > 0 && probs[at] == 0) --at;  // rounding may have walked past the last
    decision.value = at;
  }
  if (*decision.value < 0 || *decision.value >= count) {
    Refuse(Text("expected a decision in [0, ", count, "), got ", *decision.value));
  }
  return {candidates[*decision.value]};
}

std::vector<int64_t> Divisors(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d) continue;
    divisors.push_back(d);
    if (d * d != n) divisors.push_back(n / d);
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}
/// Numbers with the product `extent`: each prime factor goes to one of them, evenly.
std::vector<int64_t> Distribute(Sampler& self, int64_t extent, int64_t n) {
  std::vector<int64_t> tiles(n, 1);
  for (int64_t p = 2; extent > 1; ++p) {
    if (p * p > extent) p = extent;
    for (; extent % p == 0; extent /= p) tiles[self.Below(n)] *= p;
  }
  return tiles;
}

int64_t ConstExtent(const Sampler& self, LoopId id) {
  const ForObj* loop = self.state.loop(id);
  auto extent = AsConstInt(loop->extent);
  if (!extent || *extent < 1) {
    Refuse(Text("expected a loop with a constant, positive extent, got ", loop->extent),
           {self.state.stmt(id)});
  }
  return *extent;
}
void CheckTiles(const Sampler& self, LoopId id, const Array<int64_t>& tiles, int64_t n,
                int64_t extent) {
  int64_t product = 1;
  bool fits = static_cast<int64_t>(tiles.size()) == n;
  for (int64_t tile : tiles) {
    fits &= tile > 0 && extent % tile == 0 && product <= extent;
    if (fits) product *= tile;
  }
  if (!fits || product != extent) {
    Refuse(
        Text("expected a decision of ", n, " factors with the product ", extent, ", got ", tiles),
        {self.state.stmt(id)});
  }
}
std::vector<IntValue> Values(const Array<int64_t>& tiles) {
  std::vector<IntValue> values;
  for (int64_t tile : tiles) values.push_back({tile});
  return values;
}

std::vector<IntValue> SamplePerfectTile(Sampler& self, LoopId id, int64_t n,
                                        int64_t max_innermost_factor,
                                        Decision<Array<int64_t>>& decision) {
  if (n < 1) Refuse(Text("expected n to be at least 1, got ", n), {self.state.stmt(id)});
  if (max_innermost_factor < 1 && max_innermost_factor != -1) {
    Refuse(Text("expected max_innermost_factor to be at least 1, or -1 for no limit, got ",
                max_innermost_factor),
           {self.state.stmt(id)});
  }
  // Of an extent that nobody knows, only the outermost factor is left open.
  if (!AsConstInt(self.state.loop(id)->extent)) {
    std::vector<IntValue> values(n, IntValue{1});
    values[0].is_open = true;
    decision.value = Array<int64_t>(n, 1);
    return values;
  }
  int64_t extent = ConstExtent(self, id);
  if (!decision.value) {
    std::vector<int64_t> inner = Divisors(extent);
    if (max_innermost_factor != -1) {
      std::erase_if(inner, [&](int64_t d) { return d > max_innermost_factor; });
    }
    std::vector<int64_t> tiles{extent};
    if (n > 1) {
      int64_t last = inner[self.Below(static_cast<int64_t>(inner.size()))];
      tiles = Distribute(self, extent / last, n - 1);
      tiles.push_back(last);
    }
    decision.value = Array<int64_t>(tiles.begin(), tiles.end());
  }
  CheckTiles(self, id, *decision.value, n, extent);
  return Values(*decision.value);
}

std::vector<IntValue> SamplePartitionedTile(Sampler& self, LoopId id, int64_t n,
                                            int64_t partition_pos, int64_t innerpart_factor,
                                            Decision<Array<int64_t>>& decision) {
  int64_t extent = ConstExtent(self, id);
  if (n < 1 || partition_pos < 0 || partition_pos > n) {
    Refuse(Text("expected n of at least 1 and partition_pos in [0, n], got ", n, " and ",
                partition_pos),
           {self.state.stmt(id)});
  }
  if (innerpart_factor < 1 || extent % innerpart_factor != 0) {
    Refuse(Text("expected innerpart_factor to divide ", extent, ", got ", innerpart_factor),
           {self.state.stmt(id)});
  }
  int64_t outer = partition_pos == n ? extent : partition_pos == 0 ? 1 : extent / innerpart_factor;
  if (!decision.value) {
    std::vector<int64_t> tiles = Distribute(self, outer, partition_pos);
    std::vector<int64_t> inner = Distribute(self, extent / outer, n - partition_pos);
    tiles.insert(tiles.end(), inner.begin(), inner.end());
    decision.value = Array<int64_t>(tiles.begin(), tiles.end());
  }
  CheckTiles(self, id, *decision.value, n, extent);
  return Values(*decision.value);
}

constexpr const char* kProgram = R"(
def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * 2.0)";

TVM_REGISTER() {
  DefPrimitive("SampleCategorical", "sample_categorical", &SampleCategorical,
               &Schedule::SampleCategorical,
               "One of the candidates, with the probabilities given; the decision is its index.",
               {kProgram, R"(v = sch.sample_categorical([1, 2, 4], [0.25, 0.25, 0.5], decision=2)
i, = sch.get_loops("B")
sch.annotate(i, "unroll", v))"},
               Arg("candidates"), Arg("probs"), Arg("decision", nullptr));
  DefPrimitive(
      "SamplePerfectTile", "sample_perfect_tile", &SamplePerfectTile, &Schedule::SamplePerfectTile,
      "n factors with the extent of the loop as their product; the last one is at most "
      "max_innermost_factor (-1: any). The decision is the list of factors. Where the extent "
      "is not constant, the first is None and the others are 1.",
      {kProgram, R"(i, = sch.get_loops("B")
v0, v1 = sch.sample_perfect_tile(i, n=2, max_innermost_factor=16, decision=[8, 8])
sch.split(i, [v0, v1]))"},
      Arg("loop"), Arg("n"), Arg("max_innermost_factor", 16), Arg("decision", nullptr));
  DefPrimitive("SamplePartitionedTile", "sample_partitioned_tile", &SamplePartitionedTile,
               &Schedule::SamplePartitionedTile,
               "n factors with the extent of the loop as their product, of which those from "
               "partition_pos on have the product innerpart_factor.",
               {kProgram, R"(i, = sch.get_loops("B")
v0, v1, v2 = sch.sample_partitioned_tile(i, 3, partition_pos=1, innerpart_factor=8,
                                         decision=[8, 2, 4])
sch.split(i, [v0, v1, v2]))"},
               Arg("loop"), Arg("n"), Arg("partition_pos", 0), Arg("innerpart_factor", 1),
               Arg("decision", nullptr));
}

}  // namespace
}  // namespace tvm::tir
