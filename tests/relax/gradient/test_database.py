# SPDX-License-Identifier: Apache-2.0
"""Every operator with a gradient: in float64 it equals the differences of its reference."""

import numpy as np
import pytest
from tvm import ir, relax
from tvm.relax import op
from tvm.relax.testing.evaluate import Evaluator

from ..op.database import ENTRIES, arrays, make_call
from ..op.database.core import Case, T

STEP, TOLERANCE = 1e-5, 1e-5
LARGEST = 150  # elements of a case
CASES = 3  # of an operator
# Operators on floats that have no gradient, with the reason.
WITHOUT = {
    "grad.avg_pool2d_backward": "of a gradient",
    "grad.max_pool2d_backward": "of a gradient",
    "grad.nll_loss_backward": "of a gradient",
    "grad.take_backward": "of a gradient",
    "cumprod": "a division by elements that may be zero",
    "median": "picks elements",
    "sort": "picks elements",
    "topk": "picks elements",
    "nn.dropout": "random",
    "quantize": "rounds",
    "dequantize": "of integers",
    "multinomial_from_uniform": "picks elements",
    "nn.conv3d": "no transposed convolution of three dimensions",
    "nn.max_pool1d": "no backward operator",
    "nn.max_pool3d": "no backward operator",
    "nn.avg_pool1d": "no backward operator",
    "nn.avg_pool3d": "no backward operator",
    "nn.attention_var_len": "of packed sequences",
    "image.resize2d": "no backward operator",
    "image.grid_sample": "no backward operator",
    "vision.all_class_non_max_suppression": "picks elements",
    "dynamic_strided_slice": "a shape that is not known",
    "layout_transform": "any index map",
    "meshgrid": "rows of a tuple",
    "memory.view": "bits",
    "memory.ensure_zero_offset": "memory",
    "wrap_param": "of weights that are cast",
}


def _is_float(param):
    return isinstance(param, T) and "float" in param.dtype


def _flat(values):
    if isinstance(values, (list, tuple)):
        return [v for value in values for v in _flat(value)]
    return [values]


def _wide(param):
    if isinstance(param, list):
        return [_wide(p) for p in param]
    return param.with_dtype("float64") if _is_float(param) else param


def _cases(entry):
    """Small cases of random numbers, in float64."""
    chosen = []
    for case in entry.cases:
        tensors = [t for t in _flat(list(case.params)) if isinstance(t, T)]
        size = sum(int(np.prod(t.shape)) for t in tensors)
        floats = [t for t in tensors if _is_float(t)]
        if not floats or any(t.values is not None for t in floats) or size > LARGEST:
            continue
        if any(0 in t.shape for t in tensors):
            continue  # nothing to differentiate by
        if any(t.dtype not in ("float32", "float64") for t in floats) or "out_dtype" in case.attrs:
            continue
        attrs = dict(case.attrs)
        if "dtype" in attrs:
            continue
        chosen.append(Case(tuple(_wide(p) for p in case.params), attrs, case.symbolic))
    return chosen[:CASES]


def _has_gradient(name):
    return ir.Op.get("relax." + name).has_attr("FPrimalGradient")


def _is_refused(entry, case):
    """Whether this case of an operator has no gradient, which an error says."""
    operands = case.params[0] if entry.name == "einsum" else []
    return (
        (entry.name == "nn.pad" and "reflect" in str(case))
        or (entry.name == "nn.pad" and "replicate" in str(case))
        or (entry.name == "nn.pad" and "circular" in str(case))
        or (entry.name == "gather_nd" and case.attrs.get("batch_dims", 0) != 0)
        or (entry.name == "index_tensor" and len(case.params[1]) < len(case.params[0].shape))
        or (entry.name == "einsum" and len(operands) == 1 and "ii" in str(case))
    )


ALL = [
    (entry, case)
    for entry in ENTRIES.values()
    if entry.reference is not None
    and _has_gradient(entry.name)
    and entry.name not in ("grad.no_grad", "unique")
    for case in _cases(entry)
]
TESTED = [(entry, case) for entry, case in ALL if not _is_refused(entry, case)]
REFUSED = [(entry, case) for entry, case in ALL if _is_refused(entry, case)]
# Arguments that are statistics or weights of classes: they are not trained.
NOT_TRAINED = {"nn.batch_norm": (3, 4), "nn.nll_loss": (2,)}


