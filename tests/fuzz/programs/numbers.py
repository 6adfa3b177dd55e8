# SPDX-License-Identifier: Apache-2.0
"""What the generator knows about the values of types and of the expressions it makes."""

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import tvm_ffi

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
# Digits that a value of the type has: integers up to 2 ** digits are exact.
DIGITS = {
    "float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "float8_e3m4": 5, "float8_e4m3": 4,
    "float8_e4m3fn": 4, "float8_e4m3fnuz": 4, "float8_e4m3b11fnuz": 4, "float8_e5m2": 3,
    "float8_e5m2fnuz": 3, "float6_e2m3fn": 4, "float6_e3m2fn": 3, "float4_e2m1fn": 2,
}  # fmt: skip
FLOATS = list(DIGITS)
INDEX_LIMIT = 1 << 20  # index expressions stay far from overflow


def stored_bound(dtype):
    """Exact buffers of the type hold integers up to this."""
    return 4 if dtype.startswith(("float4", "float6")) else 8


def has_nan(dtype):
    """Without one, what a NaN becomes is not defined."""
    return not dtype.startswith(("float4", "float6"))


@dataclass(frozen=True)
class Value:
    """An expression and what is known of its value.

    `low` and `high` bound it; a floating-point value is a multiple of 2 ** -fraction unless it is
    only approximate.
    """

    node: object
    low: float
    high: float
    fraction: int = 0

    @property
    def bound(self):
        return max(abs(self.low), abs(self.high))

    def fits(self, dtype):
        """Whether every such value is exact in the type."""
        return self.bound * 2.0**self.fraction <= 2.0 ** DIGITS[dtype]


@dataclass(eq=False)
class Storage:
    """A buffer and how programs may use it.

    kind: "data" (integers of any value, exact floats), "wild" (inputs with NaN, infinities, ...),
    "approx" or "any" (outputs that are only written). `pinned` maps axes to the only index that the
    current scope may use there.
    """

    buffer: object
    shape: list  # of Value
    kind: str = "data"
    readable: bool = True
    writable: bool = True
    pinned: dict = None
    root: object = None  # what shares memory
    tolerance: list = field(default_factory=lambda: [0.0])  # shared by copies

    @property
    def dtype(self):
        return str(self.buffer.dtype)

    def copy(self, **changes):
        return Storage(**{**self.__dict__, **changes})


def scalar_type(dtype):
    """float32x4 -> float32"""
    name = str(dtype)
    return name if tvm_ffi.dtype(name).lanes == 1 else name[: name.rindex("x")]


def with_lanes(dtype, lanes):
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def numpy_type(dtype):
    return np.dtype(getattr(ml_dtypes, dtype, None) or dtype)


def int_range(dtype):
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def epsilon(dtype):
    return 2.0 ** (1 - DIGITS[dtype])


_SPECIAL = [0.0, -0.0, 1.0, -1.5, 0.1, 3.7, -2.5, 1e-3, 1e6, -1e20, np.inf, -np.inf, np.nan]


def fill(rng, kind, dtype, shape):
    """The contents of an argument."""
    size = int(np.prod(shape))
    if dtype == "bool":
        values = np.array([rng.random() < 0.5 for _ in range(size)], "bool")
    elif dtype in INTEGERS:
        low, high = int_range(dtype)
        corners = [0, 1, low, high, high // 3]
        values = np.array(
            [
                rng.choice(corners) if rng.random() < 0.3 else rng.randint(max(low, -9), 9)
                for _ in range(size)
            ],
            dtype,
        )
    elif kind == "wild":
        with np.errstate(all="ignore"):
            values = np.array([rng.choice(_SPECIAL) for _ in range(size)], "float32")
            values = values.astype(numpy_type(dtype))
    else:
        bound = stored_bound(dtype)
        values = np.array([rng.randint(-bound, bound) for _ in range(size)], "float32")
        values = values.astype(numpy_type(dtype))
    return values.reshape(shape)
