# SPDX-License-Identifier: Apache-2.0
"""Iterator maps."""

import enum

from tvm import arith


class IterMapLevel(enum.IntEnum):
    """What a map of iterators must be."""

    Bijective = 0
    Surjective = 1
    NoCheck = 3

    @staticmethod
    def from_str(name):
        """The level of a name in any case."""
        for level in IterMapLevel:
            if level.name.lower() == name.lower():
                return level
        raise ValueError(
            f"check_level: expected one of bijective, surjective, nocheck, got {name!r}"
        )


def __getattr__(name):
    return getattr(arith, name)
