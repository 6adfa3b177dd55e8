# SPDX-License-Identifier: Apache-2.0
"""Attention as one kernel on processors, against float64."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te, topi

torch = pytest.importorskip("torch")

HERE = tvm.testing.host_target("-num-cores=2")


def expected(q, k, v, bias=None, causal=None, window=None, scale=None):
    q, k, v = (x.astype("float64").transpose(0, 2, 1, 3) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) * (scale if scale is not None else q.shape[3] ** -0.5)
    if bias is not None:
        scores = scores + bias
    rows, columns = scores.shape[2:]
    last = np.arange(rows)[:, None] + (columns - rows if causal == "BottomRight" else 0)
    key = np.arange(columns)[None]
    allowed = np.ones((rows, columns), bool)
    if causal:
        allowed &= key <= last
    if window:
        allowed &= last - (window - 1) <= key
    scores = np.where(allowed, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(3, keepdims=True))
        weights /= weights.sum(3, keepdims=True)
    weights[np.isneginf(scores).all(3)] = 0  # of queries that see no key
    return (weights @ v).transpose(0, 2, 1, 3)


def tensors(shapes, seed=0):
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape).astype("float32") for shape in shapes]


def compiled(shapes, target=HERE, **options):
    names = ("q", "k", "v", "bias")
    inputs = [te.placeholder(s, "float32", n) for s, n in zip(shapes, names, strict=False)]
    with tvm.target.Target(target):
        out = topi.nn.attention(*inputs, **options)
    func = te.create_prim_func([*inputs, out])
    return func, tvm.build(func, target)


def check(shapes, causal=None, window=None, scale=None, target=HERE):
    options = {"causal_mask": causal, "window_size": window, "scale": scale}
    func, module = compiled(shapes, target, **options)
    assert "panels" in func.script()
    data = tensors(shapes)
    out = tvm.runtime.empty((*shapes[0][:3], shapes[2][3]), "float32")
    module(*(tvm.runtime.tensor(x) for x in data), out)
    np.testing.assert_allclose(
        out.numpy(), expected(*data, causal=causal, window=window, scale=scale), 2e-5, 2e-6
    )


def shapes_of(batch, queries, heads, size, keys=None, key_heads=None, out=None):
    key = (batch, queries if keys is None else keys, key_heads or heads, size)
    return [(batch, queries, heads, size), key, (*key[:3], out or size)]


@pytest.mark.parametrize(
    "shapes",
    [
        shapes_of(1, 128, 2, 64),
        shapes_of(2, 33, 3, 64, keys=129),
        shapes_of(1, 8, 4, 20, keys=300, key_heads=2, out=36),
        shapes_of(2, 40, 6, 32, key_heads=1),
        shapes_of(1, 100, 1, 80, keys=7, out=128),
        shapes_of(1, 31, 1, 1, keys=1, out=4),
    ],
)
def test_shapes(shapes):
    check(shapes)


@pytest.mark.parametrize("window", [None, 1, 20, 200])
@pytest.mark.parametrize("causal", [None, "TopLeft", "BottomRight"])
def test_masks(causal, window):
    check(shapes_of(1, 150, 2, 16, keys=260), causal, window, scale=0.3)


def test_queries_that_see_no_key_give_zeros():
    """40 of them at the end of 10 keys."""
    check(shapes_of(1, 40, 1, 16, keys=10), "BottomRight")


@pytest.mark.parametrize("queries, dtype", [(20, "float32"), (3, "float32"), (20, "float16")])
@pytest.mark.parametrize("causal", [None, "BottomRight"])
def test_hidden_rows_beside_numbers_that_are_none(queries, dtype, causal):
    """As PyTorch's scaled_dot_product_attention: 0 for the first, NaN for the others."""
    shapes = [*shapes_of(1, queries, 2, 16, keys=24), (1, 1, queries, 24)]
    data = [x.astype(dtype) for x in tensors(shapes)]
    data[3][:, :, 1] = -np.inf
    data[0][0, 2, 0, 0] = np.nan
    names = ("q", "k", "v", "bias")
    inputs = [te.placeholder(s, dtype, n) for s, n in zip(shapes, names, strict=True)]
    with tvm.target.Target(HERE):
        out = topi.nn.attention(*inputs, causal_mask=causal)
    module = tvm.build(te.create_prim_func([*inputs, out]), HERE)
    got = tvm.runtime.empty(shapes[0], dtype)
    module(*(tvm.runtime.tensor(x) for x in data), got)
    mask = torch.from_numpy(data[3])
    if causal:
        allowed = torch.ones(queries, 24).tril(24 - queries).bool()
        mask = mask.masked_fill(~allowed, -torch.inf)
    q, k, v = (torch.from_numpy(x).transpose(1, 2) for x in data[:3])
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2)
    assert not want[0, 1].any() and want[0, 2, 0].isnan().all()
    tolerance = 1e-5 if dtype == "float32" else 1e-2
    np.testing.assert_allclose(got.numpy(), want.numpy(), tolerance, tolerance)


