# SPDX-License-Identifier: Apache-2.0
"""Static types."""

from tvm._derive import register_node
from tvm.ir import Type


@register_node("relax.ShapeType")
class ShapeType(Type):
    pass


@register_node("relax.ObjectType")
class ObjectType(Type):
    pass


@register_node("relax.DynTensorType")
class TensorType(Type):
    pass


@register_node("relax.PackedFuncType")
class PackedFuncType(Type):
    pass
