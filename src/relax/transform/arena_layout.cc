// SPDX-License-Identifier: Apache-2.0
// Places in one piece of memory for things that are needed for some time each.
#include "arena_layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>

namespace tvm::relax {
namespace {
/// Memory that grows, with holes where something has ended.
class Arena {
 public:
  int64_t size() const { return size_; }
  /// The smallest hole that is large enough, else the end, with the hole there if there is one.
  int64_t Take(int64_t bytes) {
    auto fit = by_size_.lower_bound({bytes, 0});
    if (fit != by_size_.end()) {
      auto [hole, offset] = *fit;
      Remove(holes_.find(offset));
      if (hole > bytes) Insert(offset + bytes, hole - bytes);
      return offset;
    }
    int64_t offset = size_;
    if (!holes_.empty()) {
      auto last = std::prev(holes_.end());
      if (last->first + last->second == size_) {
        offset = last->first;
        Remove(last);
      }
    }
    size_ = offset + bytes;
    return offset;
  }
  void Give(int64_t offset, int64_t bytes) {
    auto next = holes_.lower_bound(offset);
    if (next != holes_.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = Remove(next);
    }
    if (next != holes_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        Remove(before);
      }
    }
    Insert(offset, bytes);
  }

 private:
  using Holes = std::map<int64_t, int64_t>;  // offset -> bytes
  void Insert(int64_t offset, int64_t bytes) {
    holes_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  Holes::iterator Remove(Holes::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    return holes_.erase(hole);
  }
  Holes holes_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t size_ = 0;
};

/// Calls `begin(i)` for each request, after `end(j)` for those that have ended before.
template <class Begin, class End>
void Sweep(const std::vector<ArenaRequest>& requests, Begin&& begin, End&& end) {
  using Running = std::pair<int, size_t>;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
  for (size_t i = 0; i < requests.size(); ++i) {
    for (; !running.empty() && running.top().first < requests[i].begin; running.pop())
      end(running.top().second);
    begin(i);
    running.emplace(requests[i].end, i);
  }
}
ArenaLayout InOrder(const std::vector<ArenaRequest>& requests) {
  ArenaLayout layout;
  Arena arena;
  Sweep(
      requests, [&](size_t i) { layout.offsets.push_back(arena.Take(requests[i].bytes)); },
      [&](size_t i) { arena.Give(layout.offsets[i], requests[i].bytes); });
  layout.size = arena.size();
  return layout;
}

/// Which requests are needed at the same time; nothing when these are too many pairs.
bool FindNeighbours(const std::vector<ArenaRequest>& requests,
                    std::vector<std::vector<size_t>>* neighbours) {
  constexpr size_t kPairsPerRequest = 64;
  neighbours->resize(requests.size());
  std::set<size_t> alive;
  size_t pairs = 0;
  bool is_feasible = true;
  Sweep(
      requests,
      [&](size_t i) {
        pairs += alive.size();
        is_feasible = is_feasible && pairs <= kPairsPerRequest * requests.size();
        if (!is_feasible) return;
        for (size_t j : alive) {
          (*neighbours)[i].push_back(j);
          (*neighbours)[j].push_back(i);
        }
        alive.insert(i);
      },
      [&](size_t i) { alive.erase(i); });
  return is_feasible;
}
ArenaLayout LargestFirst(const std::vector<ArenaRequest>& requests,
                         const std::vector<std::vector<size_t>>& neighbours) {
  ArenaLayout layout;
  layout.offsets.assign(requests.size(), -1);
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });
  for (size_t i : order) {
    std::vector<std::pair<int64_t, int64_t>> taken;  // [begin, end)
    for (size_t j : neighbours[i]) {
      int64_t offset = layout.offsets[j];
      if (offset >= 0) taken.emplace_back(offset, offset + requests[j].bytes);
    }
    std::sort(taken.begin(), taken.end());
    int64_t free = 0, best = -1, best_gap = 0;
    for (auto [begin, end] : taken) {
      int64_t gap = begin - free;
      if (gap >= requests[i].bytes && (best < 0 || gap < best_gap)) {
        best = free;
        best_gap = gap;
      }
      free = std::max(free, end);
    }
    layout.offsets[i] = best < 0 ? free : best;
    layout.size = std::max(layout.size, layout.offsets[i] + requests[i].bytes);
  }
  return layout;
}
}  // namespace

ArenaLayout LayOutArena(const std::vector<ArenaRequest>& requests) {
  ArenaLayout in_order = InOrder(requests);
  std::vector<std::vector<size_t>> neighbours;
  if (!FindNeighbours(requests, &neighbours)) return in_order;
  ArenaLayout largest_first = LargestFirst(requests, neighbours);
  return largest_first.size < in_order.size ? largest_first : in_order;
}

}  // namespace tvm::relax
