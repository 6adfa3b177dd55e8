# SPDX-License-Identifier: Apache-2.0
"""FoldDequantize: products of dequantised bytes on the bytes themselves."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import relax
from tvm.relax import transform

HERE = tvm.testing.host_target("-num-cores=2")
random = np.random.default_rng(0)


def some(shape, dtype):
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max + 1, shape).astype(dtype)


def graph(x, build):
    """A function of one tensor of bytes."""
    var = relax.Var("x", relax.TensorStructInfo(x.shape, str(x.dtype)))
    bb = relax.BlockBuilder()
    with bb.function("main", [var]):
        with bb.dataflow():
            out = bb.emit_output(build(bb, var))
        bb.emit_func_output(out)
    return bb.get()


def dequantized(bb, x, scale, zero, axis=-1):
    scale, zero = np.asarray(scale, "float32"), np.asarray(zero)
    return bb.emit(relax.op.dequantize(x, relax.const(scale), relax.const(zero), axis=axis))


def exact(x, scale, zero, axis=0):
    shape = [1] * x.ndim
    if np.ndim(scale) == 1:
        shape[axis] = -1
    return (x.astype("float64") - float(zero)) * np.reshape(np.asarray(scale, "float64"), shape)


def run(mod, x):
    machine = relax.VirtualMachine(tvm.compile(mod, HERE), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(x)).numpy()


def convolved(x, w, padding, stride, groups=1):
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    views = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    views = views[:, :, ::stride, ::stride]
    parts = zip(np.split(views, groups, 1), np.split(w, groups, 0), strict=True)
    return np.concatenate([np.einsum("ncyxij,ocij->noyx", v, f) for v, f in parts], 1)


@pytest.mark.parametrize("padding, stride, groups", [(0, 1, 1), (1, 1, 1), (1, 2, 1), (1, 1, 2)])
@pytest.mark.parametrize("types", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")])
def test_convolutions(types, padding, stride, groups):
    """Around the image is the zero point, which stands for 0."""
    x, w = some((1, 8, 9, 11), types[0]), some((6, 8 // groups, 3, 3), types[1])
    zero = np.array(101, types[0])
    scales = random.random(6).astype("float32") + 0.1

    def build(bb, x):
        data = dequantized(bb, x, 0.02, zero)
        weight = dequantized(bb, relax.const(w), scales, np.zeros(6, types[1]), axis=0)
        y = bb.emit(
            relax.op.nn.conv2d(data, weight, strides=stride, padding=padding, groups=groups)
        )
        return relax.op.nn.relu(y)

    mod = graph(x, build)
    text = transform.FoldDequantize()(mod).script()
    assert 'out_dtype="int32"' in text and "R.dequantize" not in text
    want = convolved(exact(x, 0.02, zero), exact(w, scales, 0), padding, stride, groups)
    np.testing.assert_allclose(run(mod, x), np.maximum(want, 0), 1e-5, 1e-5 * np.abs(want).max())


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("zero", [np.int8(0), np.int8(7), np.int32(7)])
def test_products(zero, per_column):
    x, w = some((3, 20, 40), "int8"), some((40, 24), "int8")
    scale = random.random(24).astype("float32") + 0.1 if per_column else np.float32(0.3)

    def build(bb, x):
        data = dequantized(bb, x, [0.5], np.array([zero]))
        weight = dequantized(bb, relax.const(w), scale, np.zeros(np.shape(scale), "int8"), axis=1)
        return relax.op.matmul(data, weight)

    mod = graph(x, build)
    assert 'out_dtype="int32"' in transform.FoldDequantize()(mod).script()
    want = exact(x, 0.5, zero) @ exact(w, scale, 0, 1)
    np.testing.assert_allclose(run(mod, x), want, 1e-5, 1e-5 * np.abs(want).max())


@pytest.mark.parametrize(("size", "zero"), [(40_000, np.uint8(0)), (100, np.int32(30_000_000))])
def test_sums_that_int32_might_not_hold(size, zero):
    x, w = np.full((1, size), 255, "uint8"), np.full((size, 1), 255, "uint8")

    def build(bb, x):
        weight = dequantized(bb, relax.const(w), 0.5, np.uint8(0))
        return relax.op.matmul(dequantized(bb, x, 0.25, zero), weight)

    mod = graph(x, build)
    assert transform.FoldDequantize()(mod).same_as(mod)
    expected = exact(x, 0.25, zero) @ exact(w, 0.5, 0)
    np.testing.assert_allclose(run(mod, x), expected, rtol=1e-4)


def test_a_whole_island():
    """Dequantise, convolve, add a bias, quantise: within one step of float64."""
    x, w = some((1, 16, 8, 8), "uint8"), some((16, 16, 1, 1), "int8")
    bias = random.normal(0, 3, (1, 16, 1, 1)).astype("float32")

    def build(bb, x):
        data = dequantized(bb, x, 0.02, np.array(128, "uint8"))
        weight = dequantized(bb, relax.const(w), 0.01, np.array(0, "int8"))
        y = bb.emit(relax.op.nn.conv2d(data, weight))
        y = bb.emit(relax.op.add(y, relax.const(bias)))
        scale, zero = relax.const(np.float32(0.1)), relax.const(np.array(100, "uint8"))
        return relax.op.quantize(y, scale, zero, out_dtype="uint8")

    got = run(graph(x, build), x)
    y = convolved(exact(x, 0.02, 128), exact(w, 0.01, 0), 0, 1) + bias
    want = np.clip(np.round(y / 0.1) + 100, 0, 255)
    assert got.dtype == np.uint8 and np.abs(got - want).max() <= 1


def weight_zero(bb, x):
    weight = dequantized(bb, relax.const(some((40, 24), "int8")), 0.1, np.array(3, "int8"))
    return relax.op.matmul(dequantized(bb, x, 0.5, np.array(0, "int8")), weight)


def scales_of_data(bb, x):
    data = dequantized(bb, x, np.full(40, 0.5), np.zeros(40, "int8"))
    weight = dequantized(bb, relax.const(some((40, 24), "int8")), 0.1, np.array(0, "int8"))
    return relax.op.matmul(data, weight)


def plain_weight(bb, x):
    data = dequantized(bb, x, 0.5, np.array(0, "int8"))
    return relax.op.matmul(data, relax.const(random.random((40, 24)).astype("float32")))


def scales_along_the_sum(bb, x):
    weight = relax.const(some((40, 24), "int8"))
    weight = dequantized(bb, weight, np.full(40, 0.5), np.zeros(40, "int8"), axis=0)
    return relax.op.matmul(dequantized(bb, x, 0.5, np.array(0, "int8")), weight)


@pytest.mark.parametrize("build", [weight_zero, scales_of_data, plain_weight, scales_along_the_sum])
def test_others_stay(build):
    mod = graph(some((20, 40), "int8"), build)
    tvm.ir.assert_structural_equal(transform.FoldDequantize()(mod), mod)


def test_weights_whose_zero_points_can_be_taken_off():
    x = some((20, 40), "uint8")
    w, zero = random.integers(30, 230, (40, 24)).astype("uint8"), random.integers(110, 150, 24)
    zero, scale = zero.astype("uint8"), (random.random(24) + 0.1).astype("float32")

    def build(bb, x):
        weight = dequantized(bb, relax.const(w), scale, zero, axis=1)
        return relax.op.matmul(dequantized(bb, x, 0.5, np.array(3, "uint8")), weight)

    mod = graph(x, build)
    assert 'out_dtype="int32"' in transform.FoldDequantize()(mod).script()
    want = exact(x, 0.5, 3) @ ((w.astype("float64") - zero) * scale)
    np.testing.assert_allclose(run(mod, x), want, 1e-5, 1e-5 * np.abs(want).max())


def test_bytes_that_are_moved():
    """Reshaped, joined, cut and permuted between being dequantised and multiplied; the weight
    permuted with its scales."""
    x, w = some((4, 8, 10), "uint8"), some((24, 40), "int8")
    scale = (random.random(24) + 0.1).astype("float32")

    def build(bb, x):
        y = dequantized(bb, x, 0.5, np.array(3, "uint8"))
        y = bb.emit(relax.op.permute_dims(y, [1, 0, 2]))
        y = bb.emit(relax.op.reshape(y, (8, 40)))
        y = bb.emit(relax.op.concat([y, bb.emit(relax.op.strided_slice(y, [0], [2], [4]))], 0))
        weight = dequantized(bb, relax.const(w), scale, np.zeros(24, "int8"), axis=0)
        return relax.op.matmul(y, bb.emit(relax.op.permute_dims(weight)))

    mod = graph(x, build)
    text = transform.FoldDequantize()(mod).script()
    assert 'out_dtype="int32"' in text and "R.dequantize" not in text
    y = exact(x, 0.5, 3).transpose(1, 0, 2).reshape(8, 40)
    want = np.concatenate([y, y[2:4]]) @ exact(w, scale, 0, 0).T
    np.testing.assert_allclose(run(mod, x), want, 1e-5, 1e-5 * np.abs(want).max())


def test_a_result_for_all_pixels():
    """What follows a product of bytes may be far larger than it: it is not unrolled."""
    x, w = some((3, 1, 1, 8), "uint8"), some((1, 1, 1, 2, 32, 4), "int8")

    def build(bb, x):
        data = bb.emit(relax.op.permute_dims(dequantized(bb, x, 0.02, np.uint8(3)), [0, 3, 1, 2]))
        weight = relax.const(w.reshape(8, 32).T.reshape(32, 8, 1, 1).copy())
        weight = dequantized(bb, weight, 0.1, np.int8(0))
        y = bb.emit(relax.op.nn.conv2d(data, weight))
        return relax.op.broadcast_to(bb.emit(relax.op.sigmoid(y)), (3, 32, 16, 16))

    got = run(graph(x, build), x)
    y = exact(x, 0.02, 3)[:, 0, 0] @ (w.reshape(8, 32) * np.float64(np.float32(0.1)))
    want = np.broadcast_to((1 / (1 + np.exp(-y)))[:, :, None, None], got.shape)
    np.testing.assert_allclose(got, want, 1e-4, 1e-5)


@pytest.mark.parametrize("types", [("uint8", "uint8"), ("uint8", "int8"), ("int8", "uint8")])
@pytest.mark.parametrize("zeros", [(0, 0), (7, 0), (0, 9), (101, 20)])
def test_products_of_two_that_are_computed(types, zeros):
    x = some((2, 5, 33), types[0])

    def build(bb, x):
        y = bb.emit(relax.op.astype(bb.emit(relax.op.permute_dims(x, [0, 2, 1])), types[1]))
        a = dequantized(bb, x, 0.02, np.array(zeros[0], types[0]))
        b = dequantized(bb, y, 0.5, np.array(zeros[1], types[1]))
        return relax.op.matmul(a, b)

    mod = graph(x, build)
    text = transform.FoldDequantize()(mod).script()
    assert 'out_dtype="int32"' in text and "R.dequantize" not in text
    assert text.count("R.sum") == sum(z != 0 for z in zeros)
    y = x.transpose(0, 2, 1).astype(types[1])
    want = exact(x, 0.02, zeros[0]) @ exact(y, 0.5, zeros[1])
    np.testing.assert_allclose(run(mod, x), want, 1e-5, 1e-5 * np.abs(want).max())
