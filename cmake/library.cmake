# SPDX-License-Identifier: Apache-2.0
# tvm_library(NAME SOURCES ... PCH header): a shared library with the project's flags.
include(cmake/batch.cmake)
function(tvm_library name)
  cmake_parse_arguments(LIB "" "PCH" "SOURCES" ${ARGN})
  tvm_batches(batches ${name} ${LIB_SOURCES})
  add_library(${name} SHARED ${batches})
  add_library(tvm::${name} ALIAS ${name})
  target_include_directories(${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  # -Warray-bounds, -Wstringop-overflow: g++ 12 reports false ones from tvm-ffi's string headers.
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-unused-parameter -Wno-invalid-offsetof
    -Wno-array-bounds -Wno-stringop-overflow -fno-semantic-interposition -fvisibility-inlines-hidden)
  target_compile_options(${name} PUBLIC -Wno-invalid-offsetof)
  # --wrap: src/runtime/backtrace.cc
  target_link_options(${name} PRIVATE -Wl,-z,defs -Wl,--gc-sections -Wl,--wrap=TVMFFIBacktrace)
  set_target_properties(${name} PROPERTIES BUILD_RPATH_USE_ORIGIN ON
    INSTALL_RPATH "$ORIGIN:$ORIGIN/../../tvm_ffi/lib")
  if(LIB_PCH AND TVM_USE_PCH)
    target_precompile_headers(${name} PRIVATE <${LIB_PCH}>)  # no path of this checkout: ccache shares it
    target_compile_options(${name} PRIVATE -fpch-preprocess)
  endif()
  target_link_libraries(${name} PUBLIC tvm_ffi::header tvm_ffi::shared)
endfunction()
