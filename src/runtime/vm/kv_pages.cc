// SPDX-License-Identifier: Apache-2.0
// The pages of a paged cache, and who uses them.
#include "runtime/vm/kv_pages.h"

#include <algorithm>

#include "tvm/runtime/def.h"

namespace tvm::runtime::vm {

void KVPages::Clear() {
  sequences_.clear();
  std::fill(users_.begin(), users_.end(), 0);
  free_.resize(users_.size());
  for (size_t i = 0; i < free_.size(); ++i) {  // the first page is taken first
    free_[i] = static_cast<int32_t>(free_.size() - 1 - i);
  }
}
int64_t KVPages::TotalLength() const {
  int64_t total = 0;
  for (const auto& [id, sequence] : sequences_) total += sequence.length();
  return total;
}
KVSequence& KVPages::At(int64_t id, const char* what) {
  auto it = sequences_.find(id);
  if (it == sequences_.end()) {
    TVM_FFI_THROW(ValueError) << what << ": expected a sequence of the cache, got " << id;
  }
  return it->second;
}
int32_t KVPages::Take() {
  int32_t page = free_.back();
  free_.pop_back();
  users_[page] = 1;
  return page;
}
void KVPages::Release(int32_t page) {
  if (--users_[page] == 0) free_.push_back(page);
}
void KVPages::CheckNew(int64_t id, const char* what) const {
  if (sequences_.count(id)) {
    TVM_FFI_THROW(ValueError) << what << ": expected a new sequence, got " << id
                              << ", which the cache has";
  }
  if (static_cast<int64_t>(sequences_.size()) >= max_sequences_) {
    TVM_FFI_THROW(ValueError) << what << ": expected at most " << max_sequences_
                              << " sequences, which the cache has";
  }
}
void KVPages::Add(int64_t id) {
  CheckNew(id, "kv_state_add_sequence");
  sequences_[id];
}
void KVPages::Remove(int64_t id) {
  for (int32_t page : At(id, "kv_state_remove_sequence").pages) Release(page);
  sequences_.erase(id);
}

void KVPages::Fork(int64_t parent_id, int64_t child, int64_t position, const CopyPage& copy) {
  constexpr const char* kName = "kv_state_fork_sequence";
  KVSequence& parent = At(parent_id, kName);
  CheckNew(child, kName);
  if (position == -1) position = parent.stored;
  if (position < 0 || position > parent.stored) {
    TVM_FFI_THROW(ValueError) << kName << ": expected a position between 0 and " << parent.stored
                              << ", got " << position;
  }
  if (parent.window > 0 || !parent.tree.empty()) {
    TVM_FFI_THROW(ValueError) << kName << ": expected a sequence without "
                              << (parent.window > 0 ? "a sliding window" : "uncommitted tokens")
                              << ", got " << parent_id;
  }
  int64_t whole = position / page_size_, rest = position % page_size_;
  if (rest > 0 && free_.empty()) {
    TVM_FFI_THROW(RuntimeError) << kName << ": expected a free page, got a cache that is full";
  }
  KVSequence result;
  result.stored = result.position = position;
  result.pages.assign(parent.pages.begin(), parent.pages.begin() + whole);
  if (rest > 0) {
    copy(parent.pages[whole], free_.back(), rest);
    result.pages.push_back(Take());
  }
  for (int64_t i = 0; i < whole; ++i) ++users_[result.pages[i]];
  sequences_[child] = std::move(result);
}

void KVPages::Truncate(KVSequence* sequence, int64_t stored) {
  int64_t keep = PagesFor(stored);
  while (static_cast<int64_t>(sequence->pages.size()) > keep) {
    Release(sequence->pages.back());
    sequence->pages.pop_back();
  }
  sequence->position -= sequence->stored - stored;
  sequence->stored = stored;
}
void KVPages::Pop(int64_t id, int64_t n) {
  constexpr const char* kName = "kv_state_popn";
  KVSequence& sequence = At(id, kName);
  // A window that has moved left tokens behind that are not there any more.
  int64_t begin = sequence.offset > sequence.sinks ? sequence.offset : 0;
  if (n < 0 || n > sequence.stored - begin) {
    TVM_FFI_THROW(ValueError) << kName << ": expected 0 to " << sequence.stored - begin
                              << " tokens of sequence " << id << ", got " << n;
  }
  int64_t stored = sequence.stored - n;
  for (size_t i = stored / page_size_; n > 0 && i < sequence.pages.size(); ++i) {
    if (users_[sequence.pages[i]] > 1) {
      TVM_FFI_THROW(ValueError) << kName << ": expected tokens behind the fork of sequence " << id
                                << ", got " << n << ", which reaches a page that is shared";
    }
  }
  Truncate(&sequence, stored);
  auto pending = static_cast<int64_t>(sequence.tree.size());
  sequence.tree.resize(std::max<int64_t>(0, pending - n));
}
void KVPages::SetWindow(int64_t id, int64_t window, int64_t sinks) {
  constexpr const char* kName = "attention_kv_cache_enable_sliding_window_for_seq";
  KVSequence& sequence = At(id, kName);
  if (window <= 0 || sinks < 0 || sinks >= window) {
    TVM_FFI_THROW(ValueError) << kName << ": expected a window and fewer sinks than it, got "
                              << window << " and " << sinks;
  }
  if (sequence.window > 0) {
    TVM_FFI_THROW(ValueError) << kName << ": expected a sequence without a window, got " << id;
  }
  sequence.window = window;
  sequence.sinks = sequence.offset = sinks;
}

void KVPages::Append(std::span<KVSequence* const> sequences, std::span<const int64_t> lengths,
                     bool slide) {
  // What windows leave behind, in whole pages: [first, last) of each sequence.
  auto behind = [&](const KVSequence& s) {
    int64_t first = PagesFor(s.sinks);
    return std::pair(first, slide ? std::max(first, s.WindowBegin() / page_size_) : first);
  };
  int64_t available = num_free(), needed = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const KVSequence& s = *sequences[i];
    auto [first, last] = behind(s);
    for (int64_t k = first; k < last; ++k) available += users_[s.pages[k]] == 1;
    needed += PagesFor(s.stored + lengths[i]) - static_cast<int64_t>(s.pages.size());
  }
  if (needed > available) {
    TVM_FFI_THROW(RuntimeError) << "kv_state_begin_forward: expected " << needed
                                << " free pages, got " << available;
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    KVSequence& s = *sequences[i];
    auto [first, last] = behind(s);
    if (slide) s.offset = s.WindowBegin();
    for (int64_t k = first; k < last; ++k) Release(s.pages[k]);
    s.pages.erase(s.pages.begin() + first, s.pages.begin() + last);
    s.offset -= (last - first) * page_size_;
    s.stored += lengths[i] - (last - first) * page_size_;
    s.position += lengths[i];
  }
  for (KVSequence* s : sequences) {
    while (static_cast<int64_t>(s->pages.size()) < PagesFor(s->stored)) s->pages.push_back(Take());
  }
}

}  // namespace tvm::runtime::vm
