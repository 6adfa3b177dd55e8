# SPDX-License-Identifier: Apache-2.0
"""Writing modules to files: shared and static libraries, objects, archives of objects."""

import contextlib
import os
import shutil
import struct
import tempfile
from pathlib import Path

import tvm_ffi

from tvm import _libs

_compiled = tvm_ffi.get_global_func("runtime.ModuleCompiled")
_export_symbols = tvm_ffi.get_global_func("runtime.ModuleExportSymbols")
_data_object = tvm_ffi.get_global_func("runtime.WriteDataObject")
_global_symbols = tvm_ffi.get_global_func("runtime.ObjectGlobalSymbols")

_OBJECT, _SOURCE = ("o", "obj", "a"), ("c", "cc", "cpp", "cu")


def linker():
    """The built-in linker as `f(objects, output, options)`, or None in a build without one."""
    link = tvm_ffi.get_global_func("codegen.link_shared", allow_missing=True)
    if link is None and _libs.load_optional("tvm_llvm"):
        link = tvm_ffi.get_global_func("codegen.link_shared", allow_missing=True)
    return link


def link_shared(output, files, fcompile=None, **kwargs):
    """Links files into a shared library: with `fcompile`, the built-in linker, or a system
    compiler."""
    output, files = str(output), [str(f) for f in files]
    sources = [f for f in files if Path(f).suffix[1:] in _SOURCE]
    if fcompile is None and not sources and "cc" not in kwargs and (link := linker()):
        link(files, output, [str(option) for option in kwargs.get("options") or ()])
    elif fcompile is None:
        from tvm.support import cc

        cc.create_shared(output, files, **kwargs)
    else:
        fcompile(output, files, **kwargs)
    if not os.path.exists(output):
        raise RuntimeError(f"export_library: the linker ended well but did not write {output}")


def _write_code(mod, folder, prefer):
    """Files with the code of every compiled module below `mod`, in the first form of `prefer` each
    has."""
    files = []
    for index, part in enumerate(_compiled(mod)):
        formats = [str(f) for f in part.get_write_formats()]
        suffix = next((f for f in prefer if f in formats), None)
        if suffix is None:
            raise ValueError(
                f"export_library: expected a module of kind '{part.kind}' to write objects or C, "
                f"got formats {formats}"
            )
        path = folder / f"lib{index}.{suffix}"
        part.write_to_file(str(path), suffix)
        files.append(path)
    if not files:
        raise ValueError(f"export_library: a module of kind '{mod.kind}' holds no code to export")
    return files


def _collect(mod, folder, addons, as_source):
    """All files to link: code, saved imports, and what the caller adds."""
    prefer = (*_SOURCE, *_OBJECT) if as_source else (*_OBJECT, *_SOURCE)
    files = _write_code(mod, folder, prefer)
    symbols = dict(_export_symbols(mod).items())
    if all(f.suffix[1:] in _SOURCE for f in files):
        # Whoever compiles the sources decides for which processor.
        symbols.pop("__tvm_library_info", None)
    if symbols:
        like = next((f for f in files if f.suffix == ".o" and _is_elf(f)), None)
        # Without such an object we do not know the machine: its compiler will make one out of C.
        data = folder / ("data.c" if like is None else "data.o")
        data.write_bytes(_c_data(symbols) if like is None else _data_object(str(like), symbols))
        files.append(data)
    return files + [Path(f) for f in addons or ()]


def _is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _c_data(symbols):
    definition = "const unsigned char {}[] __attribute__((aligned(64))) = {{{}}};\n"
    text = (definition.format(name, ",".join(map(str, data))) for name, data in symbols.items())
    return "".join(text).encode()


def _objects(files, folder, what):
    """The files with archives unpacked; raises where one is no object."""
    sources = [f.name for f in files if f.suffix[1:] not in _OBJECT]
    if sources:
        raise ValueError(f"export_library: expected objects for {what}, got sources {sources}")
    return [o for f in files for o in (unarchive(f, folder) if f.suffix == ".a" else [f])]


_HEADER = """\
/* Functions of {file}, to be linked into a program; made by export_library. */
#pragma once
#include <tvm/ffi/extra/c_env_api.h>
#ifdef __cplusplus
extern "C" {{
#endif
{declarations}
/* Call it once: the functions are then found in the system library (ffi.SystemLib). */
static inline void {stem}_register(void) {{
{calls}
}}
#ifdef __cplusplus
}}
#endif
"""


def _header(objects, output, header):
    """The C header of an object or static library."""
    prefix, declarations, calls = "__tvm_ffi_", [], []
    for symbol in dict.fromkeys(str(s) for f in objects for s in _global_symbols(str(f))):
        if not symbol.startswith((prefix, "__TVMBackend")) or not symbol.isidentifier():
            continue
        if symbol.startswith(prefix) and symbol[len(prefix) :][:1] != "_":
            args = "void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result"
            declarations.append(f"int {symbol}({args});")
        else:  # filled by the object layer, or read by it
            declarations.append(f"extern char {symbol}[];")
        calls.append(f'  TVMFFIEnvModRegisterSystemLibSymbol("{symbol}", (void*){symbol});')
    stem = "".join(c if c.isalnum() else "_" for c in output.stem)
    text = _HEADER.format(
        file=output.name, declarations="\n".join(declarations), stem=stem, calls="\n".join(calls)
    )
    header.write_text(text)


