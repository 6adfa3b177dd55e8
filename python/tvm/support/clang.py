# SPDX-License-Identifier: Apache-2.0
"""LLVM IR out of C and C++ with clang."""

import os

from . import _tools, utils


def llvm_major():
    """The LLVM that this build has inside, or None."""
    import tvm

    return str(tvm.support.libinfo()["LLVM_VERSION"]).partition(".")[0] or None


def find_llvm_tool(name, required, install, folders=()):
    """Full paths of a tool of LLVM, that of our own LLVM's version first."""
    major = llvm_major()
    names = [f"{name}-{major}", name] if major else [name]
    folders = [f"/usr/lib/llvm-{major}/bin", *folders] if major else folders
    found = _tools.find(names, folders)
    if required and not found:
        raise RuntimeError(f"cannot find {' or '.join(names)}; {install}")
    return found


def find_clang(required=True):
    """Full paths of clang, that of our own LLVM's version first; RuntimeError where none is."""
    return find_llvm_tool("clang", required, "install clang")


def create_llvm(inputs, output=None, options=None, cc=None):
    """The LLVM IR, as text, of files or texts of C or C++, taken as one program.

    It is also written to `output`.
    """
    inputs = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    with utils.tempdir() as temp:
        files = []
        for i, item in enumerate(map(os.fspath, inputs)):
            if utils.is_source_path(item) and "\n" not in item:
                files.append(os.path.abspath(item))
                if not os.path.exists(item):
                    raise FileNotFoundError(f"create_llvm: {item} does not exist")
            else:
                files.append(temp.relpath(f"input{i}.cc"))
                (temp / f"input{i}.cc").write_text(item)
        source = files[0]
        if len(files) != 1:  # clang writes one file for each that it is given
            suffix = ".c" if files and all(f.endswith(".c") for f in files) else ".cc"
            source = temp.relpath(f"all{suffix}")
            (temp / f"all{suffix}").write_text("".join(f'#include "{f}"\n' for f in files))
        compiler = _tools.command_of(cc or find_clang()[0])
        result = temp.relpath("out.ll")
        options = _tools.words(options)
        command = [*compiler, "-S", "-emit-llvm", *options, "-o", result, source]
        _tools.run(command, "compile to LLVM IR", install="install clang, or pass cc")
        code = (temp / "out.ll").read_text()
    if output is not None:
        with _tools.replacing(output) as partial, open(partial, "w") as file:
            file.write(code)
    return code
