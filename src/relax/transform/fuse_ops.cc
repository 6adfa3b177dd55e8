// SPDX-License-Identifier: Apache-2.0
// Which bindings become one kernel: those on all ways from a value to where the ways meet again.
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "relax/analysis/dims.h"
#include "relax/analysis/movement.h"
#include "relax/fuse/groups.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/op.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/function.h"

namespace tvm::relax {
namespace {
constexpr int kNone = -1;

/// A binding of a dataflow block.
struct FusionNode {
  Binding binding;
  OpPatternKind kind = kOpaque;
  std::string name;                                      // of what is called; "" for no call
  Optional<tir::PrimFunc> kernel;                        // that is called
  size_t args = 0;                                       // how many tensors it takes
  std::vector<std::pair<int, OpPatternKind>> consumers;  // and how they read the value
  bool escapes = false;                                  // the value is seen outside of the block
  // All ways of the value pass through `meet` before they leave the block; on them it is read in
  // ways up to `way`.
  int meet = kNone;
  OpPatternKind way = kElemWise;
  int depth = 1;
};

class FusionGraph {
 public:
  FusionGraph(const IRModule& mod, const DataflowBlock& block) {
    nodes.resize(block->bindings.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].binding = block->bindings[i];
      Look(mod, static_cast<int>(i));
      const Var& var = nodes[i].binding->var;
      index_[var->vid.get()] = static_cast<int>(i);
      nodes[i].escapes = !var.as<DataflowVarObj>();
    }
    for (size_t i = nodes.size(); i-- > 0;) FindMeet(&nodes[i]);
  }
  std::vector<FusionNode> nodes;

 private:
  void Look(const IRModule& mod, int at) {
    FusionNode& node = nodes[at];
    auto* binding = node.binding.as<VarBindingObj>();
    auto* call = binding ? binding->value.as<CallObj>() : nullptr;
    auto* item = binding ? binding->value.as<TupleGetItemObj>() : nullptr;
    if (item) node.kind = kElemWise;
    if (call) LookAtCall(mod, call, &node);
    for (const Var& used : UsedVars(ValueOf(node.binding))) {
      auto it = index_.find(used->vid.get());
      ++node.args;
      if (it == index_.end()) continue;
      bool is_same = node.kind == kBroadcast && HaveSameShape(used, node.binding->var);
      nodes[it->second].consumers.emplace_back(at, is_same ? kElemWise : node.kind);
    }
  }
  static void LookAtCall(const IRModule& mod, const CallObj* call, FusionNode* node) {
    static const Op &call_tir = *new Op(Op::Get("relax.call_tir")),
                    &inplace = *new Op(Op::Get("relax.call_tir_inplace"));
    if (call->Is(call_tir) || call->Is(inplace)) {
      auto callee = Any(call->args[0]).cast<GlobalVar>();
      node->name = callee->name_hint;
      auto func = mod->Lookup(callee).as<tir::PrimFunc>();
      if (!func) return;
      node->kernel = *func;
      node->kind = static_cast<OpPatternKind>(
          (*func)->GetAttr<int64_t>("op_pattern", static_cast<int64_t>(kOpaque)));
    } else if (auto* op = call->op.as<OpObj>()) {
      node->name = std::string(View(op->name).substr(View(op->name).rfind('.') + 1));
    }
  }
  static bool HaveSameShape(const Expr& a, const Expr& b) {
    auto *x = GetStructInfoAs<TensorStructInfoObj>(a), *y = GetStructInfoAs<TensorStructInfoObj>(b);
    if (!x || !y || !x->Dims() || !y->Dims()) return false;
    return DimProver(nullptr).Compare(x->Dims().value(), y->Dims().value()) == DimsAre::kEqual;
  }
  void FindMeet(FusionNode* node) {
    if (node->escapes || node->consumers.empty()) return;
    int meet = node->consumers[0].first;
    for (const auto& [consumer, kind] : node->consumers) {
      node->way = std::max(node->way, kind);
      meet = Meet(meet, consumer, &node->way);
    }
    node->meet = meet;
    node->depth = meet == kNone ? 1 : nodes[meet].depth + 1;
  }
  int Meet(int a, int b, OpPatternKind* way) const {
    while (a != b) {
      if (a == kNone || b == kNone) return kNone;
      int& lower = nodes[a].depth < nodes[b].depth ? b : a;
      *way = std::max(*way, nodes[lower].way);
      lower = nodes[lower].meet;
    }
    return a;
  }
  std::unordered_map<const Object*, int> index_;
};

/// How kernels move data: each is looked at once.
struct KernelMoves {
  bool is_view = false;  // a reshape: without a kernel it costs nothing
  bool is_transpose = false, keeps_rows = false;
};
class KnownMoves {
 public:
  const KernelMoves& Of(const tir::PrimFunc& func) {
    auto [it, is_new] = known_.try_emplace(func.get());
    if (is_new) it->second = {HasReshapePattern(func), IsTranspose(func), KeepsRows(func)};
    return it->second;
  }

