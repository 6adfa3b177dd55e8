# SPDX-License-Identifier: Apache-2.0
"""Instructions of traces."""

from tvm._derive import Node, register_node


@register_node("tir.InstructionKind")
class InstructionKind(Node):
    pass


@register_node("tir.Instruction")
class Instruction(Node):
    pass
