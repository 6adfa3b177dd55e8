# SPDX-License-Identifier: Apache-2.0
"""Normalisations whose mean is far larger than the deviation, against PyTorch in float64."""

import numpy as np
import pytest
import torch
import tvm
from tvm import relax
from tvm.relax.transform import StableNormalization

from .passes import module

CASES = {
    "layer_norm": (
        "R.nn.layer_norm(x, g, b, axes=[2], epsilon=1e-12)",
        (3, 5, 64), 64,
        lambda x, g, b: torch.nn.functional.layer_norm(x, (64,), g, b, 1e-12),
    ),
    "group_norm": (
        "R.nn.group_norm(x, g, b, num_groups=2, channel_axis=1, axes=[2], epsilon=1e-12)",
        (2, 4, 96), 4,
        lambda x, g, b: torch.nn.functional.group_norm(x, 2, g, b, 1e-12),
    ),
    "instance_norm": (
        "R.nn.instance_norm(x, g, b, channel_axis=1, axes=[2], epsilon=1e-12)",
        (2, 4, 96), 4,
        lambda x, g, b: torch.nn.functional.instance_norm(x, None, None, g, b, True, 0.0, 1e-12),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_digits(name):
    call, shape, channels, reference = CASES[name]
    channel = f'R.Tensor(({channels},), "float32")'
    text = f"""
    @R.function
    def main(x: R.Tensor({shape}, "float32"), g: {channel}, b: {channel}):
        y = {call}
        return y
    """
    lowered = StableNormalization()(module(text))
    assert relax.analysis.well_formed(lowered)
    rng = np.random.default_rng(0)
    x = (1e4 + rng.standard_normal(shape)).astype("float32")
    g, b = (rng.standard_normal(channels).astype("float32") for _ in range(2))
    kernel = tvm.compile(lowered[name].with_attr("global_symbol", "main"), "llvm")
    y = tvm.runtime.empty(shape, "float32")
    kernel(*(tvm.runtime.tensor(v) for v in (x, g, b)), y)
    expected = reference(*(torch.from_numpy(v).double() for v in (x, g, b))).numpy()
    np.testing.assert_allclose(y.numpy(), expected, atol=1e-4 * np.abs(expected).max(), rtol=0)


def test_unknown_shapes_stay():
    mod = module("""
    @R.function
    def main(x: R.Tensor(ndim=2, dtype="float32"), g: R.Tensor((4,), "float32")):
        y = R.nn.layer_norm(x, g, g, axes=[1])
        return y
    """)
    tvm.ir.assert_structural_equal(StableNormalization()(mod), mod)
