// SPDX-License-Identifier: Apache-2.0
// Loading shared libraries from files and from memory; static libraries that wait to be linked.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "runtime/apart_file.h"
#include "runtime/cpu_features.h"
#include "runtime/elf.h"
#include "tvm/runtime/module.h"

namespace tvm::runtime {
namespace {
/// A loaded library that knows its functions; everything else is tvm-ffi's module.
class LibraryObj final : public ffi::ModuleObj {
 public:
  LibraryObj(Module inner, Array<String> names)
      : inner_(std::move(inner)), names_(std::move(names)) {
    imports_ = inner_->imports();
  }
  const char* kind() const final { return inner_->kind(); }
  int GetPropertyMask() const final { return Module::kRunnable; }
  Optional<Function> GetFunction(const String& name) final {
    if (name == kFunctionNames) return Function::FromTyped([names = names_] { return names; });
    return inner_->GetFunction(name);
  }
  Optional<String> GetFunctionDoc(const String& name) final { return inner_->GetFunctionDoc(name); }
  Optional<String> GetFunctionMetadata(const String& name) final {
    return inner_->GetFunctionMetadata(name);
  }
  /// Generated code looks its imports up in the inner module.
  void ImportModule(const Module& other) final {
    inner_->ImportModule(other);
    imports_ = inner_->imports();
  }
  void ClearImports() final {
    inner_->ClearImports();
    imports_ = inner_->imports();
  }

 private:
  Module inner_;
  Array<String> names_;
};

std::map<std::string, std::string> ParseInfo(std::string_view text) {
  std::map<std::string, std::string> info;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    size_t equals = line.find('=');
    if (equals != std::string_view::npos)
      info[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  return info;
}
/// What export_library wrote about the machine the library needs.
void CheckRequirements(const std::string& name, std::string_view file) {
  auto info = ParseInfo(SymbolData(file, kLibraryInfo));
  if (int format = std::atoi(info["format"].c_str()); format > kLibraryFormat) {
    TVM_FFI_THROW(ValueError) << name << ": made by a newer version: expected format "
                              << kLibraryFormat << " or lower, got " << format;
  }
  std::string missing;
  std::string_view features = info["cpu_features"];
  while (!features.empty()) {
    std::string feature(features.substr(0, features.find(',')));
    features.remove_prefix(std::min(features.size(), feature.size() + 1));
    auto it = CpuFeatures().find(feature);
    if (it != CpuFeatures().end() && !it->second)
      missing += (missing.empty() ? "" : ", ") + feature;
  }
  if (!missing.empty()) {
    TVM_FFI_THROW(ValueError) << name << ": made for a CPU with " << missing
                              << ", which this machine lacks (target: " << info["target"] << ")";
  }
}
Array<String> ExportedNames(std::string_view file) {
  Array<String> names;
  for (const std::string& name : DynamicSymbols(file, ffi::symbol::tvm_ffi_symbol_prefix)) {
    if (name[0] != '_') names.push_back(name);  // `__tvm_ffi__…` are data and metadata
  }
  return names;
}
/// The system's loader returns the library it already has when it is given a name it knows,
/// whatever the file holds now. "./" and "/" at the end of the folder spell a new name for the same
/// file.
std::string FreshSpelling(const std::string& folder, const std::string& file) {
  static std::atomic<unsigned> counter{0};
  std::string path = folder + "/";
  for (unsigned n = ++counter; n != 0; n >>= 1) path += n & 1 ? "./" : "/";
  return path + file;
}
/// Gives the modules of a library their tensors, as they lie in it.
void AttachData(const Module& mod, std::string_view data, const std::shared_ptr<void>& owner) {
  if (auto* with_data = dynamic_cast<ApartData*>(mod.operator->())) with_data->Attach(data, owner);
  for (const Any& import : mod->imports()) AttachData(import.cast<Module>(), data, owner);
}
/// Where the tensors of a library's modules are: in it, or in a file in `folder`, "" where it has
/// none.
ApartFile FindData(const std::string& name, const std::string& folder, std::string_view file,
                   const std::shared_ptr<void>& library) {
  std::string_view params = SymbolData(file, kLibraryParams);
  if (params.empty()) {
    auto* mapped = static_cast<const char*>(dlsym(library.get(), kLibraryData));
    size_t size = SymbolData(file, kLibraryData).size();
    return {mapped ? std::string_view(mapped, size) : "", library};
  }
  std::string_view beside = params.substr(0, params.find('\n'));
  if (beside.size() == params.size() || beside.find('/') != std::string_view::npos)
    TVM_FFI_THROW(ValueError) << name << ": the name of its file of parameters is damaged";
  if (folder.empty()) {
    TVM_FFI_THROW(ValueError) << name << ": its parameters lie in the file '" << beside
                              << "' beside it; load it by its path";
  }
  return MapApartFile(folder + "/" + std::string(beside), params.substr(beside.size() + 1));
}
Module Load(const std::string& name, const std::string& spelling, std::string_view file,
            const std::string& folder = "") {
  CheckSharedLibrary(name, file);
  CheckRequirements(name, file);
  Array<String> names = ExportedNames(file);
  // All of its symbols now: one that is missing would end the process when it is called.
  std::shared_ptr<void> library(dlopen(spelling.c_str(), RTLD_NOW | RTLD_LOCAL),
                                [](void* handle) { handle ? dlclose(handle) : 0; });
  if (!library) {
    std::string why = dlerror();
    if (size_t at = why.find("undefined symbol"); at != std::string::npos) why.erase(0, at);
    TVM_FFI_THROW(OSError) << name << ": cannot be loaded: " << why;
  }
  auto load = Function::GetGlobalRequired("ffi.Module.load_from_file.so");
  Module mod = [&] {
    try {
      return load(spelling, "so").cast<Module>();
    } catch (const ffi::Error& error) {
      // What tvm-ffi says of dlopen begins with an internal check.
      TVM_FFI_THROW(OSError) << name << ": cannot be loaded: " << error.message();
      TVM_FFI_UNREACHABLE();
    }
  }();
  ApartFile data = FindData(name, folder, file, library);
  AttachData(mod, data.data, data.owner);
  if (std::string_view(mod->kind()) != "library") return mod;
  return Module(ffi::make_object<LibraryObj>(mod, names));
}
}  // namespace

Module LoadModule(const std::string& path) {
  MappedFile file(path);
  char* resolved = realpath(path.c_str(), nullptr);
  std::string real = resolved ? resolved : path;
  std::free(resolved);
  size_t slash = real.rfind('/');
  std::string folder = slash == std::string::npos ? "." : real.substr(0, slash);
  return Load(path, FreshSpelling(folder, real.substr(slash + 1)), file.bytes(), folder);
}

Module LoadModuleFromBytes(std::string_view bytes) {
  const std::string name = "load_module from bytes";
  CheckSharedLibrary(name, bytes);
#ifdef __linux__
  int fd = memfd_create("tvm", MFD_CLOEXEC);
  if (fd < 0) TVM_FFI_THROW(OSError) << name << ": " << std::strerror(errno);
  struct Close {
    int fd;
    ~Close() { close(fd); }
  } guard{fd};
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno != EINTR) TVM_FFI_THROW(OSError) << name << ": " << std::strerror(errno);
    if (n > 0) done += static_cast<size_t>(n);
  }
  return Load(name, FreshSpelling("/proc/self/fd", std::to_string(fd)), bytes);
#else
  TVM_FFI_THROW(NotImplementedError) << name << " needs Linux; write the bytes to a file";
#endif
}

