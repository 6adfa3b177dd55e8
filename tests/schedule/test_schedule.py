# SPDX-License-Identifier: Apache-2.0
"""The schedule object: random variables, copies, functions, seeds, errors, state."""

import numpy as np
import pytest
import tvm
from tvm import te, tir
from tvm.script import ir as I
from tvm.script import tir as T

from tests.schedule.programs import elementwise, matmul, two_stages


def test_stale_variables():
    sch = tir.Schedule(elementwise)
    i, j = sch.get_loops("B")
    sch.split(i, [4, 4])
    with pytest.raises(tir.ScheduleError, match="expected a loop that is still in the"):
        sch.unroll(i)
    with pytest.raises(tir.ScheduleError, match="got l1, which an earlier primitive replaced"):
        sch.get(i)
    assert sch.get(j).loop_var.name == "j"


def test_foreign_variables():
    sch, other = tir.Schedule(elementwise), tir.Schedule(elementwise)
    with pytest.raises(IndexError, match="expected a block of this schedule"):
        sch.get_loops(other.get_block("B"))
    with pytest.raises(IndexError, match="expected a loop of this schedule"):
        sch.unroll(tir.schedule.LoopRV())


def test_removed_variables():
    sch = tir.Schedule(elementwise)
    block = sch.get_block("B")
    sch.remove_rv(block)
    with pytest.raises(IndexError, match="or was removed"):
        sch.get_loops(block)
    with pytest.raises(IndexError, match="expected a random variable of this schedule"):
        sch.remove_rv(block)


def test_copies_go_their_own_way():
    sch = tir.Schedule(elementwise, debug_mask="all")
    i, j = sch.get_loops("B")
    other = sch.copy()
    sch.parallel(i)
    other.vectorize(j)
    assert "T.parallel" in sch.mod.script() and "T.vectorized" not in sch.mod.script()
    assert "T.vectorized" in other.mod.script() and "T.parallel" not in other.mod.script()
    assert len(sch.trace.insts) == len(other.trace.insts) == 3
    sch.split(j, [2, 4])
    assert other.get(j).extent == 8


def test_the_trace_of_a_moment_does_not_change():
    sch = tir.Schedule(elementwise)
    i, _ = sch.get_loops("B")
    trace = sch.trace
    sch.unroll(i)
    assert len(trace.insts) == 2 and len(sch.trace.insts) == 3


