# SPDX-License-Identifier: Apache-2.0
"""Lowered graphs on the virtual machine, against NumPy: symbolic shapes, branches, tuples, closures,
memory that is shared; and what a call with wrong arguments says."""  # noqa: E501

from itertools import combinations

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import transform

from .passes import module

RNG = np.random.default_rng(0)


def machine(*parts, passes=(), target="llvm", pipeline="default"):
    mod = module(*parts)
    for run in passes:
        mod = run(mod)
    return relax.VirtualMachine(relax.build(mod, target, relax_pipeline=pipeline), tvm.cpu())


def data(*shape, dtype="float32"):
    return RNG.standard_normal(shape).astype(dtype)


PIPELINES = {
    "compile": "default",
    "listed": relax.get_pipeline("default_build"),
    "target": relax.get_default_pipeline(tvm.target.Target("llvm")),
}


@pytest.fixture(params=PIPELINES)
def pipeline(request):
    return PIPELINES[request.param]


def test_symbolic_shapes(pipeline):
    """Reshapes, sums of dimensions, and results of a size that is computed."""
    vm = machine("""
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("n * m",), "float32")):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            a = R.reshape(x, R.shape([n * m]))
            b = R.add(a, y)
            c = R.concat((b, a), axis=0)
            d = R.exp(R.reshape(c, R.shape([2, n, m])))
            R.output(d)
        return d
    """, pipeline=pipeline)  # fmt: skip
    for n, m in ((2, 3), (5, 7), (1, 1)):
        x, y = data(n, m), data(n * m)
        expected = np.exp(np.concatenate([x.ravel() + y, x.ravel()]).reshape(2, n, m))
        np.testing.assert_allclose(vm["main"](x, y).numpy(), expected, rtol=1e-5)


def test_branches_and_tuples(pipeline):
    vm = machine("""
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), c: R.Tensor((), "bool")):
        a = R.exp(x)
        if c:
            t = R.add(a, x)
            r = (t, a)
        else:
            s = R.multiply(a, a)
            u = R.add(s, x)
            r = (a, u)
        b = r[0]
        d = r[1]
        e = R.add(b, d)
        f = R.multiply(e, a)
        return (f, r)
    """, pipeline=pipeline)  # fmt: skip
    x = data(4, 8)
    a = np.exp(x)
    for c in (True, False):
        f, r = vm["main"](x, np.array(c))
        want = (a + x, a) if c else (a, a * a + x)
        np.testing.assert_allclose(f.numpy(), (want[0] + want[1]) * a, rtol=1e-5)
        for got, expected in zip(r, want, strict=True):
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)


def test_results_keep_their_memory(pipeline):
    """The next call does not change what an earlier one returned, nor its arguments."""
    vm = machine("""
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.exp(x)
            b = R.add(a, a)
            c = R.exp(b)
            d = R.reshape(c, R.shape([n, 1]))
            R.output(b, d)
        return (b, d, x)
    """, pipeline=pipeline)  # fmt: skip
    x, other = data(16), data(16)
    before = x.copy()
    b, d, same = vm["main"](x)
    vm["main"](other)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(same.numpy(), before)
    np.testing.assert_allclose(b.numpy(), 2 * np.exp(before), rtol=1e-5)
    np.testing.assert_allclose(d.numpy(), np.exp(2 * np.exp(before))[:, None], rtol=1e-4)


def test_local_functions_and_recursion():
    vm = machine("""
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32"), k: R.Tensor((), "int64")) -> R.Tensor((4,), "float32"):
        @R.function(pure=False)
        def loop(a: R.Tensor((4,), "float32"), i: R.Tensor((), "int64")) -> R.Tensor((4,), "float32"):
            done = R.equal(i, R.const(0, "int64"))
            if done:
                r = a
            else:
                b = R.add(a, x)
                j = R.subtract(i, R.const(1, "int64"))
                r = loop(b, j)
            return r
        y = loop(x, k)
        return y
    """, passes=[transform.LambdaLift()])  # noqa: E501 # fmt: skip
    x = data(4)
    np.testing.assert_allclose(vm["main"](x, np.array(5)).numpy(), 6 * x, rtol=1e-5)


def test_conditions_on_symbolic_values():
    vm = machine("""
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        if R.prim_value(n > 4):
            y = R.exp(x)
        else:
            y = R.negative(x)
        return y
    """)
    for n in (3, 4, 5):
        x = data(n)
        np.testing.assert_allclose(vm["main"](x).numpy(), np.exp(x) if n > 4 else -x, rtol=1e-5)


def test_calls_that_overwrite():
    text = """
    @R.function
    def main(x: R.Tensor((64, 8), "float32"), y: R.Tensor((8,), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.exp(a)
            c = R.multiply(b, y)
            d = R.subtract(c, x)
            R.output(d)
        return d
    """
    vm = machine(text, passes=[transform.DataflowUseInplaceCalls()])
    x, y = data(64, 8), data(8)
    before = x.copy()
    np.testing.assert_allclose(vm["main"](x, y).numpy(), np.exp(x + y) * y - x, rtol=1e-4)
    np.testing.assert_array_equal(x, before)


def test_upper_bound():
    """A dimension above its bound is an error, and the machine is good for the next call."""
    vm = machine("""
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        R.func_attr({"tir_var_upper_bound": {"n": 16}})
        with R.dataflow():
            a = R.exp(x)
            b = R.sum(a)
            R.output(b)
        return b
    """, pipeline=relax.get_pipeline("default_build"))  # fmt: skip
    x = data(16)
    np.testing.assert_allclose(vm["main"](x).numpy(), np.exp(x).sum(), rtol=1e-5)
    with pytest.raises(ValueError, match="expected a size from 0 to 16 as the program declares"):
        vm["main"](data(1 << 20))
    np.testing.assert_allclose(vm["main"](x).numpy(), np.exp(x).sum(), rtol=1e-5)


