// SPDX-License-Identifier: Apache-2.0
// Finds and loads NVRTC: that of a toolkit, of a wheel beside ours, or one the loader knows.
#include "backend/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "tvm/runtime/device.h"
#include "tvm/runtime/disk_cache.h"

namespace tvm::codegen::cuda {
namespace fs = std::filesystem;
namespace {
using Program = struct ProgramHandle*;

struct Nvrtc {
  int (*Version)(int*, int*) = nullptr;
  const char* (*GetErrorString)(int) = nullptr;
  int (*CreateProgram)(Program*, const char*, const char*, int, const char* const*,
                       const char* const*) = nullptr;
  int (*DestroyProgram)(Program*) = nullptr;
  int (*CompileProgram)(Program, int, const char* const*) = nullptr;
  int (*GetProgramLogSize)(Program, size_t*) = nullptr;
  int (*GetProgramLog)(Program, char*) = nullptr;
  int (*GetPTXSize)(Program, size_t*) = nullptr;
  int (*GetPTX)(Program, char*) = nullptr;
  int (*GetCUBINSize)(Program, size_t*) = nullptr;
  int (*GetCUBIN)(Program, char*) = nullptr;
  int (*GetNumSupportedArchs)(int*) = nullptr;
  int (*GetSupportedArchs)(int*) = nullptr;
  int major = 0, minor = 0;

  void Check(int result, const char* what) const {
    if (result == 0) return;
    TVM_FFI_THROW(RuntimeError) << "NVRTC: " << what << ": " << GetErrorString(result) << " (error "
                                << result << ")";
  }
};

/// Where libraries of CUDA may be: toolkits that the environment names, wheels beside tvm-ffi's,
/// the usual places.
std::vector<fs::path> Folders() {
  std::vector<fs::path> folders;
  auto add_toolkit = [&](const fs::path& root) {
    folders.push_back(root / "lib64");
    folders.push_back(root / "lib");
  };
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(name)) add_toolkit(root);
  }
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&TVMFFIEnvGetStream), &info);
  fs::path packages = fs::path(info.dli_fname ? info.dli_fname : "")
                          .parent_path()
                          .parent_path()
                          .parent_path();  // …/tvm_ffi/lib/libtvm_ffi.so
  std::error_code ignored;
  std::vector<fs::path> wheels;
  for (const auto& entry : fs::directory_iterator(packages / "nvidia", ignored))
    wheels.push_back(entry.path() / "lib");
  std::sort(wheels.rbegin(), wheels.rend());
  folders.insert(folders.end(), wheels.begin(), wheels.end());
  add_toolkit("/usr/local/cuda");
  add_toolkit("/opt/cuda");
  return folders;
}
/// The newest file of a folder whose name begins so.
fs::path Newest(const fs::path& folder, const std::string& prefix) {
  fs::path best;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) == 0 && name.find(".alt.") == std::string::npos)
      best = std::max(best, entry.path());
  }
  return best;
}
void* LoadLibrary() {
  // One that the process has, PyTorch's for example, fits its driver.
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  std::string error;
  for (const fs::path& folder : Folders()) {
    fs::path path = Newest(folder, "libnvrtc.so");
    if (path.empty()) continue;
    // A wheel's library does not always find this one, which it loads when it compiles.
    fs::path builtins = Newest(folder, "libnvrtc-builtins.so");
    if (!builtins.empty()) dlopen(builtins.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    error = dlerror();
  }
  for (const char* name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    if (error.empty()) error = dlerror();
  }
  TVM_FFI_THROW(RuntimeError) << "target cuda: cannot load NVRTC: " << error
                              << "; install the wheel nvidia-cuda-nvrtc or a CUDA toolkit";
  TVM_FFI_UNREACHABLE();
}
Nvrtc Load() {
  Nvrtc nvrtc;
  void* library = LoadLibrary();
  auto find = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (!*function) {
      TVM_FFI_THROW(RuntimeError) << "target cuda: expected NVRTC with " << name
                                  << ", got an older one";
    }
  };
#define FIND(name) find(&nvrtc.name, "nvrtc" #name)
  FIND(Version);
  FIND(GetErrorString);
  FIND(CreateProgram);
  FIND(DestroyProgram);
  FIND(CompileProgram);
  FIND(GetProgramLogSize);
  FIND(GetProgramLog);
  FIND(GetPTXSize);
  FIND(GetPTX);
  FIND(GetCUBINSize);
  FIND(GetCUBIN);
  FIND(GetNumSupportedArchs);
  FIND(GetSupportedArchs);
#undef FIND
  nvrtc.Check(nvrtc.Version(&nvrtc.major, &nvrtc.minor), "nvrtcVersion");
  return nvrtc;
}
const Nvrtc& Get() {
  static const Nvrtc nvrtc = Load();  // tried again after an error
  return nvrtc;
}

/// A text that is being compiled.
class Compilation {
 public:
  explicit Compilation(const std::string& source) {
    nvrtc_.Check(nvrtc_.CreateProgram(&program_, source.c_str(), "kernel.cu", 0, nullptr, nullptr),
                 "nvrtcCreateProgram");
  }
  ~Compilation() { nvrtc_.DestroyProgram(&program_); }
  Compilation(const Compilation&) = delete;

