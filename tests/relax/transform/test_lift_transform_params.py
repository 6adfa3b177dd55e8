# SPDX-License-Identifier: Apache-2.0
"""Work on weights alone as a function of its own."""

import pytest
import tvm
from tvm import ir, relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Before:
    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"),
        w: R.Tensor((3, 4), "float32"),
        b: R.Tensor((3,), "float32"),
    ) -> R.Tensor(("n", 3), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            wt = R.permute_dims(w)
            zero = R.zeros(R.shape([3]), "float32")
            c = R.add(b, zero)
            d = R.builtin.stop_lift_params(c)
            e = R.add(d, b)
            y = R.matmul(x, wt)
            z = R.add(y, e)
            R.output(z)
        return z


@I.ir_module
class Expected:
    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"),
        transformed_param_0: R.Tensor((3,), "float32"),
        transformed_param_1: R.Tensor((3,), "float32"),
        transformed_param_2: R.Tensor((4, 3), "float32"),
    ) -> R.Tensor(("n", 3), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            zero = R.zeros(R.shape([3]), "float32")  # noqa: F841
            d = R.builtin.stop_lift_params(transformed_param_0)
            e = R.add(d, transformed_param_1)
            y = R.matmul(x, transformed_param_2)
            z = R.add(y, e)
            R.output(z)
        return z

    @R.function
    def main_transform_params(
        params: R.Tuple(R.Tensor((3, 4), "float32"), R.Tensor((3,), "float32")),
    ):
        with R.dataflow():
            w = params[0]
            b = params[1]
            wt = R.permute_dims(w)
            zero = R.zeros(R.shape([3]), "float32")
            c = R.add(b, zero)
            out = (c, b, wt)
            R.output(out)
        return out


def test_work_on_weights_is_lifted():
    after = transform.LiftTransformParams()(Before)
    ir.assert_structural_equal(after, Expected)
    assert relax.analysis.well_formed(after)
    with pytest.raises(ValueError, match="the weights were lifted before"):
        transform.LiftTransformParams()(after)


def test_shared_transform():
    @I.ir_module
    class Two:
        @R.function
        def prefill(x: R.Tensor((2, 4), "float32"), w: R.Tensor((3, 4), "float32")):
            R.func_attr({"num_input": 1})
            wt = R.permute_dims(w)
            y = R.matmul(x, wt)
            return y

        @R.function
        def decode(x: R.Tensor((1, 4), "float32"), w: R.Tensor((3, 4), "float32")):
            R.func_attr({"num_input": 1})
            wt = R.permute_dims(w)
            s = R.sum(w)
            y = R.matmul(x, wt)
            z = R.add(y, s)
            return z

    after = transform.LiftTransformParams(shared_transform=True)(Two)
    assert relax.analysis.well_formed(after)
    made = after["transform_params"].ret_struct_info.fields
    assert len(made) == 2  # the transposed weight once
    assert len(after["prefill"].params) == len(after["decode"].params) == 3
    some = transform.LiftTransformParams(["decode"])(Two)
    assert len(some["prefill"].params) == 2


def test_weights_are_consumed():
    config = {"relax.lift_transform_params.consume_params": True}
    with tvm.transform.PassContext(config=config):
        after = transform.LiftTransformParams()(Before)
    func = after["main_transform_params"]
    assert not func.is_pure and func.script().count("tuple_reset_item") == 2
    assert relax.analysis.well_formed(after)


def test_bundle_model_params():
    @I.ir_module
    class Bundled:
        @R.function
        def main(
            x: R.Tensor(("n", 4), "float32"),
            model_params: R.Tuple(R.Tensor((3, 4), "float32"), R.Tensor((3,), "float32")),
        ) -> R.Tensor(("n", 3), "float32"):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                w = model_params[0]
                b = model_params[1]
                wt = R.permute_dims(w)
                zero = R.zeros(R.shape([3]), "float32")
                c = R.add(b, zero)
                d = R.builtin.stop_lift_params(c)
                e = R.add(d, b)
                y = R.matmul(x, wt)
                z = R.add(y, e)
                R.output(z)
            return z

    after = transform.BundleModelParams()(Before)
    ir.assert_structural_equal(after, Bundled)
    assert relax.analysis.well_formed(after)
    named = transform.BundleModelParams("weights")(Before)
    assert named["main"].params[1].name_hint == "weights"


@I.ir_module
class Simple:
    @R.function
    def main(x: R.Tensor((3,), "float32"), w: R.Tensor((3,), "float32")):
        R.func_attr({"num_input": 1})
        y = R.add(x, w)
        z = R.multiply(y, w)
        return (y, z)


def test_lazy_get_input():
    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((3,), "float32"),
            fget_param: R.Callable((R.Prim("int64"), R.Object), R.Object, True),
        ):
            R.func_attr({"num_input": 1})
            w = fget_param(R.prim_value(0), R.str("w"))
            w1 = R.match_cast(w, R.Tensor((3,), "float32"))
            y = R.add(x, w1)
            z = R.multiply(y, w1)
            return (y, z)

    after = transform.LazyGetInput()(Simple)
    ir.assert_structural_equal(after, Expected)
    assert relax.analysis.well_formed(after)


def test_lazy_set_output():
    @I.ir_module
    class Expected:
        @R.function(pure=False)
        def main(
            x: R.Tensor((3,), "float32"),
            fset_output: R.Callable((R.Prim("int64"), R.Object), R.Tuple, False),
            w: R.Tensor((3,), "float32"),
        ):
            R.func_attr({"num_input": 2})
            y = R.add(x, w)
            _ = fset_output(R.prim_value(0), y)
            z = R.multiply(y, w)
            _1 = fset_output(R.prim_value(1), z)
            return R.tuple()

    after = transform.LazySetOutput()(Simple)
    ir.assert_structural_equal(after, Expected)
    assert relax.analysis.well_formed(after)


def test_lazy_transform_params():
    lifted = transform.LiftTransformParams()(Before)
    after = transform.LazyTransformParams()(lifted)
    func = after["main_transform_params"]
    assert not func.params and not func.is_pure
    assert relax.analysis.well_formed(after)
    lines = [line.strip() for line in func.script().splitlines() if "item" in line]
    assert ["get_item" in line for line in lines] == [True, True, False, False, False]
    named = transform.LazyTransformParams("load", "store")(lifted)["main_transform_params"]
    assert named.script().count('"load"') == 2 and named.script().count('"store"') == 3
    with pytest.raises(ValueError, match="to take one tuple, got 0 parameters"):
        transform.LazyTransformParams()(after)


def test_num_input_must_fit():
    bad = Before.clone()
    bad["main"] = Before["main"].with_attr("num_input", 7)
    for make in (
        transform.LiftTransformParams,
        transform.BundleModelParams,
        transform.LazyGetInput,
    ):
        with pytest.raises(ValueError, match=r"expected num_input in \[0, 3\], got 7"):
            make()(bad)
