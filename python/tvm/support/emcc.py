# SPDX-License-Identifier: Apache-2.0
"""WebAssembly with emscripten."""

import os

from . import _tools, tar, utils

# A module of its own that runs in any WebAssembly host, keeps what its objects define, and lets
# the host define what is missing.
_FLAGS = (
    *("-O3", "--no-entry", "-Wl,--export-dynamic"),
    *("-s", "STANDALONE_WASM=1"),
    *("-s", "ALLOW_MEMORY_GROWTH=1"),
    *("-s", "ERROR_ON_UNDEFINED_SYMBOLS=0"),
)
_RUNTIME = ("wasm_runtime.bc",)


def find_wasm_lib(name, optional=False):
    """The paths of a library built for WebAssembly, beside our own libraries or in `wasm` there."""
    from tvm import _libs, libinfo

    folders = [str(folder / "wasm") for folder in _libs.search_path()]
    return libinfo.find_lib_path(name, search_path=folders, optional=optional)


def create_tvmjs_wasm(output, objects, options=None, cc="emcc", libs=None):
    """Links files into a WebAssembly module.

    `libs` are linked, too; by default our runtime, where it was built for WebAssembly.
    """
    if libs is None:
        found = (find_wasm_lib(name, optional=True) for name in _RUNTIME)
        libs = [paths[0] for paths in found if paths]
    with utils.tempdir() as temp:
        files = tar.link_inputs(temp, objects)
        command = [*_tools.command_of(os.fspath(cc)), *_FLAGS, "-o", os.fspath(output)]
        command += [*files, *_tools.words(libs), *_tools.words(options)]
        install = "install emscripten, or pass cc"
        _tools.run(command, f"link {output}", install=install)


create_tvmjs_wasm.object_format = "bc"
create_tvmjs_wasm.output_format = "wasm"
