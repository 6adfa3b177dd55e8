# SPDX-License-Identifier: Apache-2.0
"""Storage, selections, subexpressions, instrumentation, functions of a module."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, seq, store, when


def _allocate(buf, body):
    return tir.Allocate(buf.data, buf.dtype, buf.shape, tir.const(True), tir.DeclBuffer(buf, body))


def _copy(src, dst, n=1024):
    return loop(n, lambda i: store(dst, i, src[i] + 1.0))


def _allocations(function):
    found = []
    tir.stmt_functor.post_order_visit(
        function.body, lambda n: found.append(n) if isinstance(n, tir.Allocate) else None
    )
    return found


def test_storage_is_shared_when_lives_do_not_overlap():
    A, D = buffer((1024,), name="A"), buffer((1024,), name="D")
    temps = [buffer((1024,), name=n) for n in ("T0", "T1", "T2", "T3")]
    chain = [A, *temps, D]
    body = seq(*(_copy(a, b) for a, b in zip(chain, chain[1:], strict=False)))
    for t in reversed(temps):
        body = _allocate(t, body)
    before = func([A, D], body)
    result = apply(tt.StorageRewrite(), before)
    assert len(_allocations(result)) == 1, "each is computed from the one before, in place"
    a = np.arange(1024, dtype="float32")
    d = np.zeros_like(a)
    tir.interpret(result)(a, d)
    np.testing.assert_array_equal(d, a + 5)


def test_storage_used_again_in_the_next_iteration_is_kept():
    """T lives through the whole loop: U cannot have its memory."""
    A, T, U = (buffer((1024,), name=n) for n in "ATU")
    body = loop(2, lambda k: seq(_copy(A, U), _copy(U, A), _copy(T, A), _copy(A, T)), "k")
    before = func([A], _allocate(T, _allocate(U, seq(_copy(A, T), body))))
    check(tt.StorageRewrite(), before, before)


def test_exposed_pointer_is_not_shared():
    A, T, U = (buffer((1024,), name=n) for n in "ATU")
    p = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
    body = tir.LetStmt(p, T.data, seq(_copy(A, T), _copy(T, A), _copy(A, U), _copy(U, A)))
    before = func([A], _allocate(T, _allocate(U, body)))
    check(tt.StorageRewrite(), before, before)


def test_unsafe_select_evaluates_one_side():
    n = tir.Var("n", "int32")
    A, B = buffer((n,), name="A"), buffer((16,), name="B")
    x = tir.const(0.0, "float32")
    before = func([A, B], loop(16, lambda i: store(B, i, tir.Select(i > 0, A[i - 1], x))))
    expected = func([A, B], loop(16, lambda i: store(B, i, tir.if_then_else(i > 0, A[i - 1], x))))
    check(tt.RewriteUnsafeSelect(), before, expected)


def test_select_inside_of_the_buffer_is_safe():
    A, B = buffer((16,), name="A"), buffer((16,), name="B")
    before = func([A, B], loop(16, lambda i: store(B, i, tir.Select(A[i] > 0.0, A[i], A[0]))))
    check(tt.RewriteUnsafeSelect(), before, before)


def test_common_subexpressions():
    A, B, j = buffer((64,), name="A"), buffer((64,), name="B"), tir.Var("j", "int32")
    v = tir.Var("v", "int32")
    before = func([A, B, j], loop(4, lambda i: store(B, i * 4 + j, A[i * 4 + j])))
    expected = func([A, B, j], loop(4, lambda i: tir.LetStmt(v, i * 4 + j, store(B, v, A[v]))))
    check(tt.CommonSubexprElimTIR(), before, expected)
    check(tt.CommonSubexprElimTIR(False), before, before)


def test_common_subexpressions_inside_of_others():
    A, x, y = buffer((64,), "int32"), tir.Var("x", "int32"), tir.Var("y", "int32")
    u, v = tir.Var("u", "int32"), tir.Var("v", "int32")
    before = func([A, x, y], store(A, 0, ((x + y) * 2 + 3) * ((x + y) * 2 + 4)))
    result = apply(tt.CommonSubexprElimTIR(), before)
    expected = func([A, x, y], tir.LetStmt(v, (x + y) * 2, store(A, 0, (v + 3) * (v + 4))))
    tvm.ir.assert_structural_equal(result, expected)
    before = func([A, x, y], store(A, x + y, ((x + y) * 2 + 3) * ((x + y) * 2 + 4)))
    expected = func(
        [A, x, y], tir.LetStmt(u, x + y, tir.LetStmt(v, u * 2, store(A, u, (v + 3) * (v + 4))))
    )
    check(tt.CommonSubexprElimTIR(), before, expected)


def test_lanes_of_vectors_keep_their_form():
    """vscale() * 4 as the number of lanes has no name, wherever else it occurs."""

    @T.prim_func
    def before(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
        for i in range(64 // T.vscale()):
            B[T.ramp(i * (T.vscale() * 4), 1, T.vscale() * 4)] = A[
                T.ramp(i * (T.vscale() * 4), 1, T.vscale() * 4)
            ]

    after = apply(tt.CommonSubexprElimTIR(), before)
    assert "T.Ramp(cse_v1, 1, T.vscale() * 4)" in after.script()


def test_common_subexpressions_found_before_what_uses_them():
    A, B, x = buffer((64,), name="A"), buffer((64,), name="B"), tir.Var("x", "int32")
    u, v = tir.Var("u", "int32"), tir.Var("v", "int32")

    def value(a, b):
        return A[a] * B[a] + A[b] * B[b]

    before = func([A, B, x], store(A, 0, value(x * 2, x * 2 + 1)))
    expected = tir.LetStmt(u, x * 2, tir.LetStmt(v, u + 1, store(A, 0, value(u, v))))
    check(tt.CommonSubexprElimTIR(), before, func([A, B, x], expected))


def test_common_subexpressions_by_value_where_a_part_is_the_whole():
    """x * 2 // 1 is x * 2: bound once, not for ever."""
    A, x, v = buffer((64,), "int32"), tir.Var("x", "int32"), tir.Var("v", "int32")
    whole = tir.FloorDiv(x * 2, tir.const(1, "int32"))
    before = func([A, x], store(A, 2 * x, whole))
    expected = func([A, x], tir.LetStmt(v, x * 2, store(A, v, v)))
    check(tt.CommonSubexprElimTIR(identify_equiv_terms=True), before, expected)


