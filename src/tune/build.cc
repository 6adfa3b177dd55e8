// SPDX-License-Identifier: Apache-2.0
// Candidates to libraries, on threads in this process.
#include <tvm/ffi/extra/module.h>

#include <list>
#include <mutex>

#include "tune/parallel.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/pipeline.h"
#include "tvm/tune/measure.h"

namespace tvm::tune {
namespace {
/// Programs lowered to tell candidates apart, until they are built. Small: a round of candidates.
class Lowered {
 public:
  static Lowered& Get() {
    static auto* cache = new Lowered();
    return *cache;
  }
  void Put(const IRModule& mod, const Target& target, const IRModule& lowered) {
    std::lock_guard lock(mutex_);
    entries_.push_front({mod, target, lowered});
    if (entries_.size() > kMost) entries_.pop_back();
  }
  Optional<IRModule> Take(const IRModule& mod, const Target& target) {
    std::lock_guard lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (!it->mod.same_as(mod) || it->target->str() != target->str()) continue;
      IRModule found = it->lowered;
      entries_.erase(it);
      return found;
    }
    return std::nullopt;
  }

 private:
  static constexpr size_t kMost = 256;
  struct Entry {
    IRModule mod;
    Target target;
    IRModule lowered;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;
};

BuilderResult BuildOne(const BuilderInput& input, const std::string& path) {
  static const Function build = Function::GetGlobalRequired("driver.Build");
  static const Function write = Function::GetGlobalRequired("driver.ExportLibrary");
  auto result = [](Optional<String> artifact, Optional<String> error) {
    return New<BuilderResult>(
        [&](BuilderResultObj* n) { n->artifact_path = artifact, n->error_msg = error; });
  };
  try {
    auto lowered = Lowered::Get().Take(input->mod, input->target);
    Any module = lowered.has_value()
                     ? build(lowered.value(), input->target, transform::Sequential({}, "lowered"))
                     : build(input->mod, input->target, nullptr);
    write(module, String(path));
    return result(String(path), std::nullopt);
  } catch (const ffi::Error& error) {
    if (error.kind() == "KeyboardInterrupt") throw;
    return result(std::nullopt, String(error.kind() + ": " + error.message()));
  } catch (const std::exception& error) {
    return result(std::nullopt, String(error.what()));
  }
}
}  // namespace

IRModule LowerForBuild(const IRModule& mod, const Target& target) {
  Target bound = target.Host() ? target : target.WithHost(target);
  IRModule lowered = transform::GetPass("tir.BindTarget", {bound})(mod);
  lowered = tir::DefaultPipeline(target)(lowered);
  Lowered::Get().Put(mod, target, lowered);
  return lowered;
}
Array<BuilderResult> BuildAll(const Array<BuilderInput>& inputs, const String& folder,
                              int64_t num_threads) {
  std::vector<BuilderResult> results(inputs.size());
  ParallelFor(inputs.size(), num_threads, [&](size_t i) {
    results[i] = BuildOne(inputs[i], std::string(folder) + "/" + std::to_string(i) + ".so");
  });
  return Array<BuilderResult>(results.begin(), results.end());
}

namespace {
TVM_REGISTER() {
  Def("meta_schedule._build_all", &BuildAll, "Compiles and links modules on threads.",
      Arg("inputs"), Arg("folder"), Arg("num_threads"));
}
}  // namespace
}  // namespace tvm::tune
