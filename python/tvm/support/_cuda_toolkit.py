# SPDX-License-Identifier: Apache-2.0
"""Where CUDA is: in a toolkit, or in the wheels that pip installs."""

import ctypes
import glob
import json
import os
import re
import shutil
import sys
from pathlib import Path

from . import _tools

INSTALL = "install a CUDA toolkit, or set CUDA_HOME to the folder of one"


def _is_root(folder):
    return (folder / "bin" / "nvcc").exists() or (folder / "include" / "cuda.h").exists()


def _root_of_nvcc(program):
    """nvcc may be a link or a script that starts another one: it knows its place itself."""
    for folder in (Path(program).parent.parent, Path(os.path.realpath(program)).parent.parent):
        if (folder / "nvvm").exists():
            return folder
    listing = _tools.run(
        [program, "--dryrun", "-x", "cu", os.devnull], "ask nvcc for its folder", merge=True
    )
    top = re.search(r"^#\$ TOP=(.*)$", listing, re.MULTILINE)
    return Path(os.path.normpath(top.group(1).strip())) if top else None


def wheel_folders():
    """The folders of NVIDIA's wheels that hold `lib`, `include` and others."""
    found = (glob.glob(os.path.join(entry, "nvidia", "*")) for entry in sys.path)
    return [Path(folder) for group in found for folder in sorted(group, reverse=True)]


def _root_of_environment():
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if value := os.environ.get(name):
            if not _is_root(Path(value)):
                raise RuntimeError(f"{name}: expected the folder of a CUDA toolkit, got {value}")
            return Path(value)
    return None


def nvcc():
    """The compiler: that of the environment's toolkit, then of PATH, then of any toolkit."""
    if folder := _root_of_environment():
        return folder / "bin" / "nvcc"
    return shutil.which("nvcc") or root() / "bin" / "nvcc"


def root():
    """The folder of the toolkit; RuntimeError where there is none."""
    if folder := _root_of_environment():
        return folder
    if (program := shutil.which("nvcc")) and (folder := _root_of_nvcc(program)):
        return folder
    others = [Path("/usr/local/cuda"), Path("/opt/cuda"), *wheel_folders()]
    found = next(filter(_is_root, others), None)
    if found is None:
        raise RuntimeError(f"cannot find CUDA; {INSTALL}")
    return found


def roots():
    """The toolkit, if there is one, then the wheels."""
    try:
        return [root(), *wheel_folders()]
    except RuntimeError:
        return wheel_folders()


def version(folder):
    """(major, minor) of a toolkit."""
    try:
        text = json.loads((folder / "version.json").read_text())["cuda"]["version"]
    except (OSError, ValueError, KeyError):
        program = folder / "bin" / "nvcc"
        found = None
        if program.exists():
            shown = _tools.run([program, "--version"], "get the version of CUDA", install=INSTALL)
            found = re.search(r"release (\d+\.\d+)", shown)
        elif (folder / "include" / "cuda.h").exists():
            header = (folder / "include" / "cuda.h").read_text(errors="replace")
            if number := re.search(r"#define\s+CUDA_VERSION\s+(\d+)", header):
                return int(number.group(1)) // 1000, int(number.group(1)) % 1000 // 10
        if found is None:
            raise RuntimeError(f"cannot find the version of the CUDA toolkit in {folder}") from None
        text = found.group(1)
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def _newest(paths):
    def key(path):
        return [int(number) for number in re.findall(r"\d+", path.partition(".so")[2])]

    return max((p for p in paths if ".alt." not in p), key=key, default=None)


def load_library(name, install):
    """A library of CUDA (`nvrtc`): the toolkit's, a wheel's, or one that the loader finds."""
    tried = []
    for folder in roots():
        for below in ("lib64", "lib", "targets/*/lib"):
            path = _newest(glob.glob(str(folder / below / f"lib{name}.so*")))
            if path is not None:
                # NVRTC of a wheel does not always find this one, which it loads when it compiles.
                if builtins := _newest(glob.glob(str(folder / below / f"lib{name}-builtins.so*"))):
                    ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
                return ctypes.CDLL(path)
    for suffix in (".so", ".so.13", ".so.12", ".so.11.2"):
        try:
            return ctypes.CDLL(f"lib{name}{suffix}")
        except OSError as error:
            tried.append(str(error))
    raise RuntimeError(f"cannot load lib{name}: {tried[0]}; {install}")
