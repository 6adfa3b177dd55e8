# SPDX-License-Identifier: Apache-2.0
"""Rewriting that goes wrong: an error that says what does, and the module as it was.

Errors of single rewriters and passes are in their tests; here is what all of them have in common.
"""

import numpy as np
import pytest
import tvm
from tvm import ir, relax, tir
from tvm.relax import op, transform
from tvm.relax.dpl import PatternContext, is_op, rewrite_bindings, rewrite_call, wildcard

WEIGHT = np.ones((4, 3, 3, 3), "float32")


def model():
    """A convolution, and two products of one operand."""
    tensor = lambda *shape: relax.TensorStructInfo(shape, "float32")
    x, w = relax.Var("x", tensor(1, 3, 8, 8)), relax.Var("w", tensor(4, 3, 3, 3))
    a, b = relax.Var("a", tensor(8, 2)), relax.Var("b", tensor(8, 2))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, w, a, b], attrs={"num_input": 1}):
        with bb.dataflow():
            y = bb.emit(op.nn.relu(op.nn.conv2d(x, w, padding=1)))
            y = bb.emit(op.add(op.matmul(y, a), op.matmul(y, b)))
            y = bb.emit_output(op.sum(op.exp(y)))
        bb.emit_func_output(y)
    return bb.get()


def layouts(*of_conv2d, call_back=None):
    return transform.ConvertLayout({"relax.nn.conv2d": of_conv2d} if of_conv2d else {}, call_back)


def bound(**params):
    return transform.BindParams("main", params)


def by_pattern(**how):
    return transform.FuseOpsByPattern([("mine.exp", is_op("relax.exp")(wildcard()), *how.values())])


def on_main(rewrite):
    return lambda mod: rewrite(mod["main"])


def fails(*_):
    raise ArithmeticError("mine")


x, w = wildcard(), wildcard()
EXP = is_op("relax.exp")(x)
with PatternContext() as CONTEXT:
    BOUND_EXP = is_op("relax.exp")(x)
STRANGER = relax.Var("stranger", relax.TensorStructInfo((1, 4, 8, 2), "float32"))


def replaced(make):
    """Two ways to replace the same value."""
    return [
        on_main(lambda f: rewrite_call(EXP, lambda _, m: make(m[x]), f)),
        on_main(lambda f: rewrite_bindings(CONTEXT, lambda m, _: {m[BOUND_EXP]: make(m[x])}, f)),
    ]


# What is tried, by the error and a part of its text.
CASES = {
    # rules
    (ValueError, "come to an end"): replaced(lambda value: op.exp(op.negative(value))),
    (ValueError, "in scope .*, got 'stranger'"): replaced(lambda _: op.sin(STRANGER)),
    (TypeError, "expected .*float32.*got .*int32"): replaced(lambda e: op.astype(e, "int32")),
    (TypeError, r"expected .*4, 8, 2.*got R.Tensor\(\(\)"): replaced(lambda e: op.sum(e)),
    (TypeError, "expected the rewriter to return"): [
        on_main(lambda f: rewrite_call(EXP, lambda *_: "text", f)),
        on_main(lambda f: rewrite_bindings(CONTEXT, lambda *_: "text", f)),
    ],
    # call-backs that raise
    (ArithmeticError, "mine"): [
        *replaced(fails),
        layouts(call_back=fails),
        by_pattern(annotations={}, check=fails),
        by_pattern(annotations={}, check=None, attrs=fails),
        transform.CombineParallelMatmul(fails),
        transform.UpdateParamStructInfo(fails),
        transform.LegalizeOps({"relax.exp": fails}),
        transform.function_pass(fails, opt_level=0),
        transform.dataflowblock_pass(fails, opt_level=0),
    ],
    # call-backs that return something else
    (TypeError, "expected .*got"): [
        layouts(call_back=lambda call: 3),
        by_pattern(annotations={}, check=lambda _: "text"),
        by_pattern(annotations={}, check=None, attrs=lambda _: 3),
        transform.CombineParallelMatmul(lambda *_: "text"),
        transform.UpdateParamStructInfo(lambda _: 3),
        transform.LegalizeOps({"relax.exp": lambda *_: 3}),
        transform.function_pass(lambda *_: 3, opt_level=0),
        transform.dataflowblock_pass(lambda *_: 3, opt_level=0),
    ],
    # layouts
    (ValueError, "permutation of NCHW, got NCDHW"): [layouts("NCDHW", "OIDHW")],
    (ValueError, "permutation of NCHW, got NHW"): [layouts("NHW", "OHW")],
    (ValueError, "got 'NNCW': the axis N occurs twice"): [layouts("NNCW", "OIHW")],
    (ValueError, "layout"): [
        layouts("NHWC"),
        layouts("", ""),
        layouts("NCHW0c", "OIHW"),
        layouts("NC1HW", "OIHW"),
        layouts(call_back=lambda call: {"relax.nn.conv2d": ["NHWQ", "OHWI"]}),
    ],
    # weights
    (ValueError, "got 'v', which is none"): [bound(v=WEIGHT)],
    (ValueError, "for the parameter 'w', got"): [
        bound(w=WEIGHT[0]),
        bound(w=WEIGHT[:, :2]),
        bound(w=WEIGHT.astype("float64")),
    ],
    (ValueError, r"expected num_input in \[0, 4\], got 5"): [
        lambda mod: transform.LiftTransformParams()(
            ir.IRModule({"main": mod["main"].with_attr("num_input", 5)})
        )
    ],
    (ValueError, "the weights were lifted before"): [
        lambda mod: transform.LiftTransformParams()(transform.LiftTransformParams()(mod))
    ],
}
TRIED = [(*key, attempt) for key, attempts in CASES.items() for attempt in attempts]


