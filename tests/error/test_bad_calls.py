# SPDX-License-Identifier: Apache-2.0
"""Bad arguments of compiled functions: an exception names the parameter; the process goes on."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te, tir


@pytest.fixture(scope="module")
def add_one():
    A = te.placeholder((4, 8), name="A", dtype="float32")
    B = te.compute((4, 8), lambda i, j: A[i, j] + 1, name="B")
    return tvm.compile(te.create_prim_func([A, B]), target=tvm.testing.host_target())


@pytest.fixture(scope="module")
def dynamic():
    n = te.size_var("n")
    A = te.placeholder((n, 8), name="A", dtype="float32")
    B = te.compute((n, 8), lambda i, j: A[i, j] * 2, name="B")
    return tvm.compile(te.create_prim_func([A, B]), target=tvm.testing.host_target())


def _zeros(shape=(4, 8), dtype="float32"):
    return tvm.runtime.tensor(np.zeros(shape, dtype))


def _works(f):
    a, b = _zeros(), _zeros()
    f(a, b)


def test_wrong_argument_count(add_one):
    for args in ([], [_zeros()], [_zeros()] * 3):
        with pytest.raises(TypeError, match=rf"main: expected 2 arguments, got {len(args)}"):
            add_one(*args)
    _works(add_one)


@pytest.mark.parametrize("value", [None, 3, 2.5, "text", [1, 2]])
def test_not_a_tensor(add_one, value):
    with pytest.raises((TypeError, ValueError), match="main: expected .*A"):
        add_one(value, _zeros())
    _works(add_one)


def test_wrong_dtype(add_one):
    with pytest.raises(TypeError, match="main: expected .*A.* float32, got float64"):
        add_one(_zeros(dtype="float64"), _zeros())
    with pytest.raises(TypeError, match="main: expected .*B.* float32, got int8"):
        add_one(_zeros(), _zeros(dtype="int8"))
    _works(add_one)


def test_wrong_rank(add_one):
    with pytest.raises(ValueError, match="main: expected .*A.* 2 dimensions, got 1"):
        add_one(_zeros((32,)), _zeros())
    _works(add_one)


def test_wrong_shape(add_one, dynamic):
    with pytest.raises(ValueError, match="main: expected .*A.*4.*got 5"):
        add_one(_zeros((5, 8)), _zeros())
    with pytest.raises(ValueError, match="main: expected .*B"):
        dynamic(_zeros((5, 8)), _zeros((4, 8)))
    dynamic(_zeros((5, 8)), _zeros((5, 8)))
    dynamic(_zeros((0, 8)), _zeros((0, 8)))


def test_wrong_strides(add_one):
    base = np.zeros((4, 16), "float32")
    with pytest.raises(ValueError, match="main: expected .*A.*(stride|compact)"):
        add_one(tvm.runtime.from_dlpack(base[:, ::2]), _zeros())
    with pytest.raises(ValueError, match="main: expected .*A.*(stride|compact)"):
        add_one(tvm.runtime.from_dlpack(np.zeros((8, 4), "float32").T), _zeros())
    _works(add_one)


def test_misaligned(add_one):
    raw = np.zeros(4 * 8 * 4 + 1, "uint8")
    odd = raw[1:].view("float32").reshape(4, 8)
    with pytest.raises(ValueError, match="main: expected .*A.*align"):
        add_one(tvm.runtime.from_dlpack(odd), _zeros())
    _works(add_one)


def test_read_only(add_one):
    a = np.zeros((4, 8), "float32")
    a.flags.writeable = False
    with pytest.raises((BufferError, ValueError)):
        add_one(_zeros(), a)
    _works(add_one)


def test_numpy_arrays_are_arguments(add_one):
    a, b = np.ones((4, 8), "float32"), np.zeros((4, 8), "float32")
    add_one(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_missing_function(add_one):
    with pytest.raises(AttributeError, match="mian"):
        add_one["mian"]
    _works(add_one)


def test_scalar_arguments():
    n = te.var("n", "int32")
    A = te.placeholder((4,), name="A", dtype="int32")
    B = te.compute((4,), lambda i: A[i] + n, name="B")
    f = tvm.compile(te.create_prim_func([n, A, B]), target=tvm.testing.host_target())
    a, b = tvm.runtime.tensor(np.arange(4, dtype="int32")), tvm.runtime.tensor(np.zeros(4, "int32"))
    f(5, a, b)
    np.testing.assert_array_equal(b.numpy(), np.arange(4) + 5)
    with pytest.raises(TypeError, match="main: expected .*n"):
        f("5", a, b)
    with pytest.raises(TypeError, match="main: expected .*n"):
        f(a, a, b)


def test_deep_expression():
    A = te.placeholder((4,), name="A", dtype="float32")

    def body(i):
        e = A[i]
        for _ in range(10_000):
            e = e + tir.const(1, "float32")
        return e

    f = tvm.compile(
        te.create_prim_func([A, te.compute((4,), body, name="B")]), target=tvm.testing.host_target()
    )
    a, b = tvm.runtime.tensor(np.zeros(4, "float32")), tvm.runtime.tensor(np.zeros(4, "float32"))
    f(a, b)
    np.testing.assert_array_equal(b.numpy(), np.full(4, 10_000, "float32"))


def test_targets_without_code_generator():
    A = te.placeholder((4,), name="A")
    func = te.create_prim_func([A, te.compute((4,), lambda i: A[i], name="B")])
    with pytest.raises((RuntimeError, ValueError), match="vulkan"):
        tvm.compile(func, target="vulkan")
    with pytest.raises(ValueError, match="did you mean 'llvm'"):
        tvm.compile(func, target="lvm")


@pytest.mark.parametrize("program", [None, 3, np.zeros(3)])
def test_not_a_program(program):
    with pytest.raises(TypeError, match="expected a PrimFunc, an IRModule or a Schedule"):
        tvm.compile(program, target=tvm.testing.host_target())
    with pytest.raises(ValueError, match="expected a module with functions"):
        tvm.compile(tvm.IRModule({}), target=tvm.testing.host_target())


def test_a_text_is_the_path_of_a_model():
    with pytest.raises(FileNotFoundError, match="no such file: text"):
        tvm.compile("text", target=tvm.testing.host_target())