SHAPE = tvm.runtime.ShapeTuple([3])
CHECKED = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n",), "float32"), t: R.Tuple(R.Tensor((2,), "int64"), R.Shape(["n"])), z: R.Tensor(("n + 4",), "float32")):
    return x
"""  # noqa: E501


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"x": data(3, 5)}, RuntimeError, r"argument 'x' of .*shape\[1\]: expected 4, got 5"),
        ({"y": data(2)}, RuntimeError, r"'y' .* 3, which is n .*\[0\] of argument 'x'\), got 2"),
        ({"x": data(3)}, ValueError, "argument 'x' of .* with ndim 2 but get ndim 1"),
        ({"x": data(3, 4, dtype="float64")}, ValueError, "argument 'x' .* dtype float32 .*float64"),
        ({"x": 3}, TypeError, "argument 'x' of .*expect a Tensor but get int"),
        ({"t": [np.zeros(2, "int64")]}, ValueError, "argument 't' .*2 elements but get 1 elements"),
        ({"t": [np.zeros(3, "int64"), SHAPE]}, RuntimeError, "argument 't' .*expected 2, got 3"),
        ({"z": data(4)}, RuntimeError, r"'z' .* 7, which is n .*: shape\[0\] of .*\), got 4"),
    ],
)  # fmt: skip
def test_wrong_arguments(change, error, message):
    vm = machine(CHECKED)
    good = {"x": data(3, 4), "y": data(3), "t": [np.zeros(2, "int64"), SHAPE], "z": data(7)}
    np.testing.assert_array_equal(vm["main"](*good.values()).numpy(), good["x"])
    bad = {**good, **change}
    with pytest.raises(error, match="main: .*" + message):
        vm["main"](*bad.values())
    np.testing.assert_array_equal(vm["main"](*good.values()).numpy(), good["x"])


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_tensor_that_is_not_compact(mode):
    """A kernel refuses it by the name of its own parameter; the error has the function's, too."""
    bb = relax.BlockBuilder()
    image, scale = (relax.Var(n, relax.TensorStructInfo((3, 4), "float32")) for n in ("image", "b"))
    with bb.function("main", [image, scale]):
        with bb.dataflow():
            out = bb.emit_output(relax.op.exp(relax.op.add(image, scale)))
        bb.emit_func_output(out)
    vm = relax.VirtualMachine(relax.build(bb.get(), "llvm", exec_mode=mode), tvm.cpu())
    message = (
        r"main: argument 'image': expected a compact tensor, .* \(4, 1\), got strides \(1, 3\)"
    )
    with pytest.raises(ValueError, match=message) as caught:
        vm["main"](data(4, 3).T, data(3, 4))
    assert "argument 'b'" not in str(caught.value)


def test_wrong_result_of_a_packed_function():
    @tvm.register_global_func("test.lowering.shorter", override=True)
    def shorter(x):
        return tvm.runtime.tensor(x.numpy()[1:])

    vm = machine("""
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        y = R.call_packed("test.lowering.shorter", x, sinfo_args=[R.Tensor((n,), "float32")])
        return y
    """)
    with pytest.raises(RuntimeError, match=r"main: return value of .*expected 3, .*got 2"):
        vm["main"](data(3))


OPTIONAL = (
    "RewriteDataflowReshape",
    "StaticPlanBlockMemory",
    "PackStorages",
    "KillAfterLastUse",
    "StableNormalization",
    "DispatchSortScan",
)


@pytest.mark.parametrize("disabled", [(), *combinations(OPTIONAL, 1), *combinations(OPTIONAL, 2)])
def test_results_without_some_passes(disabled):
    """Passes that only save time or memory may be left out, alone and in pairs."""
    text = """
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), g: R.Tensor((8,), "float32"), c: R.Tensor((), "bool")):
        n = T.int64()
        with R.dataflow():
            a = R.nn.layer_norm(x, g, g, axes=[1])
            b = R.reshape(a, R.shape([n * 8]))
            d = R.sort(b)
            e = R.add(R.reshape(d, R.shape([n, 8])), x)
            R.output(e)
        if c:
            r = R.sum(e, axis=1)
        else:
            r = R.max(e, axis=1)
        return (r, e)
    """  # noqa: E501
    with tvm.transform.PassContext(disabled_pass=list(disabled)):
        vm = machine(text)
    x, g = data(5, 8), data(8)
    normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + g
    e = np.sort(normal.ravel()).reshape(5, 8) + x
    for c in (True, False):
        r, got = vm["main"](x, g, np.array(c))
        np.testing.assert_allclose(got.numpy(), e, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(r.numpy(), e.sum(1) if c else e.max(1), rtol=1e-4, atol=1e-5)


def test_a_function_that_keeps_its_argument():
    kept = []
    tvm.register_global_func("test.lowering.keep", kept.append, override=True)
    vm = machine("""
    @R.function(pure=False)
    def main(x: R.Tensor((4, 8), "float32")):
        a = R.nn.softmax(x)
        _ = R.call_packed("test.lowering.keep", a, sinfo_args=[R.Tuple])
        b = R.nn.softmax(a)
        c = R.nn.softmax(b)
        d = R.nn.softmax(c)
        return d
    """)
    x = data(4, 8)
    vm["main"](x)
    e = np.exp(x - x.max(-1, keepdims=True))
    np.testing.assert_allclose(kept[0].numpy(), e / e.sum(-1, keepdims=True), rtol=1e-5)
