# SPDX-License-Identifier: Apache-2.0
"""Texts as versions 0.8 to 0.12 wrote and printed them."""

import pytest
import tvm
from tvm.error import DiagnosticError
from tvm.script import from_source
from tvm.script import tir as T


def test_blocks_with_their_iterators_in_a_list():
    @T.prim_func
    def old(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, [8, 16])
        B = T.match_buffer(b, [8])
        for i, k in T.grid(8, 16):
            with T.block([8, T.reduce_axis(0, 16)], "B") as [vi, vk]:
                T.bind(vi, i)
                T.bind(vk, k)
                T.reads([A[vi, vk]])
                T.writes([B[vi]])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    @T.prim_func
    def new(A: T.Buffer((8, 16)), B: T.Buffer((8,))):
        for i, k in T.grid(8, 16):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    @T.prim_func
    def without_loops(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, [8, 16])
        B = T.match_buffer(b, [8])
        with T.block([8, T.reduce_axis(0, 16)], "B") as [vi, vk]:
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]

    new = new.with_attr("global_symbol", "old")
    tvm.ir.assert_structural_equal(old, new)
    tvm.ir.assert_structural_equal(without_loops.with_attr("global_symbol", "old"), new)


@pytest.mark.parametrize("line, message", [
    ("T.bind(vi, i)", "expected T.bind of vj, or of no iterator"),
    ("T.bind(i, i)", "expected an iterator of block B"),
])  # fmt: skip
def test_wrong_bindings(line, message):
    text = f"""@T.prim_func
def f(A: T.Buffer((8, 8), "float32")):
    for i in range(8):
        with T.block([8, 8], "B") as [vi, vj]:
            {line}
            A[vi, vj] = 1.0
"""
    with pytest.raises(DiagnosticError, match=message):
        from_source(text)
    with pytest.raises(DiagnosticError, match="expected to be in a block with its iterators"):
        from_source("@T.prim_func\ndef f():\n    T.bind(1, 2)")


def test_text_as_printed_by_0_9():
    mod = from_source("""# from tvm.script import tir as T
@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer[(8, 8), "float32"], C: T.Buffer[64, "float32"]) -> None:
        # function attr dict
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        # body
        # with T.block("root")
        for i0 in T.serial(8):
            with T.block("C"):
                i = T.axis.spatial(8, i0)
                T.reads(A[i, 0])
                T.writes(C[i])
                T.block_attr({"meta_schedule.tiling_structure":"SSRSRS"})
                C[i] = A[i, 0] + T.float32(1)
""")
    assert mod["main"].attrs["tir.noalias"]
    with pytest.raises(DiagnosticError, match="no attribute 'sys'"):
        from_source("@tvm.script.sys\ndef f():\n    pass")
