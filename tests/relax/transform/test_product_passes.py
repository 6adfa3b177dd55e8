# SPDX-License-Identifier: Apache-2.0
"""Passes over products of matrices: the program before, the whole program after, and both run."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from tests.relax.legalize.evaluate import evaluate


def run(mod):
    """What main gives for inputs that every run has."""
    rng = np.random.default_rng(0)
    arrays = []
    for param in mod["main"].params:
        shape = [int(d) for d in param.struct_info.shape.values]
        if str(param.struct_info.dtype) == "int64":
            arrays.append(rng.integers(0, 3, shape))
        else:
            arrays.append(rng.standard_normal(shape).astype("float32"))
    result = evaluate(transform.LegalizeOps()(mod), arrays)
    return result if isinstance(result, tuple) else (result,)


def check(make, before, expected=None):
    """The pass gives what is expected (None: nothing changes), with the same results."""
    after = make(before)
    assert_structural_equal(after["main"], (expected or before)["main"])
    assert relax.analysis.well_formed(after)
    for a, b in zip(run(after), run(before), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def operators(mod):
    return [
        binding.value.op.name.removeprefix("relax.")
        for block in mod["main"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call)
    ]


def test_combine_parallel_matmul():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((2, 4, 8), "float32"),
            a: R.Tensor((8, 3), "float32"),
            b: R.Tensor((8, 5), "float32"),
            c: R.Tensor((8, 2), "float32"),
        ):
            with R.dataflow():
                p = R.matmul(x, a)
                q = R.matmul(x, b)
                r = R.matmul(x, c)
                R.output(p, q, r)
            return (p, q, r)

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((2, 4, 8), "float32"),
            a: R.Tensor((8, 3), "float32"),
            b: R.Tensor((8, 5), "float32"),
            c: R.Tensor((8, 2), "float32"),
        ):
            with R.dataflow():
                lv = R.concat((a, b, c), axis=1)
                lv1 = R.matmul(x, lv)
                lv2 = R.split(lv1, indices_or_sections=[3, 8], axis=2)
                p = lv2[0]
                q = lv2[1]
                r = lv2[2]
                R.output(p, q, r)
            return (p, q, r)

    check(transform.CombineParallelMatmul(), Before, Expected)
    seen = []

    def refuse(inp, weights, biases, bindings):
        seen.append((inp.name_hint, [w.name_hint for w in weights], list(biases), len(bindings)))
        return False

    check(transform.CombineParallelMatmul(refuse), Before)
    assert seen[0] == ("x", ["a", "b", "c"], [], 3)
    with pytest.raises(TypeError, match="expected check to return a bool, got None"):
        transform.CombineParallelMatmul(lambda *_: None)(Before)


def test_combine_parallel_matmul_with_bias_and_activation():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((4, 8), "float32"),
            a: R.Tensor((8, 3), "float32"),
            b: R.Tensor((8, 5), "float32"),
            u: R.Tensor((3,), "float32"),
            v: R.Tensor((5,), "float32"),
        ):
            with R.dataflow():
                p = R.nn.relu(R.add(R.matmul(x, a), u))
                q = R.nn.relu(R.add(v, R.matmul(x, b)))
                R.output(p, q)
            return (p, q)

    after = transform.CombineParallelMatmul()(Before)
    assert operators(after) == ["concat", "matmul", "concat", "add", "nn.relu", "split"]
    for a, b in zip(run(after), run(Before), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_combine_parallel_matmul_leaves_what_differs():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((4, 8), "float32"),
            a: R.Tensor((8, 4), "float32"),
            b: R.Tensor((4, 8, 4), "float32"),
            c: R.Tensor((2, 8), "float32"),
        ):
            with R.dataflow():
                p = R.matmul(x, a)
                q = R.matmul(x, b)
                w = R.matmul(c, a)
                r = R.matmul(x, R.permute_dims(R.concat((p, p), axis=1)))
                R.output(p, q, w, r)
            return (p, q, w, r)

    check(transform.CombineParallelMatmul(), Before)


def test_expand_matmul_of_sum():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((4, 8), "float32"),
            a: R.Tensor((8, 3), "float32"),
            b: R.Tensor((8, 3), "float32"),
        ):
            with R.dataflow():
                s = R.add(a, b)
                y = R.matmul(x, s)
                R.output(y)
            return y

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((4, 8), "float32"),
            a: R.Tensor((8, 3), "float32"),
            b: R.Tensor((8, 3), "float32"),
        ):
            with R.dataflow():
                lv = R.matmul(x, a)
                lv1 = R.matmul(x, b)
                y = R.add(lv, lv1)
                R.output(y)
            return y

    check(transform.ExpandMatmulOfSum(), Before, Expected)
    # Sums of weights are computed before the program runs.
    weights = tvm.IRModule({"main": Before["main"].with_attr("num_input", 1)})
    check(transform.ExpandMatmulOfSum(), weights)


def test_expand_matmul_of_transposed_sum_but_not_of_a_broadcast():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((4, 8), "float32"),
            a: R.Tensor((3, 8), "float32"),
            b: R.Tensor((3, 8), "float32"),
            c: R.Tensor((8,), "float32"),
        ):
            with R.dataflow():
                y = R.matmul(x, R.permute_dims(R.add(a, b)))
                z = R.matmul(x, R.permute_dims(R.add(a, c)))
                R.output(y, z)
            return (y, z)

    after = transform.ExpandMatmulOfSum()(Before)
    expected = "permute_dims matmul permute_dims matmul add add permute_dims matmul".split()
    assert sorted(operators(after)) == sorted(expected)
    for a, b in zip(run(after), run(Before), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("inner_first", [True, False])
def test_adjust_matmul_order(inner_first):
    """A column times a row is larger than both: it comes last."""

    def make(order):
        shapes = [(40, 2), (2, 40), (40, 3)]
        params = [
            relax.Var(name, R.Tensor(shape, "float32"))
            for name, shape in zip("abc", shapes, strict=True)
        ]
        bb = relax.BlockBuilder()
        with bb.function("main", params):
            with bb.dataflow():
                a, b, c = params
                matmul = relax.op.matmul
                out = matmul(matmul(a, b), c) if order else matmul(a, matmul(b, c))
                out = bb.emit_output(bb.normalize(out), "y")
            bb.emit_func_output(out)
        return bb.get()

    check(transform.AdjustMatmulOrder(), make(inner_first), make(False))


def test_adjust_matmul_order_through_a_transposition():
    """x @ (B A)ᵀ of a thin product: (x @ Aᵀ) @ Bᵀ."""

    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((4, 64), "float32"),
            b: R.Tensor((32, 2), "float32"),
            a: R.Tensor((2, 64), "float32"),
        ):
            with R.dataflow():
                w = R.matmul(b, a)
                t = R.permute_dims(w)
                y = R.matmul(x, t)
                R.output(y)
            return y

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((4, 64), "float32"),
            b: R.Tensor((32, 2), "float32"),
            a: R.Tensor((2, 64), "float32"),
        ):
            with R.dataflow():
                lv = R.permute_dims(a, axes=[1, 0])
                lv1 = R.matmul(x, lv)
                lv2 = R.permute_dims(b, axes=[1, 0])
                y = R.matmul(lv1, lv2)
                R.output(y)
            return y

    check(transform.AdjustMatmulOrder(), Before, Expected)


def test_products_of_weights_cost_nothing():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((4, 64), "float32"),
            a: R.Tensor((64, 48), "float32"),
            b: R.Tensor((48, 32), "float32"),
        ):
            with R.dataflow():
                w = R.matmul(a, b)
                y = R.matmul(x, w)
                R.output(y)
            return y

    after = transform.AdjustMatmulOrder()(Before)
    assert [a.name_hint for a in after["main"].body.blocks[0].bindings[0].value.args] == ["x", "a"]
    weights = tvm.IRModule({"main": Before["main"].with_attr("num_input", 1)})
    check(transform.AdjustMatmulOrder(), weights)


def test_adjust_matmul_order_with_a_dynamic_dimension():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor(("n", 64), "float32"),
            a: R.Tensor((64, 2), "float32"),
            b: R.Tensor((2, 32), "float32"),
        ):
            with R.dataflow():
                w = R.matmul(a, b)
                y = R.matmul(x, w)
                R.output(y)
            return y

    after = transform.AdjustMatmulOrder()(Before)
    first, second = (binding.value for binding in after["main"].body.blocks[0].bindings)
    assert [arg.name_hint for arg in first.args] == ["x", "a"]
    assert second.args[1].name_hint == "b"


def test_reorder_permute_dims_after_concat():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3, 4), "float32"), y: R.Tensor((2, 3, 5), "float32")):
            with R.dataflow():
                a = R.permute_dims(x, axes=[2, 0, 1])
                b = R.permute_dims(y, axes=[2, 0, 1])
                c = R.concat((a, b), axis=0)
                R.output(c)
            return c

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3, 4), "float32"), y: R.Tensor((2, 3, 5), "float32")):
            with R.dataflow():
                lv = R.concat((x, y), axis=2)
                c = R.permute_dims(lv, axes=[2, 0, 1])
                R.output(c)
            return c

    check(transform.ReorderPermuteDimsAfterConcat(), Before, Expected)


def test_reorder_permute_dims_wants_one_order():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 2), "float32")):
            with R.dataflow():
                a = R.permute_dims(x, axes=[1, 0])
                b = R.permute_dims(y, axes=[0, 1])
                c = R.concat((a, b), axis=0)
                d = R.concat((a, y), axis=0)
                R.output(c, d)
            return (c, d)

    check(transform.ReorderPermuteDimsAfterConcat(), Before)


def test_reorder_take_after_matmul():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((2, 4), "float32"),
            w: R.Tensor((4, 3), "float32"),
            i: R.Tensor((5,), "int64"),
        ):
            with R.dataflow():
                a = R.take(w, i, axis=1)
                b = R.matmul(x, a)
                c = R.take(w, i, axis=0)
                d = R.matmul(b, c)
                R.output(d)
            return d

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((2, 4), "float32"),
            w: R.Tensor((4, 3), "float32"),
            i: R.Tensor((5,), "int64"),
        ):
            with R.dataflow():
                lv = R.matmul(x, w)
                b = R.take(lv, i, axis=1)
                c = R.take(w, i, axis=0)
                d = R.matmul(b, c)
                R.output(d)
            return d

    check(transform.ReorderTakeAfterMatmul(), Before, Expected)


def test_fuse_transpose_matmul():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((2, 4, 8), "float32"),
            w: R.Tensor((6, 8), "float32"),
            v: R.Tensor((6, 6, 6), "float32"),
        ):
            with R.dataflow():
                t = R.permute_dims(w)
                y = R.matmul(x, t)
                u = R.permute_dims(v, axes=[2, 1, 0])
                z = R.matmul(u, v)
                R.output(y, z)
            return (y, z)

    after = transform.FuseTransposeMatmul()(Before)
    assert operators(after) == ["call_tir", "permute_dims", "matmul"]
    call = after["main"].body.blocks[0].bindings[0].value
    assert call.args[0].name_hint == "NT_matmul"
    assert [a.name_hint for a in call.args[1].fields] == ["x", "w"]
    for a, b in zip(run(after), run(Before), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_fast_math():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4, 8), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.tanh(a)
                c = R.erf(b)
                d = R.nn.softmax(c, axis=-1)
                e = R.sin(d)
                R.output(e)
            return e

    after = transform.FastMathTransform()(Before)
    assert operators(after) == ["call_tir"] * 4 + ["sin"]
    names = [b.value.args[0].name_hint for b in after["main"].body.blocks[0].bindings[:4]]
    assert names == ["fast_exp", "fast_tanh", "fast_erf", "fast_softmax"]
    np.testing.assert_allclose(run(after)[0], run(Before)[0], rtol=1e-5)
