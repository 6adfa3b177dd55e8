// SPDX-License-Identifier: Apache-2.0
// The order of bindings in dataflow blocks.
#include <algorithm>
#include <deque>
#include <unordered_set>

#include "relax/analysis/symbolic_vars.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// What a binding uses: ids of variables, and symbolic variables.
struct SortUses : ExprVisitor {
  std::vector<const Object*> found;
  void VisitExpr_(const VarObj* op) final { found.push_back(op->vid.get()); }
  void VisitExpr_(const ShapeExprObj* op) final {
    for (const PrimExpr& e : op->values) Symbolic(e);
  }
  void VisitExpr_(const PrimValueObj* op) final { Symbolic(op->value); }
  void VisitStructInfo(const StructInfo& info) final {
    VisitSymbolicExprs(info, [&](const PrimExpr& e, SymbolicExpr) { Symbolic(e); });
    if (auto* tensor = info.as<TensorStructInfoObj>(); tensor && tensor->shape)
      VisitExpr(tensor->shape.value());
  }
  void Symbolic(const PrimExpr& e) {
    VisitVars(e, [&](const tir::VarObj* var) { found.push_back(var); });
  }
};

/// The bindings of a block, and who needs whom, by index.
struct Dependences {
  std::vector<std::vector<int>> operands, users;
  explicit Dependences(const Array<Binding>& bindings)
      : operands(bindings.size()), users(bindings.size()) {
    std::unordered_map<const Object*, int> defined;
    for (int i = 0; i < static_cast<int>(bindings.size()); ++i) {
      SortUses uses;
      uses.VisitBinding(bindings[i]);
      std::unordered_set<int> seen;
      for (const Object* used : uses.found) {
        auto it = defined.find(used);
        if (it == defined.end() || !seen.insert(it->second).second) continue;
        operands[i].push_back(it->second);
        users[it->second].push_back(i);
      }
      defined[bindings[i]->var->vid.get()] = i;
      auto* cast = bindings[i].as<MatchCastObj>();
      if (!cast) continue;
      // The first cast that names a variable defines it, later ones check it.
      for (const tir::Var& var : DefinableTIRVarsInStructInfo(cast->struct_info))
        defined.try_emplace(var.get(), i);
    }
  }
};

/// Each node behind those of `before`, as soon as it can be (depth first) or in the order in which
/// they become ready (breadth first). Where several are ready the first one goes first.
std::vector<int> ReadyOrder(const std::vector<std::vector<int>>& before,
                            const std::vector<std::vector<int>>& behind,
                            const std::vector<int>& start, bool depth_first) {
  std::vector<size_t> waits(before.size());
  for (size_t i = 0; i < before.size(); ++i) waits[i] = before[i].size();
  std::deque<int> ready;
  for (int i : start) {
    if (waits[i] == 0) ready.push_back(i);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    int node = ready.front();
    ready.pop_front();
    order.push_back(node);
    std::vector<int> next;
    for (int user : behind[node]) {
      if (--waits[user] == 0) next.push_back(user);
    }
    ready.insert(depth_first ? ready.begin() : ready.end(), next.begin(), next.end());
  }
  return order;
}

/// Operands right before their first user, from the last results on; without recursion.
std::vector<int> PostOrder(const Dependences& graph) {
  std::vector<bool> visited(graph.operands.size());
  std::vector<int> order;
  for (int root = 0; root < static_cast<int>(visited.size()); ++root) {
    if (!graph.users[root].empty() || visited[root]) continue;
    std::vector<std::pair<int, size_t>> path{{root, 0}};
    visited[root] = true;
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next == graph.operands[node].size()) {
        order.push_back(node);
        path.pop_back();
        continue;
      }
      int operand = graph.operands[node][next++];
      if (visited[operand]) continue;
      visited[operand] = true;
      path.push_back({operand, 0});
    }
  }
  return order;
}

class BindingSorter : public ExprMutator {
 public:
  BindingSorter(bool depth_first, bool from_inputs)
      : depth_first_(depth_first), from_inputs_(from_inputs) {}
  void VisitBindingBlock(const BindingBlock& block) final {
    if (!block.as<DataflowBlockObj>()) return ExprMutator::VisitBindingBlock(block);
    Dependences graph(block->bindings);
    std::vector<int> all(block->bindings.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    std::vector<int> order;
    if (from_inputs_) {
      order = ReadyOrder(graph.operands, graph.users, all, depth_first_);
    } else if (depth_first_) {
      order = PostOrder(graph);
    } else {
      std::reverse(all.begin(), all.end());
      order = ReadyOrder(graph.users, graph.operands, all, false);
      std::reverse(order.begin(), order.end());
    }
    if (std::is_sorted(order.begin(), order.end())) return ExprMutator::VisitBindingBlock(block);
    Array<Binding> sorted;
    for (int i : order) sorted.push_back(block->bindings[i]);
    ExprMutator::VisitBindingBlock(DataflowBlock(sorted, block->span));
  }

 private:
  bool depth_first_, from_inputs_;
};

/// Which of two names it is.
bool IsFirst(const char* option, const String& name, const char* first, const char* second) {
  if (name != first && name != second) {
    TVM_FFI_THROW(ValueError) << "TopologicalSort: expected " << option << " to be '" << first
                              << "' or '" << second << "', got '" << name << "'";
  }
  return name == first;
}
Function TopologicalSort(Function func, IRModule, String order, String direction) {
  BindingSorter sorter(IsFirst("order", order, "depth-first", "breadth-first"),
                       IsFirst("direction", direction, "from-inputs", "from-outputs"));
  return As<Function>(sorter.VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    TopologicalSort, 0,
    "a = f(x); b = f(x); c = g(a)  ->  a = f(x); c = g(a); b = f(x): the bindings of dataflow "
    "blocks in an order (\"depth-first\" or \"breadth-first\") that begins with what is known "
    "(direction \"from-inputs\") or ends with the results (\"from-outputs\").",
    Arg("order", String("depth-first")), Arg("direction", String("from-inputs")));
}  // namespace tvm::relax
