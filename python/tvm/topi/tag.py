# SPDX-License-Identifier: Apache-2.0
"""What kind of operator made a tensor."""

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"


def is_broadcast(tag):
    """Whether elements are combined element by element, maybe repeated."""
    return tag == ELEMWISE or tag.startswith(BROADCAST)


def is_injective(tag):
    """Whether every element of the result depends on few elements at places that are known."""
    return is_broadcast(tag) or tag.startswith(INJECTIVE)
