// SPDX-License-Identifier: Apache-2.0
// Candidates to libraries, on threads in this process.
#include <tvm/ffi/extra/module.h>

#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "tune/parallel.h"
#include "tvm/expr/builtin.h"
#include "tvm/ir/function.h"
#include "tvm/ir/transform.h"
#include "tvm/runtime/disk_cache.h"
#include "tvm/tir/function.h"
#include "tvm/tir/stmt.h"
#include "tvm/tir/unoptimized.h"
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

/// Leaves the checks of arguments out of entries: candidates are called with arguments that fit,
/// and checking them would be more code than a small kernel.
struct Unchecked : Mutator<Unchecked, tir::IfThenElseObj> {
  ObjectRef Rewrite(const tir::IfThenElseObj* op) {
    auto* refused = op->condition.as<tir::NotObj>();
    auto* checked = refused ? refused->a.as<tir::CallObj>() : nullptr;
    if (checked && checked->Is(tir::builtin::likely()) && !op->else_case.has_value())
      return tir::Evaluate(IntImm::Int32(0));
    return Below<tir::IfThenElse>(op);
  }
};
struct Used : Visitor<Used, GlobalVarObj> {
  std::set<std::string> names;
  void Visit(const GlobalVarObj* var) { names.insert(std::string(var->name_hint)); }
};
IRModule WithoutChecks(const IRModule& lowered) {
  Map<GlobalVar, BaseFunc> functions;
  Used used;
  for (const auto& [var, func] : lowered->functions) {
    auto* prim = func.as<tir::PrimFuncObj>();
    bool is_entry = prim && prim->GetAttr<int64_t>(attr::kCallingConv, 0) ==
                                static_cast<int64_t>(CallingConv::kCPackedFunc);
    is_entry |= func->HasNonzeroAttr(tir::attr::kUnpacksArgument);
    functions.Set(var, is_entry ? Unchecked().Mutate(func) : func);
    if (prim) used(functions[var].as<tir::PrimFuncObj>()->body);
  }
  return New<IRModule>([&](IRModuleObj* n) {
    for (const auto& [var, func] : functions) {
      bool unused =
          func->HasNonzeroAttr("tir.cold") && !used.names.count(std::string(var->name_hint));
      if (!unused) n->functions.Set(var, func);
    }
    n->attrs = lowered->attrs;
    n->global_infos = lowered->global_infos;
  });
}

BuilderResult Built(const std::string& path) {
  return New<BuilderResult>([&](BuilderResultObj* n) { n->artifact_path = String(path); });
}
BuilderResult Failed(const std::string& message) {
  return New<BuilderResult>([&](BuilderResultObj* n) { n->error_msg = String(message); });
}
BuilderResult BuildOne(const BuilderInput& input, const std::string& path) {
  static const Function build = Function::GetGlobalRequired("driver.Build");
  static const Function write = Function::GetGlobalRequired("driver.ExportLibrary");
  runtime::DiskCache::Bypass bypass;  // most candidates are never built again
  try {
    auto lowered = Lowered::Get().Take(input->mod, input->target);
    Any module = lowered.has_value() ? build(WithoutChecks(lowered.value()), input->target,
                                             transform::Sequential({}, "lowered"))
                                     : build(input->mod, input->target, nullptr);
    write(module, String(path));
    return Built(path);
  } catch (const ffi::Error& error) {
    if (error.kind() == "KeyboardInterrupt") throw;
    return Failed(error.kind() + ": " + error.message());
  } catch (const std::exception& error) {
    return Failed(error.what());
  }
}
}  // namespace

IRModule LowerForBuild(const IRModule& mod, const Target& target) {
  Target bound = target.Host() ? target : target.WithHost(target);
  IRModule lowered = transform::GetPass("tir.BindTarget", {bound})(mod);
  static const Function pipeline = Function::GetGlobalRequired("tir.pipeline.default");
  lowered = pipeline(target).cast<transform::Pass>()(lowered);
  Lowered::Get().Put(mod, target, lowered);
  return lowered;
}

namespace {
/// A round of candidates on threads of its own. A compilation cannot be stopped from outside: one
/// that takes too long is given up, its thread ends whenever it does, and another one takes its
/// place.
class Round : public std::enable_shared_from_this<Round> {
 public:
  Round(const Array<BuilderInput>& inputs, const String& folder, double timeout)
      : inputs_(inputs), folder_(std::string(folder)), timeout_(timeout), slots_(inputs.size()) {}

  Array<BuilderResult> Run(int64_t num_threads) {
    std::unique_lock lock(mutex_);
    for (size_t i = 0; i < std::min<size_t>(slots_.size(), std::max<int64_t>(1, num_threads)); ++i)
      StartThread();
    try {
      while (open_ > 0) {
        changed_.wait_for(lock, std::chrono::milliseconds(100));
        GiveUpLate();
        lock.unlock();
        CheckSignals();
        lock.lock();
      }
    } catch (...) {
      lock.lock();
      next_ = slots_.size();  // what has not begun never will
      throw;
    }
    Array<BuilderResult> results;
    for (const Slot& slot : slots_) results.push_back(*slot.result);
    return results;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    std::optional<Clock::time_point> begin;
    std::optional<BuilderResult> result;
  };
  void StartThread() {
    std::thread([self = shared_from_this()] { self->Work(); }).detach();
  }
  void Work() {
    transform::ContextScope scope(context_);
    std::unique_lock lock(mutex_);
    while (next_ < slots_.size()) {
      size_t i = next_++;
      slots_[i].begin = Clock::now();
      lock.unlock();
      BuilderResult result = BuildOne(inputs_[i], folder_ + "/" + std::to_string(i) + ".so");
      lock.lock();
      if (slots_[i].result) return;  // given up: another thread is in this one's place
      Finish(i, result);
    }
  }
  void Finish(size_t i, const BuilderResult& result) {
    slots_[i].result = result;
    if (--open_ == 0) changed_.notify_all();
  }
  void GiveUpLate() {
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      if (slot.result || !slot.begin) continue;
      std::chrono::duration<double> taken = Clock::now() - *slot.begin;
      if (taken.count() < timeout_) continue;
      std::ostringstream message;
      message << "timed out: not compiled after " << timeout_ << " s";
      Finish(i, Failed(message.str()));
      StartThread();
    }
  }

  const Array<BuilderInput> inputs_;
  const std::string folder_;
  const double timeout_;
  // A candidate is entered a few times.
  const transform::PassContext context_ = ContextForThreads({{"llvm.quick_entry", true}});
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  size_t next_ = 0, open_ = slots_.size();
};
}  // namespace

Array<BuilderResult> BuildAll(const Array<BuilderInput>& inputs, const String& folder,
                              int64_t num_threads, double timeout) {
  return std::make_shared<Round>(inputs, folder, timeout)->Run(num_threads);
}

namespace {
TVM_REGISTER() {
  Def("meta_schedule._build_all", &BuildAll, "Compiles and links modules on threads.",
      Arg("inputs"), Arg("folder"), Arg("num_threads"), Arg("timeout"));
}
}  // namespace
}  // namespace tvm::tune
