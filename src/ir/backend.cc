// SPDX-License-Identifier: Apache-2.0
// The rows of code generators, and loading their libraries.
#include "tvm/ir/backend.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "ir/target/target_tables.h"
#include "runtime/identity.h"
#include "tvm/ir/transform.h"

namespace tvm {
namespace {
std::mutex rows_mutex;
std::map<std::string, Backend, std::less<>>& Rows() {
  static auto* rows = new std::map<std::string, Backend, std::less<>>();
  return *rows;
}
/// The folder this library was loaded from.
std::string LibraryFolder() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&LibraryFolder), &info);
  std::string path = info.dli_fname ? info.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1);
}
bool IsHidden(std::string kind) {
  std::transform(kind.begin(), kind.end(), kind.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const char* hidden = std::getenv(("TVM_WITHOUT_" + kind).c_str());
  return hidden && *hidden;
}
}  // namespace

bool Backend::Load() const {
  if (library.empty()) return true;
  static std::mutex mutex;
  static auto* loaded = new std::set<std::string>();
  std::lock_guard lock(mutex);
  if (loaded->count(library)) return true;
  if (IsHidden(kind)) return false;
  std::string path = library[0] == '/' ? library : LibraryFolder() + library;
  struct stat unused;
  if (stat(path.c_str(), &unused) != 0) return false;
  if (!dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    TVM_FFI_THROW(ImportError) << "expected to load the " << kind << " backend from " << path
                               << ", got " << dlerror();
  }
  Initialize();
  loaded->insert(library);
  return true;
}

Function Backend::Generator(const Target& target) const {
  if (!Load()) {
    TVM_FFI_THROW(RuntimeError) << "build: expected the " << kind << " backend (" << library
                                << ") for target " << target->str() << ", which is not installed"
                                << (kind == "llvm" ? "; target c needs a C compiler only" : "");
  }
  if (auto generate = Function::GetGlobal("target.build." + kind)) return *generate;
  TVM_FFI_THROW(RuntimeError) << "build: expected a target this build generates code for, got "
                              << target->str() << ": it has no code generator for kind " << kind;
  TVM_FFI_UNREACHABLE();
}
ffi::Module Backend::Build(IRModule mod, const Target& target) const {
  for (const String& name : final_passes) mod = transform::GetPass(name)(mod);
  return Generator(target)(mod, target).cast<ffi::Module>();
}

const Backend* Backend::Find(std::string_view kind) {
  std::lock_guard lock(rows_mutex);
  auto it = Rows().find(kind);
  return it == Rows().end() ? nullptr : &it->second;
}
const Backend& Backend::Of(const Target& target) {
  std::lock_guard lock(rows_mutex);
  std::string kind(target->kind->name);
  auto it = Rows().find(kind);
  if (it != Rows().end()) return it->second;
  static auto* devices = new std::map<std::string, Backend>();
  return devices->try_emplace(kind, Backend{.kind = kind}).first->second;
}
void RegisterBackend(Backend row) {
  std::lock_guard lock(rows_mutex);
  std::string kind = row.kind;
  if (!Rows().try_emplace(kind, std::move(row)).second) {
    TVM_FFI_THROW(ValueError) << "RegisterBackend: expected a kind without a backend, got '" << kind
                              << "'";
  }
}

Target DefaultHost() {
  for (const TargetKindRow& kind : TargetKindTable()) {
    const Backend* backend = Backend::Find(kind.name);
    if (backend && backend->is_host && backend->Load()) return Target(String(kind.name));
  }
  TVM_FFI_THROW(RuntimeError) << "expected a code generator for this machine, got none";
  TVM_FFI_UNREACHABLE();
}

TVM_REGISTER() {
  Def(
      "target.register_backend",
      [](String kind, bool is_host, Array<String> final_passes, String library,
         bool takes_vectors) {
        TargetKind::Get(kind);  // known, or an error that names the nearest one
        runtime::NoteChange();
        RegisterBackend({.kind = kind,
                         .is_host = is_host,
                         .library = library,
                         .final_passes = final_passes,
                         .takes_vectors = takes_vectors});
      },
      "Adds a code generator for the targets of a kind, whose function is registered as "
      "target.build.<kind>: whether its code runs on the processor that calls it, the passes it "
      "wants after those of all hosts or devices, the library to load on first use.",
      Arg("kind"), Arg("is_host", false), Arg("final_passes", Array<String>()),
      Arg("library", String()), Arg("takes_vectors", true));
  Def(
      "target.load_backend",
      [](String kind) {
        const Backend* backend = Backend::Find(View(kind));
        return backend && backend->Load();
      },
      "Loads the code generator of a kind; False when it is not installed.", Arg("kind"));
  Def(
      "target.build_module",
      [](IRModule mod, Target target) { return Backend::Of(target).Build(mod, target); },
      "Runs the code generator of a target on a lowered module.", Arg("mod"), Arg("target"));
  Def("target.default_host", &DefaultHost,
      "This machine, for the first code generator for hosts that is installed.");
}
}  // namespace tvm
