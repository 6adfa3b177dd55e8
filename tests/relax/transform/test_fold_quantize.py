# SPDX-License-Identifier: Apache-2.0
"""FoldQuantize: scales are divided by each other, against float64."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import relax
from tvm.relax import transform

from .test_fold_dequantize import convolved, dequantized, exact, graph, run, some

random = np.random.default_rng(1)


def quantized(bb, x, scale, zero):
    scale, zero = np.asarray(scale, "float32"), np.asarray(zero)
    return bb.emit(
        relax.op.quantize(x, relax.const(scale), relax.const(zero), out_dtype=str(zero.dtype))
    )


def folded(mod):
    for step in (transform.FoldDequantize(), transform.FoldConstant(), transform.FoldQuantize()):
        mod = step(mod)
    assert relax.analysis.well_formed(mod)
    return transform.FoldConstant()(mod).script()


def near(got, real, zero):
    """Rounded to the nearest, as far as float32 tells."""
    info = np.iinfo(got.dtype)
    want = np.clip(real + zero, info.min, info.max)
    assert np.abs(got - want).max() < 0.501


@pytest.mark.parametrize("zero", [np.uint8(0), np.uint8(100), np.int8(-5)])
@pytest.mark.parametrize("is_relu", [False, True])
def test_convolution(zero, is_relu):
    x, w = some((1, 8, 9, 11), "uint8"), some((16, 8, 3, 3), "int8")
    scales = (random.random(16) + 0.1).astype("float32")
    bias = random.standard_normal((1, 16, 1, 1)).astype("float32") * 100

    def build(bb, x):
        data = dequantized(bb, x, 0.02, np.uint8(101))
        weight = dequantized(bb, relax.const(w), scales, np.zeros(16, "int8"), axis=0)
        y = bb.emit(relax.op.nn.conv2d(data, weight, padding=1))
        y = bb.emit(relax.op.add(y, relax.const(bias)))
        y = bb.emit(relax.op.nn.relu(y)) if is_relu else y
        return quantized(bb, y, 1.7, zero)

    mod = graph(x, build)
    text = folded(mod)
    assert "R.quantize" not in text and "R.divide" not in text and "R.round" in text
    real = convolved(exact(x, 0.02, 101), exact(w, scales, 0), 1, 1) + bias
    real = np.maximum(real, 0) if is_relu else real
    near(run(mod, x), real / np.float64(np.float32(1.7)), int(zero))


def test_sum_of_two():
    x = some((2, 40), "uint8")

    def build(bb, x):
        a, b = dequantized(bb, x, 0.02, np.uint8(3)), dequantized(bb, x, 0.31, np.uint8(200))
        return quantized(bb, bb.emit(relax.op.add(a, b)), 0.4, np.uint8(128))

    text = folded(graph(x, build))
    assert text.count("R.dequantize") == 2 and "R.quantize" not in text
    real = exact(x, np.float32(0.02), 3) + exact(x, np.float32(0.31), 200)
    near(run(graph(x, build), x), real / np.float64(np.float32(0.4)), 128)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_largest_of_a_window(dtype):
    """Numbers that only were looked at as floats stay what they are."""
    x, zero = some((1, 4, 9, 9), dtype), np.array(7, dtype)

    def build(bb, x):
        y = relax.op.nn.max_pool2d(dequantized(bb, x, 0.3, zero), [3, 3], [2, 2], [1, 1, 1, 1])
        return quantized(bb, bb.emit(y), 0.3, zero)

    mod = graph(x, build)
    text = folded(mod)
    assert "R.quantize" not in text and "R.dequantize" not in text
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=np.iinfo(dtype).min)
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    np.testing.assert_array_equal(run(mod, x), views.max((-1, -2)))


def test_what_stays():
    """Floats that were not computed from integers, scales that are tiny or one per element."""
    x = some((4, 8), "uint8")

    def of_floats(bb, x):
        y = bb.emit(relax.op.exp(dequantized(bb, x, 0.01, np.uint8(3))))
        return quantized(bb, y, 0.3, np.uint8(0))

    def tiny(bb, x):
        y = dequantized(bb, x, 1e-38, np.uint8(3))
        return quantized(bb, y, 1e-38 * 0.7, np.uint8(0))

    def along_an_axis(bb, x):
        y = dequantized(bb, x, 0.01, np.uint8(3))
        return quantized(bb, y, np.full(8, 0.02, "float32"), np.zeros(8, "uint8"))

    for build in (of_floats, tiny, along_an_axis):
        mod = graph(x, build)
        after = transform.FoldQuantize()(mod)
        tvm.ir.assert_structural_equal(after, mod)
