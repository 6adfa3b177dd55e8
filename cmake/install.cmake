# SPDX-License-Identifier: Apache-2.0
install(TARGETS tvm_runtime tvm DESTINATION tvm/lib)
if(TARGET tvm_llvm)
  install(TARGETS tvm_llvm DESTINATION tvm/lib)
endif()
