// SPDX-License-Identifier: Apache-2.0
// The tables behind targets: kinds with their options, and tags.
#pragma once
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tvm/ir/target.h"

namespace tvm {

enum class OptionType { kInt, kBool, kString, kStrings, kTargets };

/// An option of a kind: its name, type, default (None: no default) and, of integers, limits.
struct TargetOption {
  const char* name;
  OptionType type;
  Any fallback = nullptr;
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
};
struct TargetKindRow {
  const char* name;
  int device_type;
  std::vector<const char*> keys;
  std::vector<TargetOption> options;
};
const std::vector<TargetKindRow>& TargetKindTable();
/// Options that every kind takes.
const std::vector<TargetOption>& CommonTargetOptions();
/// What targets of old versions said that is said elsewhere now, and where. It has no effect.
const std::map<std::string, const char*, std::less<>>& DeadTargetOptions();
const TargetKindRow& RowOf(const TargetKind& kind);
/// Tag -> target as string or JSON.
std::map<std::string, std::string, std::less<>> BuiltinTags();

/// Fills in what this machine is, where the attributes leave it open: CPU name, features, cores,
/// caches.
void DetectHost(Map<String, Any>* attrs);
/// Fills in the architecture of the first GPU, where the target names none and there is one.
void DetectGpu(Map<String, Any>* attrs);
/// ValueError when features are turned on without what they need, or on and off.
void CheckFeatures(const Array<String>& features);
/// Whether the LLVM library, which has tables of processors, is installed.
bool KnowsProcessors();

}  // namespace tvm
