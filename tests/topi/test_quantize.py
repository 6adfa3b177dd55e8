# SPDX-License-Identifier: Apache-2.0
"""Numbers as small integers with a scale."""

import numpy as np
import pytest
from tvm import te, topi

from .checking import check, values

A = values(3, 4, 5, low=-300, high=300)
SCALE, ZERO = values(4, seed=1, low=0.1, high=2), np.arange(4, dtype="int32")
LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2.0**31), 2.0**31)}


def simulated(a, dtype, scale=1.0, zero=0.0):
    if dtype == "disable":
        return a
    return np.clip(np.rint(a / scale) + zero, *LIMITS[dtype]).astype("float32")


@pytest.mark.parametrize("dtype", topi.nn.SQNN_DTYPE_TO_CODE)
def test_simulated(dtype):
    scale, zero = SCALE[:, None], ZERO[:, None]
    expected = simulated(A, dtype, scale, zero)
    back = expected if dtype == "disable" else (expected - zero) * scale
    quantize = lambda a, s, z: topi.nn.simulated_quantize(a, dtype, s, z, axis=1)
    dequantize = lambda a, s, z: topi.nn.simulated_dequantize(a, dtype, s, z, axis=-2)
    check(quantize, [A, SCALE, ZERO], expected)
    check(dequantize, [expected, SCALE, ZERO], back, rtol=1e-4, atol=1e-4)
    check(lambda a: topi.nn.simulated_quantize(a, dtype), [A], simulated(A, dtype))
    # The type is data.
    code = np.array(topi.nn.SQNN_DTYPE_TO_CODE[dtype], "int32")
    build = lambda a, c, s, z: topi.nn.simulated_quantize(a, c, s, z, axis=1)
    check(build, [A, code, SCALE, ZERO], expected)
    check(build, [A, code, SCALE[:1], ZERO[:1]], simulated(A, dtype, SCALE[0]), symbolic=True)


def test_wrong_arguments():
    x = te.placeholder((3, 4))
    with pytest.raises(ValueError, match="simulated_quantize: expected disable, int8, uint8"):
        topi.nn.simulated_quantize(x, "int4")
    with pytest.raises(ValueError, match="disable, int8, uint8, int32 or a code, got None"):
        topi.nn.simulated_quantize(x, None)
    with pytest.raises(
        ValueError, match="simulated_quantize: expected one per element of the axis"
    ):
        topi.nn.simulated_quantize(x, "int8", te.placeholder((3,)))
    with pytest.raises(ValueError, match="simulated_dequantize: expected one integer as the code"):
        topi.nn.simulated_dequantize(x, te.placeholder((3, 4), "int32"))


def test_fixed_point_along_axes():
    x = values(2, 3, 4, dtype="int32", low=-(2**20), high=2**20)
    y = values(3, dtype="int32", seed=1, low=2**29, high=2**31 - 1)
    left, right = np.array([0, 1, 3], "int32"), np.array([2, 0, 5], "int32")
    by = lambda a: a[:, None].astype("int64")
    product = (x.astype("int64") << by(left)) * by(y)
    shift = 31 + by(right)
    expected = ((product + (1 << (shift - 1))) >> shift).astype("int32")
    build = lambda x, y, l, r: topi.fixed_point_multiply_per_axis(x, y, l, r, True, True, [1])
    check(build, [x, y, left, right], expected)
    with pytest.raises(ValueError, match="fixed_point_multiply_per_axis: expected one for each"):
        t = [te.placeholder(s, "int32") for s in ((2, 3, 4), (2,), (2,), (2,))]
        topi.fixed_point_multiply_per_axis(*t, True, True, [1])
