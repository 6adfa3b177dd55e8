# SPDX-License-Identifier: Apache-2.0
"""The interpreter against NumPy, node by node."""

import math

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import tir
from tvm.tir import interpret


def op(name, dtype, *args):
    return tir.Call(dtype, tvm.ir.Op.get("tir." + name), list(args))


def function(body, *buffers, params=()):
    handles = [tir.Var(b.name + "_handle", "handle") for b in buffers]
    return tir.PrimFunc(
        [*handles, *params], body, buffer_map=dict(zip(handles, buffers, strict=True))
    )


def loop(var, extent, body, kind=tir.ForKind.SERIAL, **more):
    return tir.For(var, 0, extent, kind, body, **more)


def elementwise(make, dtype, out_dtype=None, inputs=1):
    """The function out[i] = make(in0[i], ...) over vectors of any length."""
    n, i = tir.Var("n", "int32"), tir.Var("i", "int32")
    ins = [tir.decl_buffer((n,), dtype, name=f"A{k}") for k in range(inputs)]
    values = [tir.BufferLoad(a, [i]) for a in ins]
    value = make(*values)
    out = tir.decl_buffer((n,), out_dtype or value.dtype, name="B")
    return interpret(function(loop(i, n, tir.BufferStore(out, value, [i])), *ins, out))


