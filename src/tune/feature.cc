// SPDX-License-Identifier: Apache-2.0
// Features of stores for the cost model: one row of numbers per store, computed on threads.
//
// A row has, each number x as log2(1 + x):
//   arithmetic       8 kinds x {float, int}: operations over all iterations                     16
//   loops            for vectorised, unrolled and parallel loops: how many, product of extents,
//                    innermost extent, and where among the loops (8 places, one of them 1)      33
//   shape            loops, iterations, iterations of the innermost, unroll steps,
//                    executions below the innermost parallel loop, lanes of the store            6
//   accesses         per buffer, the written one first, then by bytes: see AccessRow            18
//   each intensity        operations per byte touched, at places between the inner and outer loops
//   10 allocation       bytes of the local buffer written, and how often it is filled 2
// With the defaults (5 buffers, 10 samples) that is 157 numbers.
#include <tvm/ffi/container/tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tune/parallel.h"
#include "tune/store_info.h"
#include "tvm/expr/op.h"
#include "tvm/runtime/tensor.h"

namespace tvm::tune {
namespace {
using namespace tir;

constexpr int kAccessNumbers = 18, kPlaces = 8;

struct FeatureOptions {
  int64_t buffers, samples, line_bytes;
  int64_t Length() const { return 16 + 33 + 6 + kAccessNumbers * buffers + samples + 2; }
};

/// How much memory an access touches in the loops from `level` inwards.
struct Footprint {
  double unique = 1, unique_lines = 1;
  Footprint(const Access& a, const std::vector<Loop>& loops, size_t level, double line) {
    double bytes = std::max(1, a.buffer->dtype.bits() / 8);
    for (size_t d = 0; d < a.indices.size(); ++d) {
      double extent = 1;
      for (size_t j = level; j < loops.size() && j < a.indices[d].size(); ++j)
        extent += a.indices[d][j] * (loops[j].extent - 1);
      if (auto size = AsConstInt(a.buffer->shape[d]))
        extent = std::min(extent, static_cast<double>(*size));
      extent = std::max(1.0, extent);
      bool last = d + 1 == a.indices.size();
      unique *= extent;
      unique_lines *= last ? std::ceil(extent * bytes / line) : extent;
    }
    unique *= bytes;
  }
};
double Iterations(const std::vector<Loop>& loops, size_t level) {
  double n = 1;
  for (size_t j = level; j < loops.size(); ++j) n *= loops[j].extent;
  return n;
}
bool Moves(const Access& a, size_t loop) {
  return std::any_of(a.indices.begin(), a.indices.end(),
                     [&](const Affine& index) { return loop < index.size() && index[loop] != 0; });
}
/// Elements between neighbours along the innermost loop that moves the access.
double Stride(const Access& a, const std::vector<Loop>& loops) {
  for (size_t j = loops.size(); j-- > 0;) {
    if (!Moves(a, j)) continue;
    double stride = 0, pitch = 1;
    for (size_t d = a.indices.size(); d-- > 0;) {
      if (j < a.indices[d].size()) stride += a.indices[d][j] * pitch;
      pitch *= static_cast<double>(AsConstInt(a.buffer->shape[d]).value_or(8));
    }
    return stride;
  }
  return 0;
}

class Row {
 public:
  Row(const StoreInfo& s, const std::vector<StoreInfo>& all, const FeatureOptions& o, double* out)
      : s_(s), all_(all), o_(o), at_(out) {
    double iterations = Iterations(s.loops, 0);
    for (const auto* ops : {&s.float_ops, &s.int_ops})
      for (double n : *ops) Put(n * iterations);
    Annotations(ForKind::kVectorized);
    Annotations(ForKind::kUnrolled);
    Annotations(ForKind::kParallel);
    Shape(iterations);
    Accesses();
    Intensity();
    Put(s.allocated_bytes);
    Put(s.allocated_bytes > 0 ? iterations : 0);
  }

 private:
  void Put(double x) { *at_++ = std::log2(1 + std::max(0.0, x)); }

