# SPDX-License-Identifier: Apache-2.0
"""tvm.testing itself."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import ir as I
from tvm.script import tir as T
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


# ---- passes, before and after -------------------------------------------------------------------
@I.ir_module
class Doubled:
    @T.prim_func
    def main(A: T.Buffer((4,), "int32")):
        A[0] = A[1] * 1 + 0 * A[2]


class TestMethods(tvm.testing.CompareBeforeAfter):
    transform = tvm.tir.transform.Simplify()

    def before(A: T.Buffer((4,), "int32")):
        A[0] = A[1] + 2 - 2

    def expected(A: T.Buffer((4,), "int32")):
        A[0] = A[1]


class TestFixtures(tvm.testing.CompareBeforeAfter):
    value = tvm.testing.parameter(1, 2)

    def transform(self):
        return tvm.tir.transform.Simplify()

    def before(self, value):
        @T.prim_func
        def func(A: T.Buffer((4,), "int32")):
            A[0] = A[1] + value - value

        return func

    @tvm.testing.fixture
    def expected(self):
        @T.prim_func
        def another_name(A: T.Buffer((4,), "int32")):
            A[0] = A[1]

        return another_name


class TestModules(tvm.testing.CompareBeforeAfter):
    transform = tvm.tir.transform.Simplify()
    before = Doubled

    class expected:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            A[0] = A[1]


class TestErrors(tvm.testing.CompareBeforeAfter):
    def transform(self):
        def refuse(mod):
            raise ValueError("no")

        return refuse

    before = Doubled
    expected = ValueError


# ---- functions of the interface -----------------------------------------------------------------
def test_functions_take_and_return_values_of_each_kind():
    call = lambda name, *args: tvm.get_global_func("testing." + name)(*args)
    assert call("AcceptsBool", True) is True and call("AcceptsInt", 3) == 3
    assert call("AcceptsPrimExpr", 3).dtype == "int32"
    assert call("AcceptsArrayOfPrimExpr", [1, 2]).value == 1
    assert call("AcceptsVariant", "a") == "ffi.String" and call("AcceptsVariant", 1) == "ir.IntImm"
    assert call("AcceptsMapReturnsValue", {"a": 1, "b": 2}, "b") == 2
    assert call("ReturnsVariant", 4).value == 2 and "odd" in call("ReturnsVariant", 3)
    with pytest.raises(TypeError, match="AcceptsArrayOfPrimExpr"):
        call("AcceptsArrayOfPrimExpr", ["a", tvm.testing])
    attrs = tvm.testing.TestAttrs(name="x")
    assert attrs.axis == 10 and list(attrs.padding) == [0, 0]
    check = tvm.testing.test_check_eq_callback("they differ")
    check(1, 1)
    with pytest.raises(RuntimeError, match="they differ"):
        check(1, 2)


def test_transformed_constraints():
    x, y = tvm.tir.Var("x", "int32"), tvm.tir.Var("y", "int32")
    solved = tvm.arith.solve_linear_equations(
        [x + y == 4], [x, y], {x: tvm.ir.Range(0, 5), y: tvm.ir.Range(0, 5)}
    )
    tvm.testing.check_int_constraints_trans_consistency(solved)


def test_plugin(tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tvm.testing.plugin"]\n')
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import pytest

            @pytest.mark.gpu
            def test_marked():
                pass

            def test_target(target, dev):
                assert str(dev) and target == "llvm"
            """
        )
    )
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", str(tmp_path)]
    known = os.pathsep.join(os.path.abspath(folder) for folder in sys.path if folder)
    environment = {**os.environ, "TVM_TEST_TARGETS": "llvm", "PYTHONPATH": known}
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "2 passed" in result.stdout, result.stdout + result.stderr


def test_local_run():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), n: T.int32):
        T.func_attr({"global_symbol": "main"})
        for i in range(4):
            B[i] = A[i] * T.Cast("float32", n)

    code = tvm.build(main, "llvm")
    arrays = [np.arange(4, dtype="float32"), np.zeros(4, "float32"), 3]
    (_, result, _), times = tvm.testing.local_run(code, "cpu", arrays, [1, 2, 0])
    np.testing.assert_array_equal(result.numpy(), [0, 3, 6, 9])
    assert len(times.results) == 2 and not arrays[1].any(), "the user's arrays are not written"
    own = lambda module, path: module.export_library(path)
    (_, result, _), _ = tvm.testing.local_run(code, "cpu", arrays, export_func=own)
    assert result.numpy()[3] == 9
    with pytest.raises(ValueError, match="expected export_func 'tar' or a function, got 'ndk'"):
        tvm.testing.local_run(code, "cpu", arrays, export_func="ndk")
