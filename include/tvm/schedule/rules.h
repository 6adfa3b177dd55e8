// SPDX-License-Identifier: Apache-2.0
// Default rules: schedules without search, for functions that nobody scheduled.
#pragma once
#include <optional>
#include <vector>

#include "tvm/ir/machine.h"
#include "tvm/schedule/schedule.h"

namespace tvm::tir {

/// A rule schedules the function of `sch` whose root block it is told, or gives up and leaves the
/// schedule as it was.
struct Rule {
  const char* name;
  const char* doc;
  bool (*apply)(const Schedule& sch, BlockRV root, const Machine& machine);
};
/// For CPUs, in the order in which they are tried. The last one always applies.
const std::vector<Rule>& CpuRules();
/// The same for GPUs.
const std::vector<Rule>& GpuRules();

/// Whether somebody scheduled the function: the default rules leave it alone.
bool IsScheduled(const PrimFunc& func);
/// Schedules one function of a schedule with a rule; returns whether it fits.
bool ApplyRule(const Schedule& sch, const Rule& rule, const String& func_name,
               const Target& target);
/// Schedules one function of a schedule; returns the name of the rule that applied, empty when none
/// did because the function has nothing to schedule.
String ApplyDefaultRules(const Schedule& sch, const String& func_name, const Target& target);

}  // namespace tvm::tir
