# SPDX-License-Identifier: Apache-2.0
"""Memory and vectors of the interpreter."""

import builtins
import ctypes

import numpy as np

from tvm import error as tvm_error

_POISON = 0xFF


class Memory:
    """Bytes that a pointer can point into; `owner` keeps them alive."""

    def __init__(self, data, owner=None):
        self.bytes, self.owner = data, owner

    @classmethod
    def fresh(cls, size):
        return cls(np.full(size, _POISON, np.uint8))

    @classmethod
    def of_array(cls, array):
        """All bytes from the first element of `array` to its last, whatever its strides are."""
        span = 0
        if array.size:
            span = array.itemsize + sum(
                (n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)
            )
        raw = (ctypes.c_uint8 * span).from_address(array.ctypes.data)
        return cls(np.frombuffer(raw, np.uint8), array)


class Pointer:
    def __init__(self, memory, offset=0):
        self.memory, self.offset = memory, offset

    def __add__(self, size):
        return Pointer(self.memory, self.offset + size)

    def view(self, size, what):
        if self.memory is None or self.offset < 0 or self.offset + size > len(self.memory.bytes):
            raise IndexError(f"{what}: beyond the memory it points to")
        return self.memory.bytes[self.offset : self.offset + size]

    def address(self):
        return self.memory.bytes.ctypes.data + self.offset if self.memory else 0


NULL = Pointer(None)


class Return(Exception):
    pass


class Break(Exception):
    pass


class Continue(Exception):
    pass


def lanes_of(value):
    return value if isinstance(value, tuple) else (value,)


def as_value(values):
    return values[0] if len(values) == 1 else tuple(values)


def lane(value, i):
    return value[i] if isinstance(value, tuple) else value


def raise_error(name, message):
    kind = getattr(builtins, name, None) or getattr(tvm_error, name, RuntimeError)
    raise kind(message)


class Bound:
    """Entries of a dictionary for the time of a scope."""

    def __init__(self, values, entries):
        self.values, self.entries = values, entries

    def __enter__(self):
        self.before = {k: self.values[k] for k in self.entries if k in self.values}
        self.values.update(self.entries)

    def __exit__(self, *_):
        for key in self.entries:
            del self.values[key]
        self.values.update(self.before)


def to_numpy(value, t):
    with np.errstate(all="ignore"):
        return value if t.numpy.kind in "iubf" else np.float32(value).astype(t.numpy)


def as_array(arg):
    if isinstance(arg, np.ndarray):
        return arg
    if hasattr(arg, "numpy"):  # on the CPU a tensor shares its memory with the array
        array = np.from_dlpack(arg)
        return array
    raise TypeError(f"interpret: expected an array, got {type(arg).__name__}")
