# SPDX-License-Identifier: Apache-2.0
"""Where the libraries and headers of this package are."""

import os
from pathlib import Path

from . import _libs

_PACKAGE = Path(__file__).resolve().parent


def split_env_var(env_var, split):
    """The parts of an environment variable, without blanks; none where it is not set."""
    return [part.strip() for part in os.environ.get(env_var, "").split(split) if part.strip()]


def get_dll_directories():
    """The folders that may hold the libraries and exist."""
    return [str(folder) for folder in _libs.search_path() if folder.is_dir()]


def _existing(paths, what, optional):
    found = [str(path) for path in paths if path.exists()]
    if not found and not optional:
        looked = "\n".join(f"  {path}" for path in paths)
        raise RuntimeError(f"{what}: none of these exists:\n{looked}")
    return found or None


def find_lib_path(name=None, search_path=None, optional=False):
    """Files of the project's libraries (or of those named), in order of search."""
    extra = [search_path] if isinstance(search_path, str) else list(search_path or ())
    folders = [*map(Path, extra), *_libs.search_path()]
    names = [name] if isinstance(name, str) else list(name or map(_libs.file_name, _libs.NAMES))
    return _existing([f / n for f in folders for n in names], "find_lib_path", optional)


def find_include_path(name=None, search_path=None, optional=False):
    """Folders to compile C++ against this package: ours and those of the object layer."""
    import tvm_ffi

    extra = [search_path] if isinstance(search_path, str) else list(search_path or ())
    if name is not None:
        names = [name] if isinstance(name, str) else list(name)
        return _existing([Path(f) / n for f in extra for n in names], "find_include_path", optional)
    ours = [_PACKAGE / "include", _PACKAGE.parent.parent / "include"]
    found = _existing([*map(Path, extra), *ours], "find_include_path", optional) or []
    ffi = [tvm_ffi.libinfo.find_include_path(), tvm_ffi.libinfo.find_dlpack_include_path()]
    return list(dict.fromkeys([*found[:1], *map(str, ffi)]))
