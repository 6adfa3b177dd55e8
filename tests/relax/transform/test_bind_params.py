# SPDX-License-Identifier: Apache-2.0
"""Parameters of a function fixed to constants."""

import numpy as np
import pytest
import tvm
from tvm import ir, relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Before:
    @R.function
    def main(
        x: R.Tensor((2, "n"), "float32"), w: R.Tensor(("n", 3), "float32"), s: R.Prim("int64")
    ) -> R.Tensor((2, 3), "float32"):
        y = R.matmul(x, w)
        return y

    @R.function
    def other(w: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        return w


W = np.arange(12, dtype="float32").reshape(4, 3)


def _expected():
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 4), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.matmul(x, relax.const(W))))
    return bb.get()["main"]


@pytest.mark.parametrize("convert", [np.asarray, tvm.runtime.tensor, relax.const])
def test_bind_params_by_name(convert):
    after = transform.BindParams("main", {"w": convert(W), "s": 1})(Before)
    ir.assert_structural_equal(after["main"], _expected())
    ir.assert_structural_equal(after["other"], Before["other"])
    assert relax.analysis.well_formed(after)
    assert after.get_global_var("main").struct_info.params[0].shape[1] == 4


def test_bind_params_by_variable():
    _, w, s = Before["main"].params
    after = transform.BindParams("main", {w: W, s: 1})(Before)
    ir.assert_structural_equal(after["main"], _expected())


def test_callers_are_inferred_again():
    @I.ir_module
    class Caller:
        @R.function(private=True)
        def helper(x: R.Tensor(("n",), "float32"), count: R.Prim(value="k")) -> R.Tensor(
            ("n", "k"), "float32"
        ):
            n = T.int64()
            k = T.int64()
            y: R.Tensor((n, k), "float32") = R.broadcast_to(R.reshape(x, [n, 1]), R.shape([n, k]))
            return y

        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3, 2), "float32"):
            cls = Caller
            y = cls.helper(x, R.prim_value(2))
            return y

    with pytest.raises(tvm.TVMError, match="expected 1 argument"):
        transform.BindParams("helper", {"count": 2})(Caller)


def test_bind_params_errors():
    bad = {
        "for the parameter 'w', got": {"w": W[0]},
        "got 'v', which is none": {"v": W},
    }
    for message, params in bad.items():
        with pytest.raises(ValueError, match=message):
            transform.BindParams("main", params)(Before)
    with pytest.raises(ValueError, match="got 'nobody'"):
        transform.BindParams("nobody", {})(Before)
    assert transform.BindParams("main", {}).info.opt_level == 0
