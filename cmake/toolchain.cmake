# SPDX-License-Identifier: Apache-2.0
# Faster builds where the tools are present; sanitizers on request.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header that differs in macros alone looks the same when preprocessed: what it includes of
  # ours is part of every key. A test compares this list with the includes.
  set(precompiled ir/node.h ir/stack.h runtime/data_type.h runtime/def.h)
  list(TRANSFORM precompiled PREPEND ${PROJECT_SOURCE_DIR}/include/tvm/)
  list(JOIN precompiled ":" precompiled)
  # Precompiled headers need these: https://ccache.dev/manual/latest.html (section "Precompiled headers").
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_EXTRAFILES=${precompiled}
    # Paths relative to the checkout: all clones and worktrees of a machine share what was compiled once.
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(TVM_SANITIZE)
  # As fast to build as without: optimising sanitized code takes three times as long, and so do checks of every
  # pointer for null and alignment, which the processor and the address sanitizer notice too.
  add_compile_options(-fsanitize=${TVM_SANITIZE} -fno-sanitize=null,alignment,object-size -fno-omit-frame-pointer -g1 -O0)
  add_link_options(-fsanitize=${TVM_SANITIZE})
endif()
