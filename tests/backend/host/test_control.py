# SPDX-License-Identifier: Apache-2.0
"""Loops, conditions, parallel loops, errors, calls."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from kernels import attrs, buffer, build, call, const, loop, module, run, size_var
from tvm import tir
from tvm.ir import GlobalVar, IRModule, PrimType

SERIAL, PARALLEL, VECTORIZED, UNROLLED = range(4)


def var(name="i", dtype="int32"):
    return tir.Var(name, dtype)


def ints(n=64):
    return buffer("A", "int32", n)


def evaluate(dtype, name, *args):
    return tir.Evaluate(call(dtype, name, *args))


@pytest.mark.parametrize("kind", [SERIAL, PARALLEL, UNROLLED])
@pytest.mark.parametrize("extent", [0, 1, 7, 64])
def test_loops(kind, extent):
    a, i = ints(), var()
    body = loop(i, const(extent), tir.BufferStore(a, i * 3, [i]), kind)
    x = np.full(64, -1, "int32")
    run(module(body, [a]), x)
    expected = np.full(64, -1, "int32")
    expected[:extent] = np.arange(extent) * 3
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("kind", [SERIAL, PARALLEL])
def test_loop_with_start_and_step(kind):
    a, i = ints(), var()
    body = tir.For(i, const(5), const(40), kind, tir.BufferStore(a, i, [i]), None, {}, const(3))
    x = np.zeros(64, "int32")
    run(module(body, [a]), x)
    expected = np.zeros(64, "int32")
    expected[5:45:3] = np.arange(5, 45, 3)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_parallel_loop_of_dynamic_extent(dtype):
    """Captures pointers, numbers and outer loop variables; the runtime spreads the iterations."""
    a, n, i, j = (
        buffer("A", "float32", 1 << 16),
        size_var("n", dtype),
        var("i", dtype),
        var("j", dtype),
    )
    scale = tir.Var("scale", "float32")
    value = tir.BufferLoad(a, [j * n + i]) * scale + tir.Cast("float32", j)
    inner = loop(i, n, tir.BufferStore(a, value, [j * n + i]), PARALLEL)
    body = loop(j, const(4, dtype), inner)
    x = np.random.rand(1 << 16).astype("float32")
    expected = x.copy()
    expected[:4000] = (x[:4000] * np.float32(2.5) + np.repeat(np.arange(4), 1000)).astype("float32")
    run(module(body, [a], [n, scale]), x, 1000, 2.5)
    np.testing.assert_allclose(x, expected, rtol=1e-6)


def test_nested_parallel_loops():
    a, i, j = ints(), var("i"), var("j")
    inner = loop(j, const(8), tir.BufferStore(a, i * 8 + j, [i * 8 + j]), PARALLEL)
    x = np.zeros(64, "int32")
    run(module(loop(i, const(8), inner, PARALLEL), [a]), x)
    np.testing.assert_array_equal(x, np.arange(64))


def test_error_in_parallel_loop_is_raised_once():
    a, i = ints(1 << 12), var()
    check = tir.AssertStmt(
        tir.NE(i, const(1000)), tir.StringImm("IndexError: stop here"), tir.BufferStore(a, i, [i])
    )
    with pytest.raises(IndexError, match="^stop here$"):
        run(module(loop(i, const(1 << 12), check, PARALLEL), [a]), np.zeros(1 << 12, "int32"))


def test_while_break_continue():
    a, i = ints(), var()
    odd = tir.EQ(tir.FloorMod(i, const(2)), const(1))
    body = tir.SeqStmt(
        [
            tir.IfThenElse(odd, evaluate("int32", "continue_loop")),
            tir.IfThenElse(tir.GT(i, const(20)), evaluate("int32", "break_loop")),
            tir.BufferStore(a, i + 1, [i]),
        ]
    )
    x = np.zeros(64, "int32")
    run(module(loop(i, const(64), body), [a]), x)
    expected = np.where((np.arange(64) % 2 == 0) & (np.arange(64) <= 20), np.arange(64) + 1, 0)
    np.testing.assert_array_equal(x, expected)
    zero = tir.BufferLoad(a, [const(0)])
    x[:] = 0
    run(
        module(tir.While(tir.LT(zero, const(10)), tir.BufferStore(a, zero + 3, [const(0)])), [a]), x
    )
    assert x[0] == 12


def test_break_frees_temporary_memory():
    """A large temporary inside a loop that is left early is given back."""
    a, i = ints(), var()
    data = tir.Var("T", tvm.ir.PointerType(PrimType("int32")))
    temp = tir.Buffer(data, "int32", [1 << 16], [], const(0), "T", 64, 1, 1)
    body = tir.SeqStmt(
        [
            tir.BufferStore(temp, i, [const(0)]),
            tir.IfThenElse(tir.GT(i, const(3)), evaluate("int32", "break_loop")),
            tir.BufferStore(a, tir.BufferLoad(temp, [const(0)]), [i]),
        ]
    )
    body = tir.Allocate(
        data, "int32", [1 << 16], tir.const(True, "bool"), tir.DeclBuffer(temp, body)
    )
    x = np.zeros(64, "int32")
    run(module(loop(i, const(64), body), [a]), x)
    np.testing.assert_array_equal(x[:6], [0, 1, 2, 3, 0, 0])


def test_if_then_else_evaluates_one_side():
    """The guarded load is out of bounds where it is not taken: far enough to crash."""
    a, b, i = ints(), buffer("B", "int32", 64), var()
    far = tir.BufferLoad(a, [tir.Cast("int64", i) * tir.const(1 << 40, "int64")])
    value = call("int32", "if_then_else", tir.LT(i, const(1)), far, const(-1))
    x, y = np.arange(64, dtype="int32") + 5, np.zeros(64, "int32")
    run(module(loop(i, const(64), tir.BufferStore(b, value, [i])), [a, b]), x, y)
    np.testing.assert_array_equal(y, [5] + [-1] * 63)


def test_logic_evaluates_the_second_only_where_needed():
    a, b, i = ints(), buffer("B", "bool", 64), var()
    far = tir.BufferLoad(a, [tir.Cast("int64", i) * tir.const(1 << 40, "int64")])
    guarded = tir.And(tir.LT(i, const(1)), tir.EQ(far, const(5)))
    either = tir.Or(tir.GE(i, const(1)), tir.NE(far, const(5)))
    x, y = np.arange(64, dtype="int32") + 5, np.zeros(64, "bool")
    run(module(loop(i, const(64), tir.BufferStore(b, guarded, [i])), [a, b]), x, y)
    assert y[0] and not y[1:].any()
    run(module(loop(i, const(64), tir.BufferStore(b, either, [i])), [a, b]), x, y)
    assert not y[0] and y[1:].all()


@pytest.mark.parametrize(
    "message,error,text",
    [
        ("a plain message", RuntimeError, "a plain message"),
        ("ValueError: expected 3, got 4", ValueError, "expected 3, got 4"),
        ("ratio: 100%", RuntimeError, "ratio: 100%"),
    ],
)
def test_assertions(message, error, text):
    a, n = ints(), tir.Var("n", "int32")
    body = tir.AssertStmt(
        tir.GT(n, const(3)), tir.StringImm(message), tir.BufferStore(a, n, [const(0)])
    )
    mod = build(module(body, [a], [n]))
    x = np.zeros(64, "int32")
    run(mod, x, 4)
    assert x[0] == 4
    with pytest.raises(error) as caught:
        run(mod, x, 3)
    assert str(caught.value) == text


def test_raise_formats_values():
    a, n, m, f = ints(), tir.Var("n", "int32"), tir.Var("m", "int64"), tir.Var("f", "float64")
    raising = evaluate(
        "int32",
        "tvm_raise_error",
        tir.StringImm("TypeError"),
        tir.StringImm("main: %d, %lld, %.2f, %s, 100%%"),
        n,
        m,
        f,
        tir.StringImm("text"),
    )
    body = tir.IfThenElse(tir.LT(n, const(0)), raising)
    with pytest.raises(TypeError) as caught:
        run(module(body, [a], [n, m, f]), np.zeros(64, "int32"), -5, 1 << 40, 2.5)
    assert str(caught.value) == f"main: -5, {1 << 40}, 2.50, text, 100%"


def test_call_of_c_function():
    a, i = buffer("A", "float64", 64), var()
    value = call("float64", "call_pure_extern", tir.StringImm("cbrt"), tir.BufferLoad(a, [i]))
    x = np.random.rand(64)
    expected = np.cbrt(x)
    run(module(loop(i, const(64), tir.BufferStore(a, value, [i])), [a]), x)
    np.testing.assert_allclose(x, expected, rtol=1e-15)


def test_call_of_registered_function():
    """(name, stack, begin, end): arguments on the stack, the result behind them."""
    seen = []

    @tvm_ffi.register_global_func("testing.llvm.callback", override=True)
    def callback(x, y):
        seen.append((x, y))
        if x == 13:
            raise IndexError("thirteen")
        return x * 2

    a, n = ints(), tir.Var("n", "int32")
    stack = tir.Var("stack", "handle")

    def put(i, kind, value):
        steps = [(11, const(kind)), (12, const(0)), (13, value)]
        return [evaluate("int32", "tvm_struct_set", stack, const(i), const(f), v) for f, v in steps]

    result = call(
        "int32",
        "tvm_call_packed_lowered",
        tir.StringImm("testing.llvm.callback"),
        stack,
        const(0),
        const(2),
    )
    body = tir.SeqStmt(
        [
            *put(0, 1, n),
            *put(1, 3, tir.const(0.5, "float64")),
            tir.BufferStore(a, result, [const(0)]),
        ]
    )
    body = tir.LetStmt(
        stack, call("handle", "tvm_stack_alloca", tir.StringImm("arg_value"), const(3)), body
    )
    mod = build(module(body, [a], [n]))
    x = np.zeros(64, "int32")
    for value in (21, 4):
        run(mod, x, value)
        assert x[0] == 2 * value
    assert seen == [(21, 0.5), (4, 0.5)]
    with pytest.raises(IndexError, match="thirteen"):
        run(mod, x, 13)


def test_functions_with_results_call_each_other():
    n = tir.Var("n", "int32")
    double = GlobalVar("double")
    body = tir.AssertStmt(
        tir.GT(n, const(0)),
        tir.StringImm("ValueError: not positive"),
        tir.Evaluate(call("int32", "ret", n * 2)),
    )
    func = tir.PrimFunc([n], body, PrimType("int32"), {}, attrs(tir__private=True))
    a, m = ints(), tir.Var("m", "int32")
    mod = module(tir.BufferStore(a, tir.Call("int32", double, [m]) + 1, [const(0)]), [a], [m])
    mod.update_func(double, func)
    built = build(mod)
    x = np.zeros(64, "int32")
    run(built, x, 21)
    assert x[0] == 43
    with pytest.raises(ValueError, match="not positive"):
        run(built, x, -1)


def test_deep_expression():
    a, i = ints(), var()
    value = tir.BufferLoad(a, [i])
    for k in range(10_000):
        value = (
            tir.Add(value, call("int32", "bitwise_xor", value, const(k)))
            if k < 3
            else tir.Add(value, const(k))
        )
    x = np.arange(64, dtype="int32")
    built = build(module(loop(i, const(64), tir.BufferStore(a, value, [i])), [a]))
    expected = x.copy()
    for k in range(10_000):
        expected = expected + (expected ^ k) if k < 3 else expected + np.int32(k)
    run(built, x)
    np.testing.assert_array_equal(x, expected)


def test_many_functions_compile_in_parts():
    """More than one LLVM module: internal functions go along with their callers."""
    functions = {}
    for k in range(40):
        a, i = ints(), var()
        value = tir.BufferLoad(a, [i])
        for c in range(60):
            value = tir.Add(tir.Mul(value, const(c % 3 + 1)), const(k))
        for g, f in module(
            loop(i, const(64), tir.BufferStore(a, value, [i])), [a], name=f"f{k}"
        ).functions.items():
            functions[g] = f
    built = build(IRModule(functions))
    for k in (0, 17, 39):
        x = np.arange(64, dtype="int32")
        expected = x.copy()
        for c in range(60):
            expected = expected * np.int32(c % 3 + 1) + np.int32(k)
        run(built, x, name=f"f{k}")
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize(
    "node,numpy", [(tir.Add, np.sum), (tir.Mul, np.prod), (tir.Max, np.max), (tir.Min, np.min)]
)
def test_reductions(node, numpy, target):
    """Their order is free; NaN still propagates."""
    a, c, i = buffer("A", "float32", 1000), buffer("C", "float32", 1), var()
    old = tir.BufferLoad(c, [const(0)])
    body = loop(i, const(1000), tir.BufferStore(c, node(old, tir.BufferLoad(a, [i])), [const(0)]))
    built = build(module(body, [a, c]))
    if target == "llvm":
        assert " x float>" in built.inspect_source("ll")
    x, y = (1 + 0.03 * np.random.randn(1000)).astype("float32"), np.zeros(1, "float32")
    y[0] = {tir.Add: 0, tir.Mul: 1}.get(node, x[0])
    run(built, x, y)
    np.testing.assert_allclose(y[0], numpy(x), rtol=1e-4, atol=1e-4)
    x[500] = np.nan
    run(built, x, y)
    assert np.isnan(y[0])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("size", [3, 8, 49, 64])
def test_sums_of_short_rows(size, dtype, target):
    """Vectors are loaded along the rows, not one element from each of many."""
    a, c, i, k = buffer("A", dtype, 64 * size), buffer("C", dtype, 64), var(), var("k")
    element = tir.BufferLoad(a, [i * size + k])
    add = tir.BufferStore(c, tir.BufferLoad(c, [i]) + element, [i])
    built = build(module(loop(i, const(64), loop(k, const(size), add)), [a, c]))
    if target == "llvm" and size >= 8:
        assert "gather" not in built.inspect_source("ll")
    x, y = (100 * np.random.rand(64, size)).astype(dtype), np.zeros(64, dtype)
    run(built, x.reshape(-1), y)
    np.testing.assert_allclose(y, x.sum(1), rtol=1e-5)
