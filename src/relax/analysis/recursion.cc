// SPDX-License-Identifier: Apache-2.0
// Functions that call themselves, directly or through others.
#include <algorithm>

#include "tvm/relax/analysis.h"

namespace tvm::relax {
namespace {
/// Tarjan's strongly connected components, without recursion: chains of calls may be long.
class Components {
 public:
  explicit Components(const std::vector<std::vector<int>>& edges)
      : edges_(edges), number_(edges.size(), -1), low_(edges.size()), open_(edges.size()) {
    for (size_t i = 0; i < edges.size(); ++i) {
      if (number_[i] < 0) Walk(static_cast<int>(i));
    }
  }
  std::vector<std::vector<int>> result;

 private:
  void Walk(int root) {
    std::vector<std::pair<int, size_t>> path{{root, 0}};
    Open(root);
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < edges_[node].size()) {
        int callee = edges_[node][next++];
        if (number_[callee] < 0) {
          Open(callee);
          path.push_back({callee, 0});
        } else if (open_[callee]) {
          low_[node] = std::min(low_[node], number_[callee]);
        }
        continue;
      }
      if (low_[node] == number_[node]) Close(node);
      int low = low_[node];
      path.pop_back();
      if (!path.empty()) low_[path.back().first] = std::min(low_[path.back().first], low);
    }
  }
  void Open(int node) {
    number_[node] = low_[node] = count_++;
    open_[node] = true;
    stack_.push_back(node);
  }
  void Close(int node) {
    std::vector<int>& component = result.emplace_back();
    do {
      component.push_back(stack_.back());
      open_[stack_.back()] = false;
      stack_.pop_back();
    } while (component.back() != node);
  }
  const std::vector<std::vector<int>>& edges_;
  std::vector<int> number_, low_, stack_;
  std::vector<bool> open_;
  int count_ = 0;
};
}  // namespace

Array<Array<GlobalVar>> DetectRecursion(const IRModule& mod) {
  auto functions = mod->Sorted();
  std::unordered_map<std::string_view, int> index;
  for (size_t i = 0; i < functions.size(); ++i) index[View(functions[i].first->name_hint)] = i;
  std::vector<std::vector<int>> edges(functions.size());
  std::vector<bool> calls_itself(functions.size());
  for (size_t i = 0; i < functions.size(); ++i) {
    if (!functions[i].second.as<FunctionObj>()) continue;
    for (const GlobalVar& callee : AllGlobalVars(functions[i].second)) {
      auto it = index.find(View(callee->name_hint));
      if (it == index.end()) continue;
      edges[i].push_back(it->second);
      if (it->second == static_cast<int>(i)) calls_itself[i] = true;
    }
  }
  std::vector<std::vector<int>> groups;
  for (auto& component : Components(edges).result) {
    if (component.size() == 1 && !calls_itself[component[0]]) continue;
    std::sort(component.begin(), component.end());
    groups.push_back(component);
  }
  std::sort(groups.begin(), groups.end());
  Array<Array<GlobalVar>> result;
  for (const auto& group : groups) {
    Array<GlobalVar> vars;
    for (int i : group) vars.push_back(functions[i].first);
    result.push_back(vars);
  }
  return result;
}

namespace {
TVM_REGISTER() {
  Def("relax.analysis.detect_recursion", &DetectRecursion,
      "Groups of functions that call each other, each in the order of their names.", Arg("mod"));
}
}  // namespace
}  // namespace tvm::relax