def test_common_subexpressions_by_value_do_not_name_each_other():
    A, x = buffer((64,), "int32"), tir.Var("x", "int32")
    p, q = x % 2 * x, tir.Max(x // x, tir.const(1, "int32"))
    before = func([A, x], store(A, p * q % q, q * p // q + p * q % q))
    result = apply(tt.CommonSubexprElimTIR(identify_equiv_terms=True), before)
    tir.analysis.verify_well_formed(result)
    got, expected = np.zeros((2, 64), "int32")
    for function, array in ((before, expected), (result, got)):
        tir.interpret(function)(array, 3)
    np.testing.assert_array_equal(got, expected)


def test_inlined_arguments_are_evaluated_before_the_body():
    """An address has a name; what is read is what was there."""
    A, x = buffer((4,), "int32"), tir.Var("x", "int32")
    helper = tvm.ir.GlobalVar("helper")
    p = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("int32")))
    view = tir.decl_buffer((2,), "int32", name="V", data=p)
    body = tir.DeclBuffer(view, seq(store(view, 0, x + 1), store(view, 1, x + 2)))
    address = tir.call_intrin(
        "handle", "tir.tvm_access_ptr", tir.type_annotation("int32"), A.data, 1, 2, 3
    )
    main = func([A], tir.Evaluate(tir.Call("void", helper, [address, A[1]])), global_symbol="main")
    mod = tt.InlinePrivateFunctions()(
        tvm.IRModule({helper: tir.PrimFunc([p, x], body), "main": main})
    )
    a = np.array([0, 5, 0, 0], "int32")
    tir.interpret(mod["main"])(a)
    assert a.tolist() == [0, 6, 7, 0]


def test_values_that_are_read_are_not_shared():
    A = buffer((64,), "int32")
    before = func([A], loop(4, lambda i: store(A, i, A[i] * A[i])))
    check(tt.CommonSubexprElimTIR(), before, before)


def test_bound_checkers_raise_index_error():
    A, n = buffer((4,)), tir.Var("n", "int32")
    result = apply(tt.InstrumentBoundCheckers(), func([A, n], store(A, n, A[n - 1])))
    a = np.zeros(4, "float32")
    tir.interpret(result)(a, 2)
    for bad in (0, 4):
        with pytest.raises(IndexError, match="index 0 of buffer A below 4"):
            tir.interpret(result)(a, bad)


def test_bound_checkers_respect_conditions():
    A, n = buffer((4,)), tir.Var("n", "int32")
    value = tir.if_then_else(n > 0, A[n - 1], tir.const(7.0, "float32"))
    result = apply(tt.InstrumentBoundCheckers(), func([A, n], store(A, 0, value)))
    a = np.zeros(4, "float32")
    tir.interpret(result)(a, 0)
    assert a[0] == 7


def test_remove_assume():
    A, n = buffer((4,)), tir.Var("n", "int32")
    before = func([A, n], seq(tir.Evaluate(tir.assume(n > 0)), store(A, 0, 1.0)))
    check(tt.RemoveAssume(), before, func([A, n], store(A, 0, 1.0)))


def test_remove_store_undef():
    A = buffer((4,), "int32")
    undef = tir.call_intrin("int32", "tir.undef")
    before = func([A], seq(store(A, 0, undef), store(A, 1, 2)))
    check(tt.RemoveStoreUndef(), before, func([A], store(A, 1, 2)))
    with pytest.raises(ValueError, match="expected T.undef only as a value that is stored"):
        apply(tt.RemoveStoreUndef(), func([A], store(A, 0, undef + 1)))


def test_force_narrow_index_to_int32():
    A = buffer((tir.const(64, "int64"),))
    n = tir.Var("n", "int64")
    before = func(
        [A, n], loop(n, lambda i: store(A, i * tir.const(2, "int64"), 1.0), dtype="int64")
    )
    B, m = buffer((64,)), tir.Var("n", "int32")
    check(
        tt.ForceNarrowIndexToInt32(), before, func([B, m], loop(m, lambda i: store(B, i * 2, 1.0)))
    )
    with pytest.raises(ValueError, match="expected no buffer of int64, got D"):
        D = buffer((4,), "int64", name="D")
        apply(tt.ForceNarrowIndexToInt32(), func([D], store(D, 0, 1)))


def test_combine_context_call():
    call = lambda: tir.call_intrin(
        "handle", "tir.tvm_thread_context", tir.call_extern("handle", "ctx")
    )
    before = func([], seq(*(tir.Evaluate(tir.call_extern("int32", f, call())) for f in "fg")))
    result = apply(tt.CombineContextCall(), before)
    var = result.body.var
    assert [s.value.args[1].same_as(var) for s in result.body.body] == [True, True]


def test_inline_private_functions():
    A, x = buffer((4,), "int32"), tir.Var("x", "int32")
    helper = tvm.ir.GlobalVar("helper")
    p = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("int32")))
    view = tir.decl_buffer((4,), "int32", name="V", data=p)
    mod = tvm.IRModule(
        {
            helper: tir.PrimFunc([p, x], tir.DeclBuffer(view, store(view, x, 7))),
            "main": func(
                [A], tir.Evaluate(tir.Call("void", helper, [A.data, 2])), global_symbol="main"
            ),
        }
    )
    mod = tt.InlinePrivateFunctions()(mod)
    assert [v.name_hint for v in mod.get_global_vars()] == ["main"]
    a = np.zeros(4, "int32")
    tir.interpret(mod["main"])(a)
    assert a.tolist() == [0, 0, 7, 0]


