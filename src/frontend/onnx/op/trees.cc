// SPDX-License-Identifier: Apache-2.0
// Ensembles of decision trees, the old forms and the new one: all trees of all rows go down a level
// at a time, then the weights of their leaves are joined.
#include <cmath>
#include <map>

#include "frontend/onnx/op/learning.h"
#include "runtime/host_tensor.h"

namespace tvm::frontend::onnx {
namespace {
constexpr const char* kTrees = "ai.onnx.ml";
constexpr int64_t kMaxLevels = 4096;

enum TreeMode : int64_t { kLeq, kLess, kGeq, kGreater, kSame, kOther, kMember, kLeaf };
constexpr const char* kModeNames[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                      "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
constexpr const char* kJoinNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
constexpr const char* kPostNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};

template <size_t N>
int64_t NumberOfName(Node& n, const char* const (&names)[N], const std::string& name) {
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) return static_cast<int64_t>(i);
  }
  n.Fail("one of " + std::string(names[0]) + ", " + names[1] + ", …", name);
}

/// All trees in one table of nodes. A leaf leads to itself.
struct Forest {
  struct Item {
    int64_t feature = 0, mode = kLeaf, yes = 0, no = 0;
    double split = 0;
    bool missing_is_yes = false;
    std::map<int64_t, double> weights;  // of a leaf, by target
  };
  std::vector<Item> items;
  std::vector<int64_t> roots;
  int64_t targets = 1, join = 1;
  std::string post = "NONE";
  std::vector<double> base;

  /// The levels of the deepest tree; nodes that lead back are an error.
  int64_t Levels(Node& n) const {
    int64_t levels = 0;
    std::set<int64_t> now(roots.begin(), roots.end());
    for (; !now.empty(); ++levels) {
      if (levels > std::min<int64_t>(kMaxLevels, static_cast<int64_t>(items.size())))
        n.Fail("trees", "nodes that lead back");
      std::set<int64_t> next;
      for (int64_t i : now) {
        if (i < 0 || i >= static_cast<int64_t>(items.size()))
          n.Fail("nodes below " + std::to_string(items.size()), std::to_string(i));
        if (items[i].mode == kLeaf) continue;
        next.insert({items[i].yes, items[i].no});
      }
      now = next;
    }
    return levels - 1;
  }
  /// Nodes that test for members of a set become chains of nodes that test for one each.
  void ExpandSets(Node& n, const std::vector<double>& members) {
    size_t at = 0;
    for (size_t i = 0, count = items.size(); i < count; ++i) {
      if (items[i].mode != kMember) continue;
      std::vector<double> set;
      for (; at < members.size() && !std::isnan(members[at]); ++at) set.push_back(members[at]);
      ++at;
      if (set.empty()) n.Fail("members for each set", "none");
      size_t last = i;
      items[i].mode = kSame;
      items[i].split = set[0];
      const Item one = items[i];
      for (size_t k = 1; k < set.size(); ++k) {
        Item next = one;
        next.split = set[k];
        items[last].no = static_cast<int64_t>(items.size());
        last = items.size();
        items.push_back(next);
      }
    }
  }
};

