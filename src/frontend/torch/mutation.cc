// SPDX-License-Identifier: Apache-2.0
// Operators that change a tensor in place: the graph gets new values for it, for what it is a view
// of, and for all other views of that.
#include <algorithm>
#include <array>

#include "converter.h"

namespace tvm::frontend::torch {

std::string FunctionalTarget(const std::string& target) {
  size_t begin = target.find('.') + 1, end = target.find('.', begin);
  if (end == target.npos || end - begin < 2 || target[end - 1] != '_' || target[end - 2] == '_') {
    return "";
  }
  return target.substr(0, end - 1) + target.substr(end);
}

namespace {

/// Views, and how a new value of one becomes a new value of what it is a view of.
enum class Inverse {
  kSame,
  kReshape,
  kTransposeAgain,
  kPermuteBack,
  kSelect,
  kSlice,
  kNarrow,
  kMaybe,
  kNone
};
struct ViewRow {
  const char* target;
  Inverse inverse;
};
constexpr ViewRow kViews[] = {
    {"aten.alias.default", Inverse::kSame},
    {"aten.detach.default", Inverse::kSame},
    {"aten.view.default", Inverse::kReshape},
    {"aten.unsqueeze.default", Inverse::kReshape},
    {"aten.squeeze.default", Inverse::kReshape},
    {"aten.squeeze.dim", Inverse::kReshape},
    {"aten.squeeze.dims", Inverse::kReshape},
    {"aten.transpose.int", Inverse::kTransposeAgain},
    {"aten.t.default", Inverse::kTransposeAgain},
    {"aten.permute.default", Inverse::kPermuteBack},
    {"aten.select.int", Inverse::kSelect},
    {"aten.slice.Tensor", Inverse::kSlice},
    {"aten.narrow.default", Inverse::kNarrow},
    // Views of a tensor in row-major order, else copies.
    {"aten.reshape.default", Inverse::kMaybe},
    {"aten.flatten.using_ints", Inverse::kMaybe},
    {"aten.contiguous.default", Inverse::kMaybe},
    // Several, or not to be written through.
    {"aten.expand.default", Inverse::kNone},
    {"aten.diagonal.default", Inverse::kNone},
    {"aten.as_strided.default", Inverse::kNone},
    {"aten.split.Tensor", Inverse::kNone},
    {"aten.split_with_sizes.default", Inverse::kNone},
    {"aten.chunk.default", Inverse::kNone},
    {"aten.unbind.int", Inverse::kNone},
    {"aten.view.dtype", Inverse::kNone},
    {"_operator.getitem", Inverse::kNone},
};
std::optional<Inverse> InverseOf(const GraphNodeObj* node) {
  if (!FunctionalTarget(node->target).empty()) return Inverse::kSame;
  for (const ViewRow& row : kViews) {
    if (node->target == row.target) return row.inverse;
  }
  return std::nullopt;
}
[[noreturn]] void RefuseChange(const GraphNodeObj* view) {
  TVM_FFI_THROW(NotImplementedError)
      << "a change in place seen through " << view->target << " (node " << view->name
      << "): expected views by slices, positions or orders of dimensions; "
         "exported_program.run_decompositions() removes such changes";
  TVM_FFI_UNREACHABLE();
}
std::string RefAt(const GraphNodeObj* node, size_t i) {
  auto* ref = i < node->args.size() ? node->args[i].as<ValueRefObj>() : nullptr;
  return ref ? std::string(ref->name) : "";
}
constexpr size_t kRunningMean = 3, kRunningVar = 4, kTraining = 5;
/// Whether a normalisation uses the statistics of the batch and remembers them.
bool UpdatesStatistics(const GraphNodeObj* node) {
  const ConverterInfo* info = FindConverter(node->target);
  return info && info->params.size() > kTraining && info->params[kRunningMean] == "running_mean" &&
         kTraining < node->args.size() && node->args[kTraining].try_cast<bool>().value_or(false);
}
std::string BaseOf(const GraphNodeObj* node) { return RefAt(node, 0); }

}  // namespace

std::unordered_set<std::string> ChangedInputs(const Program& program) {
  std::unordered_set<std::string> changed;
  std::unordered_map<std::string, std::string> bases;
  auto change = [&](std::string name) {
    while (bases.count(name)) name = bases[name];
    changed.insert(name);
  };
  for (const auto& [name, value] : program->mutations) changed.insert(name);
  for (const GraphNode& node : program->nodes) {
    if (!FunctionalTarget(node->target).empty()) change(RefAt(node.get(), 0));
    if (UpdatesStatistics(node.get())) {
      change(RefAt(node.get(), kRunningMean));
      change(RefAt(node.get(), kRunningVar));
    }
    std::string base = BaseOf(node.get());
    if (InverseOf(node.get()) && !base.empty()) bases[node->name] = base;
  }
  return changed;
}

Any ImporterObj::Apply(const char* target, const Array<Any>& args) {
  auto node = ffi::make_object<GraphNodeObj>();
  node->name = target;
  node->target = target;
  node->args = args;
  return Convert(node.get());
}

Any ImporterObj::Unview(const GraphNodeObj* view, const Any& base, const Any& value) {
  Array<Any> args;
  for (const Any& arg : view->args) args.push_back(Resolve(arg));
  Array<Any> scatter = {base, value};
  switch (*InverseOf(view)) {
    case Inverse::kSame:
      return value;
    case Inverse::kReshape:
      return Apply("aten.view.default", {value, ShapeExpr(ShapeOf(base.cast<Expr>()))});
    case Inverse::kTransposeAgain:
      args.Set(0, value);
      return Apply(view->target.c_str(), args);
    case Inverse::kPermuteBack: {
      Array<Any> dims = args[1].cast<Array<Any>>();
      int64_t n = dims.size();
      std::vector<int64_t> back(n);
      for (int64_t i = 0; i < n; ++i) back[(dims[i].cast<int64_t>() + n) % n] = i;
      return Apply("aten.permute.default", {value, AnyArray(back)});
    }
    case Inverse::kSelect:
    case Inverse::kSlice:
      for (size_t i = 1; i < args.size(); ++i) scatter.push_back(args[i]);
      return Apply(*InverseOf(view) == Inverse::kSelect ? "aten.select_scatter.default"
                                                        : "aten.slice_scatter.default",
                   scatter);
    case Inverse::kNarrow:
      scatter.push_back(args[1]);
      scatter.push_back(args[2]);
      scatter.push_back(AsSize(args[2]) + AsSize(args[3]));
      return Apply("aten.slice_scatter.default", scatter);
    default:
      RefuseChange(view);
  }
}

void ImporterObj::NoteView(const GraphNodeObj* node) {
  if (!InverseOf(node) || BaseOf(node).empty()) return;
  views_[node->name] = node;
  view_order_.push_back(node);
}

void ImporterObj::Mutate(const GraphNodeObj* node) {
  std::string name = BaseOf(node);
  Any value = env[node->name];
  bool keeps_shape = !View(node->target).starts_with("aten.resize_");
  if (keeps_shape) value = Apply("aten.copy.default", {env[name], value});  // and type
  env[node->name] = value;
  Assign(name, value, node);
}

void ImporterObj::Assign(const std::string& name, Any value, const GraphNodeObj* node) {
  std::vector<std::string> changed = {name};
  env[name] = value;
  while (views_.count(changed.back())) {
    const GraphNodeObj* view = views_[changed.back()];
    std::string base = BaseOf(view);
    value = Unview(view, env[base], value);
    env[base] = value;
    changed.push_back(base);
  }
  const std::string& root = changed.back();
  mutated_.insert(root);
  for (const GraphNodeObj* view : view_order_) {
    std::string at = view->name;
    if (view == node || std::find(changed.begin(), changed.end(), at) != changed.end()) continue;
    while (views_.count(at)) at = BaseOf(views_[at]);
    if (at != root) continue;
    if (*InverseOf(view) == Inverse::kMaybe && views_.count(BaseOf(view))) RefuseChange(view);
    bool in_place = !FunctionalTarget(view->target).empty();
    env[view->name] = in_place ? env[BaseOf(view)] : Convert(view);
  }
}

}  // namespace tvm::frontend::torch
