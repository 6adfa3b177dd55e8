# SPDX-License-Identifier: Apache-2.0
"""Building TIR. Types derive from their names, operators and nodes from `tvm.tir`."""

import functools
import inspect

from tvm import tir as _tir

from . import frame as frame
from . import ir, types
from .external_kernel import call_kernel as call_kernel
from .frame import *  # noqa: F403
from .ir import *  # noqa: F403
from .ir import as_exprs, call
from .old_block import bind, opaque_axis, reduce_axis, scan_axis

Call = call
Buffer = ir.buffer
# Newer spellings of the same things.
sblock, sblock_attr, sblock_alloc_buffer = ir.block, ir.block_attr, ir.alloc_buffer
alloc_sblock_buffer = ir.alloc_buffer

_ALIASES = {
    "fabs": "abs",
    "broadcast": "Broadcast",
    "ramp": "Ramp",
    "tvm_call_packed": "call_packed",
    "tvm_call_cpacked": "call_cpacked",
    "tvm_call_packed_lowered": "call_packed_lowered",
    "tvm_call_cpacked_lowered": "call_cpacked_lowered",
}


def _with_expressions(function):
    """Slices of buffers among the arguments are vector loads. Every operator takes `dtype=`: one
    whose type is its first parameter has that type, the others know theirs."""
    params = list(inspect.signature(function).parameters)
    is_first = params[:1] == ["dtype"]

    @functools.wraps(function)
    def call(*args, **kwargs):
        if "dtype" in kwargs and (is_first or "dtype" not in params):
            dtype = kwargs.pop("dtype")
            args = (dtype, *args) if is_first else args
        kwargs = {k: as_exprs(v) for k, v in kwargs.items()}
        return function(
            *[str(a) if isinstance(a, types.DType) else as_exprs(a) for a in args], **kwargs
        )

    return call


def __getattr__(name):
    value = types.dtype(name) if name[:1] != "_" else None
    if value is None and name == "dtype":
        value = types.dtype_value
    if value is None and name in ("Range", "IntImm", "FloatImm"):
        from tvm import ir as _ir

        value = _ir.Range if name == "Range" else getattr(_tir, name)
    if value is None and name == "llvm_lookup_intrinsic_id":
        from tvm.target.codegen import llvm_lookup_intrinsic_id as value
    if value is None and name[:1] != "_":
        value = getattr(_tir, _ALIASES.get(name, name), None)
        if inspect.isfunction(value):
            value = _with_expressions(value)
        elif not isinstance(value, type):
            value = None
    if value is None:
        from tvm.script.parser.core.error import did_you_mean

        hint = did_you_mean(name, __dir__())
        raise AttributeError(f"T: expected a name of TVMScript, got '{name}'{hint}")
    globals()[name] = value
    return value


def __dir__():
    own = [n for n in globals() if n[0] != "_"]
    derived = [
        n for n in dir(_tir) if n[0] != "_" and n not in ("analysis", "transform", "schedule")
    ]
    return sorted(
        {*own, *derived, *types.NAMES, *_ALIASES, "Range", "dtype", "llvm_lookup_intrinsic_id"}
    )