  void Annotations(ForKind kind) {
    double count = 0, product = 1, innermost = 0;
    size_t place = 0, n = s_.loops.size();
    for (size_t i = 0; i < n; ++i) {
      if (s_.loops[i].kind != kind) continue;
      ++count;
      product *= s_.loops[i].extent;
      innermost = s_.loops[i].extent;
      place = i;
    }
    Put(count);
    Put(count > 0 ? product : 0);
    Put(innermost);
    // 0: none; 1, 2, 3: first, second, third; 4: between; 5, 6, 7: last but two, last but one, last
    size_t where = count == 0       ? 0
                   : place + 1 == n ? 7
                   : place + 2 == n ? 6
                   : place < 3      ? place + 1
                   : place + 3 == n ? 5
                                    : 4;
    for (size_t i = 0; i < kPlaces; ++i) *at_++ = i == where ? 1 : 0;
  }
  void Shape(double iterations) {
    size_t n = s_.loops.size(), parallel = 0;
    for (size_t i = 0; i < n; ++i)
      if (s_.loops[i].kind == ForKind::kParallel) parallel = i + 1;
    Put(static_cast<double>(n));
    Put(iterations);
    Put(n ? s_.loops.back().extent : 1);
    Put(n ? s_.loops.back().unroll_steps : 0);
    Put(Iterations(s_.loops, parallel));
    Put(std::max(1, s_.node->value.dtype().lanes()));
  }
  /// kind (read, write, both), bytes, unique bytes, lines, unique lines, reuse (loop, by another
  /// store, none), iterations and bytes between uses, how often, the four sizes per use, stride
  void AccessRow(const Access& a) {
    double line = static_cast<double>(o_.line_bytes);
    double element = std::max(1, a.buffer->dtype.bits() / 8), stride = Stride(a, s_.loops);
    double total = Iterations(s_.loops, 0) * a.count;
    Footprint all(a, s_.loops, 0, line);
    double bytes = total * element;
    double lines = total * std::clamp(stride * element / line, element / line, 1.0);
    *at_++ = a.reads && !a.writes, *at_++ = a.writes && !a.reads, *at_++ = a.reads && a.writes;
    Put(bytes);
    Put(all.unique);
    Put(lines);
    Put(all.unique_lines);

    double times = 1, between = 0, between_bytes = 0;
    size_t level = s_.loops.size();
    while (level > 0 && Moves(a, level - 1)) --level;
    bool by_loop = level > 0, by_store = !by_loop && OtherStoreOf(a, &between, &between_bytes);
    if (by_loop) {
      times = s_.loops[level - 1].extent;
      between = Iterations(s_.loops, level);
      for (const Access& b : s_.accesses)
        between_bytes += Footprint(b, s_.loops, level, line).unique;
    }
    *at_++ = by_loop, *at_++ = by_store, *at_++ = !by_loop && !by_store;
    Put(between);
    Put(between_bytes);
    Put(times);
    Put(bytes / times);
    Put(all.unique / times);
    Put(lines / times);
    Put(all.unique_lines / times);
    Put(stride);
  }
  /// Another store that touches the buffer: how far away it is below the loops both share.
  bool OtherStoreOf(const Access& a, double* between, double* bytes) {
    for (const StoreInfo& other : all_) {
      if (&other == &s_) continue;
      for (const Access& b : other.accesses) {
        if (!b.buffer.same_as(a.buffer)) continue;
        size_t common = 0;
        while (common < s_.loops.size() && common < other.loops.size() &&
               s_.loops[common].node == other.loops[common].node)
          ++common;
        *between = Iterations(s_.loops, common);
        double line = static_cast<double>(o_.line_bytes);
        for (const Access& c : s_.accesses) *bytes += Footprint(c, s_.loops, common, line).unique;
        return true;
      }
    }
    return false;
  }
  void Accesses() {
    std::vector<const Access*> order;
    for (const Access& a : s_.accesses) order.push_back(&a);
    double line = static_cast<double>(o_.line_bytes);
    auto size = [&](const Access* a) { return Footprint(*a, s_.loops, 0, line).unique; };
    std::stable_sort(order.begin(), order.end(), [&](const Access* a, const Access* b) {
      if (a->writes != b->writes) return a->writes;
      return size(a) > size(b);
    });
    double* end = at_ + kAccessNumbers * o_.buffers;
    for (size_t i = 0; i < order.size() && at_ < end; ++i) AccessRow(*order[i]);
    while (at_ < end) *at_++ = 0;
  }
  /// Interpolated between loop levels by the logarithm of the operations done below them.
  void Intensity() {
    double each = std::accumulate(s_.float_ops.begin(), s_.float_ops.end(), 0.0) +
                  std::accumulate(s_.int_ops.begin(), s_.int_ops.end(), 0.0);
    std::vector<std::pair<double, double>> curve;  // log operations, operations per byte
    for (size_t level = s_.loops.size() + 1; level-- > 0;) {
      double bytes = 0, ops = std::max(each, 1.0) * Iterations(s_.loops, level);
      for (const Access& a : s_.accesses)
        bytes += Footprint(a, s_.loops, level, static_cast<double>(o_.line_bytes)).unique;
      curve.emplace_back(std::log2(1 + ops), ops / std::max(bytes, 1.0));
    }
    double last = curve.back().first;
    size_t k = 0;
    for (int64_t i = 0; i < o_.samples; ++i) {
      double x = last * static_cast<double>(i + 1) / static_cast<double>(o_.samples);
      while (k + 1 < curve.size() && curve[k + 1].first < x) ++k;
      const auto& [x0, y0] = curve[k];
      const auto& [x1, y1] = curve[std::min(k + 1, curve.size() - 1)];
      double w = x1 > x0 ? std::clamp((x - x0) / (x1 - x0), 0.0, 1.0) : 0;
      Put(y0 + w * (y1 - y0));
    }
  }

