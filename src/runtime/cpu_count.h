// SPDX-License-Identifier: Apache-2.0
// The cgroup's CPU quota, with the paths as parameters so that tests can lay out any hierarchy.
#pragma once
#include <string>

namespace tvm::runtime {
/// CPUs the cgroup allows (rounded up), 0 where there is no limit. `cgroup_file` names the groups
/// of the process as /proc/self/cgroup does; `root` is where the hierarchies are mounted.
int CgroupQuota(const std::string& root, const std::string& cgroup_file);
}  // namespace tvm::runtime
