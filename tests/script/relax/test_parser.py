# SPDX-License-Identifier: Apache-2.0
"""Reading Relax programs: spellings, macros, the builder, and errors with their places."""

import pytest
import tvm
from tvm import relax, te, tir
from tvm.error import DiagnosticError
from tvm.script import from_source
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import relax as B

equal = tvm.ir.assert_structural_equal
F32 = R.Tensor((2, 3), "float32")


def named(func):
    return func.with_attr("global_symbol", "f")


# ---- shapes -------------------------------------------------------------------------------------
def test_symbolic_shapes_in_every_spelling():
    @R.function
    def texts(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("n + m * 2",), "float32")):
        return x

    by_names = from_source(
        """@R.function
def names(x: R.Tensor((n, m), "float32"), y: R.Tensor((n + m * 2,), "float32")):
    n = T.int64()
    m = T.int64()
    return x"""
    )
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")

    @R.function
    def outside(x: R.Tensor((n, m), "float32"), y: R.Tensor((n + m * 2,), dtype="float32")):
        return x

    @R.function
    def expression_first(
        y: R.Tensor(("n + m * 2",), "float32"), x: R.Tensor(("n", "m"), "float32")
    ):
        return x

    equal(named(texts), named(by_names))
    equal(named(texts), named(outside))
    assert [p.struct_info for p in expression_first.params][1].shape.values[0].name_hint == "n"


def test_struct_info_without_call_and_in_old_spellings():
    @R.function
    def f(
        a: R.Tensor,
        b: R.Shape,
        c: R.Tuple,
        d: R.Object,
        e: R.Callable,
        g: R.Tensor(None, "int8", ndim=2),
        h: R.Tensor("float16", ndim=1),
    ):
        return a

    infos = [p.struct_info for p in f.params]
    assert infos[0] == relax.TensorStructInfo(None, None)
    assert infos[2] == relax.TupleStructInfo([]) and infos[3] == relax.ObjectStructInfo()
    assert infos[4] == relax.FuncStructInfo.opaque_func()
    assert infos[5] == relax.TensorStructInfo(None, "int8", ndim=2)
    assert infos[6] == relax.TensorStructInfo(None, "float16", ndim=1)


def test_struct_info_outside_of_a_function():
    info = relax.Var("x", R.Tensor(("n", "n + 1"), "float32")).struct_info
    n = info.shape.values[0]
    assert isinstance(n, tir.Var) and n.dtype == "int64"
    equal(info.shape.values[1], n + 1)
    assert R.Tensor((1, 2), "float32") == relax.TensorStructInfo((1, 2), "float32")


