# SPDX-License-Identifier: Apache-2.0
# Libraries, headers and the CMake package, laid out as in the wheel's folder `tvm`.
include(CMakePackageConfigHelpers)
install(TARGETS tvm_runtime tvm EXPORT tvmTargets LIBRARY DESTINATION lib)
install(TARGETS tvm_program RUNTIME DESTINATION bin)
if(TARGET tvm_llvm)
  install(TARGETS tvm_llvm LIBRARY DESTINATION lib)  # loaded at run time, never linked against
endif()
install(DIRECTORY include/tvm DESTINATION include FILES_MATCHING PATTERN "*.h")
install(EXPORT tvmTargets NAMESPACE tvm:: DESTINATION lib/cmake/tvm)
configure_package_config_file(cmake/tvmConfig.cmake.in ${CMAKE_BINARY_DIR}/tvmConfig.cmake
  INSTALL_DESTINATION lib/cmake/tvm)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tvmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tvmConfig.cmake ${CMAKE_BINARY_DIR}/tvmConfigVersion.cmake
  DESTINATION lib/cmake/tvm)
# Stubs lie beside the modules they describe: in the package, not in the sources.
if(SKBUILD AND NOT TVM_SANITIZE)
  install(CODE "execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND
    ${CMAKE_COMMAND} -E env \"TVM_LIBRARY_PATH=${CMAKE_LIBRARY_OUTPUT_DIRECTORY}\"
    \"${Python_EXECUTABLE}\" \"${PROJECT_SOURCE_DIR}/scripts/stubs.py\" \"\${CMAKE_INSTALL_PREFIX}\")")
endif()