 private:
  std::unordered_map<const Object*, KernelMoves> known_;
};

struct FusionLimits {
  size_t size, args;
};

/// Nodes joined to groups.
class Fuser {
 public:
  /// `moves`: null where costs do not count.
  Fuser(FusionGraph graph, FusionLimits limits, KnownMoves* moves)
      : nodes_(std::move(graph.nodes)), limits_(limits), moves_(moves) {
    parent_.resize(nodes_.size());
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const FusionNode& node : nodes_)
      groups_.push_back({node.kind, 1, node.args, static_cast<int>(groups_.size())});
  }
  Grouping Run() {
    Consider(&Fuser::JoinElementwise);
    if (moves_) Consider(&Fuser::JoinRowsOfProduct);
    Consider(&Fuser::JoinMovements);
    if (moves_) Consider(&Fuser::JoinTransposeIntoProduct);
    DropForeignItems();
    if (moves_) DropLastViews();
    return Collect();
  }

 private:
  struct Group {
    OpPatternKind kind;  // that of its hardest member
    size_t size, args;
    int anchor;  // that member
  };
  int Root(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  Group& GroupOf(int i) { return groups_[Root(i)]; }

  // ---- rules ------------------------------------------------------------------------------------
  void Consider(void (Fuser::*rule)(int)) {
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
      if (nodes_[i].meet != kNone && Root(i) != Root(nodes_[i].meet)) (this->*rule)(i);
    }
  }
  /// What multiplies takes along what follows element by element; that goes into anything that
  /// reads it once.
  void JoinElementwise(int i) {
    const FusionNode& node = nodes_[i];
    OpPatternKind kind = GroupOf(i).kind;
    if (kind == kOutEWiseFusable && node.way <= kBroadcast) {
      Join(i, [&](const FusionNode& next, int at) {
        return next.kind <= kBroadcast && GroupOf(at).kind < kCommReduce;
      });
    } else if (kind <= kBroadcast && node.way <= kCommReduce && !IsFirstView(i)) {
      Join(i, [&](const FusionNode& next, int at) {
        return next.kind <= kBroadcast || (at == node.meet && next.kind <= kCommReduce);
      });
    }
  }
  /// Movements of data join each other.
  void JoinMovements(int i) {
    if (GroupOf(i).kind > kInjective || nodes_[i].way > kInjective || IsFirstView(i)) return;
    Join(i, [&](const FusionNode& next, int) { return next.kind <= kInjective; });
  }
  /// A product writes its rows to where a transpose would move them.
  void JoinRowsOfProduct(int i) {
    const auto& product = nodes_[GroupOf(i).anchor].kernel;
    if (GroupOf(i).kind != kOutEWiseFusable || !product || !SumsOverOneAxis(product.value()))
      return;
    std::vector<int> way{i};
    auto go_on = [&] {
      int next = nodes_[way.back()].meet;
      if (next == kNone || !IsOnlyReadBy(way.back(), next) || GroupOf(next).size > 1) return false;
      way.push_back(next);
      return true;
    };
    while (go_on() && Moves(way.back()).is_view) {
    }
    if (!Moves(way.back()).keeps_rows) return;
    for (size_t at = 0; at + 1 < way.size(); ++at)
      Join(way[at], [](const FusionNode&, int) { return true; });
  }
  /// A product that reads each element once may do so in any order: that costs less than to write
  /// them in another order first.
  void JoinTransposeIntoProduct(int i) {
    const FusionNode& reader = nodes_[nodes_[i].meet];
    if (!Moves(i).is_transpose || GroupOf(i).size > 1 || !IsOnlyReadBy(i, nodes_[i].meet) ||
        reader.kind != kOutEWiseFusable || !reader.kernel)
      return;
    auto* args = Any(ValueOf(reader.binding)).cast<Call>()->args[1].as<TupleObj>();
    for (size_t at = 0; args && at < args->fields.size(); ++at) {
      auto* var = args->fields[at].as<VarObj>();
      if (!var || !var->vid.same_as(nodes_[i].binding->var->vid)) continue;
      const tir::PrimFunc& func = reader.kernel.value();
      if (!ReadsEachOnce(func, func.BufferOf(func->params[at]))) return;
    }
    Join(i, [](const FusionNode&, int) { return true; });
  }

  // ---- costs ------------------------------------------------------------------------------------
  KernelMoves Moves(int i) {
    const auto& kernel = nodes_[i].kernel;
    return moves_ && kernel && nodes_[i].kind <= kInjective ? moves_->Of(kernel.value())
                                                            : KernelMoves();
  }
  /// Before all others of a group a reshape is not part of its kernel.
  bool IsFirstView(int i) { return GroupOf(i).size == 1 && Moves(i).is_view; }
  bool IsOnlyReadBy(int i, int reader) const {
    const auto& consumers = nodes_[i].consumers;
    return std::all_of(consumers.begin(), consumers.end(),
                       [&](const auto& c) { return c.first == reader; });
  }
  /// Reshapes that a group would end with: behind its kernel they are views.
  void DropLastViews() {
    for (int i = static_cast<int>(nodes_.size()) - 1; i >= 0; --i) {
      const auto& consumers = nodes_[i].consumers;
      auto is_outside = [&](const auto& c) {
        return is_dropped_[c.first] || Root(c.first) != Root(i);
      };
      if (!nodes_[i].escapes && std::all_of(consumers.begin(), consumers.end(), is_outside))
        is_dropped_[i] = is_dropped_[i] || Moves(i).is_view;
    }
  }

