# SPDX-License-Identifier: Apache-2.0
"""`if i == 0` inside te.compute.

Elsewhere `a == b` has a truth as a Python bool, identity, so that expressions can be keys of a
dict. In the function of te.compute a branch on it would silently take one side for all elements.
"""

import contextlib
import dis
import sys
import threading

from tvm.ir.expr import ExprOp, _DeferredCompare

_local = threading.local()


def _is_branch(frame):
    """Whether the frame is at `if`, `and`, `or`, `not`, and not at `x in list` or a look-up."""
    name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return "JUMP" in name or name in ("UNARY_NOT", "TO_BOOL")


def _check(comparison):
    from .tensor import _op

    axis = getattr(_local, "axis", None)
    if axis is None or not _is_branch(sys._getframe(2)):
        return
    if _op.is_per_element(comparison.asobject(), axis):
        ExprOp.__bool__(comparison)


_DeferredCompare.check_truth = staticmethod(_check)


@contextlib.contextmanager
def inside(axis):
    """While the function of a te.compute with these axes runs."""
    outer, _local.axis = getattr(_local, "axis", None), axis
    try:
        yield
    finally:
        _local.axis = outer
