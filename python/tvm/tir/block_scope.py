# SPDX-License-Identifier: Apache-2.0
"""References to blocks and loops of a state, and the dependences between blocks."""

import enum

from tvm._derive import Node, function, register_node

_stmt = function("tir.schedule._sref_stmt", __name__)
_parent = function("tir.schedule._sref_parent", __name__)
_id = function("tir.schedule._sref_id", __name__)
_state = function("tir.schedule._sref_state", __name__)
_mark = function("tir.schedule._sref_mark", __name__)
_seq_index = function("tir.schedule._sref_seq_index", __name__)
_INLINE, _ROOT = -2, -3


class DepKind(enum.IntEnum):
    """How a later block depends on an earlier one."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


@register_node("tir.StmtSRef")
class StmtSRef(Node):
    @property
    def stmt(self):
        """The Block or For as it is now; None when it is gone."""
        return _stmt(self)

    @property
    def parent(self):
        """The block or loop around, or None."""
        return _parent(self)

    @property
    def seq_index(self):
        """The place in the sequence of statements around, or -1 outside of one."""
        return _seq_index(self)

    @staticmethod
    def inline_mark():
        """The compute location that means inlining."""
        return _mark(_INLINE)

    @staticmethod
    def root_mark():
        """The compute location outside of all loops."""
        return _mark(_ROOT)

    def __eq__(self, other):
        return (
            isinstance(other, StmtSRef)
            and _id(self) == _id(other)
            and (_id(self) < 0 or _state(self).same_as(_state(other)))
        )

    def same_as(self, other):
        """Whether both stand for the same statement."""
        return self == other

    def __hash__(self):
        return hash(_id(self))


@register_node("tir.Dependency")
class Dependency(Node):
    pass


@register_node("tir.BlockScope")
class BlockScope(Node):
    pass