def test_extract_constants_once():
    data = tvm.runtime.tensor(np.arange(4, dtype="float32"))
    same = tvm.runtime.tensor(np.arange(4, dtype="float32"))
    A = buffer((4,))

    def program(tensor):
        C = buffer((4,), name="C")
        return func(
            [A],
            tir.AllocateConst(C.data, "float32", [4], tensor, tir.DeclBuffer(C, store(A, 0, C[1]))),
        )

    mod = tt.ExtractPrimFuncConstants()(tvm.IRModule({"f": program(data), "g": program(same)}))
    assert len(mod.attrs["constants"]) == 1
    assert mod["f"].body.irmod_storage_idx == 0 and mod["f"].body.data is None


def test_filter_and_apply():
    mod = tvm.IRModule({"f": func([], tir.Evaluate(0), keep=True), "g": func([], tir.Evaluate(0))})
    kept = tt.Filter(lambda f: "keep" in f.attrs)(mod)
    assert [v.name_hint for v in kept.get_global_vars()] == ["f"]
    marked = tt.Apply(lambda f: f.with_attr("mark", 1))(mod)
    assert all("mark" in f.attrs for f in marked.functions.values())


def test_pointer_value_type():
    p = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
    V = tir.decl_buffer((4,), "float32x4", name="V", data=p)
    before = tir.PrimFunc(
        [p], tir.DeclBuffer(V, tir.BufferStore(V, tir.Broadcast(tir.const(1.0, "float32"), 4), [0]))
    )
    result = apply(tt.PointerValueTypeRewrite(), before)
    assert result.params[0].type_annotation.element_type.dtype == "float32x4"
    assert result.body.buffer.data.same_as(result.params[0])


