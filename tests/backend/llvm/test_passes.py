# SPDX-License-Identifier: Apache-2.0
"""What the passes of LLVM must do for default schedules to be fast."""

import re

import pytest
import tvm
import tvm.testing
from tvm import te, tir


def test_tiles_at_margins_stay_in_registers():
    """A sum in memory is five times as slow: the conditions of the padding must be joined, or the
    tile does not become registers."""
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver4 -num-cores=2"
    if not tvm.testing.device_enabled(target):
        pytest.skip(f"no code generator for {target} here")
    a, w = te.placeholder((56, 56, 64), name="A"), te.placeholder((3, 3, 64), name="W")
    padded = te.compute(
        (58, 58, 64),
        lambda i, j, c: tir.if_then_else(
            tir.all(i >= 1, i < 57, j >= 1, j < 57), a[i - 1, j - 1, c], tir.const(0, "float32")
        ),
        name="P",
    )
    y, x = te.reduce_axis((0, 3), name="y"), te.reduce_axis((0, 3), name="x")
    out = te.compute(
        (56, 56, 64),
        lambda i, j, c: te.sum(padded[i + y, j + x, c] * w[y, x, c], axis=[y, x]),
        name="C",
    )
    text = tvm.compile(te.create_prim_func([a, w, out]), target=target).mod.inspect_source("asm")
    assert "vfmadd" in text
    assert not re.findall(r"%zmm\d+, .*\(%rsp\)", text)
