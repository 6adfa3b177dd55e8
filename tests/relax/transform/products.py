# SPDX-License-Identifier: Apache-2.0
"""Tests of passes over products of matrices: the whole program after, and both run."""

import numpy as np
from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.relax import transform

from tests.relax.legalize.evaluate import evaluate


def run(mod):
    """What main gives for inputs that every run has."""
    rng = np.random.default_rng(0)
    arrays = []
    for param in mod["main"].params:
        shape = [int(d) for d in param.struct_info.shape.values]
        if str(param.struct_info.dtype) == "int64":
            arrays.append(rng.integers(0, 3, shape))
        else:
            arrays.append(rng.standard_normal(shape).astype("float32"))
    result = evaluate(transform.LegalizeOps()(mod), arrays)
    return result if isinstance(result, tuple) else (result,)


def check(make, before, expected=None):
    """The pass gives what is expected (None: nothing changes), with the same results."""
    after = make(before)
    assert_structural_equal(after["main"], (expected or before)["main"])
    assert relax.analysis.well_formed(after)
    for a, b in zip(run(after), run(before), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def operators(mod):
    return [
        binding.value.op.name.removeprefix("relax.")
        for block in mod["main"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call)
    ]
