// SPDX-License-Identifier: Apache-2.0
// Accesses that lie outside of their buffer whenever the function runs.
#include <cstdlib>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/once.h"
#include "tir/analysis/complaint.h"
#include "tir/contents.h"
#include "tir/text.h"
#include "tvm/expr/op.h"

namespace tvm::tir {
namespace {
/// A sum of loop variables times constants: over loops of constant ranges its least and greatest
/// values are known exactly, and both occur.
struct LinearIndex {
  std::map<const VarObj*, int64_t> factors;
  int64_t constant = 0;

  void Add(const LinearIndex& other, int64_t factor) {
    constant += factor * other.constant;
    for (const auto& [var, f] : other.factors) factors[var] += factor * f;
  }
};
/// Greater numbers are not looked at, so that none overflows.
constexpr int64_t kMost = int64_t{1} << 30;

/// Visits what is certain to run: neither what is under a condition nor loops that may be empty.
struct OutsideFinder : Visitor<OutsideFinder, PrimExprObj, ForObj, WhileObj, IfThenElseObj, LetObj,
                               LetStmtObj, BlockObj, BlockRealizeObj, SelectObj, CallObj, AndObj,
                               OrObj, BufferLoadObj, BufferStoreObj, BufferObj> {
  std::string found;
  std::unordered_set<const BufferObj*> bounded;  // whose memory is as large as their shape says

  void Go(const ObjectRef& node) {
    if (found.empty()) (*this)(node);
  }

  void Visit(const ForObj* op) {
    Go(op->min);
    Go(op->extent);
    auto min = AsConstInt(op->min), extent = AsConstInt(op->extent);
    bool is_known = min && extent && std::abs(*min) < kMost && *extent > 0 && *extent < kMost &&
                    (!op->step.has_value() || IsConstInt(op->step.value(), 1));
    if (!is_known) return;
    loops_[op->loop_var.get()] = {*min, *min + *extent - 1};
    Go(op->body);
  }
  void Visit(const WhileObj*) {}
  void Visit(const IfThenElseObj* op) { Go(op->condition); }
  void Visit(const SelectObj* op) { Go(op->condition); }
  void Visit(const AndObj* op) { Go(op->a); }
  void Visit(const OrObj* op) { Go(op->a); }
  /// Who gets an element of a call with effects may take its address, which may lie at the end.
  void Visit(const CallObj* op) {
    if (op->Is(builtin::if_then_else())) return Go(op->args[0]);
    if (EffectOf(op->op) <= CallEffectKind::kPure && !op->Is(builtin::address_of()))
      Visit(static_cast<const PrimExprObj*>(op));
  }
  void Visit(const PrimExprObj* op) {
    if (once_(op)) VisitChildren(op, *this);
  }
  void Visit(const LetObj* op) {
    Go(op->value);
    Name(op->var, op->value);
    Go(op->body);
  }
  void Visit(const LetStmtObj* op) {
    Go(op->value);
    Name(op->var, op->value);
    Go(op->body);
  }
  void Visit(const BlockRealizeObj* op) {
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      Go(op->iter_values[i]);
      Name(op->block->iter_vars[i]->var, op->iter_values[i]);
    }
    if (IsTrue(op->predicate)) Go(op->block);
  }
  void Visit(const BlockObj* op) {
    for (const Buffer& buffer : op->alloc_buffers) bounded.insert(buffer.get());
    if (op->init.has_value()) Go(op->init.value());
    Go(op->body);
  }
  void Visit(const BufferObj*) {}
  void Visit(const BufferLoadObj* op) {
    if (!once_(op)) return;
    for (const PrimExpr& index : op->indices) Go(index);
    if (!op->predicate.has_value()) Check(op->buffer, op->indices);
  }
  void Visit(const BufferStoreObj* op) {
    Go(op->value);
    for (const PrimExpr& index : op->indices) Go(index);
    if (!op->predicate.has_value()) Check(op->buffer, op->indices);
  }

