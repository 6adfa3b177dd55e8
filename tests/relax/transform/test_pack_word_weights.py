# SPDX-License-Identifier: Apache-2.0
"""PackWordWeights: products of bytes and of bfloat16 by constant weights in words, against
NumPy."""

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import relax, tir
from tvm.relax import transform
from tvm.script import relax as R
from tvm.target import Target

from tests.schedule.test_dot_products import BYTES, FLOATS, runs_here, target_of

from .test_fold_dequantize import convolved, some


def graph(shape, dtype, build):
    x = relax.Var("x", R.Tensor(shape, dtype))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(build(x))
        bb.emit_func_output(out)
    return bb.get()


def product(shape, dtype, w):
    out = "float32" if dtype == "bfloat16" else "int32"
    weight = relax.const(tvm.runtime.tensor(w))
    return graph(shape, dtype, lambda x: relax.op.matmul(x, weight, out_dtype=out))


def convolution(shape, dtype, w, **attrs):
    layouts = {"data_layout": "NHWC", "kernel_layout": "OHWI", "out_layout": "NHWC"}
    return graph(
        shape,
        dtype,
        lambda x: relax.op.nn.conv2d(x, relax.const(w), out_dtype="int32", **layouts, **attrs),
    )


def constants(mod):
    found = []
    relax.analysis.post_order_visit(
        mod["main"], lambda e: found.append(e) if isinstance(e, relax.Constant) else None
    )
    return [(tuple(c.data.shape), str(c.data.dtype)) for c in found if c.data.ndim > 0]


def packed(mod, target):
    with Target(target):
        after = transform.PackWordWeights()(mod)
        assert relax.analysis.well_formed(after)
        return transform.FoldConstant()(after)


def here(cpu):
    return f"llvm -num-cores=2 -mcpu={cpu}"


def run(mod, x, target):
    machine = relax.VirtualMachine(tvm.compile(mod, target), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(x)).numpy()


@pytest.mark.parametrize(
    "cpu, dtype, layout",
    [
        ("cascadelake", "uint8", [((3, 8, 32, 4), "int8")]),
        ("alderlake", "uint8", [((6, 8, 16, 4), "int8")]),
        ("sierraforest", "int8", [((6, 8, 16, 4), "int8")]),
        ("skylake-avx512", "uint8", [((3, 16, 32, 2), "int16")]),
        ("x86-64-v3", "int8", [((6, 16, 16, 2), "int16")]),
        # The other sign: what 128 adds to each column is subtracted.
        ("cascadelake", "int8", [((3, 8, 32, 4), "int8"), ((96,), "int32")]),
    ],
)
def test_panels_of_words(cpu, dtype, layout):
    w = some((32, 96), "int8")
    after = packed(product((5, 32), dtype, w), target_of(cpu))
    assert sorted(constants(after)) == sorted(layout)
    words = next(c for c in after["main"].body.blocks[0].bindings if "matmul" in str(c.value))
    panels = words.value.args[1][1].data.numpy()
    rows, columns = panels.shape[1] * panels.shape[3], panels.shape[0] * panels.shape[2]
    np.testing.assert_array_equal(panels.transpose(1, 3, 0, 2).reshape(rows, columns), w)


@pytest.mark.parametrize("cpu", [cpu for cpu in BYTES if cpu != "znver4"])
@pytest.mark.parametrize("types", [("uint8", "int8"), ("int8", "int8")])
def test_products(cpu, types):
    """All columns, or some panel filled up; whole words or not; one row and an unknown number."""
    if not runs_here(cpu, BYTES[cpu][1]):
        pytest.skip(f"not a {cpu}")
    for rows, columns, depth in [(7, 64, 32), (1, 33, 67), (33, 100, 5)]:
        x, w = some((rows, depth), types[0]), some((depth, columns), types[1])
        want = x.astype("int64") @ w.astype("int64")
        mod = product((rows, depth), types[0], w)
        np.testing.assert_array_equal(run(mod, x, here(cpu)), want)
    n = tir.Var("n", "int64")
    got = run(product((n, depth), types[0], w), x, here(cpu))
    np.testing.assert_array_equal(got, want)


def halves(shape, seed=0):
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    return values.astype(ml_dtypes.bfloat16)


def test_bfloat16_in_pairs():
    after = packed(product((5, 32), "bfloat16", halves((32, 96))), target_of("znver4"))
    assert constants(after) == [((3, 16, 32, 2), "bfloat16")]
    for other in "sapphirerapids", "skylake-avx512":  # tiles of their own, no such instruction
        after = packed(product((5, 32), "bfloat16", halves((32, 96))), target_of(other))
        assert constants(after) == [((32, 96), "bfloat16")]


@pytest.mark.parametrize("rows", [1, 7, 33, None])
def test_products_of_bfloat16(rows):
    cpu = "znver4"
    if not runs_here(cpu, FLOATS[cpu][1]):
        pytest.skip(f"not a {cpu}")
    for columns, depth in [(64, 32), (33, 67), (100, 5)]:
        x, w = halves((rows or 9, depth)), halves((depth, columns), 1)
        mod = product((rows or tir.Var("n", "int64"), depth), "bfloat16", w)
        want = x.astype("float64") @ w.astype("float64")
        np.testing.assert_allclose(run(mod, x, here(cpu)), want, 1e-5, 1e-5)


@pytest.mark.parametrize(
    "cpu, dtype", [("cascadelake", "int8"), ("alderlake", "uint8"), ("x86-64-v3", "uint8")]
)
def test_convolutions(cpu, dtype):
    if not runs_here(cpu, BYTES[cpu][1]):
        pytest.skip(f"not a {cpu}")
    cases = [(16, 32, 3, 1, 1), (3, 40, 7, 2, 3)]
    for channels, filters, window, stride, padding in cases:
        x, w = (
            some((1, channels, 9, 11), dtype),
            some((filters, channels, window, window), "int8"),
        )
        want = convolved(x.astype("int64"), w.astype("int64"), padding, stride)
        mod = convolution(
            (1, 9, 11, channels),
            dtype,
            np.ascontiguousarray(w.transpose(0, 2, 3, 1)),
            strides=stride,
            padding=padding,
        )
        got = run(mod, np.ascontiguousarray(x.transpose(0, 2, 3, 1)), here(cpu))
        np.testing.assert_array_equal(got.transpose(0, 3, 1, 2), want)


def test_what_stays():
    """Few columns, weights that are not constant, groups, other layouts, machines without words."""
    w = some((32, 64), "int8")
    mod = product((4, 32), "uint8", w)
    for target in [target_of("sapphirerapids"), "cuda", "c"]:
        with Target(target):
            assert transform.PackWordWeights()(mod).same_as(mod)
    assert transform.PackWordWeights()(mod).same_as(mod)
    filters = some((32, 3, 3, 16), "int8")
    others = [
        product((4, 32), "uint8", w[:, :5]),
        convolution((1, 9, 9, 32), "uint8", filters, groups=2),
        graph((4, 32), "uint8", lambda x: relax.op.matmul(x, relax.op.permute_dims(x), "int32")),
        graph(
            (1, 16, 9, 9),
            "uint8",
            lambda x: relax.op.nn.conv2d(
                x, relax.const(filters.transpose(0, 3, 1, 2).copy()), out_dtype="int32"
            ),
        ),
    ]
    for other in others:
        with Target(target_of("cascadelake")):
            assert transform.PackWordWeights()(other)["main"].same_as(other["main"])
