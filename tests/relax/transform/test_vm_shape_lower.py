# SPDX-License-Identifier: Apache-2.0
"""Symbolic shapes at run time: what is matched, stored, computed and made, in which order."""

import re

import pytest
from tvm import ir
from tvm.relax.transform import VMShapeLower

from .passes import check, module

# Codes of vm.builtin.match_shape and make_shape.
IS, STORE, SKIP, AS_BEFORE = range(4)
CONST, LOAD = range(2)


def lower(mod):
    return VMShapeLower(emit_err_ctx=False)(mod)


def heap(size):
    return (
        f'R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (R.prim_value({size}),), '
        'sinfo_args=[R.Tensor(ndim=1, dtype="int64")])'
    )


def _call(name, *args, result="R.Tuple"):
    values = [f"R.prim_value({arg})" if isinstance(arg, int) else arg for arg in args]
    return f'R.call_packed("vm.builtin.{name}", {", ".join(values)}, sinfo_args=[{result}])'


def tensor(value, ndim, dtype="float32"):
    return _call("check_tensor_info", value, ndim, f'R.dtype("{dtype}")', 'R.str("")')


def match(value, *codes):
    return _call("match_shape", value, "h", len(codes) // 2, *codes, 'R.str("")')


def make(*codes):
    ndim = len(codes) // 2
    return _call("make_shape", "h", ndim, *codes, result=f"R.Shape(ndim={ndim})")


def test_static_function():
    before = """
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        R.func_attr({"relax.force_pure": True})
        return x
    """
    after = f"""
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        R.func_attr({{"relax.force_pure": True}})
        h = R.null_value()
        _ = {tensor("x", 2)}
        _1 = {match("x", IS, 2, IS, 3)}
        return x
    """
    check(lower, before, after, settles=False)


def test_variables_and_expressions():
    """n is stored once and compared afterwards; n * 2 is computed as soon as n is known."""
    before = """
    @R.function
    def main(x: R.Tensor(("n * 2",), "float32"), y: R.Tensor(("n", "n"), "float32")):
        R.func_attr({"relax.force_pure": True})
        n = T.int64()
        s = R.shape([n * 2, 4])
        return s
    """
    after = f"""
    @T.prim_func(private=True)
    def shape_func(H: T.Buffer((T.int64(2),), "int64")):
        T.func_attr({{"tir.is_host_func": True}})
        H[T.int64(0)] = H[T.int64(1)] * T.int64(2)

    @R.function
    def main(x: R.Tensor(("n * 2",), "float32"), y: R.Tensor(("n", "n"), "float32")) -> R.Shape([n * 2, 4]):
        R.func_attr({{"relax.force_pure": True}})
        cls = Module
        h = {heap(2)}
        _ = {tensor("x", 1)}
        _1 = {tensor("y", 2)}
        _2 = {match("y", STORE, 1, AS_BEFORE, 1)}
        _3 = cls.shape_func(h)
        _4 = {match("x", AS_BEFORE, 0)}
        shape = {make(LOAD, 0, CONST, 4)}
        s = shape
        return s
    """  # noqa: E501
    after = after.replace("R.Shape([n * 2, 4]):", "R.Shape(ndim=2):")
    result = lower(module(before))
    expected = module(after)
    for name in ("shape_func", "main"):
        got, want = result[name], expected[name]
        if name == "main":  # what a function returns stays as it was said
            assert str(got.ret_struct_info).endswith("R.Shape([n * 2, 4])")
            got, want = got.body, want.body
        ir.assert_structural_equal(got, want, map_free_vars=True)


def test_shapes_are_made_once_per_scope():
    before = """
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32"), c: R.Prim("bool")):
        n = T.int64()
        a = R.call_packed("f", R.shape([n]), R.prim_value(n), sinfo_args=[R.Object])
        if c:
            b = R.call_packed("f", R.shape([n]), R.shape([n, 1]), sinfo_args=[R.Object])
        else:
            b = R.call_packed("f", R.shape([n, 1]), sinfo_args=[R.Object])
        return b
    """
    after = f"""
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32"), c: R.Prim("bool")):
        h = {heap(1)}
        _ = {tensor("x", 1)}
        _1 = {_call("check_prim_value_info", "c", 'R.dtype("bool")', 'R.str("")')}
        _2 = {match("x", STORE, 0)}
        s = {make(LOAD, 0)}
        v = {_call("make_prim_value", "h", LOAD, 0, result='R.Prim("int64")')}
        a = R.call_packed("f", s, v, sinfo_args=[R.Object])
        if c:
            t = {make(LOAD, 0, CONST, 1)}
            b = R.call_packed("f", s, t, sinfo_args=[R.Object])
        else:
            u = {make(LOAD, 0, CONST, 1)}
            b = R.call_packed("f", u, sinfo_args=[R.Object])
        return b
    """
    check(lower, before, after, settles=False)


def test_all_kinds_of_parameters():
    before = """
    @R.function(pure=False)
    def main(t: R.Tuple(R.Tensor(("n",), "int8"), R.Tuple(R.Object, R.Shape(["n", 2]))), p: R.Prim("int64", value="m"), f: R.Callable, o: R.Object, u: R.Tensor, s: R.Shape(ndim=2)):
        return R.tuple()
    """  # noqa: E501
    after = f"""
    @R.function(pure=False)
    def main(t: R.Tuple(R.Tensor(("n",), "int8"), R.Tuple(R.Object, R.Shape(["n", 2]))), p: R.Prim("int64", value="m"), f: R.Callable, o: R.Object, u: R.Tensor, s: R.Shape(ndim=2)):
        h = {heap(2)}
        _ = {_call("check_tuple_info", "t", 2, 'R.str("")')}
        a = t[0]
        _1 = {tensor("a", 1, "int8")}
        b = t[1]
        _2 = {_call("check_tuple_info", "b", 2, 'R.str("")')}
        c = b[1]
        _3 = {_call("check_shape_info", "c", 2, 'R.str("")')}
        _4 = {_call("check_prim_value_info", "p", 'R.dtype("int64")', 'R.str("")')}
        _5 = {_call("check_func_info", "f", 'R.str("")')}
        _6 = {_call("check_tensor_info", "u", -1, 'R.str("")')}
        _7 = {_call("check_shape_info", "s", 2, 'R.str("")')}
        _8 = {match("a", STORE, 0)}
        _9 = {match("c", AS_BEFORE, 0, IS, 2)}
        _10 = {_call("match_prim_value", "p", "h", STORE, 1, 'R.str("")')}
        return R.tuple()
    """  # noqa: E501
    check(lower, before, after, settles=False)


def test_cast_checks_what_is_not_known():
    before = """
    @R.function(pure=False)
    def main(x: R.Tensor(ndim=2, dtype="float32"), o: R.Object):
        n = T.int64()
        m = T.int64()
        a = R.match_cast(x, R.Tensor((n, n + 1), "float32"))
        b = R.match_cast(o, R.Tensor((m, n), "int32"))
        return (a, b)
    """
    after = f"""
    @T.prim_func(private=True)
    def shape_func(H: T.Buffer((T.int64(3),), "int64")):
        T.func_attr({{"tir.is_host_func": True}})
        H[T.int64(1)] = H[T.int64(0)] + T.int64(1)

    @R.function(pure=False)
    def main(x: R.Tensor(ndim=2, dtype="float32"), o: R.Object):
        cls = Module
        h = {heap(3)}
        _ = {tensor("x", 2)}
        _1 = {match("x", STORE, 0, SKIP, 0)}
        _2 = cls.shape_func(h)
        _3 = {match("x", SKIP, 0, AS_BEFORE, 1)}
        a = x
        _4 = {tensor("o", 2, "int32")}
        _5 = {match("o", STORE, 2, AS_BEFORE, 0)}
        b = o
        return (a, b)
    """
    result, expected = lower(module(before)), module(after)
    ir.assert_structural_equal(result["shape_func"], expected["shape_func"])
    values = lambda f: [b.value for b in f.body.blocks[0].bindings]
    for got, want in zip(values(result["main"]), values(expected["main"]), strict=True):
        assert str(got) == re.sub(r"\bh\b", "shape_heap", str(want))


def test_return_is_matched_where_it_was_only_said():
    text = """
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        {}
        return y
    """
    claim = 'y = R.call_packed("f", x, sinfo_args=[R.Tensor((n,), "float32")])'
    own = (
        's = R.memory.alloc_storage(R.shape([64]), R.prim_value(0), R.str("g"), R.dtype("int8"))\n'
        '        y = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([n]), R.dtype("float32"))'
    )
    names = lambda line: [
        getattr(b.value.op, "global_symbol", "")
        for b in VMShapeLower()(module(text.format(line)))["main"].body.blocks[0].bindings
    ]
    assert names(claim)[-2:] == ["vm.builtin.check_tensor_info", "vm.builtin.match_shape"]
    assert names(own)[-1] == ""
    last = VMShapeLower()(module(text.format(claim)))["main"].body.blocks[0].bindings[-1].value
    context = 'main: return value of R.Tensor((n,), dtype="float32"):'
    assert last.args[-1].value == context + "\nn (shape[0] of argument 'x')"


def test_context_names_function_and_argument():
    mod = VMShapeLower()(
        module("""
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Object:
        R.func_attr({"relax.force_pure": True})
        return x
    """)
    )
    call = mod["main"].body.blocks[0].bindings[1].value
    assert call.args[-1].value == "main: argument 'x' of R.Tensor((n, 4), dtype=\"float32\"):"


@pytest.mark.parametrize(
    "text, message",
    [
        (
            """
            @R.function
            def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
                @R.function
                def inner(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                    return y
                return x
            """,
            "expected no local functions",
        ),
        (
            """
            @R.function(pure=False)
            def main(x: R.Tensor(("n",), "float32")):
                n = T.int64()
                y = R.call_packed("f", R.prim_value(T.Cast("float32", n)), sinfo_args=[R.Object])
                return y
            """,
            "expected an integer as symbolic value",
        ),
    ],
)
def test_errors(text, message):
    with pytest.raises(ValueError, match=f"VMShapeLower: {message}"):
        VMShapeLower()(module(text))


def test_twice_is_once():
    mod = module(
        """
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), s: R.Shape(["n"])):
        R.func_attr({"relax.force_pure": True})
        n = T.int64()
        y = R.call_packed("f", x, R.shape([n * 3]), sinfo_args=[R.Tensor((n * 3,), "float32")])
        return y

    @R.function
    def static(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        R.func_attr({"relax.force_pure": True})
        return x
    """
    )
    once = lower(mod)
    ir.assert_structural_equal(lower(once), once)