 private:
  Once once_;
  std::unordered_map<const VarObj*, std::pair<int64_t, int64_t>> loops_;  // first and last value
  std::unordered_map<const VarObj*, LinearIndex> names_;  // of block iterators, lets

  void Name(const Var& var, const PrimExpr& value) {
    if (auto linear = Linear(value)) names_[var.get()] = *linear;
  }
  std::optional<LinearIndex> Linear(const PrimExpr& e) const {
    if (auto constant = AsConstInt(e)) {
      if (std::abs(*constant) >= kMost) return {};
      return LinearIndex{{}, *constant};
    }
    if (auto* var = e.as<VarObj>()) {
      if (auto it = names_.find(var); it != names_.end()) return it->second;
      if (loops_.count(var)) return LinearIndex{{{var, 1}}, 0};
      return {};
    }
    if (auto* cast = e.as<CastObj>()) {
      bool widens = cast->dtype.is_scalar() && cast->dtype.is_int() &&
                    cast->value.dtype().is_int() &&
                    cast->dtype.bits() >= cast->value.dtype().bits();
      return widens ? Linear(cast->value) : std::nullopt;
    }
    if (auto* add = e.as<AddObj>()) return Sum(add->a, add->b, 1);
    if (auto* sub = e.as<SubObj>()) return Sum(sub->a, sub->b, -1);
    if (auto* mul = e.as<MulObj>()) {
      auto factor = AsConstInt(mul->b);
      auto linear = Linear(factor ? mul->a : mul->b);
      if (!factor) factor = AsConstInt(mul->a);
      if (!factor || !linear || std::abs(*factor) >= kMost) return {};
      LinearIndex product;
      product.Add(*linear, *factor);
      return Small(product);
    }
    return {};
  }
  std::optional<LinearIndex> Sum(const PrimExpr& a, const PrimExpr& b, int64_t sign) const {
    auto left = Linear(a), right = Linear(b);
    if (!left || !right) return {};
    left->Add(*right, sign);
    return Small(*left);
  }
  static std::optional<LinearIndex> Small(const LinearIndex& index) {
    bool is_small = std::abs(index.constant) < kMost;
    for (const auto& [var, factor] : index.factors) is_small &= std::abs(factor) < kMost;
    return is_small ? std::optional(index) : std::nullopt;
  }

  void Check(const Buffer& buffer, const Array<PrimExpr>& indices) {
    if (!found.empty() || !bounded.count(buffer.get())) return;
    for (size_t d = 0; d < indices.size(); ++d) {
      auto extent = AsConstInt(buffer->shape[d]);
      auto index = indices[d].dtype().is_scalar() ? Linear(indices[d]) : std::nullopt;
      if (!extent || !index) continue;
      __int128 least = index->constant, most = index->constant;
      for (const auto& [var, factor] : index->factors) {
        auto [first, last] = loops_.at(var);
        least += __int128{factor} * (factor > 0 ? first : last);
        most += __int128{factor} * (factor > 0 ? last : first);
      }
      if (least >= 0 && most < *extent) continue;
      auto text = [](__int128 value) { return std::to_string(static_cast<int64_t>(value)); };
      found = "expected index " + std::to_string(d) + " of buffer " + std::string(buffer->name) +
              " from 0 to below " + std::to_string(*extent) + ", got " + text(least) +
              (least == most ? "" : " to " + text(most)) + ", in " +
              TextOf(BufferLoad(buffer, indices));
      return;
    }
  }
};
}  // namespace

std::string FindCertainlyOutside(const PrimFunc& func) {
  const Contents& contents = ContentsOf(func->body);
  bool may_end_early = contents.Calls(builtin::ret()) || contents.Calls(builtin::break_loop()) ||
                       contents.Calls(builtin::continue_loop());
  if (may_end_early) return "";
  OutsideFinder find;
  // Only an entry compares shapes with what comes.
  if (func->attrs.Has(::tvm::attr::kGlobalSymbol)) {
    for (const auto& [param, buffer] : func->buffer_map) find.bounded.insert(buffer.get());
  }
  find.Go(func->body);
  return find.found;
}
}  // namespace tvm::tir
