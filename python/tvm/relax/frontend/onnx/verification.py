# SPDX-License-Identifier: Apache-2.0
"""Compares an ONNX model with ONNX Runtime, and names the first value that differs."""

import os
import pathlib
import tempfile
import warnings

import numpy as np

import tvm
from tvm import relax

from ..comparison import Verification, arrays, difference
from .onnx_frontend import from_onnx


def _peer():
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            f"verify: expected onnx and onnxruntime to be installed: {error}"
        ) from error
    return onnx, onnxruntime


def _random_inputs(onnx, model, shape_dict, seed):
    """Numbers for the declared shapes; dimensions that have names or none are 2."""
    rng = np.random.default_rng(seed)
    weights = {w.name for w in model.graph.initializer}
    inputs = {}
    for info in model.graph.input:
        if info.name in weights:
            continue
        kind = info.type.tensor_type
        if info.type.WhichOneof("value") != "tensor_type" or not kind.HasField("shape"):
            raise ValueError(
                f"verify: input '{info.name}': expected a tensor of a known rank, got another one; "
                "give its value in inputs"
            )
        shape = [d.dim_value if d.HasField("dim_value") else 2 for d in kind.shape.dim]
        shape = list((shape_dict or {}).get(info.name, shape))
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        if dtype.kind == "O":
            inputs[info.name] = np.full(shape, "text", dtype=object)
        elif dtype.kind == "b":
            inputs[info.name] = rng.random(shape) < 0.5
        elif dtype.kind in "iu":
            inputs[info.name] = rng.integers(0, 4, shape).astype(dtype)
        else:
            inputs[info.name] = rng.standard_normal(shape).astype(dtype)
    return inputs


def _compare(session, path, names, nodes, inputs, shape_dict, target):
    """Differences of the named values, in order."""
    expected = session.run(names, inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # inputs that get other names
        mod = from_onnx(path, shape_dict=shape_dict)
    vm = relax.VirtualMachine(tvm.compile(mod, target=target), tvm.cpu())
    got = arrays(vm["main"](*(tvm.runtime.tensor(value) for value in inputs.values())))
    found = zip(names, got, expected, strict=True)
    return [difference(name, nodes.get(name, ""), a, b) for name, a, b in found]


def _session(onnxruntime, path):
    options = onnxruntime.SessionOptions()
    # Values inside are compared: none may be optimised away.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def verify(model, inputs=None, shape_dict=None, tolerance=1e-4, target="llvm", seed=0):
    """Runs a model (a path) here and by ONNX Runtime, and compares.

    `inputs` are arrays by name; without them they are random, of the declared shapes or those of
    `shape_dict`. When an output differs by more than `tolerance`, all values of the graph are
    compared, and the first in the order of the nodes that differs is named.
    """
    onnx, onnxruntime = _peer()
    path = os.fspath(model)
    proto = onnx.load(path, load_external_data=False)
    if inputs is None:
        inputs = _random_inputs(onnx, proto, shape_dict, seed)
    outputs = [o.name for o in proto.graph.output]
    result = Verification(
        tolerance,
        _compare(_session(onnxruntime, path), path, outputs, {}, inputs, shape_dict, target),
    )
    if result.agrees:
        return result
    nodes = {
        name: f"'{node.name}' ({node.op_type})" for node in proto.graph.node for name in node.output
    }
    names = [name for name in nodes if name and name not in outputs]
    # Beside the original, where external data lies; outputs need no declared type.
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    folder = pathlib.Path(path).resolve().parent
    with tempfile.NamedTemporaryFile(suffix=".onnx", dir=folder) as whole:
        whole.write(proto.SerializeToString())
        whole.flush()
        session = _session(onnxruntime, whole.name)
        order = [name for name in nodes if name]
        given = [o.name for o in proto.graph.output]
        found = _compare(session, whole.name, given, nodes, inputs, shape_dict, target)
    found.sort(key=lambda d: order.index(d.name) if d.name in order else -1)
    result.first = next((d for d in found if d.error > tolerance), None)
    return result
