# SPDX-License-Identifier: Apache-2.0
"""Operators as methods of tensors."""


def _op():
    from . import op

    return op


def _operand(value, like):
    from .core import Tensor

    if isinstance(value, Tensor):
        return value
    if isinstance(value, (bool, int, float)):
        return Tensor.from_scalar(value, like.dtype)
    raise TypeError(f"nn: expected a tensor or a number, got {type(value).__name__}")


def _binary(name, swapped=False):
    def method(self, other):
        operands = (self, _operand(other, self))
        return getattr(_op(), name)(*(reversed(operands) if swapped else operands))

    return method


def _list(values):
    """`f(2, 3)` and `f((2, 3))` are the same."""
    is_one = len(values) == 1 and isinstance(values[0], (list, tuple))
    return list(values[0]) if is_one else list(values)


class _TensorOp:
    """What tensors can do; a number beside a tensor takes the tensor's dtype."""

    __add__, __radd__ = _binary("add"), _binary("add", swapped=True)
    __sub__, __rsub__ = _binary("subtract"), _binary("subtract", swapped=True)
    __mul__, __rmul__ = _binary("multiply"), _binary("multiply", swapped=True)
    __truediv__, __rtruediv__ = _binary("divide"), _binary("divide", swapped=True)
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    maximum, minimum = _binary("maximum"), _binary("minimum")

    def __neg__(self):
        return _op().negative(self)

    def __matmul__(self, other):
        return _op().matmul(self, other)

    def astype(self, dtype):
        return _op().astype(self, dtype)

    def reshape(self, *shape):
        return _op().reshape(self, _list(shape))

    def permute_dims(self, *axes):
        return _op().permute_dims(self, _list(axes) or None)

    def permute(self, *axes):
        return _op().permute(self, _list(axes) or None)

    def broadcast_to(self, *shape):
        return _op().broadcast_to(self, _list(shape))

    def repeat(self, repeats, axis=None):
        return _op().repeat(self, repeats, axis)
