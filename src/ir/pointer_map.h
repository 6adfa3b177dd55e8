// SPDX-License-Identifier: Apache-2.0
// A map from addresses of objects, for walks over programs of many nodes: open addressing in one
// block of memory, where std::unordered_map allocates for every entry.
#pragma once
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace tvm {

template <class Value>
class PointerMap {
 public:
  /// The value of the key, or nullptr.
  Value* Find(const void* key) {
    if (slots_.empty()) return nullptr;
    Slot& slot = SlotOf(key);
    return slot.key ? &slot.value : nullptr;
  }
  /// The value of the key, which is `value` when it is new, and whether it is.
  std::pair<Value*, bool> Insert(const void* key, Value value) {
    if (4 * (size_ + 1) > 3 * slots_.size()) Resize(slots_.empty() ? 16 : 2 * slots_.size());
    Slot& slot = SlotOf(key);
    if (slot.key) return {&slot.value, false};
    slot = {key, std::move(value)};
    ++size_;
    return {&slot.value, true};
  }
  Value& operator[](const void* key) { return *Insert(key, Value()).first; }
  size_t size() const { return size_; }
  /// Makes room for so many keys more.
  void Reserve(size_t more) {
    size_t slots = std::bit_ceil((size_ + more) * 4 / 3 + 1);
    if (slots > slots_.size()) Resize(slots);
  }
  void Clear() {
    slots_.clear();
    size_ = 0;
  }

 private:
  struct Slot {
    const void* key = nullptr;
    Value value{};
  };
  /// The key's slot, or the free one where it goes.
  Slot& SlotOf(const void* key) {
    size_t mask = slots_.size() - 1;
    // Objects are aligned: the low bits say nothing, the product mixes the others upwards.
    uint64_t hash = (reinterpret_cast<uintptr_t>(key) >> 4) * 0x9E3779B97F4A7C15u;
    size_t i = (hash >> 32) & mask;
    while (slots_[i].key && slots_[i].key != key) i = (i + 1) & mask;
    return slots_[i];
  }
  void Resize(size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.key) SlotOf(slot.key) = std::move(slot);
    }
  }
  std::vector<Slot> slots_;  // a power of two of them, at most three quarters are taken
  size_t size_ = 0;
};

}  // namespace tvm
