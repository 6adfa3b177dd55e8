# SPDX-License-Identifier: Apache-2.0
"""Operators that overwrite an argument, and what decides whether they may."""

import pytest
from tvm import ir, relax
from tvm.relax.testing import transform as testing
from tvm.relax.transform import DataflowUseInplaceCalls

from .passes import module


def block(text, **kwargs):
    mod = module(text)
    main = mod["main"]
    return mod, main, main.body.blocks[0]


def named(items):
    return {var.name_hint: value for var, value in items.items()}


TEXT = """
@R.function
def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
    with R.dataflow():
        a = R.add(x, y)
        b = (a, x)
        c = b[0]
        d = R.reshape(c, R.shape([6]))
        e = R.call_pure_packed("f", x, sinfo_args=[R.Tensor((2, 3), "float32")])
        f = R.split(y, 2, axis=0)
        g = f[1]
        R.output(a, d, e, g)
    return (a, d, e, g)
"""


def test_liveness():
    _, _, flow = block(TEXT)
    assert named(testing.dataflow_liveness_analysis(flow)) == {
        "x": (-1, 4), "y": (-1, 5), "a": (0, 7), "b": (1, 2), "c": (2, 3), "d": (3, 7), "e": (4, 7),
        "f": (5, 6), "g": (6, 7),
    }  # fmt: skip


def test_aliases():
    _, main, flow = block(TEXT)
    places, tuples = testing.dataflow_alias_analysis(flow, list(main.params))
    places = named(places)
    assert places["x"] == {0} and places["y"] == {1} and places["a"] == {2}
    assert places["b"] == {3} and tuples[3] == [{2}, {0}] and places["c"] == {2}
    assert places["d"] >= {2}, "a reshape may be a view"
    assert places["e"] == {-1}, "a packed function may return anything"
    assert places["f"] == places["g"] == {-1}, "parts may be views too"


def choices(*lines, outputs):
    body = "\n".join("        " + line for line in lines)
    _, main, flow = block(f"""
@R.function
def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((3,), "float32")):
    with R.dataflow():
{body}
        R.output({outputs})
    return ({outputs},)
""")
    return testing.dataflow_inplace_analysis(flow, list(main.params), None)


def test_arguments_that_end():
    large, exact = choices("a = R.add(x, y)", "b = R.add(a, y)", outputs="b")
    assert large == exact == [(1, {0})], "x and y are the caller's"
    large, exact = choices("a = R.add(x, y)", "c = R.exp(y)", "b = R.add(c, a)", outputs="b")
    assert exact == [(2, {1})] and large == [(2, {1})], "c is smaller than the result"


PACKED = 'R.call_pure_packed("f", %s, sinfo_args=[R.Tensor((2, 3), "float32")])'


@pytest.mark.parametrize(
    "lines",
    [
        ["a = R.add(x, y)", "b = R.exp(a)", "c = R.add(a, y)"],  # used again
        ["a = R.add(x, y)", "t = (a, y)", "b = R.exp(a)", "c = t[0]"],  # in a tuple
        ["a = R.add(x, y)", "t = R.reshape(a, R.shape([6]))", "b = R.exp(a)", "c = R.exp(t)"],
        ["c = R.add(x, y)", "b = R.exp(c)"],  # seen behind the block
        [f"a = {PACKED % 'x'}", "b = R.exp(a)", "c = R.add(x, y)"],
        ["a = R.add(x, y)", f"c = {PACKED % 'a'}", "b = R.exp(a)"],
        ["a = R.add(x, y)", 'b = R.astype(a, "int32")', "c = x"],  # another type
        ["a = R.add(x, y)", "b = R.sum(a, axis=0)", "c = x"],  # no elementwise operator
    ],
)  # fmt: skip
def test_arguments_that_are_needed(lines):
    b = next(i for i, line in enumerate(lines) if line.startswith("b"))
    assert not dict(choices(*lines, outputs="b, c")[1]).get(b)


def test_pass():
    text = """
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((3,), "float32")):
        {}
        with R.dataflow():
            a = R.add(x, y)
            b = {}
            R.output(b)
        return b
    """
    kernel = """
    @T.prim_func(private=True)
    def multiply_inplace(a: T.Buffer((T.int64(2), T.int64(3)), "float32"), y: T.Buffer((T.int64(3),), "float32")):
        T.func_attr({"tir.noalias": True})
        for ax0, ax1 in T.grid(T.int64(2), T.int64(3)):
            with T.block("T_multiply"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(a[v_ax0, v_ax1], y[v_ax1])
                T.writes(a[v_ax0, v_ax1])
                a[v_ax0, v_ax1] = a[v_ax0, v_ax1] * y[v_ax1]
    """  # noqa: E501
    before = text.format("", "R.multiply(a, y)")
    call = 'R.call_tir_inplace(cls.multiply_inplace, (a, y), [0], R.Tensor((2, 3), "float32"))'
    result = DataflowUseInplaceCalls()(module(before))
    ir.assert_structural_equal(result, module(kernel, text.format("cls = Module", call)))
    assert relax.analysis.well_formed(result)
    assert DataflowUseInplaceCalls()(result).same_as(result)


def test_single_call():
    mod, main, flow = block("""
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            a = R.subtract(y, x)
            R.output(a)
        return a
    """)
    call, after = testing.dataflow_single_inplace_call(mod, flow.bindings[0].value, [1])
    assert list(call.attrs.inplace_indices) == [1]
    assert call.args[0].same_as(after.get_global_var("subtract_inplace"))
    assert len(after["subtract_inplace"].params) == 2
    with pytest.raises(ValueError, match="expected one index for each result, got 2"):
        testing.dataflow_single_inplace_call(mod, flow.bindings[0].value, [0, 1])
    with pytest.raises(ValueError, match="index of an argument below 2, got 5"):
        testing.dataflow_single_inplace_call(mod, flow.bindings[0].value, [5])
