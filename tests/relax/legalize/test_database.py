# SPDX-License-Identifier: Apache-2.0
"""Every operator of the database: legalised and run, it gives what its reference gives."""

import numpy as np
import pytest
from tvm import relax

from ..op.database import ENTRIES, arrays, expected, make_call, tensors
from .evaluate import evaluate

# What is not computed by PrimFuncs: calls, devices, memory, collectives; or stays for later passes.
ELSEWHERE = {
    name
    for name, entry in ENTRIES.items()
    if entry.reference is None
    or name.split(".")[0] in ("memory", "vm", "builtin", "ccl", "dist", "inspect")
    or name in ("nn.dropout", "unique", "nonzero", "shape_of", "shape_to_tensor", "tensor_to_shape")
    or name in ("to_vdevice", "hint_on_device")
}
CASES = [(e, c) for e in ENTRIES.values() if e.name not in ELSEWHERE for c in e.cases]
TOLERANCE = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-6}


def ids(cases):
    return [f"{entry.name}({case})" for entry, case in cases]


def flat(values):
    if isinstance(values, (list, tuple)):
        return [v for value in values for v in flat(value)]
    return [values]


def inputs(entry, case, edges=False):
    return [a for a in flat(arrays(entry, case, edges)) if isinstance(a, np.ndarray)]


def legalized(entry, case, variant):
    call, params, variables = make_call(entry, case, variant)
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(call))
    return relax.transform.LegalizeOps()(builder.finalize()), variables.values()


def check(entry, case, variant, edges=False):
    mod, sizes = legalized(entry, case, variant)
    got = flat(evaluate(mod, inputs(entry, case, edges), sizes))
    for g, e in zip(got, flat(expected(entry, case, edges)), strict=True):
        assert g.shape == e.shape and g.dtype == e.dtype, (g.shape, g.dtype, e.shape, e.dtype)
        if g.dtype.kind not in "fV":
            np.testing.assert_array_equal(g, e)
            continue
        rtol = max(TOLERANCE.get(str(g.dtype), 0.2), entry.rtol)
        np.testing.assert_allclose(g.astype("float64"), e.astype("float64"), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("entry, case", CASES, ids=ids(CASES))
def test_static(entry, case):
    check(entry, case, "static")


def _takes_edges(case):
    free = [t for t in tensors(case) if t.values is None and t.dtype == "float32"]
    return any(0 not in t.shape for t in free)


# Where the references leave open what they do, or do it by another formula.
OPEN = {
    "nn.conv1d_transpose": "zeros put between elements meet infinite weights",
    "nn.conv2d_transpose": "zeros put between elements meet infinite weights",
    "grad.max_pool2d_backward": "which of several NaN is the maximum",
    "image.resize2d": "an infinite neighbour of weight 0",
}
EDGES = [
    (entry, next(c for c in entry.cases if _takes_edges(c)))
    for entry in ENTRIES.values()
    if entry.name not in {*ELSEWHERE, *OPEN} and any(map(_takes_edges, entry.cases))
]


@pytest.mark.parametrize("entry, case", EDGES, ids=ids(EDGES))
def test_edge_values(entry, case):
    """NaN, infinities and zeros of both signs among the numbers."""
    check(entry, case, "static", edges=True)


SYMBOLIC = [c for c in CASES if c[1].symbolic]


@pytest.mark.parametrize("entry, case", SYMBOLIC, ids=ids(SYMBOLIC))
def test_symbolic(entry, case):
    mod, _ = legalized(entry, case, "symbolic")
    result = mod["main"].ret_struct_info
    if isinstance(result, relax.TensorStructInfo) and result.ndim == -1:
        assert f"R.{entry.name}(" in mod.script()  # which dims of 1 go is known at run time only
        return
    check(entry, case, "symbolic")
