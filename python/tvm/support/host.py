# SPDX-License-Identifier: Apache-2.0
"""The machine this process runs on, as the operating system tells it."""

import os
import platform
import re

import tvm_ffi

_VECTOR = re.compile(r"sse4|avx|fma|f16c|amx|neon|asimd|^sve|^sme(?!p)|bf16|fphp|vnni|^v$")


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _field(text, *names):
    """The first `name : value` line of a /proc file, or ''."""
    for name in names:
        match = re.search(rf"^{name}\s*:\s*(.*)$", text, re.MULTILINE)
        if match:
            return match.group(1).strip()
    return ""


def vector_features(features):
    """Those that decide which code is generated."""
    return [f for f in features if _VECTOR.search(f)]


def _cuda_toolkit():
    """Version and place, or None."""
    from . import nvcc

    try:
        path = nvcc.find_cuda_path()
        return "{}.{} in {}".format(*nvcc.get_cuda_version(path), path)
    except RuntimeError:
        return None


def facts():
    cpuinfo, meminfo = _read("/proc/cpuinfo"), _read("/proc/meminfo")
    release = re.search(r'^PRETTY_NAME="?([^"\n]*)', _read("/etc/os-release"), re.MULTILINE)
    memory = _field(meminfo, "MemTotal").split()
    driver = re.search(r"Module\s+(?:for \S+\s+)?([\d.]+)", _read("/proc/driver/nvidia/version"))
    return {
        "os": release.group(1) if release else platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "cpu": _field(cpuinfo, "model name", "Model", "uarch") or platform.processor(),
        "cpus": os.cpu_count(),
        "cpus_available": tvm_ffi.get_global_func("runtime.available_cpus")(),
        "threads": tvm_ffi.get_global_func("runtime.NumThreads")(),
        "memory_gib": round(int(memory[0]) / 2**20, 1) if memory else None,
        "nvidia_driver": driver.group(1) if driver else None,
        "cuda_toolkit": _cuda_toolkit(),
        "cpu_features": sorted(_field(cpuinfo, "flags", "Features", "isa").split()),
    }
