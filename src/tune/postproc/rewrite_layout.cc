// SPDX-License-Identifier: Apache-2.0
// Weights in the order in which the schedule reads them.
//
//   C[i, j] += A[i, k] * B[k, j]   ->   B_global[j0, k, j1] = B[…]  (layout_rewrite_preproc)
//                                       C[i, j] += A[i, k] * B_global[j0, k, j1]
// for the parameters that "layout_free_buffers" lists: whoever compiles may run the copies once,
// before (tir.transform.RemoveWeightLayoutRewriteBlock takes them out).
#include "tune/rule/blocks.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/schedule/schedule.h"

namespace tvm::tune {
namespace {
using namespace tir;

struct Loads : Visitor<Loads, BufferLoadObj> {
  const BufferObj* buffer;
  std::vector<Array<PrimExpr>> found;
  void Visit(const BufferLoadObj* op) {
    if (op->buffer.get() == buffer) found.push_back(op->indices);
    VisitChildren(op, *this);
  }
};

struct RewriteLayoutObj : PostprocObj {
  static void Fields(auto&&) {}
  bool Apply(const Schedule& sch) final {
    for (const auto& [var, func] : sch.mod()->Sorted()) {
      auto* prim = func.as<PrimFuncObj>();
      if (!prim || !prim->attrs.defined()) continue;
      auto listed = prim->GetAttr<Array<Any>>("layout_free_buffers");
      if (!listed.has_value()) continue;
      std::vector<Buffer> buffers;
      for (const Any& item : listed.value()) {
        int64_t i = item.as<int64_t>() ? *item.as<int64_t>() : item.cast<IntImm>()->value;
        buffers.push_back(prim->buffer_map[prim->params[i]]);
      }
      for (const Buffer& buffer : buffers) Rewrite(sch, buffer);
    }
    return true;
  }

 private:
  static void Rewrite(const Schedule& sch, const Buffer& buffer) {
    int64_t index = -1, reads = 0;
    std::vector<BlockRV> readers = BlocksWhere(sch, [&](const BlockRV& block) {
      BlockView view(sch, block);
      if (view.is_root || view.has_blocks) return false;
      int64_t before = reads;
      for (size_t r = 0; r < view.block->reads.size(); ++r) {
        if (!view.block->reads[r]->buffer.same_as(buffer)) continue;
        index = static_cast<int64_t>(r);
        ++reads;
      }
      return reads > before;
    });
    // One order cannot suit several readers.
    if (reads != 1) return;
    const BlockRV& block = readers[0];
    auto map = OrderOfReading(sch, block, buffer);
    if (!map.has_value()) return;
    Try([&] {
      BlockRV copy = sch.CacheRead(block, index, "global", {block});
      sch.TransformLayout(block, Array<Any>{String("read"), index}, map.value());
      sch.Annotate(copy, "meta_schedule.layout_rewrite_preproc", true);
    });
  }
  static Optional<IndexMap> OrderOfReading(const Schedule& sch, const BlockRV& block,
                                           const Buffer& buffer) {
    static const Function suggest = Function::GetGlobalRequired("tir.schedule.suggest_index_map");
    BlockView view(sch, block);
    Loads loads;
    loads.buffer = buffer.get();
    loads(view.block->body);
    if (loads.found.size() != 1) return std::nullopt;
    Map<Var, PrimExpr> values;
    for (size_t i = 0; i < view.block->iter_vars.size(); ++i)
      values.Set(view.block->iter_vars[i]->var, view.realize->iter_values[i]);
    Array<PrimExpr> indices;
    for (const PrimExpr& e : loads.found[0]) indices.push_back(Substitute(e, values));
    Array<For> loops;
    for (const Axis& axis : view.axes) loops.push_back(ffi::GetRef<For>(axis.node));
    return suggest(buffer, indices, loops, view.realize->predicate).cast<Optional<IndexMap>>();
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.RewriteLayout", RewriteLayoutObj, PostprocObj);
};
TVM_REGISTER() {
  RegisterNode<RewriteLayoutObj>("Copies weights into the order in which they are read.");
}
}  // namespace
}  // namespace tvm::tune
