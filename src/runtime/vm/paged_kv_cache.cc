// SPDX-License-Identifier: Apache-2.0
// Sequences of the paged cache, their passes and their token trees.
#include "runtime/vm/paged_kv_cache.h"

#include <algorithm>
#include <set>

namespace tvm::runtime::vm {
PagedKVCacheObj::PagedKVCacheObj(CacheConfig config)
    : config_(std::move(config)),
      pages_(config_.max_sequences, (config_.max_total + config_.page_size - 1) / config_.page_size,
             config_.page_size),
      layer_windows_(std::count(config_.kinds.begin(), config_.kinds.end(), kMHASliding) > 0) {
  int64_t num_pages = pages_.num_free();
  for (int64_t kind : config_.kinds) {
    Shape heads{num_pages, 2, config_.kv_heads, config_.page_size, config_.qk_dim};
    Shape latent{num_pages, config_.page_size, config_.qk_dim};
    layers_.push_back(Empty(kind == kMLA ? latent : heads, config_.dtype, config_.device));
  }
  bool all_latent = std::count(config_.kinds.begin(), config_.kinds.end(), kMLA) ==
                    static_cast<int64_t>(config_.kinds.size());
  auto room = [&](int64_t heads, int64_t dim) {  // which latent attention leaves to the model
    int64_t rows = all_latent ? 0 : config_.chunk;
    return Empty({rows, heads, dim}, config_.dtype, config_.device);
  };
  q_ = room(config_.q_heads, config_.qk_dim);
  k_ = room(config_.kv_heads, config_.qk_dim);
  v_ = room(config_.kv_heads, config_.v_dim);
  lse_ = Empty({config_.chunk, config_.q_heads}, DataType::Float(32), config_.device);
}

// ---- sequences ----------------------------------------------------------------------------------
void PagedKVCacheObj::Clear() {
  std::lock_guard lock(mutex_);
  pages_.Clear();
  running_ = false;
}
void PagedKVCacheObj::AddSequence(int64_t id) {
  auto lock = Idle("kv_state_add_sequence");
  pages_.Add(id);
}
void PagedKVCacheObj::RemoveSequence(int64_t id) {
  auto lock = Idle("kv_state_remove_sequence");
  pages_.Remove(id);
}
void PagedKVCacheObj::ForkSequence(int64_t parent, int64_t child, int64_t position) {
  auto lock = Idle("kv_state_fork_sequence");
  pages_.Fork(parent, child, position, [&](int32_t from, int32_t to, int64_t rows) {
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (config_.kinds[i] == kMLA) {
        CopyTensor(Latent(i, from * config_.page_size, rows),
                   Latent(i, to * config_.page_size, rows));
      } else {
        Need(config_.copy_page, "copy_single_page")(layers_[i], int64_t{from}, int64_t{to}, rows);
      }
    }
  });
}
void PagedKVCacheObj::PopN(int64_t id, int64_t n) {
  auto lock = Idle("kv_state_popn");
  pages_.Pop(id, n);
}
void PagedKVCacheObj::EnableWindow(int64_t id, int64_t window, int64_t sinks) {
  auto lock = Idle("attention_kv_cache_enable_sliding_window_for_seq");
  if (!config_.has_window && !layer_windows_) {
    TVM_FFI_THROW(ValueError) << "attention_kv_cache_enable_sliding_window_for_seq: expected a "
                                 "cache made for sliding windows";
  }
  pages_.SetWindow(id, window, sinks);
}
bool PagedKVCacheObj::IsEmpty() {
  std::lock_guard lock(mutex_);
  return pages_.empty();
}
int64_t PagedKVCacheObj::NumAvailablePages() {
  std::lock_guard lock(mutex_);
  return pages_.num_free();
}
int64_t PagedKVCacheObj::TotalLength() {
  std::lock_guard lock(mutex_);
  return pages_.TotalLength();
}

