# SPDX-License-Identifier: Apache-2.0
"""Helpers for writing operators: constants, shapes, indices."""

import functools
import operator
import re

from tvm import arith, te, tir
from tvm.ir import FloatImm, IntImm


class InvalidShapeError(ValueError):
    """A shape that an operator cannot work with."""


def simplify(expr):
    """A simpler expression with the same value; numbers stay numbers."""
    return arith.Analyzer().simplify(expr) if isinstance(expr, tir.PrimExpr) else expr


def _constant(expr, node, kind):
    if isinstance(expr, kind):
        return expr
    value = simplify(expr)
    if not isinstance(value, node):
        raise ValueError(f"expected a constant {kind.__name__}, got {expr}")
    return kind(value.value)


def get_const_int(expr):
    """The integer that an expression is."""
    return _constant(expr, IntImm, int)


def get_const_float(expr):
    """The float that an expression is."""
    return _constant(expr, FloatImm, float)


def equal_const_int(expr, value):
    """Whether an expression is this constant."""
    expr = simplify(expr)
    return (expr.value if isinstance(expr, IntImm) else expr) == value


def get_const_tuple(in_tuple):
    """Constants as integers; variables and what contains them stay."""
    values = (simplify(e) for e in in_tuple)
    return tuple(v.value if isinstance(v, IntImm) else v for v in values)


def get_float_tuple(in_tuple):
    """Constants as floats."""
    return tuple(get_const_float(e) for e in in_tuple)


def prod(x):
    """The product of a shape; 1 for none."""
    x = list(x)
    return functools.reduce(operator.mul, x) if x else tir.const(1, "int32")


def is_empty_shape(shape):
    """Whether a dimension is 0."""
    return any(equal_const_int(extent, 0) for extent in shape)


def is_dynamic_shape(shape):
    """Whether a dimension is not known."""
    return any(not isinstance(simplify(extent), (IntImm, int)) for extent in shape)


def ceil_div(a, b):
    """The quotient rounded up."""
    return tir.indexdiv(a + b - 1, b)


def swap(arr, axis):
    """The list with its last entry and the one at `axis` exchanged."""
    arr = list(arr)
    arr[axis], arr[-1] = arr[-1], arr[axis]
    return arr


def ravel_index(indices, shape):
    """The place of an element in row-major order."""
    flat = 0
    for index, extent in zip(indices, shape, strict=True):
        flat = flat * extent + index
    return flat


def unravel_index(idx, shape):
    """The indices of a place in row-major order."""
    indices = []
    for i in reversed(range(len(shape))):
        indices.append(idx if i == 0 else tir.indexmod(idx, shape[i]))
        idx = tir.indexdiv(idx, shape[i])
    return indices[::-1]


def within_index(b, e, s, i):
    """Whether place `i` is in the range b:e:s."""
    bounds = tir.Select(s < 0, tir.all(i <= b, i > e), tir.all(i >= b, i < e))
    return tir.all(bounds, tir.floormod(i - b, s) == 0)


def make_idx(b, e, s, z, i):
    """The number of place `i` in the range b:e:s of a dimension of size z; z - 1 outside."""
    return tir.if_then_else(within_index(b, e, s, i), tir.floordiv(i - b, s), z - 1)


def const_vector(vector, name="const_vector"):
    """A tensor of given numbers."""
    dtype = str(vector.dtype)

    def element(i):
        value = tir.const(vector[-1], dtype)
        for k in reversed(range(vector.shape[0] - 1)):
            value = tir.Select(i == k, tir.const(vector[k], dtype), value)
        return value

    return te.compute(vector.shape, element, name)


def const_matrix(matrix, name="const_matrix", attrs=None):
    """A tensor of given numbers."""
    rows, columns = matrix.shape
    dtype = str(matrix.dtype)

    def element(i, j):
        value = tir.const(matrix[-1, -1], dtype)
        for k in reversed(range(rows * columns - 1)):
            here = tir.all(i == k // columns, j == k % columns)
            value = tir.Select(here, tir.const(matrix[k // columns, k % columns], dtype), value)
        return value

    return te.compute(matrix.shape, element, name, attrs=attrs)


def get_max_power2_factor(n, max_value=None):
    """The largest power of two that divides n, at most max_value."""
    factor = 1
    while n > 0 and n % (factor * 2) == 0 and (max_value is None or factor * 2 <= max_value):
        factor *= 2
    return factor


def _layout_is(layout, axes, blocks):
    """Whether a layout has these axes, followed by blocks such as "16n8c"."""
    block = "".join(f"[0-9]+{letter}" for letter in blocks)
    return re.fullmatch(f"{axes}{block}", layout) is not None


def ncw_pack_layout(layout_info):
    """Whether batch and channels are in blocks: NCW16n4c."""
    return _layout_is(layout_info, "NCW", "nc")


def ncw_xc_layout(layout_info):
    """Whether channels alone are in blocks: NCW4c."""
    return _layout_is(layout_info, "NCW", "c")


def nchw_pack_layout(layout_info):
    """Whether batch and channels are in blocks: NCHW16n4c."""
    return _layout_is(layout_info, "NCHW", "nc")


def nchw_xc_layout(layout_info):
    """Whether channels alone are in blocks: NCHW4c."""
    return _layout_is(layout_info, "NCHW", "c")


def binary_search(ib, sequence_offset, search_range, sorted_sequence, value, right, out_dtype):
    """Emits, with a `tir.ir_builder`, the search for where a value belongs in `search_range` sorted
    elements from `sequence_offset` on; the place, behind what is equal if `right`."""
    low = ib.allocate(out_dtype, (1,), name="low", scope="local")
    high = ib.allocate(out_dtype, (1,), name="high", scope="local")
    low[0], high[0] = tir.const(0, out_dtype), tir.Cast(out_dtype, search_range)
    with ib.while_loop(low[0] < high[0]):
        middle = tir.indexdiv(low[0] + high[0], 2)
        found = sorted_sequence[sequence_offset + middle]
        with ib.if_scope(value >= found if right else value > found):
            low[0] = middle + 1
        with ib.else_scope():
            high[0] = middle
    return low[0]


def get_shape(src_shape, src_layout, dst_layout):
    """A shape in another layout of the same axes."""
    if src_layout == dst_layout:
        return get_const_tuple(src_shape)
    layouts = tir.bijective_layout(src_layout, dst_layout)
    return get_const_tuple(layouts.forward_shape(list(src_shape)))


def is_target(names):
    """Whether the current target is of one of these kinds, or has one of these keys."""
    from tvm.target import Target

    names = [names] if isinstance(names, str) else names
    target = Target.current(allow_none=True)
    return target is not None and any(name in target.keys for name in names)


def traverse_inline(s, final_op, callback):
    """Calls `callback` on the operations from `final_op` back, inputs first. `s` has no effect:
    operations are inlined in TIR."""
    seen = set()

    def walk(op):
        if op in seen:
            return
        seen.add(op)
        for tensor in op.input_tensors:
            walk(tensor.op)
        callback(op)

    walk(final_op)
