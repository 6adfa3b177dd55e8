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
#include "tvm/tir/analysis.h"

namespace tvm::te {
using namespace tir;
namespace {

/// What evaluating `values` in a block with these iterators reads.
Array<BufferRegion> ReadsOf(const Array<IterVar>& iters, const Array<PrimExpr>& values) {
  Array<Stmt> statements = values.Map([](const PrimExpr& e) -> Stmt { return Evaluate(e); });
  Block block(iters, {}, {}, "", SeqStmt::Flatten(statements));
  return GetBlockAccessRegion(block, {})[0];
}

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

/// What a reduction over nothing gives: what it starts with, which is infinity for maxima and
/// minima of numbers that have one.
Array<PrimExpr> OfNothing(const ReduceObj* reduce, Array<PrimExpr> start) {
  for (size_t i = 0; i < start.size() && reduce->init.empty(); ++i) {
    DataType t = start[i].dtype();
    if (!t.is_float()) continue;
    if (reduce->combiner->result[i].as<MaxObj>()) start.Set(i, neg(infinity(t)));
    if (reduce->combiner->result[i].as<MinObj>()) start.Set(i, infinity(t));
  }
  return start;
}

}  // namespace

Stmt Lowering::LowerCompute(const ComputeOpObj* op, Optional<Var> time) {
  Operation self = ffi::GetRef<Operation>(op);
  Array<Buffer> outputs;
  for (int64_t i = 0; i < op->NumOutputs(); ++i) outputs.push_back(Output(self, i));

  std::vector<IterVar> axes(op->axis.begin(), op->axis.end());
  // Loops over nothing would not even write what a reduction starts with.
  bool is_empty = std::any_of(op->reduce_axis.begin(), op->reduce_axis.end(),
                              [](const IterVar& a) { return IsZero(a->dom.value()->extent); });
  if (!is_empty) axes.insert(axes.end(), op->reduce_axis.begin(), op->reduce_axis.end());
  struct Loop {
    Var var;
    Range range;
  };
  std::vector<Loop> loops;
  Array<IterVar> iters;
  Array<PrimExpr> values, indices;
  auto bind = [&](const IterVar& axis, const Var& var) {
    vars_[axis->var.get()] = cast(axis->var.dtype(), var);
  };
  // A range may depend on axes before it: on their loops, which are outside of the block.
  for (const IterVar& axis : axes) {
    Range range = IndexRange(axis->dom.value());
    bool is_time = time.has_value() && iters.empty();
    Var loop = is_time ? time.value() : Var(axis->var->name_hint, index_type_);
    if (!is_time) loops.push_back({loop, range});
    bind(axis, loop);
    values.push_back(loop);
    iters.push_back(IterVar(range, Var("v_" + std::string(axis->var->name_hint), index_type_),
                            is_time ? IterVarType::kOrdered : axis->iter_type));
  }
  known_ = {};
  for (size_t i = 0; i < axes.size(); ++i) {
    bind(axes[i], iters[i]->var);
    if (i < op->axis.size()) indices.push_back(iters[i]->var);
  }
  if (iters.empty()) {  // a scalar: schedules want a block with an iterator
    iters.push_back(IterVar(Range::FromMinExtent(MakeZero(index_type_), MakeConst(index_type_, 1)),
                            Var("vi", index_type_), IterVarType::kDataPar));
    values.push_back(MakeZero(index_type_));
  }

  auto lower = [&](const PrimExpr& e) { return Mutate(e); };
  Array<PrimExpr> read;  // not the result of a reduction itself: that is how it runs
  Stmt body;
  Optional<Stmt> init;
  auto start_of = [&](const ReduceObj* reduce) {
    return reduce->init.empty() ? reduce->combiner->identity_element : reduce->init.Map(lower);
  };
  if (const auto* reduce = op->body[0].as<ReduceObj>(); reduce && is_empty) {
    read = OfNothing(reduce, start_of(reduce));
    body = StoreAll(outputs, read, indices, false);
  } else if (reduce) {
    const CommReducer& combiner = reduce->combiner;
    Array<PrimExpr> source = reduce->source.Map(lower);
    if (!IsTrue(reduce->condition)) {
      PrimExpr condition = Mutate(reduce->condition);
      for (size_t i = 0; i < source.size(); ++i) {
        source.Set(i, if_then_else(condition, source[i], combiner->identity_element[i]));
      }
    }
    Array<PrimExpr> start = start_of(reduce);
    Array<PrimExpr> current =
        outputs.Map([&](const Buffer& b) -> PrimExpr { return BufferLoad(b, indices); });
    init = StoreAll(outputs, start, indices, false);
    body = StoreAll(outputs, combiner->Combine(current, source), indices, outputs.size() > 1);
    read = source;
    for (const PrimExpr& e : start) read.push_back(e);
  } else {
    read = op->body.Map(lower);
    body = StoreAll(outputs, read, indices, false);
  }

  for (const IterVar& axis : axes) vars_.erase(axis->var.get());
  known_ = {};

  Map<String, Any> annotations = op->attrs;
  annotations.erase(kLayoutFree);
  Block block(iters, ReadsOf(iters, read),
              outputs.Map([&](const Buffer& b) { return BufferRegion::Point(b, indices); }),
              BlockName(op->name), body, init, {}, {}, annotations);
  Stmt result = BlockRealize(values, const_true(), block);
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    result = For(loop->var, loop->range->min, loop->range->extent, ForKind::kSerial, result);
  }
  return result;
}

}  // namespace tvm::te
