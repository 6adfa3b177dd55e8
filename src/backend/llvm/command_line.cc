// SPDX-License-Identifier: Apache-2.0
// The target's option cl-opt: options of LLVM's command line, for one compilation.
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
}  // namespace

std::vector<std::pair<std::string, std::string>> ParseCommandLine(const Array<String>& options) {
  std::vector<std::pair<std::string, std::string>> parsed;
  for (const String& option : options) {
    std::string text(option), value = "true";
    if (size_t equals = text.find('='); equals != std::string::npos) {
      value = text.substr(equals + 1), text = text.substr(0, equals);
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
    bool refused = known->addOccurrence(0, name, value);
    known->reset();
    if (refused) {
      TVM_FFI_THROW(ValueError) << "target: expected a value that LLVM takes for " << name
                                << " in cl-opt, got '" << value << "'";
    }
    parsed.emplace_back(name, value);
  }
  return parsed;
}

CommandLineScope::CommandLineScope(const std::vector<std::pair<std::string, std::string>>& options)
    : options_(options) {
  if (options_.empty()) {
    Mutex().lock_shared();
    return;
  }
  Mutex().lock();
  for (const auto& [name, value] : options_) Find(name)->addOccurrence(0, name, value);
}
CommandLineScope::~CommandLineScope() {
  if (options_.empty()) {
    Mutex().unlock_shared();
    return;
  }
  for (const auto& [name, value] : options_) Find(name)->reset();
  Mutex().unlock();
}

}  // namespace tvm::codegen