def _differences(function, arrays, i):
    """The gradient by the elements of one array, by differences."""
    result = np.zeros_like(arrays[i])
    for index in np.ndindex(arrays[i].shape):
        at = []
        for step in (STEP, -STEP):
            moved = list(arrays)
            moved[i] = arrays[i].copy()
            moved[i][index] += step
            at.append(function(moved))
        result[index] = (at[0] - at[1]) / (2 * STEP)
    return result


def _adjoint(entry, case, weights):
    """A module whose main_adjoint gives the gradients of sum(result * weights)."""
    call, params, _ = make_call(entry, case, "static")
    builder = relax.BlockBuilder()
    floats = [p for p in params if "float" in str(p.struct_info.dtype)]
    with builder.function("main", params):
        with builder.dataflow():
            value = builder.emit(call)
            items = [value]
            if isinstance(value.struct_info, relax.TupleStructInfo):
                items = [value[i] for i in range(len(value.struct_info.fields))]
            terms = [
                builder.emit(op.sum(op.multiply(item, relax.const(w))))
                for item, w in zip(items, weights, strict=True)
                if w is not None
            ]
            total = terms[0]
            for term in terms[1:]:
                total = builder.emit(op.add(total, term))
            target = builder.emit_output(total)
        builder.emit_func_output(target)
    mod = builder.finalize()
    gradient = relax.transform.Gradient("main", require_grads=floats)(mod)
    assert relax.analysis.well_formed(gradient)
    return relax.transform.LegalizeOps()(gradient)


@pytest.mark.parametrize("entry, case", TESTED, ids=[f"{e.name}({c})" for e, c in TESTED])
def test_gradients(entry, case):
    given = arrays(entry, case)
    flat = [a for a in _flat(given) if isinstance(a, np.ndarray)]

    def reference(values):
        values = iter(values)

        def fill(x):
            if isinstance(x, list):
                return [fill(v) for v in x]
            return next(values) if isinstance(x, np.ndarray) else x

        with np.errstate(all="ignore"):
            result = entry.reference(*(fill(x) for x in given), **case.attrs)
        return [np.asarray(r) for r in (result if isinstance(result, (tuple, list)) else [result])]

    rng = np.random.default_rng(0)
    results = reference(flat)
    weights = [rng.uniform(-1, 1, r.shape) if r.dtype == "float64" else None for r in results]
    if entry.name == "nn.batch_norm":
        weights[1:] = [None, None]  # new statistics are no part of the loss
    if not any(w is not None for w in weights):
        pytest.skip("no result of floats")

    def total(values):
        return sum(
            np.sum(r * w) for r, w in zip(reference(values), weights, strict=True) if w is not None
        )

    mod = _adjoint(entry, case, weights)
    value, gradients = Evaluator(mod).run("main_adjoint", flat)
    np.testing.assert_allclose(value, total(flat), rtol=1e-6, atol=1e-9)
    floats = [i for i, a in enumerate(flat) if a.dtype == "float64"]
    for i, gradient in zip(floats, gradients, strict=True):
        if i in NOT_TRAINED.get(entry.name, ()):
            continue
        expected = _differences(total, flat, i)
        np.testing.assert_allclose(
            gradient, expected, rtol=TOLERANCE, atol=TOLERANCE * max(1, np.abs(expected).max())
        )


@pytest.mark.parametrize("entry, case", REFUSED, ids=[f"{e.name}({c})" for e, c in REFUSED])
def test_cases_without_a_gradient(entry, case):
    shape = np.asarray(entry.reference(*arrays(entry, case), **case.attrs)).shape
    with pytest.raises(ValueError, match="expected a gradient of relax." + entry.name):
        _adjoint(entry, case, [np.ones(shape)])


def test_no_differentiable_operator_is_left_out():
    """An operator on floats has a gradient that is tested, or a reason not to."""
    tested = {entry.name for entry, _ in TESTED}
    missing = [
        entry.name
        for entry in ENTRIES.values()
        if entry.reference is not None and _cases(entry) and not _has_gradient(entry.name)
    ]
    assert sorted(set(missing) - set(WITHOUT)) == []
    assert len(tested) > 70