@pytest.mark.parametrize("error, text, attempt", TRIED)
def test_the_module_stays_as_it_was(error, text, attempt):
    mod, untouched = model(), model()
    with pytest.raises(error, match=f"(?s){text}"):
        attempt(mod)
    ir.assert_structural_equal(mod, untouched)
    assert relax.analysis.well_formed(mod)


def test_overlapping_rules_are_applied_one_after_the_other():
    """Both match the same value: the first one wins, and what it leaves is what the second sees."""
    first = rewrite_call(EXP, lambda _, m: op.sin(m[x]), model()["main"])
    again = rewrite_call(EXP, lambda _, m: op.cos(m[x]), first)
    assert again.same_as(first) and "R.sin" in first.script()


def test_operators_without_a_rule_for_precision_stay_in_float32():
    name = "test.error.rewriting.twice"
    infer = lambda call, builder: call.args[0].struct_info
    relax.op.define(name, "x: Tensor", infer)
    data = relax.Var("x", relax.TensorStructInfo((4, 4), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [data]):
        with bb.dataflow():
            y = bb.emit(op.matmul(data, data))
            y = bb.emit(relax.Call(ir.Op.get(name), [y]))
            y = bb.emit_output(op.matmul(y, data))
        bb.emit_func_output(y)
    after = transform.ToMixedPrecision()(bb.get())
    assert relax.analysis.well_formed(after)
    dtypes = {
        binding.value.op.name: binding.value.args[0].struct_info.dtype
        for block in after["main"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call)
    }
    assert dtypes[name] == "float32" and dtypes["relax.matmul"] == "float16"


def _lifted():
    mod = transform.LiftTransformParams()(weighted())
    return relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main_transform_params"]


def weighted():
    n = tir.Var("n", "int64")
    data = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))
    weight = relax.Var("w", relax.TensorStructInfo((3, 4), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [data, weight], attrs={"num_input": 1}):
        bb.emit_func_output(bb.emit(op.matmul(data, op.permute_dims(weight))))
    return bb.get()


@pytest.mark.parametrize(
    "weights, text",
    [
        ([], "expect.* 1 .*got 0|1 elements|size"),
        ([np.ones((3, 5), "float32")], "4.*5|5.*4"),
        ([np.ones((3, 4), "float64")], "float32.*float64"),
        ([np.ones(12, "float32")], "ndim"),
    ],
)
def test_weights_that_do_not_fit_when_they_are_loaded(weights, text):
    run = _lifted()
    with pytest.raises((TypeError, ValueError, RuntimeError), match=f"(?s){text}"):
        run([tvm.runtime.tensor(weight) for weight in weights])
    good = np.arange(12, dtype="float32").reshape(3, 4)
    np.testing.assert_array_equal(run([tvm.runtime.tensor(good)])[0].numpy(), good.T)


@pytest.mark.parametrize(
    "answer, text",
    [
        (lambda: tvm.runtime.tensor(np.ones((3, 5), "float32")), "4.*5|5.*4"),
        (lambda: tvm.runtime.tensor(np.ones((3, 4), "int32")), "float32.*int32"),
        (lambda: 3, "Tensor.*int"),
        (fails, "mine"),
    ],
)
def test_weights_that_do_not_fit_when_they_are_asked_for(answer, text):
    lazy = transform.LazyGetInput()(weighted())
    main = relax.VirtualMachine(tvm.compile(lazy, "llvm"), tvm.cpu())["main"]
    data = tvm.runtime.tensor(np.ones((2, 4), "float32"))
    kinds = (TypeError, ValueError, RuntimeError, ArithmeticError)
    with pytest.raises(kinds, match=f"(?s){text}"):
        main(data, tvm.runtime.convert(lambda index, name: answer()))
    weight = tvm.runtime.tensor(np.ones((3, 4), "float32"))
    assert main(data, tvm.runtime.convert(lambda index, name: weight)).numpy()[0, 0] == 4
