// SPDX-License-Identifier: Apache-2.0
// Recognises the reduction that a block computes.
#include "reduction.h"

#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {
bool IsElement(const PrimExpr& e, const Buffer& buffer, const Array<PrimExpr>& indices) {
  auto* load = e.as<BufferLoadObj>();
  if (!load || !load->buffer.same_as(buffer) || load->predicate.has_value()) return false;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!ExprDeepEqual(load->indices[i], indices[i])) return false;
  }
  return true;
}
/// The stores of a statement, lets replaced by their values.
bool CollectStores(const Stmt& stmt, ffi::Map<Var, PrimExpr>* lets, std::vector<BufferStore>* out) {
  if (auto* let = stmt.as<LetStmtObj>()) {
    lets->Set(let->var, Substitute(let->value, *lets));
    return CollectStores(let->body, lets, out);
  }
  if (auto* seq = stmt.as<SeqStmtObj>()) {
    for (const Stmt& s : seq->seq) {
      if (!CollectStores(s, lets, out)) return false;
    }
    return true;
  }
  auto* store = stmt.as<BufferStoreObj>();
  if (!store || store->predicate.has_value()) return false;
  out->push_back(Substitute(ffi::GetRef<BufferStore>(store), *lets));
  return true;
}
/// What is combined with the element, or nothing: the other operand.
PrimExpr Contribution(const BufferStore& update) {
  auto is_old = [&](const PrimExpr& e) { return IsElement(e, update->buffer, update->indices); };
  auto other = [&](const PrimExpr& a, const PrimExpr& b) {
    return is_old(a) ? b : is_old(b) ? a : PrimExpr();
  };
  const PrimExpr& value = update->value;
  auto binary = [&]<class... N>(const N*...) {
    PrimExpr found;
    ((value.as<N>() ? void(found = other(value.as<N>()->a, value.as<N>()->b)) : void()), ...);
    return found;
  };
  PrimExpr found = binary((const AddObj*)nullptr, (const MulObj*)nullptr, (const MinObj*)nullptr,
                          (const MaxObj*)nullptr, (const AndObj*)nullptr, (const OrObj*)nullptr);
  if (found.defined()) return found;
  if (auto* select = value.as<SelectObj>()) return other(select->true_value, select->false_value);
  auto* call = value.as<CallObj>();
  if (!call) return PrimExpr();
  if (call->Is(builtin::if_then_else())) return other(call->args[1], call->args[2]);
  if (call->Is(builtin::bitwise_and()) || call->Is(builtin::bitwise_or()) ||
      call->Is(builtin::bitwise_xor()))
    return other(call->args[0], call->args[1]);
  return PrimExpr();
}
/// Replaces the elements by lhs and the contributions by rhs.
struct Abstracter : Mutator<Abstracter, PrimExprObj, BufferObj> {
  const BlockReduction& reduction;
  const Array<Var>&lhs, &rhs;
  bool is_closed = true;
  Abstracter(const BlockReduction& r, const Array<Var>& lhs, const Array<Var>& rhs)
      : reduction(r), lhs(lhs), rhs(rhs) {}
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const PrimExprObj* op) {
    PrimExpr e = ffi::GetRef<PrimExpr>(op);
    for (size_t i = 0; i < lhs.size(); ++i) {
      if (IsElement(e, reduction.buffers[i], reduction.indices)) return lhs[i];
      if (ExprDeepEqual(e, reduction.values[i])) return rhs[i];
    }
    if (e.as<VarObj>() || e.as<BufferLoadObj>()) is_closed = false;
    return MapChildren(op, *this);
  }
};
}  // namespace

std::optional<BlockReduction> MatchReduction(const Block& block) {
  if (!block->init.has_value()) return std::nullopt;
  ffi::Map<Var, PrimExpr> lets;
  std::vector<BufferStore> inits, updates;
  if (!CollectStores(block->init.value(), &lets, &inits) ||
      !CollectStores(block->body, &lets, &updates) || inits.size() != updates.size() ||
      updates.empty())
    return std::nullopt;
  BlockReduction result;
  result.indices = updates[0]->indices;
  Array<PrimExpr> identity;
  Array<Var> lhs, rhs;
  for (const BufferStore& update : updates) {
    auto init = std::find_if(inits.begin(), inits.end(), [&](const BufferStore& s) {
      return s->buffer.same_as(update->buffer);
    });
    if (init == inits.end() ||
        !IsElement(BufferLoad(update->buffer, result.indices), update->buffer, update->indices) ||
        !IsElement(BufferLoad(update->buffer, result.indices), update->buffer, (*init)->indices))
      return std::nullopt;
    PrimExpr value = Contribution(update);
    if (!value.defined()) return std::nullopt;
    result.buffers.push_back(update->buffer);
    result.values.push_back(value);
    identity.push_back((*init)->value);
    lhs.push_back(Var("x", value.dtype())), rhs.push_back(Var("y", value.dtype()));
  }
  Array<PrimExpr> combined;
  for (const BufferStore& update : updates) {
    Abstracter abstract(result, lhs, rhs);
    combined.push_back(abstract.Mutate(update->value));
    if (!abstract.is_closed) return std::nullopt;
  }
  result.combiner = CommReducer(lhs, rhs, combined, identity);
  return result;
}
}  // namespace tvm::tir
