# SPDX-License-Identifier: Apache-2.0
"""BlockChannels: convolutional networks on channels in blocks, against PyTorch."""

import numpy as np
import pytest
import torch
import tvm
from tvm import ir, relax
from tvm.relax import transform
from tvm.script import relax as R
from tvm.target import Target

from ..legalize.evaluate import evaluate

RNG = np.random.default_rng(0)
F = torch.nn.functional


def array(*shape):
    return RNG.standard_normal(shape).astype("float32")


def const(a):
    return relax.const(a, "float32")


def blocked(shape, build, lanes=8):
    """(the graph in blocks, what it computes, the input)."""
    x = relax.Var("x", R.Tensor(shape, "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(build(bb, x))
        bb.emit_func_output(out)
    after = transform.BlockChannels(lanes)(bb.get())
    assert relax.analysis.well_formed(after)
    data = array(*shape)
    kernels = transform.FoldConstant()(transform.LegalizeOps()(after))
    return after, evaluate(kernels, [data]), torch.from_numpy(data)


def ops(mod):
    return [
        b.value.op.name.removeprefix("relax.")
        for block in mod["main"].body.blocks
        for b in block.bindings
        if isinstance(b.value, relax.Call) and isinstance(b.value.op, ir.Op)
    ]


def layouts_of(mod):
    return [
        b.value.attrs.out_layout
        for b in mod["main"].body.blocks[0].bindings
        if getattr(getattr(b.value, "op", None), "name", "") == "relax.nn.conv2d"
    ]


def near(got, want):
    want = want.numpy()
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()


def test_block_channels_of_a_chain():
    w, b, v = array(16, 8, 3, 3), array(1, 16, 1, 1), array(24, 16, 1, 1)

    def build(bb, x):
        y = bb.emit(relax.op.nn.conv2d(x, const(w), 2, 1))
        y = bb.emit(relax.op.nn.relu(relax.op.add(y, const(b))))
        return relax.op.nn.conv2d(y, const(v))

    after, got, x = blocked((2, 8, 9, 9), build)
    want = F.conv2d(
        F.relu(F.conv2d(x, torch.from_numpy(w), None, 2, 1) + torch.from_numpy(b)),
        torch.from_numpy(v),
    )
    near(got, want)
    kept = [
        op for op in ops(transform.FoldConstant()(after)) if op not in ("reshape", "permute_dims")
    ]
    assert kept == ["nn.conv2d", "add", "nn.relu", "nn.conv2d"]
    # One way in, one way out.
    assert ops(transform.FoldConstant()(after)).count("permute_dims") == 2


def test_block_channels_first_layer_reads_what_it_is_given():
    w = array(16, 3, 7, 7)
    after, got, x = blocked((1, 3, 20, 20), lambda bb, x: relax.op.nn.conv2d(x, const(w), 2, 3))
    near(got, F.conv2d(x, torch.from_numpy(w), None, 2, 3))
    (call,) = (
        b.value
        for b in after["main"].body.blocks[0].bindings
        if getattr(b.value.op, "name", "") == "relax.nn.conv2d"
    )
    layouts = call.attrs.data_layout, call.attrs.kernel_layout, call.attrs.out_layout
    assert layouts == ("NCHW", "OIHW8o", "NCHW8c")


def test_block_channels_follows_pools_reductions_and_residuals():
    w, u, d = array(16, 16, 3, 3), array(16, 16, 1, 1), array(16, 1, 3, 3)

    def build(bb, x):
        y = bb.emit(relax.op.nn.conv2d(x, const(w), padding=1))
        z = bb.emit(relax.op.nn.conv2d(relax.op.clip(y, 0, 6), const(d), padding=1, groups=16))
        z = bb.emit(relax.op.add(relax.op.nn.conv2d(z, const(u)), y))
        z = bb.emit(relax.op.nn.max_pool2d(z, (3, 3), (2, 2), (1, 1)))
        z = bb.emit(relax.op.nn.avg_pool2d(z, (2, 2), (1, 1)))
        return relax.op.mean(z, [2, 3])

    after, got, x = blocked((1, 16, 10, 10), build)
    W, U, D = map(torch.from_numpy, (w, u, d))
    y = F.conv2d(x, W, padding=1)
    z = F.conv2d(F.conv2d(F.relu6(y), D, padding=1, groups=16), U) + y
    near(got, F.avg_pool2d(F.max_pool2d(z, 3, 2, 1), 2, 1).mean((2, 3)))
    assert ops(transform.FoldConstant()(after)).count("permute_dims") == 1  # the input


def test_block_channels_gate():
    """A tensor of one element per channel that multiplies all others."""
    w, u = array(16, 16, 3, 3), array(16, 16, 1, 1)

    def build(bb, x):
        y = bb.emit(relax.op.nn.conv2d(x, const(w), padding=1))
        s = bb.emit(relax.op.nn.adaptive_avg_pool2d(y, (1, 1)))
        s = bb.emit(relax.op.sigmoid(relax.op.nn.conv2d(s, const(u))))
        return relax.op.multiply(y, s)

    _, got, x = blocked((1, 16, 6, 6), build)
    y = F.conv2d(x, torch.from_numpy(w), padding=1)
    near(got, y * torch.sigmoid(F.conv2d(y.mean((2, 3), keepdim=True), torch.from_numpy(u))))


def test_block_channels_what_sees_tensors_as_they_were():
    w = array(16, 16, 1, 1)

    def build(bb, x):
        y = bb.emit(relax.op.nn.conv2d(x, const(w)))
        z = bb.emit(relax.op.nn.softmax(y, 1))
        return relax.op.add(bb.emit(relax.op.nn.relu(y)), relax.op.add(z, x))

    _, got, x = blocked((1, 16, 5, 5), build)
    y = F.conv2d(x, torch.from_numpy(w))
    near(got, F.relu(y) + torch.softmax(y, 1) + x)


def test_block_channels_half_vectors_and_halo_of_other_sizes():
    w, u = array(12, 16, 3, 3), array(10, 12, 1, 1)

    def build(bb, x):
        return relax.op.nn.conv2d(bb.emit(relax.op.nn.conv2d(x, const(w))), const(u))

    after, got, x = blocked((1, 16, 6, 6), build)
    near(got, F.conv2d(F.conv2d(x, torch.from_numpy(w)), torch.from_numpy(u)))
    assert layouts_of(after) == ["NCHW4c", "NCHW"]


def test_block_channels_stays_out():
    """Weights that are not known, symbolic shapes, other types, plain blocks, no processor."""
    n = tvm.tir.Var("n", "int64")
    w = const(array(16, 16, 1, 1))
    cases = [
        ([(1, 16, 5, 5), (16, 16, 1, 1)], "float32", lambda x, v: relax.op.nn.conv2d(x, v)),
        ([(n, 16, 5, 5)], "float32", lambda x: relax.op.nn.conv2d(x, w)),
        (
            [(1, 16, 5, 5)],
            "float16",
            lambda x: relax.op.nn.conv2d(x, relax.const(array(16, 16, 1, 1), "float16")),
        ),
        ([(1, 16, 5, 5)], "float32", lambda x: relax.op.nn.relu(x)),
    ]
    for shapes, dtype, build in cases:
        params = [relax.Var(f"x{i}", R.Tensor(s, dtype)) for i, s in enumerate(shapes)]
        bb = relax.BlockBuilder()
        with bb.function("main", params):
            with bb.dataflow():
                out = bb.emit_output(build(*params))
            bb.emit_func_output(out)
        mod = bb.get()
        assert transform.BlockChannels(8)(mod).same_as(mod)
    with Target("cuda"):
        assert transform.BlockChannels()(mod).same_as(mod)


@pytest.mark.parametrize("mcpu, lanes", [("haswell", 8), ("skylake-avx512", 16)])
def test_block_channels_takes_the_vector_of_the_target(mcpu, lanes):
    x = relax.Var("x", R.Tensor((1, 16, 5, 5), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(relax.op.nn.conv2d(x, const(array(16, 16, 1, 1))))
        bb.emit_func_output(out)
    with Target({"kind": "llvm", "mcpu": mcpu}):
        after = transform.BlockChannels()(bb.get())
    assert f"NCHW{lanes}c" in after.script()


@pytest.mark.parametrize("image", [(9,), (4, 5, 6)])
def test_block_channels_of_lines_and_volumes(image):
    n = len(image)
    w, d, b = array(16, 8, *[3] * n), array(16, 1, *[3] * n), array(16, *[1] * n)
    conv, convolve = getattr(relax.op.nn, f"conv{n}d"), getattr(F, f"conv{n}d")
    pool, pooled = getattr(relax.op.nn, f"max_pool{n}d"), getattr(F, f"max_pool{n}d")

    def build(bb, x):
        y = bb.emit(relax.op.nn.gelu(relax.op.add(conv(x, const(w), padding=1), const(b))))
        y = bb.emit(conv(y, const(d), padding=1, groups=16, strides=2))
        return relax.op.mean(pool(y, [2] * n, [2] * n), list(range(2, n + 2)))

    after, got, x = blocked((2, 8, *image), build)
    W, D, B = map(torch.from_numpy, (w, d, b))
    y = convolve(F.gelu(convolve(x, W, padding=1) + B), D, padding=1, stride=2, groups=16)
    near(got, pooled(y, 2).mean(tuple(range(2, n + 2))))
    assert ops(transform.FoldConstant()(after)).count("permute_dims") == 1  # the input


@pytest.mark.parametrize("axis", [1, -3])
def test_block_channels_joins_channels(axis):
    w, v, u = array(16, 8, 3, 3), array(24, 8, 1, 1), array(16, 40, 1, 1)

    def build(bb, x):
        y = bb.emit(relax.op.nn.conv2d(x, const(w), padding=1))
        z = bb.emit(relax.op.nn.conv2d(x, const(v)))
        both = bb.emit(relax.op.concat([y, z], axis=axis))
        return relax.op.nn.conv2d(both, const(u))

    after, got, x = blocked((2, 8, 5, 6), build)
    y = F.conv2d(x, torch.from_numpy(w), padding=1)
    near(got, F.conv2d(torch.cat([y, F.conv2d(x, torch.from_numpy(v))], 1), torch.from_numpy(u)))
    assert ops(transform.FoldConstant()(after)).count("permute_dims") == 2


@pytest.mark.parametrize("other, axis", [((2, 12, 5, 6), 1), ((2, 16, 5, 6), 2)])
def test_block_channels_joins_nothing_else(other, axis):
    """Blocks of other sizes, and what lies behind each other along the image."""
    w, more = array(16, 8, 1, 1), array(*other)

    def build(bb, x):
        y = bb.emit(relax.op.nn.conv2d(x, const(w)))
        return relax.op.concat([y, const(more)], axis=axis)

    _, got, x = blocked((2, 8, 5, 6), build)
    near(got, torch.cat([F.conv2d(x, torch.from_numpy(w)), torch.from_numpy(more)], axis))


def test_block_channels_fills_up_vectors():
    """20 channels are 24, wherever they go; what is read again has 20."""
    w, d, u = array(20, 8, 3, 3), array(20, 1, 3, 3), array(20, 20, 3, 3)
    b, s = array(1, 20, 1, 1), array(36, 20, 1, 1)

    def build(bb, x):
        y = bb.emit(relax.op.add(bb.emit(relax.op.nn.conv2d(x, const(w), padding=1)), const(b)))
        z = bb.emit(relax.op.nn.conv2d(y, const(d), padding=1, groups=20))
        z = bb.emit(relax.op.add(bb.emit(relax.op.nn.conv2d(z, const(u), padding=1)), y))
        z = bb.emit(relax.op.nn.max_pool2d(z, (3, 3), (2, 2), (1, 1)))
        gate = bb.emit(relax.op.sigmoid(bb.emit(relax.op.mean(z, [2, 3], keepdims=True))))
        z = bb.emit(relax.op.multiply(z, gate))
        return bb.emit(relax.op.concat([bb.emit(relax.op.nn.conv2d(z, const(s))), z], 1))

    after, got, x = blocked((2, 8, 9, 9), build)
    W, D, U, B, S = map(torch.from_numpy, (w, d, u, b, s))
    y = F.conv2d(x, W, padding=1) + B
    z = F.conv2d(F.conv2d(y, D, padding=1, groups=20), U, padding=1) + y
    z = F.max_pool2d(z, 3, 2, 1)
    z = z * torch.sigmoid(z.mean((2, 3), keepdim=True))
    near(got, torch.cat([F.conv2d(z, S), z], 1))
    assert layouts_of(after) == ["NCHW4c", "NCHW4c", "NCHW4c", "NCHW4c"]  # they are joined

    def alone(bb, x):
        y = bb.emit(relax.op.nn.relu(bb.emit(relax.op.nn.conv2d(x, const(w), padding=1))))
        z = bb.emit(relax.op.nn.conv2d(y, const(d), padding=1, groups=20))
        z = bb.emit(relax.op.add(bb.emit(relax.op.nn.conv2d(z, const(u), padding=1)), y))
        z = bb.emit(relax.op.nn.max_pool2d(z, (3, 3), (2, 2), (1, 1)))
        means = bb.emit(relax.op.mean(z, [2, 3], keepdims=True))
        return bb.emit(relax.op.multiply(z, bb.emit(relax.op.sigmoid(means))))

    after, got, x = blocked((2, 8, 9, 9), alone)
    y = F.relu(F.conv2d(x, W, padding=1))
    z = F.max_pool2d(F.conv2d(F.conv2d(y, D, padding=1, groups=20), U, padding=1) + y, 3, 2, 1)
    near(got, z * torch.sigmoid(z.mean((2, 3), keepdim=True)))
    assert layouts_of(after) == ["NCHW8c"] * 3


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_block_channels_fills_up_with_what_is_no_worse(value):
    """What fills a vector up has no infinity that the channels have not, whatever follows."""
    w, u = np.abs(array(20, 8, 1, 1)) + 0.1, np.abs(array(16, 20, 1, 1)) + 0.1
    x = relax.Var("x", R.Tensor((1, 8, 3, 3), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(relax.op.nn.conv2d(x, const(w)))
            y = bb.emit(relax.op.divide(const(np.float32(1)), y))  # of 0 it would be infinite
            y = bb.emit(relax.op.divide(const(np.float32(1)), y))
            out = bb.emit_output(relax.op.nn.conv2d(y, const(u)))
        bb.emit_func_output(out)
    after = transform.BlockChannels(8)(bb.get())
    assert layouts_of(after)[0] == "NCHW8c"
    data = np.abs(array(1, 8, 3, 3)) + 1
    data[0, 3, 1, 1] = value
    got = evaluate(transform.FoldConstant()(transform.LegalizeOps()(after)), [data])
    W, U = map(torch.from_numpy, (w, u))
    want = F.conv2d(1 / (1 / F.conv2d(torch.from_numpy(data), W)), U).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4)
    assert np.isfinite(want).sum() == want.size - 16


def test_block_channels_joins_channels_that_half_vectors_divide():
    w, u = array(20, 8, 1, 1), array(12, 8, 1, 1)

    def build(bb, x):
        y = [bb.emit(relax.op.nn.relu(bb.emit(relax.op.nn.conv2d(x, const(a))))) for a in (w, u)]
        return relax.op.concat(y, 1)

    after, got, x = blocked((1, 8, 5, 5), build)
    near(got, torch.cat([F.relu(F.conv2d(x, torch.from_numpy(a))) for a in (w, u)], 1))
    assert layouts_of(after) == ["NCHW4c", "NCHW4c"]


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear"])
def test_block_channels_follows_images_of_other_sizes(method):
    w = array(16, 8, 1, 1)

    def build(bb, x):
        y = bb.emit(relax.op.nn.conv2d(x, const(w)))
        mode = "asymmetric" if method == "nearest_neighbor" else "half_pixel"
        sizes = {"coordinate_transformation_mode": mode, "rounding_method": "floor"}
        y = bb.emit(relax.op.image.resize2d(y, (10, 10), method=method, **sizes))
        return relax.op.nn.relu(y)

    after, got, x = blocked((1, 8, 5, 5), build)
    mode = "nearest" if method == "nearest_neighbor" else "bilinear"
    near(got, F.relu(F.interpolate(F.conv2d(x, torch.from_numpy(w)), (10, 10), mode=mode)))
    kept = [op for op in ops(transform.FoldConstant()(after)) if op.startswith(("image", "nn"))]
    assert kept == ["nn.conv2d", "image.resize2d", "nn.relu"]
    assert "NCHW8c" in after.script().split("resize2d")[1]