@pytest.mark.parametrize("broadcast", ["2 3 20 140", "1 3 1 140", "2 1 20 140", "1 1 1 140"])
def test_bias(broadcast):
    bias = tuple(int(n) for n in broadcast.split())
    shapes = shapes_of(2, 20, 3, 16, keys=140)
    _, module = compiled([*shapes, bias])
    data = tensors([*shapes, bias])
    data[3][..., 5:131] = -np.inf  # a whole block of keys, and more
    out = tvm.runtime.empty(shapes[0], "float32")
    module(*(tvm.runtime.tensor(x) for x in data), out)
    np.testing.assert_allclose(out.numpy(), expected(*data), 2e-5, 2e-6)


def test_large_scores_and_special_numbers():
    shapes = shapes_of(1, 16, 1, 16, keys=256)
    q, k, v = tensors(shapes)
    q[0, 3] *= 1e4  # exp of such differences is 0 or 1
    k[0, 200, 0, 0] = np.inf
    q[0, 5, 0, 0] = 0  # 0 times infinity
    _, module = compiled(shapes)
    out = tvm.runtime.empty(shapes[0], "float32")
    module(*(tvm.runtime.tensor(x) for x in (q, k, v)), out)
    with np.errstate(all="ignore"):
        exact = expected(q, k, v)
    assert np.array_equal(np.isnan(out.numpy()), np.isnan(exact))
    np.testing.assert_allclose(out.numpy(), exact, 1e-4, 1e-5)


def test_lengths_known_when_it_runs():
    batch, queries, keys = te.var("b", "int64"), te.var("s", "int64"), te.var("t", "int64")
    shapes = shapes_of(batch, queries, 4, 32, keys=keys, key_heads=2)
    _, module = compiled(shapes, causal_mask="BottomRight")
    for sizes in [(1, 1, 1), (2, 33, 33), (1, 5, 140), (3, 64, 128), (1, 130, 257)]:
        concrete = shapes_of(sizes[0], sizes[1], 4, 32, keys=sizes[2], key_heads=2)
        data = tensors(concrete)
        out = tvm.runtime.empty(concrete[0], "float32")
        module(*(tvm.runtime.tensor(x) for x in data), out)
        np.testing.assert_allclose(
            out.numpy(), expected(*data, causal="BottomRight"), 2e-5, 2e-6, err_msg=str(sizes)
        )


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3", "skylake-avx512"])
def test_instruction_sets(cpu):
    """Vectors of each width: the code is made, and run where it can be."""
    shapes = shapes_of(1, 40, 2, 64, keys=200)
    target = f"llvm -num-cores=2 -mcpu={cpu}"
    try:
        check(shapes, "TopLeft", target=target)
    except ValueError as error:
        assert "lacks" in str(error)


@pytest.mark.parametrize(
    "shapes, dtype",
    [(shapes_of(1, 1, 2, 64, keys=40), "float32"), (shapes_of(1, 40, 2, 64), "float16")],
)
def test_others_are_steps(shapes, dtype):
    """One query is no product, and sums of float16 are another matter."""
    inputs = [te.placeholder(s, dtype, n) for s, n in zip(shapes, "qkv", strict=True)]
    with tvm.target.Target(HERE):
        func = te.create_prim_func([*inputs, topi.nn.attention(*inputs)])
    assert "panels" not in func.script()
