# SPDX-License-Identifier: Apache-2.0
"""Operators that the virtual machine has a function for."""

import pytest
import tvm
from tvm import relax
from tvm.relax.transform import LowerRuntimeBuiltin, VMBuiltinLower

from .passes import check, module

TEXT = """
@R.function(pure=False)
def main(x: R.Tensor((2, 3), "float32"), f: R.Object, s: R.Tensor((2,), "int64"), u: R.Tensor):
    a = {}
    return a
"""
T23 = 'R.Tensor((2, 3), "float32")'


@pytest.mark.parametrize(
    "before, after",
    [
        (
            "R.reshape(x, R.shape([6]))",
            'R.call_packed("vm.builtin.reshape", x, R.shape([6]), '
            'sinfo_args=[R.Tensor((6,), "float32")])',
        ),
        (
            "R.shape_of(x)",
            'R.call_packed("vm.builtin.shape_of", x, sinfo_args=[R.Shape([2, 3])])',
        ),
        (
            "R.tensor_to_shape(s)",
            'R.call_packed("vm.builtin.tensor_to_shape", s, sinfo_args=[R.Shape(ndim=2)])',
        ),
        (
            'R.memory.alloc_storage(R.shape([24]), R.prim_value(0), R.str("g"), R.dtype("int8"))',
            'R.vm.alloc_storage(R.shape([24]), R.prim_value(0), R.dtype("int8"), R.str("g"))',
        ),
        (
            'R.memory.alloc_tensor(f, R.prim_value(64), R.shape([24]), R.dtype("int8"))',
            'R.vm.alloc_tensor(f, R.prim_value(64), R.shape([24]), R.dtype("int8"))',
        ),
        ("R.memory.kill_tensor(x)", "R.vm.kill_object(x)"),
        ("R.memory.kill_storage(f)", "R.vm.kill_object(f)"),
        (
            "R.make_closure(f, (x, s))",
            'R.call_packed("vm.builtin.make_closure", f, x, s, sinfo_args=[R.Object])',
        ),
        (
            f"R.invoke_closure(f, (x, s), sinfo_args=[{T23}])",
            f'R.call_builtin_with_ctx("vm.builtin.invoke_closure", (f, x, s), sinfo_args=[{T23}])',
        ),
        (
            'R.vm.call_tir_dyn("k", (x, R.shape([2])))',
            'R.call_packed("vm.builtin.call_tir_dyn", R.ExternFunc("k"), x, R.shape([2]), '
            "sinfo_args=[R.Tuple])",
        ),
        (
            "R.memory.ensure_zero_offset(x)",
            f'R.call_packed("vm.builtin.ensure_zero_offset", x, sinfo_args=[{T23}])',
        ),
        (
            'R.memory.view(x, R.shape([4]), R.dtype("int16"), R.prim_value(8))',
            'R.call_packed("vm.builtin.view", x, R.shape([4]), R.dtype("int16"), R.prim_value(8), '
            'sinfo_args=[R.Tensor((4,), "int16")])',
        ),
        (
            "u.ndim",
            'R.call_packed("vm.builtin.tensor_ndim", u, sinfo_args=[R.Prim("int32")])',
        ),
        (
            "u.shape[1]",
            'R.call_packed("vm.builtin.tensor_shape_i", u, R.prim_value(1), '
            'sinfo_args=[R.Prim("int64")])',
        ),
        (
            'R.call_py_func("g", (x,), out_sinfo=R.Tensor((2, 3), "float32"))',
            f'R.call_packed("vm.builtin.call_py_func", "g", (x,), sinfo_args=[{T23}])',
        ),
        (
            'R.print(x, format="{}")',
            'R.call_packed("relax.run.print", "{}", x, sinfo_args=[R.Tuple])',
        ),
        ("R.builtin.stop_lift_params(x)", "x"),
    ],
)
def test_operator(before, after):
    check(LowerRuntimeBuiltin(), TEXT.replace("{}", before), TEXT.replace("{}", after))
    tvm.ir.assert_structural_equal(
        VMBuiltinLower()(module(TEXT.replace("{}", before))), module(TEXT.replace("{}", after))
    )


def test_view_completes_what_is_left_out():
    before = "R.memory.view(x, relative_byte_offset=R.prim_value(0))"
    after = """R.call_packed("vm.builtin.shape_of", x, sinfo_args=[R.Shape(ndim=2)])
    b = R.call_packed("vm.builtin.view", x, a, R.dtype("float32"), R.prim_value(0), sinfo_args=[R.Tensor((2, 3), "float32")])"""  # noqa: E501
    after = TEXT.format(after).replace("return a", "return b")
    check(LowerRuntimeBuiltin(), TEXT.format(before), after)
    with pytest.raises(tvm.TVMError, match="memory.view: expected a dtype for a tensor"):
        LowerRuntimeBuiltin()(module(TEXT.format("R.memory.view(u, R.shape([4]))")))


def test_device():
    x = relax.Var("x", relax.TensorStructInfo([2], "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit(relax.op.to_vdevice(x, tvm.ir.VDevice("cuda", 1, "shared")))
        bb.emit_func_output(y)
    call = LowerRuntimeBuiltin()(bb.get())["main"].body.blocks[0].bindings[0].value
    assert call.op.global_symbol == "vm.builtin.to_device"
    assert [call.args[1].value, call.args[2].value] == [2, 1]
    assert call.args[3].value == "shared"
    assert call.struct_info.vdevice.vdevice_id == 1


def test_what_the_machine_runs():
    """The functions that operators become look at tensors as NumPy does."""
    import numpy as np

    x = tvm.runtime.tensor(np.arange(6, dtype="float32").reshape(2, 3))
    get = tvm.get_global_func
    assert get("vm.builtin.tensor_ndim")(x) == 2
    assert get("vm.builtin.tensor_shape_i")(x, 1) == 3
    assert get("vm.builtin.tensor_stride_i")(x, 0) == 3
    assert get("vm.builtin.tensor_dtype_bits")(x) == 32
    assert get("vm.builtin.tensor_dtype_code")(x) == 2
    assert get("vm.builtin.tensor_dtype_lanes")(x) == 1
    assert get("vm.builtin.tensor_byte_offset")(x) == 0
    assert get("vm.builtin.tensor_elem_offset")(x) == 0
    with pytest.raises(IndexError, match=r"tensor_shape_i: expected an axis in \[0, 2\), got 2"):
        get("vm.builtin.tensor_shape_i")(x, 2)
    view = get("vm.builtin.view")(x, tvm.runtime.ShapeTuple([2]), tvm.DataType("float32"), 8)
    np.testing.assert_array_equal(view.numpy(), [2, 3])
    with pytest.raises(
        ValueError, match="would occupy bytes .* <= i_byte < .*, the tensor only contains 24"
    ):
        get("vm.builtin.view")(x, tvm.runtime.ShapeTuple([4]), tvm.DataType("float32"), 12)
