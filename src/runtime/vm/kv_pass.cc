// SPDX-License-Identifier: Apache-2.0
// A pass of a model over sequences, described by arrays.
#include "runtime/vm/kv_pass.h"

#include <numeric>

namespace tvm::runtime::vm {
namespace {
void AddPages(PageLists* lists, const KVSequence& s, int64_t page_size, int64_t stored,
              int64_t offset, int64_t rope_offset = 0) {
  int64_t count = (stored + page_size - 1) / page_size;
  for (int64_t i = 0; i < count; ++i) lists->values.Push(s.pages[i]);
  lists->indptr.Push(lists->values.size());
  lists->rope_offsets.Push(rope_offset);
  lists->lengths.Push(stored == 0 ? 0 : stored - (count - 1) * page_size);
  lists->lengths.Push(offset);
  lists->lengths.Push(s.sinks);
}
/// Three numbers for each sequence become `rows` rows.
void FinishLists(PageLists* lists, DLDevice device, int64_t rows) {
  int64_t batch = lists->indptr.size() - 1;
  std::vector<int32_t> flat(lists->lengths.begin(), lists->lengths.end());
  lists->lengths.Reset();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < batch; ++i) lists->lengths.Push(flat[3 * i + row]);
  }
  lists->lengths.Upload(device, rows == 1 ? Shape{batch} : Shape{rows, batch});
  for (IntArray* array : {&lists->indptr, &lists->values, &lists->rope_offsets}) {
    array->Upload(device);
  }
}
/// Where the window of a layer begins: it holds `window` tokens before those of the pass.
int64_t WindowBefore(const KVSequence& s, int64_t length) {
  if (s.window == 0) return 0;
  return std::max(s.sinks, s.stored - length - s.window + s.sinks);
}
/// The pages as a layer with a window sees them. Keys that are rotated when read are counted from
/// the first one that is seen, so that sinks come right before the others.
void AddPagesInLayer(PageLists* lists, const KVSequence& s, int64_t page_size, int64_t stored,
                     int64_t offset) {
  AddPages(lists, s, page_size, stored, offset, offset - s.sinks);
}
}  // namespace

void KVPass::Describe(const KVPages& pages, const std::vector<KVSequence*>& sequences,
                      const Shape& lengths, bool is_tree, const Options& options) {
  has_tree = is_tree;
  continues_tree = false;
  total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  only_one_each = !has_tree && total == static_cast<int64_t>(sequences.size());
  for (IntArray* array :
       {&q_indptr, &q_positions, &append_map, &past_lengths, &tree_indptr, &tree_order}) {
    array->Reset();
  }
  has_window = std::any_of(sequences.begin(), sequences.end(),
                           [](const KVSequence* s) { return s->window > 0; });
  bool in_layers = has_window && options.layer_windows;
  for (PageLists* lists : {&whole, &past, &whole_in_layer, &past_in_layer}) lists->Reset();
  q_indptr.Push(0);
  tree_indptr.Push(0);
  for (size_t i = 0; i < sequences.size(); ++i) {
    const KVSequence& s = *sequences[i];
    int64_t length = lengths[i], before = s.stored - length;
    int64_t first = options.inline_positions ? s.length() - length : s.position - length;
    auto pending = static_cast<int64_t>(s.tree.size());
    continues_tree = continues_tree || pending > length;
    for (int64_t k = 0; k < length; ++k) {
      append_map.Push(pages.Slot(s, before + k));
      // The nodes of a tree that was begun before lie before `first`.
      q_positions.Push(has_tree ? first + length - pending + s.Depth(pending - length + k)
                                : first + k);
    }
    q_indptr.Push(*(q_indptr.end() - 1) + length);
    past_lengths.Push(first);
    AddPages(&whole, s, pages.page_size(), s.stored, s.offset);
    AddPages(&past, s, pages.page_size(), before, s.offset);
    if (in_layers) {
      int64_t offset = WindowBefore(s, length);
      AddPagesInLayer(&whole_in_layer, s, pages.page_size(), s.stored, offset);
      AddPagesInLayer(&past_in_layer, s, pages.page_size(), before, offset);
    }
    if (has_tree) AddTree(s.tree);
  }
  int64_t rows = has_window && !options.layer_windows ? 3 : 1;
  for (PageLists* lists : {&whole, &past}) FinishLists(lists, options.device, rows);
  if (in_layers) {
    for (PageLists* lists : {&whole_in_layer, &past_in_layer}) {
      FinishLists(lists, options.device, 3);
    }
  }
  for (IntArray* array : {&q_indptr, &q_positions, &append_map, &past_lengths, &tree_indptr}) {
    array->Upload(options.device);
  }
  tree_order.Upload(options.device, {tree_order.size() / 2, 2});
}

/// For each node the begin and the end of its subtree in the order of depth-first search: an
/// ancestor's range contains the begins of its descendants.
void KVPass::AddTree(const std::vector<int32_t>& parents) {
  auto n = static_cast<int64_t>(parents.size());
  std::vector<std::vector<int64_t>> children(n + 1);
  for (int64_t i = 0; i < n; ++i) children[parents[i] < 0 ? n : parents[i]].push_back(i);
  std::vector<int64_t> begin(n), end(n), order, stack(children[n].rbegin(), children[n].rend());
  while (!stack.empty()) {
    int64_t node = stack.back();
    stack.pop_back();
    begin[node] = static_cast<int64_t>(order.size());
    end[node] = begin[node] + 1;
    order.push_back(node);
    stack.insert(stack.end(), children[node].rbegin(), children[node].rend());
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (int32_t parent = parents[*it]; parent >= 0) end[parent] = std::max(end[parent], end[*it]);
  }
  for (int64_t i = 0; i < n; ++i) {
    tree_order.Push(begin[i]);
    tree_order.Push(end[i]);
  }
  tree_indptr.Push(tree_order.size() / 2);
}

}  // namespace tvm::runtime::vm
