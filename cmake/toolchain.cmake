# SPDX-License-Identifier: Apache-2.0
# Faster builds where the tools are present; sanitizers on request.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers need these: https://ccache.dev/manual/latest.html (section "Precompiled headers").
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    # What was included decides, not the preprocessed text: a change of macros alone is not in that text.
    CCACHE_DEPEND=1
    # Paths relative to the checkout: all clones and worktrees of a machine share what was compiled once.
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(TVM_SANITIZE)
  add_compile_options(-fsanitize=${TVM_SANITIZE} -fno-omit-frame-pointer -g1 -O1)  # -O2 takes minutes longer
  add_link_options(-fsanitize=${TVM_SANITIZE})
endif()
