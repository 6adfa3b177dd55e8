# SPDX-License-Identifier: Apache-2.0
"""Attention: when it is one kernel, what that looks like, and that NVIDIA's compiler takes it."""

import re

import pytest
from tvm import te, tir, topi

from tests.backend.cuda.attention import attention
from tests.backend.cuda.test_codegen import (  # noqa: F401
    kernels_of,
    needs_nvrtc,
    text_of,
    text_only,
)


@pytest.mark.parametrize("dtype, name", [("float16", "f16"), ("bfloat16", "bf16")])
def test_scores_are_never_stored(text_only, dtype, name):  # noqa: F811
    fast, plain = kernels_of(text_of(attention(4, 4096, 16, 128, dtype=dtype)))
    assert f"mma.sync.aligned.m16n8k16.row.col.f32.{name}.{name}.f32" in fast
    assert f"cvt_rn_{name}x2_f32" in fast and "ex2_approx_ftz_f32" in fast
    assert "cp.async.cg.shared.global" in fast and "__launch_bounds__(128)" in fast
    assert "cp.async.cg" not in plain and "mma.sync" in plain  # for what is not aligned


@pytest.mark.parametrize(
    "options",
    [
        {"causal": "TopLeft"},
        {"causal": "BottomRight", "window": 16, "keys": 200},
        {"bias": (2, 8, 100, 100)},
        {"bias": (2, 1, 1, 100), "key_heads": 2, "causal": "TopLeft"},
        {"out": 32, "scale": 0.5},
        {"dtype": "bfloat16", "key_heads": 1},
    ],
)
def test_one_kernel(text_only, options):  # noqa: F811
    assert len(kernels_of(text_of(attention(2, 100, 8, 64, **options)))) == 2


def test_tiles_without_keys_that_count_are_left_out(text_only):  # noqa: F811
    def steps(**options):
        fast = kernels_of(text_of(attention(1, 4096, 8, 64, **options)))[0]
        (loop,) = re.findall(r"for \(int32_t step = 0; step < (.*); \+\+step\)", fast)
        return loop

    assert steps() == "64"
    assert "end" in steps(causal="TopLeft") and "begin" not in steps(causal="TopLeft")
    assert "begin" in steps(causal="TopLeft", window=100)


def test_sizes_that_are_not_known(text_only):  # noqa: F811
    n, m = tir.SizeVar("n", "int64"), tir.SizeVar("m", "int64")
    for options in ({}, {"causal": "BottomRight"}, {"key_heads": 2}):
        fast, _ = kernels_of(text_of(attention(2, n, 8, 64, keys=m, **options)))
        assert "mma.sync" in fast and "cp.async.cg" in fast


def test_lengths_that_differ(text_only):  # noqa: F811
    Q, K, V = (te.placeholder((1, 50, 8, 64), "float16", name=n) for n in "QKV")
    S, T = (te.placeholder((5,), "int32", name=n) for n in "ST")
    O = topi.nn.attention_var_len(Q, K, V, S, T, None, "TopLeft")
    text = text_of(te.create_prim_func([Q, K, V, S, T, O]))
    assert sum("mma.sync" in kernel for kernel in kernels_of(text)) == 2
    assert "T_batch_matmul" not in text


def test_float32_and_old_chips_go_without(text_only):  # noqa: F811
    assert len(kernels_of(text_of(attention(1, 128, 2, 64, dtype="float32")))) > 2
    assert "mma.sync" not in text_of(attention(1, 128, 2, 64), "sm_75")
    assert len(kernels_of(text_of(attention(1, 128, 2, 512)))) > 2


def test_scores_that_are_a_result_are_stored(text_only):  # noqa: F811
    Q, K, V = (te.placeholder((4, 64, 64), "float16", name=n) for n in "QKV")
    S = topi.nn.batch_matmul(Q, K)
    O = topi.nn.batch_matmul(topi.nn.softmax(S), V, transpose_b=False)
    assert "Q" in text_of(te.create_prim_func([Q, K, V, S, O]))
    alone = kernels_of(text_of(te.create_prim_func([Q, K, V, O])))
    assert len(alone) == 2 and len(kernels_of(text_of(te.create_prim_func([Q, K, V, S, O])))) > 2


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_90a", "sm_120"])
def test_every_architecture_compiles(arch):
    for size, options in [(128, {}), (64, {"causal": "TopLeft"}), (40, {"bias": (1, 1, 80, 80)})]:
        assert "mma.sync" in text_of(attention(1, 80, 4, size, **options), arch)
