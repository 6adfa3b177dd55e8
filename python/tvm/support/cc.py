# SPDX-License-Identifier: Apache-2.0
"""Compiling and linking with a C or C++ compiler of the system.

Exporting a library does not need one where libtvm_llvm is.
"""

import itertools
import os
import shutil
import sys
from pathlib import Path

from . import _tools, tar, utils

_CANDIDATES = ("g++", "gcc", "clang++", "clang", "c++", "cc")
_INSTALL = "install one (Debian: g++), set CXX, or pass cc"


def get_cc():
    """The C++ compiler of this machine (CXX and CC first), or None."""
    wanted = [os.environ[key] for key in ("CXX", "CC") if os.environ.get(key)]
    for command in wanted:
        if shutil.which(_tools.command_of(command)[0]):
            return shutil.which(command) or command
    return next(iter(_tools.find(_CANDIDATES)), None)


def create_shared(output, objects, options=None, cc=None, cwd=None, ccache_env=None):
    """Compiles and links files into a shared library.

    `objects` are object files, sources, archives, of which all members are taken, and tars of
    these. `options` go to the compiler as they are. With `ccache_env`, variables for ccache,
    sources are compiled through it.
    """
    flags = ["-shared", "-fPIC"]
    if sys.platform == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    _link(output, objects, flags, options, cc, cwd, ccache_env)


def create_executable(output, objects, options=None, cc=None, cwd=None, ccache_env=None):
    """Compiles and links files into a program; parameters as of `create_shared`."""
    _link(output, objects, [], options, cc, cwd, ccache_env)


def create_staticlib(output, inputs, ar=None):
    """Packs object files, members of archives, compiled sources, and tars of these into a static
    library."""
    from tvm.runtime.export import unarchive

    ar = ar or next(iter(_tools.find(["ar", "llvm-ar"])), "ar")
    with utils.tempdir() as temp, _tools.replacing(output) as partial:
        objects = []
        for file in _files(temp, inputs, None):
            if utils.is_source_path(file):
                objects.append(_compile(file, temp, [], None, None, None, output))
            elif file.endswith(".a"):
                folder = temp.path / f"members{len(objects)}"
                folder.mkdir()
                objects += unarchive(file, folder)
            else:
                objects.append(file)
        # q: files of one name from different folders are all kept.
        command = [*_tools.command_of(ar), "qcs", partial, *objects]
        _tools.run(command, f"archive {output}", install="install binutils, or pass ar")


def _compiler(cc, output):
    cc = cc or get_cc()
    if cc is None:
        looked = ", ".join(_CANDIDATES)
        raise RuntimeError(
            f"cannot link {output}: no C++ compiler found (looked for {looked}); {_INSTALL}"
        )
    return _tools.command_of(cc)


def _files(temp, objects, cwd):
    """The input files, tars unpacked."""
    files = _tools.words(objects)
    if cwd is not None:  # where the compiler looks for them
        files = [os.path.join(cwd, f) if f.endswith(tar.SUFFIXES) else f for f in files]
    return tar.link_inputs(temp, files)


def _include_flags():
    """What generated C includes."""
    from tvm import libinfo

    return [f"-I{path}" for path in libinfo.find_include_path(optional=True)]


def _compile(source, temp, options, cc, cwd, ccache_env, output):
    """One source to an object file in `temp`."""
    folder = temp.path / f"object{len(temp.listdir())}"
    folder.mkdir()
    compiled = str(folder / (Path(source).stem + ".o"))
    compiler = _compiler(cc, output)
    flags = ["-c", "-fPIC", "-O2", *_include_flags(), *options]
    prefix = [] if ccache_env is None else ["ccache"]
    install = "install ccache, or leave ccache_env out" if prefix else _INSTALL
    _tools.run(
        [*prefix, *compiler, *flags, "-o", compiled, *_source(source, compiler)],
        f"compile {source}",
        cwd=cwd,
        env=ccache_env,
        install=install,
    )
    return compiled


