# SPDX-License-Identifier: Apache-2.0
"""A pass in Python that puts a function written with ir_builder into a module."""

import numpy as np
import tvm
from tvm import tir


def doubled(size):
    """A function that doubles its argument, statement by statement."""
    builder = tir.ir_builder.create()
    source = tir.decl_buffer((size,), "float32", name="A")
    target = tir.decl_buffer((size,), "float32", name="B")
    values, results = builder.buffer_ptr(source), builder.buffer_ptr(target)
    with builder.for_range(0, size, name="i") as i:
        with builder.if_scope(values[i] > 0.0):
            results[i] = values[i] * 2.0
        with builder.else_scope():
            results[i] = 0.0
    func = tir.PrimFunc([source, target], builder.get())
    return func.with_attr("global_symbol", "main")


@tvm.transform.module_pass(opt_level=0, name="AddDoubled")
class AddDoubled:
    """Adds the function to a module."""

    def transform_module(self, mod, ctx):
        mod["main"] = doubled(32)
        return mod


def main():
    mod = AddDoubled()(tvm.IRModule({}))
    a, b = np.random.randn(32).astype("float32"), tvm.runtime.empty((32,), "float32")
    tvm.compile(mod, target="llvm")(tvm.runtime.tensor(a), b)
    np.testing.assert_allclose(b.numpy(), np.maximum(a, 0) * 2)


if __name__ == "__main__":
    main()
