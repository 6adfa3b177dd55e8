# SPDX-License-Identifier: Apache-2.0
"""Types compare by structure."""

from tvm._derive import Node, fill, register_node

__getattr__, __dir__ = fill("tvm.ir")
_ir = __getattr__


@register_node("ir.Type")
class Type(Node):
    def __eq__(self, other):
        return isinstance(other, Type) and _ir("structural_equal")(self, other, False)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(_ir("structural_hash")(self, False))


@register_node("ir.PrimType")
class PrimType(Type):
    pass


@register_node("ir.PointerType")
class PointerType(Type):
    pass
