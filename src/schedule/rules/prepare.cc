// SPDX-License-Identifier: Apache-2.0
// What rules see of a function: indices as simple as the ranges of iterators allow, and reductions
// that only share their loops as blocks of their own.
//
//   for i, k in T.grid(n, m):                    for i, k in T.grid(n, m): S[i] += A[i, k]
//       S[i], Q[i] = S[i] + A[i, k], ...   -->   for i, k in T.grid(n, m): Q[i] += ...
#include "schedule/rules/look.h"
#include "tir/index_simplifier.h"

namespace tvm::tir {
namespace {
// ---- reductions that share loops ----------------------------------------------------------------
/// The stores of a statement that is nothing but stores.
std::vector<BufferStore> StoresOf(const Stmt& stmt) {
  std::vector<BufferStore> stores;
  auto add = [&](const Stmt& s) {
    auto* store = s.as<BufferStoreObj>();
    if (store) stores.push_back(ffi::GetRef<BufferStore>(store));
    return store != nullptr;
  };
  auto* seq = stmt.as<SeqStmtObj>();
  if (!seq) {
    add(stmt);
    return stores;
  }
  for (const Stmt& s : seq->seq) {
    if (!add(s)) return {};
  }
  return stores;
}
/// The updates of a block that reduces several values, each of which reads no other's result; empty
/// for any other block.
std::vector<BufferStore> IndependentUpdates(const BlockObj* block) {
  if (!block->init) return {};
  std::unordered_map<const Object*, PrimExpr> values;
  Stmt body = block->body;
  while (auto* let = body.as<LetStmtObj>()) {
    values[let->var.get()] = let->value;
    body = let->body;
  }
  std::vector<BufferStore> updates = StoresOf(body);
  if (updates.size() < 2 || StoresOf(block->init.value()).size() != updates.size()) return {};
  for (BufferStore& update : updates) {
    auto value = values.find(update->value.get());
    if (value == values.end()) return {};
    bool independent = true;
    PreOrderVisit(value->second, [&](const ObjectRef& node) {
      if (auto* load = node.as<BufferLoadObj>()) {
        for (const BufferStore& other : updates) {
          independent = independent && (!load->buffer.same_as(other->buffer) ||
                                        other->buffer.same_as(update->buffer));
        }
      }
      independent = independent && !values.count(node.get());
      return independent;
    });
    if (!independent) return {};
    update = BufferStore(update->buffer, value->second, update->indices);
  }
  return updates;
}
struct ReductionSplitter : Mutator<ReductionSplitter, BlockObj> {
  ObjectRef Rewrite(const BlockObj* op) {
    Block block = Below<Block>(op);
    auto* seq = block->body.as<SeqStmtObj>();
    Array<Stmt> nests = seq ? seq->seq : Array<Stmt>{block->body}, result;
    for (const Stmt& nest : nests) {
      for (const Stmt& part : Parts(nest)) result.push_back(part);
    }
    if (result.size() != nests.size()) Edit(&block)->body = SeqStmt::Flatten(result);
    return block;
  }

 private:
  /// One nest of loops per value that its block reduces.
  static std::vector<Stmt> Parts(const Stmt& nest) {
    std::vector<Stmt> loops;
    Stmt inner = nest;
    while (auto* loop = inner.as<ForObj>()) {
      loops.push_back(inner);
      inner = loop->body;
    }
    auto* realize = inner.as<BlockRealizeObj>();
    std::vector<BufferStore> updates =
        realize ? IndependentUpdates(realize->block.get()) : std::vector<BufferStore>();
    if (updates.empty()) return {nest};
    std::vector<Stmt> parts;
    std::vector<BufferStore> starts = StoresOf(realize->block->init.value());
    for (size_t i = 0; i < updates.size(); ++i) {
      Block block = realize->block;
      auto start = std::find_if(starts.begin(), starts.end(), [&](const BufferStore& s) {
        return s->buffer.same_as(updates[i]->buffer);
      });
      if (start == starts.end()) return {nest};
      auto* n = Edit(&block);
      n->init = *start;
      n->body = updates[i];
      Array<BufferRegion> writes;
      for (const BufferRegion& region : realize->block->writes) {
        if (region->buffer.same_as(updates[i]->buffer)) writes.push_back(region);
      }
      n->writes = writes;
      if (i > 0) n->name_hint = std::string(n->name_hint) + "_" + std::to_string(i);
      Stmt part = MergeNest(loops, BlockRealize(realize->iter_values, realize->predicate, block));
      parts.push_back(i == 0 ? part : RenewDefs(PrimFunc({}, part))->body);
    }
    return parts;
  }
};
}  // namespace

PrimFunc Prepared(PrimFunc func) {
  IndexSimplifier simplifier;
  simplifier.LearnParams(func);
  return RewriteBody(RewriteBody(std::move(func), simplifier), ReductionSplitter());
}

}  // namespace tvm::tir
