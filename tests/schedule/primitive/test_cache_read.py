# SPDX-License-Identifier: Apache-2.0
"""cache_read, also together with cache_write."""

from tvm import tir
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic_sums, matmul_relu, stencil, two


def test_cache_read():
    @T.prim_func
    def expected(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        B = T.alloc_buffer((16, 16))
        A_shared = T.alloc_buffer((16, 16), scope="shared")
        for ax0, ax1 in T.grid(16, 16):
            with T.block("A_shared"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                A_shared[v0, v1] = A[v0, v1]
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A_shared[vi, vj] * 2.0
        for i, j in T.grid(16, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + 1.0

    apply(two, lambda sch: sch.cache_read("B", 0, "shared"), expected)
    apply(two, lambda sch: sch.cache_read("B", "A", "shared"), expected)


def test_cache_intermediate():
    apply(two, lambda sch: sch.cache_read("C", 0, "local"))
    apply(two, lambda sch: sch.cache_write("B", 0, "local"))
    apply(two, lambda sch: sch.cache_write("B", 0, "local", consumer_blocks=["C"]))
    apply(stencil, lambda sch: sch.cache_read("C", "B", "local"))


def test_cache_matmul_tiled():
    def primitives(sch):
        c = sch.cache_write("C", 0, "local")
        a = sch.cache_read("C", 0, "local")
        i, j, k = sch.get_loops("C")
        (io, ii), (ko, ki) = sch.split(i, [None, 5]), sch.split(k, [None, 4])
        sch.reorder(io, ko, ii, j, ki)
        sch.compute_at(a, ko)
        sch.reverse_compute_at(c, io)
        sch.reverse_compute_at("D", io)

    apply(matmul_relu, primitives)


def test_cache_below_a_loop():
    def primitives(sch):
        sch.compute_at("B", sch.get_loops("C")[0])
        sch.cache_read("C", "B", "local")
        sch.cache_write("B", 0, "local")

    apply(two, primitives)
    apply(dynamic_sums, primitives, sizes={"n": 5})


def test_consumers():
    @T.prim_func
    def before(
        A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")
    ):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2.0
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] + 1.0

    sch = apply(before, lambda sch: sch.cache_read("B", 0, "local", consumer_blocks=["C"]))
    assert sch.mod.script().count("= A_local[vi]") == 1
    sch = apply(before, lambda sch: sch.cache_read("B", 0, "local"))
    assert sch.mod.script().count("= A_local[vi]") == 2
    refused(
        two,
        lambda sch: sch.cache_read("B", 0, "local", consumer_blocks=["C"]),
        "expected consumers that read buffer A",
    )


def test_refusals():
    refused(two, lambda sch: sch.cache_read("B", 1, "local"), r"reads \(A\), got 1")
    refused(two, lambda sch: sch.cache_read("B", "X", "local"), "got 'X'")
    refused(two, lambda sch: sch.cache_write("B", -1, "local"), "got -1")

    @T.prim_func
    def strided(A: T.Buffer((8,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi * 2] = A[vi]

    refused(strided, lambda sch: sch.cache_write("B", 0, "local"), "cannot tell exactly which part")

    @T.prim_func
    def in_place(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi] + 1.0

    refused(in_place, lambda sch: sch.cache_write("A", 0, "local"), "also reads it")
    refused(in_place, lambda sch: sch.cache_read("A", 0, "local"), "together with the blocks")

    def decomposed(sch):
        sch.decompose_reduction("C", sch.get_loops("C")[2])
        sch.cache_write("C_update", 0, "local")

    refused(matmul_relu, decomposed, "not the only block that writes buffer C")


@T.prim_func
def padded(A: T.Buffer((4,), "float32"), B: T.Buffer((6,), "float32")):
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            T.reads(A[vi - 1])
            T.writes(B[vi])
            B[vi] = T.if_then_else(vi >= 1 and vi < 5, A[vi - 1], T.float32(0))


def test_cache_read_stays_inside_of_the_buffer():
    """A read under a condition has a region that reaches beyond."""
    sch = apply(padded, lambda sch: sch.cache_read("B", 0, "local"))
    assert int(sch.get(sch.get_loops("A_local")[0]).extent) == 4


def test_what_is_used_through_its_pointer_is_cached():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v] * 2.0
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                T.reads(B[v])
                T.writes(C[v])
                T.evaluate(T.call_extern("int32", "f", B.access_ptr("r"), C.access_ptr("w")))

    sch = tir.Schedule(func, debug_mask="all")
    sch.cache_read("C", 0, "local")
    sch.cache_write("C", 0, "local")
    call = sch.get(sch.get_block("C")).body.value
    assert [str(a.args[1].name) for a in call.args[1:]] == ["B_local", "C_local"]