def run(make, *arrays, out_dtype=None):
    name = str(arrays[0].dtype)
    kernel = elementwise(make, name, out_dtype, len(arrays))
    out = np.empty(arrays[0].shape, out_dtype or name)
    kernel(*arrays, out)
    return out


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -3.5, 1e30, -1e-30, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    "node, reference",
    [
        (tir.Add, np.add),
        (tir.Sub, np.subtract),
        (tir.Mul, np.multiply),
        (tir.Div, np.divide),
        (tir.Min, np.minimum),
        (tir.Max, np.maximum),
    ],
)
def test_float_arithmetic(node, reference, dtype):
    with np.errstate(all="ignore"):
        a, b = (g.ravel().astype(dtype) for g in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        expected = reference(a, b)
    np.testing.assert_array_equal(run(node, a, b), expected)


INTEGERS = {
    "int8": [0, 1, -1, 7, -7, 127, -128],
    "int32": [0, 1, -1, 7, -7, 2**31 - 1, -(2**31)],
    "uint32": [0, 1, 7, 2**32 - 1],
    "int64": [0, 1, -1, 3, -(2**63), 2**63 - 1],
    "uint64": [0, 1, 7, 2**63, 2**64 - 1],
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "node, reference",
    [
        (tir.Add, np.add),
        (tir.Sub, np.subtract),
        (tir.Mul, np.multiply),
        (tir.FloorDiv, np.floor_divide),
        (tir.FloorMod, np.remainder),
        (tir.Mod, np.fmod),
        (tir.Min, np.minimum),
        (tir.Max, np.maximum),
    ],
)
def test_integer_arithmetic_wraps_and_divides_by_zero_to_zero(node, reference, dtype):
    a, b = (g.ravel().astype(dtype) for g in np.meshgrid(*[np.array(INTEGERS[dtype], dtype)] * 2))
    with np.errstate(all="ignore"):
        expected = reference(a, b)
    np.testing.assert_array_equal(run(node, a, b), expected)


def test_integer_division_rounds_towards_zero():
    a, b = np.array([7, -7, 7, -7, 5], "int32"), np.array([2, 2, -2, -2, 0], "int32")
    np.testing.assert_array_equal(run(tir.Div, a, b), [3, -3, -3, 3, 0])


@pytest.mark.parametrize(
    "node, reference", [(tir.LT, np.less), (tir.EQ, np.equal), (tir.GE, np.greater_equal)]
)
def test_comparisons(node, reference):
    a, b = (g.ravel().astype("float32") for g in np.meshgrid(SPECIAL, SPECIAL))
    np.testing.assert_array_equal(run(node, a, b, out_dtype="bool"), reference(a, b))


def test_casts_saturate_and_nan_is_zero():
    a = np.array([1.9, -1.9, 3e9, -3e9, math.inf, -math.inf, math.nan, 300.5], "float32")
    got = run(lambda x: tir.Cast("int32", x), a, out_dtype="int32")
    np.testing.assert_array_equal(got, [1, -1, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0, 300])
    got = run(lambda x: tir.Cast("uint8", x), a, out_dtype="uint8")
    np.testing.assert_array_equal(got, [1, 0, 255, 0, 255, 0, 0, 255])


def test_cast_of_large_integers_rounds_once():
    a = np.array([2**62 + 2**38 + 1, 2**53 + 1, -(2**63)], "int64")
    got = run(lambda x: tir.Cast("float32", x), a, out_dtype="float32")
    np.testing.assert_array_equal(got, a.astype("float32"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_small_floats(dtype):
    t = getattr(ml_dtypes, dtype)
    a = np.linspace(-6, 6, 23).astype("float32").astype(t)
    b = a[::-1].copy()
    got = run(tir.Add, a, b)
    np.testing.assert_array_equal(
        got.astype("float32"),
        (a.astype("float32") + b.astype("float32")).astype(t).astype("float32"),
    )


@pytest.mark.parametrize("dtype,largest", [("float6_e3m2fn", 28.0), ("float4_e2m1fn", 6.0)])
def test_nan_in_a_type_without_nan_is_its_largest_number(dtype, largest):
    values = np.array([np.nan, 1.0, -np.inf], "float32")
    got = run(lambda x: tir.Cast("float32", tir.Cast(dtype, x)), values)
    np.testing.assert_array_equal(got, [largest, 1.0, -largest])


def test_integers_without_a_type_in_numpy():
    """Arrays hold them in the next wider one; they wrap at their own width."""
    a, b = np.array([63, 40, 1], "uint8"), np.array([2, 24, 3], "uint8")
    n, i = 3, tir.Var("i", "int32")
    x, y, z = (tir.decl_buffer((n,), "uint6", name=name) for name in "XYZ")
    got = np.zeros(n, "uint8")
    interpret(function(loop(i, n, tir.BufferStore(z, x[i] + y[i], [i])), x, y, z))(a, b, got)
    np.testing.assert_array_equal(got, [1, 0, 4])


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_shifts_by_the_width_or_more(dtype):
    a = np.array([1, 2**31 - 1, 5], dtype)
    b = np.array([31, 32, 40], dtype)
    np.testing.assert_array_equal(
        run(lambda x, y: op("shift_left", dtype, x, y), a, b),
        np.array([2**31, 0, 0], "uint64").astype(dtype),
    )
    np.testing.assert_array_equal(run(lambda x, y: op("shift_right", dtype, x, y), a, b), [0, 0, 0])
    if dtype == "int32":
        got = run(
            lambda x, y: op("shift_right", dtype, x, y),
            np.array([-8, -8], dtype),
            np.array([1, 99], dtype),
        )
        np.testing.assert_array_equal(got, [-4, -1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fma_rounds_once(dtype):
    eps = np.finfo(dtype).eps
    a = np.array([1 + eps, 3.0, math.inf, 1e30, -1.0], dtype)
    b = np.array([1 - eps, 1 / 3, 0.0, 1e30, 1.0], dtype)
    c = np.array([-1.0, -1.0, 1.0, 1.0, 1.0], dtype)
    got = run(lambda x, y, z: op("fma", dtype, x, y, z), a, b, c)
    assert got[0] == -(np.float64(eps) ** 2)
    assert math.isnan(got[2]) and got[4] == 0 and not np.signbit(got[4])
    wide = np.longdouble(a[1]) * np.longdouble(b[1]) - 1
    assert got[1] == wide.astype(dtype)


FUNCTIONS = {
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "sin": np.sin, "sqrt": np.sqrt,
    "atan": np.arctan, "floor": np.floor, "round": np.rint, "trunc": np.trunc, "fabs": np.abs,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    a = np.array([*SPECIAL, 0.3, 12.5], "float32")
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](a.astype("float64")).astype("float32")
    np.testing.assert_array_equal(run(lambda x: op(name, "float32", x), a), expected)


def test_reinterpret_and_bits():
    a = np.array([1.0, -0.0, math.nan], "float32")
    got = run(lambda x: op("reinterpret", "int32", x), a, out_dtype="int32")
    np.testing.assert_array_equal(got, a.view("int32"))
    b = np.array([0, 1, -1, 256], "int32")
    np.testing.assert_array_equal(run(lambda x: op("popcount", "int32", x), b), [0, 1, 32, 1])
    np.testing.assert_array_equal(run(lambda x: op("clz", "int32", x), b), [32, 31, 0, 23])


def matmul(n=4, m=5, k=3):
    """A block with a reduction and an initial value."""
    a, b, c = (
        tir.decl_buffer(s, "float32", name=x)
        for s, x in (((n, k), "A"), ((k, m), "B"), ((n, m), "C"))
    )
    loops = [tir.Var(x, "int32") for x in "ijk"]
    axes = [tir.Var("v" + x, "int32") for x in "ijk"]
    kinds = [tir.IterVar.DataPar, tir.IterVar.DataPar, tir.IterVar.CommReduce]
    iters = [
        tir.IterVar(tvm.ir.Range(0, e), v, t)
        for e, v, t in zip((n, m, k), axes, kinds, strict=True)
    ]
    vi, vj, vk = axes
    product = tir.BufferLoad(a, [vi, vk]) * tir.BufferLoad(b, [vk, vj])
    block = tir.Block(
        iters, [], [], "C",
        tir.BufferStore(c, tir.BufferLoad(c, [vi, vj]) + product, [vi, vj]),
        init=tir.BufferStore(c, tir.FloatImm("float32", 0), [vi, vj]),
    )  # fmt: skip
    body = tir.BlockRealize(loops, tir.IntImm("bool", 1), block)
    for var, extent in reversed(list(zip(loops, (n, m, k), strict=True))):
        body = loop(var, extent, body)
    return function(body, a, b, c)


def test_block_with_reduction():
    a, b = np.random.rand(4, 3).astype("float32"), np.random.rand(3, 5).astype("float32")
    c = np.full((4, 5), 7, "float32")
    interpret(matmul())(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-6)


def test_arguments_are_checked():
    kernel = interpret(matmul())
    good = [np.zeros(s, "float32") for s in ((4, 3), (3, 5), (4, 5))]
    with pytest.raises(TypeError, match="expected 3 arguments, got 2"):
        kernel(*good[:2])
    with pytest.raises(TypeError, match="expected A of type float32, got float64"):
        kernel(good[0].astype("float64"), *good[1:])
    with pytest.raises(ValueError, match=r"expected A of shape \(4, 3\), got \(4, 4\)"):
        kernel(np.zeros((4, 4), "float32"), *good[1:])
    with pytest.raises(ValueError, match="strides"):
        kernel(np.zeros((3, 4), "float32").T, *good[1:])


def test_index_out_of_bounds_names_buffer_and_index():
    a, i = tir.decl_buffer((4,), "float32", name="A"), tir.Var("i", "int32")
    f = function(loop(i, 5, tir.BufferStore(a, tir.FloatImm("float32", 0), [i])), a)
    with pytest.raises(IndexError, match=r"A: expected index 0 in \[0, 4\), got 4"):
        interpret(f)(np.zeros(4, "float32"))


def test_block_iterator_outside_its_domain():
    a, i, v = (
        tir.decl_buffer((4,), "float32", name="A"),
        tir.Var("i", "int32"),
        tir.Var("v", "int32"),
    )
    block = tir.Block(
        [tir.IterVar(tvm.ir.Range(0, 4), v, 0)], [], [], "fill",
        tir.BufferStore(a, tir.FloatImm("float32", 1), [v]),
    )  # fmt: skip
    body = tir.BlockRealize([i], tir.IntImm("bool", 1), block)
    with pytest.raises(IndexError, match=r"block fill: expected v in \[0, 4\), got 4"):
        interpret(function(loop(i, 5, body), a))(np.zeros(4, "float32"))
    x = np.zeros(4, "float32")
    interpret(function(loop(i, 5, tir.BlockRealize([i], i < 4, block)), a))(x)
    np.testing.assert_array_equal(x, 1)


def test_fresh_memory_is_poison():
    a, t, i = (
        tir.decl_buffer((4,), "float32", name="A"),
        tir.decl_buffer((4,), "float32", name="T"),
        tir.Var("i", "int32"),
    )
    body = loop(i, 4, tir.BufferStore(a, tir.BufferLoad(t, [i]), [i]))
    body = tir.Allocate(t.data, "float32", [4], tir.IntImm("bool", 1), tir.DeclBuffer(t, body))
    x = np.zeros(4, "float32")
    interpret(function(body, a))(x)
    assert np.isnan(x).all()


def test_vectors_and_predicates():
    a, b = (tir.decl_buffer((8,), "float32", name=x) for x in "AB")
    load = tir.BufferLoad(a, [tir.Ramp(0, 2, 4)])
    store = tir.BufferStore(
        b, load + tir.Broadcast(tir.FloatImm("float32", 1), 4), [tir.Ramp(4, -1, 4)]
    )
    x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    interpret(function(store, a, b))(x, y)
    np.testing.assert_array_equal(y, [0, 7, 5, 3, 1, 0, 0, 0])
    mask = tir.LT(tir.Ramp(0, 1, 4), tir.Broadcast(tir.IntImm("int32", 2), 4))
    masked = tir.BufferStore(
        b, tir.Broadcast(tir.FloatImm("float32", 9), 4), [tir.Ramp(6, 1, 4)], mask
    )
    interpret(function(masked, a, b))(x, y)  # lanes 2 and 3 are beyond the buffer and write nothing
    np.testing.assert_array_equal(y, [0, 7, 5, 3, 1, 0, 9, 9])
    shuffled = tir.Shuffle(
        [tir.BufferLoad(a, [tir.Ramp(0, 1, 4)])], [tir.IntImm("int32", k) for k in (3, 1, 2, 0)]
    )
    interpret(function(tir.BufferStore(b, shuffled, [tir.Ramp(0, 1, 4)]), a, b))(x, y)
    np.testing.assert_array_equal(y[:4], [3, 1, 2, 0])


def test_vector_select_let_and_ramp_of_vectors():
    b = tir.decl_buffer((4,), "int32", name="B")
    v = tir.Var("v", "int32x4")
    ramp = tir.Ramp(0, 1, 4)
    value = tir.Let(
        v, ramp, tir.Select(tir.LT(v, tir.Broadcast(tir.IntImm("int32", 2), 4)), v + v, v * v)
    )
    y = np.zeros(4, "int32")
    interpret(function(tir.BufferStore(b, value, [ramp]), b))(y)
    np.testing.assert_array_equal(y, [0, 2, 4, 9])


def test_view_of_another_type():
    """Lowered code sees one piece of memory through buffers of several types."""
    a = tir.decl_buffer((2,), "float32", name="A")
    bits = tir.decl_buffer((2,), "int32", data=a.data, name="bits")
    body = tir.DeclBuffer(bits, tir.BufferStore(bits, tir.IntImm("int32", 0x3F800000), [1]))
    x = np.zeros(2, "float32")
    interpret(function(body, a))(x)
    np.testing.assert_array_equal(x, [0, 1])


def test_while_break_continue_and_ret():
    a, i = tir.decl_buffer((8,), "int32", name="A"), tir.Var("i", "int32")
    one = tir.IntImm("int32", 1)

    def at(k):
        return tir.BufferLoad(a, [k])

    stop = tir.IfThenElse(i >= 6, tir.Evaluate(op("break_loop", "void")), None)
    skip = tir.IfThenElse(
        tir.EQ(i % 2, tir.IntImm("int32", 0)), tir.Evaluate(op("continue_loop", "void")), None
    )
    body = loop(i, 8, tir.SeqStmt([stop, skip, tir.BufferStore(a, one, [i])]))
    count = tir.While(at(0) < 5, tir.BufferStore(a, at(0) + one, [0]))
    result = tir.Evaluate(op("ret", "int32", at(0) + at(1)))
    x = np.zeros(8, "int32")
    assert interpret(function(tir.SeqStmt([body, count, result]), a))(x) == 6
    np.testing.assert_array_equal(x, [5, 1, 0, 1, 0, 1, 0, 0])


def test_loop_kinds_and_steps():
    a, i = tir.decl_buffer((8,), "int32", name="A"), tir.Var("i", "int32")
    for kind in (tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED, tir.ForKind.UNROLLED):
        x = np.zeros(8, "int32")
        interpret(function(loop(i, 8, tir.BufferStore(a, i, [i]), kind), a))(x)
        np.testing.assert_array_equal(x, np.arange(8))
    x = np.zeros(8, "int32")
    interpret(function(loop(i, 8, tir.BufferStore(a, i, [i]), step=tir.IntImm("int32", 3)), a))(x)
    np.testing.assert_array_equal(x, [0, 0, 0, 3, 0, 0, 6, 0])


def test_strided_buffer_and_scalar_parameter():
    n, s, i = tir.Var("n", "int32"), tir.Var("s", "int32"), tir.Var("i", "int32")
    alpha = tir.Var("alpha", "float32")
    a = tir.decl_buffer((n,), "float32", name="A", strides=[s])
    store = tir.BufferStore(a, tir.BufferLoad(a, [i]) * alpha, [i])
    x = np.arange(10, dtype="float32")
    interpret(function(loop(i, n, store), a, params=[alpha]))(x[::3], 2.0)
    np.testing.assert_array_equal(x, [0, 1, 2, 6, 4, 5, 12, 7, 8, 18])


def test_call_of_another_function():
    i, p = tir.Var("i", "int32"), tir.Var("p", "handle")
    inner_buffer = tir.decl_buffer((4,), "float32", name="X")
    inner = tir.PrimFunc(
        [p],
        loop(i, 4, tir.BufferStore(inner_buffer, tir.FloatImm("float32", 3), [i])),
        buffer_map={p: inner_buffer},
    )
    a = tir.decl_buffer((4,), "float32", name="A")
    g = tvm.ir.GlobalVar("inner")
    outer = function(tir.Evaluate(tir.Call("int32", g, [a.data])), a)
    x = np.zeros(4, "float32")
    interpret(tvm.IRModule({g: inner, tvm.ir.GlobalVar("main"): outer}))(x)
    np.testing.assert_array_equal(x, 3)


def test_packed_function():
    seen = []
    tvm_ffi.register_global_func("testing.interpreter.record", seen.append, override=True)
    call = op(
        "tvm_call_packed",
        "int32",
        tir.StringImm("testing.interpreter.record"),
        tir.IntImm("int32", 42),
    )
    interpret(tir.PrimFunc([], tir.Evaluate(call)))()
    assert seen == [42]
    call = op("tvm_call_packed", "int32", call.args[0], tir.const(True, "bool"))
    interpret(tir.PrimFunc([], tir.Evaluate(call)))()
    assert seen[1] is True
    a, x = tir.decl_buffer((4,), "float32", name="A"), np.zeros(4, "float32")
    call = op("tvm_call_packed", "int32", call.args[0], a.data)
    interpret(function(tir.Evaluate(call), a))(x)
    assert seen[2].value == x.ctypes.data


def test_errors_of_the_program():
    n = tir.Var("n", "int32")
    nothing = tir.Evaluate(tir.IntImm("int32", 0))
    check = tir.AssertStmt(n > 0, tir.StringImm("ValueError: expected n > 0"), nothing)
    with pytest.raises(ValueError, match="expected n > 0"):
        interpret(tir.PrimFunc([n], check))(0)
    check = tir.AssertStmt(n > 0, tir.StringImm("no"), nothing)
    with pytest.raises(RuntimeError, match="no"):
        interpret(tir.PrimFunc([n], check))(0)
    raised = op("tvm_raise_error", "void", tir.StringImm("TypeError"), tir.StringImm("got %lld"), n)
    with pytest.raises(TypeError, match="got 3"):
        interpret(tir.PrimFunc([n], tir.Evaluate(raised)))(3)
    with pytest.raises(NotImplementedError, match="tvm_bmma_sync"):
        interpret(tir.PrimFunc([], tir.Evaluate(op("tvm_bmma_sync", "void"))))()
    with pytest.raises(ValueError, match="expected ptx_wait_group inside of a launch of threads"):
        interpret(tir.PrimFunc([], tir.Evaluate(op("ptx_wait_group", "void", 0))))()


def test_match_buffer():
    a, i, j = (
        tir.decl_buffer((4, 6), "float32", name="A"),
        tir.Var("i", "int32"),
        tir.Var("j", "int32"),
    )
    offset, s0, s1 = (tir.Var(x, "int32") for x in ("offset", "s0", "s1"))
    view = tir.decl_buffer((2, 3), "float32", name="V", elem_offset=offset, strides=[s0, s1])
    region = tir.BufferRegion(
        a, [tvm.ir.Range.from_min_extent(1, 2), tvm.ir.Range.from_min_extent(2, 3)]
    )
    store = tir.BufferStore(view, tir.FloatImm("float32", 1), [i, j])
    block = tir.Block(
        [],
        [],
        [],
        "view",
        loop(i, 2, loop(j, 3, store)),
        match_buffers=[tir.MatchBufferRegion(view, region)],
    )
    x = np.zeros((4, 6), "float32")
    interpret(function(tir.BlockRealize([], tir.IntImm("bool", 1), block), a))(x)
    expected = np.zeros((4, 6), "float32")
    expected[1:3, 2:5] = 1
    np.testing.assert_array_equal(x, expected)
