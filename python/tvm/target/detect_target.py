# SPDX-License-Identifier: Apache-2.0
"""The target of a device of this machine."""

from __future__ import annotations

from typing import Any

from tvm._derive import fill

from .target import Target

_target, _ = fill("tvm.target")


def detect_target_from_device(dev: Any) -> Target:
    """A Target for a device, or the name of one."""
    import tvm

    device = tvm.device(dev) if isinstance(dev, str) else dev
    kind = str(device).split(":")[0]
    if kind == "cpu":
        return _target("default_host")()
    if not device.exist:
        raise ValueError(f"from_device: expected a device that exists, got {device}")
    limits = {
        "max_shared_memory_per_block": device.max_shared_memory_per_block,
        "max_threads_per_block": device.max_threads_per_block,
        "thread_warp_size": device.warp_size,
    }
    if kind == "cuda":
        limits["arch"] = "sm_" + device.compute_version.replace(".", "")
    return Target({"kind": kind, **limits})
