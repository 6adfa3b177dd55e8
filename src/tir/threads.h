// SPDX-License-Identifier: Apache-2.0
// The indices of a GPU launch: blockIdx.x, clusterCtaIdx.x, threadIdx.y, vthread.
#pragma once
#include <string_view>

#include "tvm/tir/function.h"

namespace tvm::tir {

/// Key of an AttrStmt: the statements inside have the barriers that they need.
inline constexpr const char* kOwnBarriers = "own_barriers";

/// Which index of a launch a tag names. `dim` is 0 for x, 1 for y, 2 for z. Blocks next to each
/// other are a cluster where there is an index in it (clusterCtaIdx), whose extents divide those of
/// blockIdx.
struct ThreadTag {
  enum Kind { kNone, kBlock, kCluster, kThread, kVirtual } kind = kNone;
  int dim = 0;
  explicit ThreadTag(const String& tag) {
    std::string_view text = View(tag);
    auto starts = [&](std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; };
    if (starts("blockIdx.")) kind = kBlock;
    if (starts("clusterCtaIdx.")) kind = kCluster;
    if (starts("threadIdx.")) kind = kThread;
    if (starts("vthread") || text == "cthread") kind = kVirtual;
    if (IsLaunched()) dim = text.back() - 'x';
  }
  /// Whether all threads of one launch have the index, in contrast to virtual threads.
  bool IsLaunched() const { return kind == kBlock || kind == kCluster || kind == kThread; }
};

/// The thread index that `op` launches, or null.
inline const IterVarObj* LaunchedThread(const AttrStmtObj* op) {
  if (op->attr_key != attr::kThreadExtent) return nullptr;
  return op->node.as<IterVarObj>();
}
/// The same for a loop bound to a thread that is not virtual.
inline const IterVarObj* LaunchedThread(const ForObj* op) {
  if (op->kind != ForKind::kThreadBinding) return nullptr;
  const IterVarObj* iv = op->thread_binding.value().get();
  return ThreadTag(iv->thread_tag).kind == ThreadTag::kVirtual ? nullptr : iv;
}
/// The scope of the memory a pointer refers to; "" for other variables.
inline String ScopeOf(const VarObj* var) {
  auto* pointer = var->type_annotation.as<PointerTypeObj>();
  if (!pointer) return "";
  return pointer->storage_scope.empty() ? String("global") : pointer->storage_scope;
}
/// Whether all threads of a block see the same memory.
inline bool IsSharedScope(const String& scope) { return View(scope).substr(0, 6) == "shared"; }

}  // namespace tvm::tir
