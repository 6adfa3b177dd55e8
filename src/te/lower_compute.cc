// SPDX-License-Identifier: Apache-2.0
// A compute operation becomes loops around one block.
//
//   C = te.compute((n,), lambda i: te.sum(A[i, k], axis=k))
//   -->
//   for i, k in T.grid(n, m):
//       with T.block("C"):
//           v_i, v_k = T.axis.remap("SR", [i, k])
//           with T.init():
//               C[v_i] = 0
//           C[v_i] = C[v_i] + A[v_i, v_k]
#include "te/lowering.h"
#include "tvm/expr/substitute.h"

namespace tvm::te {
using namespace tir;
namespace {

/// The hull of all accesses to one dimension: the index itself when it is always the same, an
/// interval when indices differ by constants, else the whole dimension.
Range Hull(const std::vector<PrimExpr>& indices, const PrimExpr& extent) {
  auto split = [](const PrimExpr& e) -> std::pair<PrimExpr, int64_t> {
    if (auto value = AsConstInt(e)) return {MakeZero(e.dtype()), *value};
    if (const auto* add = e.as<AddObj>()) {
      if (auto value = AsConstInt(add->b)) return {add->a, *value};
    }
    if (const auto* sub = e.as<SubObj>()) {
      if (auto value = AsConstInt(sub->b)) return {sub->a, -*value};
    }
    return {e, 0};
  };
  auto [base, low] = split(indices[0]);
  int64_t high = low;
  PrimExpr lowest = indices[0];
  for (const PrimExpr& e : indices) {
    auto [other, offset] = split(e);
    if (!ExprDeepEqual(base, other)) return Range::FromMinExtent(MakeZero(extent.dtype()), extent);
    if (offset < low) low = offset, lowest = e;
    high = std::max(high, offset);
  }
  return Range::FromMinExtent(lowest, MakeConst(extent.dtype(), high - low + 1));
}

/// Collects what an expression reads. An index that uses a variable bound inside the expression has
/// no meaning outside: it stands for the whole dimension.
struct ReadCollector : Visitor<ReadCollector, BufferLoadObj, LetObj> {
  std::vector<std::pair<Buffer, std::vector<Array<PrimExpr>>>> reads;
  std::unordered_set<const Object*> bound;
  void Visit(const LetObj* let) {
    bound.insert(let->var.get());
    VisitChildren(let, *this);
  }
  void Visit(const BufferLoadObj* load) {
    auto it = std::find_if(reads.begin(), reads.end(),
                           [&](const auto& r) { return r.first.same_as(load->buffer); });
    if (it == reads.end()) it = reads.insert(it, {load->buffer, {}});
    it->second.push_back(load->indices);
    for (const PrimExpr& index : load->indices) (*this)(index);
  }
  Array<BufferRegion> Regions() const {
    Array<BufferRegion> regions;
    for (const auto& [buffer, accesses] : reads) {
      Array<Range> region;
      for (size_t d = 0; d < buffer->shape.size(); ++d) {
        std::vector<PrimExpr> indices;
        bool local = false;
        for (const auto& access : accesses) {
          indices.push_back(access[d]);
          local |= UsesVar(access[d], [&](const VarObj* v) { return bound.count(v) > 0; });
        }
        const PrimExpr& extent = buffer->shape[d];
        region.push_back(local ? Range::FromMinExtent(MakeZero(extent.dtype()), extent)
                               : Hull(indices, extent));
      }
      regions.push_back(BufferRegion(buffer, region));
    }
    return regions;
  }
};

/// Stores all values at once: with several, every one is computed before the first is stored.
Stmt StoreAll(const Array<Buffer>& buffers, const Array<PrimExpr>& values,
              const Array<PrimExpr>& indices, bool read_each_other) {
  std::vector<Var> temporaries;
  Array<Stmt> stores;
  for (size_t i = 0; i < buffers.size(); ++i) {
    PrimExpr value = values[i];
    if (read_each_other) {
      value = temporaries.emplace_back("v_" + std::string(buffers[i]->name), value.dtype());
    }
    stores.push_back(BufferStore(buffers[i], value, indices));
  }
  Stmt body = SeqStmt::Flatten(stores);
  for (size_t i = temporaries.size(); i > 0; --i) {
    body = LetStmt(temporaries[i - 1], values[i - 1], body);
  }
  return body;
}

}  // namespace

Stmt Lowering::LowerCompute(const ComputeOpObj* op, Optional<Var> time) {
  Operation self = ffi::GetRef<Operation>(op);
  Array<Buffer> outputs;
  for (int64_t i = 0; i < op->NumOutputs(); ++i) outputs.push_back(Output(self, i));

  // Extents may depend on outer axes: first in terms of the loops, then of the block's iterators.
  struct Loop {
    Var var;
    Range range;
  };
  std::vector<Loop> loops;
  std::vector<IterVar> axes(op->axis.begin(), op->axis.end());
  axes.insert(axes.end(), op->reduce_axis.begin(), op->reduce_axis.end());
  auto bind = [&](const IterVar& axis, const Var& var) {
    vars_[axis->var.get()] = cast(axis->var.dtype(), var);
  };
  Array<PrimExpr> values, indices;
  for (const IterVar& axis : axes) {
    bool is_time = time.has_value() && loops.empty() && values.empty();
    Var var = is_time ? time.value() : Var(axis->var->name_hint, index_type_);
    if (!is_time) loops.push_back({var, IndexRange(axis->dom.value())});
    bind(axis, var);
    values.push_back(var);
  }
  Array<IterVar> iters;
  for (const IterVar& axis : axes) {
    Var var("v_" + std::string(axis->var->name_hint), index_type_);
    bool is_time = time.has_value() && iters.empty();
    Range range = IndexRange(axis->dom.value());
    bind(axis, var);
    iters.push_back(IterVar(range, var, is_time ? IterVarType::kOrdered : axis->iter_type));
    if (iters.size() <= op->axis.size()) indices.push_back(var);
  }
  if (iters.empty()) {  // a scalar: schedules want a block with an iterator
    iters.push_back(IterVar(Range::FromMinExtent(MakeZero(index_type_), MakeConst(index_type_, 1)),
                            Var("vi", index_type_), IterVarType::kDataPar));
    values.push_back(MakeZero(index_type_));
  }

  auto lower = [&](const PrimExpr& e) { return Mutate(e); };
  ReadCollector reads;
  Stmt body;
  Optional<Stmt> init;
  if (const auto* reduce = op->body[0].as<ReduceObj>()) {
    const CommReducer& combiner = reduce->combiner;
    Array<PrimExpr> source = reduce->source.Map(lower);
    if (!IsTrue(reduce->condition)) {
      PrimExpr condition = Mutate(reduce->condition);
      for (size_t i = 0; i < source.size(); ++i) {
        source.Set(i, if_then_else(condition, source[i], combiner->identity_element[i]));
      }
    }
    for (const PrimExpr& e : source) reads(e);
    Array<PrimExpr> start =
        reduce->init.empty() ? combiner->identity_element : reduce->init.Map(lower);
    Array<PrimExpr> current =
        outputs.Map([&](const Buffer& b) -> PrimExpr { return BufferLoad(b, indices); });
    init = StoreAll(outputs, start, indices, false);
    body = StoreAll(outputs, combiner->Combine(current, source), indices, outputs.size() > 1);
    for (const PrimExpr& e : start) reads(e);
  } else {
    Array<PrimExpr> elements = op->body.Map(lower);
    for (const PrimExpr& e : elements) reads(e);
    body = StoreAll(outputs, elements, indices, false);
  }

  Map<String, Any> annotations = op->attrs;
  annotations.erase(kLayoutFree);
  Block block(iters, reads.Regions(),
              outputs.Map([&](const Buffer& b) { return BufferRegion::Point(b, indices); }),
              BlockName(op->name), body, init, {}, {}, annotations);
  Stmt result = BlockRealize(values, const_true(), block);
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    result = For(loop->var, loop->range->min, loop->range->extent, ForKind::kSerial, result);
  }
  return result;
}

}  // namespace tvm::te
