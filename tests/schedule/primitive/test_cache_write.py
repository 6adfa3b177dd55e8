# SPDX-License-Identifier: Apache-2.0
"""cache_write: a block writes to a copy of its buffer, and another block writes the copy back."""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import two


def test_cache_write():
    @T.prim_func
    def expected(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        B = T.alloc_buffer((16, 16))
        C_local = T.alloc_buffer((16, 16), scope="local")
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(16, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C_local[vi, vj] = B[vi, vj] + 1.0
        for ax0, ax1 in T.grid(16, 16):
            with T.block("C_local"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                C[v0, v1] = C_local[v0, v1]

    apply(two, lambda sch: sch.cache_write("C", 0, "local"), expected)


def test_only_what_is_written():
    """The copy leaves the rest of the output as it was."""

    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(3):
            with T.block("B"):
                vi = T.axis.spatial(3, i)
                B[vi + 2] = A[vi] * 2.0

    apply(before, lambda sch: sch.cache_write("B", 0, "local"))


@T.prim_func
def read_twice(
    A: T.Buffer((8,), "float32"),
    B: T.Buffer((8,), "float32"),
    C: T.Buffer((8,), "float32"),
    D: T.Buffer((8,), "float32"),
):
    """B is read in the loop that writes it, and after it."""
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 1.0
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = B[vi] + 2.0


def test_refuse_copies_after_a_reader_in_the_same_loop():
    why = "block C reads buffer B before the copy can be made"
    refused(read_twice, lambda sch: sch.cache_write("B", 0, "local"), why)
    why = "expected block B not to share loops with the blocks that read buffer B"
    refused(read_twice, lambda sch: sch.reindex("B", ("write", 0)), why)
    apply(read_twice, lambda s: s.cache_write("B", 0, "local", [s.get_block("C")]))
