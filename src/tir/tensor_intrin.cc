// SPDX-License-Identifier: Apache-2.0
// The registry of tensor intrinsics.
#include "tvm/tir/tensor_intrin.h"

#include <map>
#include <mutex>

namespace tvm::tir {
namespace {
struct IntrinTable {
  std::mutex mutex;
  Map<String, TensorIntrin> intrins;
  std::map<std::string, std::function<Optional<TensorIntrin>(std::string_view)>> families;
};
IntrinTable& Intrins() {
  static auto* table = new IntrinTable();
  return *table;
}
void RegisterIntrin(String name, TensorIntrin intrin, bool override) {
  IntrinTable& t = Intrins();
  std::lock_guard lock(t.mutex);
  if (!override && t.intrins.count(name)) {
    TVM_FFI_THROW(ValueError) << "TensorIntrin: expected a name that is not registered, got '"
                              << name << "' (override=True replaces it)";
  }
  t.intrins.Set(name, intrin);
}
}  // namespace

void RegisterIntrinFamily(std::string prefix,
                          std::function<Optional<TensorIntrin>(std::string_view)> make) {
  IntrinTable& t = Intrins();
  std::lock_guard lock(t.mutex);
  t.families[std::move(prefix)] = std::move(make);
}

Optional<TensorIntrin> GetTensorIntrin(String name, bool allow_missing) {
  IntrinTable& t = Intrins();
  {
    std::lock_guard lock(t.mutex);
    if (auto it = t.intrins.find(name); it != t.intrins.end()) return (*it).second;
    for (const auto& [prefix, make] : t.families) {
      if (!View(name).starts_with(prefix)) continue;
      auto made = make(View(name).substr(prefix.size()));
      if (!made.has_value()) continue;
      t.intrins.Set(name, made.value());
      return made;
    }
  }
  if (allow_missing) return std::nullopt;
  TVM_FFI_THROW(ValueError) << "TensorIntrin: " << MissingTensorIntrin(name);
  TVM_FFI_UNREACHABLE();
}
std::string MissingTensorIntrin(const String& name) {
  IntrinTable& t = Intrins();
  std::lock_guard lock(t.mutex);
  std::vector<std::string> names;
  for (const auto& [known, intrin] : t.intrins) names.push_back(known);
  std::vector<std::string_view> views(names.begin(), names.end());
  return "expected the name of a registered intrinsic, got '" + std::string(name) + "'" +
         DidYouMean(View(name), views);
}

namespace {
TVM_REGISTER() {
  Def("tir.TensorIntrinRegister", &RegisterIntrin, "Makes an intrinsic known by its name.",
      Arg("name"), Arg("intrin"), Arg("override", false));
  Def("tir.TensorIntrinGet", &GetTensorIntrin, "A registered intrinsic.", Arg("name"),
      Arg("allow_missing", false));
}
}  // namespace
}  // namespace tvm::tir
