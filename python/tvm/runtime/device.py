# SPDX-License-Identifier: Apache-2.0
"""Devices: names and targets to devices, and what a device tells about itself."""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm_ffi import core

_api = {
    name: tvm_ffi.get_global_func("runtime." + name)
    for name in (
        "ParseDevice",
        "GetDeviceAttr",
        "Device_StreamCreate",
        "Device_StreamFree",
        "Device_SetStream",
        "Device_StreamSync",
    )
}

RPC_SESS_MASK = 128


def _attr(index, doc):
    return property(lambda self: _api["GetDeviceAttr"](self, index), doc=doc)


class Device(core.Device):
    """A device: its kind and index. Properties are None where the device does not know."""

    __slots__ = ()

    # In the order of DeviceAttr in device.h.
    exist = _attr(0, "Whether the device exists and this build has a runtime for it.")
    max_threads_per_block = _attr(1, "Largest number of threads in a block.")
    warp_size = _attr(2, "Threads that run in lockstep.")
    max_shared_memory_per_block = _attr(3, "Bytes of shared memory of a block.")
    compute_version = _attr(4, "Version of the instruction set, such as '9.0'.")
    device_name = _attr(5, "What the vendor calls it.")
    max_clock_rate = _attr(6, "Clock rate in kHz.")
    multi_processor_count = _attr(7, "Multiprocessors of a GPU, CPUs this process may use.")
    api_version = _attr(9, "Version of the interface the runtime was built for.")
    driver_version = _attr(10, "Version of the driver.")
    l2_cache_size_bytes = _attr(11, "Bytes of the second-level cache.")
    total_global_memory = _attr(12, "Bytes of memory.")
    available_global_memory = _attr(13, "Bytes of memory that are free.")

    @property
    def max_thread_dimensions(self) -> list[int] | None:
        """Largest extents of a block, as a list of three."""
        import json

        value = _api["GetDeviceAttr"](self, 8)
        return None if value is None else json.loads(str(value))

    def texture_spatial_limit(self) -> int | None:
        """Largest extent of a texture."""
        return _api["GetDeviceAttr"](self, 14)

    def create_raw_stream(self) -> int:
        """A new stream, as an integer handle; the caller ends it with free_raw_stream."""
        return _api["Device_StreamCreate"](self)

    def free_raw_stream(self, stream: int) -> None:
        """Ends a stream of create_raw_stream."""
        _api["Device_StreamFree"](self, stream)

    def set_raw_stream(self, stream: int) -> None:
        """Makes a stream the current one of this thread."""
        _api["Device_SetStream"](self, stream)

    def sync(self, stream: int | None = None) -> None:
        """Waits for everything queued on the stream, the current one by default."""
        _api["Device_StreamSync"](self, 0 if stream is None else stream)

    # As scripts for earlier versions spell them.
    device_type = property(lambda self: self.dlpack_device_type(), doc="The DLPack device type.")
    device_id = property(lambda self: self.index, doc="The index.")


core._set_class_device(Device)


def _kind_name(target):
    """The name ParseDevice knows, from anything that describes a target."""
    if isinstance(target, dict):
        target = target.get("kind", target.get("tag", ""))
    if isinstance(target, str):
        text = target.strip()
        if text.startswith("{"):
            import json

            return _kind_name(json.loads(text))
        if "/" in text.split(" ")[0].split(":")[0]:  # a tag such as nvidia/geforce-rtx-3090
            from tvm.target import Target

            return str(Target(text).kind.name)
        return text
    kind = getattr(target, "kind", None)
    if kind is not None:
        return str(getattr(kind, "name", kind))
    raise TypeError(f"device: expected a device name or a target, got {type(target).__name__}")


def device(target: Any, dev_id: int | None = None, *, index: int | None = None) -> core.Device:
    """The device of a name or a target: device("cpu"), device("cuda", 1), device("cuda:1"),
    device("llvm -mcpu=znver4")."""
    dev_id = index if dev_id is None else dev_id
    if isinstance(target, core.Device):
        return target
    if isinstance(target, int):
        return Device(target, dev_id)
    return _api["ParseDevice"](_kind_name(target), 0 if dev_id is None else int(dev_id))


def _constructor(name):
    def make(dev_id=0):
        return _api["ParseDevice"](name, dev_id)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The {name} device of an index."
    return make


cpu, cuda, rocm, opencl, metal, vpi, vulkan, ext_dev, hexagon, webgpu = map(
    _constructor,
    ("cpu", "cuda", "rocm", "opencl", "metal", "vpi", "vulkan", "ext_dev", "hexagon", "webgpu"),
)
