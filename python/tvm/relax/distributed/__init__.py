# SPDX-License-Identifier: Apache-2.0
"""Tensors spread over a mesh of devices."""

from enum import IntEnum

from tvm._derive import Node, construct, fill, register_node
from tvm.ir import GlobalInfo, Range
from tvm.relax.expr import StructInfo

__getattr__, __dir__ = fill(__name__)


@register_node("relax.distributed.DeviceMesh")
class DeviceMesh(GlobalInfo):
    def __init__(self, shape, device_ids):
        """`device_ids`: a list, or a Range of them."""
        is_range = isinstance(device_ids, Range)
        ids, id_range = ([], device_ids) if is_range else (list(device_ids), None)
        construct(self, tuple(shape), ids, id_range)


def device_mesh(shape, device_ids):
    """Devices in the order of a grid."""
    return DeviceMesh(shape, device_ids)


class PlacementSpecKind(IntEnum):
    kSharding = 0
    kReplica = 1


@register_node("relax.distributed.PlacementSpec")
class PlacementSpec(Node):
    @staticmethod
    def sharding(axis):
        """The axis of the tensor is split."""
        return PlacementSpec(axis, int(PlacementSpecKind.kSharding))

    @staticmethod
    def replica():
        """The tensor is repeated."""
        return PlacementSpec(-1, int(PlacementSpecKind.kReplica))


@register_node("relax.distributed.Placement")
class Placement(Node):
    @staticmethod
    def from_text(text):
        """From "S[0], R"."""
        return Placement._from_text(text)

    def __str__(self):
        return str(self._text())


@register_node("relax.DTensorStructInfo")
class DTensorStructInfo(StructInfo):
    pass
