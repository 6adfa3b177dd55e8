// SPDX-License-Identifier: Apache-2.0
// The patterns of backends, by name.
#include <mutex>

#include "tvm/relax/fusion_pattern.h"

namespace tvm::relax {
namespace {
/// In the order of registration: later ones come before earlier ones.
struct PatternRegistry {
  std::mutex mutex;
  std::vector<FusionPattern> patterns;
  static PatternRegistry& Global() {
    static PatternRegistry& registry = *new PatternRegistry();
    return registry;
  }
};
void RemovePatterns(Array<String> names) {
  auto& [mutex, patterns] = PatternRegistry::Global();
  std::lock_guard lock(mutex);
  std::erase_if(patterns, [&](const FusionPattern& pattern) {
    return std::find(names.begin(), names.end(), pattern->name) != names.end();
  });
}
void RegisterPatterns(Array<FusionPattern> more) {
  RemovePatterns(more.Map([](const FusionPattern& pattern) { return pattern->name; }));
  auto& [mutex, patterns] = PatternRegistry::Global();
  std::lock_guard lock(mutex);
  patterns.insert(patterns.end(), more.begin(), more.end());
}
Array<FusionPattern> PatternsWithPrefix(String prefix) {
  auto& [mutex, patterns] = PatternRegistry::Global();
  std::lock_guard lock(mutex);
  Array<FusionPattern> found;
  for (auto it = patterns.rbegin(); it != patterns.rend(); ++it) {
    if (View((*it)->name).starts_with(View(prefix))) found.push_back(*it);
  }
  return found;
}
Optional<FusionPattern> PatternNamed(String name) {
  auto& [mutex, patterns] = PatternRegistry::Global();
  std::lock_guard lock(mutex);
  for (const FusionPattern& pattern : patterns) {
    if (pattern->name == name) return pattern;
  }
  return std::nullopt;
}
TVM_REGISTER() {
  Def("relax.backend._register_patterns", &RegisterPatterns, "", Arg("patterns"));
  Def("relax.backend._remove_patterns", &RemovePatterns, "", Arg("names"));
  Def("relax.backend._get_patterns_with_prefix", &PatternsWithPrefix, "", Arg("prefix"));
  Def("relax.backend._get_pattern", &PatternNamed, "", Arg("name"));
}
}  // namespace
}  // namespace tvm::relax