template <class T, class F>
Expr Column(Node& n, const std::vector<T>& rows, DataType dtype, F value) {
  Known known{{static_cast<int64_t>(rows.size())}, dtype, {}};
  for (const T& row : rows) known.elements.push_back(MakeConst(dtype, value(row)));
  Value made{std::move(known)};
  return n.importer.TensorOf(&made);
}
/// The leaves that rows of `x` reach, [rows, trees].
Expr LeavesOf(Node& n, const Expr& x, const Forest& forest) {
  using Item = Forest::Item;
  const DataType index = DataType::Int(64), t = Node::TypeOf(x);
  auto column = [&](DataType dtype, auto value) { return Column(n, forest.items, dtype, value); };
  Expr feature = column(index, [](const Item& i) { return i.feature; });
  Expr mode = column(index, [](const Item& i) { return i.mode; });
  Expr yes = column(index, [](const Item& i) { return i.yes; });
  Expr no = column(index, [](const Item& i) { return i.no; });
  Expr missing = column(index, [](const Item& i) { return i.missing_is_yes ? 1 : 0; });
  Expr split = column(t, [](const Item& i) { return i.split; });
  Expr roots = Column(n, forest.roots, index, [](int64_t root) { return root; });
  PrimExpr rows = Node::Shape(x)[0];
  auto trees = static_cast<int64_t>(forest.roots.size());
  Expr at = n("broadcast_to", roots, relax::ShapeExpr({rows, Num(trees)}));
  bool tests_missing = std::any_of(forest.items.begin(), forest.items.end(),
                                   [](const Item& i) { return i.missing_is_yes; });
  for (int64_t level = 0, levels = forest.Levels(n); level < levels; ++level) {
    Te te(n);
    te::Tensor now = te(at), data = te(x), f = te(feature), m = te(mode), s = te(split);
    te::Tensor to_yes = te(yes), to_no = te(no), gaps = te(missing);
    at = ComputeElements(n, "level", te, now->shape, [&](const Index& i) {
      PrimExpr place = topi::At(now, i), v = data(i[0], f(place)), limit = s(place),
               kind = m(place);
      auto is = [&](TreeMode wanted) { return equal(kind, Num(wanted)); };
      PrimExpr holds = (is(kLeq) && v <= limit) || (is(kLess) && v < limit) ||
                       (is(kGeq) && v >= limit) || (is(kGreater) && v > limit) ||
                       (is(kSame) && equal(v, limit)) || (is(kOther) && not_equal(v, limit));
      if (tests_missing) holds = holds || (not_equal(gaps(place), Num(0)) && isnan(v));
      return tir::Select(holds, to_yes(place), to_no(place));
    });
  }
  return at;
}
/// Scores [rows, targets] before the last function.
Expr ScoresOf(Node& n, const Expr& x, const Forest& forest) {
  DataType t = Node::TypeOf(x);
  auto count = static_cast<int64_t>(forest.items.size());
  if (count * forest.targets > int64_t{1} << 28) n.Unsupported("so many leaves and targets");
  std::vector<double> table(count * forest.targets, 0);
  for (int64_t i = 0; i < count; ++i) {
    for (auto [target, weight] : forest.items[i].weights) {
      if (target < 0 || target >= forest.targets)
        n.Fail("targets below " + std::to_string(forest.targets), std::to_string(target));
      table[i * forest.targets + target] += weight;
    }
  }
  Expr weights = Column(n, table, t, [](double w) { return w; });
  Expr leaves = LeavesOf(n, x, forest);
  Te te(n);
  te::Tensor at = te(leaves), w = te(weights);
  Expr all = ComputeElements(
      n, "weights", te, {at->shape[0], at->shape[1], Num(forest.targets)},
      [&](const Index& i) { return w(at(i[0], i[1]) * Num(forest.targets) + i[2]); });
  constexpr const char* kJoins[] = {"mean", "sum", "min", "max"};
  Expr scores = n(kJoins[forest.join], all, List({1}), false);
  if (forest.base.empty()) return scores;
  return n("add", scores, Column(n, forest.base, t, [](double b) { return b; }));
}

