# SPDX-License-Identifier: Apache-2.0
"""Tensors and the storages they lie in."""

import pytest
from tvm.relax.transform import LowerAllocTensor

from .passes import check, module

TEXT = """
@R.function
def main(x: R.Tensor(("n", 3), "float32"), s: R.Shape(ndim=1)):
    n = T.int64()
    {}
    return a
"""


@pytest.mark.parametrize(
    "dims, dtype, scope, size",
    [
        ("2, 3", "float32", "global", "24"),
        ("n, 3", "float16", "global", "n * 6"),
        ("5", "int4", "global", "3"),
        ("0, 7", "float64", "global", "0"),
        ("2, 3", "float32", "global.texture", "2, 3"),
    ],
)
def test_storage(dims, dtype, scope, size):
    before = (
        f'a = R.builtin.alloc_tensor(R.shape([{dims}]), R.dtype("{dtype}"), '
        f'R.prim_value(1), R.str("{scope}"))'
    )
    after = (
        f'storage = R.memory.alloc_storage(R.shape([{size}]), R.prim_value(1), R.str("{scope}"), '
        f'R.dtype("{dtype}"))\n'
        f"    a = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([{dims}]), "
        f'R.dtype("{dtype}"), R.prim_value(1))'
    )
    check(LowerAllocTensor(), TEXT.format(before), TEXT.format(after))


def test_shape_that_is_not_known():
    line = 'a = R.builtin.alloc_tensor(s, R.dtype("int8"), R.prim_value(0), R.str("global"))'
    with pytest.raises(ValueError, match="expected a shape whose dimensions are known, got s"):
        LowerAllocTensor()(module(TEXT.format(line)))