namespace {
/// Objects or an archive made elsewhere, to be linked when the module that imports it is exported.
class StaticLibraryObj final : public ffi::ModuleObj {
 public:
  StaticLibraryObj(std::string bytes, std::string format, Array<String> names)
      : bytes_(std::move(bytes)), format_(std::move(format)), names_(std::move(names)) {}
  const char* kind() const final { return "static_library"; }
  int GetPropertyMask() const final { return Module::kCompilationExportable; }
  Optional<Function> GetFunction(const String& name) final {
    if (name == kFunctionNames) return Function::FromTyped([names = names_] { return names; });
    return std::nullopt;
  }
  bool ImplementsFunction(const String& name) final {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }
  Array<String> GetWriteFormats() const final { return {String(format_)}; }
  void WriteToFile(const String& path, const String&) const final {
    std::ofstream file(std::string(path), std::ios::binary);
    file.write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    if (!file.flush()) TVM_FFI_THROW(OSError) << "cannot write " << path;
  }

 private:
  std::string bytes_, format_;
  Array<String> names_;
};
Module LoadStaticLibrary(String path, Array<String> names) {
  std::string name(View(path));
  MappedFile file(name);
  std::string bytes(file.bytes());
  bool archive = bytes.rfind("!<arch>\n", 0) == 0;
  if (!archive && bytes.rfind("\x7f"
                              "ELF",
                              0) != 0) {
    TVM_FFI_THROW(ValueError) << path << ": expected an object file or a static library";
  }
  return Module(ffi::make_object<StaticLibraryObj>(std::move(bytes), archive ? "a" : "o", names));
}

TVM_REGISTER() {
  Def(
      "runtime.LoadModule", [](String path) { return LoadModule(std::string(path)); },
      "Loads a shared library after checking the file.", Arg("path"));
  Def(
      "runtime.LoadModuleFromBytes",
      [](ffi::Bytes bytes) { return LoadModuleFromBytes({bytes.data(), bytes.size()}); },
      "Loads the contents of a shared library.", Arg("bytes"));
  Def(
      "runtime.CheckLibrary",
      [](ffi::Bytes bytes) {
        std::string_view file(bytes.data(), bytes.size());
        CheckSharedLibrary("library", file);
        CheckRequirements("library", file);
        return ExportedNames(file);
      },
      "The functions of a shared library; ValueError where LoadModuleFromBytes would refuse it.",
      Arg("bytes"));
  Def("runtime.LoadStaticLibrary", &LoadStaticLibrary,
      "Objects or an archive made elsewhere, linked when the module that imports it is exported.",
      Arg("path"), Arg("func_names"));
}
}  // namespace
}  // namespace tvm::runtime
