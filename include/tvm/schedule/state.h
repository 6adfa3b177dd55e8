// SPDX-License-Identifier: Apache-2.0
// The program a schedule works on: immutable statements and an index of their blocks and loops.
//
// A State is a value. Copying it is a few reference counts, and a change to one copy is not seen by
// another: keeping a copy is all that undoing takes. Changing a subtree costs the subtree and the
// path to the root; what lies beside it is shared.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "tvm/schedule/persistent_map.h"
#include "tvm/tir/function.h"

namespace tvm::tir {

/// Names a block or loop of a State. A number is never used again: that of a removed node names
/// nothing for ever.
using NodeId = int32_t;
inline constexpr NodeId kNoNode = -1;
struct BlockId {
  NodeId id = kNoNode;
  operator NodeId() const { return id; }
};
struct LoopId {
  NodeId id = kNoNode;
  operator NodeId() const { return id; }
};

/// How a later block depends on an earlier one. The values are part of the interface.
enum class DepKind : int { kRAW = 0, kWAW = 1, kWAR = 2, kOpaque = 3 };
struct DepEdge {
  BlockId src, dst;
  DepKind kind;
};
/// The child blocks of a block, in program order, and the dependences between them. Buffers that
/// share a data pointer are one.
struct Scope {
  std::vector<BlockId> blocks;
  std::unordered_map<NodeId, std::vector<DepEdge>> by_src, by_dst;
  /// Data pointer -> blocks that write it, in program order.
  std::unordered_map<const Object*, std::vector<BlockId>> writers;

  const std::vector<DepEdge>& From(BlockId src) const;
  const std::vector<DepEdge>& To(BlockId dst) const;
  const std::vector<BlockId>& WritersOf(const Buffer& buffer) const;
};

class State {
 public:
  State() = default;
  /// The functions of `mod` whose body is a block; others are kept as they are.
  explicit State(IRModule mod);
  /// The program as it is now.
  const IRModule& mod() const;

  // ---- nodes ----------------------------------------------------------------------------------
  bool Has(NodeId id) const { return entries_.Has(id); }
  bool IsBlock(NodeId id) const;
  const ForObj* loop(LoopId id) const;
  const BlockObj* block(BlockId id) const { return realize(id)->block.get(); }
  const BlockRealizeObj* realize(BlockId id) const;
  /// The For of a loop, the BlockRealize of a block.
  const Stmt& stmt(NodeId id) const;
  /// The For of a loop, the Block of a block.
  Stmt inner_stmt(NodeId id) const;
  /// The loop or block around, or kNoNode for the root block of a function.
  NodeId parent(NodeId id) const;
  BlockId Find(const BlockObj* block) const { return {Lookup(block)}; }
  LoopId Find(const ForObj* loop) const { return {Lookup(loop->loop_var.get())}; }
  LoopId FindLoop(const Var& loop_var) const { return {Lookup(loop_var.get())}; }

  // ---- places ---------------------------------------------------------------------------------
  /// The nearest block around a node, or kNoNode above a root block.
  BlockId ScopeOf(NodeId id) const;
  BlockId RootOf(NodeId id) const;
  /// The loops between a node and the nearest block around it, outermost first.
  std::vector<LoopId> LoopsAbove(NodeId id) const;
  /// The blocks below a node that no other block lies between, in program order.
  std::vector<BlockId> ChildBlocks(NodeId id) const;
  /// Direct loops and blocks below a node, in program order.
  std::vector<NodeId> Children(NodeId id) const;
  bool IsAncestor(NodeId above, NodeId below) const;
  /// The innermost node at or above both.
  NodeId CommonAncestor(NodeId a, NodeId b) const;
  const GlobalVar& FunctionOf(NodeId id) const;
  const PrimFunc& FuncOf(NodeId id) const;
  /// The root block of a function; kNoNode if it has none or does not exist.
  BlockId Root(const String& function) const;
  /// All blocks of the function with this name, in program order.
  std::vector<BlockId> BlocksNamed(const String& name, const String& function) const;
  /// The dependences between the child blocks of a block; computed on first use.
  const Scope& scope(BlockId block) const;

  // ---- change ---------------------------------------------------------------------------------
  /// Puts `with` where the For (of a loop) or the BlockRealize (of a block) `id` is. Loops keep
  /// their number as long as their variable stays; blocks as long as the Block object stays, or
  /// `reuse` says which old Block the new one continues.
  using BlockReuse = std::unordered_map<const Object*, Block>;  // new Block -> old Block
  void Replace(NodeId id, const Stmt& with, const BlockReuse& reuse = {});
  /// The common case: another Block with the same iterators and bindings.
  void ReplaceBlock(BlockId id, const Block& with);
  /// A loop or block with another body.
  void ReplaceBody(NodeId id, const Stmt& body, const BlockReuse& reuse = {});
  /// A block's own realize with another predicate or bindings.
  void ReplaceRealize(BlockId id, const BlockRealize& with);
  /// Replaces the function itself (new buffers of parameters, attributes) and its body.
  void ReplaceFunc(NodeId root, const PrimFunc& func, const BlockReuse& reuse = {});

  /// Whoever schedules answers for the independence of iterations.
  bool is_trusted = false;

  /// What is inconsistent between the program and its index; empty: nothing.
  std::string FindInconsistency() const;

 private:
  struct ScopeCell {  // filled once, by whichever copy asks first
    std::atomic<const Scope*> value{nullptr};
    ~ScopeCell() { delete value.load(); }
  };
  struct Entry {
    Stmt stmt;
    NodeId parent;
    std::shared_ptr<ScopeCell> scope;
  };
  struct Change;
  const Entry& entry(NodeId id) const;
  NodeId Lookup(const Object* key) const {
    const NodeId* id = ids_.Find(reinterpret_cast<uint64_t>(key));
    return id ? *id : kNoNode;
  }
  void Set(NodeId id, Entry entry) { entries_.Set(id, std::move(entry)); }
  void Add(const Stmt& stmt, NodeId parent, Change* change);
  void Drop(const Stmt& stmt, Change* change);
  void Splice(NodeId parent, const Object* old_child, Stmt child);
  void SetFunc(size_t index, PrimFunc func);

  PersistentMap<Entry> entries_;  // by id
  PersistentMap<NodeId> ids_;     // by the loop's variable or the Block
  PersistentMap<PrimFunc> funcs_;
  std::shared_ptr<const std::vector<GlobalVar>> names_;  // a root's parent is ~index here
  NodeId next_id_ = 0;
  mutable IRModule mod_;
  mutable std::vector<size_t> changed_;  // functions newer than mod_
};

/// Calls visit(For or BlockRealize) on the nearest loops and blocks in a statement.
void VisitNearest(const Stmt& stmt, const std::function<void(const Stmt&)>& visit);

// ---- refusing ---------------------------------------------------------------------------------
/// What a primitive throws: the reason and the statements it is about. The caller adds the
/// primitive's name and the program.
struct Refusal {
  std::string reason;
  std::vector<ObjectRef> about;
};
[[noreturn]] void Refuse(std::string reason, std::vector<ObjectRef> about = {});
/// The values one after the other, as text; nodes in the form of scripts.
template <class T>
void AddText(std::ostringstream& out, const T& value) {
  if constexpr (std::is_base_of_v<ObjectRef, T>) {
    out << Function::GetGlobalRequired("script._repr")(value).template cast<String>();
  } else {
    out << value;
  }
}
template <class... T>
std::string Text(const T&... parts) {
  std::ostringstream out;
  (AddText(out, parts), ...);
  return out.str();
}

}  // namespace tvm::tir