def _archive(files, output):
    """A static library in the common (System V) form, with the index of symbols that linkers ask
    for."""
    members = [(f.name, f.read_bytes()) for f in files]
    symbols = [(i, str(s)) for i, f in enumerate(files) for s in _global_symbols(str(f))]
    names = b"".join(s.encode() + b"\0" for _, s in symbols)
    index_size = 4 + 4 * len(symbols) + len(names)
    offsets, at = [], 8 + 60 + index_size + index_size % 2
    for _, data in members:
        offsets.append(at)
        at += 60 + len(data) + len(data) % 2
    index = (
        struct.pack(f">I{len(symbols)}I", len(symbols), *(offsets[i] for i, _ in symbols)) + names
    )
    with open(output, "wb") as archive:
        archive.write(b"!<arch>\n")
        for name, data in [("", index), *members]:
            # Time, owner and mode are fixed: the same code gives the same file.
            archive.write(
                f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(data):<10}`\n".encode()
            )
            archive.write(data + b"\n" * (len(data) % 2))


def unarchive(path, folder):
    """Extracts the objects of a static library."""
    data, at, files = Path(path).read_bytes(), 8, []
    if data[:8] != b"!<arch>\n":
        raise ValueError(f"{path}: expected a static library")
    while at + 60 <= len(data):
        name, size, end = (
            data[at : at + 16].decode("latin-1").rstrip(),
            data[at + 48 : at + 58],
            at + 60,
        )
        if (
            data[at + 58 : at + 60] != b"`\n"
            or not size.strip().isdigit()
            or end + int(size) > len(data)
        ):
            raise ValueError(f"{path}: the static library is truncated or damaged at byte {at}")
        if name not in ("/", "//", "/SYM64/"):  # the index of symbols and the table of long names
            files.append(Path(folder) / f"{Path(path).stem}_{len(files)}.o")
            files[-1].write_bytes(data[end : end + int(size)])
        at = end + int(size) + int(size) % 2
    return files


def _merge(objects, output, fcompile, kwargs):
    """One object file of several."""
    if fcompile is None and linker():
        merge = tvm_ffi.get_global_func("codegen.link_relocatable")
        return merge([str(o) for o in objects], str(output))
    options = ["-r", "-nostdlib", *(kwargs.pop("options", None) or ())]
    if fcompile is not None:
        return fcompile(str(output), [str(o) for o in objects], options=options, **kwargs)
    from tvm.support import cc

    return cc.create_executable(str(output), [str(o) for o in objects], options, **kwargs)


def _write_source(files, output):
    """The code and the data of a module as one C file."""
    other = [f.name for f in files if f.suffix != ".c"]
    if other:
        raise ValueError(f"export_library: expected C sources for {output.name}, got {other}")
    output.write_text("".join(f.read_text() for f in files))


def _write_headers(mod, folder):
    """The headers of the modules that are exported as C, beside their sources."""
    headers = []
    for index, part in enumerate(_compiled(mod)):
        if "h" in list(part.get_write_formats()):
            headers.append(folder / f"lib{index}.h")
            part.write_to_file(str(headers[-1]), "h")
    return headers


def _write(suffix, files, output, folder, fcompile, kwargs):
    if suffix == ".c":
        _write_source(files, output)
    elif suffix == ".tar":
        from tvm.support.tar import tar

        tar(output, files)
    elif suffix == ".a":
        _archive(_objects(files, folder, "a static library"), output)
    elif suffix in (".o", ".obj"):
        objects = _objects(files, folder, "an object file")
        if len(objects) == 1:
            shutil.copyfile(objects[0], output)
        else:
            _merge(objects, output, fcompile, kwargs)
    else:
        link_shared(output, files, fcompile, **kwargs)


@contextlib.contextmanager
def workspace(folder):
    """A folder for intermediate files: the caller's, which stays, or a temporary one."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="tvm-") as name:
            yield Path(name)
    elif not os.path.isdir(folder):
        raise FileNotFoundError(
            f"export_library: the folder workspace_dir={folder!r} does not exist"
        )
    else:
        yield Path(folder)


def export_library(mod, file_name, *, fcompile=None, addons=None, workspace_dir=None, **kwargs):
    """Writes a module with everything it imports; the suffix says as what (.so, .o, .a, .tar, .c).

    Beside .o, .a and .c it writes a C header of the same name. Modules of target c are compiled
    here, except for .c and .tar and for `fcompile`, which get their sources. A library that a
    process has loaded under this name stays as it is: the new file replaces it.
    """
    output = Path(os.fspath(file_name))
    if not output.parent.is_dir():
        raise FileNotFoundError(f"export_library: the folder of {str(output)!r} does not exist")
    suffix = output.suffix
    if fcompile is not None and not suffix:
        suffix = "." + getattr(fcompile, "output_format", "so")
        output = output.with_suffix(suffix)
    with workspace(workspace_dir) as folder:
        as_source = fcompile is not None or suffix in (".c", ".tar")
        files = _collect(mod, folder, addons, as_source)
        headers = _write_headers(mod, folder) if suffix in (".c", ".tar") else []
        # Beside its place, so that renaming is atomic; with its suffix, which linkers look at.
        partial = output.with_name(f".{output.stem}.{os.getpid()}{suffix}")
        try:
            members = files + headers if suffix == ".tar" else files
            _write(suffix, members, partial, folder, fcompile, dict(kwargs))
            if suffix == ".c":
                output.with_suffix(".h").write_text("".join(h.read_text() for h in headers))
            if suffix in (".o", ".obj", ".a"):
                _header(_objects(files, folder, "a header"), output, output.with_suffix(".h"))
            os.replace(partial, output)
        finally:
            partial.unlink(missing_ok=True)
    return str(output)
