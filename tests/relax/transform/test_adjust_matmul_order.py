# SPDX-License-Identifier: Apache-2.0
"""Products of three matrices in the cheaper order."""

import pytest
import tvm
from tvm import relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from tests.relax.transform.products import check


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
