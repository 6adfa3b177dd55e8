# SPDX-License-Identifier: Apache-2.0
"""A device with its target and memory, as scripts name it."""

from dataclasses import dataclass
from typing import Any

from .target import Target


@dataclass
class VirtualDevice:
    """A device, the target of its code, and a memory scope on it; each may be left open."""

    device: Any = None
    target: Any = None
    memory_scope: str = ""

    def __post_init__(self) -> None:
        self.target = Target.canon_target(self.target)

    def dlpack_device_type(self) -> int:
        """The type of the device, or of the target's devices; 0 where both are open."""
        if self.device is not None:
            return int(self.device.dlpack_device_type())
        return 0 if self.target is None else int(self.target.get_target_device_type())