// ---- the newest form ----------------------------------------------------------------------------
std::vector<double> NumbersOf(Node& n, Name name) {
  const Attribute* attr = n.Find(name, Attribute::kTensor);
  if (!attr) return {};
  auto tensor = runtime::HostTensor(MakeTensor(n.importer.model(), *attr->tensor));
  DataType t = tensor.dtype();
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const void* data = tensor.data_ptr();
    if (t == DataType::Float(32))
      values.push_back(static_cast<const float*>(data)[i]);
    else if (t == DataType::Float(64))
      values.push_back(static_cast<const double*>(data)[i]);
    else if (t == DataType::UInt(8))
      values.push_back(static_cast<const uint8_t*>(data)[i]);
    else
      n.Unsupported("'" + std::string(name) + "' of " + t.str());
  }
  return values;
}
int64_t AtOf(Node& n, const std::vector<int64_t>& values, size_t i, const char* name) {
  if (i >= values.size()) n.Fail("an element of " + std::string(name) + " for each node", "fewer");
  return values[i];
}
Outputs ConvertTreeEnsemble(Node& n) {
  Forest forest;
  auto features = n.Ints("nodes_featureids"), yes = n.Ints("nodes_truenodeids"),
       no = n.Ints("nodes_falsenodeids"), yes_leaf = n.Ints("nodes_trueleafs"),
       no_leaf = n.Ints("nodes_falseleafs"), missing = n.Ints("nodes_missing_value_tracks_true"),
       leaf_targets = n.Ints("leaf_targetids");
  auto modes = NumbersOf(n, "nodes_modes"), splits = NumbersOf(n, "nodes_splits"),
       weights = NumbersOf(n, "leaf_weights"), members = NumbersOf(n, "membership_values");
  n.Ignore("nodes_hitrates");
  forest.roots = n.Ints("tree_roots");
  forest.targets = n.Int("n_targets", 1);
  forest.join = n.Int("aggregate_function", 1);
  int64_t post = n.Int("post_transform", 0);
  if (forest.join < 0 || forest.join > 3) n.Fail("aggregate_function from 0 to 3", "another");
  if (post < 0 || post > 4) n.Fail("post_transform from 0 to 4", std::to_string(post));
  forest.post = kPostNames[post];
  size_t count = features.size();
  if (modes.size() != count || splits.size() != count || weights.size() != leaf_targets.size())
    n.Fail("as many modes and splits as nodes, weights as leaves", "others");
  // Leaves come behind the nodes.
  for (size_t i = 0; i < count; ++i) {
    auto place = [&](int64_t to, bool is_leaf) {
      return is_leaf ? to + static_cast<int64_t>(count) : to;
    };
    Forest::Item item;
    item.feature = features[i];
    item.mode = static_cast<int64_t>(modes[i]);
    item.split = splits[i];
    item.yes = place(AtOf(n, yes, i, "nodes_truenodeids"), AtOf(n, yes_leaf, i, "nodes_trueleafs"));
    item.no = place(AtOf(n, no, i, "nodes_falsenodeids"), AtOf(n, no_leaf, i, "nodes_falseleafs"));
    item.missing_is_yes = !missing.empty() && AtOf(n, missing, i, "missing values") != 0;
    if (item.mode < 0 || item.mode >= kLeaf) n.Fail("modes from 0 to 6", "another");
    forest.items.push_back(item);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    Forest::Item leaf;
    leaf.yes = leaf.no = static_cast<int64_t>(count + i);
    leaf.weights[leaf_targets[i]] = weights[i];
    forest.items.push_back(leaf);
  }
  forest.ExpandSets(n, members);
  return Transformed(n, ScoresOf(n, n.In(0), forest), forest.post);
}