# ---- bindings -----------------------------------------------------------------------------------
def test_what_is_bound_to_names():
    @R.function
    def f(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        one = 1
        half = 0.5
        pair = (x, one)
        size = n + 1
        x = pair[0]  # a name may be taken again
        a, b = pair
        return (a, b, half, size, x)

    values = [b.value for b in f.body.blocks[0].bindings]
    kinds = [type(v).__name__ for v in values]
    assert kinds[:5] == ["Constant", "Constant", "Tuple", "PrimValue", "TupleGetItem"]
    assert values[0].struct_info == relax.TensorStructInfo((), "int32")
    assert [b.var.name_hint for b in f.body.blocks[0].bindings][-2:] == ["a", "b"]


def test_dataflow_outputs_and_return_inside():
    @R.function
    def f(x: F32):
        with R.dataflow():
            a = (x, x)
            b = a[0]
            R.output(b)
            return b

    block = f.body.blocks[0]
    assert isinstance(block, relax.DataflowBlock)
    assert [type(b.var) for b in block.bindings] == [relax.DataflowVar, relax.Var]
    assert f.body.body.same_as(block.bindings[1].var)


def test_macros_return_a_value():
    @R.macro
    def first(pair):
        item = pair[0]
        return item

    @R.macro(hygienic=False)
    def of_caller():
        return (x, x)  # noqa: F821

    @R.function
    def f(x: F32):
        p = of_caller()
        y = first(p)
        return y

    assert [b.var.name_hint for b in f.body.blocks[0].bindings] == ["p", "item", "y"]


def test_emit_and_emit_te():
    def add_one(a):
        return te.compute(a.shape, lambda *i: a(*i) + 1.0, name="out")

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            y = R.emit((x, x))
            z = R.emit_te(add_one, x)
            return (y, z)

    assert sorted(v.name_hint for v in Module.get_global_vars()) == ["add_one", "main"]
    assert "R.call_tir(cls.add_one, (x,), out_sinfo=" in Module.script()


def test_recursion_and_calls_between_functions():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            return Module.other(x)

        @R.function
        def other(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            cls = Module
            return cls.other(x)

    call = Module["other"].body.blocks[0].bindings[0].value
    assert (
        call.op.name_hint == "other" and call.struct_info == Module["other"].params[0].struct_info
    )


def test_programs_are_checked():
    text = """@R.function
def f(x: R.Object):
    y = R.call_packed("f", x, sinfo_args=R.Object)
    return y"""
    with pytest.raises(DiagnosticError, match="no call with side effects in a pure function"):
        from_source(text)
    from_source(text, check_well_formed=False)
    from_source(text.replace("@R.function", "@R.function(check_well_formed=False)"))
    from_source(text.replace("@R.function", "@R.function(pure=False)"))


# ---- the builder --------------------------------------------------------------------------------
def test_builder_frames():
    with IRBuilder() as builder:
        with B.function(is_pure=True):
            B.func_name("f")
            B.func_attr({"k": 1})
            x = B.arg("x", F32)
            c = B.arg("c", R.Tensor((), "bool"))
            B.func_ret_struct_info(relax.ObjectStructInfo())
            with B.dataflow() as block:
                y = B.emit((x, x))
                IRBuilder.name("y", y)
                B.output(y)
            y = dict(block.published)[y]
            with B.If(c) as choice:
                with B.Then():
                    B.emit(y, name="z")
                with B.Else():
                    B.emit_match_cast(y, relax.ObjectStructInfo(), name="z")
            B.func_ret_value(choice.var)

    @R.function
    def f(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")) -> R.Object:
        R.func_attr({"k": 1})
        with R.dataflow():
            y = (x, x)
            R.output(y)
        if c:
            z = y
        else:
            z = R.match_cast(y, R.Object)
        return z

    equal(builder.get(), f)


# ---- errors -------------------------------------------------------------------------------------
HEAD = "@R.function\ndef f(x: R.Tensor(('n', 4), 'float32'), c: R.Tensor((), 'bool')):\n    "
ERRORS = {
    "y = x": ("def f", "expected a return at the end of f"),
    "return x\n    return c": ("return c", "expected one in a function, got two"),
    "return": ("return", "expected a value to return"),
    "return y": ("y", "undefined name 'y'"),
    "y: R.Tensor(('k',)) = x\n    return y": (
        "R.Tensor(('k',))",
        "undefined symbolic variable 'k'",
    ),
    "with R.dataflow():\n        a = x\n        R.output(a)\n        b = x\n    return a": (
        "b = x",
        "expected no bindings after R.output",
    ),
    "with R.dataflow():\n        a = x\n        b = a\n        R.output(b)\n    return a": (
        "a",
        "undefined name 'a'",
    ),
    "if c:\n        y = x\n    return y": ("if c:", "expected an else"),
    "if c:\n        y = x\n    else:\n        z = x\n    return y": ("if c:", "got 'y' and 'z'"),
    "if c:\n        pass\n    else:\n        z = x\n    return z": ("if c:", "got an empty branch"),
    "R.tuple(x)\n    return x": ("R.tuple(x)", "expected a name for a value that is not void"),
    "for i in range(4):\n        y = x\n    return x": (
        "for i",
        "expected a statement of @R.function, got Python's For",
    ),
    "x[0] = c\n    return x": ("x[0]", "values of the graph do not change"),
    "y: R.Tensor((4,), 'int8') = x\n    return y": ("y:", "as annotated"),
    "y = R.match_cast(x, R.Shape([1]))\n    return y": ("y =", "match_cast: expected"),
    "R.func_attr({'a': 1})\n    R.func_attr({'a': 2})\n    return x": (
        "R.func_attr({'a': 2})",
        "got 'a' twice",
    ),
    "y = R.nothing_like_it(x)\n    return y": ("R.nothing_like_it", "expected a name of TVMScript"),
    "y: 3 = x\n    return y": ("3", "expected struct info such as R.Tensor"),
    "def g(a: R.Object):\n        return a\n    return x": (
        "def g",
        "expected a decorator such as",
    ),
}


@pytest.mark.parametrize("body", ERRORS)
def test_errors_point_at_the_place(body):
    marked, message = ERRORS[body]
    with pytest.raises(DiagnosticError) as caught:
        from_source(HEAD + body)
    text = str(caught.value)
    assert message in text, text
    shown = text.splitlines()
    line = next(
        i for i, s in enumerate(shown) if s.lstrip(" 0123456789").startswith("|") and "^" in s
    )
    begin = shown[line].index("^")
    assert shown[line - 1][begin:].startswith(marked), text


@pytest.mark.parametrize(
    "text, message",
    [
        ("@R.function\ndef f(x):\n    return x", "expected struct info for parameter x"),
        ("@R.function\ndef f(x: R.Object, *y):\n    return x", "expected plain parameters"),
        ("@R.function(fast=True)\ndef f(x: R.Object):\n    return x", "unknown option 'fast'"),
        (
            "@R.function\ndef f(x: R.Tensor((2,), ndim=1)):\n    return x",
            "expected a shape or ndim",
        ),
        (
            "@R.function\ndef f(x: R.Tensor(('1 +',))):\n    return x",
            "expected a dimension such as",
        ),
        (
            "@R.function(private=True)\ndef f(x: R.Object):\n"
            "    R.func_attr({'global_symbol': 'g'})\n    return x",
            "expected no global_symbol of a private function",
        ),
        (
            "@I.ir_module\nclass M:\n    @R.function\n"
            "    def f(x: R.Object):\n        return cls.g(x)",
            "expected a function of the module, got 'g'",
        ),
    ],
)
def test_errors_in_signatures_and_modules(text, message):
    with pytest.raises(DiagnosticError, match=message):
        from_source(text)


def test_stop_lift_params_with_and_without_its_group():
    @R.function(private=True)
    def short(x: R.Tensor((2,), "float32")):
        y = R.stop_lift_params(x)
        return y

    @R.function(private=True)
    def long(x: R.Tensor((2,), "float32")):
        y = R.builtin.stop_lift_params(x)
        return y

    tvm.ir.assert_structural_equal(short, long)
