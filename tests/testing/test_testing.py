# SPDX-License-Identifier: Apache-2.0
"""tvm.testing itself."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.testing import utils


def test_assert_allclose_accepts_tensors_and_small_floats():
    import ml_dtypes

    a = np.arange(4, dtype="float32")
    tvm.testing.assert_allclose(tvm.runtime.tensor(a), a)
    tvm.testing.assert_allclose(a.astype(ml_dtypes.bfloat16), a)
    with pytest.raises(AssertionError):
        tvm.testing.assert_allclose(a, a + 1)
    with pytest.raises(AssertionError):
        tvm.testing.assert_allclose(a, a[:3])


def test_ulp_distance():
    one = np.float32(1)
    after = np.nextafter(one, np.float32(2))
    assert utils.ulp_distance(np.array([one]), np.array([after])) == 1
    assert utils.ulp_distance(np.float32([0.0]), np.float32([-0.0])) == 0
    assert utils.ulp_distance(np.float32([np.nan]), np.float32([np.nan])) == 0
    assert utils.ulp_distance(np.float32([np.nan]), np.float32([1])) > 1e9


def test_numerical_gradients():
    x = np.random.default_rng(0).normal(size=(3,))
    tvm.testing.check_numerical_grads(lambda x: x**2, [x], [2 * x])
    with pytest.raises(AssertionError, match="within"):
        tvm.testing.check_numerical_grads(lambda x: x**2, [x], [5 * x + 3])


width = tvm.testing.parameter(1, 2)
a, b = tvm.testing.parameters((1, 10), (2, 20))


def test_parameter(width, a, b):
    assert width in (1, 2) and b == 10 * a


@tvm.testing.fixture(cache_return_value=True)
def table(width):
    return {"width": width}


def test_cached_fixture_is_a_copy(table, width):
    assert table == {"width": width}
    table["width"] = None


@tvm.testing.requires_package("no_such_package_here")
def test_missing_package():
    raise AssertionError("must be skipped")


def test_features_say_why():
    feature = tvm.testing.Feature("test_feature", check=lambda: "no such hardware")
    assert feature.missing() == "no such hardware"
    with pytest.raises(ValueError, match="expected one of"):
        tvm.testing.Feature.require("nothing")


class TestUnchanged(tvm.testing.CompareBeforeAfter):
    transform = tvm.transform.Sequential([])
    before = expected = tir.PrimFunc([], tir.Evaluate(0))


class TestRaises(tvm.testing.CompareBeforeAfter):
    @staticmethod
    def _fail(mod, ctx):
        raise ValueError("no")

    transform = tvm.transform.module_pass(_fail, opt_level=0)
    before = tir.PrimFunc([], tir.Evaluate(0))
    expected = ValueError
