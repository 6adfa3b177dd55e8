# SPDX-License-Identifier: Apache-2.0
# libtvm_llvm: the LLVM backend. LLVM and LLD are linked statically and hidden, so that another LLVM
# in the process (PyTorch's, Triton's) and this one never meet.
set(TVM_LLVM_CONFIG "" CACHE FILEPATH "llvm-config to use; empty: the newest of 22 to 19 that has LLD beside it")

set(llvm_candidates ${TVM_LLVM_CONFIG})
if(NOT llvm_candidates)
  foreach(version 22 21 20 19)
    find_program(LLVM_CONFIG_${version} NAMES llvm-config-${version} HINTS /usr/lib/llvm-${version}/bin)
    if(LLVM_CONFIG_${version})
      list(APPEND llvm_candidates ${LLVM_CONFIG_${version}})
    endif()
  endforeach()
  find_program(LLVM_CONFIG_PLAIN NAMES llvm-config)
  if(LLVM_CONFIG_PLAIN)
    list(APPEND llvm_candidates ${LLVM_CONFIG_PLAIN})
  endif()
endif()

function(llvm_config result)
  execute_process(COMMAND ${LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE out OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(out NATIVE_COMMAND "${out}")
  set(${result} ${out} PARENT_SCOPE)
endfunction()

foreach(candidate ${llvm_candidates})
  set(LLVM_CONFIG ${candidate})
  llvm_config(LLVM_VERSION --version)
  llvm_config(LLVM_LIBDIR --libdir)
  if(LLVM_VERSION VERSION_GREATER_EQUAL 19)
    if(EXISTS ${LLVM_LIBDIR}/liblldELF.a AND EXISTS ${LLVM_LIBDIR}/libLLVMCore.a)
      set(LLVM_FOUND ON)
      break()
    endif()
    string(APPEND llvm_rejected "\n  ${LLVM_CONFIG}: liblldELF.a or libLLVMCore.a is missing in ${LLVM_LIBDIR}")
  else()
    string(APPEND llvm_rejected "\n  ${LLVM_CONFIG}: version ${LLVM_VERSION} is older than 19")
  endif()
endforeach()
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "static LLVM 19 or newer with LLD was not found.${llvm_rejected}\n"
    "Install it (Debian, Ubuntu: llvm-22-dev liblld-22-dev zlib1g-dev libzstd-dev, or the same packages of "
    "19 to 21), name one with -DTVM_LLVM_CONFIG=/path/to/llvm-config, or build without the llvm target: "
    "-DTVM_USE_LLVM=OFF")
endif()
message(STATUS "LLVM ${LLVM_VERSION} (${LLVM_CONFIG})")

# LLD initialises every target and, where it exists, distributed ThinLTO.
set(llvm_components orcjit all-targets passes lto option irreader)
llvm_config(llvm_all_components --components)
if("dtlto" IN_LIST llvm_all_components)
  list(APPEND llvm_components dtlto)
endif()
llvm_config(LLVM_INCLUDE --includedir)
llvm_config(LLVM_LIBS --link-static --libs ${llvm_components})
llvm_config(LLVM_SYSTEM_LIBS --link-static --system-libs)
# Debian's pass registry names Polly: polly.cc stands in for it.
list(FILTER LLVM_LIBS EXCLUDE REGEX "^-lPolly")
# Compression comes along statically where the archive exists: other machines may lack these libraries.
foreach(compression z zstd)
  find_library(STATIC_${compression} lib${compression}.a)
  if(STATIC_${compression})
    list(TRANSFORM LLVM_SYSTEM_LIBS REPLACE "^-l${compression}$" ${STATIC_${compression}})
  endif()
endforeach()

file(GLOB_RECURSE LLVM_BACKEND_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/llvm/*.cc)
tvm_library(tvm_llvm SOURCES ${LLVM_BACKEND_SOURCES} PCH tvm/ir/node.h)
target_include_directories(tvm_llvm SYSTEM PRIVATE ${LLVM_INCLUDE})
# The key of the disk cache: another one when what makes objects of bitcode changes, so that no object of an
# older build is taken for one of this.
set(passes)
foreach(file half.cc module.cc optimize.cc polly.cc target_machine.cc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/llvm/${file})
  file(SHA1 ${PROJECT_SOURCE_DIR}/src/backend/llvm/${file} hash)
  string(APPEND passes ${hash})
endforeach()
string(SHA1 passes "${passes}")
target_compile_definitions(tvm_llvm PRIVATE TVM_VERSION="${PROJECT_VERSION}" TVM_PASSES_VERSION="${passes}")
# `tvm` comes first on the link line; what LLVM's archives name but nobody uses (z3, libxml2) is dropped.
target_link_libraries(tvm_llvm PUBLIC tvm
  PRIVATE -L${LLVM_LIBDIR} -llldELF -llldCommon ${LLVM_LIBS} -Wl,--as-needed ${LLVM_SYSTEM_LIBS} ${CMAKE_DL_LIBS})
# Only our own names leave the library: neither LLVM's archives nor the templates of its headers do.
set(exports ${PROJECT_SOURCE_DIR}/cmake/llvm.exports)
target_link_options(tvm_llvm PRIVATE -Wl,--exclude-libs,ALL -Wl,--version-script=${exports})
set_target_properties(tvm_llvm PROPERTIES LINK_DEPENDS ${exports})