def test_verify_memory_names_the_buffer():
    A = buffer((4,))
    mod = tvm.IRModule({"f": func([A], store(A, 0, 1.0), target=tvm.target.Target("cuda"))})
    with pytest.raises(
        RuntimeError, match="expected f to access buffer A inside loops bound to GPU threads"
    ):
        tt.VerifyMemory()(mod)


def test_renew_defs_makes_everything_new():
    A = buffer((4,))
    before = func([A], loop(4, lambda i: when(i < 2, store(A, i, 1.0))))
    after = tir.stmt_functor.renew_defs(before)
    tvm.ir.assert_structural_equal(before, after)
    assert not after.body.loop_var.same_as(before.body.loop_var)
    assert not after.params[0].same_as(before.params[0])
    assert after.body.body.then_case.buffer.same_as(after.buffer_map[after.params[0]])


def test_ir_transform_pre_and_post():
    A, x = buffer((4,), "int32"), tir.Var("x", "int32")
    stmt = store(A, 0, x + 1)
    doubled = tir.stmt_functor.ir_transform(
        stmt, None, lambda op: op * 2 if op.same_as(x) else None, ["tir.Var"]
    )
    assert isinstance(doubled.value.a, tir.Mul)
    kept = tir.stmt_functor.ir_transform(stmt, lambda op: op, lambda op: 1 / 0, ["tir.BufferStore"])
    assert kept.same_as(stmt)
    with pytest.raises(
        ValueError, match="expected the type key of a node in only_enable, got 'tir.Nothing'"
    ):
        tir.stmt_functor.ir_transform(stmt, None, None, ["tir.Nothing"])


def test_tensor_intrin_registry():
    f = func([buffer((4,))], tir.Evaluate(0))
    tir.TensorIntrin.register("test.nothing", f, f, override=True)
    assert tir.TensorIntrin.get("test.nothing").desc.same_as(f)
    with pytest.raises(
        ValueError, match="expected a name that is not registered, got 'test.nothing'"
    ):
        tir.TensorIntrin.register("test.nothing", f, f)
    with pytest.raises(ValueError, match="did you mean 'test.nothing'"):
        tir.TensorIntrin.get("test.nothin")
    assert tir.TensorIntrin.get("test.none", allow_missing=True) is None


def test_simplify_keeps_the_axes_of_blocks():
    """Where nothing can happen anything is true of an axis; its definition stays."""

    @T.prim_func
    def before(A: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("b"):
                v = T.axis.spatial(1, 0)
                w = T.axis.spatial(8, i)
                T.where(T.bool(False))
                T.reads()
                T.writes(A[w])
                A[w] = v + 1

    after = tvm.tir.transform.Simplify()(tvm.IRModule({"main": before}))["main"]
    block = after.body.block.body.body.block
    assert all(isinstance(axis.var, tvm.tir.Var) for axis in block.iter_vars)


def test_lower_intrin_fixed_point():
    """Fixed-point multiplication as 64-bit arithmetic gives what the operator means."""

    @T.prim_func
    def before(A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
        for i in range(6):
            B[i] = T.q_multiply_shift(A[i], 1395864371, 31, 1 - i)
            C[i] = T.q_multiply_shift_per_axis(A[i], 1395864371, i, 2, 31, i % 2, 1)

    func = before.with_attr("target", tvm.target.Target("c"))
    after = tvm.tir.transform.LowerIntrin()(tvm.IRModule({"main": func}))["main"]
    assert "q_multiply" not in after.script()
    results = []
    for one in (before, after):
        a = np.array([0, 1, -7, 12345, -30000, 2**26 - 1], "int32")
        b, c = np.zeros(6, "int32"), np.zeros(6, "int32")
        tvm.tir.interpret(one)(a, b, c)
        results.append((b, c))
    np.testing.assert_array_equal(results[0], results[1])


def test_bound_checkers_know_variables_of_expressions():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        x = T.int32()
        A[0] = T.Let(B[x], where={x: A[1] + 1})

    after = tvm.tir.transform.InstrumentBoundCheckers()(tvm.IRModule({"main": before}))["main"]
    assert tvm.tir.analysis.verify_well_formed(after)
    with pytest.raises(IndexError, match="expected index 0 of buffer B below 8, got 9"):
        tvm.tir.interpret(after)(np.full(8, 8, "int32"), np.zeros(8, "int32"))
