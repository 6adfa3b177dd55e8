# SPDX-License-Identifier: Apache-2.0
"""Questions about schedules."""

from tvm._derive import Node, fill, register_node

_derived, __dir__ = fill("tvm.tir.schedule")


@register_node("tir.schedule.TensorizeInfo")
class TensorizeInfo(Node):
    """How the loops of a block and of an intrinsic's description correspond."""


@register_node("tir.schedule.AutoTensorizeMappingInfo")
class AutoTensorizeMappingInfo(Node):
    """How the iterators of a block are to be fused for an intrinsic."""


def __getattr__(name):
    return _derived(name)
