# SPDX-License-Identifier: Apache-2.0
"""The tests of the onnx package: models of one operator or its expansion, and of several, with
results."""

import functools
import pathlib
import re
import warnings

import numpy as np
import onnx
import tvm
from onnx.backend.test.loader import load_model_tests
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

# Why a case cannot pass: the first pattern that matches shapes/name counts.
REASONS = [
    (r"image_decoder", "decoders of image files"),
    (r"static/.*affine_grid_3d_align_corners_expanded", "branches of different rank in a function"),
    (r"^(symbolic|unknown)/.*affine_grid_\w+_expanded", "a rank that only running tells"),
    (r"dft_inverse", "results below the rounding of the reference"),
]
# These pass or not as the machine sums up: in half precision the reference rounds after every step,
# and the tolerance is less than that.
CLOSE = re.compile(r"attention_4d\w*_fp16")
# The values of these are random: their types, shapes and what is certain of them are compared.
RANDOM = re.compile(r"bernoulli|training_dropout_(default|mask)|training_dropout$")
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
SHAPES = ("static", "symbolic", "unknown")


@functools.cache
def cases():
    """Name -> case: node tests, and under the names of their kinds the models of the package."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, from making the references
        for kind in KINDS:
            for case in load_model_tests(kind=kind):
                found[case.name if kind == "node" else f"{kind}/{case.name}"] = case
    return found


def _read(path, kind):
    """A value of a file of test data: the field of its type says what it is."""
    proto = {
        "sequence_type": onnx.SequenceProto,
        "optional_type": onnx.OptionalProto,
    }.get(kind.WhichOneof("value"), onnx.TensorProto)()
    proto.ParseFromString(path.read_bytes())
    if isinstance(proto, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(proto)
    if isinstance(proto, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(proto)
    return onnx.numpy_helper.to_array(proto)


def _files(folder, name, infos):
    paths = (folder / f"{name}_{i}.pb" for i in range(len(infos)))
    return [_read(p, info.type) for p, info in zip(paths, infos, strict=True) if p.exists()]


def model_and_data(case):
    """The model of a case and pairs of inputs and outputs, which may lie in files."""
    if case.model is not None:
        return case.model, case.data_sets
    if case.model_dir is not None:
        folder = pathlib.Path(case.model_dir)
        model = onnx.load(folder / "model.onnx")
        given = sorted(folder.glob("test_data_set_*"))
        graph = model.graph
        weights = {w.name for w in graph.initializer}
        inputs = [i for i in graph.input if i.name not in weights]
        return model, [
            (_files(f, "input", inputs), _files(f, "output", graph.output)) for f in given
        ]
    # Networks without weights of their own; their input is a ramp.
    path = pathlib.Path(onnx.__file__).parents[1] / case.url
    model = onnx.load(path)
    weights = {w.name for w in model.graph.initializer}
    (image,) = (i for i in model.graph.input if i.name not in weights)
    shape = [d.dim_value for d in image.type.tensor_type.shape.dim]
    ramp = (np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)).astype("float32")
    outputs = [path.with_name(f"{path.stem}_output_{i}.pb") for i in range(len(model.graph.output))]
    infos = [info.type for info in model.graph.output]
    return model, [([ramp], [_read(p, t) for p, t in zip(outputs, infos, strict=True)])]


def operator_of(case):
    """The operator that a case is about; of an expansion it is only known by name."""
    return case.model.graph.node[0].op_type


def reason(shapes, name):
    """Why the case is expected to fail with such shapes, or None."""
    full = f"{shapes}/{name}"
    return next((text for pattern, text in REASONS if re.search(pattern, full)), None)


def is_expected(shapes, name, said):
    """Whether what `complaint` said is right."""
    return (said is None) == (reason(shapes, name) is None) or bool(CLOSE.search(name))


def with_shapes(model, shapes):
    """The model with inputs of which the file does not say the sizes: they have names, the same for
    the same size, or none. What it declares of other values goes with them."""
    if shapes == "static":
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    weights = {w.name for w in graph.initializer}
    del graph.value_info[:]
    for info in [*graph.input, *graph.output]:
        kind = info.type
        while kind.WhichOneof("value") in ("sequence_type", "optional_type"):
            kind = getattr(kind, kind.WhichOneof("value")).elem_type
        if info.name in weights or not kind.HasField("tensor_type"):
            continue
        for dim in kind.tensor_type.shape.dim:
            size = dim.dim_value
            is_fixed = dim.HasField("dim_value")
            dim.Clear()
            if is_fixed and shapes == "symbolic":
                dim.dim_param = f"d{size}"
    return changed


def _array(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _argument(value):
    """A tensor, a list of them, or None."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_argument(item) for item in value]
    return tvm.runtime.tensor(np.asarray(_array(value)))


def _flat(value):
    if isinstance(value, (tvm.runtime.Tensor, tvm.runtime.StringTensor)):
        return value.numpy()
    return value if value is None else [_flat(item) for item in value]


def _compare(got, expected, case):
    if expected is None:
        assert got is None, f"{got} instead of None"
        return
    if isinstance(expected, list):
        assert len(got) == len(expected), f"{len(got)} elements instead of {len(expected)}"
        for a, b in zip(got, expected, strict=True):
            _compare(a, b, case)
        return
    expected = np.asarray(_array(expected))
    if expected.dtype.kind in "US":
        expected = expected.astype(object)
    assert got.dtype == expected.dtype, f"{got.dtype} instead of {expected.dtype}"
    assert got.shape == expected.shape, f"{got.shape} instead of {expected.shape}"
    if RANDOM.search(case.name):
        _compare_random(got, expected)
    elif got.dtype.kind in "biuO":
        np.testing.assert_array_equal(got, expected)
    else:  # ml_dtypes' as well
        wide = (a.astype("float64") for a in (got, expected))
        # Two units in the last place, as the package's own runner has it.
        rtol = max(case.rtol, 2**-6) if got.dtype.name == "bfloat16" else case.rtol
        np.testing.assert_allclose(*wide, rtol=rtol, atol=case.atol)


def _compare_random(got, expected):
    """Ones and zeros, or elements that are either 0 or as large as the reference's."""
    if got.dtype.kind == "f" and set(np.unique(got)) - {0.0, 1.0}:
        both = (got != 0) & (expected != 0)
        np.testing.assert_allclose(got[both], expected[both], rtol=1e-6)
    else:
        assert set(np.unique(got)) <= {0, 1}


def run(case, shapes):
    """Imports, compiles and runs the case; raises when a result is wrong."""
    model, data_sets = model_and_data(case)
    model = with_shapes(model, shapes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mod = from_onnx(model)
    vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    for inputs, outputs in data_sets:
        results = _flat(vm["main"](*map(_argument, inputs)))
        if len(model.graph.output) == 1:
            results = [results]
        for got, expected in zip(results, outputs, strict=True):
            _compare(got, expected, case)


def complaint(case, shapes="static"):
    """What is wrong with the case, or None."""
    try:
        run(case, shapes)
    except Exception as error:
        text = " ".join(str(error).split())
        return f"{type(error).__name__}: {text[:200]}"
    return None
