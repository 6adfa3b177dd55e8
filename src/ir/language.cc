// SPDX-License-Identifier: Apache-2.0
// The table of languages.
#include "tvm/ir/language.h"

#include <map>
#include <mutex>

#include "runtime/identity.h"

namespace tvm {
namespace {
std::mutex languages_mutex;
/// By the class of its functions.
std::map<std::string, Language>& Languages() {
  static auto* languages = new std::map<std::string, Language>();
  return *languages;
}
/// What a function of another library makes of a module: the rest, or [the rest, link].
Compiled CompiledOf(const Any& result) {
  if (auto rest = result.as<IRModule>()) return {*rest, std::nullopt};
  auto both = result.cast<Array<Any>>();
  if (both.size() != 2) {
    TVM_FFI_THROW(ValueError) << "compile of a language: expected a module or [module, link], got "
                              << both.size() << " values";
  }
  return {both[0].cast<IRModule>(), both[1].cast<Optional<Function>>()};
}
}  // namespace

const Language& Language::Of(const GlobalVar& var, const BaseFunc& func) {
  std::lock_guard lock(languages_mutex);
  auto it = Languages().find(func->GetTypeKey());
  if (it != Languages().end()) return it->second;
  std::string known;
  for (const auto& [key, language] : Languages()) known += (known.empty() ? "" : ", ") + key;
  TVM_FFI_THROW(TypeError) << "build: expected functions of the classes " << known << ", got '"
                           << var->name_hint << "', a " << func->GetTypeKey();
  TVM_FFI_UNREACHABLE();
}
void RegisterLanguage(Language row) {
  std::lock_guard lock(languages_mutex);
  std::string key = row.type_key;
  if (!Languages().try_emplace(key, std::move(row)).second) {
    TVM_FFI_THROW(ValueError) << "RegisterLanguage: expected a class without a language, got '"
                              << key << "'";
  }
}

TVM_REGISTER() {
  Def(
      "ir.register_language",
      [](String name, String type_key, Function compile, int64_t level) {
        auto run = [compile](IRModule mod, Target target, Optional<transform::Pass> pipeline) {
          return CompiledOf(compile(mod, target, pipeline));
        };
        runtime::NoteChange();
        RegisterLanguage({name, type_key, static_cast<int>(level), run});
      },
      "Adds a language, whose functions are of the class `type_key`. compile(mod, target, "
      "pipeline) "
      "returns the module without them, or that and link(code), which makes the code of everything "
      "of the code of the rest. Languages of higher levels are compiled first.",
      Arg("name"), Arg("type_key"), Arg("compile"), Arg("level", 1));
}
}  // namespace tvm
