# SPDX-License-Identifier: Apache-2.0
"""Says of each function what it is compiled for."""

import tvm
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import func


def test_bind_target_prefers_what_is_there():
    c = tvm.target.Target("c")
    mod = tvm.IRModule({"f": func([], tir.Evaluate(0)), "g": func([], tir.Evaluate(0), target=c)})
    mod = tt.BindTarget(tvm.target.Target("llvm -mcpu=skylake"))(mod)
    assert (
        mod["f"].attrs["target"].kind.name == "llvm" and mod["g"].attrs["target"].kind.name == "c"
    )
