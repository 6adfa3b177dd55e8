# SPDX-License-Identifier: Apache-2.0
# Facts about this build, compiled into libtvm_runtime; `support.libinfo` returns them.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" TVM_CXX_FLAGS)
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND "${Python_EXECUTABLE}" -c
  "from importlib import metadata; print(metadata.version('apache-tvm-ffi'), end='')"
  OUTPUT_VARIABLE TVM_FFI_VERSION)
set(TVM_LLVM_LINK)
if(TVM_USE_LLVM)
  set(TVM_LLVM_LINK "static, hidden symbols")
endif()
find_package(Git QUIET)
# At build time, so that a commit made after configuring is seen; touches one small file.
add_custom_target(tvm_libinfo BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/libinfo.cc
  COMMAND ${CMAKE_COMMAND} -DGIT=${GIT_EXECUTABLE} -DSOURCE=${PROJECT_SOURCE_DIR}
    -DTEMPLATE=${PROJECT_SOURCE_DIR}/cmake/libinfo.cc.in -DOUTPUT=${CMAKE_BINARY_DIR}/generated/libinfo.cc
    -DVERSION=${PROJECT_VERSION} -DBUILD_TYPE=${CMAKE_BUILD_TYPE} "-DCXX_FLAGS=${TVM_CXX_FLAGS}"
    "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" -DSANITIZE=${TVM_SANITIZE}
    -DUSE_LLVM=$<IF:$<BOOL:${TVM_USE_LLVM}>,ON,OFF> -DLLVM=${LLVM_VERSION}
    -DFFI=${TVM_FFI_VERSION} "-DLLVM_LINK=${TVM_LLVM_LINK}" -DBUILD_TESTS=$<IF:$<BOOL:${TVM_BUILD_TESTS}>,ON,OFF>
    "-DPLATFORM=${CMAKE_SYSTEM_NAME} ${CMAKE_SYSTEM_PROCESSOR}"
    -P ${PROJECT_SOURCE_DIR}/cmake/write_libinfo.cmake
  COMMENT "Facts about this build" VERBATIM)
target_sources(tvm_runtime PRIVATE ${CMAKE_BINARY_DIR}/generated/libinfo.cc)
add_dependencies(tvm_runtime tvm_libinfo)
