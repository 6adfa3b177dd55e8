// SPDX-License-Identifier: Apache-2.0
// The table of memos. Analyzers come and go by the thousand: their tables are used again.
#include "arith/memo.h"

namespace tvm::arith {
namespace {
// An expression of more nodes than memos is looked at again and again.
// Large tables are worth keeping, too: malloc tidies up whenever it is asked for much.
constexpr size_t kFirstSlots = 256, kMostIdleSlots = 1 << 13, kMostMemos = 1 << 16;
thread_local constinit bool thread_ends = false;
}  // namespace

struct Memos::IdleTables {
  std::vector<std::unique_ptr<Table>> tables;
  ~IdleTables() { thread_ends = true; }
};
thread_local Memos::IdleTables Memos::idle_;

Memos::Memos() {
  if (!thread_ends && !idle_.tables.empty()) {
    table_ = std::move(idle_.tables.back());
    idle_.tables.pop_back();
    return;
  }
  table_ = std::make_unique<Table>();
  table_->slots.resize(kFirstSlots);
}
Memos::~Memos() {
  if (thread_ends || table_->slots.size() > kMostIdleSlots) return;
  table_->Clear();
  idle_.tables.push_back(std::move(table_));
}

void Memos::Table::Clear() {
  if (8 * memos.size() < slots.size()) {  // few of many: one by one
    for (size_t n = 0; n < memos.size(); ++n) {
      size_t i = Start(memos[n].node.get()), mask = slots.size() - 1;
      while (slots[i & mask] != n + 1) ++i;
      slots[i & mask] = 0;
    }
  } else {
    std::fill(slots.begin(), slots.end(), 0);
  }
  memos.clear();
}

Memo* Memos::At(const PrimExpr& e) {
  uint32_t* slot = SlotOf(e.get());
  if (*slot) return Refresh(&table_->memos[*slot - 1]);
  std::vector<Memo>& memos = table_->memos;
  if (memos.size() >= kMostMemos) table_->Clear();
  if (2 * memos.size() >= table_->slots.size()) {
    table_->slots.assign(2 * table_->slots.size(), 0);
    for (size_t i = 0; i < memos.size(); ++i)
      *SlotOf(memos[i].node.get()) = static_cast<uint32_t>(i + 1);
  }
  Memo& memo = memos.emplace_back();
  memo.node = e;
  memo.facts = facts_;
  memo.data = data_;
  *SlotOf(e.get()) = static_cast<uint32_t>(memos.size());
  return &memo;
}

}  // namespace tvm::arith
