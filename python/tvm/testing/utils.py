# SPDX-License-Identifier: Apache-2.0
"""Comparisons and small helpers."""

import itertools
import os
import sys
import time

import numpy as np

SKIP_SLOW_TESTS = os.getenv("SKIP_SLOW_TESTS", "").lower() in {"true", "1", "yes"}
IS_IN_CI = os.getenv("CI", "") == "true"


def _numpy(value):
    value = value.numpy() if hasattr(value, "numpy") else value
    array = np.asanyarray(value)
    # ml_dtypes types have no tolerance of their own.
    return (
        array.astype("float64")
        if array.dtype.kind == "V" or array.dtype.name.startswith(("bfloat", "float8"))
        else array
    )


def assert_allclose(actual, desired, rtol=1e-7, atol=1e-7, verbose=True):
    """AssertionError unless shapes agree and |actual - desired| <= atol + rtol * |desired|.

    NaNs are equal.
    """
    actual, desired = _numpy(actual), _numpy(desired)
    np.testing.assert_allclose(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)


def ulp_distance(actual, desired):
    """How many floats of `actual`'s type lie between the values, element by element.

    `desired` may be wider: it is rounded first. NaN against NaN is 0, NaN against a number is the
    largest integer.
    """
    actual = np.asarray(actual)
    desired = np.asarray(desired).astype(actual.dtype)
    ints = {2: np.int16, 4: np.int32, 8: np.int64}[actual.dtype.itemsize]

    def order(x):
        bits = x.view(ints).astype(np.int64)
        low = np.int64(np.iinfo(ints).min)
        return np.where(bits < 0, low - bits, bits)

    distance = np.abs(order(actual) - order(desired))
    nan_actual, nan_desired = np.isnan(actual), np.isnan(desired)
    distance = np.where(nan_actual != nan_desired, np.iinfo(np.int64).max, distance)
    return np.where(nan_actual & nan_desired, 0, distance)


def check_numerical_grads(
    function, input_values, grad_values, function_value=None, delta=1e-3, atol=1e-2, rtol=0.1
):
    """Compares gradients with central differences of `function(*inputs)` (or of keyword inputs),
    which do not need `function_value`, the result for the inputs themselves."""
    is_dict = isinstance(input_values, dict)
    names = list(input_values) if is_dict else list(range(len(input_values)))
    values = {n: np.array(input_values[n], "float64") for n in names}

    def call(values):
        out = function(**values) if is_dict else function(*(values[n] for n in names))
        return float(np.sum(out))

    for name in names:
        grad = np.asarray(grad_values[name], "float64")
        numeric = np.empty_like(values[name])
        for index in np.ndindex(numeric.shape):
            shifted = {}
            for sign in (-1, 1):
                moved = values[name].copy()
                moved[index] += sign * delta
                shifted[sign] = call({**values, name: moved})
            numeric[index] = (shifted[1] - shifted[-1]) / (2 * delta)
        # Compared as a whole: single elements near a kink may differ.
        error = np.sqrt(np.mean((numeric - grad) ** 2))
        limit = atol + rtol * np.sqrt(np.mean(grad**2))
        if error > limit:
            raise AssertionError(
                f"check_numerical_grads: expected a gradient of input {name} within {limit}, "
                f"got an error of {error}"
            )


def assert_prim_expr_equal(lhs, rhs):
    """AssertionError unless the analyzer can prove that two integer expressions are equal."""
    from tvm import arith

    simplified = arith.Analyzer().simplify(lhs - rhs)
    if not (hasattr(simplified, "value") and simplified.value == 0):
        raise AssertionError(f"expected equal expressions, got {lhs} and {rhs}")


def check_bool_expr_is_true(bool_expr, vranges, cond=None):
    """AssertionError unless a condition holds for all values of variables in constant ranges."""
    from tvm import tir

    variables = list(vranges)
    for values in itertools.product(*(_constant_range(vranges[v]) for v in variables)):
        bound = {v: tir.const(x, v.dtype) for v, x in zip(variables, values, strict=True)}
        holds = [_evaluate(e, bound) for e in (([cond] if cond is not None else []) + [bool_expr])]
        if all(holds[:-1]) and not holds[-1]:
            point = {v.name_hint: x for v, x in zip(variables, values, strict=True)}
            raise AssertionError(f"expected {bool_expr} to hold, got false at {point}")


def _constant_range(r):
    return range(int(r.min), int(r.min) + int(r.extent))


def _evaluate(expr, bound):
    from tvm import arith, tir

    value = arith.Analyzer().simplify(tir.stmt_functor.substitute(tir.convert(expr), bound))
    if not hasattr(value, "value"):
        raise ValueError(f"expected an expression without other variables, got {value}")
    return bool(value.value)


def check_int_constraints_trans_consistency(constraints_trans, vranges=None):
    """AssertionError unless both sides of a transformation of constraints have the same solutions,
    and its maps lead from one to the other, for all values in constant ranges."""
    from tvm import tir
    from tvm.tir.stmt_functor import substitute

    def holds(side, values):
        conditions = list(side.relations)
        for v, r in side.ranges.items():
            conditions += [v >= r.min, v < r.min + r.extent]
        return substitute(tir.all(tir.const(True), *conditions), values)

    src, dst = constraints_trans.src, constraints_trans.dst
    for here, there, values in (
        (src, dst, constraints_trans.dst_to_src),
        (dst, src, constraints_trans.src_to_dst),
    ):
        ranges = {**(vranges or {}), **dict(here.ranges.items())}
        check_bool_expr_is_true(holds(there, dict(values.items())), ranges, holds(here, {}))


def get_dtype_range(dtype):
    """(smallest, largest) value of an integer or floating-point type."""
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else np.finfo(dtype)
    return info.min, info.max


def identity_after(x, sleep):
    """Returns x after some seconds."""
    time.sleep(sleep)
    return x


def terminate_self():
    """Ends this process at once."""
    sys.exit(-1)


def strtobool(val):
    """1 or 0 of a text that says yes or no."""
    val = val.lower()
    if val in ("y", "yes", "t", "true", "on", "1"):
        return 1
    if val in ("n", "no", "f", "false", "off", "0"):
        return 0
    raise ValueError(f"strtobool: expected yes or no, got '{val}'")


def main():
    """Runs the tests of the calling file with pytest."""
    import pytest

    test_file = sys._getframe(1).f_globals["__file__"]
    sys.exit(pytest.main([test_file] + sys.argv[1:]))


__all__ = [
    "IS_IN_CI",
    "SKIP_SLOW_TESTS",
    "assert_allclose",
    "assert_prim_expr_equal",
    "check_bool_expr_is_true",
    "check_int_constraints_trans_consistency",
    "check_numerical_grads",
    "get_dtype_range",
    "identity_after",
    "main",
    "strtobool",
    "terminate_self",
    "ulp_distance",
]


def __getattr__(name):
    """What other modules of tvm.testing hold, and this one in the interface."""
    import tvm.testing

    if name[:1] == "_" or name not in vars(tvm.testing):
        raise AttributeError(f"module 'tvm.testing.utils' has no attribute '{name}'")
    return vars(tvm.testing)[name]
