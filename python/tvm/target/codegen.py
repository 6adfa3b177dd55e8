# SPDX-License-Identifier: Apache-2.0
"""What the LLVM backend knows of targets."""

import tvm_ffi
from tvm._derive import fill

from .target import Target

_ir, _ = fill("tvm.ir")


def _llvm(name):
    if not _ir("LoadLLVM")():
        raise RuntimeError("expected the LLVM backend (libtvm_llvm), which is not installed")
    return tvm_ffi.get_global_func("target.llvm." + name)


def _parts(target):
    target = Target.canon_target(target) or Target.current() or Target("llvm")
    return str(target.attrs.get("mtriple", "")), str(target.attrs.get("mcpu", "")), target


def build_module(mod, target):
    """Runs the code generator of a target on a lowered module."""
    target = Target.canon_target(target)
    return tvm_ffi.get_global_func("target.build." + str(target.kind.name))(mod, target)


def target_has_features(cpu_features, target=None):
    """Whether a target has all of some CPU features."""
    features = [cpu_features] if isinstance(cpu_features, str) else cpu_features
    target = _parts(target)[2]
    return all(target.has_feature(f) for f in features)


llvm_cpu_has_features = target_has_features


def llvm_lookup_intrinsic_id(name):
    """The number of an LLVM intrinsic, 0 when there is none."""
    return _llvm("lookup_intrinsic_id")(name)


def llvm_get_intrinsic_name(intrin_id):
    """The name of an LLVM intrinsic."""
    return str(_llvm("intrinsic_name")(intrin_id))


def llvm_get_system_triple():
    """The triple of this machine."""
    return str(_llvm("host_cpu")()["triple"])


def llvm_get_system_cpu():
    """LLVM's name of this machine's CPU."""
    return str(_llvm("host_cpu")()["name"])


def llvm_get_system_x86_vendor():
    """The vendor of this machine's x86 CPU, or ""."""
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("vendor_id"):
                return {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(line.split()[-1], "")
    return ""


def llvm_get_targets():
    """The architectures this build generates code for."""
    return [str(name) for name in _llvm("targets")()]


def llvm_get_cpu_archlist(target=None):
    """The CPUs LLVM knows of an architecture."""
    return [str(name) for name in _llvm("cpu_archlist")(_parts(target)[0])]


def llvm_get_cpu_features(target=None):
    """The features of a target's CPU."""
    triple, cpu, _ = _parts(target)
    return [str(name) for name in _llvm("cpu_features")(triple, cpu)]


def llvm_get_vector_width(target=None):
    """Bits of the widest vectors of a target."""
    return _llvm("vector_width")(_parts(target)[2])


def llvm_version_major(allow_none=False):
    """The version of the LLVM inside, or None when there is none and that is allowed."""
    try:
        return int(str(_llvm("version")()).split(".")[0])
    except RuntimeError:
        if allow_none:
            return None
        raise
