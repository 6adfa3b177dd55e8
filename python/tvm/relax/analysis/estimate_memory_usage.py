# SPDX-License-Identifier: Apache-2.0
"""How much memory the functions of a module allocate, before and after planning."""

import math

from tvm import relax
from tvm.ir import IRModule, Op
from tvm.relax.expr_functor import PyExprVisitor, visitor
from tvm.runtime import DataType

_GB = 1 << 30


@visitor
class _Allocations(PyExprVisitor):
    """Bytes of each kind of allocation; None where the size is not a constant."""

    def __init__(self):
        self.planned, self.unplanned = [], []
        self._tensors = {"relax.builtin.alloc_tensor", "relax.memory.alloc_tensor"}

    def visit_call_(self, op):
        name = str(op.op.name) if isinstance(op.op, Op) else ""
        if name in self._tensors:
            dims = op.struct_info.shape
            self.unplanned.append(_bytes(dims, op.struct_info.dtype))
        if name == "relax.memory.alloc_storage":
            self.planned.append(_bytes(op.args[0], "uint8"))
        elif name == "relax.builtin.alloc_tensor":
            self.planned.append(_bytes(op.struct_info.shape, op.struct_info.dtype))
        super().visit_call_(op)


def _bytes(shape, dtype):
    if not isinstance(shape, relax.ShapeExpr):
        return None
    sizes = [getattr(dim, "value", None) for dim in shape.values]
    if any(not isinstance(size, int) for size in sizes):
        return None
    dtype = DataType(str(dtype))
    return math.prod(sizes) * -(-dtype.bits * dtype.lanes // 8)


def estimate_memory_usage(mod):
    """A text: per function how many allocations there are, and how much they take."""
    if isinstance(mod, relax.Function):
        mod = IRModule({"main": mod})
    lines = ["Memory usage estimation:"]
    for var, func in mod.functions_items():
        if not isinstance(func, relax.Function):
            continue
        found = _Allocations()
        found.visit_expr(func)
        fixed = [size for size in found.unplanned if size is not None]
        planned = [size for size in found.planned if size is not None]
        lines += [
            f"- Function {var.name_hint}:",
            f" * Without memory planning, there are {len(fixed)} constant-size memory "
            f"allocation(s) with total size {sum(fixed) / _GB:.4} GB.",
        ]
        dynamic = len(found.unplanned) - len(fixed)
        if dynamic:
            lines.append(f" * There are {dynamic} dynamic-size memory allocation(s).")
        lines.append(
            f" * With memory planning, there are {len(planned)} constant-size memory "
            f"allocation(s) with total size {sum(planned) / _GB:.4} GB."
        )
        if sum(fixed):
            share = 100 * sum(planned) / sum(fixed)
            lines.append(
                f" * Memory planning reduces constant memory size to {share:.1f}% of its size."
            )
    return "\n".join(lines)
