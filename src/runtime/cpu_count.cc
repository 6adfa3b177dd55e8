// SPDX-License-Identifier: Apache-2.0
// How many CPUs this process may use: affinity and the cgroup's quota.
#include "runtime/cpu_count.h"

#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tvm/runtime/thread_pool.h"
#ifdef __linux__
#include <sched.h>
#endif

namespace tvm::runtime {
namespace {
std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}
/// Quota over period, rounded up; 0 where there is no limit.
int Limit(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return 0;
  double cpus = quota / period;
  return cpus >= 1 << 20 ? 0 : static_cast<int>(cpus + 0.999);
}
/// "max 100000" or "200000 100000".
int QuotaV2(const std::string& folder) {
  std::istringstream text(FirstLine(folder + "/cpu.max"));
  double quota = 0, period = 0;
  return text >> quota >> period ? Limit(quota, period) : 0;
}
int QuotaV1(const std::string& folder) {
  std::istringstream quota(FirstLine(folder + "/cpu.cfs_quota_us"));
  std::istringstream period(FirstLine(folder + "/cpu.cfs_period_us"));
  double q = 0, p = 0;
  return quota >> q && period >> p ? Limit(q, p) : 0;
}
int Tighter(int a, int b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }
/// The tightest quota of the group and its ancestors below `root`.
int QuotaUpwards(const std::string& root, std::string group, int (*read)(const std::string&)) {
  int limit = 0;
  for (;;) {
    limit = Tighter(limit, read(root + group));
    if (group.empty() || group == "/") return limit;
    group.resize(group.rfind('/'));
  }
}
}  // namespace

int CgroupQuota(const std::string& root, const std::string& cgroup_file) {
  std::ifstream file(cgroup_file);
  int limit = 0;
  // Lines are "id:controllers:path"; version 2 has id 0 and no controllers. In a container the path
  // may be the host's: then the folder does not exist and the walk ends at the mount point.
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (group.empty() || group[0] != '/') continue;
    if (controllers == ",,") {
      limit = Tighter(limit, QuotaUpwards(root, group, &QuotaV2));
      limit = Tighter(limit, QuotaUpwards(root + "/unified", group, &QuotaV2));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      for (const char* mount : {"/cpu", "/cpu,cpuacct"}) {
        limit = Tighter(limit, QuotaUpwards(root + mount, group, &QuotaV1));
      }
    }
  }
  return limit;
}

int AvailableCpus() {
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
#ifdef __linux__
  // The fixed-size set holds 1024 CPUs; larger machines need a larger mask.
  for (int size = 1024; size <= 1 << 16; size *= 4) {
    cpu_set_t* set = CPU_ALLOC(size);
    int rc = sched_getaffinity(0, CPU_ALLOC_SIZE(size), set);
    if (rc == 0) cpus = CPU_COUNT_S(CPU_ALLOC_SIZE(size), set);
    CPU_FREE(set);
    if (rc == 0) break;
  }
  cpus = Tighter(cpus, CgroupQuota("/sys/fs/cgroup", "/proc/self/cgroup"));
#endif
  return std::max(cpus, 1);
}

}  // namespace tvm::runtime
