// SPDX-License-Identifier: Apache-2.0
// What the analyzer found out about nodes, so that it finds it out once.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "arith/interval.h"

namespace tvm::arith {

/// What an expression is made of.
struct Traits {
  bool index = true;  // int32 or int64 over loop and shape variables: does not overflow by contract
  bool pure = true;   // may be dropped and repeated
};

/// What is known of one node.
struct Memo {
  PrimExpr node;                 // stays alive: its address could be used again otherwise
  uint64_t facts = 0, data = 0;  // the facts that this was found out with
  // Depends on the facts:
  std::optional<Interval> bound;
  std::optional<Residue> residue;
  PrimExpr rewritten, canonical;
  // Depends on which variables come from memory:
  std::optional<Traits> traits;
  PrimExpr spelled;
};

/// The memos of an analyzer. Facts have a number: what was found out with others is forgotten when
/// it is looked at, so that changing facts costs nothing, nor does going back to those of before.
class Memos {
 public:
  Memos();
  ~Memos();
  Memos(const Memos&) = delete;
  Memos& operator=(const Memos&) = delete;

  /// Null where nothing is known. Good until the next call of At.
  Memo* Find(const PrimExpr& e) {
    uint32_t number = *SlotOf(e.get());
    return number ? Refresh(&table_->memos[number - 1]) : nullptr;
  }
  Memo* At(const PrimExpr& e);

  uint64_t facts() const { return facts_; }
  void NewFacts() { facts_ = ++last_; }
  void OldFacts(uint64_t number) { facts_ = number; }
  void NewData() { data_ = ++last_; }

 private:
  struct Table {
    std::vector<uint32_t> slots;  // the number of a memo, 0: free; a power of two of them
    std::vector<Memo> memos;
    void Clear();
    /// Where the search for a node begins.
    static size_t Start(const Object* node) {
      return (reinterpret_cast<uintptr_t>(node) * 0x9E3779B97F4A7C15u) >> 32;
    }
  };
  /// Where the node is, or belongs.
  uint32_t* SlotOf(const Object* node) const {
    size_t mask = table_->slots.size() - 1;
    for (size_t i = Table::Start(node);; ++i) {
      uint32_t* slot = &table_->slots[i & mask];
      if (!*slot || table_->memos[*slot - 1].node.get() == node) return slot;
    }
  }
  Memo* Refresh(Memo* memo) const {
    if (memo->facts != facts_) [[unlikely]] {
      memo->bound.reset();
      memo->residue.reset();
      memo->rewritten = memo->canonical = PrimExpr();
      memo->facts = facts_;
    }
    if (memo->data != data_) [[unlikely]] {
      memo->traits.reset();
      memo->spelled = PrimExpr();
      memo->data = data_;
    }
    return memo;
  }

  std::unique_ptr<Table> table_;
  uint64_t facts_ = 0, data_ = 0, last_ = 0;

  struct IdleTables;
  static thread_local IdleTables idle_;
};

}  // namespace tvm::arith
