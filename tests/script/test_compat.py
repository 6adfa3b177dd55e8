# SPDX-License-Identifier: Apache-2.0
"""Spellings and habits of scripts that were written for the reference interface."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.error import DiagnosticError
from tvm.ir import diagnostics
from tvm.script import from_source
from tvm.script import tir as T


def same(left, right):
    tvm.ir.assert_structural_equal(
        left.with_attr("global_symbol", "f"), right.with_attr("global_symbol", "f")
    )


# ---- dtype= -------------------------------------------------------------------------------------
def test_dtype_is_the_result_type_where_it_is_the_first_parameter():
    x = tir.Var("x", "float32")
    made = T.reinterpret(x, dtype="int32")
    assert made.dtype == "int32" and made.op.name == "tir.reinterpret"
    made = T.call_extern("sinf", x, dtype="float32")
    assert made.dtype == "float32" and str(made.args[0].value) == "sinf"
    assert T.call_intrin("tir.exp", x, dtype="float32").dtype == "float32"


@pytest.mark.parametrize(
    "name, count",
    [("exp", 1), ("sqrt", 1), ("floordiv", 2), ("max", 2), ("power", 2), ("likely", 1)],
)
def test_dtype_is_ignored_by_operators_that_know_their_type(name, count):
    kind = "bool" if name == "likely" else "int32" if name == "floordiv" else "float32"
    args = [tir.Var(c, kind) for c in "ab"[:count]]
    function = getattr(T, name)
    tvm.ir.assert_structural_equal(
        function(*args, dtype="float64"), function(*args), map_free_vars=True
    )


# ---- stores and conditions ----------------------------------------------------------------------
def test_a_store_casts_to_the_type_of_the_buffer():
    @T.prim_func
    def before(
        A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32x4")
    ):
        for i in range(4):
            B[i] = A[i]
            C[0] = A[i]

    @T.prim_func
    def after(
        A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32x4")
    ):
        for i in range(4):
            B[i] = T.Cast("float32", A[i])
            C[0] = T.Broadcast(T.Cast("float32", A[i]), 4)

    same(before, after)

    @T.prim_func
    def run(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]

    b = np.zeros(4, "float32")
    tir.interpret(run)(np.arange(4, dtype="int32"), b)
    np.testing.assert_array_equal(b, [0, 1, 2, 3])


def test_integer_conditions_hold_where_they_are_not_zero():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32")):
        for i in range(8):
            if A[i]:
                A[i] = 1
            while A[i]:
                A[i] = A[i] - 1
            with T.block("b"):
                v = T.axis.spatial(8, i)
                T.where(A[i])
                A[v] = 3

    @T.prim_func
    def after(A: T.Buffer((8,), "int32")):
        for i in range(8):
            if T.Cast("bool", A[i]):
                A[i] = 1
            while T.Cast("bool", A[i]):
                A[i] = A[i] - 1
            with T.block("b"):
                v = T.axis.spatial(8, i)
                T.where(T.Cast("bool", A[i]))
                A[v] = 3

    same(before, after)


# ---- loops, blocks, buffers ---------------------------------------------------------------------
def test_range_takes_annotations():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32")):
        for i in range(8, annotations={"key": 1}):
            A[i] = 0

    @T.prim_func
    def after(A: T.Buffer((8,), "int32")):
        for i in T.serial(8, annotations={"key": 1}):
            A[i] = 0

    same(before, after)
    with pytest.raises(DiagnosticError, match="range: expected"):
        from_source("@T.prim_func\ndef f():\n    for i in range(8, key=1):\n        pass")


def test_block_attributes_merge_and_do_not_contradict():
    text = """@T.prim_func
