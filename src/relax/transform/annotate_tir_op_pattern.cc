// SPDX-License-Identifier: Apache-2.0
// How the results of a PrimFunc depend on its operands, read off its blocks.
#include <algorithm>
#include <unordered_set>

#include "ir/global_vars.h"
#include "tir/analysis/reduction.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/relax/op.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/function.h"

namespace tvm::relax {
namespace {
using tir::BlockObj, tir::BlockRealizeObj, tir::BufferLoadObj, tir::BufferStoreObj, tir::ForObj,
    tir::IterVar, tir::IterVarType, tir::LetStmtObj, tir::PrimFunc, tir::SeqStmtObj, tir::Stmt;

/// A block that runs over iterators and stores elements.
class BlockPattern {
 public:
  explicit BlockPattern(const BlockObj* block) : block_(block) {}
  /// kOpaque for a block that is something else.
  OpPatternKind Find() {
    for (const IterVar& iter : block_->iter_vars) {
      if (iter->iter_type == IterVarType::kCommReduce) {
        reduced_.insert(iter->var.get());
      } else if (iter->iter_type == IterVarType::kDataPar) {
        spatial_.insert(iter->var.get());
      } else {
        return kOpaque;
      }
    }
    if (!block_->match_buffers.empty() || !Collect(block_->body)) return kOpaque;
    for (const BufferStoreObj* store : stores_) {
      if (!IsOnePerIteration(store)) return kOpaque;
    }
    return reduced_.empty() ? Spatial() : Reduction();
  }

 private:
  /// Whether the body is nothing but stores, and their values and indices.
  bool Collect(const Stmt& stmt) {
    if (auto* seq = stmt.as<SeqStmtObj>()) {
      return std::all_of(seq->seq.begin(), seq->seq.end(),
                         [&](const Stmt& s) { return Collect(s); });
    }
    if (auto* let = stmt.as<LetStmtObj>()) {
      CollectLoads(let->value);
      return Collect(let->body);
    }
    auto* store = stmt.as<BufferStoreObj>();
    if (!store || store->predicate.has_value()) return false;
    stores_.push_back(store);
    CollectLoads(store->value);
    return true;
  }
  void CollectLoads(const PrimExpr& value) {
    tir::PostOrderVisit(value, [&](const ObjectRef& node) {
      if (auto* load = node.as<BufferLoadObj>()) loads_.push_back(load);
    });
  }
  /// Whether the indices are spatial iterators, each once, or constants.
  bool IsOnePerIteration(const BufferStoreObj* store) const {
    std::unordered_set<const Object*> seen;
    for (const PrimExpr& index : store->indices) {
      if (index.as<IntImmObj>()) continue;
      if (!spatial_.count(index.get()) || !seen.insert(index.get()).second) return false;
    }
    return true;
  }
  bool Writes(const tir::Buffer& buffer) const {
    return std::any_of(stores_.begin(), stores_.end(),
                       [&](const BufferStoreObj* s) { return s->buffer.same_as(buffer); });
  }
  OpPatternKind Spatial() const {
    OpPatternKind kind = kElemWise;
    for (const BufferLoadObj* load : loads_) {
      if (Writes(load->buffer)) return kOpaque;
      kind = std::max(kind, KindOf(load, stores_[0]));
    }
    return kind;
  }
  static OpPatternKind KindOf(const BufferLoadObj* load, const BufferStoreObj* store) {
    size_t rank = store->indices.size(), at = 0;
    bool is_same = load->indices.size() == rank;
    for (size_t d = 0; d < load->indices.size(); ++d) {
      const PrimExpr& index = load->indices[d];
      if (index.as<IntImmObj>()) {
        bool is_one = is_same && IsOne(load->buffer->shape[d]) && IsOne(store->buffer->shape[d]);
        is_same = is_same && (is_one || tir::ExprDeepEqual(index, store->indices[d]));
        continue;
      }
      is_same = is_same && index.same_as(store->indices[d]);
      while (at < rank && !index.same_as(store->indices[at])) ++at;
      if (at++ == rank) return kInjective;
    }
    return is_same ? kElemWise : kBroadcast;
  }
  /// A reduction whose operands are used for several results is like a product: what follows
  /// belongs to its tiles.
  OpPatternKind Reduction() const {
    tir::Reduction form;
    bool multiplies = tir::WhyNoReducer(block_, &form).empty() && form.sources.size() == 1 &&
                      Contains<tir::MulObj>(form.sources[0]);
    for (const BufferLoadObj* load : loads_) {
      if (Writes(load->buffer)) continue;
      for (const PrimExpr& index : load->indices) {
        if (Uses(index, spatial_) && Uses(index, reduced_)) return kOutEWiseFusable;
      }
      if (multiplies && IsReused(load)) return kOutEWiseFusable;
    }
    return kCommReduce;
  }
  bool IsReused(const BufferLoadObj* load) const {
    return std::any_of(
        block_->iter_vars.begin(), block_->iter_vars.end(), [&](const IterVar& iter) {
          return spatial_.count(iter->var.get()) && !IsOne(iter->dom.value()->extent) &&
                 !tir::UsesVar(load->indices,
                               [&](const tir::VarObj* var) { return var == iter->var.get(); });
        });
  }
  static bool Uses(const PrimExpr& e, const std::unordered_set<const Object*>& vars) {
    return tir::UsesVar(e, [&](const tir::VarObj* var) { return vars.count(var) > 0; });
  }
  template <class Obj>
  static bool Contains(const PrimExpr& e) {
    bool found = false;
    tir::PreOrderVisit(e, [&](const ObjectRef& node) {
      found = found || node.as<Obj>();
      return !found && !node.as<BufferLoadObj>();
    });
    return found;
  }

