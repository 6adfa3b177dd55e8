# SPDX-License-Identifier: Apache-2.0
"""Questions about schedules."""

from dataclasses import dataclass

from tvm_ffi import get_global_func

from tvm._derive import Node, fill, register_node

_derived, __dir__ = fill("tvm.tir.schedule")


@register_node("tir.schedule.TensorizeInfo")
class TensorizeInfo(Node):
    """How the loops of a block and of an intrinsic's description correspond."""


@register_node("tir.schedule.AutoTensorizeMappingInfo")
class AutoTensorizeMappingInfo(Node):
    """How the iterators of a block are to be fused for an intrinsic."""


@dataclass(frozen=True)
class Access:
    """A load or store of a block. `steps` has, for each loop around the block, by how many elements
    the access moves when the loop makes a step; None where that changes on the way."""

    buffer: object
    is_store: bool
    steps: list | None

    def moves(self, loop):
        """Whether it moves along a loop, given by its position."""
        step = None if self.steps is None else self.steps[loop]
        return step is None or getattr(step, "value", None) != 0


class BlockView:
    """What rules look at: the variables of the loops around a block, outermost first, whether each
    belongs to spatial iterators ("S"), to those of a reduction ("R"), to both ("SR") or to none
    (""), and the accesses of the block in program order."""

    def __init__(self, sch, block):
        loop_vars, uses, accesses = get_global_func("tir.schedule._block_view")(sch, block)
        self.loop_vars = list(loop_vars)
        self.uses = [str(use) for use in uses]
        self.accesses = [
            Access(buffer, bool(is_store), None if steps is None else list(steps))
            for buffer, is_store, steps in accesses
        ]

    @property
    def loads(self):
        """The accesses that read what the block does not write."""
        written = [access.buffer for access in self.accesses if access.is_store]
        return [
            access
            for access in self.accesses
            if not access.is_store and not any(access.buffer.same_as(b) for b in written)
        ]


def __getattr__(name):
    return _derived(name)
