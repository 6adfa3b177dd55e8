# SPDX-License-Identifier: Apache-2.0
"""Calls that write into given tensors: who allocates them."""

import pytest
import tvm
from tvm import relax
from tvm.relax.transform import CallTIRRewrite

from .passes import check

KERNELS = """
@T.prim_func(private=True)
def exp(a: T.handle, b: T.handle):
    m = T.int64()
    A = T.match_buffer(a, (m,))
    B = T.match_buffer(b, (m,))
    T.evaluate(0)

@T.prim_func(private=True)
def split(a: T.handle, b: T.handle, c: T.handle):
    m = T.int64()
    A = T.match_buffer(a, (m,))
    B = T.match_buffer(b, (m,))
    C = T.match_buffer(c, (m,))
    T.evaluate(0)

@T.prim_func(private=True)
def half(a: T.handle, b: T.handle, k: T.int64):
    m = T.int64()
    A = T.match_buffer(a, (m,))
    B = T.match_buffer(b, (k,))
    T.evaluate(0)
"""


def test_one_and_several_results():
    before = """
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        a = R.call_tir(cls.exp, (x,), R.Tensor((n,), "float32"))
        b = R.call_tir(cls.split, (a,), [R.Tensor((n,), "float32"), R.Tensor((n,), "float32")])
        c = b[1]
        return c
    """
    after = """
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        R.func_attr({"relax.force_pure": True})
        cls = Module
        alloc = R.builtin.alloc_tensor(R.shape([n]), R.dtype("float32"), R.prim_value(0), R.str("global"))
        _ = cls.exp(x, alloc)
        a = alloc
        alloc1 = R.builtin.alloc_tensor(R.shape([n]), R.dtype("float32"), R.prim_value(0), R.str("global"))
        alloc2 = R.builtin.alloc_tensor(R.shape([n]), R.dtype("float32"), R.prim_value(0), R.str("global"))
        _1 = cls.split(a, alloc1, alloc2)
        b = (alloc1, alloc2)
        c = b[1]
        return c
    """  # noqa: E501
    run = tvm.ir.transform.Sequential([relax.transform.RemovePurityChecking(), CallTIRRewrite()])
    check(run, before, after, KERNELS)


def test_variables_that_no_shape_shows():
    before = """
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        R.func_attr({"relax.force_pure": True})
        n = T.int64()
        cls = Module
        a = R.call_tir(cls.half, (x,), R.Tensor((n // 2,), "float32"), tir_vars=R.shape([n // 2]))
        return a
    """
    after = """
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        R.func_attr({"relax.force_pure": True})
        n = T.int64()
        cls = Module
        alloc = R.builtin.alloc_tensor(R.shape([n // 2]), R.dtype("float32"), R.prim_value(0), R.str("global"))
        _ = R.vm.call_tir_dyn(cls.half, (x, alloc, R.shape([n // 2])))
        a = alloc
        return a
    """  # noqa: E501
    check(CallTIRRewrite(), before, after, KERNELS)


def test_results_that_overwrite_arguments():
    before = """
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
        R.func_attr({"relax.force_pure": True})
        n = T.int64()
        cls = Module
        a = R.call_tir_inplace(cls.split, (x, y), [1, -1], [R.Tensor((n,), "float32"), R.Tensor((n,), "float32")])
        return a
    """  # noqa: E501
    after = """
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
        R.func_attr({"relax.force_pure": True})
        n = T.int64()
        cls = Module
        alloc = R.builtin.alloc_tensor(R.shape([n]), R.dtype("float32"), R.prim_value(0), R.str("global"))
        _ = cls.split(x, y, alloc)
        a = (y, alloc)
        return a
    """  # noqa: E501
    check(CallTIRRewrite(), before, after, KERNELS)


def test_packed_functions_and_tuple_variables():
    before = """
    @R.function
    def main(t: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32"))):
        R.func_attr({"relax.force_pure": True})
        a = R.call_dps_packed("f", t, R.Tensor((4,), "int8"))
        return a
    """
    after = """
    @R.function
    def main(t: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32"))):
        R.func_attr({"relax.force_pure": True})
        gv = t[0]
        gv1 = t[1]
        alloc = R.builtin.alloc_tensor(R.shape([4]), R.dtype("int8"), R.prim_value(0), R.str("global"))
        _ = R.call_packed("f", gv, gv1, alloc, sinfo_args=[R.Tuple])
        a = alloc
        return a
    """  # noqa: E501
    check(CallTIRRewrite(), before, after)


def _on_devices(device):
    """A call whose result is on `device`, in a module that declares two."""
    x = relax.Var("x", relax.TensorStructInfo([2], "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x], attrs={"relax.force_pure": True}):
        out = relax.TensorStructInfo([2], "float32", device)
        bb.emit_func_output(bb.emit(relax.op.call_dps_packed("f", [x], out)))
    mod = bb.get()
    mod.update_global_info("vdevice", [tvm.ir.VDevice("llvm"), tvm.ir.VDevice("llvm", 1, "shared")])
    return mod


def test_device_of_the_result():
    """The machine is given its devices in the order of the module's list."""
    main = CallTIRRewrite()(_on_devices(tvm.ir.VDevice("llvm", 1, "shared")))["main"]
    alloc = main.body.blocks[0].bindings[0].value
    assert alloc.args[2].value == 1 and alloc.args[3].value == "shared"
    assert main.body.body.struct_info.vdevice.vdevice_id == 1
    with pytest.raises(ValueError, match='expected a device of the module\'s list "vdevice"'):
        CallTIRRewrite()(_on_devices(tvm.ir.VDevice("llvm", 2)))
