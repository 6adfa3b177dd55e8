// SPDX-License-Identifier: Apache-2.0
// LLD in process: libraries are linked without a compiler on the machine.
#include <fcntl.h>
#include <lld/Common/CommonLinkerContext.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "backend/llvm/compile.h"

LLD_HAS_DRIVER(elf)

namespace tvm::codegen {

void Link(const std::vector<std::string>& arguments) {
  // LLD keeps its state in globals.
  static std::mutex mutex;
  static bool broken = false;
  std::lock_guard lock(mutex);
  if (broken) {
    TVM_FFI_THROW(RuntimeError)
        << "link: the linker crashed earlier and cannot be used again in this process";
  }
  std::vector<const char*> argv = {"ld.lld"};
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  // From a thread of its own a fatal error ends the process, and one that was forked has none.
  argv.push_back("--threads=1");
  std::string out, err;
  bool ok = false;
  Guarded([&] {
    llvm::raw_string_ostream os(out), es(err);
    // What it calls a fatal error, such as an object file that is damaged, would end the process.
    llvm::CrashRecoveryContext::Enable();
    lld::Result result = lld::lldMain(argv, os, es, {{lld::Gnu, &lld::elf::link}});
    bool crashed = result.retCode >= 128;
    if (!result.canRunAgain && !crashed) {
      llvm::CrashRecoveryContext recovery;
      crashed = !recovery.RunSafely([] { lld::CommonLinkerContext::destroy(); });
    }
    llvm::CrashRecoveryContext::Disable();
    broken = crashed;
    ok = result.retCode == 0;
  });
  if (!ok) TVM_FFI_THROW(ValueError) << "link: " << (broken ? "the linker crashed; " : "") << err;
}

namespace {
/// LLD maps the file that it writes: where a disk has no room for it, the process would end.
void CheckRoom(const Array<String>& objects, const std::string& output) {
  std::error_code unknown;
  uint64_t size = 1 << 16;  // headers, tables and the alignment of segments
  for (const String& object : objects) {
    uintmax_t bytes = std::filesystem::file_size(std::string(object), unknown);
    if (!unknown) size += bytes;
  }
  std::string scratch = output + ".room";
  int fd = open(scratch.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;  // LLD says why
  bool is_full = fallocate(fd, 0, 0, static_cast<off_t>(size)) != 0 &&
                 (errno == ENOSPC || errno == EDQUOT || errno == EFBIG);
  std::string why = is_full ? std::strerror(errno) : "";
  close(fd);
  unlink(scratch.c_str());
  if (is_full) TVM_FFI_THROW(OSError) << "link: cannot write " << output << ": " << why;
}
void LinkShared(Array<String> objects, String output, Array<String> options) {
  // -z nodelete is not wanted: libraries are unloaded with their modules. Text that is not defined
  // here (the C library, tvm-ffi) is found in the process that loads the library.
  std::vector<std::string> arguments = {"-shared",
                                        "--gc-sections",
                                        "--hash-style=gnu",
                                        "--build-id=sha1",
                                        "-z",
                                        "relro",
                                        "-z",
                                        "noexecstack",
                                        "--eh-frame-hdr",
                                        "-o",
                                        std::string(output)};
  CheckRoom(objects, output);
  for (const String& o : options) arguments.emplace_back(o);
  for (const String& o : objects) arguments.emplace_back(o);
  Link(arguments);
}
void LinkRelocatable(Array<String> objects, String output) {
  CheckRoom(objects, output);
  std::vector<std::string> arguments = {"-r", "-o", std::string(output)};
  for (const String& o : objects) arguments.emplace_back(o);
  Link(arguments);
}
TVM_REGISTER() {
  Def("codegen.link_relocatable", &LinkRelocatable, "Makes one object file of several (ELF).",
      Arg("objects"), Arg("output"));
  Def("codegen.link_shared", &LinkShared, "Links object files into a shared library (ELF).",
      Arg("objects"), Arg("output"), Arg("options", Array<String>()));
}
}  // namespace
}  // namespace tvm::codegen
