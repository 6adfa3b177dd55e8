# SPDX-License-Identifier: Apache-2.0
"""Draws: what a seed gives, and what cannot be drawn."""

import pytest
from tvm import tir
from tvm.script import tir as T

from tests.schedule.checking import apply
from tests.schedule.programs import elementwise


def test_seeds():
    def draws(seed):
        sch = tir.Schedule(elementwise, seed=seed)
        i, _ = sch.get_loops("B")
        tiles = [[sch.get(v) for v in sch.sample_perfect_tile(i, 3)] for _ in range(8)]
        return tiles, sch.fork_seed()

    assert draws(1) == draws(1) != draws(2)
    sch = tir.Schedule(elementwise)
    sch.seed(7)
    first = sch.fork_seed()
    sch.seed(7)
    assert first == sch.fork_seed() > 0
    with pytest.raises(ValueError, match=r"Schedule.seed: expected -1 or a number in \[0, "):
        sch.seed(-2)


def test_factors_of_an_unknown_extent():
    @T.prim_func
    def func(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        C = T.match_buffer(c, (n,))
        for i in range(n):
            with T.block("C"):
                vi = T.axis.remap("S", [i])
                C[vi] = A[vi] * 2.0

    def primitives(sch):
        (loop,) = sch.get_loops("C")
        factors = sch.sample_perfect_tile(loop, 3)
        assert factors[0] is None and [int(sch.get(f)) for f in factors[1:]] == [1, 1]
        sch.split(loop, factors)

    apply(func, primitives, sizes={"n": 5})
