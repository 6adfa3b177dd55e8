# SPDX-License-Identifier: Apache-2.0
"""Parameters with another struct info."""

import pytest
import tvm
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from .passes import check


@I.ir_module
class Before:
    @R.function(private=True)
    def f(a: R.Tensor((2,), "float32"), b: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        c = R.add(a, b)
        return c

    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")) -> R.Tensor(
        (2,), "float32"
    ):
        cls = Before
        z = cls.f(x, y)
        return z


@I.ir_module
class Expected:
    @R.function(private=True)
    def f(a: R.Tensor((2,), "float16"), b: R.Tensor((2,), "float16")) -> R.Tensor((2,), "float16"):
        c = R.add(a, b)
        return c

    @R.function
    def main(x: R.Tensor((2,), "float16"), y: R.Tensor((2,), "float16")) -> R.Tensor(
        (2,), "float16"
    ):
        cls = Expected
        z = cls.f(x, y)
        return z


def test_types_of_all_functions_follow():
    to_half = transform.UpdateParamStructInfo(
        lambda var: R.Tensor(var.struct_info.shape, "float16")
    )
    check(to_half, Before, Expected)
    assert to_half.info.opt_level == 1


def test_none_keeps_the_parameter():
    assert transform.UpdateParamStructInfo(lambda var: None)(Before).same_as(Before)


def test_contradictions_are_errors():
    def only_f(var):
        return R.Tensor((2,), "float16") if var.name_hint in "ab" else None

    with pytest.raises(tvm.TVMError, match="float16"):
        transform.UpdateParamStructInfo(only_f)(Before)
    with pytest.raises(TypeError, match="expected struct info or None for the parameter 'a'"):
        transform.UpdateParamStructInfo(lambda var: 3)(Before)
