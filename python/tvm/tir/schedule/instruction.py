# SPDX-License-Identifier: Apache-2.0
"""Instructions of traces."""

from typing import Any

from tvm._derive import Node, function, register_node

_text = function("tir.schedule._instruction_text", __name__)
INPUT_RV_TYPE = OUTPUT_RV_TYPE = ATTR_TYPE = Any


@register_node("tir.InstructionKind")
class InstructionKind(Node):
    pass


@register_node("tir.Instruction")
class Instruction(Node):
    def __repr__(self):
        return str(_text(self))

    __str__ = __repr__
