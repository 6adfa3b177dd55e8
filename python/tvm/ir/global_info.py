# SPDX-License-Identifier: Apache-2.0
"""What a module declares once for all its functions; compared by structure."""

from tvm._derive import Node, construct, convert, fill, register_node

_ir, _ = fill("tvm.ir")


@register_node("ir.GlobalInfo")
class GlobalInfo(Node):
    def __eq__(self, other):
        return isinstance(other, GlobalInfo) and _ir("structural_equal")(self, other, False)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(_ir("structural_hash")(self, False))


@register_node("ir.DummyGlobalInfo")
class DummyGlobalInfo(GlobalInfo):
    pass


@register_node("ir.VDevice")
class VDevice(GlobalInfo):
    def __init__(self, target=None, vdevice_id=0, memory_scope="global"):
        """`target` may be a Target, its text or its JSON form; by default it is the current one."""
        from tvm.target import Target

        if target is None:
            target = Target.current(allow_none=False)
        elif not isinstance(target, Target):
            target = Target(convert(target))
        construct(self, target, vdevice_id, memory_scope)
