# SPDX-License-Identifier: Apache-2.0
"""Types whose elements take more room in generated code than in tensors are refused."""

import pytest
import tvm
from tvm import relax, te

REFUSED = r"expected elements of \w+ to lie side by side as in a tensor, got int(24|48)"


@pytest.mark.parametrize("dtype", ["int24", "int48"])
def test_a_function_is_not_compiled(dtype):
    a = te.placeholder((5,), dtype, name="a")
    func = te.create_prim_func([a, te.compute((5,), lambda i: a[i] + a[i], name="b")])
    with pytest.raises(NotImplementedError, match=REFUSED):
        tvm.compile(func, target="llvm")


def test_constants_are_not_folded():
    constant = relax.Constant(tvm.runtime.empty((5,), "int24"))
    bb = relax.BlockBuilder()
    with bb.function("main", []):
        with bb.dataflow():
            out = bb.emit_output(relax.op.add(constant, constant))
        bb.emit_func_output(out)
    with pytest.raises(NotImplementedError, match=REFUSED):
        tvm.compile(bb.get(), target="llvm")
