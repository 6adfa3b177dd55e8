# SPDX-License-Identifier: Apache-2.0
"""Tensors and operations with Python behaviour."""

import tvm_ffi

from tvm._derive import Node, register_node
from tvm.ir import structural_equal
from tvm.ir.expr import EqualOp, ExprOp, IntImm, NotEqualOp, _Functions
from tvm.tir.buffer import DataProducer, elements

from . import _location

__all__ = [
    "BaseComputeOp",
    "ComputeOp",
    "ExternOp",
    "Operation",
    "PlaceholderOp",
    "ScanOp",
    "Tensor",
    "TensorSlice",
]

_op = _Functions("te._op.")


class TensorSlice(tvm_ffi.core.ObjectConvertible, ExprOp):
    """A tensor with its first indices given: an expression once all are."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor, indices):
        self.tensor = tensor
        self.indices = tuple(indices) if isinstance(indices, (tuple, list)) else (indices,)

    def __getitem__(self, indices):
        indices = indices if isinstance(indices, (tuple, list)) else (indices,)
        return self.tensor[(*self.indices, *indices)]

    def __iter__(self):
        return elements(self, self.tensor.name, self.tensor.shape[len(self.indices) :])

    def asobject(self):
        """The element."""
        return _op.load(self.tensor, self.indices)

    @property
    def dtype(self):
        return self.tensor.dtype

    def __repr__(self):
        return f"{self.tensor.name}[{', '.join(map(str, self.indices))}]"

    __hash__ = object.__hash__


@register_node("te.Operation")
class Operation(Node):
    @property
    def num_outputs(self):
        return _op.num_outputs(self)

    @property
    def input_tensors(self):
        """The tensors it reads, each once, in the order of their first use."""
        return _op.input_tensors(self)


@register_node("te.PlaceholderOp")
class PlaceholderOp(Operation):
    pass


@register_node("te.BaseComputeOp")
class BaseComputeOp(Operation):
    pass


@register_node("te.ComputeOp")
class ComputeOp(BaseComputeOp):
    pass


@register_node("te.ScanOp")
class ScanOp(Operation):
    pass


@register_node("te.ExternOp")
class ExternOp(Operation):
    pass


@register_node("te.Tensor")
class Tensor(DataProducer, ExprOp):
    """An element is `A[i, j]` or `A(i, j)`; operators work element by element and broadcast."""

    def __call__(self, *indices):
        return _op.load(self, indices)

    def __getitem__(self, indices):
        indices = indices if isinstance(indices, (tuple, list)) else (indices,)
        for index in indices:
            if isinstance(index, slice) or index is Ellipsis:
                raise TypeError(
                    f"{self.name}: expected an index of one element, got a range; "
                    "write te.compute(shape, lambda i: ...) over the part you want"
                )
        if len(indices) < self.ndim:
            return TensorSlice(self, indices)
        return _op.load(self, indices)

    def __iter__(self):
        return elements(self, self.name, self.shape)

    def __hash__(self):
        return hash((self.op, self.value_index))

    def __eq__(self, other):
        if isinstance(other, Tensor):
            return _op.same(self, other)
        return EqualOp(self, other) if isinstance(other, ExprOp) else False

    def __ne__(self, other):
        equal = self.__eq__(other)
        return NotEqualOp(self, other) if isinstance(equal, EqualOp) else not equal

    def __bool__(self):
        return True  # an object like any other: `if bias:` asks whether there is one

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def name(self):
        return str(_op.name(self))

    def astype(self, dtype, span=None):
        """The tensor with its elements in another type."""
        return _elementwise("astype", lambda x: x.astype(dtype, span), self)


def _is_one(extent):
    return isinstance(extent, IntImm) and extent.value == 1


def _broadcast(name, tensors):
    """The common shape: dimensions are aligned at the end, one of size 1 repeats."""
    shape = []
    for d in range(max(t.ndim for t in tensors), 0, -1):
        extents = [t.shape[t.ndim - d] for t in tensors if t.ndim >= d]
        wide = [e for e in extents if not _is_one(e)] or extents
        if not all(structural_equal(wide[0], e) for e in wide[1:]):
            shapes = " and ".join(f"{t.name} ({', '.join(map(str, t.shape))})" for t in tensors)
            raise ValueError(f"{name}: expected shapes that broadcast, got {shapes}")
        shape.append(wide[0])
    return shape


def _elementwise(name, op, *operands):
    """`op` on the elements of the operands, which are tensors and scalars."""
    from .operation import compute

    tensors = [x for x in operands if isinstance(x, Tensor)]
    shape = _broadcast(name, tensors)

    def element(x, indices):
        if not isinstance(x, Tensor):
            return x
        indices = indices[len(indices) - x.ndim :]
        return x(*(0 if _is_one(e) else i for i, e in zip(indices, x.shape, strict=True)))

    return compute(shape, lambda *i: op(*(element(x, i) for x in operands)), name=name)


def _operator(name):
    op = getattr(ExprOp, name)

    @_location.located
    def method(self, *other):
        return _elementwise("T_" + name.strip("_"), op, self, *other)

    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    return method


for _name in (
    *"add sub mul truediv floordiv mod pow and or xor lshift rshift".split(),
    *"radd rsub rmul rtruediv rfloordiv rmod rpow rand ror rxor rlshift rrshift".split(),
    *"neg invert abs lt le gt ge".split(),
):
    setattr(Tensor, f"__{_name}__", _operator(f"__{_name}__"))
