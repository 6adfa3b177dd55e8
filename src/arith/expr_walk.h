// SPDX-License-Identifier: Apache-2.0
// Mutators of expressions alone, that simplifiers are made of.
#pragma once
#include "arith/impl.h"

namespace tvm::arith {

/// What expressions share keeps its identity: a load must name the very buffer that was declared.
/// `Self` says `using ExprWalk::Rewrite;` beside its own for expressions.
template <class Self>
struct ExprWalk
    : Mutator<Self, PrimExprObj, BufferObj, DataProducerObj, IterVarObj, CommReducerObj> {
  ObjectRef Rewrite(const BufferObj* n) { return ffi::GetRef<ObjectRef>(n); }
  ObjectRef Rewrite(const DataProducerObj* n) { return ffi::GetRef<ObjectRef>(n); }
  ObjectRef Rewrite(const IterVarObj* n) { return ffi::GetRef<ObjectRef>(n); }
  ObjectRef Rewrite(const CommReducerObj* n) { return ffi::GetRef<ObjectRef>(n); }
};

}  // namespace tvm::arith
