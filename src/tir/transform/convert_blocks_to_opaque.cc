// SPDX-License-Identifier: Apache-2.0
// Replaces block iterators by the values bound to them.
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct OpaqueConverter : Mutator<OpaqueConverter, VarObj, BlockRealizeObj> {
  std::unordered_map<const VarObj*, PrimExpr> values;

  ObjectRef Rewrite(const VarObj* op) {
    auto it = values.find(op);
    return it == values.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second);
  }
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    Array<PrimExpr> bound = op->iter_values.Map([&](const PrimExpr& e) { return Mutate(e); });
    PrimExpr predicate = Mutate(op->predicate);
    Block block = op->block;
    if (block->init.has_value()) {
      TVM_FFI_THROW(ValueError) << "ConvertBlocksToOpaque: expected block " << block->name_hint
                                << " without init, run LowerInitBlock first";
    }
    for (size_t i = 0; i < bound.size(); ++i) values[block->iter_vars[i]->var.get()] = bound[i];
    Edit(&block)->iter_vars = {};
    block = Below<Block>(block.get());
    return BlockRealize({}, predicate, block, op->span);
  }
};
}  // namespace

PrimFunc ConvertBlocksToOpaque(PrimFunc func) {
  return RewriteBody(std::move(func), OpaqueConverter());
}
TVM_PASS(tir, ConvertBlocksToOpaque,
         R"(Replaces block iterators by the values bound to them.

before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    with T.block("root"):
        for i in range(16):
            with T.block("B"):
                v = T.axis.spatial(64, i * 4)
                T.reads(A[v])
                T.writes(B[v])
                B[v] = A[v]
after:
    # with T.block("root"):
    for i in range(16):
        with T.block("B"):
            T.reads(A[i * 4])
            T.writes(B[i * 4])
            B[i * 4] = A[i * 4])")
}  // namespace tvm::tir
