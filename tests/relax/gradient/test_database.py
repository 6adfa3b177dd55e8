# SPDX-License-Identifier: Apache-2.0
"""Every operator with a gradient: in float64 it equals the differences of its reference, and what
PyTorch says.

python -m tests.relax.gradient.test_database    prints how far each is off
"""

import numpy as np
import pytest
from tvm import ir, relax
from tvm.relax import op
from tvm.relax.testing.evaluate import Evaluator

from ..op.database import ENTRIES, arrays, make_call
from ..op.database.core import Case, S, T

STEP, TOLERANCE, TORCH_TOLERANCE = 1e-5, 1e-5, 1e-5
LARGEST = 150  # elements of a case
CASES = 3  # of an operator
# Operators on floats that have no gradient, with the reason.
WITHOUT = {
    "grad.max_pool2d_backward": "of a gradient",
    "grad.nll_loss_backward": "of a gradient",
    "nn.dropout": "random",
    "quantize": "rounds",
    "dequantize": "of float32 alone, see below",
    "multinomial_from_uniform": "picks by chance",
    "nn.attention_var_len": "of packed sequences",
    "vision.all_class_non_max_suppression": "picks boxes",
    "dynamic_strided_slice": "a shape that is not known",
    "memory.view": "bits",
}


# Operators whose gradient is tested in another way.
ELSEWHERE = {
    "dequantize": "below: of float32 alone",
    "grad.no_grad": "nothing flows through it",
    "unique": "nothing flows through it: it sorts values out",
    "bucketize": "nothing flows through it: it finds places",
    "nonzero": "nothing flows through it: it finds places",
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
    return (entry.name == "gather_nd" and case.attrs.get("batch_dims", 0) != 0) or (
        entry.name == "einsum" and len(operands) == 1 and "ii" in str(case)
    )


# Small cases of operators whose cases in the database are too large for differences.
EXTRA = {
    "nn.conv1d": [Case((T(2, 4, 7), T(6, 2, 3)), dict(strides=2, padding=[1, 2], groups=2))],
    "nn.conv2d": [Case((T(1, 2, 4, 5), T(2, 2, 2, 2)), dict(strides=[2, 1], dilation=[1, 2]))],
    "nn.conv3d": [
        Case((T(1, 2, 3, 3, 2), T(2, 1, 2, 2, 1)), dict(groups=2, strides=[2, 1, 2], padding=1)),
        Case((T(1, 1, 4, 3, 2), T(1, 1, 2, 2, 2)), dict(dilation=[2, 1, 1], strides=[1, 2, 1])),
    ],
    "nn.max_pool3d": [Case((T(1, 2, 4, 4, 3),), dict(pool_size=2, strides=[2, 1, 1], padding=1))],
    "nn.avg_pool3d": [
        Case((T(1, 1, 4, 5, 3),), dict(pool_size=3, strides=2, padding=1)),
        Case((T(1, 1, 4, 5, 3),), dict(pool_size=2, ceil_mode=True, count_include_pad=False)),
    ],
    "nn.adaptive_avg_pool3d": [Case((T(1, 1, 4, 5, 3),), dict(output_size=[2, 3, 1]))],
    "nn.attention": [
        Case((T(1, 3, 2, 4), T(1, 4, 1, 4), T(1, 4, 1, 3)), {}),
        Case((T(1, 3, 2, 4), T(1, 4, 2, 4), T(1, 4, 2, 3)), dict(causal_mask="BottomRight")),
    ],
    "nn.attention_bias": [
        Case((T(1, 3, 2, 4), T(1, 4, 2, 4), T(1, 4, 2, 3), T(1, 2, 3, 4)), {}),
        Case((T(1, 3, 1, 4), T(1, 4, 1, 4), T(1, 4, 1, 3), T(1, 1, 1, 4)), {}),
    ],
    "image.resize2d": [
        Case((T(1, 1, 5, 4), S((3, 7))), dict(method="cubic")),
        Case((T(1, 3, 4, 1), S((7, 2))), dict(layout="NHWC")),
    ],
}


def _extra(name):
    return [Case(tuple(map(_wide, c.params)), c.attrs, c.symbolic) for c in EXTRA.get(name, [])]


ALL = [
    (entry, case)
    for entry in ENTRIES.values()
    if entry.reference is not None
    and _has_gradient(entry.name)
    and entry.name not in ("grad.no_grad", "unique", "dequantize")
    for case in _cases(entry) + _extra(entry.name)
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


def _filled(given, values):
    """Parameters of a case with other arrays, in order, in place of its own."""
    values = iter(values)

    def fill(x):
        if isinstance(x, list):
            return [fill(v) for v in x]
        return next(values) if isinstance(x, np.ndarray) else x

    return [fill(x) for x in given]


def _sum(results, weights):
    """The loss: results of floats, weighted."""
    results = results if isinstance(results, (tuple, list)) else [results]
    return sum((r * w).sum() for r, w in zip(results, weights, strict=True) if w is not None)


def _torch_gradients(entry, case, given, flat, weights, floats):
    """PyTorch's, by the arrays of floats."""
    import torch

    from .in_torch import FLAT, function_of

    if entry.name in FLAT:
        return [np.zeros_like(flat[i]) for i in floats]
    tensors = [torch.tensor(a, requires_grad=a.dtype == "float64") for a in flat]
    # Statistics are not trained, and written in place.
    for i in NOT_TRAINED.get(entry.name, ()):
        if i < len(tensors):
            tensors[i] = tensors[i].detach()
    results = function_of(entry)(*_filled(given, tensors), **case.attrs)
    results = results if isinstance(results, (tuple, list)) else [results]
    weights = [None if w is None else torch.from_numpy(np.asarray(w)) for w in weights]
    _sum(results, weights[: len(results)]).backward()
    return [np.zeros_like(flat[i]) if tensors[i].grad is None else tensors[i].grad.numpy()
            for i in floats]  # fmt: skip


def _off(found, expected):
    """How far, relative to the largest number but at least to 1."""
    if found.size == 0:
        return 0.0
    return float(np.abs(found - expected).max() / max(1, np.abs(expected).max()))


def errors(entry, case):
    """How far the gradients are from the differences, and from PyTorch's; None where no result
    is of floats."""
    given = arrays(entry, case)
    flat = [a for a in _flat(given) if isinstance(a, np.ndarray)]

    def reference(values):
        with np.errstate(all="ignore"):
            result = entry.reference(*_filled(given, values), **case.attrs)
        return [np.asarray(r) for r in (result if isinstance(result, (tuple, list)) else [result])]

    rng = np.random.default_rng(0)
    results = reference(flat)
    weights = [rng.uniform(-1, 1, r.shape) if r.dtype == "float64" else None for r in results]
    if entry.name == "nn.batch_norm":
        weights[1:] = [None, None]  # new statistics are no part of the loss
    assert not any(r.dtype == "float32" for r in results), "the reference rounds"
    if not any(w is not None for w in weights):
        return None
    total = lambda values: _sum(reference(values), weights)
    value, gradients = Evaluator(_adjoint(entry, case, weights)).run("main_adjoint", flat)
    # Points of a grid are placed in float32.
    placed = entry.name == "image.grid_sample"
    np.testing.assert_allclose(value, total(flat), rtol=1e-4 if placed else 1e-6, atol=1e-9)
    floats = [i for i, a in enumerate(flat) if a.dtype == "float64"]
    theirs = _torch_gradients(entry, case, given, flat, weights, floats)
    trained = [
        (i, gradient, their)
        for i, gradient, their in zip(floats, gradients, theirs, strict=True)
        if i not in NOT_TRAINED.get(entry.name, ())
    ]
    numeric = max(_off(gradient, _differences(total, flat, i)) for i, gradient, _ in trained)
    return numeric, max(_off(gradient, their) for _, gradient, their in trained)


@pytest.mark.parametrize("entry, case", TESTED, ids=[f"{e.name}({c})" for e, c in TESTED])
def test_gradients(entry, case):
    found = errors(entry, case)
    if found is None:
        pytest.skip("no result of floats")
    numeric, by_torch = found
    assert numeric <= TOLERANCE
    assert by_torch <= TORCH_TOLERANCE


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
    untested = [
        entry.name
        for entry in ENTRIES.values()
        if _has_gradient(entry.name) and entry.name not in tested
        if any(_is_float(t) for case in entry.cases for t in _flat(list(case.params)))
    ]
    assert sorted(set(untested) - set(ELSEWHERE)) == []


def test_dequantized_weights():
    """The scales of integers are trained: against PyTorch."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, zero = rng.integers(-9, 9, (3, 5)).astype("int8"), rng.integers(-3, 3, 3).astype("int8")
    scale, weights = rng.uniform(0.1, 1, 3).astype("float32"), rng.normal(size=(3, 5))
    bb = relax.BlockBuilder()
    param = relax.Var("scale", relax.TensorStructInfo((3,), "float32"))
    with bb.function("main", [param]):
        with bb.dataflow():
            wide = bb.emit(op.dequantize(relax.const(x), param, relax.const(zero), axis=0))
            loss = op.sum(op.multiply(wide, relax.const(weights.astype("float32"))))
            out = bb.emit_output(loss)
        bb.emit_func_output(out)
    mod = relax.transform.Gradient("main")(bb.finalize())
    _, (got,) = Evaluator(relax.transform.LegalizeOps()(mod)).run("main_adjoint", [scale])
    s = torch.tensor(scale, requires_grad=True)
    centred = torch.tensor(x).float() - torch.tensor(zero).float()[:, None]
    (centred * s[:, None] * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(got, s.grad.numpy(), rtol=1e-5)


def test_running_products_of_zeros():
    """Division would give NaN; against PyTorch."""
    torch = pytest.importorskip("torch")
    x = np.array([[2.0, 0.0, 3.0, 4.0], [0.0, 1.0, 0.0, 5.0]])
    entry = ENTRIES["cumprod"]
    weights = np.arange(8.0).reshape(2, 4)
    mod = _adjoint(entry, Case((T(2, 4, dtype="float64"),), {"axis": 1}), [weights])
    _, (got,) = Evaluator(mod).run("main_adjoint", [x])
    t = torch.tensor(x, requires_grad=True)
    (t.cumprod(1) * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(got, t.grad.numpy())


def main():
    """A line for each operator, and why others have none."""
    worst = {}
    for entry, case in TESTED:
        found = errors(entry, case)
        if found is not None:
            cases, *before = worst.get(entry.name, (0, 0.0, 0.0))
            worst[entry.name] = (cases + 1, *map(max, before, found))
    print(f"{'operator':32}{'cases':>6}{'differences':>13}{'PyTorch':>11}")
    for name, (cases, numeric, by_torch) in sorted(worst.items()):
        print(f"{name:32}{cases:6}{numeric:13.1e}{by_torch:11.1e}")
    print(f"{len(worst)} operators; without a gradient:")
    for name, reason in WITHOUT.items():
        print(f"  {name}: {reason}")


if __name__ == "__main__":
    main()