  int Run(const std::vector<std::string>& options) {
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    return nvrtc_.CompileProgram(program_, static_cast<int>(words.size()), words.data());
  }
  std::string Log() { return Read(nvrtc_.GetProgramLogSize, nvrtc_.GetProgramLog, true); }
  std::string Code(const std::string& format) {
    bool is_ptx = format == "ptx";
    return is_ptx ? Read(nvrtc_.GetPTXSize, nvrtc_.GetPTX, true)
                  : Read(nvrtc_.GetCUBINSize, nvrtc_.GetCUBIN, false);
  }

 private:
  std::string Read(int (*size_of)(Program, size_t*), int (*read)(Program, char*), bool is_text) {
    size_t size = 0;
    nvrtc_.Check(size_of(program_, &size), "size of a result");
    std::string text(size, '\0');
    if (size > 0) nvrtc_.Check(read(program_, text.data()), "reading a result");
    while (is_text && !text.empty() && (text.back() == '\0' || text.back() == '\n'))
      text.pop_back();
    return text;
  }
  const Nvrtc& nvrtc_ = Get();
  Program program_ = nullptr;
};
/// The lines of a source around those that a log complains about.
std::string Excerpts(const std::string& source, const std::string& log) {
  std::vector<std::string> lines;
  std::istringstream stream(source);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::string text;
  static const std::regex place(R"(kernel\.cu\((\d+)\): (?:catastrophic )?error)");
  for (std::sregex_iterator it(log.begin(), log.end(), place), end; it != end; ++it) {
    int at = std::stoi((*it)[1]);
    for (int i = std::max(1, at - 2); i <= std::min<int>(at + 2, static_cast<int>(lines.size()));
         ++i) {
      text += "\n" + std::string(i == at ? "> " : "  ") + std::to_string(i) + " | " + lines[i - 1];
    }
    text += "\n";
  }
  return text;
}
/// Refuses an architecture, such as sm_90a or compute_90, that this NVRTC does not know.
void CheckArch(const std::string& name) {
  std::smatch parts;
  static const std::regex form(R"((?:sm|compute)_(\d+)[af]?)");
  int count = 0;
  Get().Check(Get().GetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
  std::vector<int> known(count);
  if (count > 0) Get().Check(Get().GetSupportedArchs(known.data()), "nvrtcGetSupportedArchs");
  bool is_known = std::regex_match(name, parts, form) && parts[1].length() < 6 &&
                  std::find(known.begin(), known.end(), std::stoi(parts[1])) != known.end();
  if (is_known || known.empty()) return;
  auto [low, high] = std::minmax_element(known.begin(), known.end());
  TVM_FFI_THROW(ValueError) << "target cuda: expected an architecture that NVRTC " << NvrtcVersion()
                            << " knows, from sm_" << *low << " to sm_" << *high << ", got " << name
                            << "; give another -arch, or install another nvidia-cuda-nvrtc";
}
}  // namespace

std::string NvrtcVersion() {
  return std::to_string(Get().major) + "." + std::to_string(Get().minor);
}
Compiled CompileWithNvrtc(const std::string& source, const std::string& format,
                          const std::string& arch, const std::vector<std::string>& options) {
  if (format != "cubin" && format != "ptx") {
    TVM_FFI_THROW(ValueError) << "NVRTC: expected the format cubin or ptx, got '" << format << "'";
  }
  std::vector<std::string> all = options;
  std::string name = arch;
  if (format == "ptx" && arch.rfind("sm_", 0) == 0) name = "compute_" + arch.substr(3);
  all.push_back("--gpu-architecture=" + name);
  std::string key = "nvrtc " + NvrtcVersion() + " " + format;
  for (const std::string& option : all) key += '\0' + option;
  key += '\0' + source;
  runtime::DiskCache& cache = runtime::DiskCache::Global();
  if (auto kept = cache.Find(key)) return {*kept, ""};
  CheckArch(name);
  Compilation compilation(source);
  int result = compilation.Run(all);
  std::string log = compilation.Log();
  if (result != 0) {
    TVM_FFI_THROW(RuntimeError) << "target cuda: NVRTC " << NvrtcVersion() << " cannot compile for "
                                << name << ": " << Get().GetErrorString(result) << "\n"
                                << log << Excerpts(source, log);
  }
  Compiled compiled{compilation.Code(format), log};
  cache.Store(key, compiled.code);
  return compiled;
}

namespace {
TVM_REGISTER() {
  Def(
      "cuda.nvrtc_compile",
      [](String source, String format, String arch, Array<String> options) {
        std::vector<std::string> words(options.begin(), options.end());
        return ffi::Bytes(CompileWithNvrtc(source, format, arch, words).code);
      },
      "Compiles CUDA to cubin or ptx for an architecture such as sm_90a.", Arg("source"),
      Arg("format"), Arg("arch"), Arg("options", Array<String>()));
  Def("cuda.nvrtc_version", &NvrtcVersion, "The version of NVRTC, such as 13.0.");
}
}  // namespace
}  // namespace tvm::codegen::cuda