// ---- the forms before ---------------------------------------------------------------------------
/// Numbers of float attributes, or of a tensor beside them.
std::vector<double> FloatsOrTensor(Node& n, Name floats, Name tensor) {
  return n.HasAttr(tensor) ? NumbersOf(n, tensor) : n.Floats(floats);
}
/// The names are of the attributes with the weights of leaves.
Forest OldForest(Node& n, Name trees, Name nodes, Name ids, Name weights_name,
                 Name weights_tensor) {
  Forest forest;
  auto tree_ids = n.Ints("nodes_treeids"), node_ids = n.Ints("nodes_nodeids"),
       features = n.Ints("nodes_featureids"), yes = n.Ints("nodes_truenodeids"),
       no = n.Ints("nodes_falsenodeids"), missing = n.Ints("nodes_missing_value_tracks_true");
  auto modes = n.Strs("nodes_modes");
  auto values = FloatsOrTensor(n, "nodes_values", "nodes_values_as_tensor");
  n.Ignore("nodes_hitrates");
  n.Ignore("nodes_hitrates_as_tensor");
  forest.join = NumberOfName(n, kJoinNames, n.Str("aggregate_function", "SUM"));
  forest.post = n.Str("post_transform", "NONE");
  forest.base = FloatsOrTensor(n, "base_values", "base_values_as_tensor");
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  for (size_t i = 0; i < node_ids.size(); ++i)
    places[{AtOf(n, tree_ids, i, "nodes_treeids"), node_ids[i]}] = static_cast<int64_t>(i);
  auto place_of = [&](int64_t tree, int64_t node) {
    auto it = places.find({tree, node});
    if (it == places.end()) n.Fail("a node " + std::to_string(node) + " of its tree", "none");
    return it->second;
  };
  if (modes.size() != node_ids.size() || values.size() != node_ids.size())
    n.Fail("as many modes and values as nodes", "others");
  std::vector<bool> is_child(node_ids.size(), false);
  for (size_t i = 0; i < node_ids.size(); ++i) {
    Forest::Item item;
    item.mode = NumberOfName(n, kModeNames, modes[i]);
    item.yes = item.no = static_cast<int64_t>(i);
    if (item.mode != kLeaf) {
      item.feature = AtOf(n, features, i, "nodes_featureids");
      item.split = values[i];
      item.yes = place_of(tree_ids[i], AtOf(n, yes, i, "nodes_truenodeids"));
      item.no = place_of(tree_ids[i], AtOf(n, no, i, "nodes_falsenodeids"));
      item.missing_is_yes = !missing.empty() && AtOf(n, missing, i, "missing values") != 0;
      is_child[item.yes] = is_child[item.no] = true;
    }
    forest.items.push_back(item);
  }
  for (size_t i = 0; i < is_child.size(); ++i) {
    if (!is_child[i]) forest.roots.push_back(static_cast<int64_t>(i));
  }
  auto at_trees = n.Ints(trees), at_nodes = n.Ints(nodes), targets = n.Ints(ids);
  auto weights = FloatsOrTensor(n, weights_name, weights_tensor);
  for (size_t i = 0; i < weights.size(); ++i) {
    int64_t place = place_of(AtOf(n, at_trees, i, "trees"), AtOf(n, at_nodes, i, "their nodes"));
    forest.items[place].weights[AtOf(n, targets, i, "targets")] += weights[i];
  }
  if (forest.roots.empty()) n.Fail("at least one tree", "none");
  return forest;
}
Expr RealInput(Node& n) {
  Expr x = n.In(0);
  return Node::TypeOf(x) == DataType::Float(64) ? x : n.Cast(x, DataType::Float(32));
}
Outputs ConvertTreeEnsembleRegressor(Node& n) {
  Forest forest = OldForest(n, "target_treeids", "target_nodeids", "target_ids", "target_weights",
                            "target_weights_as_tensor");
  forest.targets = n.Int("n_targets", 1);
  Expr scores = Transformed(n, ScoresOf(n, RealInput(n), forest), forest.post);
  return n.Cast(scores, DataType::Float(32));
}
Outputs ConvertTreeEnsembleClassifier(Node& n) {
  Forest forest = OldForest(n, "class_treeids", "class_nodeids", "class_ids", "class_weights",
                            "class_weights_as_tensor");
  ClassLabels labels = ReadLabels(n, "classlabels_int64s", "classlabels_strings");
  std::set<int64_t> used;
  bool negative = false;
  for (const Forest::Item& item : forest.items) {
    for (auto [target, weight] : item.weights) {
      used.insert(target);
      negative |= weight < 0;
    }
  }
  // Two classes of which only one has weights: the other gets what is left, or the opposite.
  bool is_binary = labels.size() == 2 && used.size() == 1 && forest.base.size() <= 1;
  forest.targets = labels.size();
  DataType real = DataType::Float(32);
  Expr scores, best;
  if (is_binary) {
    for (Forest::Item& item : forest.items) {
      if (!item.weights.empty()) item.weights = {{0, item.weights.begin()->second}};
    }
    forest.targets = 1;
    Expr score = n.Cast(ScoresOf(n, RealInput(n), forest), real);
    bool is_logistic = forest.post == "LOGISTIC", is_share = forest.post == "NONE" && !negative;
    Expr limit = n.Scalar(is_share ? 0.5 : 0, real);
    best = n.Cast(n("squeeze", n("greater", score, limit), List({1})), DataType::Int(64));
    Expr second = is_logistic ? n("sigmoid", score) : score;
    Expr first =
        is_logistic || is_share ? n("subtract", n.Scalar(1, real), second) : n("negative", second);
    scores = n("concat", relax::Tuple({first, second}), 1);
    if (!is_logistic) scores = Transformed(n, scores, forest.post);
  } else {
    Expr raw = n.Cast(ScoresOf(n, RealInput(n), forest), real);
    best = n("argmax", raw, 1);
    scores = Transformed(n, raw, forest.post);
  }
  return std::vector<Value>{labels.At(n, best), scores};
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"TreeEnsemble", &ConvertTreeEnsemble, kTrees},
      {"TreeEnsembleClassifier", &ConvertTreeEnsembleClassifier, kTrees},
      {"TreeEnsembleRegressor", &ConvertTreeEnsembleRegressor, kTrees},
  });
}

}  // namespace tvm::frontend::onnx
