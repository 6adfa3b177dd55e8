# SPDX-License-Identifier: Apache-2.0
include(cmake/batch.cmake)

# What is compiled into a library: its flags and precompiled header.
function(tvm_compile_flags name pch)
  target_include_directories(${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  # -Warray-bounds, -Wstringop-overflow: g++ 12 reports false ones from tvm-ffi's string headers.
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-unused-parameter -Wno-invalid-offsetof
    -Wno-array-bounds -Wno-stringop-overflow -fno-semantic-interposition -fvisibility-inlines-hidden)
  target_compile_options(${name} PUBLIC -Wno-invalid-offsetof)
  if(pch AND TVM_USE_PCH)
    target_precompile_headers(${name} PRIVATE <${pch}>)  # no path of this checkout: ccache shares it
    target_compile_options(${name} PRIVATE -fpch-preprocess)
  endif()
  target_link_libraries(${name} PUBLIC tvm_ffi::header tvm_ffi::shared)
endfunction()

# tvm_library(NAME SOURCES ... [COLD ...] [SMALL ...] PCH header): a shared library with the project's flags.
# COLD and SMALL are sources whose speed nobody waits for: with -O1 they compile in half the time, with -Os they
# take two thirds of the space (and no precompiled header, which is made for -O2).
function(tvm_library name)
  cmake_parse_arguments(LIB "" "PCH" "SOURCES;COLD;SMALL" ${ARGN})
  tvm_batches(batches ${name} ${LIB_SOURCES})
  add_library(${name} SHARED ${batches})
  add_library(tvm::${name} ALIAS ${name})
  tvm_compile_flags(${name} "${LIB_PCH}")
  if(LIB_COLD)
    tvm_batches(cold ${name} ${LIB_COLD})
    add_library(${name}_cold OBJECT ${cold})
    tvm_compile_flags(${name}_cold "${LIB_PCH}")
    if(NOT TVM_SANITIZE)
      target_compile_options(${name}_cold PRIVATE -O1)
    endif()
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${name}_cold>)
  endif()
  if(LIB_SMALL)
    tvm_batches(small ${name}_small ${LIB_SMALL})
    # -Wclobbered, -Wmaybe-uninitialized: false with -Os, from headers of g++ 12 and tvm-ffi.
    set_source_files_properties(${small} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
      COMPILE_OPTIONS "-Os;-Wno-clobbered;-Wno-maybe-uninitialized")
    target_sources(${name} PRIVATE ${small})
  endif()
  # --wrap: src/runtime/backtrace.cc
  # The build id tells what is compiled by this library from what another build compiled.
  target_link_options(${name} PRIVATE -Wl,--build-id=sha1 -Wl,-z,defs -Wl,--gc-sections -Wl,--wrap=TVMFFIBacktrace)
  set_target_properties(${name} PROPERTIES BUILD_RPATH_USE_ORIGIN ON
    INSTALL_RPATH "$ORIGIN:$ORIGIN/../../tvm_ffi/lib")
endfunction()
