# SPDX-License-Identifier: Apache-2.0
"""Programs built statement by statement: the layer below the parser, and an interface itself.

with IRBuilder() as builder:
    with T.prim_func():
        T.func_name("main")
        A = T.arg("A", T.Buffer((16,), "float32"))
        with T.serial(16) as i:
            T.buffer_store(A, 0.0, [i])
func = builder.get()
"""

from .base import IRBuilder, IRBuilderFrame

__all__ = ["IRBuilder", "IRBuilderFrame"]
