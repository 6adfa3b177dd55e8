# SPDX-License-Identifier: Apache-2.0
"""ApplySubPixel and BlockChannels: transposed convolutions as plain ones, against PyTorch."""

import numpy as np
import pytest
import torch
import tvm
from tvm import ir, relax, tir
from tvm.relax import transform
from tvm.script import relax as R
from tvm.target import Target

from ..legalize.evaluate import evaluate

RNG = np.random.default_rng(0)
F = torch.nn.functional
HOST = "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -num-cores=1"


def array(*shape):
    return RNG.standard_normal(shape).astype("float32")


def graph(shape, weight, **attrs):
    op = relax.op.nn.conv1d_transpose if len(shape) == 3 else relax.op.nn.conv2d_transpose
    x = relax.Var("x", R.Tensor(shape, "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op(x, relax.const(weight, "float32"), **attrs))
            out = bb.emit_output(relax.op.nn.relu(y))
        bb.emit_func_output(out)
    return bb.get()


def applied(mod, target=HOST):
    with Target(target):
        return transform.ApplySubPixel()(mod)


def ops(mod):
    return [
        b.value.op.name.removeprefix("relax.")
        for block in mod["main"].body.blocks
        for b in block.bindings
        if isinstance(b.value, relax.Call) and isinstance(b.value.op, ir.Op)
    ]


def exact(x, w, strides, padding, output_padding, groups):
    function = F.conv_transpose1d if x.ndim == 3 else F.conv_transpose2d
    n = x.ndim - 2
    x, w = torch.from_numpy(x).double(), torch.from_numpy(w).double()
    whole = F.relu(function(x, w, stride=strides, groups=groups))
    size = [
        (x.shape[2 + i] - 1) * strides[i] + w.shape[2 + i] - padding[i] - padding[n + i]
        + output_padding[i] for i in range(n)
    ]  # fmt: skip
    margins = []
    for i in reversed(range(n)):
        margins += [-padding[i], padding[i] + size[i] - whole.shape[2 + i]]
    return F.pad(whole, margins).numpy()


CASES = [
    # data, weight, strides, padding, output_padding, groups
    ((2, 16, 5, 6), (16, 24, 4, 4), (2, 2), (1, 1, 1, 1), (0, 0), 1),
    ((1, 16, 5, 6), (16, 8, 2, 2), (2, 2), (0, 0, 0, 0), (0, 0), 1),
    ((1, 8, 5, 6), (8, 16, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1),
    ((1, 8, 5, 6), (8, 3, 5, 4), (3, 2), (0, 2, 3, 1), (2, 0), 1),
    ((2, 8, 4, 4), (8, 4, 3, 3), (1, 1), (1, 0, 2, 1), (0, 0), 2),
    ((1, 12, 3, 5), (12, 5, 4, 3), (2, 3), (1, 0, 0, 1), (1, 2), 3),
    ((1, 16, 1, 1), (16, 16, 4, 4), (1, 1), (0, 0, 0, 0), (0, 0), 1),
    ((1, 16, 1, 4), (16, 8, 3, 2), (2, 3), (1, 0, 0, 0), (1, 2), 1),
    ((1, 8, 4, 4), (8, 8, 1, 1), (3, 3), (0, 0, 0, 0), (2, 0), 1),
    ((1, 8, 3, 3), (8, 8, 5, 5), (1, 1), (3, 3, 3, 2), (0, 0), 1),
    ((2, 8, 9), (8, 16, 4), (2,), (1, 1), (0,), 1),
    ((1, 6, 7), (6, 5, 7), (3,), (2, 4), (2,), 2),
]


@pytest.mark.parametrize("data, weight, strides, padding, more, groups", CASES)
@pytest.mark.parametrize("in_blocks", [False, True])
def test_apply_sub_pixel(data, weight, strides, padding, more, groups, in_blocks):
    x, w = array(*data), array(*weight)
    attrs = {"strides": strides, "padding": padding, "output_padding": more, "groups": groups}
    mod = graph(data, w, **attrs)
    after = transform.BlockChannels(8)(mod) if in_blocks else mod
    after = applied(after)
    assert relax.analysis.well_formed(after)
    assert not any("transpose" in op for op in ops(after))
    kernels = transform.FoldConstant()(transform.LegalizeOps()(after))
    want = exact(x, w, strides, padding, more, groups)
    got = evaluate(kernels, [x])
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    built = relax.VirtualMachine(tvm.compile(mod, "llvm -num-cores=1"), tvm.cpu())
    compiled = built["main"](tvm.runtime.tensor(x)).numpy()
    np.testing.assert_allclose(compiled, want, rtol=1e-4, atol=1e-4)


def test_apply_sub_pixel_multiplies_no_zeros():
    """Strides divide the window: as many products as there are elements and weights."""
    mod = graph((1, 16, 6, 6), array(16, 8, 4, 4), strides=(2, 2), padding=(1, 1))
    values = [b.value for b in applied(mod)["main"].body.blocks[0].bindings]
    calls = [value for value in values if isinstance(value, relax.Call)]
    (call,) = (call for call in calls if getattr(call.op, "name", "") == "relax.nn.conv2d")
    assert [int(s) for s in call.args[1].struct_info.shape] == [32, 16, 2, 2]
    assert [int(s) for s in call.struct_info.shape] == [1, 32, 7, 7]


def test_apply_sub_pixel_of_a_batch_that_is_not_known():
    n = tir.Var("n", "int64")
    w = array(8, 4, 4, 4)
    mod = applied(graph((n, 8, 5, 5), w, strides=(2, 2), padding=(1, 1)))
    assert "nn.conv2d" in ops(mod)
    x = array(3, 8, 5, 5)
    got = evaluate(transform.LegalizeOps()(mod), [x])
    want = exact(x, w, (2, 2), (1, 1, 1, 1), (0, 0), 1)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_apply_sub_pixel_weights_that_are_not_known():
    x = relax.Var("x", R.Tensor((1, 8, 5, 5), "float32"))
    w = relax.Var("w", R.Tensor((8, 4, 3, 3), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, w]):
        with bb.dataflow():
            out = bb.emit_output(relax.op.nn.conv2d_transpose(x, w, strides=(2, 2)))
        bb.emit_func_output(out)
    after = applied(bb.get())
    assert "nn.conv2d" in ops(after)
    a, b = array(1, 8, 5, 5), array(8, 4, 3, 3)
    want = F.conv_transpose2d(torch.from_numpy(a), torch.from_numpy(b), stride=2).numpy()
    got = evaluate(transform.LegalizeOps()(after), [a, b])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_apply_sub_pixel_stays_out():
    """Images of unknown size, windows with holes, other layouts, no processor."""
    h = tir.Var("h", "int64")
    w = array(8, 4, 3, 3)
    mods = [
        graph((1, 8, h, 5), w),
        graph((1, 8, 5, 5), w, dilation=(2, 2)),
        graph((1, 5, 5, 8), w, data_layout="NHWC"),
    ]
    for mod in mods:
        assert applied(mod)["main"].same_as(mod["main"])
    plain = graph((1, 8, 5, 5), w)
    assert applied(plain, "cuda")["main"].same_as(plain["main"])
