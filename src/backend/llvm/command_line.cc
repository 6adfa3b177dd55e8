// SPDX-License-Identifier: Apache-2.0
// Options of LLVM's command line: ours for all compilations, and those of the target's cl-opt for
// one.
#include <llvm/Support/CommandLine.h>

#include <mutex>
#include <shared_mutex>

#include "backend/llvm/target_machine.h"

namespace tvm::codegen {
namespace {
std::shared_mutex& Mutex() {
  static std::shared_mutex mutex;
  return mutex;
}
llvm::cl::Option* Find(const std::string& name) {
  auto& known = llvm::cl::getRegisteredOptions();
  auto it = known.find(name);
  return it == known.end() ? nullptr : it->second;
}
bool Set(const std::string& name, const std::string& value) {
  // Not 0: some passes ask whether an option was given at all.
  return Find(name)->addOccurrence(1, name, value);
}
/// What we choose otherwise than LLVM. Half of the time of code generation for large unrolled tiles
/// went into these two (185 ms a matmul candidate, 105 ms with a smaller region alone); processors
/// that reorder instructions by themselves have little use for them.
const std::pair<std::string, std::string> kOurs[] = {
    {"post-RA-scheduler", "false"},   // a second scheduling, after registers were assigned
    {"dag-maps-huge-region", "200"},  // memory operations of a block compared pair by pair
};
void SetToOurs(const std::string& name) {
  for (const auto& [ours, value] : kOurs) {
    if (ours == name) Set(name, value);
  }
}
void SetAllToOurs() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const auto& [name, value] : kOurs) Set(name, value);
  });
}
}  // namespace

std::vector<std::pair<std::string, std::string>> ParseCommandLine(const Array<String>& options) {
  std::vector<std::pair<std::string, std::string>> parsed;
  for (const String& option : options) {
    std::string text(option), value = "true";
    if (size_t equals = text.find('='); equals != std::string::npos) {
      value = text.substr(equals + 1);
      text = text.substr(0, equals);
    }
    // The type is not needed: the option knows its own.
    std::string name = text.substr(0, text.find(':'));
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    llvm::cl::Option* known = Find(name);
    if (!known) {
      std::vector<std::string> names;
      for (const auto& entry : llvm::cl::getRegisteredOptions())
        names.push_back(entry.second->ArgStr.str());
      std::vector<std::string_view> views(names.begin(), names.end());
      TVM_FFI_THROW(ValueError) << "target: expected an option of LLVM in cl-opt, got '" << name
                                << "'" << DidYouMean(name, views);
    }
    std::unique_lock alone(Mutex());
    bool refused = Set(name, value);
    known->reset();
    SetToOurs(name);
    if (refused) {
      TVM_FFI_THROW(ValueError) << "target: expected a value that LLVM takes for " << name
                                << " in cl-opt, got '" << value << "'";
    }
    parsed.emplace_back(name, value);
  }
  return parsed;
}

std::string OurCommandLine() {
  std::string text;
  for (const auto& [name, value] : kOurs) text += name + '=' + value + ' ';
  return text;
}

CommandLineScope::CommandLineScope(const std::vector<std::pair<std::string, std::string>>& options)
    : options_(options) {
  SetAllToOurs();
  if (options_.empty()) {
    Mutex().lock_shared();
    return;
  }
  Mutex().lock();
  for (const auto& [name, value] : options_) Set(name, value);
}
CommandLineScope::~CommandLineScope() {
  if (options_.empty()) {
    Mutex().unlock_shared();
    return;
  }
  for (const auto& [name, value] : options_) {
    Find(name)->reset();
    SetToOurs(name);
  }
  Mutex().unlock();
}

}  // namespace tvm::codegen
