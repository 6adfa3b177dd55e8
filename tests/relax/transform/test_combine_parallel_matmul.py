# SPDX-License-Identifier: Apache-2.0
"""Products of one left operand with several matrices as one product."""

import numpy as np
import pytest
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from tests.relax.transform.products import check, operators, run


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
