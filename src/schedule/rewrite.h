// SPDX-License-Identifier: Apache-2.0
// Rewriting the statements of a scope: what primitives that move computation share.
#pragma once
#include <functional>
#include <unordered_map>
#include <vector>

#include "schedule/analysis.h"
#include "tvm/expr/substitute.h"
#include "tvm/schedule/state.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {

/// Which old block a new one continues (see State::Replace).
using BlockMap = State::BlockReuse;

/// A block in its scope, as a primitive looks at it. Refuses a root block.
struct Focus {
  BlockId scope_id;
  ScopeInfo scope;
  const Placed* block;
  Focus(const State& state, BlockId id);
};
/// Puts another scope block in the place of the one there; `same` as in State::Replace.
void Commit(State& state, BlockId scope, const Block& with, BlockMap same = {});
/// Refuses when there is a reason.
void Require(const std::string& why, std::initializer_list<ObjectRef> about = {});

/// The block with the regions that its body touches as its signature.
Block WithInferredRegions(const Block& block);

/// Statements by what replaces them; Evaluate(0) removes.
using StmtMap = std::unordered_map<const StmtObj*, Stmt>;
/// `root` with statements replaced. Loops and sequences left without a body vanish. Only the
/// statements above what is replaced are copied.
Stmt ReplaceStmts(const Stmt& root, const StmtMap& with);
/// The scope without the block and the loops that contain nothing else.
Stmt RemoveBlock(const Stmt& root, const Placed& block);
/// The scope block with another body.
Block WithBody(Block scope, Stmt body);
/// The scope block allocating one more buffer.
Block WithAllocated(Block scope, const Buffer& buffer);
Block WithoutAllocated(Block scope, const Buffer& buffer);

/// `nest` (outermost first) around `body`.
Stmt InLoops(const std::vector<For>& nest, Stmt body);
/// Statements one after the other in place of `at`.
inline Stmt Sequence(std::initializer_list<Stmt> stmts) {
  return SeqStmt::Flatten(Array<Stmt>(stmts));
}

/// How accesses of one buffer change.
struct AccessRewrite {
  Buffer from;
  std::function<PrimExpr(const BufferLoad&)> load;               // may be empty: as it is
  std::function<Stmt(const BufferStore&)> store = {};            // may be empty
  std::function<BufferRegion(const BufferRegion&)> region = {};  // of match buffers and signatures
};
/// `stmt` with accesses of a buffer changed; blocks below get inferred regions. Blocks that changed
/// are noted in `same`.
Stmt RewriteAccesses(const Stmt& stmt, const AccessRewrite& rewrite, BlockMap* same);
/// `stmt` with one buffer in the place of another of the same shape. Views and uses of the pointer
/// go along; where the elements have another type, they are converted as they are loaded and
/// stored.
Stmt ReplaceBuffer(const Stmt& stmt, const Buffer& from, const Buffer& to, BlockMap* same);

/// Whether the memory of `buffer` is used in `node` in another way than by loads, stores and
/// regions of this buffer: through its pointer or through another view.
bool IsUsedOtherwise(const ObjectRef& node, const Buffer& buffer);
/// The same for its pointer, or that of a view, alone.
bool IsUsedThroughPointer(const ObjectRef& node, const Buffer& buffer);

/// A buffer like `buffer` with its own memory.
Buffer NewBufferLike(const Buffer& buffer, const Array<PrimExpr>& shape, const String& name,
                     const String& scope);
Array<PrimExpr> ValuesOf(const Array<IterVar>& iters);
/// A condition on a block's iterators in terms of the loops around.
PrimExpr BoundCondition(const BlockRealize& realize, const PrimExpr& condition);
/// The conjuncts of a condition, without likely.
std::vector<PrimExpr> Conjuncts(const PrimExpr& condition);
PrimExpr AllOf(const std::vector<PrimExpr>& conditions);
bool UsesAny(const ObjectRef& node, const std::unordered_set<const VarObj*>& vars);

/// Loops and blocks as errors call them.
inline std::string NameOf(const For& loop) {
  return "loop " + std::string(loop->loop_var->name_hint);
}
inline std::string NameOf(const Placed& p) { return "block " + std::string(p.block()->name_hint); }

}  // namespace tvm::tir
