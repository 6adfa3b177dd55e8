# SPDX-License-Identifier: Apache-2.0
"""Every stage of the pipeline computes what the program says, by the interpreter."""

import numpy as np
import pytest
import tvm
from tvm import te, tir
from tvm.tir import transform as tt
from tvm.tir.pipeline import finalize_host_passes, get_default_tir_pipeline

from tests.tir.programs import transpose


def _elementwise():
    A = te.placeholder((3, 5), name="A")
    return [
        A,
        te.compute(
            (3, 5), lambda i, j: te.max(A[i, j], tir.const(0.0, "float32")) * 2.0 + 1.0, name="B"
        ),
    ]


def _matmul():
    A, B = te.placeholder((3, 4), name="A"), te.placeholder((4, 5), name="B")
    k = te.reduce_axis((0, 4), "k")
    return [A, B, te.compute((3, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")]


def _softmax():
    A = te.placeholder((3, 5), name="A")
    k, r = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 5), "r")
    top = te.compute((3,), lambda i: te.max(A[i, k], axis=k), name="top")
    power = te.compute((3, 5), lambda i, j: te.exp(A[i, j] - top[i]), name="power")
    total = te.compute((3,), lambda i: te.sum(power[i, r], axis=r), name="total")
    return [A, te.compute((3, 5), lambda i, j: power[i, j] / total[i], name="S")]


def _padded():
    A = te.placeholder((4, 6), name="A")
    pad = te.compute(
        (6, 8),
        lambda i, j: tir.if_then_else(
            tir.all(i >= 1, i < 5, j >= 1, j < 7), A[i - 1, j - 1], tir.const(0.0, "float32")
        ),
        name="P",
    )
    return [A, te.compute((4, 6), lambda i, j: pad[i, j] + pad[i + 2, j + 1], name="B")]


def _dynamic():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    return [A, te.compute((m, n), lambda i, j: A[j, i] + 1.0, name="B")]


def _bfloat16():
    A = te.placeholder((8,), "bfloat16", name="A")
    return [A, te.compute((8,), lambda i: A[i] * A[i] + A[i], name="B")]


PROGRAMS = [_elementwise, _matmul, _softmax, _padded, _dynamic, _bfloat16]
SHAPES = {"_dynamic": [(3, 4), (4, 3)]}


def _arrays(func, name):
    rng = np.random.default_rng(0)
    result = []
    for p, param in enumerate(func.params):
        buf = func.buffer_map[param]
        shape = SHAPES[name][p] if name in SHAPES else [int(e) for e in buf.shape]
        dtype = tvm.DataType(buf.dtype)
        values = rng.standard_normal(shape)
        result.append(
            values.astype(np.float32) if str(dtype) != "bfloat16" else values.astype(_bf16())
        )
    return result


def _bf16():
    return pytest.importorskip("ml_dtypes").bfloat16


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__[1:])
def test_each_pass_keeps_the_meaning(make):
    func = te.create_prim_func(make())
    arrays = _arrays(func, make.__name__)
    expected = [a.copy() for a in arrays]
    tir.interpret(func)(*expected)
    mod = tir.transform.BindTarget(tvm.target.Target("c"))(tvm.IRModule({"main": func}))
    for one in get_default_tir_pipeline("c").passes:
        mod = one(mod)
        if one.info.name in ("tir.MakePackedAPI",):
            break
        got = [a.copy() for a in arrays]
        tir.interpret(mod["main"])(*got)
        for e, g in zip(expected, got, strict=True):
            np.testing.assert_array_equal(e, g, err_msg=f"after {one.info.name}")
        assert tir.analysis.verify_well_formed(mod["main"]), one.info.name


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__[1:])
def test_the_result_has_an_entry_and_a_plain_function(make):
    mod = tir.transform.BindTarget(tvm.target.Target("c"))(
        tvm.IRModule({"main": te.create_prim_func(make())})
    )
    mod = finalize_host_passes()(get_default_tir_pipeline("c")(mod))
    entry, inner = mod["main"], mod["main_compute_"]
    assert int(entry.attrs["calling_conv"]) == 1 and len(entry.params) == 4
    assert bool(inner.attrs["tir.private"]) and len(inner.attrs["tir.param_alignment"]) == len(
        inner.params
    )
    for func in (entry, inner):
        assert tir.analysis.verify_well_formed(func)


def test_passes_can_be_added_by_phase():
    seen = []

    @tir.transform.prim_func_pass(opt_level=0, name="Spy")
    def spy(func, mod, ctx):
        seen.append(type(func.body).__name__)
        return func

    mod = tir.transform.BindTarget(tvm.target.Target("c"))(
        tvm.IRModule({"main": te.create_prim_func(_elementwise())})
    )
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [[0, spy], [1, spy]]}):
        get_default_tir_pipeline("c")(mod)
    assert seen == ["BlockRealize", "DeclBuffer"]


def test_default_pipeline_for_a_device():
    target = tvm.target.Target("opencl", host="llvm")
    mod = tvm.IRModule({"main": transpose.with_attr("global_symbol", "main")})
    mod = tt.BindTarget(target)(mod)
    with target:
        mod = tir.get_default_tir_pipeline(target)(mod)
    names = {v.name_hint for v in mod.functions}
    assert {"main", "main_compute_", "main_kernel"} <= names
    assert str(mod["main_kernel"].attrs["target"].kind) == "opencl"
    assert str(mod["main"].attrs["target"].kind) == "llvm"
    assert "call_packed" in mod["main_compute_"].script()