def f(A: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            T.block_attr({"a": {"x": 1}, "b": 2})
            T.block_attr({"a": {"y": 3}, "b": 2})
            A[v] = 0"""
    block = from_source(text).body.block.body.body.block
    assert {k: dict(v) if k == "a" else v for k, v in block.annotations.items()} == {
        "a": {"x": 1, "y": 3},
        "b": 2,
    }
    with pytest.raises(DiagnosticError, match="expected one value of 'b', got 2 and 3"):
        from_source(text.replace('{"y": 3}, "b": 2', '{"y": 3}, "b": 3'))


def test_axes_may_follow_reads():
    @T.prim_func
    def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("b"):
                T.reads(A[0:8])
                v = T.axis.spatial(8, i)
                B[v] = A[v]

    assert len(f.body.block.body.body.block.iter_vars) == 1


def test_strides_by_name_are_new_variables():
    @T.prim_func
    def f(a: T.handle):
        A = T.match_buffer(a, (8, 8), "float32", strides=("s0", "s1"))
        A[0, 0] = T.float32(0)

    buffer = next(iter(f.buffer_map.values()))
    assert [(s.name_hint, s.dtype) for s in buffer.strides] == [("s0", "int32"), ("s1", "int32")]


@pytest.mark.parametrize(
    "body, message",
    [
        ("with T.block() as x:\n        T.evaluate(0)", "expected no name for a block"),
        ("return T.serial(8)", "expected a value to return, got a statement"),
        ("return T.evaluate(0)", "expected a value to return, got a statement"),
    ],
)
def test_what_means_nothing_is_refused(body, message):
    with pytest.raises(DiagnosticError, match=message):
        from_source(f"@T.prim_func\ndef f():\n    {body}")


# ---- diagnostics --------------------------------------------------------------------------------
def test_errors_go_through_the_renderer():
    seen = []
    diagnostics.override_renderer(seen.append)
    try:
        with pytest.raises(DiagnosticError):
            from_source("@T.prim_func\ndef f():\n    x = undefined")

        with pytest.raises(DiagnosticError):

            @T.prim_func
            def g(A: T.Buffer((8,), "int32")):
                A[0, 0] = 1
    finally:
        diagnostics.override_renderer(None)
    (first,), (second,) = (context.diagnostics for context in seen)
    assert first.level == diagnostics.DiagnosticLevel.ERROR
    assert "undefined name 'undefined'" in first.message and first.span.line == 3
    assert "expected 1 indices, got 2" in second.message and second.span.line == 3


# ---- tir.ir_builder -----------------------------------------------------------------------------
def test_ir_builder_computes():
    ib = tir.ir_builder.create()
    n = tir.Var("n", "int32")
    A = tir.decl_buffer((n,), "float32", "A")
    B = tir.decl_buffer((n,), "float32", "B")
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    total = ib.allocate("float32", (1,), name="total", scope="local")
    total[0] = 0.0
    with ib.for_range(0, n, name="i") as i:
        total[0] = total[0] + a[i]
        with ib.if_scope(i % 2 == 0):
            b[i] = total[0]
        with ib.else_scope():
            twice = ib.let("twice", a[i] * 2.0)
            b[i] = twice
    func = tir.PrimFunc([n, A, B], ib.get())
    data, out = np.arange(6, dtype="float32"), np.zeros(6, "float32")
    tir.interpret(func)(6, data, out)
    np.testing.assert_array_equal(out, [0, 2, 3, 6, 10, 10])


def test_ir_builder_makes_the_documented_statements():
    ib = tir.ir_builder.create()
    n = tir.Var("n", "int32")
    A = ib.pointer("float32", name="A")
    with ib.for_range(0, n, name="i", kind="parallel") as i:
        ib.scope_attr(A.asobject().data, "key", "value")
        with ib.while_loop(ib.likely(A[i] < 1.0)):
            A[i] = A[i] + 1.0
    func = tir.PrimFunc([n, A], ib.get())
    loop = func.body
    assert loop.kind == tir.ForKind.PARALLEL and isinstance(loop.body, tir.AttrStmt)
    assert isinstance(loop.body.body, tir.While)
    tvm.ir.assert_structural_equal(from_source(func.script(), check_well_formed=False), func)


def test_ir_builder_refuses_nonsense():
    ib = tir.ir_builder.create()
    A = ib.pointer("float32", name="A")
    with pytest.raises(RuntimeError, match="expected directly after an if_scope"):
        ib.else_scope()
    with pytest.raises(ValueError, match="expected a value of type float32 for A, got int32"):
        A[0] = tir.Var("i", "int32")
    with pytest.raises(ValueError, match="expected a kind of .*, got 'diagonal'"):
        ib.for_range(0, 8, kind="diagonal")
    with pytest.raises(TypeError, match="expected a statement, got int"):
        ib.emit(3)
    ib.for_range(0, 8)
    with pytest.raises(RuntimeError, match="expected all scopes to have ended"):
        ib.get()


# ---- what else programs say ---------------------------------------------------------------------
class Filler:
    def __init__(self, value):
        self.value = value

    @T.macro
    def fill(self, A, i):
        A[i] = self.value


def test_macros_are_methods():
    seven = Filler(7.0)

    @T.prim_func
    def func(A: T.Buffer((2,), "float32")):
        seven.fill(A, 1)

    @T.prim_func
    def expected(A: T.Buffer((2,), "float32")):
        A[1] = T.float32(7)

    tvm.ir.assert_structural_equal(
        func.without_attr("global_symbol"), expected.without_attr("global_symbol")
    )


@pytest.mark.parametrize(
    "lines",
    ["v = T.axis.spatial(8, i)\n            v = T.axis.spatial(8, i)", "B = T.alloc_buffer((8,))\n"
     "            B = T.alloc_buffer((8,))\n            v = T.axis.spatial(8, i)"],
)  # fmt: skip
def test_names_are_bound_once_in_a_scope(lines):
    text = f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("b"):
            {lines}
            A[v] = T.float32(1)
"""
    with pytest.raises(DiagnosticError, match="expected a new name, got '[vB]'"):
        from_source(text)


def test_slices_of_scalable_vectors():
    @T.prim_func
    def func(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        B[0 : T.vscale() * 4] = A[0 : T.vscale() * 4]

    assert func.body.value.dtype == "float32xvscalex4"
    with pytest.raises(DiagnosticError, match=r"or a multiple of T.vscale\(\), in dimension 0"):
        from_source(
            "@T.prim_func\ndef f(A: T.Buffer((8,), 'float32'), n: T.int32):\n    A[0:n] = A[0:n]\n"
        )


def test_realize_in_any_scope():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        T.realize(A[0:8], "")
        A[0] = T.float32(1)

    assert isinstance(func.body, tir.BufferRealize)

    @T.prim_func
    def shared(A: T.Buffer((8,), "float32")):
        T.realize(A[0:8], "shared")
        A[0] = T.float32(1)

    assert shared.body.attr_key == "realize_scope" and shared.body.value.value == "shared"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn"])
def test_floats_print_with_a_point(dtype):
    assert str(tir.const(1.0, dtype)) == f"T.{dtype}(1.0)"
    assert str(tir.const(-2.0, dtype)) == f"T.{dtype}(-2.0)"


def test_reducers_print_as_functions():
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    one = tir.CommReducer([x], [y], [x + y], [tir.const(0, "int32")])
    assert one.script() == "T.comm_reducer(lambda x, y: x + y, [0])"
    two = tir.CommReducer([x, i], [y, j], [tir.max(x, y), i], [tir.const(0), tir.const(1)])
    assert two.script() == "T.comm_reducer(lambda x, i, y, j: (T.max(x, y), i), [0, 1])"


def test_constants_of_numpy():
    assert tir.const(np.float16(1)).dtype == "float16"
    assert tir.const(np.int8(1)).dtype == "int8"
    assert tir.const(1e40).dtype == "float64"
    assert str(tir.const(2**64 - 1)) == "T.uint64(18446744073709551615)"


def test_equality_shows_both_programs():
    a, b = tir.Var("a", "int32"), tir.Var("b", "int32")
    with pytest.raises(ValueError, match="StructuralEqual check failed, caused by lhs at .*:\n"):
        tvm.ir.assert_structural_equal(tir.Evaluate(a + 1), tir.Evaluate(a + 2))
    with pytest.raises(ValueError, match="\nand rhs at <root>"):
        tvm.ir.assert_structural_equal(a + 1, b + 1)


def test_specialize_folds_sizes():
    @T.prim_func
    def func(a: T.handle, c: T.handle, n: T.int32):
        m = T.int32()
        A = T.match_buffer(a, (m, n))
        C = T.match_buffer(c, (m, n * 2))
        for i, j in T.grid(m, n):
            C[i, j] = A[i, j]

    a, c, n = func.params
    k = tir.Var("k", "int32")
    of_buffer = func.specialize({a: tir.decl_buffer((k, 8))})
    assert int(of_buffer.buffer_map[of_buffer.params[1]].shape[1]) == 16
    of_value = func.specialize({n: k * 4})
    tvm.ir.assert_structural_equal(of_value.buffer_map[of_value.params[0]].shape[1], k * 4)


def test_decorators_by_any_name():
    from tvm.script import ir_module as modular

    @modular
    class Module:
        @T.prim_func
        def main(A: T.Buffer((8,), "float32")):
            A[0] = T.float32(1)

    assert "main" in [v.name_hint for v in Module.get_global_vars()]


def test_axes_are_integers():
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    with T.block("b"):
        v = T.axis.spatial(8, T.float32(1))
        A[v] = T.float32(1)
"""
    with pytest.raises(DiagnosticError, match="axis: expected an integer, got .* of float32"):
        from_source(text)


@pytest.mark.parametrize("dtype", ["float99", "int65", "uint128"])
def test_types_without_values(dtype):
    with pytest.raises(TypeError, match="Var: expected a type with values for x"):
        tir.Var("x", dtype)


def test_microcontrollers():
    target = tvm.target.Target("c -mcpu=cortex-m7")
    assert list(target.keys) == ["arm_cpu", "cpu"]
    assert target.features.has_dsp and not target.features.has_mve
    assert tvm.target.Target("c -mcpu=cortex-m55").features.has_mve
    assert not tvm.target.Target("c -mcpu=cortex-m0").features.has_dsp


def test_a_handle_that_is_used_stays_a_parameter():
    @T.prim_func
    def func(a: T.handle):
        A = T.match_buffer(a, (4,))
        T.evaluate(T.call_extern("int32", "f", a))
        A[0] = 1.0

    assert "A = T.match_buffer(a, (4,))" in func.script()
    tvm.ir.assert_structural_equal(tvm.script.from_source(func.script()), func)


@pytest.mark.parametrize("shape", [(4, 5), (3, 4), (16, 4)])
def test_views_have_the_shape_of_their_region(shape):
    text = f"""@T.prim_func
def func(A: T.Buffer((16, 16), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            M = T.match_buffer(A[vi * 4:vi * 4 + 4, 0:4], {shape})
            M[0, 0] = 1.0
"""
    with pytest.raises(DiagnosticError, match=r"M = T.match_buffer") as error:
        from_source(text)
    assert "expected a view of the shape of its region of A, 4 elements" in str(error.value)


def test_bounds_print_their_infinities():
    bound = tvm.arith.ConstIntBound
    assert str(bound(bound.NEG_INF, 7)) == "ConstIntBound[neg_inf, 7]"
    assert repr(bound(0, bound.POS_INF)) == "ConstIntBound[0, pos_inf]"


def test_functions_print_their_full_source_name():
    from tvm.script.parser.core.diagnostics import Source

    assert Source(test_functions_print_their_full_source_name).source_name == __file__


def test_flops_that_are_said():
    @T.prim_func
    def said(A: T.Buffer((4,), "float32")):
        T.func_attr({"estimated_flops": T.float32(32)})
        A[0] = A[0] + 1.0

    assert tvm.tir.analysis.estimate_tir_flops(tvm.IRModule({"main": said})) == 32


def test_names_of_devices():
    assert tvm.target.Target("opencl -device=mali").device_name == "mali"
    assert tvm.target.Target("llvm").device_name == ""
