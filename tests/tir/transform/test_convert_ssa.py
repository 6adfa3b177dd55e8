# SPDX-License-Identifier: Apache-2.0
"""One variable per definition, over all functions of a module; and what is refused otherwise."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, seq, store


def sharing(make):
    """A module of two functions that one call made."""
    first, second = make()
    return tvm.IRModule({"first": first, "second": second})


def shared_parameter_and_buffer():
    A = buffer((4,), "int32")
    return [func([A], loop(4, lambda i, k=k: store(A, i, i + k))) for k in (1, 2)]


def shared_loop_variable():
    i = tir.Var("i", "int32")
    made = []
    for k in (1, 2):
        A = buffer((4,), "int32")
        made.append(func([A], tir.For(i, 0, 4, tir.ForKind.SERIAL, store(A, i, i + k))))
    return made


def shared_thread_variable():
    axis = tir.IterVar(None, tir.Var("tx", "int32"), tir.IterVar.ThreadIndex, "threadIdx.x")
    made = []
    for k in (1, 2):
        A = buffer((4,), "int32")
        body = tir.AttrStmt(axis, "thread_extent", tir.IntImm("int32", 4), store(A, axis.var, k))
        made.append(func([A], tir.SeqStmt([body, body])))
    return made


def shared_size():
    n = tir.Var("n", "int32")
    made = []
    for k in (1, 2):
        A = buffer((n,), "int32")
        made.append(func([A], loop(n, lambda i, A=A, k=k: store(A, i, i + k))))
    return made


MODULES = [
    shared_parameter_and_buffer, shared_loop_variable, shared_thread_variable, shared_size,
]  # fmt: skip


@pytest.mark.parametrize("make", MODULES)
def test_functions_of_a_module_share_no_variable(make):
    mod = sharing(make)
    assert not tir.analysis.verify_well_formed(mod, assert_mode=False)
    with pytest.raises(ValueError, match="variable .* is that of another function"):
        tir.analysis.verify_well_formed(mod)
    after = tt.ConvertSSA()(mod)
    tir.analysis.verify_well_formed(after)
    for name in ("first", "second"):
        tvm.ir.assert_structural_equal(after[name], mod[name])
        expected, got = np.zeros(4, "int32"), np.zeros(4, "int32")
        tir.interpret(mod[name])(expected)
        tir.interpret(after[name])(got)
        np.testing.assert_array_equal(got, expected)


def test_a_module_that_is_right_stays():
    @T.prim_func
    def one(A: T.Buffer((4,), "int32")):
        for i in range(4):
            A[i] = i

    mod = tvm.IRModule({"one": one})
    assert tt.ConvertSSA()(mod)["one"].same_as(one)


def test_a_loop_variable_inside_a_block_with_iterators_is_refused():
    A = buffer((4, 4), "int32")
    i, j, v = (tir.Var(n, "int32") for n in "ijv")
    iters = [tir.IterVar(tvm.ir.Range(0, 4), v, tir.IterVar.DataPar)]
    for index, fine in (([v, v], True), ([i, v], False)):
        body = tir.BufferStore(A, tir.const(1, "int32"), index)
        region = tir.BufferRegion(A, [tvm.ir.Range.from_min_extent(e, 1) for e in index])
        inner = tir.BlockRealize([j], True, tir.Block(iters, [], [region], "B", body))
        nest = inner
        for var in (j, i):
            nest = tir.For(var, 0, 4, tir.ForKind.SERIAL, nest)
        made = func([A], nest)
        assert tir.analysis.verify_well_formed(made, assert_mode=False) == fine
        if not fine:
            with pytest.raises(ValueError, match="loop variable i is used inside block B"):
                tir.analysis.verify_well_formed(made)


def test_loop_variables_inside_opaque_blocks_and_of_inner_loops_are_fine():
    @T.prim_func
    def made(A: T.Buffer((4, 4, 4), "int32")):
        for i in range(4):
            with T.block("opaque"):
                for j in range(4):
                    with T.block("B"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        for k in range(4):
                            A[vi, vj, k] = k

    assert tir.analysis.verify_well_formed(made)


def test_convert_ssa():
    A = buffer((4,))
    i = tir.Var("i", "int32")
    twice = tir.For(i, 0, 4, tir.ForKind.SERIAL, store(A, i, 1.0))
    before = func([A], seq(twice, twice))
    assert not tir.analysis.verify_ssa(before)
    result = apply(tt.ConvertSSA(), before)
    assert tir.analysis.verify_ssa(result)
    check(
        tt.ConvertSSA(),
        before,
        func([A], seq(*(loop(4, lambda i: store(A, i, 1.0)) for _ in range(2)))),
    )


def test_the_strides_of_a_view_are_its_own():
    @T.prim_func(private=True)
    def once(A: T.Buffer((8, 8), "float32")):
        with T.block("root"):
            with T.block("view"):
                T.reads()
                T.writes(A[2:6, 2:6])
                offset, outer = T.int32(), T.int32()
                M = T.match_buffer(A[2:6, 2:6], (4, 4), strides=[outer, 1], elem_offset=offset)
                M[0, 0] = T.Cast("float32", outer + offset)

    root = once.body.block
    twice = tir.Block([], [], [], "root", seq(root.body, root.body))
    after = apply(tt.ConvertSSA(), once.with_body(tir.BlockRealize([], True, twice)))
    views = [part.block.match_buffers[0].buffer for part in after.body.block.body.seq]
    for part, view in zip(after.body.block.body.seq, views, strict=True):
        own = [view.strides[0], view.elem_offset]
        assert all(
            tir.analysis.undefined_vars(part.block.body, [*own, view.data]) == [] for _ in own
        )
    assert not views[0].strides[0].same_as(views[1].strides[0])
    assert not views[0].elem_offset.same_as(views[1].elem_offset)
