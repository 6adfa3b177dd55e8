# SPDX-License-Identifier: Apache-2.0
"""dlight.adreno: rules for Adreno GPUs, run by the interpreter"""

import pytest
import tvm
from tvm import dlight, te, tir
from tvm.dlight import adreno
from tvm.script import tir as T
from tvm.target import Target

from .checking import same_results
from .programs import dynamic, elementwise, matmul, two_stages
from .test_dlight import row_sums, softmax, threads

# With so few threads that the interpreter is fast.
ADRENO = Target(
    {"kind": "opencl", "keys": ["adreno", "opencl", "gpu"], "max_num_threads": 8,
     "max_threads_per_block": 8}
)  # fmt: skip


@T.prim_func
def layout_transform(A: T.Buffer((1, 8, 3, 5), "float32"), B: T.Buffer((1, 2, 3, 5, 4), "float32")):
    for n, c, h, w, i in T.grid(1, 2, 3, 5, 4):
        with T.block("B"):
            vn, vc, vh, vw, vi = T.axis.remap("SSSSS", [n, c, h, w, i])
            B[vn, vc, vh, vw, vi] = A[vn, vc * 4 + vi, vh, vw]


def pool():
    a = te.placeholder((1, 2, 6, 6, 4), name="A")
    i, j = te.reduce_axis((0, 2), "i"), te.reduce_axis((0, 2), "j")
    out = te.compute(
        (1, 2, 3, 3, 4),
        lambda n, c, h, w, q: te.max(a[n, c, h * 2 + i, w * 2 + j, q], [i, j]), "B",
    )  # fmt: skip
    return te.create_prim_func([a, out])


def conv2d(relu):
    a = te.placeholder((1, 2, 5, 5, 4), name="A")
    w = te.placeholder((8, 2, 3, 3, 4), name="W")
    c, i, j = (te.reduce_axis((0, n), name) for n, name in ((8, "c"), (3, "i"), (3, "j")))
    out = te.compute(
        (1, 2, 3, 3, 4),
        lambda n, o, h, x, q: te.sum(
            a[n, c // 4, h + i, x + j, c % 4] * w[c, o, i, j, q], [c, i, j]
        ), "B",
    )  # fmt: skip
    if relu:
        b = out
        out = te.compute(b.shape, lambda *at: te.max(b(*at), tir.const(0, "float32")), "C")
    return te.create_prim_func([a, w, out])


CASES = {
    "elementwise": (elementwise, adreno.Fallback), "two_stages": (two_stages, adreno.Fallback),
    "dynamic": (dynamic, adreno.Fallback), "matmul": (matmul, adreno.Fallback),
    "row_sums": (row_sums, adreno.Fallback), "softmax": (softmax, adreno.Fallback),
    "layout_transform": (layout_transform, adreno.LayoutTransform), "pool": (pool(), adreno.Pool2D),
    "conv2d": (conv2d(False), adreno.Conv2d), "conv2d with relu": (conv2d(True), adreno.Conv2d),
}  # fmt: skip
RULES = [adreno.Conv2d, adreno.LayoutTransform, adreno.Pool2D, adreno.Fallback]


@pytest.mark.parametrize("name", CASES)
def test_rules(name):
    """The rule that is the first to take a function keeps its results."""
    func, first = CASES[name]
    for rule in RULES[: RULES.index(first)]:
        assert rule().apply(func, ADRENO, False) is None
    schedule = first().apply(func, ADRENO, False)
    after = schedule.mod["main"]
    assert {"blockIdx.x", "threadIdx.x"} <= threads(after)
    tir.analysis.verify_well_formed(after)
    same_results(func, after, {"n": 5})
    in_fours = first is not adreno.Fallback
    assert ("T.vectorized(4)" in schedule.mod.script()) == in_fours


def test_targets():
    for rule in RULES:
        assert rule().is_target_available(Target("qcom/adreno-opencl"))
        assert not rule().is_target_available(Target("cuda"))
    with ADRENO:
        mod = dlight.ApplyDefaultSchedule(*(rule() for rule in RULES))(
            tvm.IRModule({"main": CASES["pool"][0]})
        )
    assert mod["main"].attrs["tir.is_scheduled"]


def test_layouts_by_name():
    other = layout_transform.with_attr("global_symbol", "other")
    assert adreno.LayoutTransform().apply(other, ADRENO, False) is None
    assert adreno.LayoutTransform(use_op_name=False).apply(other, ADRENO, False) is not None
