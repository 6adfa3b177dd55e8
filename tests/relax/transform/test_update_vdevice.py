# SPDX-License-Identifier: Apache-2.0
"""A device of the module's list is replaced by another one."""

import pytest
import tvm
from tvm import ir
from tvm.relax.transform import UpdateVDevice

from tests.relax.transform.passes import INFOS, module


def test_update():
    text = """
    @R.function
    def main(x: R.Tensor((2,), "float32", "llvm:0"), t: R.Tuple(R.Tensor((2,), "float32", "{0}"))):
        a = R.to_vdevice(x, "{0}")
        b = t[0]
        c = R.add(a, b)
        return c
    """
    infos = 'I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("metal")]})\n'
    update = UpdateVDevice(tvm.ir.VDevice("metal"), 1)
    result = update(module(INFOS, text.format("cuda:0")))
    ir.assert_structural_equal(result, module(infos, text.format("metal:0")))
    with pytest.raises(ValueError, match="one of the module's 2 devices, got 2"):
        UpdateVDevice(tvm.ir.VDevice("metal"), 2)(result)
