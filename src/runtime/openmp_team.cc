// SPDX-License-Identifier: Apache-2.0
// Finding an OpenMP runtime in the process, by its names, and calling it.
#include "runtime/openmp_team.h"

#ifdef __linux__
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#endif

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/parallel_job.h"

namespace tvm::runtime {
#ifdef __linux__
namespace {
/// How often the list of loaded libraries is asked whether it has grown.
constexpr int64_t kLookNs = 10'000'000;
std::atomic<bool> was_forked{false};
std::atomic<const void*> owner{nullptr};

/// Marks a thread; gives the team back when the thread ends.
struct Claim {
  ~Claim() {
    const void* self = this;
    owner.compare_exchange_strong(self, nullptr);
  }
  bool Get() {
    const void* nobody = nullptr;
    return owner.load(std::memory_order_relaxed) == this ||
           owner.compare_exchange_strong(nobody, this);
  }
};
/// The path of an OpenMP runtime, of those in the process the one that is under its own name: one
/// with a number in its name serves a single package.
std::string FindLibrary() {
  struct Found {
    std::string path;
    bool is_shared = false;
  } found;
  auto visit = [](dl_phdr_info* info, size_t, void* data) {
    auto* found = static_cast<Found*>(data);
    std::string_view path = info->dlpi_name ? info->dlpi_name : "";
    std::string_view name = path.substr(path.rfind('/') + 1);
    for (std::string_view runtime : {"libgomp", "libiomp5", "libomp"}) {
      if (!name.starts_with(runtime)) continue;
      bool is_shared = name.substr(runtime.size()).starts_with(".so");
      bool is_private = name.substr(runtime.size()).starts_with("-");
      if (is_shared > found->is_shared || (found->path.empty() && is_private))
        *found = {std::string(path), is_shared};
    }
    return 0;
  };
  dl_iterate_phdr(visit, &found);
  return found.path;
}
/// Whether the process is a copy of another one, made by fork: an OpenMP runtime that had threads
/// there waits for them forever here. (The system keeps a flag until a program is started.)
bool IsForkedCopy() {
  constexpr unsigned kForkedWithoutExec = 0x40;
  std::ifstream file("/proc/self/stat");
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  unsigned flags = kForkedWithoutExec;
  for (int i = 0; i < 6; ++i) fields >> skipped;  // from the state to the terminal's group
  fields >> flags;
  return !fields || (flags & kForkedWithoutExec) != 0;
}
unsigned long long NumLoaded() {
  unsigned long long loaded = 0;
  auto first = [](dl_phdr_info* info, size_t, void* data) {
    *static_cast<unsigned long long*>(data) = info->dlpi_adds;
    return 1;
  };
  dl_iterate_phdr(first, &loaded);
  return loaded;
}
}  // namespace

const OpenMPTeam* OpenMPTeam::Loaded() {
  static std::atomic<const OpenMPTeam*> team{nullptr};
  static std::atomic<int64_t> next_look{0};
  const OpenMPTeam* known = team.load(std::memory_order_acquire);
  int64_t now = NowNs();
  if (known || now < next_look.load(std::memory_order_relaxed)) return known;
  static std::mutex mutex;
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) return nullptr;
  next_look.store(now + kLookNs);
  static unsigned long long loaded = 0;
  if (unsigned long long count = NumLoaded(); count != std::exchange(loaded, count)) {
    std::string path = IsForkedCopy() ? "" : FindLibrary();
    void* library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return nullptr;
    auto* fresh = new OpenMPTeam();
    auto find = [&](auto* function, const char* name) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
      return *function != nullptr;
    };
    if (find(&fresh->in_parallel_, "omp_in_parallel") &&
        find(&fresh->max_threads_, "omp_get_max_threads") &&
        find(&fresh->thread_num_, "omp_get_thread_num") &&
        find(&fresh->parallel_, "GOMP_parallel")) {
      // Threads of a team do not live on in a forked child, and their runtime does not know.
      pthread_atfork(nullptr, nullptr, [] { was_forked.store(true); });
      team.store(fresh, std::memory_order_release);
      return fresh;
    }
    delete fresh;
    dlclose(library);
  }
  return nullptr;
}

const OpenMPTeam* OpenMPTeam::Find(int threads) {
  const OpenMPTeam* team = Loaded();
  if (!team || was_forked.load(std::memory_order_relaxed)) return nullptr;
  static thread_local Claim claim;
  int most = team->max_threads_();
  if (most < 2 || 2 * most < threads || team->in_parallel_() || !claim.Get()) return nullptr;
  return team;
}

void OpenMPTeam::Run(void (*body)(void* data, int thread), void* data) const {
  struct Call {
    void (*body)(void*, int);
    void* data;
    int (*thread_num)();
  } call{body, data, thread_num_};
  auto run = [](void* data) {
    auto* call = static_cast<Call*>(data);
    call->body(call->data, call->thread_num());
  };
  // As many as the other library uses: a team of another size would have to end threads.
  parallel_(run, &call, static_cast<unsigned>(max_threads_()), 0);
}
#else
const OpenMPTeam* OpenMPTeam::Find(int) { return nullptr; }
void OpenMPTeam::Run(void (*)(void*, int), void*) const {}
#endif
}  // namespace tvm::runtime
