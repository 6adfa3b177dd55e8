# SPDX-License-Identifier: Apache-2.0
"""The compiler of the Android NDK; the variable TVM_NDK_CC names it."""

import os

from . import _tools, cc


def _compiler():
    compiler = os.environ.get("TVM_NDK_CC")
    if not compiler:
        raise RuntimeError(
            "ndk: expected the variable TVM_NDK_CC to name the NDK's compiler, for instance "
            "toolchains/llvm/prebuilt/linux-x86_64/bin/aarch64-linux-android24-clang++ below it"
        )
    return compiler


def _beside_compiler(tool):
    return os.path.join(os.path.dirname(_tools.command_of(_compiler())[-1]), tool)


def create_shared(output, objects, options=None):
    """Links files into a shared library; `options` replace `-shared -fPIC -lm`."""
    options = ["-shared", "-fPIC", "-lm"] if options is None else options
    cc.create_executable(output, objects, options, cc=_compiler())


def create_staticlib(output, inputs):
    """Packs files into a static library with the NDK's archiver."""
    cc.create_staticlib(output, inputs, ar=_beside_compiler("llvm-ar"))


def get_global_symbol_section_map(path, *, nm=None) -> dict[str, str]:
    """As of `cc`, with the NDK's tool."""
    return cc.get_global_symbol_section_map(path, nm=nm or _beside_compiler("llvm-nm"))


create_shared.output_format = "so"
create_shared.get_target_triple = lambda: cc.get_target_by_dump_machine(_compiler())()
create_staticlib.output_format = "a"
