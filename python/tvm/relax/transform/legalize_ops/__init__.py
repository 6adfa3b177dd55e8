# SPDX-License-Identifier: Apache-2.0
"""How LegalizeOps lowers an operator: an attribute of the operator."""

from collections.abc import Callable

from tvm import te
from tvm.ir import register_op_attr
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call, Expr

TEFunc = Callable[..., te.Tensor]
LegalizeFunc = Callable[[BlockBuilder, Call], Expr]


def register_legalize(op_name, legal_func=None):
    """Registers `legal_func(block_builder, call)`, which gives what a call of the operator becomes;
    without it, a decorator."""
    return register_op_attr(op_name, "FLegalize", legal_func)