@I.ir_module
class Two:
    @T.prim_func
    def first(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = 1.0

    @T.prim_func
    def second(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = 2.0


def test_functions():
    sch = tir.Schedule(Two, debug_mask="all")
    assert sch.func_working_on is None
    with pytest.raises(ValueError, match="does not know which function to be working on"):
        sch.get_block("A")
    sch.unroll(sch.get_loops(sch.get_block("A", func_name="first"))[0])
    sch.work_on("second")
    assert sch.func_working_on.name_hint == "second"
    sch.parallel(sch.get_loops("A")[0])
    assert "unroll" in sch.mod["first"].script() and "parallel" in sch.mod["second"].script()
    with pytest.raises(ValueError, match="third"):
        sch.work_on("third")
    with pytest.raises(tir.ScheduleError, match="got 'frist', did you mean 'first'"):
        sch.get_block("A", func_name="frist")


def test_only_functions_that_changed_are_marked():
    sch = tir.Schedule(Two)
    sch.get_loops(sch.get_block("A", func_name="first"))
    assert not sch.mod["first"].scheduled_by_hand
    sch.unroll(sch.get_loops(sch.get_block("A", func_name="first"))[0])
    assert sch.mod["first"].scheduled_by_hand and not sch.mod["second"].scheduled_by_hand
    tvm.ir.assert_structural_equal(sch.mod["second"], Two["second"])


def test_render_levels():
    def message(level):
        sch = tir.Schedule(elementwise, error_render_level=level)
        with pytest.raises(tir.ScheduleError) as error:
            sch.split(sch.get_loops("B")[0], [2, 2])
        return str(error.value)

    where = "An error occurred in the schedule primitive 'split'."
    reason = (
        "Error message: the product of factors is not larger than or equal to the extent of loop "
        "i: expected at least 16, got [2, 2]"
    )
    assert message("detail").startswith(where) and message("detail").endswith(reason)
    assert "@T.prim_func" in message("detail")
    assert message("fast") == f"{where} {reason}"
    assert message("none") == f"{where} (not rendered)"
    with pytest.raises(ValueError, match="error_render_level: expected one of"):
        tir.Schedule(elementwise, error_render_level="loud")


def test_debug_masks():
    assert tir.Schedule(elementwise, debug_mask=1).state.debug_mask == 1
    assert tir.Schedule(elementwise, debug_mask="all").state.debug_mask == 3
    with pytest.raises(ValueError, match="debug_mask"):
        tir.Schedule(elementwise, debug_mask="some")
    with pytest.raises(TypeError, match="debug_mask"):
        tir.Schedule(elementwise, debug_mask=1.5)


def test_bad_programs():
    with pytest.raises(TypeError):
        tir.Schedule(1)


def test_shared_statements_get_their_own_variables():
    @T.prim_func
    def once(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi] + 1.0

    block = once.body.block
    body = tir.SeqStmt([block.body, block.body])
    root = tir.Block([], [], [], "root", body)
    twice = once.with_body(tir.BlockRealize([], True, root))
    sch = tir.Schedule(twice, debug_mask="all")
    first, second = sch.get_child_blocks(sch.get_block("root"))
    sch.unroll(sch.get_loops(first)[0])
    assert sch.get(sch.get_loops(second)[0]).kind == tir.ForKind.SERIAL


def test_a_refused_primitive_draws_nothing():
    sch = tir.Schedule(elementwise, seed=3)
    i, _ = sch.get_loops("B")
    expected = sch.copy
    before = len(sch.trace.insts)
    with pytest.raises(tir.ScheduleError):
        sch.sample_perfect_tile(i, 0)
    with pytest.raises(tir.ScheduleError):
        sch.storage_align("B", 5, 0, 1, 0)
    assert len(sch.trace.insts) == before and expected is not None


def test_state():
    sch = tir.Schedule(two_stages, debug_mask="all")
    state = sch.state
    block = sch.get_sref(sch.get_block("B"))
    loop = sch.get_sref(sch.get_loops("B")[1])
    assert block.stmt.name_hint == "B" and block.parent == loop
    assert loop.parent.stmt.loop_var.name == "i" and loop.parent.seq_index == 0
    root = loop.parent.parent
    assert root.stmt.name_hint == "root" and root.parent is None
    assert state.get_sref(block.stmt) == block != root
    assert sch.get_sref(loop.stmt) == loop
    assert sch.get_sref(elementwise.body.block) is None
    consumer = sch.get_sref(sch.get_block("C"))
    scope = state.get_block_scope(root)
    (dep,) = scope.get_deps_by_src(block)
    assert dep.dst == consumer and dep.kind == tir.schedule.DepKind.RAW
    (dep,) = scope.get_deps_by_dst(consumer)
    assert dep.src == block
    sch.parallel(sch.get_loops("B")[1])
    assert loop.stmt.kind == tir.ForKind.PARALLEL


def test_state_replace():
    state = tir.ScheduleState(two_stages, debug_mask="all")
    root = state.mod["main"].body.block
    loop = state.get_sref(root.body[0])
    new = tir.For(loop.stmt.loop_var, 0, 16, tir.ForKind.UNROLLED, loop.stmt.body)
    state.replace(loop, new)
    assert loop.stmt.kind == tir.ForKind.UNROLLED
    tvm.ir.assert_structural_equal(state.mod["main"].body.block.body[0], new, True)
    with pytest.raises(
        ValueError, match="ScheduleState.replace: expected each loop and block once"
    ):
        state.replace(loop, state.mod["main"].body.block.body[1])


def test_dependence_kinds():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("reads"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
        for i in range(8):
            with T.block("writes"):
                vi = T.axis.spatial(8, i)
                A[vi] = 1.0
        for i in range(8):
            with T.block("again"):
                vi = T.axis.spatial(8, i)
                A[vi] = 2.0

    sch = tir.Schedule(func)
    state = sch.state
    scope = state.get_block_scope(sch.get_sref(sch.get_block("root")))
    kinds = [d.kind for d in scope.get_deps_by_dst(sch.get_sref(sch.get_block("again")))]
    assert sorted(kinds) == [1, 2]
    assert [d.kind for d in scope.get_deps_by_dst(sch.get_sref(sch.get_block("writes")))] == [2]


def test_te_and_build():
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="B")
    sch = tir.Schedule(te.create_prim_func([a, b]))
    sch.vectorize(sch.split(sch.get_loops("B")[0], [None, 8])[1])
    x = np.random.rand(64).astype("float32")
    y = np.zeros_like(x)
    tir.interpret(sch.mod["main"])(x, y)
    np.testing.assert_allclose(y, x + 1, rtol=1e-6)


def test_many_blocks_cost_what_they_touch():
    """Dependences of a scope are kept while only loops change."""
    sch = tir.Schedule(matmul, debug_mask="all")
    root = sch.get_sref(sch.get_block("root"))
    sch.state.get_block_scope(root)
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i)
    sch.fuse(*sch.get_loops("C")[:2])
    assert not sch.state.get_block_scope(root).get_deps_by_src(sch.get_sref(sch.get_block("C")))


def test_functions_that_share_a_body():
    sch = tir.Schedule(tvm.IRModule({"f": elementwise, "g": elementwise}), debug_mask="all")
    sch.unroll(sch.get_loops(sch.get_block("B", "g"))[0])
    assert "T.unroll" in sch.mod["g"].script() and "T.unroll" not in sch.mod["f"].script()


def test_refuse_to_replace_by_what_is_there_twice():
    sch = tir.Schedule(elementwise, debug_mask="all")
    i, j = sch.get_loops("B")
    loop = sch.get(i)
    twice = tir.SeqStmt([loop.body, loop.body])
    with pytest.raises(ValueError, match="expected each loop and block once in the program"):
        sch.state.replace(sch.get_sref(j), twice)
    tvm.ir.assert_structural_equal(sch.mod["main"], elementwise)


def test_checks_are_left_out_where_nobody_wants_them():
    sch = tir.Schedule(matmul)
    with pytest.raises(tir.ScheduleError, match="primitive 'parallel'"):
        sch.parallel(sch.get_loops("C")[2])
    tvm.ir.assert_structural_equal(sch.mod["main"], matmul)
    sch = tir.Schedule(matmul, enable_check=False)
    sch.parallel(sch.get_loops("C")[2])
    assert sch.get(sch.get_loops("C")[2]).kind == tir.ForKind.PARALLEL
    with pytest.raises(TypeError):
        tir.Schedule(matmul, enable_check="no")
