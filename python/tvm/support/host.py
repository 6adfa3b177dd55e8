# SPDX-License-Identifier: Apache-2.0
"""The machine this process runs on, as the operating system tells it."""

import os
import platform
import re

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


def cpu_limit(root="/sys/fs/cgroup", membership="/proc/self/cgroup"):
    """The number of CPUs the control group grants, or None: the tightest limit up to the root."""
    limits = []
    for line in _read(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2: "<quota or max> <period>"
            base, name = root, "cpu.max"
        elif "cpu" in controllers.split(","):
            base, name = os.path.join(root, "cpu"), "cpu.cfs_quota_us"
        else:
            continue
        folder = path.strip("/")
        while True:
            here = os.path.join(base, folder)
            words = _read(os.path.join(here, name)).split()
            if name == "cpu.cfs_quota_us":
                words += _read(os.path.join(here, "cpu.cfs_period_us")).split()
            if len(words) == 2 and words[0] not in ("max", "-1"):
                limits.append(int(words[0]) / int(words[1]))
            if not folder:
                break
            folder = os.path.dirname(folder)
    return min(limits, default=None)


def vector_features(features):
    """Those that decide which code is generated."""
    return [f for f in features if _VECTOR.search(f)]


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
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "cpu_limit": cpu_limit(),
        "memory_gib": round(int(memory[0]) / 2**20, 1) if memory else None,
        "nvidia_driver": driver.group(1) if driver else None,
        "cpu_features": sorted(_field(cpuinfo, "flags", "Features", "isa").split()),
    }
