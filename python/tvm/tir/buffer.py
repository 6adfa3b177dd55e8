# SPDX-License-Identifier: Apache-2.0
"""Buffers."""

import tvm_ffi

from tvm._derive import Node, construct, fill, register_node
from tvm.ir import PointerType, PrimType, Range
from tvm.ir.expr import IntImm, PrimExpr

from .expr import Var

_tir, _ = fill("tvm.tir")


def elements(sequence, name, shape):
    """Iterates over the first dimension. (Indexing alone would go on for ever: an index beyond the
    end is an expression, too.)"""
    if not len(shape) or not isinstance(shape[0], IntImm):
        got = str(shape[0]) if len(shape) else "none"
        raise TypeError(
            f"{name}: expected a first dimension of constant size to iterate, got {got}"
        )
    return (sequence[i] for i in range(int(shape[0])))


@register_node("tir.DataProducer")
class DataProducer(Node):
    pass


@register_node("tir.Buffer")
class Buffer(Node):
    READ = 1
    WRITE = 2
    __hash__ = tvm_ffi.Object.__hash__

    def __init__(
        self,
        data,
        dtype,
        shape,
        strides,
        elem_offset,
        name,
        data_alignment=0,
        offset_factor=0,
        buffer_type=1,
        axis_separators=None,
        span=None,
    ):
        construct(
            self, data, dtype, shape, strides, axis_separators or [], elem_offset, name,
            data_alignment, offset_factor, buffer_type, span,
        )  # fmt: skip

    def access_ptr(self, access_mask, ptr_type="handle", content_lanes=1, offset=0, extent=None):
        """A pointer for a call: what is accessed ("r", "w", "rw"), where and how much.

        `ptr_type` is the type of the pointer, `content_lanes` of what it points to."""
        from . import op

        if isinstance(access_mask, str):
            bits = {"r": Buffer.READ, "w": Buffer.WRITE}
            unknown = set(access_mask) - set(bits)
            if unknown:
                raise ValueError(
                    f"access_ptr: expected 'r' and 'w' in the mask, got '{access_mask}'"
                )
            access_mask = sum(bits[c] for c in set(access_mask))
        offset = _tir("const")(offset, "int32") if isinstance(offset, int) else offset
        total = self.strides[0] * self.shape[0] if len(self.strides) else _product(self.shape)
        extent = total - offset if extent is None else extent
        elem_offset, dtype = self.elem_offset + offset, str(self.dtype)
        if content_lanes > 1:
            dtype = f"{dtype}x{content_lanes}"
            extent, elem_offset = extent // content_lanes, elem_offset // content_lanes
        ptype = op.type_annotation(dtype)
        return op.call_intrin(
            ptr_type, "tir.tvm_access_ptr", ptype, self.data, elem_offset, extent, access_mask
        )

    def vload(self, begin, dtype=None, predicate=None):
        """The elements from `begin` on, as many as the vector type `dtype` has."""
        return _tir("BufferLoad")(self, self._vector_index(begin, dtype or self.dtype), predicate)

    def vstore(self, begin, value, predicate=None):
        """Stores a vector from `begin` on."""
        value = _tir("const")(value)
        return _tir("BufferStore")(self, value, self._vector_index(begin, value.dtype), predicate)

    def _vector_index(self, begin, dtype):
        begin = list(begin) if isinstance(begin, (list, tuple)) else [begin]
        lanes = tvm_ffi.dtype(dtype).lanes // max(1, tvm_ffi.dtype(self.dtype).lanes)
        is_vector = isinstance(begin[-1], PrimExpr) and tvm_ffi.dtype(begin[-1].dtype).lanes != 1
        if lanes > 1 and not is_vector:
            begin[-1] = _tir("Ramp")(begin[-1], 1, lanes)
        return begin

    def __getitem__(self, indices):
        """An element, or a region where an index is a slice."""
        indices = list(indices) if isinstance(indices, (list, tuple)) else [indices]
        if len(indices) != len(self.shape):
            raise ValueError(
                f"Buffer: expected {len(self.shape)} indices for {self.name}, got {len(indices)}"
            )
        if not any(isinstance(i, slice) for i in indices):
            return _tir("BufferLoad")(self, indices)
        if any(isinstance(i, slice) and i.step not in (None, 1) for i in indices):
            if not all(isinstance(i, slice) is False or i is indices[-1] for i in indices):
                raise ValueError("Buffer: expected a slice with a step only as the last index")
            s = indices[-1]
            start = 0 if s.start is None else s.start
            stop = self.shape[-1] if s.stop is None else s.stop
            lanes = (stop - start + s.step - 1) // s.step
            return _tir("BufferLoad")(
                self, [*indices[:-1], _tir("Ramp")(start, s.step, int(lanes))]
            )
        region = []
        for i, extent in zip(indices, self.shape, strict=True):
            if isinstance(i, slice):
                start = 0 if i.start is None else i.start
                region.append(Range(start, extent if i.stop is None else i.stop))
            else:
                one = 1 if isinstance(i, int) else _tir("const")(1, i.dtype)
                region.append(Range.from_min_extent(i, one))
        return _tir("BufferRegion")(self, region)

    def __iter__(self):
        return elements(self, self.name, self.shape)


def _product(values):
    result = values[0] if len(values) else 1
    for value in values[1:]:
        result = result * value
    return result


def decl_buffer(
    shape,
    dtype=None,
    name="buffer",
    data=None,
    strides=None,
    elem_offset=None,
    scope="",
    data_alignment=-1,
    offset_factor=0,
    buffer_type="",
    axis_separators=None,
    span=None,
):
    """A buffer; its data pointer is made from name, type and scope unless given."""
    shape = list(shape) if isinstance(shape, (list, tuple, tvm_ffi.Array)) else [shape]
    dtype = "float32" if dtype is None else str(dtype)
    index_dtype = next((e.dtype for e in shape if isinstance(e, PrimExpr)), "int32")
    if offset_factor != 0 and elem_offset is None:
        elem_offset = Var(f"{name}_elem_offset", index_dtype)
    if elem_offset is None:
        elem_offset = _tir("const")(0, index_dtype)
    if data is None:
        data = Var(name, PointerType(PrimType(dtype), scope), span)
    kinds = {"": 1, "default": 1, "auto_broadcast": 2}
    if buffer_type not in kinds:
        raise ValueError(
            f"decl_buffer: expected a buffer_type of {list(kinds)}, got '{buffer_type}'"
        )
    return Buffer(
        data, dtype, shape, strides or [], elem_offset, name, data_alignment, offset_factor,
        kinds[buffer_type], [_tir("const")(a, "int32") for a in axis_separators or []], span,
    )  # fmt: skip
