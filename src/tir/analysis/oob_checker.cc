// SPDX-License-Identifier: Apache-2.0
// Finds accesses that are certainly outside of their buffers.
#include "../analyzed_mutator.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
struct OutOfBoundsFinder
    : AnalyzedMutator<OutOfBoundsFinder, BufferLoadObj, BufferStoreObj, BufferObj> {
  using Base::Rewrite;
  std::vector<std::string> found;
  arith::DomMap loops;
  int conditions = 0;  // around

  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const ForObj* op) {
    loops.Set(op->loop_var, arith::EvalSet(Range::FromMinExtent(op->min, op->extent), loops));
    ObjectRef loop = Base::Rewrite(op);
    loops.erase(op->loop_var);
    return loop;
  }
  template <class Node>
  ObjectRef Under(bool guards, const Node* op) {
    conditions += guards;
    ObjectRef result = Base::Rewrite(op);
    conditions -= guards;
    return result;
  }
  ObjectRef Rewrite(const IfThenElseObj* op) { return Under(true, op); }
  ObjectRef Rewrite(const CallObj* op) { return Under(op->Is(builtin::if_then_else()), op); }
  ObjectRef Rewrite(const SelectObj* op) { return Under(true, op); }
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    for (const IterVar& iv : op->block->iter_vars) {
      if (iv->dom.has_value()) loops.Set(iv->var, arith::IntSet::FromRange(iv->dom.value()));
    }
    return Under(!IsTrue(op->predicate), op);
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    Check(op->buffer, op->indices);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    Check(op->buffer, op->indices);
    return MapChildren(op, *this);
  }

  void Check(const Buffer& buffer, const Array<PrimExpr>& indices) {
    for (size_t i = 0; i < indices.size(); ++i) {
      const PrimExpr& index = indices[i];
      if (!index.dtype().is_scalar() || SideEffect(index) > CallEffectKind::kPure) continue;
      PrimExpr low = index, high = index;
      if (conditions == 0) {
        // Every iteration runs: one bad index is enough.
        arith::IntSet set = arith::EvalSet(index, loops, &analyzer);
        if (set.HasLowerBound()) low = set.min();
        if (set.HasUpperBound()) high = set.max();
      }
      bool below = analyzer.CanProve(low < MakeZero(low.dtype()));
      bool above = analyzer.CanProve(high >= cast(high.dtype(), buffer->shape[i]));
      if (below || above) {
        found.push_back("index " + std::to_string(i) + " of buffer " + std::string(buffer->name) +
                        (below ? " is negative" : " reaches its extent"));
      }
    }
  }
};

IRModule OOBChecker(IRModule mod) {
  std::string all;
  for (const auto& [var, func] : mod->Sorted()) {
    auto* f = func.as<PrimFuncObj>();
    if (!f) continue;
    OutOfBoundsFinder find;
    find.LearnParams(ffi::GetRef<PrimFunc>(f));
    find.Mutate(f->body);
    for (const std::string& text : find.found)
      all += "\n  " + std::string(var->name_hint) + ": " + text;
  }
  if (!all.empty())
    TVM_FFI_THROW(ScheduleError) << "OOBChecker: expected accesses inside of buffers, got" << all;
  return mod;
}

TVM_REGISTER() {
  ::tvm::transform::DefPass(
      "tir.analysis.OOBChecker", &OOBChecker,
      "Raises ScheduleError, with a list, when an access is certainly outside of its buffer.", {});
}
}  // namespace
}  // namespace tvm::tir
