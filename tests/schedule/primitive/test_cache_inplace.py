# SPDX-License-Identifier: Apache-2.0
"""cache_inplace: a block that reads and writes a buffer works on a copy of it."""

from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import two


def test_cache_inplace():
    @T.prim_func
    def in_place(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi] + 1.0

    def primitives(sch):
        before, after = sch.cache_inplace("A", 0, "local")
        assert sch.get(before).name_hint == "A_local" and sch.get(after).name_hint == "A_back"

    apply(in_place, primitives)
    refused(two, lambda sch: sch.cache_inplace("B", 0, "local"), "reads and writes, got A")
