// SPDX-License-Identifier: Apache-2.0
// Questions about functions and statements.
#pragma once
#include <unordered_map>
#include <vector>

#include "tvm/expr/builtin.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/function.h"

namespace tvm::tir {

/// For each buffer the innermost loop or block around all its accesses; an undefined statement
/// stands for the whole function. A buffer that a reduction block writes lives outside the
/// reduction's loops.
Map<Buffer, Optional<Stmt>> DetectBufferAccessLCA(const PrimFunc& func);
/// The innermost place where each buffer may be allocated: as above, but outside serial loops that
/// no block iterator runs over, because values may be carried from one iteration to the next there.
Map<Buffer, Optional<Stmt>> DetectAllocationPlace(const PrimFunc& func);

/// Regions of buffers a block touches: [reads, writes, opaque], where opaque are buffers used
/// through their data pointer. Loop variables inside the block are relaxed to their ranges. The
/// result of a reduction (a block with init) is not among what it reads.
Array<Array<BufferRegion>> GetBlockAccessRegion(const Block& block,
                                                const Map<Var, Buffer>& buffer_var_to_buffer);
/// The same with opaque accesses counted as read and written.
Array<Array<BufferRegion>> GetBlockReadWriteRegion(const Block& block,
                                                   const Map<Var, Buffer>& buffer_var_to_buffer);

/// Variables that `node` uses and does not define, in the order of their first use.
Array<Var> UndefinedVars(const ObjectRef& node, const Array<Var>& defined = {});

/// Whether each variable is defined once.
bool VerifySSA(const PrimFunc& func);
/// What is wrong with the function: uses of variables or buffers outside their definition,
/// variables defined twice, block iterators used outside. An empty string: nothing.
std::string FindIllFormed(const PrimFunc& func);
bool VerifyWellFormed(const PrimFunc& func, bool assert_mode = true);
bool VerifyWellFormed(const IRModule& mod, bool assert_mode = true);
/// Whether no function that runs on the host touches device memory directly.
bool VerifyMemory(const PrimFunc& func);

/// Whether calling the function changes nothing but its output buffers.
bool IsPureFunction(const PrimFunc& func, bool assert_on_error = false);
bool HasIfThenElse(const Stmt& stmt);
/// Whether evaluating `e` has an effect or depends on memory: at most the effect given.
CallEffectKind SideEffect(const PrimExpr& e);

/// Floating-point (and integer data) operations of one run.
double EstimateTIRFlops(const Stmt& stmt);
double EstimateTIRFlops(const IRModule& mod);
/// Bytes allocated at once at most, by memory scope.
Map<String, int64_t> CalculateAllocatedBytes(const PrimFunc& func);

/// The block that does most of the module's work, or an undefined one.
Optional<Block> FindAnchorBlock(const IRModule& mod);

}  // namespace tvm::tir
