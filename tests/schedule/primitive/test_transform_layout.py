# SPDX-License-Identifier: Apache-2.0
"""transform_layout and set_axis_separator."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T

from tests.schedule.checking import apply, refused
from tests.schedule.programs import dynamic_sums, two, two_stages


def test_transform_layout():
    @T.prim_func
    def expected(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        B = T.alloc_buffer((4, 16, 4))
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj // 4, vi, vj % 4] = A[vi, vj] * 2.0
        for i, j in T.grid(16, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vj // 4, vi, vj % 4] + 1.0

    for buffer in (("write", 0), "B"):
        apply(
            two,
            lambda sch, b=buffer: sch.transform_layout("B", b, lambda i, j: (j // 4, i, j % 4)),
            expected,
        )


def test_transform_layout_of_a_parameter():
    sch = apply(
        two,
        lambda sch: sch.transform_layout("B", ("read", 0), lambda i, j: (j, i)),
        run=False,
    )
    a = np.random.rand(16, 16).astype("float32")
    got, expected = np.zeros((16, 16), "float32"), np.zeros((16, 16), "float32")
    tir.interpret(sch.mod["main"])(np.ascontiguousarray(a.T), got)
    tir.interpret(two)(a, expected)
    np.testing.assert_array_equal(got, expected)


def test_transform_layout_with_padding():
    apply(two, lambda sch: sch.transform_layout("B", "B", lambda i, j: (i, j // 5, j % 5)))
    sch = apply(
        two,
        lambda sch: sch.transform_layout("B", "B", lambda i, j: (i, j // 5, j % 5), pad_value=0),
    )
    assert (
        "T.if_then_else(16 <= v1 * 5 + v2, T.float32(0.0), A[v0, v1 * 5 + v2]" in sch.mod.script()
    )


def test_padding_in_a_block_of_its_own():
    """Where loops of the writer are not those of the buffer."""

    def primitives(sch):
        sch.split(sch.get_loops("B")[1], [None, 4])
        sch.transform_layout("B", "B", lambda i, j: (i, j // 5, j % 5), pad_value=0)

    text = apply(two, primitives).mod.script()
    assert 'T.block("buffer_B_padding")' in text and "T.where(16 <= ax1 * 5 + ax2)" in text


def test_axis_separators_are_part_of_the_trace():
    sch = tir.Schedule(two)
    sch.transform_layout("B", ("write", 0), lambda i, j: [i, tir.IndexMap.AXIS_SEPARATOR, j])
    again = tir.Schedule(two)
    sch.trace.apply_to_schedule(again, False)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)
    buffer = again.get(again.get_block("B")).writes[0].buffer
    assert [int(s) for s in buffer.axis_separators] == [1]
    loaded = tir.Schedule(two)
    tir.schedule.Trace.apply_json_to_schedule(sch.trace.as_json(), loaded)
    tvm.ir.assert_structural_equal(loaded.mod, sch.mod)


def test_transform_layout_symbolic():
    def primitives(sch):
        sch.transform_layout("B", ("write", 0), lambda i, j: (i // 4, j, i % 4))

    apply(dynamic_sums, primitives, sizes={"n": 6})


def test_set_axis_separator():
    sch = apply(two, lambda sch: sch.set_axis_separator("B", "B", [1]), run=False)
    buffer = sch.get(sch.get_block("B")).writes[0].buffer
    assert [int(s) for s in buffer.axis_separators] == [1]


@pytest.mark.parametrize("primitives, match", [
    (lambda s: s.transform_layout("B", "X", lambda i, j: (j, i)), "got 'X'"),
    (lambda s: s.transform_layout("B", ("write", 1), lambda i, j: (j, i)), "its position"),
    (lambda s: s.transform_layout("B", "B", lambda i, j: (i // 2, j)), "its own place"),
    (lambda s: s.transform_layout("B", "B", tir.IndexMap.from_func(lambda i: [i])), "2 indices"),
    (lambda s: s.transform_block_layout("B", lambda i, j: (i // 2, j)), "one to one"),
    (lambda s: s.set_axis_separator("B", "B", [3]), "from 0 to 2, got 3"),
    (lambda s: s.reindex_cache_read("B", 0, "local", lambda i, j: (i,)), "to be different"),
])  # fmt: skip
def test_refusals(primitives, match):
    refused(two, primitives, match)


def test_maps_of_random_variables_and_names_behind_the_rest():
    def captured(sch):
        factor = sch.sample_categorical([4, 8], [0.5, 0.5])
        sch.transform_layout("B", ("write", 0), lambda i, j: [i, j // factor, j % factor])

    apply(two_stages, captured)
    sch = apply(
        two_stages, lambda s: s.transform_layout("B", ("write", 0), lambda i, *j, k: [k, *j, i])
    )
    assert "B[vj, vi]" in sch.mod.script()
    with pytest.raises(ValueError, match="expected at least 3 indices, got 2"):
        sch.transform_layout("B", ("write", 0), lambda *, i, j, k: [i])
