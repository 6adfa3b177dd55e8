# SPDX-License-Identifier: Apache-2.0
"""Printing, assertions and results whose size depends on the data, against NumPy."""

import numpy as np
import pytest
import tvm_ffi


def run(name):
    return tvm_ffi.get_global_func("relax.run." + name)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 3, 4)])
def test_nonzero(shape, dtype):
    x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    expected = np.array(np.nonzero(np.atleast_1d(x)))
    np.testing.assert_array_equal(
        run("nonzero")(x).numpy(), expected if shape else np.empty((0, expected.shape[1]))
    )


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float16", "bool"])
def test_unique_of_elements(dtype):
    x = np.random.default_rng(1).integers(0, 5, (4, 6)).astype(dtype)
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    results = run("unique")(x, 1, 1, 1, 1)
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result.numpy(), value.reshape(-1))
    np.testing.assert_array_equal(run("unique")(x).numpy(), expected[0])


def test_unique_of_rows_and_order_of_occurrence():
    x = np.array([[3, 1], [0, 2], [3, 1], [0, 0]], "int64")
    np.testing.assert_array_equal(
        run("unique")(x, 1, 0, 0, 0, 0).numpy(), np.unique(x, axis=0)
    )
    np.testing.assert_array_equal(
        run("unique")(x, 0, 0, 0, 0, 0).numpy(), [[3, 1], [0, 2], [0, 0]]
    )
    values, index = run("unique")(np.array([5, 4, 5, 1]), 0, 0, 1, 0)
    assert values.numpy().tolist() == [5, 4, 1] and index.numpy().tolist() == [0, 1, 0, 2]
    with pytest.raises(NotImplementedError, match="axis None or 0, got 1"):
        run("unique")(x, 1, 0, 0, 0, 1)


def test_unique_of_special_values():
    x = np.array([np.nan, 1, -np.inf, np.nan, -0.0, 0.0], "float32")
    np.testing.assert_array_equal(run("unique")(x).numpy(), np.unique(x))
    assert run("unique")(np.empty((0, 2), "float32")).shape == (0,)


def test_assert_op():
    check = run("assert_op")
    check(True, "")
    check(np.array(True))
    check(1, "unused {}", 3)
    for args, message in [
        ((False, ""), "Assertion Failed$"),
        ((np.array(False), "x is {}", 3), "Assertion Failed: x is 3$"),
        ((False, "", 3, "y"), "Assertion Failed: 3, y$"),
        ((False, "{1} {0} {{}}", 3, "y"), "Assertion Failed: y 3 {}$"),
    ]:
        with pytest.raises(AssertionError, match=message):
            check(*args)
    for condition in (np.ones(2, "bool"), np.array(1.5), "x", None):
        with pytest.raises(ValueError, match="expected a boolean scalar as condition"):
            check(condition, "")
    with pytest.raises(ValueError, match="format: expected"):
        check(False, "{} {}", 1)


def test_print(capfd):
    run("print")("")
    run("print")("x = {}, {}", 1, 2.5)
    run("print")("", None, True, "text", tvm_ffi.Shape((1,)), [1, (2.0, "x")])
    run("print")("{}", np.array([[1, 2], [3, 4]], "int32"))
    run("print")("{}", np.array([0.1, 2, np.nan, -np.inf], "float32"))
    run("print")("{}", np.arange(2000))
    run("print")("{}", np.array(True))
    run("print")("{}", np.array([0.5, 65504, 6e-8], "float16"))
    assert capfd.readouterr().out.splitlines() == [
        "",
        "x = 1, 2.5",
        "None True text (1,) (1, (2.0, x))",
        "[[1 2]",
        " [3 4]]",
        "[0.1 2. nan -inf]",
        "[0 1 2 ... 1997 1998 1999]",
        "True",
        "[0.5 65504. 5.9604645e-08]",
    ]
