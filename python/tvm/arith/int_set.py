# SPDX-License-Identifier: Apache-2.0
"""Sets of integers."""

from tvm._derive import Node, fill, function, register_node

_single_point = function("arith._single_point", __name__)
_vector = function("arith._vector", __name__)


@register_node("ir.IntSet")
class IntSet(Node):
    @staticmethod
    def vector(vec):
        """The set that covers the lanes of a vector."""
        return _vector(vec)

    @staticmethod
    def single_point(point):
        """The set of one number."""
        return _single_point(point)


@register_node("arith.IntervalSet")
class IntervalSet(IntSet):
    pass


class PresburgerSet(IntSet):
    """Unions of sets with linear conditions. Not available: they need a library of integer sets
    that is no part of this project."""

    def __init__(self, *args):
        raise NotImplementedError(
            "PresburgerSet: expected an IntervalSet, sets of this kind are not available"
        )


__getattr__, __dir__ = fill(__name__)
