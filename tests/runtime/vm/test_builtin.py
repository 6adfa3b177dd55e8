# SPDX-License-Identifier: Apache-2.0
"""What programs call: shapes, checks with the errors users match on, tensors, tuples."""

import numpy as np
import pytest
import tvm_ffi
from tvm import runtime


def builtin(name):
    return tvm_ffi.get_global_func("vm.builtin." + name)


IMM, STORE, NOTHING, LOAD = 0, 1, 2, 3
X = np.zeros((2, 3), "float32")
CONTEXT = "main: parameter 'x' of R.Tensor((2, n))"


def heap(*values):
    return runtime.tensor(np.array(values, "int64"))


def test_match_shape_stores_and_compares():
    h = heap(0, 0)
    builtin("match_shape")(X, h, 2, IMM, 2, STORE, 1, CONTEXT)
    assert h.numpy().tolist() == [0, 3]
    builtin("match_shape")(tvm_ffi.Shape((5, 3)), h, 2, NOTHING, 0, LOAD, 1, CONTEXT)
    builtin("match_shape")(X, None, 2, IMM, 2, NOTHING, 0, CONTEXT)
    builtin("match_prim_value")(7, h, STORE, 0, CONTEXT)
    assert h.numpy().tolist() == [7, 3]


@pytest.mark.parametrize(
    "value, codes, message",
    [
        (X, (IMM, 4, NOTHING, 0), r"shape\[0\]: expected 4, got 2"),
        (X, (NOTHING, 0, LOAD, 0), r"shape\[1\]: expected 9, as seen before, got 3"),
        (X[0], (NOTHING, 0, NOTHING, 0), "expected ndim 2, got 1"),
        (tvm_ffi.Shape((1,)), (NOTHING, 0, NOTHING, 0), "expected ndim 2, got 1"),
    ],
)
def test_match_shape_errors(value, codes, message):
    with pytest.raises(RuntimeError, match="^main: parameter 'x' .*match_cast error, " + message):
        builtin("match_shape")(value, heap(9), 2, *codes, CONTEXT)


def test_other_errors_of_matching():
    with pytest.raises(TypeError, match="^main.*expect a Tensor or a Shape but get"):
        builtin("match_shape")("x", None, 0, CONTEXT)
    with pytest.raises(IndexError, match="slot of the shape heap below 1, got 5"):
        builtin("match_shape")(X[0], heap(1), 1, STORE, 5, CONTEXT)
    with pytest.raises(IndexError, match="below 0, got 0"):
        builtin("match_shape")(X[0], None, 1, STORE, 0, CONTEXT)
    with pytest.raises(TypeError, match="expected 6 arguments, got 5"):
        builtin("match_shape")(X[0], None, 1, STORE, 0)
    with pytest.raises(ValueError, match="unknown code 8"):
        builtin("match_shape")(X[0], None, 1, 8, 0, CONTEXT)
    with pytest.raises(RuntimeError, match="match_cast error, value: expected 4, got 5"):
        builtin("match_prim_value")(5, None, IMM, 4, CONTEXT)
    with pytest.raises(TypeError, match="expect an integer"):
        builtin("match_prim_value")("5", None, IMM, 4, CONTEXT)


def test_make_shape():
    assert tuple(builtin("make_shape")(heap(5, 6), 3, 0, 2, 1, 1, 1, 0)) == (2, 6, 5)
    assert tuple(builtin("make_shape")(None, 1, 0, 2)) == (2,)
    assert builtin("make_prim_value")(heap(5, 6), 1, 1) == 6
    assert builtin("make_prim_value")(None, 0, 4) == 4
    with pytest.raises(ValueError, match="unknown code 2"):
        builtin("make_shape")(None, 1, 2, 2)


def test_checks_accept():
    builtin("check_tensor_info")(X, 2, tvm_ffi.dtype("float32"), CONTEXT)
    builtin("check_tensor_info")(X, -1, CONTEXT)
    builtin("check_shape_info")(tvm_ffi.Shape((1, 2)), 2, CONTEXT)
    builtin("check_shape_info")(tvm_ffi.Shape((1, 2)), -1, CONTEXT)
    builtin("check_tuple_info")([1, 2], 2, CONTEXT)
    for value, dtype in [(1, "int64"), (True, "bool"), (1.5, "float32"), (2, "int32")]:
        builtin("check_prim_value_info")(value, tvm_ffi.dtype(dtype), CONTEXT)
    builtin("check_func_info")(lambda: None, CONTEXT)


