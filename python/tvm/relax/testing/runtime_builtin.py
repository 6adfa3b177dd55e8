# SPDX-License-Identifier: Apache-2.0
"""What the numbers in calls of the virtual machine's shape functions mean."""

import enum


class MatchShapeCode(enum.IntEnum):
    """What match_shape does with a dimension."""

    ASSERT_EQUAL_TO_IMM = 0
    STORE_TO_HEAP = 1
    NO_OP = 2
    ASSERT_EQUAL_TO_LOAD = 3


class MakeShapeCode(enum.IntEnum):
    """Where make_shape takes a dimension from."""

    USE_IMM = 0
    LOAD_SHAPE = 1