// ---- a forward pass -----------------------------------------------------------------------------
void PagedKVCacheObj::BeginForward(const Shape& ids, const Shape& lengths,
                                   const Optional<Shape>& parents) {
  auto lock = Idle("kv_state_begin_forward");
  std::vector<KVSequence*> sequences = Named(ids, lengths);
  if (parents) CheckTrees(sequences, lengths, *parents);
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (!parents && !sequences[i]->tree.empty()) {
      TVM_FFI_THROW(ValueError) << "kv_state_begin_forward: expected the token tree of sequence "
                                << ids[i] << " to be committed";
    }
    if (parents && sequences[i]->window > 0) {
      TVM_FFI_THROW(ValueError) << "kv_state_begin_forward: expected token trees of sequences "
                                   "without a sliding window, got "
                                << ids[i];
    }
  }
  // With windows in some layers only, the others still need all tokens.
  pages_.Append(sequences, lengths, !layer_windows_);
  const int64_t* parent = parents ? parents.value().begin() : nullptr;
  for (size_t i = 0; parents && i < sequences.size(); ++i) {
    std::vector<int32_t>& tree = sequences[i]->tree;
    tree.insert(tree.end(), parent, parent + lengths[i]);
    parent += lengths[i];
  }
  pass_.Describe(pages_, sequences, lengths, parents.has_value(),
                 {config_.device, Inline() != 0, layer_windows_});
  running_ = true;
}
void PagedKVCacheObj::EndForward() {
  std::lock_guard lock(mutex_);
  CheckRunning("kv_state_end_forward");
  running_ = false;
}
Tensor PagedKVCacheObj::QueryPositions() {
  std::lock_guard lock(mutex_);
  CheckRunning("attention_kv_cache_get_query_positions");
  Tensor copy = Empty({pass_.total}, DataType::Int(32), config_.device);
  CopyTensor(pass_.q_positions.tensor(), copy);
  return copy;
}
std::vector<KVSequence*> PagedKVCacheObj::Named(const Shape& ids, const Shape& lengths) {
  constexpr const char* kName = "kv_state_begin_forward";
  if (ids.size() != lengths.size() || ids.size() == 0) {
    TVM_FFI_THROW(ValueError) << kName << ": expected sequences and a length for each, got " << ids
                              << " and " << lengths;
  }
  std::vector<KVSequence*> sequences;
  std::set<int64_t> seen;
  int64_t total = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    sequences.push_back(&pages_.At(ids[i], kName));
    if (!seen.insert(ids[i]).second || lengths[i] <= 0) {
      TVM_FFI_THROW(ValueError) << kName << ": expected each sequence once and positive lengths, "
                                << "got " << ids << " and " << lengths;
    }
    total += lengths[i];
  }
  if (total > config_.chunk) {
    TVM_FFI_THROW(ValueError) << kName << ": expected at most " << config_.chunk
                              << " tokens, the prefill chunk size, got " << total;
  }
  return sequences;
}
void PagedKVCacheObj::CheckTrees(const std::vector<KVSequence*>& sequences, const Shape& lengths,
                                 const Shape& parents) {
  size_t next = 0;
  bool is_tree = true;
  for (size_t i = 0; i < sequences.size(); ++i) {
    auto node = static_cast<int64_t>(sequences[i]->tree.size());
    for (int64_t k = 0; k < lengths[i]; ++k, ++next, ++node) {
      is_tree = is_tree && next < parents.size() && parents[next] >= -1 && parents[next] < node;
    }
  }
  if (!is_tree || next != parents.size()) {
    TVM_FFI_THROW(ValueError) << "kv_state_begin_forward: expected for each token the index of "
                                 "an earlier one of its tree, or -1, got "
                              << parents;
  }
}

