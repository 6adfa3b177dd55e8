# SPDX-License-Identifier: Apache-2.0
"""Saving and loading dictionaries of tensors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import tvm_ffi
from tvm_ffi import core

from ._tensor import Tensor, tensor

_save = tvm_ffi.get_global_func("runtime.SaveParams")
_load = tvm_ffi.get_global_func("runtime.LoadParams")
_save_file = tvm_ffi.get_global_func("runtime.SaveParamsToFile")
_load_file = tvm_ffi.get_global_func("runtime.LoadParamsFromFile")


def _tensors(params):
    return {k: v if isinstance(v, core.Tensor) else tensor(v) for k, v in params.items()}


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """A dictionary of names to tensors (or arrays) as bytes."""
    return bytearray(_save(_tensors(params)))


def save_param_dict_to_file(params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """A dictionary of names to tensors (or arrays) into a file, which appears whole or not at
    all."""
    _save_file(_tensors(params), os.fspath(path))


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, Tensor]:
    """The dictionary of save_param_dict; raises ValueError for anything else."""
    return {str(k): v for k, v in _load(bytes(param_bytes)).items()}


def load_param_dict_from_file(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The dictionary of save_param_dict_to_file; raises ValueError for anything else."""
    return {str(k): v for k, v in _load_file(os.fspath(path)).items()}
