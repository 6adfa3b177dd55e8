# SPDX-License-Identifier: Apache-2.0
"""Linking code for AMD GPUs, and what is known about them and ROCm."""

import os
import re
import warnings
from pathlib import Path

from . import _tools, utils
from .clang import find_llvm_tool
from .nvcc import parse_compute_version as parse_compute_version  # the same form of numbers

_INSTALL = "install ROCm, or set ROCM_PATH to its folder"
# Device libraries, and the settings of theirs that our code generator assumes.
_BITCODE = (
    *("ocml", "ockl"),
    *("oclc_daz_opt_off", "oclc_unsafe_math_off", "oclc_finite_only_off"),
    *("oclc_correctly_rounded_sqrt_on", "oclc_wavefrontsize64_on"),
)


def find_lld(required=True):
    """Full paths of ld.lld, that of our own LLVM's version first; RuntimeError where none is."""
    folders = [os.path.join(root, "llvm", "bin") for root in _roots()]
    return find_llvm_tool("ld.lld", required, "install lld or ROCm", folders)


def rocm_link(in_file, out_file, lld=None):
    """Links a relocatable object for AMD GPUs into a shared one."""
    command = [*_tools.command_of(lld or find_lld()[0]), "-shared", in_file, "-o", out_file]
    _tools.run(command, f"link {out_file}", install="install lld or ROCm, or pass lld")


@_tools.register("tvm_callback_rocm_link")
def callback_rocm_link(obj_bin):
    """As rocm_link, from bytes to bytes."""
    with utils.tempdir() as temp:
        (temp / "in.o").write_bytes(obj_bin)
        rocm_link(temp.relpath("in.o"), temp.relpath("out.co"))
        return bytearray((temp / "out.co").read_bytes())


def _roots():
    wanted = os.environ.get("ROCM_PATH")
    return [wanted] if wanted else ["/opt/rocm"]


def find_rocm_path():
    """The folder of ROCm: ROCM_PATH, that of hipcc, /opt/rocm."""
    if (hipcc := utils.which("hipcc")) and not os.environ.get("ROCM_PATH"):
        return str(Path(os.path.realpath(hipcc)).parent.parent)
    found = next(filter(os.path.isdir, _roots()), None)
    if found is None:
        raise RuntimeError(f"cannot find ROCm in {_roots()[0]}; {_INSTALL}")
    return found


@_tools.register("tvm_callback_rocm_bitcode_path")
def callback_rocm_bitcode_path(rocdl_dir=None):
    """The paths of ROCm's device libraries, in a given folder or in that of ROCm."""
    folder = rocdl_dir or os.path.join(find_rocm_path(), "amdgcn", "bitcode")
    # ROCm before 3.9 put amdgcn into the names.
    candidates = ((f"{name}.bc", f"{name}.amdgcn.bc") for name in _BITCODE)
    paths = ([os.path.join(folder, name) for name in names] for names in candidates)
    found = [path for names in paths for path in names if os.path.exists(path)]
    if not found:
        raise RuntimeError(f"cannot find ROCm's device libraries in {folder}; {_INSTALL}")
    return found


@_tools.register("tvm_callback_rocm_get_arch")
def get_rocm_arch(rocm_path=None):
    """The architecture (gfx942) of the first AMD GPU, as rocminfo tells it."""
    rocminfo = os.path.join(rocm_path or find_rocm_path(), "bin", "rocminfo")
    listing = _tools.run([rocminfo], "get the architecture of the GPU", install=_INSTALL)
    match = re.search(r"^\s*Name:\s*(gfx\w+)", listing, re.MULTILINE)
    if match is None:
        raise RuntimeError("rocminfo lists no AMD GPU; pass the architecture to the target (-mcpu)")
    return match.group(1)


def have_matrixcore(compute_version=None):
    """Whether there are matrix cores: on gfx908, 90a, 94x, 95x, 11xx and later ones.

    A version such as "9.0" does not tell gfx900 from gfx908; it counts as the newer. Without one
    the current target or the GPU decides.
    """
    import tvm

    if compute_version is None:
        target = tvm.target.Target.current(allow_none=True)
        compute_version = str(target.attrs.get("mcpu", "")) if target is not None else ""
        if not compute_version and tvm.rocm(0).exist:
            compute_version = tvm.rocm(0).compute_version
        if not compute_version:
            warnings.warn("have_matrixcore: no version, target with -mcpu, or GPU", stacklevel=2)
            return False
    if match := re.fullmatch(r"gfx(\d+)(\d)([0-9a-f])", str(compute_version)):
        major, rest = int(match.group(1)), match.group(2) + match.group(3)
        return major >= 11 or (major == 9 and rest in ("08", "0a", "40", "41", "42", "50"))
    major = parse_compute_version(compute_version)[0]
    return major == 9 or major >= 11