  // ---- groups -----------------------------------------------------------------------------------
  /// Joins all nodes from `from` to where its ways meet, if `fits(node, index)` holds for them and
  /// the group does not become too large.
  template <class F>
  void Join(int from, const F& fits) {
    std::vector<int> open{from};
    std::unordered_set<int> seen{from};
    int anchors = 0;
    size_t size = 0, args = 0;
    std::unordered_set<int> roots;
    while (!open.empty()) {
      int at = open.back();
      open.pop_back();
      if (roots.insert(Root(at)).second) {
        const Group& group = GroupOf(at);
        anchors += group.kind >= kCommReduce;
        size += group.size;
        args += group.args;
      }
      if (at != from && Root(at) != Root(from) && !fits(nodes_[at], at)) return;
      if (anchors > 1 || size > limits_.size || args - (size - 1) > limits_.args) return;
      if (at == nodes_[from].meet) continue;
      for (const auto& [consumer, kind] : nodes_[at].consumers) {
        if (seen.insert(consumer).second) open.push_back(consumer);
      }
    }
    int target = Root(from);
    for (int root : roots) {
      if (root == target) continue;
      parent_[root] = target;
      Group &all = groups_[target], &more = groups_[root];
      all = {std::max(all.kind, more.kind), all.size + more.size, all.args + more.args,
             more.kind > all.kind ? more.anchor : all.anchor};
    }
  }
  /// Items of tuples that come from outside are taken before the call.
  void DropForeignItems() {
    std::unordered_map<const Object*, int> index;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      index[nodes_[i].binding->var->vid.get()] = static_cast<int>(i);
      Expr value = ValueOf(nodes_[i].binding);
      auto* item = value.as<TupleGetItemObj>();
      auto* var = item ? item->tuple_value.as<VarObj>() : nullptr;
      auto it = var ? index.find(var->vid.get()) : index.end();
      is_dropped_.push_back(item && (it == index.end() || is_dropped_[it->second] ||
                                     Root(it->second) != Root(static_cast<int>(i))));
    }
  }
  Grouping Collect() {
    std::vector<int> calls(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i)
      calls[Root(i)] += !nodes_[i].name.empty() && !is_dropped_[i];
    Grouping result;
    std::unordered_map<int, size_t> number;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      int root = Root(static_cast<int>(i));
      if (calls[root] < 2 || is_dropped_[i]) continue;
      auto [it, is_new] = number.try_emplace(root, result.groups.size());
      if (is_new) result.groups.push_back({"fused", {{"Primitive", true}}});
      result.group_of[nodes_[i].binding->var->vid.get()] = it->second;
      std::string& name = result.groups[it->second].name;
      if (!nodes_[i].name.empty() && name.size() < kMaxNameLength) name += "_" + nodes_[i].name;
    }
    return result;
  }
  static constexpr size_t kMaxNameLength = 100;
  std::vector<FusionNode> nodes_;
  FusionLimits limits_;
  KnownMoves* moves_;
  std::vector<int> parent_;
  std::vector<Group> groups_;  // by root
  std::vector<bool> is_dropped_;
};

IRModule FuseOps(IRModule mod, int64_t fuse_opt_level, bool by_cost) {
  auto context = transform::PassContext::Current();
  if ((fuse_opt_level < 0 ? context->opt_level : fuse_opt_level) == 0) return mod;
  auto max_size = static_cast<size_t>(context->GetConfig<int64_t>("relax.FuseOps.max_depth"));
  Target target = Target::Current();
  auto max_args = static_cast<size_t>(
      target.defined() ? target->GetAttr<int64_t>("max_function_args", INT64_MAX) : INT64_MAX);
  KnownMoves moves;
  return ExtractGroups(mod, [&](const DataflowBlock& block) {
    return Fuser(FusionGraph(mod, block), {max_size, max_args}, by_cost ? &moves : nullptr).Run();
  });
}
TVM_REGISTER() {
  transform::DefConfig<int64_t>("relax.FuseOps.max_depth", 256,
                                "How many operators FuseOps puts into one function at most.");
}
}  // namespace
TVM_RELAX_PASS(
    FuseOps, 0,
    R"(Groups calls of dataflow blocks that shall be one kernel into private functions with the
attribute Primitive: what follows a product element by element, chains of elementwise operators up
to a reduction, chains that move data. Level 0 fuses nothing, -1 takes the level of the context.
By cost, reshapes at the ends of a group stay outside, where they are views; a transpose that keeps
rows whole is written by the product before it, and any transpose is read by the product behind it
if that reads each element once.

lv = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((4, 8), dtype="float32"))
gv = R.call_tir(cls.relu, (lv,), out_sinfo=R.Tensor((4, 8), dtype="float32"))
->
gv = cls.fused_matmul_relu(x, w))",
    Arg("fuse_opt_level", -1), Arg("by_cost", false));
}  // namespace tvm::relax
