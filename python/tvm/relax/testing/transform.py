# SPDX-License-Identifier: Apache-2.0
"""Passes and analyses for tests."""

import tvm_ffi

from tvm._derive import fill
from tvm.ir.transform import Pass  # noqa: F401 (what makes passes callable)

__getattr__, __dir__ = fill(__name__)


def _analysis(name):
    return tvm_ffi.get_global_func("relax.testing.transform._dataflow_" + name)


def dataflow_liveness_analysis(block):
    """From the binding to the last use of each variable: -1 is outside, before the block, the
    number of bindings outside, behind it."""
    ranges = _analysis("liveness_analysis")(block)
    return {var: tuple(span) for var, span in ranges.items()}


def dataflow_alias_analysis(block, inputs):
    """The places in memory where each variable may be (-1: anywhere), and the places of the fields
    of each tuple."""
    places, tuples = _analysis("alias_analysis")(block, inputs)
    return (
        {var: set(at) for var, at in places.items()},
        {tuple_: [set(field) for field in fields] for tuple_, fields in tuples.items()},
    )


def dataflow_inplace_analysis(block, inputs, mod):
    """Bindings that may overwrite an argument, with the indices of those arguments: of at least the
    size of the result, and of its very shape. `mod` has no effect: calls say what they do."""
    found = _analysis("inplace_analysis")(block, inputs)
    return tuple([(row[0], set(row[1:])) for row in rows] for rows in found)


def dataflow_single_inplace_call(mod, call, inplace_indices):
    """The call of an operator with results that overwrite arguments (-1: that do not), and the
    module with its kernel."""
    call, mod = _analysis("single_inplace_call")(mod, call, inplace_indices)
    return call, mod
