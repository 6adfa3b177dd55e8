# SPDX-License-Identifier: Apache-2.0
"""Questions about functions."""

import pytest
import tvm
from tvm import te, tir
from tvm.tir import analysis

from tests.tir.transform.build_ir import block, buffer, func, loop, region, seq, store, when


def _matmul(n=8):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    return te.create_prim_func(
        [A, B, te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")]
    )


def test_undefined_vars_in_order_of_use():
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    A = buffer((8,))
    stmt = loop(4, lambda i: store(A, i + y + x, 1.0))
    assert [v.name for v in analysis.undefined_vars(stmt)] == ["A", "y", "x"]
    assert [v.name for v in analysis.undefined_vars(stmt, [A.data, x])] == ["y"]
    assert list(analysis.undefined_vars(tir.Let(x, y, x + y))) == [y]


def test_verify_ssa():
    A, i = buffer((4,)), tir.Var("i", "int32")
    once = tir.For(i, 0, 4, tir.ForKind.SERIAL, store(A, i, 1.0))
    assert analysis.verify_ssa(func([A], once))
    assert not analysis.verify_ssa(func([A], seq(once, once)))


def _unknown_variable():
    A = buffer((4,))
    return func([A], store(A, tir.Var("i", "int32"), 1.0))


def _used_outside():
    A, i = buffer((4,)), tir.Var("i", "int32")
    return func([A], seq(tir.For(i, 0, 4, tir.ForKind.SERIAL, store(A, i, 1.0)), store(A, i, 2.0)))


def _defined_twice():
    A, i = buffer((4,)), tir.Var("i", "int32")
    inner = tir.For(i, 0, 4, tir.ForKind.SERIAL, store(A, i, 1.0))
    return func([A], tir.For(i, 0, 4, tir.ForKind.SERIAL, inner))


def _unknown_buffer():
    A, B = buffer((4,)), buffer((4,), name="B")
    return func([A], store(A, 0, B[0]))


@pytest.mark.parametrize("make, complaint", [
    (_unknown_variable, "Invalid use of undefined variable i"),
    (_used_outside, "undefined variable i, outside of what defines it"),
    (_defined_twice, "ill-formed, due to multiple nested definitions of variable i, .* by a loop"),
    (_unknown_buffer, "Invalid use of undefined variable B"),
], ids=lambda v: v.__name__[1:] if callable(v) else "")  # fmt: skip
def test_verify_well_formed_says_what_is_wrong(make, complaint):
    bad = make()
    assert not analysis.verify_well_formed(bad, assert_mode=False)
    with pytest.raises(ValueError, match=complaint):
        analysis.verify_well_formed(bad)
    with pytest.raises(ValueError, match=complaint):
        analysis.verify_well_formed(tvm.IRModule({"main": bad}))


def test_block_access_region_names_nothing_that_the_block_defines():
    """An index read from a view or from memory of the block: any element may be meant."""
    A, B, C = (tir.decl_buffer((4,), "int32", name) for name in "ABC")
    view, own = tir.decl_buffer((4,), "int32", "view"), tir.decl_buffer((4,), "int32", "own")
    match = tir.MatchBufferRegion(view, tir.BufferRegion(A, [tvm.ir.Range(0, 4)]))
    for value, read in ((B[view[0]], "B[0:4]"), (B[own[0]], "B[0:4]"), (B[A[1]], "B[A[1]]")):
        store = tir.BufferStore(C, value, [A[0]])
        body = tir.SeqStmt([tir.BufferStore(own, 0, [0]), store])
        block = tir.Block(
            [], [], [], "b", body, alloc_buffers=[own], match_buffers=[match], annotations={}
        )
        reads, writes, _ = analysis.get_block_access_region(block, {})
        assert [str(r) for r in reads if r.buffer.same_as(B)] == [read]
        assert [str(r) for r in writes] == ["C[A[0]]"]


def test_programs_of_te_are_well_formed():
    assert analysis.verify_well_formed(_matmul())


def test_block_access_region_relaxes_inner_loops():
    A, B = buffer((16, 8), name="A"), buffer((16,), name="B")
    v = tir.Var("v", "int32")
    body = loop(8, lambda j: store(B, v, B[v] + A[v, j]), "j")
    inner = block([(v, 16, tir.Var("i", "int32"))], body).block
    buffers = {A.data: A, B.data: B}
    reads, writes, opaque = analysis.get_block_access_region(inner, buffers)
    expected = {"A": region(A, v, (0, 8)), "B": region(B, v)}
    assert {r.buffer.name for r in reads} == {"A", "B"}
    for r in reads:
        tvm.ir.assert_structural_equal(r, expected[r.buffer.name])
    tvm.ir.assert_structural_equal(list(writes), [region(B, v)])
    assert list(opaque) == []


def test_access_through_the_pointer_is_opaque():
    A = buffer((16,))
    inner = block([], tir.Evaluate(tir.call_extern("int32", "f", A.data))).block
    _, _, opaque = analysis.get_block_access_region(inner, {A.data: A})
    tvm.ir.assert_structural_equal(list(opaque), [region(A, (0, 16))])
    reads, writes = analysis.get_block_read_write_region(inner, {A.data: A})
    assert len(reads) == len(writes) == 1


def test_buffer_access_lca():
    A, B = buffer((4, 8), name="A"), buffer((4, 8), name="B")
    outer = loop(
        4,
        lambda i: seq(
            loop(8, lambda j: store(B, [i, j], A[i, j]), "j"),
            loop(8, lambda j: store(A, [i, j], 1.0), "j"),
        ),
    )
    lca = analysis.detect_buffer_access_lca(func([A, B], outer))
    assert lca[A].same_as(outer) and lca[B].same_as(outer.body[0])


def test_flops_count_values_not_indices():
    assert analysis.estimate_tir_flops(_matmul(8).body) == 2 * 8**3
    assert analysis.estimate_tir_flops(tvm.IRModule({"a": _matmul(8), "b": _matmul(4)})) == 2 * (
        8**3 + 4**3
    )
    A = buffer((16,))
    assert analysis.estimate_tir_flops(loop(16, lambda i: store(A, i * 1 + 0, A[i]))) == 0
    # Both sides of a choice of values are computed.
    chosen = tir.if_then_else(A[0] < 1.0, A[0] + 1.0, A[0] * 2.0)
    assert analysis.estimate_tir_flops(store(A, 0, chosen)) == 2


def test_allocated_bytes_by_scope():
    A, B = buffer((16,), name="A", scope="local"), buffer((8,), "float64", name="B")
    body = tir.Allocate(B.data, "float64", [8], tir.const(True), store(B, 0, 1.0))
    f = func(
        [], tir.Allocate(A.data, "float32", [16], tir.const(True), seq(body, store(A, 0, 1.0)))
    )
    assert dict(analysis.calculate_allocated_bytes(f)["main"]) == {"local": 64, "global": 64}
    assert dict(analysis.calculate_allocated_bytes(tvm.IRModule({"f": f}))["f"]) == {
        "local": 64,
        "global": 64,
    }


def test_purity():
    A, x = buffer((4,)), tir.Var("x", "int32")
    assert analysis.is_pure_function(func([x], tir.Evaluate(x)))
    assert not analysis.is_pure_function(func([A], store(A, 0, 1.0)))
    with pytest.raises(AssertionError, match="it writes to buffer A"):
        analysis.assert_pure_function(func([A], store(A, 0, 1.0)))
    with pytest.raises(AssertionError, match="it calls tir.call_extern, which has effects"):
        analysis.assert_pure_function(func([], tir.Evaluate(tir.call_extern("int32", "f"))))


def test_has_if_then_else():
    A, n = buffer((4,)), tir.Var("n", "int32")
    assert not analysis.has_if_then_else(store(A, 0, 1.0))
    assert analysis.has_if_then_else(loop(4, lambda i: when(n > 0, store(A, i, 1.0))))
    assert analysis.has_if_then_else(store(A, 0, tir.if_then_else(n > 0, A[0], A[1])))


def test_anchor_block_is_the_reduction():
    A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), "k")
    C = te.compute((8, 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((8, 8), lambda i, j: C[i, j] + 1.0, name="D")
    assert (
        analysis.find_anchor_block(tvm.IRModule({"main": te.create_prim_func([A, B, D])})).name_hint
        == "C"
    )


def test_out_of_bounds():
    A, n = buffer((4,)), tir.Var("n", "int32")

    def run(body):
        return analysis.OOBChecker()(tvm.IRModule({"main": func([A, n], body)}))

    run(loop(4, lambda i: store(A, i, 1.0)))
    run(loop(8, lambda i: when(i < 4, store(A, i, 1.0))))
    run(store(A, n, 1.0))  # not certain
    with pytest.raises(ValueError, match="main: index 0 of buffer A reaches its extent"):
        run(loop(5, lambda i: store(A, i, 1.0)))
    with pytest.raises(ValueError, match="index 0 of buffer A is negative"):
        run(loop(4, lambda i: store(A, i - 1, 1.0)))


def test_expr_deep_equal_does_not_map_variables():
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    assert analysis.expr_deep_equal(x + 1, x + 1)
    assert not analysis.expr_deep_equal(x + 1, y + 1)


def test_expr_deep_equal_tells_buffers_apart():
    """Two buffers of one shape are different memory: A[0] - B[0] is not 0."""
    a, b = (tir.decl_buffer((4,), "int32", name) for name in "AB")
    assert analysis.expr_deep_equal(a[0] + 1, a[0] + 1)
    assert not analysis.expr_deep_equal(a[0] + 1, b[0] + 1)
    assert str(tvm.arith.Analyzer().simplify(a[0] - b[0])) == "A[0] - B[0]"


def test_block_access_region_leaves_out_what_the_block_defines():
    data = tir.Var("temp", tvm.ir.PointerType(tvm.ir.PrimType("int32")))
    temp = tir.Buffer(data, "int32", [4], [], 0, "temp")
    out, mask = tir.decl_buffer((4,), "int32", "out"), tir.decl_buffer((4,), "bool", "mask")
    x = tir.Var("x", "int32")
    lanes = tir.Ramp(0, 1, 4)
    stores = tir.SeqStmt(
        [
            tir.BufferStore(temp, 1, [0]),
            tir.LetStmt(x, temp[0], tir.BufferStore(out, 2, [x])),
            tir.BufferStore(out, tir.Broadcast(3, 4), [lanes], tir.BufferLoad(mask, [lanes])),
        ]
    )
    true = tir.const(True, "bool")
    body = tir.Allocate(data, "int32", [4], true, tir.DeclBuffer(temp, stores))
    reads, writes, _ = analysis.get_block_access_region(tir.Block([], [], [], "b", body), {})
    assert [str(r) for r in reads] == ["mask[0:4]"]
    assert [str(r) for r in writes] == ["out[0:4]"]
