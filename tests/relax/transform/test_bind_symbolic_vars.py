# SPDX-License-Identifier: Apache-2.0
"""Symbolic variables fixed to values."""

import pytest
from tvm import ir, relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

from .passes import check


@I.ir_module
class Before:
    @R.function(private=True)
    def helper(a: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
        b = R.add(a, a)
        return b

    @R.function
    def main(x: R.Tensor(("n", "k"), "float32")) -> R.Tensor(("n * k",), "float32"):
        n = T.int64()
        k = T.int64()
        cls = Before
        y = R.reshape(x, R.shape([n * k]))
        z = cls.helper(y)
        return z


@I.ir_module
class Main:
    @R.function(private=True)
    def helper(a: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
        b = R.add(a, a)
        return b

    @R.function
    def main(x: R.Tensor((2, "k"), "float32")) -> R.Tensor(("k * 2",), "float32"):
        k = T.int64()
        cls = Main
        y = R.reshape(x, R.shape([k * 2]))
        z = cls.helper(y)
        return z


@I.ir_module
class All:
    @R.function(private=True)
    def helper(a: R.Tensor((6,), "float32")) -> R.Tensor((6,), "float32"):
        b = R.add(a, a)
        return b

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32"):
        cls = All
        y = R.reshape(x, R.shape([6]))
        z = cls.helper(y)
        return z


def test_one_function():
    n = Before["main"].params[0].struct_info.shape[0]
    for key in ("n", n):
        after = transform.BindSymbolicVars({key: 2}, "main")(Before)
        ir.assert_structural_equal(after, Main)
        assert relax.analysis.well_formed(after)


def test_all_functions():
    after = transform.BindSymbolicVars({"n": 2, "k": 3, "m": 6})(Before)
    ir.assert_structural_equal(after, All)
    assert relax.analysis.well_formed(after)
    assert transform.BindSymbolicVars({}).info.opt_level == 1
    check(transform.BindSymbolicVars({}), All, All)


def test_unknown_variables():
    with pytest.raises(ValueError, match="variable of a function of the module, got 'q'"):
        transform.BindSymbolicVars({"q": 1})(Before)
    with pytest.raises(ValueError, match="variable of 'main', got 'm'"):
        transform.BindSymbolicVars({"m": 1}, "main")(Before)
    with pytest.raises(ValueError, match="got 'nobody'"):
        transform.BindSymbolicVars({}, "nobody")(Before)