  const StoreInfo& s_;
  const std::vector<StoreInfo>& all_;
  const FeatureOptions& o_;
  double* at_;
};

std::vector<double> RowsOf(const IRModule& mod, const FeatureOptions& o) {
  std::vector<double> rows;
  for (const auto& [var, func] : mod->Sorted()) {
    auto* prim = func.as<PrimFuncObj>();
    if (!prim) continue;
    auto stores = CollectStores(ffi::GetRef<PrimFunc>(prim));
    size_t begin = rows.size();
    rows.resize(begin + stores.size() * o.Length());
    for (size_t i = 0; i < stores.size(); ++i)
      Row(stores[i], stores, o, rows.data() + begin + i * o.Length());
  }
  return rows;
}

Array<ffi::Tensor> Extract(Array<IRModule> mods, Optional<IRModule> workload, int64_t buffers,
                           int64_t samples, int64_t line_bytes, int64_t num_threads) {
  FeatureOptions o{buffers, samples, line_bytes};
  if (buffers < 1 || samples < 1 || line_bytes < 1) {
    TVM_FFI_THROW(ValueError) << "PerStoreFeature: expected positive options, got " << buffers
                              << " buffers, " << samples << " samples, lines of " << line_bytes;
  }
  // The workload's own features, averaged, tell the rows of different tasks apart.
  std::vector<double> shared;
  if (workload.has_value()) {
    auto rows = RowsOf(workload.value(), o);
    size_t n = rows.size() / o.Length();
    shared.assign(o.Length(), 0);
    for (size_t i = 0; i < rows.size(); ++i)
      shared[i % o.Length()] += rows[i] / static_cast<double>(std::max<size_t>(n, 1));
  }
  std::vector<ffi::Tensor> results(mods.size());
  ParallelFor(mods.size(), num_threads, [&](size_t i) {
    auto rows = RowsOf(mods[i], o);
    int64_t n = static_cast<int64_t>(rows.size()) / o.Length();
    int64_t width = o.Length() + static_cast<int64_t>(shared.size());
    results[i] = runtime::Empty(runtime::Shape({n, width}), {kDLFloat, 64, 1}, {kDLCPU, 0});
    auto* out = static_cast<double*>(results[i].data_ptr());
    for (int64_t r = 0; r < n; ++r) {
      out = std::copy_n(rows.data() + r * o.Length(), o.Length(), out);
      out = std::copy(shared.begin(), shared.end(), out);
    }
  });
  return Array<ffi::Tensor>(results.begin(), results.end());
}

TVM_REGISTER() {
  Def("meta_schedule._extract_features", &Extract,
      "Per candidate a tensor of shape (stores, features).", Arg("mods"), Arg("workload"),
      Arg("buffers"), Arg("samples"), Arg("line_bytes"), Arg("num_threads"));
  Def(
      "meta_schedule._feature_length",
      [](int64_t buffers, int64_t samples) {
        return FeatureOptions{buffers, samples, 64}.Length();
      },
      "Numbers in one row.", Arg("buffers"), Arg("samples"));
}
}  // namespace
}  // namespace tvm::tune
