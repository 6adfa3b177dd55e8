# SPDX-License-Identifier: Apache-2.0
"""ApplyWinograd: convolutions of 3x3 windows by tiles, against float64 with a bound."""

import numpy as np
import pytest
import torch
import tvm
from tvm import relax, tir
from tvm.driver import explain
from tvm.relax.kernels import lower
from tvm.script import relax as R
from tvm.target import Target

F = torch.nn.functional
AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores="


def graph(data, weight, after=None, **attrs):
    """main(x) = after(conv2d(x, weight)); `data` is a shape, in which strings are variables."""
    known = {}
    dims = [known.setdefault(d, tir.Var(d, "int64")) if isinstance(d, str) else d for d in data]
    x = relax.Var("x", R.Tensor(dims, "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(relax.op.nn.conv2d(x, relax.const(weight, "float32"), **attrs))
            out = bb.emit_output(after(bb, y, x) if after else y)
        bb.emit_func_output(out)
    return bb.get()


def rules(mod, target=AVX512 + "1", **config):
    """{kernel: rule} of what a module becomes."""
    with tvm.transform.PassContext(config=config):
        rows = explain.kernels(lower(mod, target), Target(target))
    return {row["name"]: row["rule"] for row in rows}


def by_tiles(mod, target=AVX512 + "1", **config):
    return any("winograd" in name for name in rules(mod, target, **config))


def run(mod, x, target="llvm -num-cores=1", **config):
    with tvm.transform.PassContext(config=config):
        built = tvm.compile(mod, target)
    return relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def exact(x, w, padding):
    x, w = torch.from_numpy(x).double(), torch.from_numpy(w).double()
    if len(padding) == 4:
        top, left, bottom, right = padding
        return F.conv2d(F.pad(x, (left, right, top, bottom)), w).numpy()
    return F.conv2d(x, w, padding=padding).numpy()


def bound(x, w):
    """Tiles of the data are sums of 4 numbers, a result is one of 9 products of such: for each
    filter 16 times what a sum of products is off by, at the most."""
    sums = np.abs(w).astype("float64").sum((1, 2, 3))
    return 16 * (w.shape[1] + 16) * 2.0**-24 * np.abs(x).max() * sums[None, :, None, None]


SHAPES = [
    # images, channels, height, width, filters, padding
    (1, 64, 56, 56, 64, (1, 1)),
    (1, 128, 28, 28, 64, (1, 1)),
    (1, 256, 14, 14, 128, (1, 1)),
    (3, 32, 17, 23, 48, (1, 1)),
    (2, 48, 30, 12, 32, (0, 0)),
    (1, 64, 21, 40, 24, (2, 0, 1, 3)),
    (1, 40, 31, 29, 40, (0, 2)),
    (1, 32, 64, 3, 32, (1, 1)),
]


@pytest.mark.parametrize("cores", [1, 2, 16])
@pytest.mark.parametrize("n,c,h,w,o,padding", SHAPES)
def test_apply_winograd_is_near_the_exact_result(n, c, h, w, o, padding, cores):
    x, weight = random(n, c, h, w), random(o, c, 3, 3, seed=1)
    mod, target = graph(x.shape, weight, padding=list(padding)), f"llvm -num-cores={cores}"
    got, want = run(mod, x, target), exact(x, weight, padding)
    assert got.shape == want.shape
    assert (np.abs(got - want) <= bound(x, weight)).all()
    # A plain sum is twice as far off: here it is shown that tiles are no worse.
    by_windows = np.abs(run(mod, x, target, **{"relax.winograd": False}) - want)
    assert np.sqrt(((got - want) ** 2).mean()) <= 1.5 * np.sqrt((by_windows**2).mean())


def test_apply_winograd_of_random_shapes():
    rng = np.random.default_rng(7)
    applied = 0
    for seed in range(12):
        n, h, w = rng.integers(1, 3), *rng.integers(6, 40, 2)
        c, o = 8 * rng.integers(2, 17, 2)
        padding = [int(p) for p in rng.integers(0, 3, 4)]
        x = random(int(n), int(c), int(h), int(w), seed=seed)
        weight = random(int(o), int(c), 3, 3, seed=seed + 100)
        mod = graph(x.shape, weight, padding=padding)
        applied += by_tiles(mod, "llvm -num-cores=1")
        got = run(mod, x)
        assert (np.abs(got - exact(x, weight, padding)) <= bound(x, weight)).all(), seed
    assert applied > 3


@pytest.mark.parametrize("cores", [1, 2, 16])
def test_apply_winograd_takes_in_what_follows(cores):
    """One kernel with its bias, residual and activation, for which there is a rule."""
    x, weight, bias = random(1, 64, 28, 28), random(64, 64, 3, 3, seed=1), random(1, 64, 1, 1)

    def after(bb, y, x):
        y = bb.emit(relax.op.add(y, relax.const(bias)))
        return relax.op.nn.relu(bb.emit(relax.op.add(y, x)))

    mod = graph(x.shape, weight, after, padding=1)
    found = {name: rule for name, rule in rules(mod, AVX512 + str(cores)).items() if "wino" in name}
    assert list(found.values()) == ["Winograd"]
    got = run(mod, x, f"llvm -num-cores={cores}")
    want = np.maximum(exact(x, weight, (1, 1)) + bias + x, 0)
    assert (np.abs(got - want) <= bound(x, weight) + 1e-5).all()


def test_apply_winograd_leaves_what_it_does_not_pay_for():
    weight = random(64, 64, 3, 3)
    image = (1, 64, 56, 56)
    assert by_tiles(graph(image, weight, padding=1))
    assert not by_tiles(graph(image, weight, padding=1), **{"relax.winograd": False})
    assert not by_tiles(graph(image, weight, strides=2, padding=1))
    assert not by_tiles(graph(image, weight, dilation=2, padding=1))
    assert not by_tiles(graph(image, random(64, 64, 5, 5), padding=2))
    assert not by_tiles(graph(image, random(64, 32, 3, 3), padding=1, groups=2))
    assert not by_tiles(graph((1, 3, 56, 56), random(64, 3, 3, 3), padding=1))
    # Each factor is used for few tiles, and twice as many come from memory.
    assert not by_tiles(graph((1, 512, 7, 7), random(512, 512, 3, 3), padding=1))
    assert not by_tiles(graph((1, 64, 56, "w"), weight, padding=1))


@pytest.mark.parametrize("data", [("n", 64, 20, 20), (1, 64, "h", "w")])
def test_apply_winograd_of_sizes_that_are_not_known(data):
    weight, x = random(64, 64, 3, 3), random(1, 64, 20, 20)
    mod = graph(data, weight, padding=1)
    assert (np.abs(run(mod, x) - exact(x, weight, (1, 1))) <= bound(x, weight)).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_apply_winograd_spreads_no_further_than_windows(value):
    """NaN is NaN wherever a window has it; an infinity is one or NaN there; elsewhere results are
    what they would be without."""
    x, weight = random(1, 32, 40, 40), random(32, 32, 3, 3, seed=1)
    places = [(0, 0), (7, 12), (20, 21), (39, 39)]
    clean = x.copy()
    for y, z in places:
        x[0, 5, y, z], clean[0, 5, y, z] = value, 0
    mod = graph(x.shape, weight, padding=1)
    assert by_tiles(mod, "llvm -num-cores=1")
    got = run(mod, x)
    seen = np.zeros((40, 40), bool)
    for y, z in places:
        seen[max(0, y - 1) : y + 2, max(0, z - 1) : z + 2] = True
    assert not np.isfinite(got[..., seen]).any()
    if np.isnan(value):
        assert np.isnan(got[..., seen]).all()
    near = np.abs(got - exact(clean, weight, (1, 1))) <= bound(clean, weight)
    assert near[..., ~seen].all()


def test_apply_winograd_small_integers_are_exact():
    rng = np.random.default_rng(3)
    x = rng.integers(-8, 9, (1, 32, 24, 24)).astype("float32")
    weight = rng.integers(-8, 9, (32, 32, 3, 3)).astype("float32")
    mod = graph(x.shape, weight, padding=1)
    np.testing.assert_array_equal(run(mod, x), exact(x, weight, (1, 1)))
