# SPDX-License-Identifier: Apache-2.0
"""What the passes of LLVM must do for default schedules to be fast."""

import re

import pytest
import tvm
import tvm.testing
from tvm import te, tir
from tvm.script import tir as T


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


def test_windows_do_not_copy_the_tile():
    """LLVM unrolled the rows and columns of a window, with the loop over channels in each: the code
    of a convolution was three times as large, took twice as long to compile, and was no faster."""
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver4 -num-cores=2"
    if not tvm.testing.device_enabled(target):
        pytest.skip(f"no code generator for {target} here")
    data, weight = te.placeholder((1, 4, 30, 30, 16)), te.placeholder((4, 4, 3, 3, 16, 16))
    axes = [te.reduce_axis((0, n)) for n in (4, 3, 3, 16)]
    rc, ry, rx, ri = axes
    out = te.compute(
        (1, 4, 28, 28, 16),
        lambda n, o, y, x, i: te.sum(
            data[n, rc, y + ry, x + rx, ri] * weight[o, rc, ry, rx, ri, i], axis=axes
        ),
    )
    func = te.create_prim_func([data, weight, out])
    text = tvm.compile(func, target=target).mod.inspect_source("asm")
    multiply_adds = len(re.findall(r"vfmadd\w+ps", text))
    assert 0 < multiply_adds <= 28  # one tile: of as many registers as there are, at most


def test_neighbours_share_the_start_of_their_addresses():
    """Each place of a tile had an index of its own, computed from the loops: half of the code that
    LLVM was given."""

    @T.prim_func
    def copy(a: T.Buffer((64, 64), "float32"), b: T.Buffer((64, 64), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in range(8):
            for j in T.unroll(16):
                b[i * 8, j * 4] = a[i * 8, j * 4 + 3]

    text = tvm.compile(copy, target="llvm -opt-level=0").mod.inspect_source("ll")
    assert len(re.findall(r"mul nsw i32", text)) <= 1
