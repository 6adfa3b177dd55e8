# SPDX-License-Identifier: Apache-2.0
"""A network that comes as an ONNX file ends in no more kernels than one that PyTorch hands over."""

import re

import pytest
import torch
import tvm
from tvm.relax.frontend.onnx import from_onnx
from tvm.relax.frontend.torch import from_exported_program

from .onnx.test_torch_export import MODELS, exported


def kernels(mod):
    """How many kernels a call runs."""
    text = tvm.compile(mod, target="llvm").as_text()
    return sum(not name.startswith("vm.") for name in re.findall(r"call\s+(\S+)", text))


@pytest.mark.parametrize(
    ("name", "is_same"),
    [("resnet", False), ("mobilenet", True), ("unet", True), ("encoder", False)],
)
def test_a_file_ends_in_no_more_kernels(name, is_same):
    make, random, shape = MODELS[name][:3]
    torch.manual_seed(0)
    model, x = make().eval(), random(*shape)
    program = torch.export.export(model, (x,))
    count = kernels(from_onnx(exported(model, x, {})))
    other = kernels(from_exported_program(program))
    assert 0 < count <= other
    assert count == other or not is_same
