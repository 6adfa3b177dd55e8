# SPDX-License-Identifier: Apache-2.0
# The object layer comes from the apache-tvm-ffi package of the Python that builds us.
find_package(Python COMPONENTS Interpreter REQUIRED)
execute_process(COMMAND "${Python_EXECUTABLE}" -m tvm_ffi.config --cmakedir
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE tvm_ffi_ROOT RESULT_VARIABLE TVM_FFI_MISSING)
if(TVM_FFI_MISSING)
  message(FATAL_ERROR "apache-tvm-ffi is not installed in ${Python_EXECUTABLE}: run `make build`, or pass -DPython_EXECUTABLE")
endif()
find_package(tvm_ffi CONFIG REQUIRED)
