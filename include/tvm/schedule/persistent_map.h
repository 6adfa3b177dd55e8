// SPDX-License-Identifier: Apache-2.0
// A map whose copies share what they have in common: copying is one reference count, changing a
// copy costs the nodes on one path.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

namespace tvm {

/// Keys are 64-bit numbers or addresses. A trie of 16-way nodes over the mixed key; the mixing is
/// one to one, so that two keys always part at some level.
template <class V>
class PersistentMap {
 public:
  const V* Find(uint64_t key) const {
    uint64_t h = Mix(key);
    const Node* node = root_.get();
    for (int shift = 0; node; shift += kBits) {
      uint16_t bit = Bit(h, shift);
      if (node->leaf_bits & bit) {
        const Leaf& leaf = node->leaves[Rank(node->leaf_bits, bit)];
        return leaf.hash == h ? &leaf.value : nullptr;
      }
      if (!(node->node_bits & bit)) return nullptr;
      node = node->nodes[Rank(node->node_bits, bit)].get();
    }
    return nullptr;
  }
  bool Has(uint64_t key) const { return Find(key) != nullptr; }
  void Set(uint64_t key, V value) {
    uint64_t h = Mix(key);
    size_ += Insert(&root_, h, 0, std::move(value));
  }
  void Erase(uint64_t key) {
    if (Has(key)) {
      Remove(&root_, Mix(key), 0);
      --size_;
    }
  }
  size_t size() const { return size_; }
  /// Calls visit(value) on every value, in no particular order.
  template <class F>
  void ForEach(F&& visit) const {
    if (root_) Each(*root_, visit);
  }

 private:
  static constexpr int kBits = 4;
  struct Leaf {
    uint64_t hash;
    V value;
  };
  struct Node {
    uint16_t leaf_bits = 0, node_bits = 0;
    std::vector<Leaf> leaves;
    std::vector<std::shared_ptr<Node>> nodes;
  };
  using Ref = std::shared_ptr<Node>;

  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
  }
  static uint16_t Bit(uint64_t hash, int shift) {
    return static_cast<uint16_t>(1u << ((hash >> shift) & ((1 << kBits) - 1)));
  }
  static int Rank(uint16_t bits, uint16_t bit) {
    return std::popcount(static_cast<uint16_t>(bits & (bit - 1)));
  }
  /// The node, safe to change: a copy unless no other map shares it.
  static Node* Own(Ref* ref) {
    if (!*ref) {
      *ref = std::make_shared<Node>();
    } else if (ref->use_count() != 1) {
      *ref = std::make_shared<Node>(**ref);
    }
    return ref->get();
  }
  /// Whether the key is new.
  static bool Insert(Ref* ref, uint64_t h, int shift, V value) {
    Node* node = Own(ref);
    uint16_t bit = Bit(h, shift);
    if (node->node_bits & bit) {
      return Insert(&node->nodes[Rank(node->node_bits, bit)], h, shift + kBits, std::move(value));
    }
    int at = Rank(node->leaf_bits, bit);
    if (!(node->leaf_bits & bit)) {
      node->leaf_bits |= bit;
      node->leaves.insert(node->leaves.begin() + at, Leaf{h, std::move(value)});
      return true;
    }
    if (node->leaves[at].hash == h) {
      node->leaves[at].value = std::move(value);
      return false;
    }
    Ref below;
    Insert(&below, node->leaves[at].hash, shift + kBits, std::move(node->leaves[at].value));
    Insert(&below, h, shift + kBits, std::move(value));
    node->leaves.erase(node->leaves.begin() + at);
    node->leaf_bits ^= bit;
    node->nodes.insert(node->nodes.begin() + Rank(node->node_bits, bit), std::move(below));
    node->node_bits |= bit;
    return true;
  }
  static void Remove(Ref* ref, uint64_t h, int shift) {
    Node* node = Own(ref);
    uint16_t bit = Bit(h, shift);
    if (node->node_bits & bit) {
      return Remove(&node->nodes[Rank(node->node_bits, bit)], h, shift + kBits);
    }
    node->leaves.erase(node->leaves.begin() + Rank(node->leaf_bits, bit));
    node->leaf_bits ^= bit;
  }
  template <class F>
  static void Each(const Node& node, F& visit) {
    for (const Leaf& leaf : node.leaves) visit(leaf.value);
    for (const Ref& below : node.nodes) Each(*below, visit);
  }

  Ref root_;
  size_t size_ = 0;
};

}  // namespace tvm
