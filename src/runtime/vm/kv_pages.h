// SPDX-License-Identifier: Apache-2.0
// Which page of a paged cache holds which tokens of which sequence. Knows no tensors.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace tvm::runtime::vm {

/// A sequence of tokens in pages. With a window only the first `sinks` tokens and those from
/// `offset` on count; pages in between are given back, so that offsets are those in its own pages.
struct KVSequence {
  std::vector<int32_t> pages;
  int64_t stored = 0;    ///< Tokens in the pages.
  int64_t position = 0;  ///< Of the next token, from the first one that ever was.
  int64_t window = 0, sinks = 0, offset = 0;
  std::vector<int32_t> tree;  ///< The last tokens, which are not committed: index of the parent.

  int64_t length() const { return stored - offset + sinks; }
  /// Where the window would begin if only `window` tokens were kept.
  int64_t WindowBegin() const {
    return window > 0 && length() > window ? offset + length() - window : offset;
  }
  int64_t Depth(int64_t node) const {
    int64_t depth = 0;
    while ((node = tree[node]) >= 0) ++depth;
    return depth;
  }
};

/// Pages are counted: sequences that were forked share those that are full. The last page of a
/// sequence, where it is not full, is its own.
class KVPages {
 public:
  KVPages(int64_t max_sequences, int64_t num_pages, int64_t page_size)
      : page_size_(page_size), max_sequences_(max_sequences), users_(num_pages) {
    Clear();
  }
  void Clear();
  int64_t page_size() const { return page_size_; }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  bool empty() const { return sequences_.empty(); }
  int64_t TotalLength() const;
  KVSequence& At(int64_t id, const char* what);
  /// Where the token at an offset in its own pages lies: page * page size + row.
  int32_t Slot(const KVSequence& sequence, int64_t token) const {
    return static_cast<int32_t>(sequence.pages[token / page_size_] * page_size_ +
                                token % page_size_);
  }

  void Add(int64_t id);
  void Remove(int64_t id);
  /// Copies rows of one page to another; what it throws leaves everything as it was.
  using CopyPage = std::function<void(int32_t from, int32_t to, int64_t rows)>;
  void Fork(int64_t parent, int64_t child, int64_t position, const CopyPage& copy);
  void Pop(int64_t id, int64_t n);
  void SetWindow(int64_t id, int64_t window, int64_t sinks);
  /// Room for tokens: windows move first (where `slide`), which gives pages back.
  void Append(std::span<KVSequence* const> sequences, std::span<const int64_t> lengths, bool slide);
  /// Forgets the last tokens: those behind `stored`.
  void Truncate(KVSequence* sequence, int64_t stored);

 private:
  int64_t PagesFor(int64_t tokens) const { return (tokens + page_size_ - 1) / page_size_; }
  int32_t Take();
  void Release(int32_t page);
  void CheckNew(int64_t id, const char* what) const;

  int64_t page_size_, max_sequences_;
  std::vector<int32_t> users_;  // per page
  std::vector<int32_t> free_;
  std::map<int64_t, KVSequence> sequences_;
};

}  // namespace tvm::runtime::vm
