// SPDX-License-Identifier: Apache-2.0
// Finds the system's C compiler and runs it.
#include "backend/c/compile.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/temporary_folder.h"
#include "tvm/runtime/disk_cache.h"

extern char** environ;

namespace tvm::codegen::c {
namespace fs = std::filesystem;
namespace {
std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}
bool IsProgram(const std::string& name) {
  auto runs = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; };
  if (name.find('/') != std::string::npos) return runs(name);
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (runs((folder.empty() ? "." : folder) + "/" + name)) return true;
  }
  return false;
}
/// The machine that a triple names, as this one would be called.
bool IsForeign(const std::string& triple) {
#if defined(__x86_64__)
  const char* here = "x86_64";
#elif defined(__aarch64__)
  const char* here = "aarch64";
#else
  const char* here = "";
#endif
  return !triple.empty() && triple.substr(0, triple.find('-')) != here;
}
/// Headers of tvm-ffi: beside its library.
std::string IncludeFolder() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&TVMFFIErrorSetRaisedFromCStr), &info);
  fs::path library = info.dli_fname ? info.dli_fname : "";
  fs::path folder = library.parent_path().parent_path() / "include";
  if (!fs::exists(folder / "tvm" / "ffi" / "c_api.h")) {
    TVM_FFI_THROW(RuntimeError) << "target c: expected the headers of tvm-ffi in " << folder
                                << ", beside " << library;
  }
  return folder.string();
}
std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : " ") + w;
  return text;
}
std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}
/// Runs a program with its output in a file; its exit status.
int Run(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t child = 0;
  int error = posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    TVM_FFI_THROW(RuntimeError) << "target c: cannot run " << command[0] << ": "
                                << std::strerror(error);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
void RunOrThrow(const std::vector<std::string>& command, const fs::path& log) {
  int status = Run(command, log);
  if (status == 0) return;
  constexpr size_t kShown = 4000;
  std::string said = Contents(log);
  if (said.size() > kShown) said = said.substr(0, kShown) + "\n...";
  TVM_FFI_THROW(RuntimeError) << "target c: `" << Joined(command) << "` ended with " << status
                              << ":\n"
                              << said;
}
}  // namespace

Compiler Compiler::For(const Target& target) {
  auto option = [&](const char* name) { return std::string(target->GetAttr<String>(name, "")); };
  std::string triple = option("mtriple"), march = option("march"), mcpu = option("mcpu");
  Compiler compiler;
  if (IsForeign(triple)) {
    for (const std::string& name : {triple + "-gcc", triple + "-cc", triple + "-clang"}) {
      if (compiler.command.empty() && IsProgram(name)) compiler.command = {name};
    }
    if (compiler.command.empty()) {
      TVM_FFI_THROW(RuntimeError) << "target c: no C compiler for " << triple << " found (looked "
                                  << "for " << triple << "-gcc); install one (Debian: apt install "
                                  << "gcc-" << triple << ")";
    }
  } else {
    const char* own = std::getenv("CC");
    compiler.command = Words(own ? own : "");
    if (!compiler.command.empty() && !IsProgram(compiler.command[0])) {
      TVM_FFI_THROW(RuntimeError) << "target c: expected CC to name a C compiler, got '" << own
                                  << "', which does not exist";
    }
    for (const char* name : {"cc", "gcc", "clang"}) {
      if (compiler.command.empty() && IsProgram(name)) compiler.command = {name};
    }
    if (compiler.command.empty()) {
      TVM_FFI_THROW(RuntimeError) << "target c: no C compiler found (looked for CC, cc, gcc and "
                                     "clang); install one (Debian "
                                     "and Ubuntu: apt install gcc libc6-dev), or use target llvm";
    }
    compiler.native = march.empty() && mcpu.empty() && triple.empty();
  }
  // Errors of mathematical functions and traps of comparisons are not looked at; both would keep
  // loops from being vectorised. Contraction is what section "floating point" of the docs allows.
  for (const char* flag : {"-std=c99", "-O3", "-fPIC", "-ffp-contract=fast", "-fno-math-errno",
                           "-fno-trapping-math", "-w"}) {
    compiler.command.push_back(flag);
  }
  bool is_x86 = triple.empty() ? !IsForeign("x86_64") : triple.rfind("x86_64", 0) == 0;
  if (!march.empty()) compiler.command.push_back("-march=" + march);
  if (!mcpu.empty()) compiler.command.push_back((is_x86 ? "-march=" : "-mcpu=") + mcpu);
  if (compiler.native) compiler.command.push_back(is_x86 ? "-march=native" : "-mcpu=native");
  for (const String& feature : target->GetAttr<Array<String>>("mattr", Array<String>())) {
    // LLVM's +avx2 is the compiler's -mavx2.
    std::string name(feature);
    bool off = !name.empty() && name[0] == '-';
    compiler.command.push_back((off ? "-mno-" : "-m") + name.substr(name.find_first_not_of("+-")));
  }
  return compiler;
}

std::string Compiler::Compile(const std::string& source, Output output) const {
  std::vector<std::string> full = command;
  full.push_back("-I" + IncludeFolder());
  if (output == Output::kShared) {
    // A missing function is an error of loading: found when it is called, it would end the process.
    full.push_back("-shared");
    full.push_back("-Wl,-z,now");
  } else {
    full.push_back("-c");
  }
  auto& cache = runtime::DiskCache::Global();
  // -march=native means another thing elsewhere: folders may be shared between machines.
  char host[256] = "";
  if (native) gethostname(host, sizeof(host) - 1);
  std::string key = "c\n" + Joined(full) + "\n" + host + "\n" + source;
  if (auto found = cache.Find(key)) return *found;
  runtime::TemporaryFolder folder;
  fs::path input = folder.path / "lib.c", result = folder.path / "lib.out",
           log = folder.path / "log";
  std::ofstream(input, std::ios::binary) << source;
  for (const std::string& word : {std::string("-o"), result.string(), input.string()})
    full.push_back(word);
  if (output == Output::kShared) full.push_back("-lm");
  RunOrThrow(full, log);
  std::string bytes = Contents(result);
  cache.Store(key, bytes);
  return bytes;
}

void Compiler::Link(const std::vector<std::string>& objects, const std::string& output) const {
  runtime::TemporaryFolder folder;
  std::vector<std::string> full = command;
  for (const char* word : {"-shared", "-o"}) full.push_back(word);
  full.push_back(output);
  full.insert(full.end(), objects.begin(), objects.end());
  full.push_back("-lm");
  RunOrThrow(full, folder.path / "log");
}

namespace {
TVM_REGISTER() {
  Def(
      "codegen.link_with_compiler",
      [](Array<String> objects, String output, Array<String> options) {
        std::vector<std::string> files(objects.begin(), objects.end());
        files.insert(files.end(), options.begin(), options.end());
        Compiler::For(Target("c")).Link(files, std::string(output));
      },
      "Links object files into a shared library with the system's C compiler.", Arg("objects"),
      Arg("output"), Arg("options", Array<String>()));
}
}  // namespace

}  // namespace tvm::codegen::c
