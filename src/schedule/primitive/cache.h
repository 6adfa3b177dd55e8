// SPDX-License-Identifier: Apache-2.0
// Copies of buffers: where the copying block goes and what it copies.
#pragma once
#include "schedule/primitive/move.h"

namespace tvm::tir {

/// A place between statements: in the innermost sequence that contains a group of blocks.
struct Gap {
  Stmt sequence;           // a SeqStmt, or the whole body of the scope
  std::vector<Stmt> path;  // from the scope to the sequence
  std::vector<For> loops;  // around the sequence
  Array<Stmt> statements;
  /// The gap's sequence around all of `blocks`; the outermost one when `outermost` is set.
  Gap(const Focus& at, const std::vector<const Placed*>& blocks, bool outermost);
  int PositionOf(const Placed& block) const;
  std::vector<For> LoopsBelow(const Placed& block) const;
  /// The scope's body with `stmt` in front of the statement at `position` and others replaced.
  Stmt Insert(const Focus& at, int position, const Stmt& stmt, StmtMap changes) const;
};

/// A block that copies the part `box` of one buffer to the same place of another, in loops.
struct CopyNest {
  Block block;
  Stmt nest;
};
CopyNest CopyBlock(const Buffer& from, const Buffer& to, const String& name,
                   const Array<arith::IntSet>& box, const std::vector<For>& outer, bool exact);
/// A loop around a block, and the statement of its body that contains the block.
struct LoopBody {
  For loop;
  std::vector<For> outer, inner;  // the loops around the block: those to the loop, those below it
  Array<Stmt> statements;
  size_t position = 0;
  /// Refuses a loop that is not around the block. What lies in shared memory belongs to all
  /// threads of a kernel: their loops count as inner ones there.
  LoopBody(const Focus& at, const State& state, LoopId loop, const String& storage_scope);
  /// The loop with another statement there, and others (or none) around it.
  Stmt With(const Stmt& before, const Stmt& changed, const Stmt& after) const;
};
/// One block, marked `auto_copy`, that copies the part `box` below the loops `outer`, over which it
/// has an iterator each as far as the box depends on them.
BlockRealize CopyAt(const Buffer& from, const Buffer& to, const String& name,
                    const Array<arith::IntSet>& box, const std::vector<For>& outer);
/// A buffer among those that a block reads or writes: its position, its name or itself. In traces
/// it is the position.
using BufferIndex = Variant<int64_t, String, Buffer>;
/// The buffer of what the block reads or writes; makes `index` its position. Refuses others.
Buffer BufferAt(const Placed& block, const Array<BufferRegion>& regions, BufferIndex& index,
                const char* what);
/// Refuses when a block uses the buffer through its pointer or another view.
void CheckPlainUse(const Placed& block, const Buffer& buffer);
/// Refuses a block that reads the buffer, or is not the only one that writes it.
void RequireWritesOnly(const Focus& at, const Buffer& buffer);
/// The name of a buffer's copy in another memory. Refuses what is no memory scope.
String CacheName(const Buffer& buffer, const String& scope);
/// A buffer like this one in another memory. Refuses what is no memory scope.
Buffer NewCache(const Buffer& buffer, const String& scope);
/// The blocks that are to use the cache: those given, or all of `candidates`.
std::vector<const Placed*> ChosenConsumers(const Focus& at, const State& state,
                                           const std::vector<BlockId>& given,
                                           const std::vector<const Placed*>& candidates,
                                           const Buffer& buffer);
/// Puts the block that copies in front of the statement at `position` of the gap, and makes `users`
/// use the cache in the place of the buffer.
BlockId InsertCopy(State& state, const Focus& at, const Gap& gap, int position,
                   const CopyNest& copy, const Buffer& buffer, const Buffer& cache,
                   const std::vector<const Placed*>& users);

}  // namespace tvm::tir
