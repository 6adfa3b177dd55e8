# SPDX-License-Identifier: Apache-2.0
"""Functions whose results are rounded to 16 bits become the instructions that approximate them."""

import pytest
from tvm import te, tir

from tests.backend.cuda.test_codegen import text_of, text_only  # noqa: F401


def text(function, dtype="bfloat16"):
    A = te.placeholder((64,), dtype, name="A")
    return text_of(te.create_prim_func([A, te.compute((64,), lambda i: function(A[i]), name="B")]))


@pytest.mark.parametrize(
    "function, instruction, precise",
    [
        (tir.exp, "ex2.approx.ftz.f32", "expf("),
        (tir.sigmoid, "rcp.approx.ftz.f32", "tvm_sigmoid"),
        (tir.tanh, "tanh.approx.f32", "tanhf("),
    ],
)
def test_functions(text_only, function, instruction, precise):  # noqa: F811
    rounded = text(function)
    assert instruction in rounded and precise not in rounded
    assert precise in text(function, "float32")


def test_tanh_of_float16_is_precise(text_only):  # noqa: F811
    assert "tanhf(" in text(tir.tanh, "float16") and "expf(" not in text(tir.exp, "float16")


@pytest.mark.parametrize("half", [0.5, 1.0])
@pytest.mark.parametrize("turned", [False, True])
def test_one_plus_erf(text_only, half, turned):  # noqa: F811
    def gelu(x):
        x = x.astype("float32")
        erf = tir.erf(x * 0.7) if half == 1 else tir.erf(x * 0.7) * half
        return (x * (erf + half if turned else half + erf)).astype("float16")

    assert "erff(" not in text(gelu, "float16")


def test_what_is_added_to_is_precise(text_only):  # noqa: F811
    def shifted(function):
        return lambda x: (function(x.astype("float32")) - 1.0).astype("bfloat16")

    assert "expf(" in text(shifted(tir.exp)) and "erff(" in text(shifted(tir.erf))
    assert "erff(" in text(lambda x: (2.0 + tir.erf(x.astype("float32"))).astype("float16"))