@pytest.mark.parametrize(
    "name, args, error, message",
    [
        ("tensor", (None, 2), TypeError, "expect a Tensor but get None"),
        ("tensor", (3, 2), TypeError, "expect a Tensor but get int"),
        ("tensor", (X, 3), ValueError, "expect a Tensor with ndim 3 but get ndim 2"),
        ("tensor", (X, 2, tvm_ffi.dtype("int8")), ValueError, " dtype int8 but get dtype float32"),
        ("shape", (X, 2), TypeError, "expect a Shape but get ffi.Tensor"),
        ("shape", (tvm_ffi.Shape((1,)), 2), ValueError, "expect a Shape with ndim 2"),
        ("tuple", (X, 2), TypeError, "expect a Tuple but get ffi.Tensor"),
        ("tuple", ([1], 2), ValueError, "with 2 elements but get 1 elements"),
        ("prim_value", ("x", tvm_ffi.dtype("int64")), TypeError, "with dtype int64 but get"),
        ("func", (X,), TypeError, "expect a Function but get ffi.Tensor"),
        ("func", (None,), TypeError, "expect a Function but get None"),
    ],
)
def test_checks_refuse(name, args, error, message):
    with pytest.raises(error, match="^main: parameter 'x' .*" + message):
        builtin(f"check_{name}_info")(*args, CONTEXT)


def test_views_and_copies():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    view = builtin("reshape")(x, tvm_ffi.Shape((3, 2)))
    assert np.from_dlpack(view).ctypes.data == x.ctypes.data and view.shape == (3, 2)
    strided = builtin("reshape")(x.T, tvm_ffi.Shape((6,)))
    np.testing.assert_array_equal(strided.numpy(), x.T.reshape(-1))
    with pytest.raises(ValueError, match="expected a shape of 6 elements"):
        builtin("reshape")(x, tvm_ffi.Shape((4,)))
    assert tuple(builtin("shape_of")(x)) == (2, 3)
    same = runtime.tensor(x)
    assert builtin("copy")(same).same_as(same) and builtin("ensure_zero_offset")(same).same_as(same)
    assert builtin("to_device")(same, 1, 0).same_as(same)
    with pytest.raises(TypeError, match="to_device: expected .*Tensor, got None"):
        builtin("to_device")(None, 1, 0)
    assert builtin("null_value")() is None


def test_tensors_and_shapes():
    for dtype in ("int32", "int64"):
        shape = builtin("tensor_to_shape")(np.array([4, 5, 6], dtype))
        assert tuple(shape) == (4, 5, 6)
    assert tuple(builtin("tensor_to_shape")(np.arange(6)[::2])) == (0, 2, 4)
    to_tensor = tvm_ffi.get_global_func("relax.run.shape_to_tensor")
    np.testing.assert_array_equal(to_tensor(tvm_ffi.Shape((7, 8))).numpy(), [7, 8])
    with pytest.raises(ValueError, match="expected a vector of integers"):
        builtin("tensor_to_shape")(X)
    with pytest.raises(ValueError, match="expected int32 or int64, got int8"):
        builtin("tensor_to_shape")(np.array([1], "int8"))


@pytest.mark.parametrize(
    "value, expected",
    [(True, True), (0, False), (np.array(True), True), (np.array([0]), False), (np.int32(4), True)],
)
def test_conditions(value, expected):
    assert builtin("read_if_cond")(value) is expected


@pytest.mark.parametrize("value", [None, "x", 1.5, np.zeros(2, "bool"), np.array(0.5)])
def test_bad_conditions(value):
    with pytest.raises(TypeError, match="If: expected a boolean as condition, got "):
        builtin("read_if_cond")(value)


def test_tuples():
    items = builtin("make_tuple")(1, "x", X)
    assert items[0] == 1 and builtin("tuple_getitem")(items, 1) == "x"
    builtin("tuple_reset_item")(items, 2)
    assert items[2] is None
    for name in ("tuple_getitem", "tuple_reset_item"):
        with pytest.raises(IndexError, match="below 3, got 3"):
            builtin(name)(items, 3)


def test_call_tir_dyn_appends_the_shape():
    seen = []
    builtin("call_tir_dyn")(lambda *args: seen.extend(args), "a", tvm_ffi.Shape((3, 4)))
    assert seen == ["a", 3, 4]
    with pytest.raises(TypeError, match="call_tir_dyn: expected .*Function, got None"):
        builtin("call_tir_dyn")(None, tvm_ffi.Shape((3,)))


def test_debug_functions():
    seen = []
    tvm_ffi.register_global_func("test.vm.debug", lambda *a: seen.append(a), override=True)
    assert builtin("invoke_debug_func")(None, "test.vm.debug", "line 3", 5) is None
    assert seen == [("line 3", 5)]
    with pytest.raises(ValueError, match="no global function 'test.vm.no'"):
        builtin("invoke_debug_func")(None, "test.vm.no", "line 3")


def test_python_functions_by_name():
    builtin("register_py_func")("double", lambda x: 2 * x)
    assert builtin("call_py_func")("double", [4]) == 8 and builtin("get_py_func")("double")(3) == 6
    builtin("clear_py_func_registry")()
    with pytest.raises(ValueError, match="Python function 'double' not found"):
        builtin("get_py_func")("double")


def test_context_builtins_want_the_machine():
    for name, args in [("alloc_shape_heap", (3,)), ("invoke_closure", (3,))]:
        with pytest.raises(TypeError, match="expected the virtual machine as first argument"):
            builtin(name)(None, *args)
