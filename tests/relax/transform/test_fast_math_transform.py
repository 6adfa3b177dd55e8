# SPDX-License-Identifier: Apache-2.0
"""exp, tanh, erf and softmax by the functions that are named fast."""

import numpy as np
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from tests.relax.transform.products import operators, run


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
