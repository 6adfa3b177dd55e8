# SPDX-License-Identifier: Apache-2.0
"""A blocked matrix product in TVMScript as older versions printed it: `dtype=` on every call."""

import numpy as np
import tvm
from tvm.script import tir as T


@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle) -> None:
    T.func_attr({"global_symbol": "matmul", "tir.noalias": True})
    A = T.match_buffer(a, [64, 64], dtype="float32")
    B = T.match_buffer(b, [64, 64], dtype="float32")
    C = T.match_buffer(c, [64, 64], dtype="float32")
    for i0, j0, k, i1, j1 in T.grid(8, 8, 64, 8, 8):
        with T.block("C"):
            vi = T.axis.spatial(64, i0 * 8 + i1)
            vj = T.axis.spatial(64, j0 * 8 + j1)
            vk = T.axis.reduce(64, k)
            T.reads([A[vi, vk], B[vk, vj]])
            T.writes([C[vi, vj]])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.max(A[vi, vk], T.float32(0), dtype="float32") * T.exp(
                B[vk, vj], dtype="float32"
            )


def main():
    a, b = (np.random.rand(64, 64).astype("float32") - 0.5 for _ in range(2))
    c = tvm.runtime.tensor(np.zeros((64, 64), "float32"))
    tvm.compile(matmul, target="llvm")(tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
    np.testing.assert_allclose(c.numpy(), np.maximum(a, 0) @ np.exp(b), rtol=1e-4)


if __name__ == "__main__":
    main()