def _source(file, compiler):
    """A C++ driver compiles C as C++ unless told otherwise."""
    as_c = file.endswith(".c") and "++" in os.path.basename(compiler[-1])
    return ["-x", "c", file, "-x", "none"] if as_c else [file]


def _whole(archive):
    """All members, not only those that something refers to: a library is what others refer to."""
    if sys.platform == "darwin":
        return [f"-Wl,-force_load,{archive}"]
    return ["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive"]


def _link(output, objects, flags, options, cc, cwd, ccache_env):
    options, output = _tools.words(options), os.fspath(output)
    with utils.tempdir() as temp:
        files = _files(temp, objects, cwd)
        if ccache_env is not None:  # which caches compiling, not compiling and linking at once
            files = [
                _compile(f, temp, options, cc, cwd, ccache_env, output)
                if utils.is_source_path(f)
                else f
                for f in files
            ]
        if any(map(utils.is_source_path, files)):
            flags = [*flags, "-O2", *_include_flags()]
        compiler = _compiler(cc, output)
        inputs = [
            _whole(f)
            if f.endswith(".a") and "-shared" in [*flags, *options]
            else _source(f, compiler)
            for f in files
        ]
        command = [*compiler, *flags, "-o", output, *itertools.chain(*inputs), *options]
        _tools.run(command, f"link {output}", cwd=cwd, install=_INSTALL)


def get_global_symbol_section_map(path, *, nm=None) -> dict[str, str]:
    """The global symbols that an object or library defines, each with the letter of its section as
    `nm -g` shows it."""
    nm = nm or next(iter(_tools.find(["nm", "llvm-nm"])), "nm")
    listing = [*_tools.command_of(nm), "-g", "-P", os.fspath(path)]
    what, install = f"list the symbols of {path}", "install binutils, or pass nm"
    found = _symbols(_tools.run(listing, what, install=install))
    if not found:  # a stripped library has its dynamic symbols only
        with open(path, "rb") as file:
            is_dynamic = file.read(18)[16:18] in (b"\x03\x00", b"\x00\x03")
        if is_dynamic:
            found = _symbols(_tools.run([*listing[:-1], "-D", listing[-1]], what, install=install))
    return found


def _symbols(listing):
    rows = (line.split() for line in listing.splitlines())
    rows = (row for row in rows if len(row) >= 3 and len(row[1]) == 1)  # undefined: no address
    return {row[0].partition("@")[0]: row[1] for row in rows}


def get_target_by_dump_machine(compiler):
    """A function that asks a compiler for the triple it compiles to; None for no compiler."""

    def get_target_triple():
        if not compiler:
            return None
        command = [*_tools.command_of(os.fspath(compiler)), "-dumpmachine"]
        return _tools.run(command, "get the target triple", install=_INSTALL).strip()

    return get_target_triple


def cross_compiler(
    compile_func, options=None, output_format=None, get_target_triple=None, add_files=None
):
    """`fcompile` for `export_library` out of a compiler, or a function like `create_shared`.

    `options` come before those of each call, `add_files` after its files. `output_format` is the
    suffix of what is made, by default that of `compile_func` or "so".
    """
    base, added = _tools.words(options), _tools.words(add_files)
    if not callable(compile_func):
        compiler = os.fspath(compile_func)
        get_target_triple = get_target_triple or get_target_by_dump_machine(compiler)

        def compile_func(output, objects, options=None, **kwargs):
            create_shared(output, objects, options, cc=compiler, **kwargs)

    def fcompile(output, objects, options=None, **kwargs):
        all_options = base + _tools.words(options)
        compile_func(output, _tools.words(objects) + added, options=all_options, **kwargs)

    fcompile.output_format = output_format or getattr(compile_func, "output_format", "so")
    fcompile.get_target_triple = get_target_triple or getattr(
        compile_func, "get_target_triple", None
    )
    return fcompile


create_shared.output_format = "so" if sys.platform != "win32" else "dll"
create_shared.get_target_triple = lambda: get_target_by_dump_machine(get_cc())()
create_executable.output_format = "exe"
create_executable.get_target_triple = create_shared.get_target_triple
create_staticlib.output_format = "a"
