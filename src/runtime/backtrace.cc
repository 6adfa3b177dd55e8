// SPDX-License-Identifier: Apache-2.0
// Where an error was raised. tvm-ffi looks up every frame: the first time it reads the symbols of
// all libraries of the process, which takes 0.8 s where PyTorch is one of them, for names that
// DropUnknownFrames (def.cc) would take out again. Our libraries are linked with
// --wrap=TVMFFIBacktrace and come here instead; TVM_FULL_BACKTRACE asks for all frames.
#include <tvm/ffi/c_api.h>

#include <cstdlib>
#include <string>

extern "C" {
const TVMFFIByteArray* __real_TVMFFIBacktrace(const char* filename, int lineno, const char* func,
                                              int cross_ffi_boundary);

TVM_FFI_DLL_EXPORT const TVMFFIByteArray* __wrap_TVMFFIBacktrace(const char* filename, int lineno,
                                                                 const char* func,
                                                                 int cross_ffi_boundary) {
  static const bool full = std::getenv("TVM_FULL_BACKTRACE") != nullptr;
  if (full || !filename || !func)
    return __real_TVMFFIBacktrace(filename, lineno, func, cross_ffi_boundary);
  static thread_local std::string text;
  static thread_local TVMFFIByteArray bytes;
  text = "  File \"" + std::string(filename) + "\", line " + std::to_string(lineno) + ", in " +
         func + "\n";
  bytes = {text.data(), text.size()};
  return &bytes;
}
}
