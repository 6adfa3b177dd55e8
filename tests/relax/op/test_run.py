# SPDX-License-Identifier: Apache-2.0
"""The packed functions behind operators without a kernel."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.relax import op


def tensor(values, dtype="int32"):
    return tvm.runtime.tensor(np.array(values, dtype))


def run(name, *args):
    return tvm_ffi.get_global_func(f"relax.run.{name}")(*args)


def test_print(capsys):
    run("print", "", tensor([1, 2]), tensor(3))
    run("print", "{} and {}", tensor(3), tvm_ffi.Shape((4, 5)))
    assert capsys.readouterr().out == "[1 2] 3\n3 and (4, 5)\n"


def test_assert():
    run("assert_op", tensor(True, "bool"), "")
    run("assert_op", True, "")
    with pytest.raises(AssertionError, match="^Assertion Failed: got 3$"):
        run("assert_op", tensor(False, "bool"), "got {}", tensor(3))
    with pytest.raises(AssertionError, match="^Assertion Failed$"):
        run("assert_op", False, "")
    with pytest.raises(TypeError, match="expected a bool scalar, got int32"):
        run("assert_op", tensor(1), "")


def test_shape_to_tensor():
    result = run("shape_to_tensor", tvm_ffi.Shape((2, 3))).numpy()
    assert result.dtype == "int64"
    np.testing.assert_array_equal(result, [2, 3])


def test_unique():
    x = tensor([3, 1, 3, 2])
    np.testing.assert_array_equal(run("unique", x, 1, 0, 0, 0).numpy(), [1, 2, 3])
    np.testing.assert_array_equal(run("unique", x, 0, 0, 0, 0).numpy(), [3, 1, 2])
    values, index, inverse, counts = (t.numpy() for t in run("unique", x, 0, 1, 1, 1))
    np.testing.assert_array_equal(values[inverse], [3, 1, 3, 2])
    np.testing.assert_array_equal(index, [0, 1, 3])
    np.testing.assert_array_equal(counts, [2, 1, 1])
    rows = run("unique", tensor([[1, 2], [1, 2], [0, 1]]), 1, 0, 0, 0, 0).numpy()
    np.testing.assert_array_equal(rows, [[0, 1], [1, 2]])


def test_nonzero():
    np.testing.assert_array_equal(
        op.numpy_nonzero(tensor([[0, 1], [2, 0]])).numpy(), [[0, 1], [1, 0]]
    )