  const BlockObj* block_;
  std::vector<const BufferStoreObj*> stores_;
  std::vector<const BufferLoadObj*> loads_;
  std::unordered_set<const Object*> spatial_, reduced_;
};

/// The patterns of the blocks of a function, in order; false where it is more than nests of loops
/// around blocks.
bool CollectPatterns(const Stmt& stmt, std::vector<OpPatternKind>* patterns) {
  if (auto* loop = stmt.as<ForObj>()) {
    return loop->kind == tir::ForKind::kSerial && CollectPatterns(loop->body, patterns);
  }
  if (auto* seq = stmt.as<SeqStmtObj>()) {
    return std::all_of(seq->seq.begin(), seq->seq.end(),
                       [&](const Stmt& s) { return CollectPatterns(s, patterns); });
  }
  auto* realize = stmt.as<BlockRealizeObj>();
  if (!realize) return false;
  const BlockObj* block = realize->block.get();
  patterns->push_back(BlockPattern(block).Find());
  return patterns->back() != kOpaque;
}

OpPatternKind PatternOf(const PrimFunc& func) {
  auto* root = func->body.as<BlockRealizeObj>();
  std::vector<OpPatternKind> patterns;
  bool is_root = root && root->block->iter_vars.empty() && root->block->match_buffers.empty();
  if (!is_root || !CollectPatterns(root->block->body, &patterns)) return kOpaque;
  OpPatternKind kind = kElemWise;
  for (OpPatternKind next : patterns) {
    // What uses the result of a reduction other than element by element runs over its operands
    // again, as softmax does.
    bool is_again = kind >= kCommReduce && next != kElemWise;
    kind = is_again ? kOutEWiseFusable : std::max(kind, next);
  }
  return kind;
}

IRModule AnnotateTIROpPattern(IRModule mod) {
  const String key = "op_pattern";
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  for (const auto& [var, base] : mod->functions) {
    auto func = base.as<PrimFunc>();
    if (func && !(*func)->attrs.Has(key))
      functions.Set(var, WithAttr(*func, key, static_cast<int64_t>(PatternOf(*func))));
  }
  return WithFunctions(mod, functions);
}
}  // namespace
TVM_RELAX_PASS(AnnotateTIROpPattern, 0,
               "Gives PrimFuncs the attribute op_pattern: 0 elementwise, 1 broadcast, 2 injective, "
               "3 reduction, 4 product-like, 8 opaque. One that is there stays.");
}  // namespace tvm::relax
