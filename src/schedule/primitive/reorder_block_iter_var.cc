// SPDX-License-Identifier: Apache-2.0
// reorder_block_iter_var: the iterators of a block in another order.
#include <algorithm>

#include "schedule/primitive/examples.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

void ReorderBlockIterVar(State& self, BlockId id, Array<int64_t> new_order) {
  BlockRealize realize = ffi::GetRef<BlockRealize>(self.realize(id));
  Block block = realize->block;
  auto count = static_cast<int64_t>(block->iter_vars.size());
  std::vector<int64_t> sorted(new_order.begin(), new_order.end());
  std::sort(sorted.begin(), sorted.end());
  bool fits = static_cast<int64_t>(sorted.size()) == count;
  for (int64_t i = 0; fits && i < count; ++i) fits = sorted[i] == i;
  if (!fits) {
    Refuse(Text("expected a permutation of 0 to ", count - 1, " as new_order, got ", new_order),
           {block});
  }
  Array<IterVar> iters;
  Array<PrimExpr> values;
  for (int64_t i : new_order) {
    iters.push_back(block->iter_vars[i]);
    values.push_back(realize->iter_values[i]);
  }
  Edit(&block)->iter_vars = iters;
  self.ReplaceRealize(id, BlockRealize(values, realize->predicate, block, realize->span));
}

TVM_REGISTER() {
  DefPrimitive("ReorderBlockIterVar", "reorder_block_iter_var", &ReorderBlockIterVar,
               &Schedule::ReorderBlockIterVar,
               "Puts the iterators of a block in another order: new_order[i] is the old place of "
               "the i-th.",
               {kGrid, R"(sch.reorder_block_iter_var(sch.get_block("B"), [1, 0]))"}, Arg("block"),
               Arg("new_order"));
}

}  // namespace
}  // namespace tvm::tir
