# SPDX-License-Identifier: Apache-2.0
"""Struct info of tensors that are spread over devices."""

from tvm import relax as _relax
from tvm.relax import distributed

from ...ir_builder.relax import Group as _Group
from .entry import Tensor, _struct_info, _texts, resolve


def device_mesh(shape, device_ids):
    """Devices in the order of a grid."""
    return distributed.DeviceMesh(shape, device_ids)


def DTensor(shape=None, dtype=None, device_mesh=None, placement="", *, ndim=-1):
    """A tensor spread over a mesh of devices; `placement` is a text such as "S[0], R"."""
    tensor = Tensor(shape, dtype, None, ndim)
    if isinstance(placement, str):
        placement = distributed.Placement.from_text(placement)

    def make(found):
        return distributed.DTensorStructInfo(resolve(tensor, found), device_mesh, placement)

    return _struct_info(make, _texts(tensor))


def __getattr__(name):
    """Operators on such tensors."""
    return getattr(_Group("R.dist", _relax.op.distributed), name)


__all__ = ["DTensor", "device_mesh"]
