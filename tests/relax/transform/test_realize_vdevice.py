# SPDX-License-Identifier: Apache-2.0
"""Hints where tensors shall be become devices in struct info, and copies where that changes."""

import pytest
from tvm import ir
from tvm.relax.transform import RealizeVDevice

from tests.relax.transform.passes import INFOS, module


def test_hint_reaches_what_a_tensor_is_computed_from():
    text = """
    @R.function
    def main(x: R.Tensor((2,), "float32"{0}), y: R.Tensor((2,), "float32"{0})):
        with R.dataflow():
            a = R.add(x, y)
            b = {1}
            c = R.exp(b)
            R.output(c)
        return c
    """
    before = text.format("", "R.hint_on_device(a, R.device(2, 0))")
    result = RealizeVDevice()(module(INFOS, before))
    ir.assert_structural_equal(result, module(INFOS, text.format(', "cuda:0"', "a")))
    assert result["main"].ret_struct_info.vdevice.target.kind.name == "cuda"


def test_copy_where_the_device_changes():
    text = """
    @R.function
    def main(x: R.Tensor((2,), "float32", "llvm:0")):
        with R.dataflow():
            a = R.exp(x)
            b = {}
            c = R.exp(b)
            R.output(c)
        return c
    """
    before = text.format("R.hint_on_device(a, R.device(2, 0))")
    after = text.format('R.to_vdevice(a, "cuda:0")')
    ir.assert_structural_equal(RealizeVDevice()(module(INFOS, before)), module(INFOS, after))


def test_device_that_is_not_declared():
    mod = module(
        INFOS,
        """
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            a = R.hint_on_device(x, R.device(2, 1))
            R.output(a)
        return a
    """,
    )
    with pytest.raises(
        ValueError, match="RealizeVDevice: expected hint_on_device to name a device"
    ):
        RealizeVDevice()(mod)
