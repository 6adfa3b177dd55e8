# SPDX-License-Identifier: Apache-2.0
"""Attention in one kernel, against float64."""

import numpy as np
import pytest
import tvm
from tvm import relax, te, tir, topi

from tests.backend.cuda.attention import attention, expected
from tests.gpu.test_kernels import run
from tests.gpu.test_matrix_units import BOUND, NUMPY, random


def arrays(batch, rows, heads, size, keys=None, key_heads=None, out=None, dtype="float16"):
    keys, key_heads = keys or rows, key_heads or heads
    q = random((batch, rows, heads, size), dtype)
    k = random((batch, keys, key_heads, size), dtype)
    return q, k, random((batch, keys, key_heads, out or size), dtype)


def close(got, want, dtype="float16"):
    np.testing.assert_array_equal(np.isnan(got.astype("float32")), np.isnan(want))
    got, want = np.nan_to_num(got.astype("float64")), np.nan_to_num(want)
    assert np.linalg.norm(got - want) <= BOUND[dtype] * np.linalg.norm(want)


def check(*shape, bias=None, causal=None, window=None, scale=None, dtype="float16", **sizes):
    q, k, v = arrays(*shape, dtype=dtype, **sizes)
    b = [random(bias, dtype)] if bias else []
    out = np.full((*q.shape[:3], v.shape[3]), 77, NUMPY.get(dtype, dtype))
    func = attention(
        *shape, dtype=dtype, bias=bias, causal=causal, window=window, scale=scale, **sizes
    )
    got = run(func, q, k, v, *b, out)
    close(got, expected(q, k, v, *b, causal=causal, window=window, scale=scale), dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("rows", [1, 16, 77, 256, 1000])
@pytest.mark.parametrize("size", [64, 128])
def test_sizes(rows, size, dtype):
    check(2, rows, 3, size, dtype=dtype)


@pytest.mark.parametrize("size", [8, 24, 40, 72, 96, 160, 256])
def test_heads_of_any_size(size):
    check(1, 130, 2, size)
    check(1, 70, 2, size, keys=90, out=56)


@pytest.mark.parametrize("causal", ["TopLeft", "BottomRight"])
@pytest.mark.parametrize("rows, keys", [(256, 256), (100, 300), (300, 100), (1, 500), (1024, 1024)])
def test_causal(causal, rows, keys):
    check(2, rows, 2, 64, keys=keys, causal=causal)
    check(1, rows, 2, 64, keys=keys, causal=causal, window=30)


@pytest.mark.parametrize("bias", [(2, 4, 100, 150), (1, 1, 1, 150), (2, 1, 100, 150)])
def test_bias(bias):
    check(2, 100, 4, 64, keys=150, bias=bias)
    check(2, 100, 4, 64, keys=150, bias=bias, causal="TopLeft", scale=0.3)


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_grouped_heads(key_heads):
    check(2, 100, 8, 64, key_heads=key_heads, causal="TopLeft")


@pytest.mark.parametrize("key_heads", [1, 2, 8])
def test_decoding(key_heads):
    check(2, 1, 8, 128, keys=2000, key_heads=key_heads, dtype="bfloat16")
    check(2, 3, 8, 64, keys=333, key_heads=key_heads, causal="BottomRight")
    check(1, 4, 8, 64, keys=1000, key_heads=key_heads, bias=(1, 8, 4, 1000))


def test_many_heads():
    check(40, 33, 48, 32)


def test_special_values():
    q, k, v = arrays(1, 128, 1, 64, keys=192)
    bias = np.zeros((1, 1, 128, 192), "float16")
    bias[0, 0, 3] = -np.inf  # no key counts
    bias[0, 0, 5, :100] = -np.inf  # none of the first tile
    bias[0, 0, 7, 9] = np.nan
    bias[0, 0, 8, 9] = np.inf
    got = run(attention(1, 128, 1, 64, keys=192, bias=bias.shape), q, k, v, bias,
              np.full_like(q, 77))  # fmt: skip
    close(got, expected(q, k, v, bias))


def test_large_scores():
    q, k, v = arrays(1, 64, 2, 64)
    got = run(attention(1, 64, 2, 64, scale=1.0), q * 4, k * 4, v, np.full_like(q, 77))
    close(got, expected(q * 4, k * 4, v, scale=1.0))


def test_sizes_that_are_not_known():
    n, m = tir.SizeVar("n", "int64"), tir.SizeVar("m", "int64")
    mod = tvm.compile(attention(2, n, 4, 64, keys=m, causal="BottomRight", key_heads=2), "cuda")
    for rows, keys in [(1, 1), (1, 100), (64, 64), (100, 333), (129, 129)]:
        q, k, v = arrays(2, rows, 4, 64, keys, 2)
        args = [tvm.runtime.tensor(x, tvm.cuda(0)) for x in (q, k, v, np.full_like(q, 77))]
        mod(*args)
        close(args[-1].numpy(), expected(q, k, v, causal="BottomRight"))


def test_sequences_of_different_lengths():
    lengths = [3, 17, 30, 1]
    starts = np.cumsum([0, *lengths]).astype("int32")
    q, k, v = arrays(1, 51, 2, 64)
    tensors = [te.placeholder(q.shape, "float16", name=n) for n in "QKV"]
    S, T = (te.placeholder((5,), "int32", name=n) for n in "ST")
    O = topi.nn.attention_var_len(*tensors, S, T, None, "TopLeft")
    got = run(te.create_prim_func([*tensors, S, T, O]), q, k, v, starts, starts,
              np.full_like(q, 77))  # fmt: skip
    for a, length in zip(starts, lengths, strict=False):
        b = a + length
        parts = (x[:, a:b] for x in (q, k, v))
        close(got[:, a:b], expected(*parts, causal="TopLeft"))


def test_tensors_that_are_not_aligned():
    torch = pytest.importorskip("torch")
    mod = tvm.compile(attention(1, 100, 2, 64), "cuda")
    base = torch.randn(100 * 128 + 8, device="cuda", dtype=torch.float16)
    for shift in (0, 1, 4):
        x = base[shift : shift + 100 * 128].view(1, 100, 2, 64)
        out = torch.full_like(x, 77)
        mod(x, x, x, out)
        close(out.cpu().numpy(), expected(*[x.cpu().numpy()] * 3))


def test_graphs_that_spell_it_out():
    q, k, v = arrays(2, 40, 4, 32, keys=50)
    mask = random((2, 1, 1, 50), "float16")
    builder = relax.BlockBuilder()
    params = [
        relax.Var(n, relax.TensorStructInfo(x.shape, "float16"))
        for n, x in zip("qkvm", (q, k, v, mask), strict=True)
    ]
    with builder.function("main", params):
        with builder.dataflow():
            a, b, c = (relax.op.permute_dims(x, (0, 2, 1, 3)) for x in params[:3])
            scores = relax.op.matmul(a, relax.op.permute_dims(b, (0, 1, 3, 2)))
            scores = relax.op.multiply(scores, relax.const(0.25, "float16"))
            weights = relax.op.nn.softmax(relax.op.add(scores, params[3]))
            out = relax.op.permute_dims(relax.op.matmul(weights, c), (0, 2, 1, 3))
            out = builder.emit_output(builder.normalize(out))
        builder.emit_func_output(out)
    executable = tvm.compile(builder.get(), "cuda")
    (host,) = executable.mod.imports
    assert "softmax" not in host.imports[0].inspect_source()
    vm = relax.VirtualMachine(executable, tvm.cuda(0))
    got = vm["main"](*(tvm.runtime.tensor(x, tvm.cuda(0)) for x in (q, k, v, mask)))
    close(got.numpy(), expected(q, k, v, mask, scale=0.25))
