# SPDX-License-Identifier: Apache-2.0
"""Operators of neural networks."""

from tvm import te
from tvm._derive import fill

from .utils import (
    get_pad_tuple,
    get_pad_tuple1d,
    get_pad_tuple3d,
    get_pad_tuple_generic,
    get_padded_shape,
)

POOL_TYPE_CODE = {"avg": 0, "max": 1}
# What simulated_quantize takes as the type to simulate, where that is data.
SQNN_DISABLE, SQNN_INT8, SQNN_UINT8, SQNN_INT32 = range(4)
SQNN_DTYPE_TO_CODE = {
    "disable": SQNN_DISABLE,
    "int8": SQNN_INT8,
    "uint8": SQNN_UINT8,
    "int32": SQNN_INT32,
}
SQNN_CODE_TO_DTYPE = {code: dtype for dtype, code in SQNN_DTYPE_TO_CODE.items()}

__getattr__, __dir__ = fill(__name__)
