# SPDX-License-Identifier: Apache-2.0
"""Models in other layouts and in low precision give the results of before.

python -m tests.relax.transform.test_converted_models   all models of bench/models.py

MobileNetV2 with random weights is off by 3.7e-2 in bfloat16: rounding what its convolutions read
is enough for 3.3e-2, and PyTorch's autocast gives 4.1e-2.
"""

import sys

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import transform

from bench.model_ops import relax_module
from bench.models import MODELS, Model

IMAGES = ("resnet18", "resnet50", "mobilenet_v2")
NHWC = {"relax.nn.conv2d": ["NHWC", "OHWI"]}
BLOCKS = {"relax.nn.conv2d": ["NCHW8c", "OIHW8i8o"]}
CONVERSIONS = {
    "NHWC": (transform.ConvertLayout(NHWC), 1e-4),
    "NCHW8c": (transform.ConvertLayout(BLOCKS), 1e-4),
    "bfloat16": (transform.ToMixedPrecision(dtype="bfloat16"), 2e-2),
    "float16": (transform.ToMixedPrecision(), 2e-2),
}


def results(mod, inputs):
    found = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main"](*inputs)
    return [
        x.numpy() for x in (found if isinstance(found, (list, tuple, tvm.ir.Array)) else [found])
    ]


def worst(name, conversions):
    """{conversion: the largest difference, as a part of the largest result}."""
    model = Model(name)
    mod, inputs = relax_module(model), model.inputs()
    want = results(mod, inputs)
    found = {}
    for conversion in conversions:
        got = results(CONVERSIONS[conversion][0](mod), inputs)
        pairs = zip(got, want, strict=True)
        found[conversion] = max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs)
    return found


@pytest.mark.parametrize(
    "name, conversions", [("mlp", ["bfloat16", "float16"]), ("resnet18", ["NHWC", "NCHW8c"])]
)
def test_converted(name, conversions):
    for conversion, difference in worst(name, conversions).items():
        assert difference <= CONVERSIONS[conversion][1], conversion


if __name__ == "__main__":
    for each in sys.argv[1:] or MODELS:
        kinds = [k for k in CONVERSIONS if each in IMAGES or "float" in k]
        for kind, value in worst(each, kinds).items():
            print(f"{each} in {kind}: {value:.1e}, at most {CONVERSIONS[kind][1]}", flush=True)
