# SPDX-License-Identifier: Apache-2.0
"""The door to the importer of ONNX models."""

import os
import warnings
from collections.abc import Iterable, Mapping

import numpy as np
import tvm_ffi

_from_onnx, _inspect = (
    tvm_ffi.get_global_func(f"relax.frontend.onnx.{name}") for name in ("_from_onnx", "_inspect")
)


def _source(model, caller):
    """The path or the bytes of a model."""
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    elif isinstance(model, os.PathLike):
        model = os.fspath(model)
    elif isinstance(model, (bytearray, memoryview)):
        model = bytes(model)
    if not isinstance(model, (str, bytes)):
        raise TypeError(
            f"{caller}: expected a ModelProto, a path or bytes, got {type(model).__name__}"
        )
    return model


def _shape(name, given):
    """The dimensions that shape_dict gives for an input."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(
            f"from_onnx: shape of '{name}': expected a list of dimensions, got {given!r}"
        )
    return list(given)


def _dtype(name, given):
    """The type that dtype_dict gives for an input: a name, or a type of NumPy."""
    try:
        return tvm_ffi.dtype(np.dtype(given) if isinstance(given, type) else given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"from_onnx: type of '{name}': {error}") from None


def inspect(model):
    """Inputs, outputs, weights and operators of an ONNX model as text, with what is not
    supported."""
    return str(_inspect(_source(model, "inspect")))


def from_onnx(
    model,
    shape_dict=None,
    dtype_dict="float32",
    opset=None,
    keep_params_in_input=False,
    sanitize_input_names=True,
    *,
    memory_limit=None,
):
    """The module whose `main` computes an ONNX model.

    `model` is a path, the bytes of a model or a ModelProto. `shape_dict` gives shapes of inputs by
    name, of numbers, expressions or names of dimensions; `dtype_dict`, where it is a dict, their
    types. `opset` counts instead of the model's own. With `keep_params_in_input` the weights are
    parameters behind the inputs, and `detach_params` gives their values. `memory_limit` is
    about how many bytes the import may take beyond the file, 4 GiB by default; MemoryError for
    more.
    """
    model = _source(model, "from_onnx")
    if not isinstance(shape_dict, (Mapping, type(None))):
        raise TypeError(
            f"from_onnx: expected shape_dict as a dict of names and shapes, got {shape_dict!r}"
        )
    shapes = {name: _shape(name, shape) for name, shape in (shape_dict or {}).items()}
    dtypes = dtype_dict if isinstance(dtype_dict, Mapping) else {}
    dtypes = {name: _dtype(name, dtype) for name, dtype in dtypes.items()}
    mod, complaints = _from_onnx(
        model, shapes, dtypes, opset, keep_params_in_input, sanitize_input_names, memory_limit
    )
    for text in complaints:
        warnings.warn(f"from_onnx: {text}", stacklevel=2)
    return mod