// ---- trees, inspection --------------------------------------------------------------------------
void PagedKVCacheObj::Commit(const Shape& ids, const Shape& leaves) {
  constexpr const char* kName = "attention_kv_cache_commit_accepted_token_tree_nodes";
  auto lock = Idle(kName);
  if (ids.size() != leaves.size()) {
    TVM_FFI_THROW(ValueError) << kName << ": expected a leaf for each sequence, got "
                              << leaves.size() << " for " << ids.size();
  }
  IntArray indptr, from, to;
  indptr.Push(0);
  std::vector<std::pair<KVSequence*, int64_t>> kept;  // and how many of its tree's tokens
  std::set<KVSequence*> seen;
  for (size_t i = 0; i < ids.size(); ++i) {
    KVSequence& sequence = pages_.At(ids[i], kName);
    auto size = static_cast<int64_t>(sequence.tree.size());
    if (size == 0 || leaves[i] < -1 || leaves[i] >= size || !seen.insert(&sequence).second) {
      TVM_FFI_THROW(ValueError) << kName << ": expected a sequence with a token tree, once, and "
                                << "one of its nodes or -1, got sequence " << ids[i] << " of "
                                << size << " nodes and " << leaves[i];
    }
    std::vector<int64_t> path;
    for (int64_t node = leaves[i]; node >= 0; node = sequence.tree[node]) path.push_back(node);
    std::reverse(path.begin(), path.end());
    int64_t base = sequence.stored - size;
    for (size_t k = 0; k < path.size(); ++k) {
      if (path[k] == static_cast<int64_t>(k)) continue;
      from.Push(pages_.Slot(sequence, base + path[k]));
      to.Push(pages_.Slot(sequence, base + static_cast<int64_t>(k)));
    }
    indptr.Push(from.size());
    kept.emplace_back(&sequence, static_cast<int64_t>(path.size()));
  }
  if (from.size() > 0) MoveRows(&indptr, &from, to);
  for (auto [sequence, count] : kept) {
    auto size = static_cast<int64_t>(sequence->tree.size());
    pages_.Truncate(sequence, sequence->stored - size + count);
    sequence->tree.clear();
  }
}
void PagedKVCacheObj::MoveRows(IntArray* indptr, IntArray* from, const IntArray& to) {
  int64_t count = from->size(), batch = indptr->size() - 1;
  for (int32_t slot : to) from->Push(slot);
  indptr->Upload(config_.device);
  from->Upload(config_.device, {2, count});
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (config_.kinds[i] == kMLA) {
      for (int64_t k = 0; k < count; ++k) {
        CopyTensor(Latent(i, from->begin()[k], 1), Latent(i, to.begin()[k], 1));
      }
    } else {
      Need(config_.compact_copy, "compact_copy")(layers_[i], indptr->tensor(), from->tensor(),
                                                 batch);
    }
  }
}
void PagedKVCacheObj::DebugGetKV(int64_t id, int64_t begin, int64_t end, const Tensor& k,
                                 const Tensor& v) {
  std::lock_guard lock(mutex_);
  IntArray map = SlotsOf("attention_kv_cache_debug_get_kv", id, begin, end);
  map.Upload(config_.device);
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    if (config_.kinds[layer] == kMLA) continue;
    Need(config_.debug_get_kv, "debug_get_kv")(layers_[layer], map.tensor(), k, v,
                                               static_cast<int64_t>(layer));
  }
}
void PagedKVCacheObj::DebugGetKVOfLatent(int64_t id, int64_t begin, int64_t end, const Tensor& kv) {
  constexpr const char* kName = "attention_kv_cache_debug_get_kv_mla";
  std::lock_guard lock(mutex_);
  IntArray map = SlotsOf(kName, id, begin, end);
  Shape shape{static_cast<int64_t>(layers_.size()), map.size(), config_.qk_dim};
  ShapeView given = kv.shape();
  if (!std::equal(shape.begin(), shape.end(), given.begin(), given.end()) ||
      DataType(kv.dtype()) != DataType(config_.dtype) || !kv.is_contiguous()) {
    TVM_FFI_THROW(ValueError) << kName << ": expected " << shape << " of "
                              << DataType(config_.dtype) << ", contiguous, got " << Shape(given)
                              << " of " << DataType(kv.dtype());
  }
  auto bytes = static_cast<int64_t>(DataSize({config_.qk_dim}, config_.dtype));
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    for (int64_t i = 0; config_.kinds[layer] == kMLA && i < map.size(); ++i) {
      int64_t row = static_cast<int64_t>(layer) * map.size() + i;
      CopyTensor(Latent(layer, map.begin()[i], 1),
                 CreateView(kv, {1, config_.qk_dim}, config_.dtype, row * bytes));
    }
  }
}

// ---- what all ask -------------------------------------------------------------------------------
std::unique_lock<std::mutex> PagedKVCacheObj::Idle(const char* what) {
  std::unique_lock lock(mutex_);
  if (running_) {
    TVM_FFI_THROW(RuntimeError) << what << ": expected kv_state_end_forward of the pass before";
  }
  return lock;
}
void PagedKVCacheObj::CheckRunning(const char* what) const {
  if (!running_) {
    TVM_FFI_THROW(RuntimeError) << what << ": expected kv_state_begin_forward before it";
  }
}
Function PagedKVCacheObj::Need(const Optional<Function>& function, const char* what) {
  if (!function) TVM_FFI_THROW(RuntimeError) << "the cache was made without a kernel for " << what;
  return *function;
}
IntArray PagedKVCacheObj::SlotsOf(const char* what, int64_t id, int64_t begin, int64_t end) {
  KVSequence& sequence = pages_.At(id, what);
  if (begin < 0 || end > sequence.length() || begin >= end) {
    TVM_FFI_THROW(IndexError) << what << ": expected tokens of 0 to " << sequence.length()
                              << ", got " << begin << " to " << end;
  }
  IntArray slots;
  for (int64_t i = begin; i < end; ++i) {
    slots.Push(
        pages_.Slot(sequence, i < sequence.sinks ? i : i - sequence.sinks + sequence.offset));
  }
  return slots;
}
Tensor PagedKVCacheObj::Latent(size_t layer, int64_t slot, int64_t rows) const {
  Shape row{config_.qk_dim};
  int64_t bytes = slot * static_cast<int64_t>(DataSize(row, config_.dtype));
  return CreateView(layers_[layer], {rows, config_.qk_dim}, config_.dtype, bytes);
}
}  // namespace tvm::runtime::vm
