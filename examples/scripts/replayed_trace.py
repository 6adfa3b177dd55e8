# SPDX-License-Identifier: Apache-2.0
"""A trace with rfactor and reverse_compute_at, replayed from its JSON."""

import numpy as np
import tvm
from tvm import tir
from tvm.script import tir as T


@T.prim_func
def rows(A: T.Buffer((16, 256), "float32"), B: T.Buffer((16,), "float32")):
    for i, k in T.grid(16, 256):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


def main():
    sch = tir.Schedule(rows)
    _, k = sch.get_loops("B")
    _, inner = sch.split(k, factors=[None, 8])
    partial = sch.rfactor(inner, factor_axis=0)
    sch.reverse_compute_at("B", sch.get_loops(partial)[0])
    again = tir.Schedule(rows)
    tir.schedule.Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    tvm.ir.assert_structural_equal(sch.mod, again.mod)
    a, b = np.random.rand(16, 256).astype("float32"), tvm.runtime.empty((16,), "float32")
    tvm.compile(again.mod, target="llvm")(tvm.runtime.tensor(a), b)
    np.testing.assert_allclose(b.numpy(), a.sum(1), rtol=1e-5)


if __name__ == "__main__":
    main()
