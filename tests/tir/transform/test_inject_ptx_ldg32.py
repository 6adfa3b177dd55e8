# SPDX-License-Identifier: Apache-2.0
"""Guarded loads of words become one instruction, where nobody writes what is read."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.backend.cuda.kernels import lowered, run
from tests.backend.cuda.test_codegen import text_only  # noqa: F401


@T.prim_func
def guarded(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for b in T.thread_binding(2, "blockIdx.x"):
        for t in T.thread_binding(32, "threadIdx.x"):
            with T.block("B"):
                L = T.alloc_buffer((1,), scope="local")
                L[0] = T.if_then_else(b * 32 + t < 50, A[b * 32 + t], T.float32(0))
                B[b * 32 + t] = L[0] + T.float32(1)


def test_guarded_loads_run():
    mod = lowered(guarded, config={"tir.ptx_ldg32": True})
    assert "T.ptx_ldg32(" in mod.script()
    assert "ptx_ldg32" not in lowered(guarded).script()
    a = np.arange(64, dtype="float32")
    got = run(mod, a, np.zeros_like(a))
    np.testing.assert_array_equal(got, np.where(np.arange(64) < 50, a, 0) + 1)


def test_the_instruction(text_only):  # noqa: F811
    with tvm.transform.PassContext(config={"tir.ptx_ldg32": True}):
        target = tvm.target.Target({"kind": "cuda", "arch": "sm_80"}, host="c")
        text = tvm.compile(guarded, target).imports[0].inspect_source()
    assert "@p ld.global.nc.b32" in text and "__uint_as_float(tvm_cached_load(" in text


@pytest.mark.parametrize(
    "store",
    [
        "L[0] = T.if_then_else(t < 3, A[t], T.float32(1))",  # another value
        "L[0] = A[t]",  # no guard
        "L[0] = T.if_then_else(t < 3, B[t], T.float32(0))",  # is written
    ],
)
def test_other_loads_stay(store):
    before = tvm.script.from_source(
        f"""
@T.prim_func
def before(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    t = T.launch_thread("threadIdx.x", 32)
    L = T.decl_buffer((1,), scope="local")
    {store}
    B[t] = L[0]
"""
    )
    mod = tvm.IRModule({"main": before})
    assert "ptx_ldg32" not in tt.InjectPTXLDG32()(mod).script()


def test_it_can_be_turned_off():
    mod = lowered(guarded)
    tvm.ir.assert_structural_equal(tt.InjectPTXLDG32(False)(mod), mod)
