// SPDX-License-Identifier: Apache-2.0
// Which iterators of a block become which iterators of an intrinsic, when they are fused.
//
// An iterator is known by the buffers that it indexes: in C[i, j] += A[i, k] * B[k, j] those of A
// and C alone are like i, those of B and C like j, those of A and B like k. A convolution has
// several of each, which become one.
#include <algorithm>

#include "schedule/rewrite.h"
#include "tvm/expr/op.h"
#include "tvm/schedule/schedule.h"
#include "tvm/tir/index_map.h"

namespace tvm::tir {

/// How the iterators of a block are to be fused for an intrinsic. Left is the block, right the
/// intrinsic's description.
struct AutoTensorizeMappingInfoObj : NodeObj {
  Array<IndexMap> mappings;  // of the block's iterators, for transform_block_layout
  Map<Buffer, Buffer> lhs_buffer_map;
  Map<Buffer, Array<PrimExpr>> rhs_buffer_indices;
  Array<IterVar> lhs_iters, rhs_iters;
  static void Fields(auto&& def) {
    def("mappings", &AutoTensorizeMappingInfoObj::mappings);
    def("lhs_buffer_map", &AutoTensorizeMappingInfoObj::lhs_buffer_map);
    def("rhs_buffer_indices", &AutoTensorizeMappingInfoObj::rhs_buffer_indices);
    def("lhs_iters", &AutoTensorizeMappingInfoObj::lhs_iters);
    def("rhs_iters", &AutoTensorizeMappingInfoObj::rhs_iters);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.schedule.AutoTensorizeMappingInfo",
                                    AutoTensorizeMappingInfoObj, NodeObj);
};
TVM_NODE_REF(AutoTensorizeMappingInfo, ObjectRef, AutoTensorizeMappingInfoObj);

namespace {

/// The accesses of two computations that are the same but for their indices, in pairs.
struct AccessPairs {
  struct Pair {
    Buffer left, right;
    Array<PrimExpr> left_at, right_at;
  };
  std::vector<Pair> pairs;

  bool Add(const Buffer& left, const Array<PrimExpr>& left_at, const Buffer& right,
           const Array<PrimExpr>& right_at) {
    if (left->dtype != right->dtype) return false;
    for (const Pair& p : pairs) {
      if (p.left.same_as(left) != p.right.same_as(right)) return false;
    }
    pairs.push_back({left, right, left_at, right_at});
    return true;
  }
  bool Match(const ObjectRef& a, const ObjectRef& b) {
    if (a->type_index() != b->type_index()) return a.same_as(b);
    if (auto *x = a.as<BufferLoadObj>(), *y = b.as<BufferLoadObj>(); x)
      return Add(x->buffer, x->indices, y->buffer, y->indices);
    auto x = a.as<PrimExpr>(), y = b.as<PrimExpr>();
    if (!x || !y) return a.same_as(b);
    if (x->dtype() != y->dtype()) return false;
    std::vector<ObjectRef> below, described;
    VisitChildren(a.get(), [&](const ObjectRef& c) { below.push_back(c); });
    VisitChildren(b.get(), [&](const ObjectRef& c) { described.push_back(c); });
    if (below.size() != described.size()) return false;
    if (below.empty()) return ExprDeepEqual(*x, *y);
    for (size_t i = 0; i < below.size(); ++i) {
      if (!Match(below[i], described[i])) return false;
    }
    return true;
  }
};

/// What an iterator is known by: its kind, and whether it is in the indices of each access.
std::vector<bool> Signature(const IterVar& iter, const std::vector<AccessPairs::Pair>& pairs,
                            bool is_left) {
  std::vector<bool> signature{iter->iter_type == IterVarType::kCommReduce};
  for (const auto& pair : pairs) {
    bool used = false;
    for (const PrimExpr& index : is_left ? pair.left_at : pair.right_at)
      used |= UsesAny(index, {iter->var.get()});
    signature.push_back(used);
  }
  return signature;
}

Optional<AutoTensorizeMappingInfo> GetAutoTensorizeMappingInfo(Schedule sch, BlockRV block,
                                                               PrimFunc desc_func) {
  Focus at(sch.state(), BlockId{sch.IdOf(block)});
  auto* root = desc_func->body.as<BlockRealizeObj>();
  if (!root) return std::nullopt;
  ScopeInfo described(root->block);
  if (described.children.size() != 1) return std::nullopt;
  const BlockObj *left = at.block->block(), *right = described.children[0].block();
  auto *store = left->body.as<BufferStoreObj>(), *d_store = right->body.as<BufferStoreObj>();
  AccessPairs access;
  if (!store || !d_store ||
      !access.Add(store->buffer, store->indices, d_store->buffer, d_store->indices) ||
      !access.Match(store->value, d_store->value))
    return std::nullopt;

  auto info = NewObject<AutoTensorizeMappingInfoObj>();
  info->lhs_iters = left->iter_vars;
  info->rhs_iters = right->iter_vars;
  for (const auto& pair : access.pairs) {
    info->lhs_buffer_map.Set(pair.left, pair.right);
    info->rhs_buffer_indices.Set(pair.right, pair.right_at);
  }
  std::vector<std::vector<bool>> kinds;
  for (const IterVar& iter : right->iter_vars) {
    kinds.push_back(Signature(iter, access.pairs, false));
    // Two that are in the same buffers cannot be told apart.
    if (std::count(kinds.begin(), kinds.end(), kinds.back()) > 1) return std::nullopt;
  }
  Array<Var> initial;
  Array<PrimExpr> alone;
  std::vector<PrimExpr> fused(kinds.size());
  for (const IterVar& iter : left->iter_vars) {
    const Range dom = iter->dom.value();
    if (!IsZero(dom->min)) return std::nullopt;
    Var var(iter->var->name_hint, iter->var.dtype());
    initial.push_back(var);
    auto kind = std::find(kinds.begin(), kinds.end(), Signature(iter, access.pairs, true));
    if (kind == kinds.end()) {
      alone.push_back(var);
    } else {
      PrimExpr& sum = fused[kind - kinds.begin()];
      sum = sum.defined() ? sum * dom->extent + var : PrimExpr(var);
    }
  }
  Array<PrimExpr> final_indices = alone;
  for (const PrimExpr& index : fused) {
    if (!index.defined()) return std::nullopt;
    final_indices.push_back(index);
  }
  info->mappings.push_back(IndexMap(initial, final_indices));
  return AutoTensorizeMappingInfo(info);
}

TVM_REGISTER() {
  RegisterNode<AutoTensorizeMappingInfoObj>(
      "How the iterators of a block are to be fused for an intrinsic.");
  Def("tir.schedule.get_auto_tensorize_mapping_info", &GetAutoTensorizeMappingInfo,
      "Which iterators of a block become one iterator of an intrinsic's description each, as maps "
      "for transform_block_layout; None if the block computes something else. Iterators that the "
      "description has nothing like come first and stay.",
      Arg("sch"), Arg("block"), Arg("desc_func"));
}

}  // namespace
}  // namespace tvm::tir
