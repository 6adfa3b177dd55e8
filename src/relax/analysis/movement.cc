// SPDX-License-Identifier: Apache-2.0
// PrimFuncs that move elements: in order (reshapes), axis by axis (transposes); how often others
// read what they moved.
#include "relax/analysis/movement.h"

#include <algorithm>
#include <unordered_set>

#include "tir/any_stmt.h"
#include "tvm/arith/analyzer.h"
#include "tvm/relax/analysis.h"
#include "tvm/tir/function.h"

namespace tvm::relax {
namespace {
/// The position of an element in row-major order.
PrimExpr FlatIndex(const tir::Buffer& buffer, const Array<PrimExpr>& indices) {
  if (indices.empty()) return MakeZero(buffer->IndexType());
  PrimExpr flat = indices[0];
  for (size_t i = 1; i < indices.size(); ++i) flat = flat * buffer->shape[i] + indices[i];
  return flat;
}
PrimExpr NumElements(const tir::Buffer& buffer) {
  PrimExpr size = MakeConst(buffer->IndexType(), 1);
  for (const PrimExpr& dim : buffer->shape) size = size * dim;
  return size;
}
/// The only block that stores something, with the ranges of its iterators.
struct StoreFinder : Visitor<StoreFinder, tir::BlockObj, tir::BufferStoreObj> {
  const tir::BlockObj* block = nullptr;
  const tir::BufferStoreObj* store = nullptr;
  int stores = 0;
  void Visit(const tir::BlockObj* op) {
    const tir::BlockObj* outer = std::exchange(block_, op);
    VisitChildren(op, *this);
    block_ = outer;
  }
  void Visit(const tir::BufferStoreObj* op) {
    ++stores;
    store = op;
    block = block_;
  }

 private:
  const tir::BlockObj* block_ = nullptr;
};
/// The variables that index a buffer; nothing where an index is neither one of its own nor a
/// constant.
std::optional<std::unordered_set<const Object*>> PlainIndices(const Array<PrimExpr>& indices) {
  std::unordered_set<const Object*> vars;
  for (const PrimExpr& index : indices) {
    if (index.as<IntImmObj>()) continue;
    if (!index.as<tir::VarObj>() || !vars.insert(index.get()).second) return std::nullopt;
  }
  return vars;
}
}  // namespace

bool HasReshapePattern(const tir::PrimFunc& func) {
  if (func->params.size() < 2) return false;
  tir::Buffer source = func.BufferOf(func->params[0]), target = func.BufferOf(func->params.back());
  // Symbolic variables may follow the buffers.
  for (size_t i = func->params.size(); !target.defined() && i-- > 1;)
    target = func.BufferOf(func->params[i]);
  if (!source.defined() || !target.defined() || source->dtype != target->dtype) return false;
  StoreFinder found;
  found(func->body);
  auto* load = found.store ? found.store->value.as<tir::BufferLoadObj>() : nullptr;
  if (found.stores != 1 || !load || !found.block || found.block->init.has_value()) return false;
  if (!load->buffer.same_as(source) || !found.store->buffer.same_as(target)) return false;
  arith::Analyzer analyzer;
  for (const tir::IterVar& iter : found.block->iter_vars) {
    if (iter->dom.has_value()) analyzer.Bind(iter->var, iter->dom.value());
  }
  for (const tir::Buffer& buffer : {source, target}) {
    for (const PrimExpr& dim : buffer->shape) analyzer.MarkGlobalNonNeg(dim);
  }
  return analyzer.CanProveEqual(NumElements(source), NumElements(target)) &&
         analyzer.CanProveEqual(FlatIndex(source, load->indices),
                                FlatIndex(target, found.store->indices));
}

bool IsTranspose(const tir::PrimFunc& func) {
  StoreFinder found;
  found(func->body);
  auto* load = found.store ? found.store->value.as<tir::BufferLoadObj>() : nullptr;
  if (found.stores != 1 || !load) return false;
  if (load->indices.size() != found.store->indices.size()) return false;  // an element, a slice
  auto from = PlainIndices(load->indices), to = PlainIndices(found.store->indices);
  return from && to && from == to;
}
bool KeepsRows(const tir::PrimFunc& func) {
  if (!IsTranspose(func)) return false;
  StoreFinder found;
  found(func->body);
  const auto &from = found.store->value.as<tir::BufferLoadObj>()->indices,
             &to = found.store->indices;
  return !from.empty() && from.back().same_as(to.back());
}
bool SumsOverOneAxis(const tir::PrimFunc& func) {
  return tir::AnyStmt<tir::BlockObj>(func->body, [](const tir::BlockObj* block) {
    auto is_sum = [](const tir::IterVar& iter) {
      return iter->iter_type == tir::IterVarType::kCommReduce;
    };
    return block->init &&
           std::count_if(block->iter_vars.begin(), block->iter_vars.end(), is_sum) == 1;
  });
}

bool ReadsEachOnce(const tir::PrimFunc& func, const tir::Buffer& buffer) {
  struct Loads : Visitor<Loads, tir::BufferLoadObj, tir::BlockObj> {
    const tir::Buffer& buffer;
    const tir::BlockObj *block = nullptr, *block_of_load = nullptr;
    const tir::BufferLoadObj* load = nullptr;
    int count = 0;
    explicit Loads(const tir::Buffer& buffer) : buffer(buffer) {}
    void Visit(const tir::BufferLoadObj* op) {
      VisitChildren(op, *this);
      if (!op->buffer.same_as(buffer)) return;
      ++count;
      load = op;
      block_of_load = block;
    }
    void Visit(const tir::BlockObj* op) {
      const tir::BlockObj* outer = std::exchange(block, op);
      (*this)(op->body);
      block = outer;
    }
  } loads(buffer);
  loads(func->body);
  auto vars = loads.count == 1 ? PlainIndices(loads.load->indices) : std::nullopt;
  if (!vars || !loads.block_of_load) return false;
  const Array<tir::IterVar>& iters = loads.block_of_load->iter_vars;
  return std::all_of(iters.begin(), iters.end(), [&](const tir::IterVar& iter) {
    return vars->count(iter->var.get()) || (iter->dom && IsOne(iter->dom.value()->extent));
  });
}

namespace {
TVM_REGISTER() {
  Def("relax.analysis.has_reshape_pattern", &HasReshapePattern,
      "Whether the function copies its first buffer to its last one element by element in "
      "row-major order.",
      Arg("func"));
}
}  // namespace
}  // namespace tvm::relax
