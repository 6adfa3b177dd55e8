# SPDX-License-Identifier: Apache-2.0
"""cache_index"""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import elementwise, two_stages


@T.prim_func
def resize(A: T.Buffer((12, 6), "float32"), B: T.Buffer((12, 12), "float32")):
    for i, j in T.grid(12, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi // 4 + vj // 4, vj // 2]


def test_all_indices():
    @T.prim_func
    def expected(A: T.Buffer((12, 6), "float32"), B: T.Buffer((12, 12), "float32")):
        index_var_0 = T.alloc_buffer((12, 12), "int32", scope="shared")
        index_var_1 = T.alloc_buffer((12,), "int32", scope="shared")
        for ax0, ax1 in T.grid(12, 12):
            with T.block("index_0"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                index_var_0[v0, v1] = v0 // 4 + v1 // 4
        for ax0 in range(12):
            with T.block("index_1"):
                v0 = T.axis.spatial(12, ax0)
                index_var_1[v0] = v0 // 2
        for i, j in T.grid(12, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[index_var_0[vi, vj], index_var_1[vj]]

    def primitives(sch):
        blocks = sch.cache_index("B", "shared")
        assert [sch.get(b).name_hint for b in blocks] == ["index_0", "index_1"]

    apply(resize, primitives, expected)


@T.prim_func
def bilinear(A: T.Buffer((8,), "float32"), B: T.Buffer((15,), "float32")):
    for i in range(15):
        with T.block("B"):
            vi = T.axis.spatial(15, i)
            B[vi] = A[vi // 2] + A[T.min(vi // 2 + 1, 7)] + A[vi % 3]


def test_threshold():
    def cached(threshold):
        def primitives(sch):
            blocks = sch.cache_index("B", "global", threshold)
            values.extend(str(sch.get(b).body.value) for b in blocks)

        values = []
        apply(bilinear, primitives)
        return values[: len(values)]

    assert cached(2)[0] == "v0 // 2"
    assert len(cached(2)) == 1
    assert len(cached(0)) == 3
    assert len(cached(1)) == 3
    assert cached(3) == []


def test_nothing_to_cache():
    def primitives(sch):
        assert len(sch.cache_index("B", "global")) == 0

    apply(elementwise, primitives, elementwise)


def test_what_depends_on_memory_stays():
    @T.prim_func
    def before(
        A: T.Buffer((8,), "float32"), index: T.Buffer((8,), "int32"), B: T.Buffer((4,), "float32")
    ):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[index[vi * 2] % 8]

    def primitives(sch):
        (block,) = sch.cache_index("B", "global")
        assert str(sch.get(block).body.value) == "v0 * 2"

    apply(before, primitives)


def test_indices_of_stores_stay():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi * 2] = A[7 - vi]

    def primitives(sch):
        (block,) = sch.cache_index("B", "global")
        assert str(sch.get(block).body.value) == "7 - v0"

    apply(before, primitives)


def test_below_loops_and_of_a_reduction():
    @T.prim_func
    def conv(A: T.Buffer((18,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((8,))):
        for i, k in T.grid(8, 3):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi * 2 + vk] * W[vk]

    def primitives(sch):
        i, _ = sch.get_loops("B")
        sch.split(i, [None, 3])
        sch.cache_index("B", "local")

    apply(conv, primitives)
    apply(two_stages, lambda sch: sch.cache_index("C", "local"), two_stages)


def test_symbolic():
    @T.prim_func
    def before(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[n - 1 - vi]

    apply(before, lambda sch: sch.cache_index("B", "global"), sizes={"n": 5})


def test_refusals():
    refused(
        resize,
        lambda sch: sch.cache_index("B", "global", -1),
        "cse_thresh not to be negative, got -1",
    )

    @T.prim_func
    def shifted(A: T.Buffer((20,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(2, 8):
            with T.block("B"):
                vi = T.axis.spatial((2, 8), i)
                B[vi] = A[vi * 2]

    refused(
        shifted, lambda sch: sch.cache_index("B", "global"), "expected iterators that start at 0"
    )

    @T.prim_func(check_well_formed=False)
    def outer_variable(A: T.Buffer((20,), "float32"), B: T.Buffer((4, 2), "float32")):
        for i, j in T.grid(4, 2):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi, j] = A[vi * 2 + j]

    refused(outer_variable, lambda sch: sch.cache_index("B", "global"), "uses variable j")
