# SPDX-License-Identifier: Apache-2.0
"""Dependences between blocks, without a schedule."""

from .schedule.state import ScheduleState


class BlockDependenceInfo:
    """Which blocks of a module write what others read."""

    def __init__(self, mod):
        self._state = ScheduleState(mod)

    @property
    def mod(self):
        return self._state.mod

    def get_sref(self, block):
        """The reference to a block, or None where the module does not have it."""
        return self._state.get_sref(block)

    def get_block_scope(self, block_sref):
        """The blocks below a block, and what they depend on."""
        return self._state.get_block_scope(block_sref)

    get_sblock_scope = get_block_scope  # since 0.27


SBlockDependenceInfo = BlockDependenceInfo
