# SPDX-License-Identifier: Apache-2.0
"""bfloat16 and smaller: computed in float32, kept as integers."""

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, loop, plain, store

FORMATS = [
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float6_e2m3fn", "float6_e3m2fn",
]  # fmt: skip


def _numpy_type(name):
    if not hasattr(ml_dtypes, name):
        pytest.skip(f"ml_dtypes has no {name}")
    return getattr(ml_dtypes, name)


def _bits(array):
    return array.view("uint16" if array.dtype.itemsize == 2 else "uint8")


def _convert(source, values, target):
    """Runs the lowered conversion on the interpreter; small floats go in and come out as bits."""
    n = len(values)
    legalize = [tt.BF16StorageLegalize(), tt.FP8StorageLegalize()]
    A, B = buffer((n,), source, name="A"), buffer((n,), target, name="B")
    f = apply(legalize, plain(loop(n, lambda i: store(B, i, tir.Cast(target, A[i]))), A, B))
    a, b = f.params
    kept = [str(p.type_annotation.element_type.dtype) for p in (a, b)]
    assert all(k.startswith("uint") or k in ("float32", "float64") for k in kept)
    # An integer below a byte is one byte for the interpreter's arrays.
    arrays = [np.ascontiguousarray(values), np.zeros(n, _storage(target))]
    views = {A.data: A, B.data: B}
    buffers = [
        tir.decl_buffer((n,), k, name=v.name, data=p)
        for p, k, v in zip((a, b), kept, views.values(), strict=True)
    ]
    handles = [tir.Var(x.name + "_handle", "handle") for x in buffers]
    whole = tir.PrimFunc(handles, f.body, buffer_map=dict(zip(handles, buffers, strict=True)))
    tir.interpret(whole)(*arrays)
    return arrays[1]


def _storage(name):
    return {"bfloat16": "uint16", "float32": "float32", "float64": "float64"}.get(name, "uint8")


def _samples():
    rng = np.random.default_rng(7)
    values = rng.standard_normal(60) * np.exp(rng.uniform(-12, 10, 60))
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e38,
        -1e-38,
        448.0,
        464.0,
        240.0,
        248.0,
        57344.0,
        61440.0,
        6.0,
        7.0,
        5.0,
    ]
    return np.concatenate([special, values]).astype("float32")


@pytest.mark.parametrize("name", FORMATS)
def test_from_float32_is_what_ml_dtypes_gives(name):
    values = _samples()
    got = _convert("float32", values, name).view(_numpy_type(name))
    with np.errstate(all="ignore"):
        want = values.astype(_numpy_type(name))
    if not np.isnan(want.astype("float32")).any():  # no NaN in this type: the largest number
        want[np.isnan(values)] = ml_dtypes.finfo(want.dtype).max
    nan = np.isnan(got.astype("float32")) & np.isnan(want.astype("float32"))
    wrong = (_bits(got) != _bits(want)) & ~nan
    assert not wrong.any(), [
        (float(v), float(g), float(w))
        for v, g, w in zip(values[wrong], got[wrong], want[wrong], strict=True)
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_to_float32_is_exact_for_every_code(name):
    count = 1 << tvm.DataType(name).bits
    codes = np.arange(0, count, 1 if count <= 256 else 397, dtype=_storage(name))
    got = _convert(name, codes, "float32")
    np.testing.assert_array_equal(got, codes.view(_numpy_type(name)).astype("float32"))


def test_from_float64_rounds_once():
    """Just above and just below half way, by less than float32 can say."""
    value = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 3 * 2.0**-8 - 2.0**-40], "float64")
    got = _convert("float64", value, "bfloat16").view(ml_dtypes.bfloat16).astype("float64")
    np.testing.assert_array_equal(got, [1 + 2.0**-7, 1.0, 1 + 2.0**-7])


def test_nested_conversions_do_not_explode():
    """Each conversion computes its operand once: the size grows with the depth, not its power."""

    def lowered(depth):
        data = tir.Var("data", tvm.ir.PointerType(tvm.ir.PrimType("float8_e4m3fn")))
        A = tir.Buffer(data, "float8_e4m3fn", [4], [], 0, "A")
        value = A[0]
        for _ in range(depth):
            value = tir.Max(value + A[1], A[2])
        body = tir.DeclBuffer(A, tir.BufferStore(A, value, [3]))
        mod = tvm.IRModule({"main": tir.PrimFunc([data], body)})
        mod = tt.BindTarget(tvm.target.Target("c"))(mod)
        return len(tt.FP8StorageLegalize()(tt.FP8ComputeLegalize()(mod)).script())

    assert lowered(8) < 3 * lowered(4)
